//! What the tools of agents mean.
//!
//! Every agent has its own names for the same few things: run a command, read, edit or write
//! a file, search, ask. `tool_names` is the one table of them. [`ToolCall::action`] reads a
//! call by it; a tool that is not in the table is recognised by its arguments, or stays
//! [`Action::Other`].

use serde_json::{Map, Value};

use super::item::ToolCall;
use super::patch::{FilePatch, is_patch, parse_patch, replaced_blocks};
use super::tool_names::{
    ADDED, AGENTS, COMMANDS, CONTENTS, DIRECTORIES, EDITS, FILE_TYPES, GLOBS, LISTS_OF_EDITS,
    PATCHES, PATHS, PATTERNS, PLANS, PROMPTS, QUERIES, TODO_TEXTS, TODOS, ToolKind, URLS,
};

/// What a call does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It runs a command, as one would type it.
    Command {
        /// The command; several are on lines of their own.
        command: String,
        /// The directory that it runs in, if it is named.
        directory: Option<String>,
    },
    /// It reads files.
    Read(Vec<ReadFile>),
    /// It replaces parts of a file.
    Edit {
        /// The file.
        path: String,
        /// The replacements, in order.
        changes: Vec<Replacement>,
    },
    /// It writes a whole file.
    Write {
        /// The file.
        path: String,
        /// Its content, if the call has it.
        content: Option<String>,
    },
    /// It applies a patch.
    Patch(Vec<FilePatch>),
    /// It searches in files, or finds files by name.
    Search {
        /// What it searches for.
        pattern: String,
        /// Where.
        path: Option<String>,
        /// The files that it searches.
        files: Option<String>,
    },
    /// It lists a directory.
    List(String),
    /// It reads a page.
    Fetch(String),
    /// It searches the web.
    WebSearch(String),
    /// It sets the list of tasks.
    Todos(Vec<Todo>),
    /// It presents a plan, in Markdown.
    Plan(String),
    /// It asks the user.
    Questions(Vec<Question>),
    /// It starts a sub-agent.
    Task {
        /// The kind of agent.
        agent: Option<String>,
        /// In a few words.
        description: String,
        /// What the sub-agent is asked to do.
        prompt: String,
    },
    /// It loads a skill.
    Skill {
        /// The skill.
        name: String,
        /// Its arguments.
        arguments: String,
    },
    /// Anything else: the names and values of the arguments.
    Other(Vec<(String, String)>),
}

/// A file that a call reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// The file.
    pub path: String,
    /// The first line, if not all of it is read.
    pub from: Option<u64>,
    /// The last line, if it is known.
    pub to: Option<u64>,
}

/// What an edit replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The text before.
    pub old: String,
    /// The text after.
    pub new: String,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Todo {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub state: TodoState,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TodoState {
    /// Not begun.
    Open,
    /// Being worked on.
    Active,
    /// Done.
    Done,
    /// Given up.
    Cancelled,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// The answers to choose from, with what they mean.
    pub options: Vec<(String, String)>,
}

impl ToolCall {
    /// Returns what the call does. It is worked out from the arguments each time.
    pub fn action(&self) -> Action {
        Action::of(&self.name, self.arguments.as_str())
    }
}

impl Action {
    /// Returns what a call of this tool with these arguments does.
    pub fn of(tool: &str, arguments: &str) -> Self {
        let value = parse_arguments(arguments);
        let kind = ToolKind::of(tool);
        match &value {
            Value::String(text) => of_text(kind, text),
            Value::Object(fields) => {
                let fields = Fields(fields);
                let action = kind.and_then(|kind| fields.action(kind));
                action
                    .or_else(|| fields.guess())
                    .unwrap_or_else(|| fields.other())
            }
            Value::Null => Self::Other(Vec::new()),
            other => Self::Other(vec![(String::new(), readable(other))]),
        }
    }
}

/// Parses arguments. Some agents write them as a text of JSON, some with `{}` before it.
fn parse_arguments(json: &str) -> Value {
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return Value::String(json.to_owned());
    };
    let Value::String(text) = &value else {
        return value;
    };
    let inner = text.trim();
    let inner = inner.strip_prefix("{}").unwrap_or(inner);
    match serde_json::from_str::<Value>(inner) {
        Ok(inner @ Value::Object(_)) => inner,
        _ => value,
    }
}

/// Reads arguments that are one text.
fn of_text(kind: Option<ToolKind>, text: &str) -> Action {
    if is_patch(text) {
        return Action::Patch(parse_patch(text));
    }
    match kind {
        Some(ToolKind::Command) => Action::Command {
            command: text.to_owned(),
            directory: None,
        },
        Some(ToolKind::WebSearch) => Action::WebSearch(text.to_owned()),
        Some(ToolKind::Fetch) => Action::Fetch(text.to_owned()),
        _ if text.is_empty() => Action::Other(Vec::new()),
        _ => Action::Other(vec![(String::new(), text.to_owned())]),
    }
}

/// The arguments of a call.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn get(&self, names: &[&str]) -> Option<&Value> {
        let found = names.iter().find_map(|name| self.0.get(*name));
        found.filter(|value| !value.is_null())
    }

    fn text(&self, names: &[&str]) -> Option<String> {
        let texts = |name: &&str| match self.0.get(*name) {
            Some(Value::String(text)) => Some(unquoted(text).to_owned()),
            _ => None,
        };
        names.iter().find_map(texts)
    }

    fn words(&self, names: &[&str]) -> Option<String> {
        self.text(names).filter(|text| !text.trim().is_empty())
    }

    fn path(&self) -> Option<String> {
        self.words(PATHS)
    }

    fn number(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.0.get(*name)?.as_u64())
    }

    /// Reads the arguments as those of a tool of this kind, if they fit.
    fn action(&self, kind: ToolKind) -> Option<Action> {
        match kind {
            ToolKind::Command => self.command(),
            ToolKind::Read => self.read(),
            // Some editors also write and show files.
            ToolKind::Edit => self.edit().or_else(|| self.write()).or_else(|| self.read()),
            ToolKind::Write => self.write(),
            ToolKind::Patch => self.patch().or_else(|| self.edit()),
            ToolKind::Delete => self
                .path()
                .map(|path| Action::Patch(vec![FilePatch::deleted(&path)])),
            ToolKind::Search | ToolKind::Find => self.search(),
            ToolKind::List => Some(Action::List(self.path().unwrap_or_else(|| ".".to_owned()))),
            ToolKind::Fetch => self.words(URLS).map(Action::Fetch),
            ToolKind::WebSearch => self.words(QUERIES).map(Action::WebSearch),
            ToolKind::Todos => self.todos(),
            ToolKind::Plan => Some(Action::Plan(self.words(PLANS).unwrap_or_default())),
            ToolKind::Question => self.questions(),
            ToolKind::Task => self.task(),
            ToolKind::Skill => Some(Action::Skill {
                name: self.words(&["skill", "name", "skill_name"])?,
                arguments: self.words(&["args", "arguments"]).unwrap_or_default(),
            }),
        }
    }

    /// Recognises what the arguments alone make plain.
    fn guess(&self) -> Option<Action> {
        let is_write = self.0.len() <= 4 && self.path().is_some();
        let write = || is_write.then(|| self.write()).flatten();
        let command = || self.get(&["command", "cmd"]).and_then(|_| self.command());
        self.edit()
            .or_else(write)
            .or_else(command)
            .or_else(|| self.patch())
    }

    fn command(&self) -> Option<Action> {
        let command = command_line(self.get(COMMANDS)?)?;
        if let Some(patch) = heredoc_patch(&command) {
            return Some(Action::Patch(parse_patch(patch)));
        }
        let directory = self.words(DIRECTORIES);
        Some(Action::Command { command, directory })
    }

    fn read(&self) -> Option<Action> {
        if let Some(Value::Array(files)) = self.get(&["files", "paths"]) {
            let files = files.iter().filter_map(|file| match file {
                Value::String(path) => Some(ReadFile::whole(path.clone())),
                Value::Object(fields) => Fields(fields).read_file(),
                _ => None,
            });
            return Some(Action::Read(files.collect()));
        }
        Some(Action::Read(vec![self.read_file()?]))
    }

    fn read_file(&self) -> Option<ReadFile> {
        let path = self.path()?;
        if let Some(Value::Array(range)) = self.get(&["view_range", "range"]) {
            let end = |n: usize| range.get(n).and_then(Value::as_u64);
            let (from, to) = (end(0), end(1));
            return Some(ReadFile { path, from, to });
        }
        let from = self.number(&["offset", "start_line", "startLine", "StartLine"]);
        let limit = self.number(&["limit", "line_count"]);
        let last = limit.map(|lines| (from.unwrap_or(1).max(1) + lines).saturating_sub(1));
        let to = self.number(&["end_line", "endLine", "EndLine"]).or(last);
        let from = from.or(to.map(|_| 1)).map(|from| from.max(1));
        Some(ReadFile { path, from, to })
    }

    fn edit(&self) -> Option<Action> {
        if self.path().is_none() {
            return self.edits_of_files();
        }
        let path = self.path()?;
        if let Some(diff) = self.raw_text(&["diff"]) {
            return diff_of(path, &diff);
        }
        if let Some(Value::Array(edits)) = self.get(LISTS_OF_EDITS) {
            let edits = edits.iter().filter_map(Value::as_object);
            let changes: Vec<_> = edits
                .filter_map(|edit| Fields(edit).replacement())
                .collect();
            return (!changes.is_empty()).then_some(Action::Edit { path, changes });
        }
        let changes = vec![self.replacement()?];
        // Some tools write a whole file where there is nothing to replace.
        if changes[0].old.is_empty() && self.get(&["insert_line", "line"]).is_none() {
            let content = Some(changes[0].new.clone());
            return Some(Action::Write { path, content });
        }
        Some(Action::Edit { path, changes })
    }

    /// Reads a list of edits in which each names its file.
    fn edits_of_files(&self) -> Option<Action> {
        let Some(Value::Array(edits)) = self.get(LISTS_OF_EDITS) else {
            return None;
        };
        let mut files: Vec<FilePatch> = Vec::new();
        for edit in edits.iter().filter_map(Value::as_object).map(Fields) {
            let (Some(path), Some(change)) = (edit.path(), edit.replacement()) else {
                continue;
            };
            let known = files.iter().position(|file| file.path == path);
            let at = known.unwrap_or_else(|| {
                files.push(FilePatch::updated(&path));
                files.len() - 1
            });
            files[at].replace(&change.old, &change.new);
        }
        (!files.is_empty()).then_some(Action::Patch(files))
    }

    fn replacement(&self) -> Option<Replacement> {
        for (old, new) in EDITS {
            if let (Some(Value::String(old)), Some(Value::String(new))) =
                (self.0.get(*old), self.0.get(*new))
            {
                let (old, new) = (old.clone(), new.clone());
                return Some(Replacement { old, new });
            }
        }
        let new = self.text(ADDED)?;
        let old = String::new();
        Some(Replacement { old, new })
    }

    fn write(&self) -> Option<Action> {
        let path = self.path()?;
        let content = self.raw_text(CONTENTS);
        let is_known = content.is_some() || self.0.contains_key("TargetFile");
        is_known.then_some(Action::Write { path, content })
    }

    fn raw_text(&self, names: &[&str]) -> Option<String> {
        let texts = |name: &&str| self.0.get(*name)?.as_str().map(str::to_owned);
        names.iter().find_map(texts)
    }

    fn patch(&self) -> Option<Action> {
        let patch = self.raw_text(PATCHES).filter(|text| is_patch(text))?;
        Some(Action::Patch(parse_patch(&patch)))
    }

    fn search(&self) -> Option<Action> {
        let pattern = self.words(PATTERNS)?;
        let path = self.path();
        let files = self.words(GLOBS).or_else(|| self.words(FILE_TYPES));
        let files = files.filter(|files| *files != pattern);
        Some(Action::Search {
            pattern,
            path,
            files,
        })
    }

    fn todos(&self) -> Option<Action> {
        let todos = match self.get(TODOS)? {
            Value::Array(list) => list.iter().filter_map(todo).collect(),
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(Value::Array(list)) => list.iter().filter_map(todo).collect(),
                _ => checklist(text),
            },
            _ => return None,
        };
        Some(Action::Todos(todos))
    }

    fn questions(&self) -> Option<Action> {
        let questions = match self.get(&["questions"]) {
            Some(Value::Array(list)) => list.iter().filter_map(question).collect(),
            _ => question(&Value::Object(self.0.clone()))
                .into_iter()
                .collect::<Vec<_>>(),
        };
        (!questions.is_empty()).then_some(Action::Questions(questions))
    }

    fn task(&self) -> Option<Action> {
        let prompt = self.words(PROMPTS)?;
        let description = self.words(&["description", "title"]).unwrap_or_default();
        let agent = self.words(AGENTS);
        Some(Action::Task {
            agent,
            description,
            prompt,
        })
    }

    fn other(&self) -> Action {
        let fields = self.0.iter();
        let fields = fields.filter(|(_, value)| !value.is_null());
        Action::Other(
            fields
                .map(|(name, value)| (name.clone(), readable(value)))
                .collect(),
        )
    }
}

impl ReadFile {
    fn whole(path: String) -> Self {
        let (from, to) = (None, None);
        Self { path, from, to }
    }
}

/// Returns a text without the quotes that some agents leave around it.
fn unquoted(text: &str) -> &str {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// Returns a command as one would type it.
fn command_line(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            let words: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            match words?.as_slice() {
                [] => None,
                // A shell that runs a line: the line is what matters.
                [_, "-c" | "-lc", line] => Some((*line).to_owned()),
                // A list of whole commands.
                words if words.iter().all(|word| word.contains(' ')) => Some(words.join("\n")),
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

/// Reads a diff of one file: blocks of what is searched and what replaces it, or hunks.
fn diff_of(path: String, diff: &str) -> Option<Action> {
    let changes = replaced_blocks(diff);
    if !changes.is_empty() {
        return Some(Action::Edit { path, changes });
    }
    let file = FilePatch::of_hunks(&path, diff)?;
    Some(Action::Patch(vec![file]))
}

/// Returns the patch that a command applies, also in another directory.
fn heredoc_patch(command: &str) -> Option<&str> {
    let command = command.trim_start();
    let command = match command.split_once("&&") {
        Some((first, rest)) if first.starts_with("cd ") && !first.contains('\n') => {
            rest.trim_start()
        }
        _ => command,
    };
    let is_apply = command.starts_with("apply_patch") || command.starts_with("applypatch");
    let start = command.find("*** Begin Patch")?;
    is_apply.then(|| &command[start..])
}

fn todo(value: &Value) -> Option<Todo> {
    let fields = Fields(value.as_object()?);
    let text = fields.words(TODO_TEXTS)?;
    let state = fields.words(&["status", "state"]).unwrap_or_default();
    let is_done = matches!(
        fields.0.get("completed").or(fields.0.get("done")),
        Some(Value::Bool(true))
    );
    let state = match state.as_str() {
        "completed" | "done" | "complete" => TodoState::Done,
        "in_progress" | "active" | "doing" | "in-progress" => TodoState::Active,
        "cancelled" | "canceled" => TodoState::Cancelled,
        _ if is_done => TodoState::Done,
        _ => TodoState::Open,
    };
    Some(Todo { text, state })
}

/// Reads a list of tasks in Markdown: `- [x] done`.
fn checklist(text: &str) -> Vec<Todo> {
    let item = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let (state, text) = match line.strip_prefix('[')?.split_once(']')? {
            ("x" | "X", text) => (TodoState::Done, text),
            ("-" | "~" | "/", text) => (TodoState::Active, text),
            (_, text) => (TodoState::Open, text),
        };
        let text = text.trim().to_owned();
        Some(Todo { text, state })
    };
    text.lines().filter_map(item).collect()
}

fn question(value: &Value) -> Option<Question> {
    let fields = Fields(value.as_object()?);
    let text = fields.words(&["question", "text", "prompt", "message", "header"])?;
    let options = match fields.get(&["options", "choices", "suggestions", "follow_up"]) {
        Some(Value::Array(list)) => list.iter().filter_map(choice).collect(),
        _ => Vec::new(),
    };
    Some(Question { text, options })
}

fn choice(value: &Value) -> Option<(String, String)> {
    match value {
        Value::String(label) => Some((label.clone(), String::new())),
        Value::Object(fields) => {
            let fields = Fields(fields);
            let label = fields.words(&["label", "text", "answer", "value", "title"])?;
            let meaning = fields.words(&["description"]).unwrap_or_default();
            Some((label, meaning))
        }
        _ => None,
    }
}

/// Writes a value for people: texts and numbers as they are, lists and objects in lines.
fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list)
            if list
                .iter()
                .all(|item| !item.is_object() && !item.is_array()) =>
        {
            list.iter().map(readable).collect::<Vec<_>>().join(", ")
        }
        Value::Array(list) => {
            let lines = list
                .iter()
                .map(|item| format!("- {}", readable(item).replace('\n', "\n  ")));
            lines.collect::<Vec<_>>().join("\n")
        }
        Value::Object(fields) => {
            let line = |(name, value): (&String, &Value)| format!("{name}: {}", readable(value));
            fields.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
