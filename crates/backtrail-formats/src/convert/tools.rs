//! Tools that mean the same in several agents, and how a target calls them.
//!
//! Each target has a list of [`ToolRow`]s. A call of a tool of that kind becomes a call of the
//! target's own tool; its arguments get the names that they have there, and all other arguments
//! stay as they are. So nothing is lost on the way, and a call finds back to its first form.

use backtrail::context::HandOverCall;
use backtrail::conversation::{Action, Argument, ToolKind, todo_text_in};
use backtrail::{Fields, Json};

use super::to_json;

/// A tool of a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolRow {
    pub(super) kind: ToolKind,
    pub(super) name: &'static str,
    /// The names of the arguments that a call must have.
    pub(super) needs: &'static [(Argument, &'static str)],
    /// The names of those that it may have.
    pub(super) may_have: &'static [(Argument, &'static str)],
    /// The name of a task's text, for a list of tasks.
    pub(super) todo_text: Option<&'static str>,
    /// What the list consists of, if the first argument is one.
    pub(super) list: Option<ListOf>,
}

/// What an argument that is a list consists of.
#[derive(Debug, Clone, Copy)]
pub(super) enum ListOf {
    Values,
    /// Objects, with the value under this name.
    Objects(&'static str),
}

impl ToolRow {
    /// Creates a row.
    pub(super) const fn new(
        kind: ToolKind,
        name: &'static str,
        needs: &'static [(Argument, &'static str)],
    ) -> Self {
        Self {
            kind,
            name,
            needs,
            may_have: &[],
            todo_text: None,
            list: None,
        }
    }

    /// Sets the arguments that a call may have besides.
    pub(super) const fn may_have(mut self, arguments: &'static [(Argument, &'static str)]) -> Self {
        self.may_have = arguments;
        self
    }

    /// Sets the name of a task's text.
    pub(super) const fn todo_text(mut self, name: &'static str) -> Self {
        self.todo_text = Some(name);
        self
    }

    /// Makes the first argument a list.
    pub(super) const fn list(mut self, of: ListOf) -> Self {
        self.list = Some(of);
        self
    }
}

/// Makes a call one of the target's own tools, if it has one that means the same.
pub(super) fn rename(call: &mut HandOverCall, tools: &[ToolRow]) {
    let written = written_file(call);
    let kind = match &written {
        Some(_) => Some(ToolKind::Write),
        None => ToolKind::of(&call.name),
    };
    let rows = tools.iter().filter(|row| Some(row.kind) == kind);
    for row in rows {
        if let Some(input) = renamed_input(written.as_ref().unwrap_or(call), row) {
            call.input = input;
            row.name.clone_into(&mut call.name);
            return;
        }
    }
}

/// Returns a call of Cline's tool for edits as one that writes a file, if it does: it replaces
/// nothing, and has no line to insert at.
fn written_file(call: &HandOverCall) -> Option<HandOverCall> {
    if call.name != "editor" {
        return None;
    }
    let fields: Fields = serde_json::from_str(&call.input).ok()?;
    let has = |name: &str| fields.get(name).is_some();
    if !has("new_text") || ["old_text", "insert_line", "content"].into_iter().any(has) {
        return None;
    }
    let mut input = Fields::default();
    for (name, value) in fields.iter() {
        let name = if name == "new_text" { "content" } else { name };
        input.push(name, value.clone());
    }
    Some(HandOverCall {
        id: String::new(),
        name: "write".to_owned(),
        input: to_json(&input).as_str().to_owned(),
        output: Vec::new(),
        is_error: false,
    })
}

/// Returns the arguments under their names in a tool; `None` if one that it needs is missing.
fn renamed_input(call: &HandOverCall, row: &ToolRow) -> Option<String> {
    let fields: Fields = serde_json::from_str(&call.input).ok()?;
    let mut fields = with_one_file(fields, row);
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (argument, new) in row.needs {
        let old = name_in(*argument, new, &fields)?;
        names.push((old, new));
    }
    for (argument, new) in row.may_have {
        names.extend(name_in(*argument, new, &fields).map(|old| (old, *new)));
    }
    // Two arguments must not get one name.
    let is_taken = |(old, new): &(&str, &str)| old != new && fields.get(new).is_some();
    if names.iter().any(is_taken) {
        return None;
    }
    let mut renamed = Fields::default();
    for (name, value) in std::mem::take(&mut fields).iter() {
        let found = names.iter().find(|(old, _)| *old == name);
        let is_first = names.first().is_some_and(|(old, _)| *old == name);
        let value = match row.list.filter(|_| is_first) {
            Some(of) => in_list(of, name, value, row, call),
            None => value_for(row, call, name, value),
        };
        renamed.push(found.map_or(name, |(_, new)| new), value);
    }
    Some(to_json(&renamed).as_str().to_owned())
}

/// Returns the name of an argument in a call: the target's own, if it is there.
fn name_in<'a>(argument: Argument, own: &'a str, fields: &Fields) -> Option<&'a str> {
    let has = |name: &str| fields.get(name).is_some();
    match has(own) {
        true => Some(own),
        false => argument.name_in(has),
    }
}

/// Returns arguments with the one file that they name in a list outside of it, unless the tool
/// itself has such a list.
fn with_one_file(fields: Fields, row: &ToolRow) -> Fields {
    const LIST: &str = "files";
    let own = |(_, name): &(Argument, &str)| *name == LIST;
    let list = fields.get(LIST).filter(|_| row.kind == ToolKind::Read);
    let list = list.filter(|_| !row.needs.iter().any(own));
    let list = list.and_then(|list| list.parse::<Vec<Fields>>().ok());
    let Some([file]) = list.as_deref() else {
        return fields;
    };
    let mut out = Fields::default();
    for (name, value) in fields.iter() {
        match name {
            LIST => file
                .iter()
                .for_each(|(name, value)| out.push(name, value.clone())),
            name => out.push(name, value.clone()),
        }
    }
    out
}

/// Returns the value of an argument that is a list.
fn in_list(of: ListOf, name: &str, value: &Json, row: &ToolRow, call: &HandOverCall) -> Json {
    let is_own = row.needs.first().is_some_and(|(_, own)| *own == name);
    if is_own && value.as_str().starts_with('[') {
        return value.clone();
    }
    let value = value_for(row, call, name, value);
    match of {
        ListOf::Values => to_json(&[value]),
        ListOf::Objects(name) => {
            let mut object = Fields::default();
            object.push(name, value);
            to_json(&[object])
        }
    }
}

/// Returns the value of an argument as the tool expects it.
fn value_for(row: &ToolRow, call: &HandOverCall, name: &str, value: &Json) -> Json {
    let is_list = value.as_str().starts_with('[');
    let is = |argument: Argument| argument.name_in(|other| other == name).is_some();
    match (row.kind, row.todo_text) {
        (ToolKind::Command, _) if is_list && is(Argument::Command) => {
            match Action::of(&call.name, &call.input) {
                Action::Command { command, .. } => to_json(&command),
                _ => value.clone(),
            }
        }
        (ToolKind::Todos, Some(text)) if is_list && is(Argument::Todos) => {
            renamed_todos(value, text).unwrap_or_else(|| value.clone())
        }
        _ => value.clone(),
    }
}

/// Returns a list of tasks whose texts have another name.
fn renamed_todos(list: &Json, text: &str) -> Option<Json> {
    let tasks: Vec<Fields> = list.parse().ok()?;
    let renamed = tasks.into_iter().map(|task| {
        let has = |name: &str| task.get(name).is_some();
        let old = if has(text) { None } else { todo_text_in(has) };
        let mut renamed = Fields::default();
        for (name, value) in task.iter() {
            let name = if Some(name) == old { text } else { name };
            renamed.push(name, value.clone());
        }
        renamed
    });
    Some(to_json(&renamed.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &[ToolRow] = &[
        ToolRow::new(
            ToolKind::Command,
            "exec_command",
            &[(Argument::Command, "cmd")],
        )
        .may_have(&[(Argument::Directory, "workdir")]),
        ToolRow::new(ToolKind::Todos, "update_plan", &[(Argument::Todos, "plan")])
            .todo_text("step"),
        ToolRow::new(ToolKind::Search, "rg", &[(Argument::Pattern, "pattern")])
            .may_have(&[(Argument::Files, "include_pattern")]),
        ToolRow::new(ToolKind::Find, "glob", &[(Argument::Pattern, "pattern")]),
        ToolRow::new(
            ToolKind::Edit,
            "replace",
            &[
                (Argument::Path, "file_path"),
                (Argument::OldText, "old_string"),
                (Argument::NewText, "new_string"),
            ],
        ),
    ];

    const LISTS: &[ToolRow] = &[
        ToolRow::new(
            ToolKind::Command,
            "run_commands",
            &[(Argument::Command, "commands")],
        )
        .list(ListOf::Values),
        ToolRow::new(ToolKind::Read, "read_files", &[(Argument::Path, "files")])
            .list(ListOf::Objects("path")),
    ];

    fn renamed(name: &str, input: &str) -> (String, String) {
        renamed_by(TOOLS, name, input)
    }

    fn renamed_by(tools: &[ToolRow], name: &str, input: &str) -> (String, String) {
        let mut call = HandOverCall {
            id: "1".to_owned(),
            name: name.to_owned(),
            input: input.to_owned(),
            output: Vec::new(),
            is_error: false,
        };
        rename(&mut call, tools);
        (call.name, call.input)
    }

    #[test]
    fn a_tool_that_means_the_same_is_called_by_its_name_there() {
        for (name, input, expected) in [
            (
                "Bash",
                r#"{"command":"ls","timeout":1.0,"cwd":"/w"}"#,
                (
                    "exec_command",
                    r#"{"cmd":"ls","timeout":1.0,"workdir":"/w"}"#,
                ),
            ),
            (
                "shell",
                r#"{"command":["bash","-lc","ls -l"]}"#,
                ("exec_command", r#"{"cmd":"ls -l"}"#),
            ),
            (
                "edit",
                r#"{"filePath":"a","oldString":"x","newString":"y","all":true}"#,
                (
                    "replace",
                    r#"{"file_path":"a","old_string":"x","new_string":"y","all":true}"#,
                ),
            ),
            (
                "TodoWrite",
                r#"{"todos":[{"content":"a","status":"pending"}]}"#,
                (
                    "update_plan",
                    r#"{"plan":[{"step":"a","status":"pending"}]}"#,
                ),
            ),
            (
                "Grep",
                r#"{"pattern":"a","glob":"*.rs","type":"rust"}"#,
                (
                    "rg",
                    r#"{"pattern":"a","include_pattern":"*.rs","type":"rust"}"#,
                ),
            ),
            (
                "Grep",
                r#"{"pattern":"a","type":"rust"}"#,
                ("rg", r#"{"pattern":"a","type":"rust"}"#),
            ),
            (
                "find",
                r#"{"pattern":"*.rs"}"#,
                ("glob", r#"{"pattern":"*.rs"}"#),
            ),
            // What does not fit stays as it is.
            (
                "Edit",
                r#"{"file_path":"a"}"#,
                ("Edit", r#"{"file_path":"a"}"#),
            ),
            (
                "Bash",
                r#"{"command":"a","cmd":{}}"#,
                ("exec_command", r#"{"command":"a","cmd":{}}"#),
            ),
            (
                "my_tool",
                r#"{"command":"ls"}"#,
                ("my_tool", r#"{"command":"ls"}"#),
            ),
        ] {
            let expected = (expected.0.to_owned(), expected.1.to_owned());
            assert_eq!(renamed(name, input), expected, "{name} {input}");
        }
    }

    #[test]
    fn an_argument_becomes_a_list_of_one_and_back() {
        const OTHERS: &[ToolRow] = &[
            ToolRow::new(ToolKind::Command, "Bash", &[(Argument::Command, "command")]),
            ToolRow::new(ToolKind::Read, "Read", &[(Argument::Path, "file_path")]),
        ];
        for (name, input, new, list) in [
            (
                "Bash",
                r#"{"command":"ls","timeout":1.0}"#,
                "run_commands",
                r#"{"commands":["ls"],"timeout":1.0}"#,
            ),
            (
                "Read",
                r#"{"file_path":"a","limit":3}"#,
                "read_files",
                r#"{"files":[{"path":"a"}],"limit":3}"#,
            ),
        ] {
            let there = renamed_by(LISTS, name, input);
            assert_eq!(there, (new.to_owned(), list.to_owned()));
            let back = renamed_by(OTHERS, &there.0, &there.1);
            assert_eq!(back, (name.to_owned(), input.to_owned()));
            assert_eq!(renamed_by(LISTS, &there.0, &there.1), there);
        }
        let several = r#"{"commands":["ls -l","cat a"]}"#;
        assert_eq!(renamed_by(LISTS, "run_commands", several).1, several);
        let several = r#"{"files":[{"path":"a"},{"path":"b"}]}"#;
        assert_eq!(renamed_by(OTHERS, "read_files", several).1, several);
        let shell = r#"{"command":["bash","-lc","ls"]}"#;
        let expected = r#"{"commands":["ls"]}"#;
        assert_eq!(renamed_by(LISTS, "shell", shell).1, expected);
    }
}
