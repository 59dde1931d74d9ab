//! The names that agents give to their tools, and to the arguments of those.
//!
//! [`TOOLS`] and the lists below it are the one table of them.

/// What a tool is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolKind {
    /// Runs a command.
    Command,
    /// Reads files.
    Read,
    /// Replaces parts of a file.
    Edit,
    /// Writes a whole file.
    Write,
    /// Applies a patch.
    Patch,
    /// Deletes a file.
    Delete,
    /// Searches in files.
    Search,
    /// Finds files by name.
    Find,
    /// Lists a directory.
    List,
    /// Reads a page.
    Fetch,
    /// Searches the web.
    WebSearch,
    /// Keeps a list of tasks.
    Todos,
    /// Presents a plan.
    Plan,
    /// Asks the user.
    Question,
    /// Starts a sub-agent.
    Task,
    /// Loads a skill.
    Skill,
}

/// The names of tools. They are compared in lower case, without `_` and `-`, and without the
/// name of the extension before them.
pub const TOOLS: &[(ToolKind, &[&str])] = &[
    (
        ToolKind::Command,
        &[
            "bash",
            "shell",
            "execcommand",
            "execute",
            "runshellcommand",
            "runterminalcmd",
            "runterminalcommand",
            "runterminal",
            "runcommand",
            "runcommands",
            "executecommand",
            "shellcommand",
            "shellexec",
            "localshell",
            "terminal",
            "exec",
            "writestdin",
        ],
    ),
    (
        ToolKind::Read,
        &[
            "read",
            "readfile",
            "readfiles",
            "readmanyfiles",
            "view",
            "viewfile",
            "viewimage",
            "readimage",
            "cat",
            "notebookread",
        ],
    ),
    (
        ToolKind::Edit,
        &[
            "edit",
            "editfile",
            "editor",
            "multiedit",
            "replace",
            "replaceinfile",
            "strreplace",
            "strreplaceeditor",
            "strreplacefile",
            "strreplacebasededittool",
            "notebookedit",
            "searchreplace",
            "textedit",
            "texteditor",
            "replacefilecontent",
            "multireplacefilecontent",
            "replacestringinfile",
            "multireplacestringinfile",
            "searchandreplace",
            "editnotebook",
            "editnotebookfile",
            "inserteditintofile",
            "insertcontent",
            "insert",
        ],
    ),
    (
        ToolKind::Write,
        &[
            "write",
            "writefile",
            "writetofile",
            "create",
            "createfile",
            "newfile",
            "savefile",
            "fswrite",
        ],
    ),
    (ToolKind::Patch, &["applypatch", "patch", "applydiff"]),
    (
        ToolKind::Delete,
        &["deletefile", "removefile", "delete", "remove"],
    ),
    (
        ToolKind::Search,
        &[
            "grep",
            "grepsearch",
            "search",
            "searchfiles",
            "searchfilecontent",
            "ripgrep",
            "rg",
            "codebasesearch",
        ],
    ),
    (
        ToolKind::Find,
        &[
            "glob",
            "globfilesearch",
            "find",
            "findfile",
            "findfiles",
            "filesearch",
            "findbyname",
        ],
    ),
    (
        ToolKind::List,
        &[
            "ls",
            "list",
            "listdir",
            "listdirectory",
            "listfiles",
            "tree",
        ],
    ),
    (
        ToolKind::Fetch,
        &[
            "webfetch",
            "fetch",
            "fetchurl",
            "fetchpage",
            "openpage",
            "readurlcontent",
            "browsernavigate",
        ],
    ),
    (
        ToolKind::WebSearch,
        &["websearch", "googlewebsearch", "searchweb"],
    ),
    (
        ToolKind::Todos,
        &[
            "todowrite",
            "todo",
            "todos",
            "todolist",
            "updateplan",
            "updatetodolist",
            "writetodos",
            "settodolist",
            "plan",
        ],
    ),
    (
        ToolKind::Plan,
        &[
            "exitplanmode",
            "planmoderespond",
            "presentplan",
            "submitplan",
            "createplan",
        ],
    ),
    (
        ToolKind::Question,
        &[
            "askuserquestion",
            "askuser",
            "question",
            "askfollowupquestion",
            "requestuserinput",
            "askquestion",
        ],
    ),
    (
        ToolKind::Task,
        &[
            "task",
            "agent",
            "subagent",
            "newtask",
            "spawnagent",
            "delegate",
            "delegatetask",
            "runsubagent",
        ],
    ),
    (
        ToolKind::Skill,
        &["skill", "useskill", "activateskill", "loadskill"],
    ),
];

pub(super) const COMMANDS: &[&str] = &["command", "cmd", "commands", "CommandLine", "script"];
pub(super) const DIRECTORIES: &[&str] = &["workdir", "cwd", "dir_path", "directory", "Cwd"];
/// The names of a file.
pub(super) const PATHS: &[&str] = &[
    "file_path",
    "path",
    "filePath",
    "absolute_path",
    "target_file",
    "filename",
    "file",
    "notebook_path",
    "TargetFile",
    "AbsolutePath",
    "DirectoryPath",
    "SearchPath",
    "dir_path",
    "directory",
    "paths",
];
/// What an edit replaces, and what it puts there.
pub(super) const EDITS: &[(&str, &str)] = &[
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("old", "new"),
    ("before", "after"),
    ("search", "replace"),
    ("TargetContent", "ReplacementContent"),
];
/// What an edit adds where it replaces nothing.
pub(super) const ADDED: &[&str] = &[
    "new_text",
    "new_str",
    "new_string",
    "newText",
    "insert_text",
    "code_edit",
    "new_source",
];
pub(super) const LISTS_OF_EDITS: &[&str] =
    &["edits", "replacements", "ReplacementChunks", "changes"];
/// The whole content of a file.
pub(super) const CONTENTS: &[&str] = &["content", "file_text", "contents", "text", "CodeContent"];
pub(super) const PATCHES: &[&str] = &["input", "patch", "diff", "patch_text", "patchText"];
pub(super) const PATTERNS: &[&str] = &[
    "pattern",
    "query",
    "regex",
    "Query",
    "Pattern",
    "glob",
    "search_term",
    "SearchTerm",
];
pub(super) const GLOBS: &[&str] = &[
    "glob",
    "include",
    "include_pattern",
    "file_pattern",
    "Includes",
];
/// The type of files, which is not a pattern.
pub(super) const FILE_TYPES: &[&str] = &["type"];
pub(super) const URLS: &[&str] = &["url", "Url", "uri", "urls"];
pub(super) const QUERIES: &[&str] = &["query", "search_term", "queries", "prompt"];
pub(super) const TODOS: &[&str] = &["todos", "plan", "items", "todo_list", "tasks"];
pub(super) const TODO_TEXTS: &[&str] = &["content", "step", "text", "title", "description", "task"];
pub(super) const PLANS: &[&str] = &["plan", "response", "content"];
pub(super) const PROMPTS: &[&str] = &["prompt", "task", "message", "instructions", "description"];
pub(super) const AGENTS: &[&str] = &["subagent_type", "agent_type", "agent", "name"];

/// An argument that tools of several agents have, under different names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Argument {
    /// A command.
    Command,
    /// The directory that it runs in.
    Directory,
    /// A file or directory.
    Path,
    /// The text that an edit replaces.
    OldText,
    /// The text that it puts there.
    NewText,
    /// The whole content of a file.
    Content,
    /// A patch.
    Patch,
    /// What is searched for.
    Pattern,
    /// The files that are searched.
    Files,
    /// The address of a page.
    Url,
    /// What the web is searched for.
    Query,
    /// A list of tasks.
    Todos,
}

impl Argument {
    /// Returns the name that it has in a call, given whether a name is there.
    pub fn name_in(self, has: impl Fn(&str) -> bool) -> Option<&'static str> {
        let first = |names: &[&'static str]| names.iter().copied().find(|name| has(name));
        let pair = || EDITS.iter().find(|(old, new)| has(old) && has(new));
        match self {
            Self::Command => first(COMMANDS),
            Self::Directory => first(DIRECTORIES),
            Self::Path => first(PATHS),
            Self::OldText => pair().map(|(old, _)| *old),
            Self::NewText => pair().map(|(_, new)| *new),
            Self::Content => first(CONTENTS),
            Self::Patch => first(PATCHES),
            Self::Pattern => first(PATTERNS),
            Self::Files => first(GLOBS),
            Self::Url => first(URLS),
            Self::Query => first(QUERIES),
            Self::Todos => first(TODOS),
        }
    }
}

/// Returns the name of a task's text in a call, given whether a name is there.
pub fn todo_text_in(has: impl Fn(&str) -> bool) -> Option<&'static str> {
    TODO_TEXTS.iter().copied().find(|name| has(name))
}

impl ToolKind {
    /// Returns what a tool is for, by its name.
    pub fn of(name: &str) -> Option<Self> {
        let name = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
        let is_mcp = name.starts_with("mcp__");
        let name = match name.rsplit_once("__") {
            Some((_, name)) if !is_mcp => name,
            _ => name,
        };
        let plain: String = name
            .chars()
            .filter(|c| !matches!(c, '_' | '-' | ' '))
            .flat_map(char::to_lowercase)
            .collect();
        let found = TOOLS
            .iter()
            .find(|(_, names)| names.contains(&plain.as_str()));
        found.map(|(kind, _)| *kind)
    }
}
