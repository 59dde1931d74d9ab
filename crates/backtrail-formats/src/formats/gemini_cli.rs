//! Gemini CLI: JSON lines that revise each other, and an older form that is one JSON value.
//!
//! A line of the newer form is the header, a message, a change of the header (`$set`), or a
//! rewind (`$rewindTo`). A message is written again whenever something is added to it: its
//! last line has its content, its first line its position. So a file is read twice: for the
//! positions of the messages, then for their content. The older form is one JSON value, and so
//! are the chats that the user saved (`/chat save`), which are sessions of their own.
//!
//! A resume writes the whole list of messages again, and leaves a second file that contains
//! nothing but the context of the session. That file is not a session (yet).

mod log;
mod messages;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::keys::{SeenIds, hash, hash_json, save_state, valid_key};
use super::value::open_value;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, EventSink, Origin, ReadReport};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::{Object, elements, field_names, string};
use crate::json_lines::JsonLines;
use crate::lines::first_line;
use crate::source::{Source, file_name};

use log::Log;
use messages::{Emitter, MessageKind, message_kind};

/// Gemini CLI: JSON lines that revise each other, and an older form that is one JSON value.
#[derive(Debug, Clone, Copy)]
pub struct GeminiCli;

impl Format for GeminiCli {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["gemini"],
            packages: &["@google/gemini-cli"],
            appends: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new(
                "gemini-cli",
                "Gemini CLI",
                "JSON (to 0.39), JSON lines (0.40 to 0.61), saved chats",
            )
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.folders("GEMINI_CLI_HOME", "", &[".gemini/tmp"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let name = file_name(path);
        let is_lines = name.ends_with(".jsonl");
        if name.ends_with(".meta.json") || !(is_lines || name.ends_with(".json")) {
            return false;
        }
        let of_agent = path.ancestors().nth(2).and_then(Path::file_name);
        name.starts_with("session-")
            || (name.starts_with("checkpoint-") && !is_lines)
            || (is_lines && of_agent.is_some_and(|name| name == "chats"))
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        Object::parse(&first_line(&head)).is_ok_and(|first| is_header(&first))
            || recognises_value(&head)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let head = source.head();
        let first = first_line(&head);
        // A first line longer than the head is one object, if it is complete.
        let is_lines = Object::parse(&first).is_ok_and(|first| !is_single_value(&first));
        if !is_lines && recognises_value(&head) {
            return open_value(
                source,
                |text| Value::read(text, source).map(|value| value.session),
                |text, report, sink| read_value(text, source, report, sink),
            );
        }
        let opened = open_lines(source, 0, GeminiState::default())?;
        Ok(opened.expect("only a resumed file can be refused"))
    }

    /// Only new messages can be read alone. A file in which a message was revised is read from
    /// the beginning.
    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        match resume.state.parse::<GeminiState>() {
            Ok(state) => open_lines(source, resume.read_to, state),
            Err(_) => Ok(None),
        }
    }
}

fn is_header(object: &Object<'_>) -> bool {
    let has = |name: &str| object.string(name).is_some();
    has("sessionId") && (has("projectHash") || has("startTime")) && !object.has("type")
}

/// The state from which a file is resumed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct GeminiState {
    session: String,
    parent: Option<String>,
    model: Option<String>,
    lines: u64,
    ids: SeenIds,
    answered: Vec<String>,
}

/// Opens a file from its beginning, or where an earlier reading ended. `None` if what was
/// appended there revises what came before.
fn open_lines(source: &Source, from: u64, mut state: GeminiState) -> Result<Option<OpenFile<'_>>> {
    let is_resumed = from > 0;
    let (mut lines, mut report) = JsonLines::resume(source, from, state.lines);
    let mut log = Log::new(std::mem::take(&mut state.ids), is_resumed);
    while let Some(line) = lines.next(&mut report)? {
        log.add(&line, &mut report);
        if log.revises {
            return Ok(None);
        }
    }
    if log.is_stub() {
        return Ok(Some(OpenFile::unnamed(report)));
    }
    if !is_resumed {
        state.session = valid_key(log.session.as_deref().unwrap_or_else(|| source.stem()));
        state.parent = parent_of(source, log.is_agent);
        let directory = log.details.directory.take();
        log.details.directory = directory.or_else(|| project_root(source));
    }
    let origin = match &state.parent {
        Some(parent) => Origin::Spawned {
            session: Some(parent.clone()),
            tool_use_id: None,
        },
        None => Origin::Start,
    };
    Ok(Some(OpenFile::new(
        state.session.clone(),
        origin,
        move |sink| {
            sink.details(log.details.clone())?;
            let session = state.session.clone();
            let mut emitter = Emitter::new(sink, &session, state.model, state.answered);
            log.emit(source, &mut emitter)?;
            // A file that does not name its session yet is read from the beginning again.
            if log.is_named && !log.seen.is_full() {
                report.state = save_state(&GeminiState {
                    session: state.session,
                    parent: state.parent,
                    model: emitter.model,
                    lines: report.lines,
                    ids: log.seen,
                    answered: emitter.answered,
                });
            }
            Ok(report)
        },
    )))
}

/// Returns the session that a sub-agent worked for: `chats/<session>/<agent>.jsonl`.
fn parent_of(source: &Source, is_agent: bool) -> Option<String> {
    let mut above = source.path().ancestors().skip(1);
    let parent = above.next()?.file_name()?.to_str()?;
    let within_chats = above
        .next()?
        .file_name()
        .is_some_and(|name| name == "chats");
    (within_chats && is_agent).then(|| valid_key(parent))
}

/// Returns the directory of the project that a file belongs to.
fn project_root(source: &Source) -> Option<PathBuf> {
    let chats = source
        .path()
        .ancestors()
        .position(|path| path.ends_with("chats"))?;
    let project = source.path().ancestors().nth(chats + 1)?;
    if let Some(root) = source.read_above(chats, ".project_root") {
        let root = String::from_utf8(root).ok()?;
        let root = root.trim();
        return (!root.is_empty()).then(|| PathBuf::from(root));
    }
    let name = project.file_name()?.to_str()?;
    let projects = source.read_above(chats + 2, "projects.json")?;
    let projects = String::from_utf8_lossy(&projects);
    let projects = Object::parse(&projects).ok()?.object("projects")?;
    let is_it = |(_, id): &(&str, &str)| string(id).is_some_and(|id| id == name);
    let project = projects.fields().find(is_it);
    project.map(|(path, _)| PathBuf::from(path))
}

/// Reads the details of a session from a header or a change of it.
fn read_details(object: &Object<'_>, details: &mut Details) {
    details.title = object.trimmed("summary").or(details.title.take());
    details.started_at = details.started_at.or_else(|| object.time("startTime"));
    let directories = object.list("directories").unwrap_or_default();
    if let Some(directory) = directories.first().and_then(|directory| string(directory)) {
        details.directory = Some(PathBuf::from(directory.as_ref()));
    }
}

/// Returns whether a file is one value of this format, by its beginning: a session, a saved
/// chat, or one message.
fn recognises_value(head: &[u8]) -> bool {
    let fields = field_names(head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    let has_all = |names: &[&str]| names.iter().all(|name| has(name));
    let beginning = String::from_utf8_lossy(&head[..head.len().min(4096)]);
    let is_content = beginning.contains("\"parts\"") && beginning.contains("\"role\"");
    let is_list = crate::source::trim(head).first() == Some(&b'[');
    let is_message = has_all(&["id", "timestamp", "type", "content"]) && !has("uuid");
    (has_all(&["sessionId", "messages"]) && (has("projectHash") || has("startTime")))
        || (has("history") && is_content)
        || (has_all(&["role", "parts"]) && is_list)
        || (is_message && (has("toolCalls") || has("thoughts") || has("tokens")))
}

/// Returns whether the object on a file's first line is the whole file.
fn is_single_value(first: &Object<'_>) -> bool {
    first.has("history") || (first.has("id") && first.has("type"))
}

fn read_value(
    text: &str,
    source: &Source,
    report: &mut ReadReport,
    sink: &mut dyn EventSink,
) -> Result<()> {
    let Ok(value) = Value::read(text, source) else {
        return Ok(());
    };
    sink.details(value.details)?;
    let mut emitter = Emitter::new(sink, &value.session, None, Vec::new());
    for (n, json) in value.messages.iter().enumerate() {
        let Some(record) = Object::from_json(json) else {
            let reason = format!("message {n} is not an object");
            report.add_damage(1, &(0..json.len() as u64), reason);
            continue;
        };
        if let MessageKind::Unknown(kind) = message_kind(&record) {
            report.add_unknown(&format!("message: {kind}"));
        }
        emitter.emit(&record)?;
    }
    Ok(())
}

/// A file that is one value.
struct Value<'a> {
    session: String,
    details: Details,
    messages: Vec<&'a str>,
}

impl<'a> Value<'a> {
    fn read(text: &'a str, source: &Source) -> Result<Self, String> {
        if text.starts_with('[') {
            let list: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
            let messages = elements(list.get()).unwrap_or_default();
            return Ok(Self::saved(messages, Details::default(), source));
        }
        let object = Object::parse(text)?;
        let mut details = Details::default();
        read_details(&object, &mut details);
        details.started_at = details.started_at.or_else(|| object.time("start_time"));
        let meta = object.object("meta");
        let model = meta.as_ref().and_then(|meta| meta.string("model"));
        details.model = model.map(|model| model.into_owned());
        if let Some(history) = object.list("history") {
            return Ok(Self::saved(history, details, source));
        }
        let Some(messages) = object.list("messages") else {
            return Ok(Self {
                session: format!("message-{}", hash_json(text, 16)),
                details,
                messages: vec![text],
            });
        };
        details.directory = details.directory.or_else(|| project_root(source));
        let session = object.non_blank("sessionId");
        let session = session.as_deref().unwrap_or_else(|| source.stem());
        Ok(Self {
            session: valid_key(session),
            details,
            messages,
        })
    }

    /// A chat that the user saved under a name. If it is saved again and starts with the same
    /// message, it is the same session.
    fn saved(messages: Vec<&'a str>, mut details: Details, source: &Source) -> Self {
        let tag = source.stem();
        let tag = tag.strip_prefix("checkpoint-").unwrap_or(tag);
        let first = messages.first().copied().unwrap_or_default();
        let name = format!("{tag}\n{}", hash_json(first, 64));
        if details.title.is_none() && source.stem().starts_with("checkpoint-") {
            details.title = Some(tag.to_owned());
        }
        Self {
            session: format!("checkpoint-{}", hash(name.as_bytes(), 32)),
            details,
            messages,
        }
    }
}

#[cfg(test)]
#[path = "gemini_cli_tests.rs"]
mod tests;
