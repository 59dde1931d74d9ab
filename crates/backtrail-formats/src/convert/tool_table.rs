//! The tools of each target that other agents have too: the one table by which calls are renamed.
//!
//! A row has the kind of tool, its name, the names of the arguments that a call must have, and in
//! brackets those that it may have. After `text` is the name of a task's text in a list of tasks;
//! after `list`, what the list consists of that the first argument is.

use backtrail::conversation::{Argument, ToolKind};

use super::tools::{ListOf, ToolRow};

macro_rules! tools {
    ($($kind:ident $name:literal ($($need:ident $needed:literal),*)
        $([$($may:ident $optional:literal),*])? $(text $text:literal)? $(list ($list:expr))?;)*) => {
        &[$(
            ToolRow::new(ToolKind::$kind, $name, &[$((Argument::$need, $needed)),*])
                $(.may_have(&[$((Argument::$may, $optional)),*]))?
                $(.todo_text($text))?
                $(.list($list))?,
        )*]
    };
}

/// The tools of Claude Code.
pub(super) const CLAUDE_CODE: &[ToolRow] = tools! {
    Command "Bash" (Command "command");
    Read "Read" (Path "file_path");
    Edit "Edit" (Path "file_path", OldText "old_string", NewText "new_string");
    Write "Write" (Path "file_path", Content "content");
    Search "Grep" (Pattern "pattern") [Path "path", Files "glob"];
    Find "Glob" (Pattern "pattern") [Path "path"];
    Fetch "WebFetch" (Url "url");
    WebSearch "WebSearch" (Query "query");
    Todos "TodoWrite" (Todos "todos") text "content";
};

/// The tools of Codex.
pub(super) const CODEX: &[ToolRow] = tools! {
    Command "exec_command" (Command "cmd") [Directory "workdir"];
    Patch "apply_patch" (Patch "input");
    Todos "update_plan" (Todos "plan") text "step";
};

/// The tools of Gemini CLI.
pub(super) const GEMINI_CLI: &[ToolRow] = tools! {
    Command "run_shell_command" (Command "command") [Directory "dir_path"];
    Read "read_file" (Path "file_path");
    Edit "replace" (Path "file_path", OldText "old_string", NewText "new_string");
    Write "write_file" (Path "file_path", Content "content");
    Search "grep_search" (Pattern "pattern") [Path "dir_path", Files "include_pattern"];
    Find "glob" (Pattern "pattern") [Path "dir_path"];
    List "list_directory" (Path "dir_path");
    Fetch "web_fetch" (Url "url");
    WebSearch "google_web_search" (Query "query");
    Todos "write_todos" (Todos "todos") text "description";
};

/// The tools of opencode.
pub(super) const OPENCODE: &[ToolRow] = tools! {
    Command "bash" (Command "command") [Directory "workdir"];
    Read "read" (Path "filePath");
    Edit "edit" (Path "filePath", OldText "oldString", NewText "newString");
    Write "write" (Path "filePath", Content "content");
    Search "grep" (Pattern "pattern") [Path "path", Files "include"];
    Find "glob" (Pattern "pattern") [Path "path"];
    Fetch "webfetch" (Url "url");
    Todos "todowrite" (Todos "todos") text "content";
};

/// The tools of Qwen Code.
pub(super) const QWEN_CODE: &[ToolRow] = tools! {
    Command "run_shell_command" (Command "command") [Directory "directory"];
    Read "read_file" (Path "file_path");
    Edit "edit" (Path "file_path", OldText "old_string", NewText "new_string");
    Write "write_file" (Path "file_path", Content "content");
    Search "grep_search" (Pattern "pattern") [Path "path", Files "glob"];
    Find "glob" (Pattern "pattern") [Path "path"];
    List "list_directory" (Path "path");
    Fetch "web_fetch" (Url "url");
    WebSearch "web_search" (Query "query");
    Todos "todo_write" (Todos "todos") text "content";
};

/// The tools of Copilot CLI.
pub(super) const COPILOT_CLI: &[ToolRow] = tools! {
    Command "bash" (Command "command");
    Read "view" (Path "path");
    Edit "edit" (Path "path", OldText "old_str", NewText "new_str");
    Write "create" (Path "path", Content "file_text");
    Search "grep" (Pattern "pattern") [Path "paths", Files "glob"];
    Find "glob" (Pattern "pattern") [Path "paths"];
};

/// The tools of pi.
pub(super) const PI: &[ToolRow] = tools! {
    Command "bash" (Command "command");
    Read "read" (Path "path");
    // One replacement can be in the call itself; several are in its list `edits`.
    Edit "edit" (Path "path", OldText "oldText", NewText "newText");
    Write "write" (Path "path", Content "content");
    Search "grep" (Pattern "pattern") [Path "path", Files "glob"];
    Find "find" (Pattern "pattern") [Path "path"];
    List "ls" () [Path "path"];
};

/// The tools of Cline.
pub(super) const CLINE: &[ToolRow] = tools! {
    Command "run_commands" (Command "commands") list (ListOf::Values);
    Read "read_files" (Path "files") list (ListOf::Objects("path"));
    Edit "editor" (Path "path", OldText "old_text", NewText "new_text");
    Write "editor" (Path "path", Content "new_text");
};

/// The tools of goose.
pub(super) const GOOSE: &[ToolRow] = tools! {
    Command "shell" (Command "command");
    Edit "edit" (Path "path", OldText "before", NewText "after");
    Write "write" (Path "path", Content "content");
    List "tree" (Path "path");
};
