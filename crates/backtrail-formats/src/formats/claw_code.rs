//! claw-code: JSON lines, and one JSON object before that.
//!
//! Both are Backtrail's version 1, and the engine's reader of that version reads them.
//! The messages that a compaction removed are in no file: those that are left come
//! after its summary.

use std::path::{Path, PathBuf};

use backtrail::plumbing::version1::{
    V1Meta, V1Object, V1Record, check_message, find_file, is_temporary, original_of, stem,
};
use backtrail::{CompactionSummary, Json, LocalStorage, Message, Reason, Role, Timestamp};
use serde::{Deserialize, Serialize};

use super::pieces::{hash, hash_of, key_of, state_of, top_fields};
use crate::format::{Format, ReadError, Resume, Support};
use crate::lines::{Lines, trim};
use crate::places::Environment;
use crate::reading::Reading;
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

    /// It keeps sessions in the project's directory. For users who work in their home
    /// directory, that is here.
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
        match original_of(path) {
            _ if !is_kind || is_temporary(path) => false,
            // A copy stands in for a file that is gone, if no copy is newer.
            Some(original) => find_file(&LocalStorage, &original).is_ok_and(|file| file == path),
            None => true,
        }
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        begins_with_record(&head) || is_object(&head)
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
        let object = V1Object::scan(|buffer, at| source.read_at(buffer, at))?;
        if let Some(object) = object.filter(is_whole) {
            return read_object(source, &object, sink);
        }
        let mut told = read_lines(source, sink)?;
        if is_object(&source.head()) {
            // Lines were appended to an object: it is read whole when it has grown.
            told.state = None;
        }
        Ok(told)
    }
}

/// Returns whether the first line that can be read is a record of version 1. Lines of
/// Backtrail's own trails, which end in a sum, are not.
fn begins_with_record(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').map(trim);
    for line in lines.filter(|line| !line.is_empty()) {
        let end = &line[line.len().saturating_sub(40)..];
        if memchr::memmem::find(end, b",\"sum\":\"").is_some() {
            return false;
        }
        match V1Record::read(&String::from_utf8_lossy(line)) {
            Ok(V1Record::Meta(meta)) => {
                let is_first = meta.version.is_none_or(|version| version == 1);
                return is_first && (meta.session_id.is_some() || meta.created_at_ms.is_some());
            }
            Ok(V1Record::Object(_) | V1Record::Other(_)) => return false,
            Ok(_) => return true,
            // A torn line costs itself; a line of another program decides.
            Err(Reason::Syntax(_) | Reason::Unfinished | Reason::NulBlock) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Returns whether an object can be read as one. One that breaks off may be half written.
fn is_whole(object: &V1Object) -> bool {
    let reason = object.flaw.as_ref().map(|flaw| &flaw.reason);
    matches!(
        reason,
        None | Some(Reason::NulBlock | Reason::RepeatedField(_))
    )
}

fn is_object(head: &[u8]) -> bool {
    let fields = top_fields(head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    let finder = memchr::memmem::find(head, b"\"blocks\"");
    let is_empty = has("version") && fields.len() <= 2;
    let foreign = ["sessionId", "history", "type", "id"].into_iter().any(has);
    has("messages") && (finder.is_some() || is_empty) && !foreign && !is_our_own(head)
}

/// Returns whether an object has another version than 1 before its messages, as the
/// exports of Backtrail have.
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

/// Names a session whose file does not: by the file.
fn name_of(source: &Source) -> String {
    let stem = stem(source.path());
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
    fn new(meta: V1Meta, source: &Source) -> Self {
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        let time = |ms: Option<i64>| ms.and_then(Timestamp::from_millis);
        let id = text(meta.session_id);
        let parent = meta
            .fork
            .as_ref()
            .map(|fork| fork.parent_session_id.clone());
        Self {
            session: id.map_or_else(|| name_of(source), |id| key_of(&id)),
            parent: text(parent).map(|id| key_of(&id)),
            about: About {
                title: text(meta.title),
                model: text(meta.model),
                directory: text(meta.workspace_root).map(PathBuf::from),
                began: time(meta.created_at_ms),
                ended: time(meta.updated_at_ms),
                branch: meta.fork.and_then(|fork| fork.branch_name),
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
    /// Tells a message; `false` where it cannot be parsed.
    fn tell_message(&mut self, json: &str, sink: &mut dyn Sink) -> Result<bool, ReadError> {
        let Ok(message) = serde_json::from_str::<Message>(json) else {
            return Ok(false);
        };
        let mut said = Said::new(self.key(json), message);
        self.chain = hash(
            format!("{}{}", self.chain, hash_of(json, 64)).as_bytes(),
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
        compaction: &CompactionSummary,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let literal = Json::from_value(&compaction.summary);
        let key = self.key(literal.as_ref().map_or("", Json::as_str));
        sink.item(Item::Summarised(Summarised {
            covers: Some(compaction.removed_message_count),
            key,
            at: None,
            summary: compaction.summary.as_str().to_owned(),
            keep: self.said,
            model: None,
            usage: None,
        }))?;
        Ok(())
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
fn read_object(source: &Source, object: &V1Object, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let about = object.about(|part| source.read_range(part))?;
    let meta = Meta::new(about.meta.unwrap_or_default(), source);
    let mut state = begin(&meta, sink)?;
    let mut reading = Reading::new(source, 0, 0);
    if let Some(compaction) = &about.compaction {
        state.tell_summary(compaction, sink)?;
    }
    for element in &object.elements {
        let bytes = source.read_range(element.place.clone())?;
        let json = String::from_utf8_lossy(&bytes);
        let told = match check_message(&json) {
            Ok(()) => state.tell_message(&json, sink)?,
            Err(_) => false,
        };
        if !told {
            reading.damaged_at(
                element.line,
                &element.place,
                "not a message: no role or no blocks",
            );
        }
    }
    let mut told = reading.finish(meta.session, None);
    told.lines = 1;
    told.read_to = source.len();
    Ok(told)
}

fn read_lines(source: &Source, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let meta = Meta::new(last_meta(source)?.unwrap_or_default(), source);
    let mut state = begin(&meta, sink)?;
    let mut reading = Reading::new(source, 0, 0);
    tell_lines(&mut reading, &mut state, sink)?;
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
    tell_lines(&mut reading, &mut state, sink)?;
    Ok(finish(reading, state))
}

fn finish(reading: Reading<'_>, state: State) -> Told {
    let mut told = reading.finish(state.session.clone(), None);
    // A file of which nothing was read yet may become anything.
    if told.read_to > 0 {
        told.state = state_of(&State {
            lines: told.lines,
            ..state
        });
    }
    told
}

/// What a line says.
enum Line {
    Messages(Vec<String>),
    Summary(CompactionSummary),
    Unknown(String),
    Nothing,
}

impl Line {
    fn parse(text: &str) -> Result<Self, String> {
        let record = V1Record::read(text).map_err(|reason| reason.to_string())?;
        Ok(match record {
            V1Record::Message(json) => Self::Messages(vec![json.to_owned()]),
            V1Record::Object(all) => Self::Messages(all.into_iter().map(str::to_owned).collect()),
            V1Record::Compaction(compaction) => Self::Summary(compaction),
            V1Record::Other(kind) => Self::Unknown(kind),
            V1Record::Meta(_) | V1Record::Prompt { .. } => Self::Nothing,
        })
    }
}

fn tell_lines(
    reading: &mut Reading<'_>,
    state: &mut State,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    while let Some((line, number, place)) = reading.next_as(Line::parse)? {
        match line {
            Line::Messages(messages) => {
                for json in messages {
                    if !state.tell_message(&json, sink)? {
                        reading.damaged_at(number, &place, "not a message: no role or no blocks");
                    }
                }
            }
            Line::Summary(compaction) => state.tell_summary(&compaction, sink)?,
            Line::Unknown(kind) => reading.unknown(&kind),
            Line::Nothing => {}
        }
    }
    Ok(())
}

/// Finds what the file says of the session: the last meta counts.
fn last_meta(source: &Source) -> Result<Option<V1Meta>, ReadError> {
    let mut last = None;
    let mut lines = Lines::new(source, 0, 0);
    while let Some(line) = lines.next()? {
        last = as_meta(line.bytes).or(last);
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

fn as_meta(line: &[u8]) -> Option<V1Meta> {
    memchr::memmem::find(line, b"session_meta")?;
    match V1Record::read(&String::from_utf8_lossy(line)) {
        Ok(V1Record::Meta(meta)) => Some(meta),
        _ => None,
    }
}

#[cfg(test)]
#[path = "claw_code_tests.rs"]
mod tests;
