//! The status line in a settings file: `{"statusLine": {"type": "command", "command": …}}`, as
//! Claude Code has it.
//!
//! A command that is there already is wrapped: ours runs it first. Its bytes are in our mark, so
//! that removing ours restores them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::hook_line::{Created, HookProgram, Level};
use super::merge::{self, Refused};
use crate::json_edit::{Document, Node, Step, SyntaxError};

const KEY: &str = "statusLine";
/// How the part of the mark begins that has the command before ours.
const BEFORE: &str = "; before: ";

/// A status line of ours in a settings file.
#[derive(Debug)]
pub(super) struct InstalledLine {
    pub(super) command: String,
    created: Created,
    before: Option<WrappedCommand>,
}

/// The command that the agent ran before ours.
#[derive(Debug, Clone)]
struct WrappedCommand {
    /// As it is in the file, in its quotes.
    json: String,
    command: String,
}

impl WrappedCommand {
    fn of_json(json: &str) -> Option<Self> {
        let command = serde_json::from_str(json).ok()?;
        Some(Self {
            json: json.to_owned(),
            command,
        })
    }
}

impl InstalledLine {
    pub(super) fn wraps(&self) -> bool {
        self.before.is_some()
    }

    pub(super) fn directories(&self) -> usize {
        self.created.directories
    }

    /// Returns whether it is as a program would install it.
    pub(super) fn is_of(&self, program: &HookProgram) -> bool {
        self.command == command(program, self.before.as_ref(), &self.created)
    }
}

/// Returns our status line in a text.
pub(super) fn installed_in(text: &str) -> Result<Option<InstalledLine>, SyntaxError> {
    Ok(installed(&Document::parse(text)?))
}

fn installed(document: &Document<'_>) -> Option<InstalledLine> {
    let command = document.value(command_in(document)?);
    let command = command.as_str()?.to_owned();
    let created = Created::read(&command)?;
    Some(InstalledLine {
        before: before_in(&command),
        command,
        created,
    })
}

fn command_in<'d>(document: &'d Document<'_>) -> Option<&'d Node> {
    document.get(&[Step::Key(KEY), Step::Key("command")])
}

/// Reads the command before ours from the mark.
fn before_in(command: &str) -> Option<WrappedCommand> {
    let (_, encoded) = command.rsplit_once(BEFORE)?;
    let encoded = encoded.trim_end_matches('\'');
    let json = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    WrappedCommand::of_json(&json)
}

fn command(program: &HookProgram, before: Option<&WrappedCommand>, created: &Created) -> String {
    let mark = created.mark();
    match before {
        None => program.status_line(None, &mark),
        Some(before) => {
            let mark = format!("{mark}{BEFORE}{}", STANDARD.encode(&before.json));
            program.status_line(Some(&before.command), &mark)
        }
    }
}

/// Returns a text that has an outermost object, with our status line. `created` is what is
/// created for it if there is none. A status line that cannot be wrapped stays as it is.
pub(super) fn install(
    text: &str,
    program: &HookProgram,
    created: &Created,
) -> Result<String, Refused> {
    let document = Document::parse(text)?;
    let Some(root) = document.root() else {
        return Ok(text.to_owned());
    };
    if root.count_of(KEY) > 1 {
        return Err(Refused::Shape(format!("it has \"{KEY}\" twice")));
    }
    if let Some(line) = installed(&document) {
        let new = command(program, line.before.as_ref(), &line.created);
        return Ok(with_command(&document, &Value::from(new).to_string()));
    }
    if root.member(KEY).is_none() {
        let value = json!({"type": "command", "command": command(program, None, created)});
        return Ok(document.add(root, Some(KEY), &value));
    }
    Ok(match wrappable(&document) {
        Some(before) => {
            let new = command(program, Some(&before), &Created::default());
            with_command(&document, &Value::from(new).to_string())
        }
        None => text.to_owned(),
    })
}

/// Returns the user's own command, unless it calls Backtrail already.
fn wrappable(document: &Document<'_>) -> Option<WrappedCommand> {
    let kind = document.get(&[Step::Key(KEY), Step::Key("type")])?;
    let before = WrappedCommand::of_json(document.text_of(command_in(document)?))?;
    let calls_us = before.command.contains("backtrail") && before.command.contains("statusline");
    let is_command = document.value(kind) == "command" && !before.command.trim().is_empty();
    (is_command && !calls_us).then_some(before)
}

fn with_command(document: &Document<'_>, json: &str) -> String {
    let node = command_in(document).expect("the command is there");
    document.replace(node, json)
}

/// Returns what would be created for a status line in a text without anything of ours; `None` is
/// a file that is not there.
pub(super) fn created_for(clean: Option<&str>, directories: usize) -> Result<Created, Refused> {
    let mut created = Created::default();
    let document = Document::parse(clean.unwrap_or_default())?;
    match document.root() {
        None => drop(created.new.insert(Level::Root)),
        Some(root) if document.is_tight(root) => drop(created.tight.insert(Level::Root)),
        Some(_) => {}
    }
    if clean.is_none() {
        created.new.insert(Level::File);
        created.directories = directories;
    }
    Ok(created)
}

/// Returns the text without our status line; `None` if the file was created for it and has
/// nothing else in it.
pub(super) fn remove(text: &str) -> Result<Option<String>, Refused> {
    let document = Document::parse(text)?;
    let (Some(line), Some(root)) = (installed(&document), document.root()) else {
        return Ok(Some(text.to_owned()));
    };
    if let Some(before) = &line.before {
        return Ok(Some(with_command(&document, &before.json)));
    }
    let index = root.index_of(KEY).expect("the status line is there");
    let member = root.member(KEY).expect("the status line is there");
    let is_last = root.len() == 1;
    let is_alone = is_last && !document.has_comments(root, member);
    let new = match is_alone && line.created.new.contains(&Level::Root) {
        true => document.without_root(),
        false => document.remove(root, index),
    };
    let is_blank = new.trim_start_matches('\u{feff}').trim().is_empty();
    if is_blank && line.created.new.contains(&Level::File) {
        return Ok(None);
    }
    Ok(Some(
        match is_last && line.created.tight.contains(&Level::Root) {
            true => merge::squeezed(&new, &[]),
            false => new,
        },
    ))
}

#[cfg(test)]
#[path = "status_line_tests.rs"]
mod tests;
