//! claw-code: JSON lines, and one JSON object before that.
//!
//! Its messages are blocks as Backtrail's own were in version 1, and are taken as they
//! stand. The messages that a compaction removed are in no file: what is left is told
//! behind its summary.

use std::path::{Path, PathBuf};

use backtrail::{Message, Role};
use serde::{Deserialize, Serialize};

use super::keys::{hash, hash_json, save_state, valid_key};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent, Origin, ReadReport, SummaryEvent};
use crate::format::{Format, OpenFile, Resume, Support};
use crate::json::{Object, field_names, to_json};
use crate::json_lines::{JsonLine, JsonLines};
use crate::lines::{Lines, first_line};
use crate::source::Source;

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
            ..Support::messages_only("1, as lines and as one object")
        }
    }

    /// It keeps sessions in the project's directory, which is the home directory of those
    /// who work there.
    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let home = environment.home();
        home.map(|home| home.join(".claw/sessions"))
            .into_iter()
            .collect()
    }

    fn is_session_file(&self, path: &Path) -> bool {
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
        Object::parse(&first_line(&head)).is_ok_and(|first| is_record(&first)) || is_object(&head)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let head = source.head();
        let first = first_line(&head);
        let is_lines = Object::parse(&first).is_ok_and(|first| is_record(&first));
        if is_lines || !is_object(&head) {
            return open_lines(source, Form::Lines);
        }
        let text = source.read_value()?;
        match Object::parse(&text).map(|object| Meta::read(Some(&object), source)) {
            Ok(meta) => Ok(open_object(source, text, meta)),
            // Lines were appended to it.
            Err(_) => open_lines(source, Form::ObjectAndLines),
        }
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let from = resume.read_to;
        let Ok(mut state) = resume.state.parse::<ClawState>() else {
            return Ok(None);
        };
        if !source.can_resume_at(from) || has_meta(source, from)? {
            return Ok(None);
        }
        let (session, origin) = (state.session.clone(), origin_of(state.parent.clone()));
        Ok(Some(OpenFile::new(session, origin, move |sink| {
            let (lines, report) = JsonLines::resume(source, from, state.lines);
            emit_lines(lines, report, &mut state, sink)
        })))
    }
}

/// Whether a file was lines from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Lines,
    /// Lines were appended to a file that was one object. It is always read from the beginning.
    ObjectAndLines,
}

/// Returns whether an object is a line of such a file. Those of version 2 are Backtrail's
/// own.
fn is_record(object: &Object<'_>) -> bool {
    match object.string("type").as_deref() {
        Some("session_meta") => {
            let is_first = object.number("version").is_none_or(|version| version == 1);
            is_first && (object.has("session_id") || object.has("created_at_ms"))
        }
        Some("message") => object
            .object("message")
            .is_some_and(|message| message.has("blocks")),
        Some("prompt_history") => object.has("timestamp_ms"),
        Some("compaction") => object.has("removed_message_count"),
        _ => false,
    }
}

fn is_object(head: &[u8]) -> bool {
    let fields = field_names(head);
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
    valid_key(&stem[at..])
}

/// What the file says of the session as a whole.
#[derive(Debug)]
struct Meta {
    session: String,
    parent: Option<String>,
    details: Details,
}

impl Meta {
    fn read(meta: Option<&Object<'_>>, source: &Source) -> Self {
        let text = |name: &str| {
            let text = meta?.string(name).filter(|text| !text.is_empty());
            text.map(|text| text.into_owned())
        };
        let fork = meta.and_then(|meta| meta.object("fork"));
        let parent = fork
            .as_ref()
            .and_then(|fork| fork.string("parent_session_id"));
        Self {
            session: text("session_id").map_or_else(|| name_of(source), |id| valid_key(&id)),
            parent: parent.filter(|id| !id.is_empty()).map(|id| valid_key(&id)),
            details: Details {
                title: text("title"),
                model: text("model"),
                directory: text("workspace_root").map(PathBuf::from),
                started_at: meta.and_then(|meta| meta.time("created_at_ms")),
                ended_at: meta.and_then(|meta| meta.time("updated_at_ms")),
                branch: fork
                    .as_ref()
                    .and_then(|fork| fork.string("branch_name"))
                    .map(|name| name.into_owned()),
                tags: None,
            },
        }
    }
}

fn origin_of(parent: Option<String>) -> Origin {
    parent.map_or(Origin::Start, |session| Origin::Copy { session })
}

/// What is needed to go on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct ClawState {
    session: String,
    parent: Option<String>,
    model: Option<String>,
    lines: u64,
    /// How many events there were, and how many of them were messages.
    told: u64,
    said: u64,
    /// A hash of all messages by now: a copy of a session has the same ones.
    chain: String,
}

impl ClawState {
    fn new(meta: &Meta) -> Self {
        Self {
            session: meta.session.clone(),
            parent: meta.parent.clone(),
            model: meta.details.model.clone(),
            ..Self::default()
        }
    }

    fn emit_message(&mut self, json: &str, sink: &mut dyn EventSink) -> Result<bool> {
        let Some(Ok(message)) = to_json(json).map(|json| json.parse::<Message>()) else {
            return Ok(false);
        };
        let mut event = MessageEvent::new(self.key(json), message);
        self.chain = hash(
            format!("{}{}", self.chain, hash_json(json, 64)).as_bytes(),
            32,
        );
        if event.message.role == Role::Assistant {
            event.model.clone_from(&self.model);
        }
        if event.message.usage.is_some() {
            event.response_id = Some(format!("claw-{}", self.chain));
        }
        self.said += 1;
        sink.event(Event::Message(event))?;
        Ok(true)
    }

    fn emit_summary(&mut self, compaction: &Object<'_>, sink: &mut dyn EventSink) -> Result<bool> {
        let Some(summary) = compaction.text("summary") else {
            return Ok(false);
        };
        let key = self.key(compaction.get("summary").unwrap_or_default());
        sink.event(Event::Summary(SummaryEvent {
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
        format!("n{}-{}", self.told - 1, hash_json(json, 8))
    }
}

/// Opens a file that is one object.
fn open_object(source: &Source, text: String, meta: Meta) -> OpenFile<'_> {
    let mut state = ClawState::new(&meta);
    OpenFile::new(meta.session, origin_of(meta.parent), move |sink| {
        sink.details(meta.details)?;
        let mut report = ReadReport::for_single_value(source.len());
        let object = Object::from_json(&text).unwrap_or_default();
        if let Some(compaction) = object.object("compaction") {
            state.emit_summary(&compaction, sink)?;
        }
        let messages = object.list("messages").unwrap_or_default();
        for (n, json) in messages.into_iter().enumerate() {
            if !state.emit_message(json, sink)? {
                let reason = format!("message {n} has no role or no blocks");
                report.add_damage(json.len() as u64, reason);
            }
        }
        Ok(report)
    })
}

fn open_lines(source: &Source, form: Form) -> Result<OpenFile<'_>> {
    let meta = last_meta(source)?;
    let mut state = ClawState::new(&meta);
    let origin = origin_of(meta.parent.clone());
    Ok(OpenFile::new(meta.session, origin, move |sink| {
        sink.details(meta.details)?;
        let (lines, report) = JsonLines::new(source);
        let mut report = emit_lines(lines, report, &mut state, sink)?;
        if form == Form::ObjectAndLines {
            report.state = None;
        }
        Ok(report)
    }))
}

fn emit_lines(
    mut lines: JsonLines<'_>,
    mut report: ReadReport,
    state: &mut ClawState,
    sink: &mut dyn EventSink,
) -> Result<ReadReport> {
    while let Some(line) = lines.next(&mut report)? {
        emit_line(&line, state, &mut report, sink)?;
    }
    // A file of which nothing was read may become anything.
    if report.read_to > 0 {
        state.lines = report.lines;
        report.state = save_state(state);
    }
    Ok(report)
}

fn emit_line(
    line: &JsonLine<'_>,
    state: &mut ClawState,
    report: &mut ReadReport,
    sink: &mut dyn EventSink,
) -> Result<()> {
    const BAD_MESSAGE: &str = "message without a role or without blocks";
    let object = line.object();
    let mut damaged = |reason: &str| report.add_damaged_line(line.number, &line.range, reason);
    match object.string("type").as_deref() {
        Some("message") => {
            let is_sent = match object.get("message") {
                Some(message) => state.emit_message(message, sink)?,
                None => false,
            };
            if !is_sent {
                damaged(BAD_MESSAGE);
            }
        }
        Some("compaction") => {
            if !state.emit_summary(&object, sink)? {
                damaged("compaction without a summary");
            }
        }
        Some("session_meta" | "prompt_history") => {}
        Some(other) => report.add_unknown(other),
        None => match object.list("messages") {
            // The older form, to which lines were appended.
            Some(messages) => {
                for message in messages {
                    if !state.emit_message(message, sink)? {
                        damaged(BAD_MESSAGE);
                    }
                }
            }
            None => damaged("record without a type"),
        },
    }
    Ok(())
}

/// Finds what the file says of the session: the last time counts.
fn last_meta(source: &Source) -> Result<Meta> {
    let mut last = Meta::read(None, source);
    let mut lines = Lines::new(source, 0, 0);
    while let Some(line) = lines.next()? {
        let text = line.text();
        if let Some(meta) = as_meta(&text) {
            last = Meta::read(Some(&meta), source);
        }
    }
    Ok(last)
}

fn has_meta(source: &Source, from: u64) -> Result<bool> {
    let mut lines = Lines::new(source, from, 0);
    while let Some(line) = lines.next()? {
        if as_meta(&line.text()).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn as_meta(line: &str) -> Option<Object<'_>> {
    memchr::memmem::find(line.as_bytes(), b"session_meta")?;
    let object = Object::parse(line).ok()?;
    (object.string("type").as_deref() == Some("session_meta")).then_some(object)
}

#[cfg(test)]
#[path = "claw_code_tests.rs"]
mod tests;
