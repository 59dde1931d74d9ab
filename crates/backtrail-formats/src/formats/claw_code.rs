//! claw-code: JSON lines, and one JSON object before that.
//!
//! Its messages are blocks as Backtrail's own were in version 1, and are taken as they
//! stand. The messages that a compaction removed are in no file: what is left is told
//! behind its summary.

use std::path::{Path, PathBuf};

use backtrail::{Json, Message, Role};
use serde::{Deserialize, Serialize};

use super::pieces::{first_object, hash, hash_of, key_of, state_of, top_fields, whole};
use crate::format::{Format, ReadError, Resume, Support};
use crate::json::Object;
use crate::lines::Lines;
use crate::places::Environment;
use crate::reading::{Found, Reading};
use crate::source::Source;
use crate::told::{About, Item, Origin, Said, Sink, Summarised, Thread, Told, Which};

/// claw-code: JSON lines, and one JSON object before that.
#[derive(Debug, Clone, Copy)]
pub struct ClawCode;

impl Format for ClawCode {
    fn name(&self) -> &'static str {
        "claw-code"
    }

    fn title(&self) -> &'static str {
        "claw-code"
    }

    fn support(&self) -> Support {
        Support {
            appends: true,
            compactions: true,
            usage: true,
            ..Support::messages("1, as lines and as one object")
        }
    }

    /// It keeps sessions in the project's directory, which is the home directory of those
    /// who work there.
    fn places(&self, environment: &Environment) -> Vec<PathBuf> {
        let home = environment.home();
        home.map(|home| home.join(".claw/sessions"))
            .into_iter()
            .collect()
    }

    fn is_session_name(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        let is_kind = name.ends_with(".jsonl") || name.ends_with(".json");
        match copy_of(name) {
            _ if !is_kind || name.contains(".tmp-") => false,
            Some((original, _)) => is_newest_copy(path, original),
            None => true,
        }
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        match first_object(&head) {
            Some(first) => is_record(&first) || is_object(&head),
            None => is_object(&head),
        }
    }

    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        if let Some(resume) = resume {
            return go_on(source, resume, sink);
        }
        let head = source.head();
        let is_lines = first_object(&head).is_some_and(|first| is_record(&first));
        if is_lines || !is_object(&head) {
            return read_lines(source, sink);
        }
        if let Ok(object) = Object::parse(&whole(source)?) {
            return read_object(source, &object, sink);
        }
        // Lines were appended to it. It is read whole all the same when it has grown.
        let mut told = read_lines(source, sink)?;
        told.state = None;
        Ok(told)
    }
}

/// Returns whether an object is a line of such a file. Those of version 2 are Backtrail's
/// own.
fn is_record(object: &Object) -> bool {
    match object.string("type").as_deref() {
        Some("session_meta") => {
            let is_first = object.number("version").is_none_or(|version| version == 1);
            is_first && (object.has("session_id") || object.has("created_at_ms"))
        }
        Some("message") => object
            .object("message")
            .is_some_and(|said| said.has("blocks")),
        Some("prompt_history") => object.has("timestamp_ms"),
        Some("compaction") => object.has("removed_message_count"),
        _ => false,
    }
}

fn is_object(head: &[u8]) -> bool {
    let fields = top_fields(head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    let finder = memchr::memmem::find(head, b"\"blocks\"");
    let is_empty = has("version") && fields.len() <= 2;
    let foreign = ["sessionId", "history", "type", "id"].into_iter().any(has);
    has("messages") && (finder.is_some() || is_empty) && !foreign && !is_our_own(head)
}

/// Returns whether an object says another version than 1 before its messages, as those do
/// that Backtrail itself writes.
fn is_our_own(head: &[u8]) -> bool {
    let before = memchr::memmem::find(head, b"\"messages\"").unwrap_or(head.len());
    let Some(at) = memchr::memmem::find(&head[..before], b"\"version\"") else {
        return false;
    };
    let value = head[at + b"\"version\"".len()..].iter();
    let digits = value
        .skip_while(|byte| byte.is_ascii_whitespace() || **byte == b':')
        .take_while(|byte| byte.is_ascii_digit());
    !digits.eq(b"1")
}

/// Reads the name of an older copy, `<stem>.rot-<ms>.<extension>`: what it is a copy of,
/// and when it was made.
fn copy_of(name: &str) -> Option<(&str, u64)> {
    let (stem, rest) = name.rsplit_once(".rot-")?;
    let (millis, _) = rest.split_once('.')?;
    Some((stem, millis.parse().ok()?))
}

/// Returns whether a copy stands for the file that it is of: that one is gone, and no copy
/// of it is newer.
fn is_newest_copy(path: &Path, original: &str) -> bool {
    let Some(directory) = path.parent() else {
        return false;
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    let mut newest = None;
    for entry in entries.flatten() {
        let Ok(other) = entry.file_name().into_string() else {
            continue;
        };
        match copy_of(&other) {
            Some((of, made)) if of == original => newest = newest.max(Some((made, other))),
            None if other
                .strip_prefix(original)
                .is_some_and(|rest| matches!(rest, ".jsonl" | ".json")) =>
            {
                return false;
            }
            _ => {}
        }
    }
    newest.is_some_and(|(_, newest)| Some(newest.as_str()) == name)
}

/// Names a session whose file does not: by the file.
fn name_of(source: &Source) -> String {
    let name = source.path().file_name().and_then(|name| name.to_str());
    let stem = match name.and_then(copy_of) {
        Some((original, _)) => original,
        None => source.stem(),
    };
    let at = stem.rfind("session-").unwrap_or(0);
    key_of(&stem[at..])
}

/// What the file says of the session as a whole.
#[derive(Debug)]
struct Meta {
    session: String,
    parent: Option<String>,
    about: About,
}

impl Meta {
    fn read(meta: Option<&Object>, source: &Source) -> Self {
        let text = |name: &str| {
            let text = meta?.string(name).filter(|text| !text.is_empty());
            text.map(|text| text.into_owned())
        };
        let fork = meta.and_then(|meta| meta.object("fork"));
        let parent = fork
            .as_ref()
            .and_then(|fork| fork.string("parent_session_id"));
        Self {
            session: text("session_id").map_or_else(|| name_of(source), |id| key_of(&id)),
            parent: parent.filter(|id| !id.is_empty()).map(|id| key_of(&id)),
            about: About {
                title: text("title"),
                model: text("model"),
                directory: text("workspace_root").map(PathBuf::from),
                began: meta.and_then(|meta| meta.time("created_at_ms")),
                ended: meta.and_then(|meta| meta.time("updated_at_ms")),
                branch: fork
                    .as_ref()
                    .and_then(|fork| fork.string("branch_name"))
                    .map(|name| name.into_owned()),
                tags: None,
            },
        }
    }

    fn thread(&self) -> Thread {
        let origin = match &self.parent {
            Some(session) => Origin::Copy {
                session: session.clone(),
            },
            None => Origin::Start,
        };
        Thread {
            which: Which::Main,
            origin,
        }
    }
}

/// What is needed to go on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct State {
    session: String,
    parent: Option<String>,
    model: Option<String>,
    lines: u64,
    /// How many messages and summaries were told, and how many of them were messages.
    told: u64,
    said: u64,
    /// A hash of all messages by now: a copy of a session has the same ones.
    chain: String,
}

impl State {
    fn tell_message(&mut self, json: &Json, sink: &mut dyn Sink) -> Result<bool, ReadError> {
        let Ok(message) = json.parse::<Message>() else {
            return Ok(false);
        };
        let mut said = Said::new(self.key(json.as_str()), message);
        self.chain = hash(
            format!("{}{}", self.chain, hash_of(json.as_str(), 64)).as_bytes(),
            32,
        );
        if said.message.role == Role::Assistant {
            said.model.clone_from(&self.model);
        }
        if said.message.usage.is_some() {
            said.response_id = Some(format!("claw-{}", self.chain));
        }
        self.said += 1;
        sink.item(Item::Said(said))?;
        Ok(true)
    }

    fn tell_summary(
        &mut self,
        compaction: &Object,
        sink: &mut dyn Sink,
    ) -> Result<bool, ReadError> {
        let Some(summary) = compaction.text("summary") else {
            return Ok(false);
        };
        let key = self.key(compaction.get("summary").map_or("", Json::as_str));
        sink.item(Item::Summarised(Summarised {
            covers: compaction.number("removed_message_count"),
            key,
            at: None,
            summary: summary.as_str().to_owned(),
            keep: self.said,
            model: None,
            usage: None,
        }))?;
        Ok(true)
    }

    fn key(&mut self, json: &str) -> String {
        self.told += 1;
        format!("n{}-{}", self.told - 1, hash_of(json, 8))
    }
}

fn begin(meta: &Meta, sink: &mut dyn Sink) -> Result<State, ReadError> {
    sink.session(&meta.session)?;
    sink.thread(&meta.thread())?;
    sink.about(meta.about.clone())?;
    Ok(State {
        session: meta.session.clone(),
        parent: meta.parent.clone(),
        model: meta.about.model.clone(),
        ..State::default()
    })
}

/// Reads a file that is one object.
fn read_object(source: &Source, object: &Object, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let meta = Meta::read(Some(object), source);
    let mut state = begin(&meta, sink)?;
    let mut told = Reading::new(source, 0, 0).finish(meta.session, None);
    told.lines = 1;
    told.read_to = source.len();
    if let Some(compaction) = object.object("compaction") {
        state.tell_summary(&compaction, sink)?;
    }
    for (n, json) in object
        .list("messages")
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        if !state.tell_message(json, sink)? {
            told.damage.add(crate::told::DamagedLine {
                line: 1,
                byte: 0,
                bytes: json.as_str().len() as u64,
                reason: format!("message {n} has no role or no blocks"),
            });
        }
    }
    Ok(told)
}

fn read_lines(source: &Source, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let meta = Meta::read(last_meta(source)?.as_ref(), source);
    let mut state = begin(&meta, sink)?;
    let mut reading = Reading::new(source, 0, 0);
    while let Some(found) = reading.next()? {
        tell(&found, &mut state, &mut reading, sink)?;
    }
    Ok(finish(reading, state))
}

fn go_on(source: &Source, resume: &Resume, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let mut state: State = resume.state.parse().map_err(|_| ReadError::StartOver)?;
    let from = resume.read_to;
    if !source.can_go_on(from) || has_meta(source, from)? {
        return Err(ReadError::StartOver);
    }
    sink.session(&state.session)?;
    let parent = state.parent.clone();
    let meta = Meta {
        session: String::new(),
        parent,
        about: About::default(),
    };
    sink.thread(&meta.thread())?;
    let mut reading = Reading::new(source, from, state.lines);
    while let Some(found) = reading.next()? {
        tell(&found, &mut state, &mut reading, sink)?;
    }
    Ok(finish(reading, state))
}

fn finish(reading: Reading<'_>, state: State) -> Told {
    let mut told = reading.finish(state.session.clone(), None);
    // Of a file of which nothing was read, nobody knows what it will be.
    if told.read_to > 0 {
        told.state = state_of(&State {
            lines: told.lines,
            ..state
        });
    }
    told
}

/// Tells what a line says.
fn tell(
    found: &Found,
    state: &mut State,
    reading: &mut Reading<'_>,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let object = &found.object;
    let kind = object.string("type");
    match kind.as_deref() {
        Some("message") => {
            let is_told = match object.get("message") {
                Some(message) => state.tell_message(message, sink)?,
                None => false,
            };
            if !is_told {
                reading.damaged(found, "a message without a role or without blocks");
            }
        }
        Some("compaction") => {
            if !state.tell_summary(object, sink)? {
                reading.damaged(found, "a compaction without a summary");
            }
        }
        Some("session_meta" | "prompt_history") => {}
        Some(other) => reading.unknown(other),
        None => match object.list("messages") {
            // An object of the older form, to which lines were appended.
            Some(messages) => {
                for message in &messages {
                    if !state.tell_message(message, sink)? {
                        reading.damaged(found, "a message without a role or without blocks");
                    }
                }
            }
            None => reading.damaged(found, "a record without a type"),
        },
    }
    Ok(())
}

/// Finds what the file says of the session: the last time counts.
fn last_meta(source: &Source) -> Result<Option<Object>, ReadError> {
    let mut last = None;
    let mut lines = Lines::new(source, 0, 0);
    while let Some(line) = lines.next()? {
        if let Some(meta) = as_meta(line.bytes) {
            last = Some(meta);
        }
    }
    Ok(last)
}

fn has_meta(source: &Source, from: u64) -> Result<bool, ReadError> {
    let mut lines = Lines::new(source, from, 0);
    while let Some(line) = lines.next()? {
        if as_meta(line.bytes).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn as_meta(line: &[u8]) -> Option<Object> {
    memchr::memmem::find(line, b"session_meta")?;
    let object = Object::parse(&String::from_utf8_lossy(line)).ok()?;
    (object.string("type").as_deref() == Some("session_meta")).then_some(object)
}

#[cfg(test)]
#[path = "claw_code_tests.rs"]
mod tests;
