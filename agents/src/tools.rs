//! Makes calls out of actions, from the tools and schemas that a request offers.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::conversation::{Call, Tool};
use crate::script::Action;

/// The names that agents give to their tools, the best first. The part before `__` or `.`, which
/// names an extension, does not count.
const SHELL: &[&str] = &[
    "bash",
    "shell",
    "shell_command",
    "exec_command",
    "run_shell_command",
    "execute_command",
    "run_commands",
];
const READ: &[&str] = &["read", "read_file", "view", "read_files"];
const WRITE: &[&str] = &["write", "write_file", "create", "write_to_file"];
const EDIT: &[&str] = &[
    "edit",
    "replace",
    "edit_file",
    "str_replace",
    "replace_in_file",
];

/// The names that arguments have, in lower case and without underscores.
const COMMAND: &[&str] = &["command", "cmd", "commands", "script"];
const PATH: &[&str] = &[
    "path",
    "filepath",
    "absolutepath",
    "filename",
    "paths",
    "files",
];
const CONTENT: &[&str] = &["content", "filetext", "text", "contents"];
const OLD: &[&str] = &["oldstring", "oldstr", "oldtext", "before", "search"];
const NEW: &[&str] = &[
    "newstring",
    "newstr",
    "newtext",
    "after",
    "replace",
    "replacement",
];

/// An argument: the names that it may have, and its value.
type Argument<'a> = (&'static [&'static str], &'a str);

/// Makes the call that does an action: with the tool for it, else with the shell.
pub(crate) fn call(action: &Action, tools: &[Tool], id: String) -> Result<Call, String> {
    let path = action.path().map(|path| path.to_string_lossy());
    let path = path.as_deref().unwrap_or_default();
    let (names, arguments): (_, Vec<Argument<'_>>) = match action {
        Action::Shell { command } => (SHELL, vec![(COMMAND, command)]),
        Action::Read { .. } => (READ, vec![(PATH, path)]),
        Action::Write { content, .. } => (WRITE, vec![(PATH, path), (CONTENT, content)]),
        Action::Edit { old, new, .. } => (EDIT, vec![(PATH, path), (OLD, old), (NEW, new)]),
    };
    let found = names.iter().find_map(|name| {
        let tool = tools.iter().find(|tool| plain(&tool.name) == *name)?;
        Some((tool, arguments_for(&tool.schema, &arguments)?))
    });
    if let Some((tool, arguments)) = found {
        let name = tool.name.clone();
        return Ok(Call {
            id,
            name,
            arguments,
        });
    }
    if let Action::Shell { .. } = action {
        let offered: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        return Err(format!(
            "no tool runs a shell command; offered are {offered:?}"
        ));
    }
    call(&Action::shell(&as_command(action)), tools, id)
}

/// Returns a tool's name without its extension, in lower case.
fn plain(name: &str) -> String {
    let name = name.rsplit("__").next().unwrap_or(name);
    let name = name.rsplit('.').next().unwrap_or(name);
    name.to_ascii_lowercase()
}

/// Returns the object that a schema describes with these arguments in their places, or none if one
/// of them has no place.
fn arguments_for(schema: &Value, arguments: &[Argument<'_>]) -> Option<Value> {
    let mut used = vec![false; arguments.len()];
    let object = object(schema, arguments, &mut used);
    used.iter().all(|used| *used).then_some(object)
}

fn object(schema: &Value, arguments: &[Argument<'_>], used: &mut [bool]) -> Value {
    let mut object = Map::new();
    let Some(properties) = schema["properties"].as_object() else {
        return Value::Object(object);
    };
    for (name, property) in properties {
        let plain = name.replace('_', "").to_ascii_lowercase();
        let place = arguments
            .iter()
            .position(|(names, _)| names.contains(&plain.as_str()));
        let is_required = schema["required"]
            .as_array()
            .is_some_and(|names| names.contains(&json!(name)));
        let place = place.filter(|place| !used[*place] || is_required);
        if let Some(place) = place {
            used[place] = true;
            object.insert(name.clone(), shaped(property, arguments[place].1));
        } else if is_required || has_place(property, arguments, used) {
            object.insert(name.clone(), filled(property, arguments, used));
        } else if property["default"].is_boolean() {
            // Claude Code adds it to the call otherwise, so that it is not what the model said.
            object.insert(name.clone(), property["default"].clone());
        }
    }
    Value::Object(object)
}

/// Whether a list of objects has places for arguments that have none yet.
fn has_place(property: &Value, arguments: &[Argument<'_>], used: &[bool]) -> bool {
    let Some(inner) = property["items"]["properties"].as_object() else {
        return false;
    };
    let names: Vec<_> = inner
        .keys()
        .map(|name| name.replace('_', "").to_ascii_lowercase())
        .collect();
    let mut open = arguments.iter().zip(used).filter(|(_, used)| !**used);
    open.any(|((accepted, _), _)| names.iter().any(|name| accepted.contains(&name.as_str())))
}

/// Returns a text in the shape that a property wants.
fn shaped(property: &Value, text: &str) -> Value {
    if !has_type(property, "array") {
        return json!(text);
    }
    let items = &property["items"];
    if has_type(items, "object") {
        let argument: &[Argument<'_>] = &[(PATH, text), (COMMAND, text)];
        return json!([object(items, argument, &mut [false, false])]);
    }
    let is_words = property["description"]
        .as_str()
        .is_some_and(|text| text.contains("execvp"));
    if is_words {
        json!(["bash", "-c", text])
    } else {
        json!([text])
    }
}

/// Returns a value for a property that the action does not speak of.
fn filled(property: &Value, arguments: &[Argument<'_>], used: &mut [bool]) -> Value {
    if let Some(first) = property["enum"]
        .as_array()
        .and_then(|values| values.first())
    {
        return first.clone();
    }
    if has_type(property, "array") {
        let item = object(&property["items"], arguments, used);
        return if has_type(&property["items"], "object") {
            json!([item])
        } else {
            json!([])
        };
    }
    if has_type(property, "object") {
        return object(property, arguments, used);
    }
    if has_type(property, "boolean") {
        return json!(false);
    }
    if has_type(property, "number") || has_type(property, "integer") {
        return json!(1);
    }
    json!("as the script says")
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    let is = |value: &Value| {
        value
            .as_str()
            .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
    };
    match &schema["type"] {
        Value::Array(types) => types.iter().any(is),
        Value::Null => ["anyOf", "oneOf"].iter().any(|of| {
            let alternatives = schema[of].as_array();
            alternatives.is_some_and(|list| list.iter().any(|schema| has_type(schema, wanted)))
        }),
        one => is(one),
    }
}

/// Returns the shell command that does an action.
fn as_command(action: &Action) -> String {
    match action {
        Action::Shell { command } => command.clone(),
        Action::Read { path } => format!("cat {}", quoted(&path.to_string_lossy())),
        Action::Write { path, content } => {
            let text = content.strip_suffix('\n').unwrap_or(content);
            format!(
                "printf '%s\\n' {} > {}",
                quoted(text),
                quoted(&path.to_string_lossy())
            )
        }
        Action::Edit { path, old, new } => {
            let escape = |text: &str| {
                text.replace('\\', "\\\\")
                    .replace('/', "\\/")
                    .replace('.', "\\.")
            };
            let script = format!("s/{}/{}/", escape(old), escape(new).replace('&', "\\&"));
            format!(
                "sed -i {} {}",
                quoted(&script),
                quoted(&path.to_string_lossy())
            )
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Action {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path } | Self::Write { path, .. } | Self::Edit { path, .. } => Some(path),
            Self::Shell { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, properties: Value, required: Value) -> Tool {
        Tool {
            name: name.to_owned(),
            schema: json!({"type": "object", "properties": properties, "required": required}),
        }
    }

    fn made(action: &Action, tools: &[Tool]) -> (String, Value) {
        let call = call(action, tools, "c1".to_owned()).unwrap();
        (call.name, call.arguments)
    }

    fn text() -> Value {
        json!({"type": "string"})
    }

    #[test]
    fn arguments_go_where_the_schema_has_them() {
        let tools = [
            tool(
                "replace",
                json!({"file_path": text(), "old_string": text(), "new_string": text(), "instruction": text()}),
                json!(["file_path", "old_string", "new_string", "instruction"]),
            ),
            tool(
                "developer__shell",
                json!({"command": text(), "timeout": {"type": "number"}}),
                json!(["command"]),
            ),
        ];
        let (name, arguments) = made(&Action::edit("/p/a", "old", "new"), &tools);
        assert_eq!(name, "replace");
        assert_eq!(
            arguments,
            json!({"file_path": "/p/a", "old_string": "old", "new_string": "new", "instruction": "as the script says"})
        );
        let (name, arguments) = made(&Action::shell("ls"), &tools);
        assert_eq!(
            (name.as_str(), arguments),
            ("developer__shell", json!({"command": "ls"}))
        );
    }

    #[test]
    fn lists_of_edits_and_of_words_are_filled() {
        let edits = json!({"type": "array", "items": {"type": "object",
            "properties": {"oldText": text(), "newText": text()}, "required": ["oldText", "newText"]}});
        let tools = [
            tool(
                "edit",
                json!({"path": text(), "edits": edits}),
                json!(["path", "edits"]),
            ),
            tool(
                "shell",
                json!({"command": {"type": "array", "items": text(), "description": "for execvp()"}}),
                json!(["command"]),
            ),
        ];
        let (_, arguments) = made(&Action::edit("/p/a", "x", "y"), &tools);
        assert_eq!(
            arguments,
            json!({"path": "/p/a", "edits": [{"oldText": "x", "newText": "y"}]})
        );
        let (_, arguments) = made(&Action::shell("ls"), &tools);
        assert_eq!(arguments, json!({"command": ["bash", "-c", "ls"]}));
    }

    #[test]
    fn the_shell_does_what_no_tool_does() {
        let tools = [tool("exec_command", json!({"cmd": text()}), json!(["cmd"]))];
        let (name, arguments) = made(&Action::write("/p/it's", "a\nb\n"), &tools);
        assert_eq!(name, "exec_command");
        assert_eq!(
            arguments,
            json!({"cmd": "printf '%s\\n' 'a\nb' > '/p/it'\\''s'"})
        );
        let (_, arguments) = made(&Action::edit("/p/a", "a.b", "c/d"), &tools);
        assert_eq!(arguments, json!({"cmd": "sed -i 's/a\\.b/c\\/d/' '/p/a'"}));
    }

    #[test]
    fn without_a_shell_the_offered_tools_are_named() {
        let tools = [tool("web_search", json!({}), json!([]))];
        let error = call(&Action::shell("ls"), &tools, "c1".to_owned()).unwrap_err();
        assert!(error.contains("web_search"), "{error}");
    }
}
