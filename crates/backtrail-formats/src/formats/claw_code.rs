//! claw-code: JSON lines, and one JSON object before that.
//!
//! Both are Backtrail's version 1, and the engine's reader of that version reads them.
//! The messages that a compaction removed are in no file: those that are left come after
//! its summary.

use std::path::{Path, PathBuf};

use backtrail::plumbing::version1::{
    V1Meta, V1Object, V1Record, check_message, find_file, is_temporary, original_of, stem,
};
use backtrail::{CompactionSummary, Json, LocalStorage, Message, Reason, Role, Text, Timestamp};
use serde::{Deserialize, Serialize};

use super::keys::{hash, hash_json, save_state, valid_key};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent, Origin, ReadReport, SummaryEvent};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::field_names;
use crate::json_lines::JsonLines;
use crate::lines::Lines;
use crate::source::{Source, file_name};

/// claw-code: JSON lines, and one JSON object before that.
#[derive(Debug, Clone, Copy)]
pub struct ClawCode;

impl Format for ClawCode {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["claw"],
            appends: true,
            compactions: true,
            usage: true,
            ..Agent::new("claw-code", "claw-code", "1, as lines and as one object")
        }
    }

    /// It keeps sessions in the project's directory. For users who work in their home
    /// directory, that is here.
    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let home = environment.home();
        home.iter()
            .map(|home| home.join(".claw/sessions"))
            .collect()
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let name = file_name(path);
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
        starts_with_record(&head) || is_object(&head)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        match find_object(source)? {
            Some(object) => open_object(source, object),
            None => open_lines(source),
        }
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let from = resume.read_to;
        let Ok(mut state) = resume.state.parse::<ClawState>() else {
            return Ok(None);
        };
        // A meta, or the first prompt of a session without a time, describes all of it. And the
        // lines that were read before may have been the beginning of one object.
        let describes =
            |line: &str| as_meta(line).is_some() || (!state.has_start && as_prompt(line).is_some());
        if has_line(source, from, describes)? || find_object(source)?.is_some() {
            return Ok(None);
        }
        let (session, origin) = (state.session.clone(), origin_of(state.parent.clone()));
        Ok(Some(OpenFile::new(session, origin, move |sink| {
            let (lines, report) = JsonLines::resume(source, from, state.lines);
            emit_lines(lines, report, &mut state, sink)
        })))
    }
}

/// Returns whether the first readable line is a record of version 1. Lines of Backtrail's
/// own trails, which end in a sum, are not.
fn starts_with_record(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    for line in lines.filter(|line| !line.is_empty()) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
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
            // A torn line costs only itself.
            Err(Reason::Syntax(_) | Reason::Unfinished | Reason::NulBlock) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Scans a file as one object; `None` if it is lines.
fn find_object(source: &Source) -> Result<Option<V1Object>> {
    let object = V1Object::scan(|buffer, at| source.read_at(buffer, at))?;
    Ok(object.filter(is_complete))
}

/// Returns whether an object can be read as one. One that breaks off may be half written.
fn is_complete(object: &V1Object) -> bool {
    let reason = object.flaw.as_ref().map(|flaw| &flaw.reason);
    matches!(
        reason,
        None | Some(Reason::NulBlock | Reason::RepeatedField(_))
    )
}

fn is_object(head: &[u8]) -> bool {
    let fields = field_names(head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    let finder = memchr::memmem::find(head, b"\"blocks\"");
    let is_empty = has("version") && fields.len() <= 2;
    let foreign = ["sessionId", "history", "type", "id", "session_start"];
    let foreign = foreign.into_iter().any(has);
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

/// Names a session whose file does not: by the file.
fn name_of(source: &Source) -> String {
    let stem = stem(source.path());
    let at = stem.rfind("session-").unwrap_or(0);
    valid_key(&stem[at..])
}

/// What the file says of the session as a whole.
#[derive(Debug)]
struct Meta {
    session: String,
    parent: Option<String>,
    details: Details,
    /// Whether a line says when it began.
    has_start: bool,
}

impl Meta {
    fn new(meta: V1Meta, first_prompt_ms: Option<i64>, source: &Source) -> Self {
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        let time = |ms: Option<i64>| ms.and_then(Timestamp::from_millis);
        let id = text(meta.session_id);
        let fork = meta.fork.as_ref();
        let parent = fork.map(|fork| fork.parent_session_id.clone());
        let created = time(meta.created_at_ms).or_else(|| time(first_prompt_ms));
        let in_id = || id.as_deref().and_then(Timestamp::in_id);
        let in_name = || Timestamp::in_id(&name_of(source));
        Self {
            has_start: created.is_some(),
            session: id.as_deref().map_or_else(|| name_of(source), valid_key),
            parent: text(parent).map(|id| valid_key(&id)),
            details: Details {
                title: text(meta.title),
                model: text(meta.model),
                directory: text(meta.workspace_root).map(PathBuf::from),
                started_at: created.or_else(in_id).or_else(in_name),
                ended_at: time(meta.updated_at_ms),
                branch: meta.fork.and_then(|fork| fork.branch_name),
                tags: None,
            },
        }
    }
}

fn origin_of(parent: Option<String>) -> Origin {
    parent.map_or(Origin::Start, |session| Origin::Copy { session })
}

/// What is needed to continue.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct ClawState {
    session: String,
    parent: Option<String>,
    model: Option<String>,
    /// Whether a line says when the session began.
    #[serde(default)]
    has_start: bool,
    lines: u64,
    /// How many events there were, and how many of them were messages.
    told: u64,
    said: u64,
    /// A hash of all messages by now: a copy of a session has the same ones.
    chain: String,
    /// The prompts whose messages have not come yet.
    #[serde(default)]
    prompts: Vec<TimedPrompt>,
    /// Whether messages are missing: then equal prompts cannot be told apart.
    #[serde(default)]
    is_compacted: bool,
}

impl ClawState {
    fn new(meta: &Meta) -> Self {
        Self {
            session: meta.session.clone(),
            parent: meta.parent.clone(),
            model: meta.details.model.clone(),
            has_start: meta.has_start,
            ..Self::default()
        }
    }

    /// Emits a message; `false` where it cannot be parsed.
    fn emit_message(&mut self, json: &str, sink: &mut dyn EventSink) -> Result<bool> {
        let Ok(message) = serde_json::from_str::<Message>(json) else {
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
        event.at = self.prompt_time(&event.message);
        self.said += 1;
        sink.event(Event::Message(event))?;
        Ok(true)
    }

    /// Returns when a prompt was entered, if the file says so.
    fn prompt_time(&mut self, message: &Message) -> Option<Timestamp> {
        if self.prompts.is_empty() || message.role != Role::User {
            return None;
        }
        let text = hash(message.text().as_bytes(), 16);
        let mut same = self.prompts.iter().enumerate();
        let (at, _) = same.find(|(_, prompt)| prompt.text == text)?;
        let is_ambiguous = self.is_compacted && same.any(|(_, prompt)| prompt.text == text);
        let prompt = self.prompts.remove(at);
        Timestamp::from_millis(prompt.at_ms).filter(|_| !is_ambiguous)
    }

    fn emit_summary(
        &mut self,
        compaction: &CompactionSummary,
        sink: &mut dyn EventSink,
    ) -> Result<()> {
        let literal = Json::from_value(&compaction.summary);
        let key = self.key(literal.as_ref().map_or("", Json::as_str));
        self.is_compacted = true;
        sink.event(Event::Summary(SummaryEvent {
            covers: Some(compaction.removed_message_count),
            keep: self.said,
            ..SummaryEvent::new(key, compaction.summary.as_str())
        }))
    }

    fn key(&mut self, json: &str) -> String {
        self.told += 1;
        format!("n{}-{}", self.told - 1, hash_json(json, 8))
    }
}

const BAD_MESSAGE: &str = "message without a role or without blocks";

/// Opens a file that is one object.
fn open_object(source: &Source, object: V1Object) -> Result<OpenFile<'_>> {
    let about = object.about(|part| source.read_range(part))?;
    let meta = about.meta.unwrap_or_default();
    let meta = Meta::new(meta, about.first_prompt_ms, source);
    let mut state = ClawState::new(&meta);
    let origin = origin_of(meta.parent);
    Ok(OpenFile::new(meta.session, origin, move |sink| {
        sink.details(meta.details)?;
        let mut report = ReadReport::for_single_value(source.len());
        if let Some(compaction) = &about.compaction {
            state.emit_summary(compaction, sink)?;
        }
        for element in &object.elements {
            let bytes = source.read_range(element.place.clone())?;
            let json = String::from_utf8_lossy(&bytes);
            let is_sent = check_message(&json).is_ok() && state.emit_message(&json, sink)?;
            if !is_sent {
                report.add_damage(element.line, &element.place, BAD_MESSAGE);
            }
        }
        Ok(report)
    }))
}

fn open_lines(source: &Source) -> Result<OpenFile<'_>> {
    let (meta, first_prompt_ms) = last_meta(source)?;
    let meta = Meta::new(meta.unwrap_or_default(), first_prompt_ms, source);
    let mut state = ClawState::new(&meta);
    let origin = origin_of(meta.parent.clone());
    // Lines that were appended to an object are always read from the beginning.
    let was_object = is_object(&source.head()) && !starts_with_record(&source.head());
    Ok(OpenFile::new(meta.session, origin, move |sink| {
        sink.details(meta.details)?;
        let (lines, report) = JsonLines::new(source);
        let mut report = emit_lines(lines, report, &mut state, sink)?;
        if was_object {
            report.state = None;
        }
        Ok(report)
    }))
}

/// What a line holds.
enum LineContent {
    Messages(Vec<String>),
    Summary(CompactionSummary),
    Unknown(String),
    Prompt(TimedPrompt),
    Nothing,
}

fn parse_line(text: &str) -> Result<LineContent, String> {
    let record = V1Record::read(text).map_err(|reason| reason.to_string())?;
    Ok(match record {
        V1Record::Message(json) => LineContent::Messages(vec![json.to_owned()]),
        V1Record::Object(all) => {
            LineContent::Messages(all.into_iter().map(str::to_owned).collect())
        }
        V1Record::Compaction(compaction) => LineContent::Summary(compaction),
        V1Record::Other(kind) => LineContent::Unknown(kind),
        V1Record::Prompt { .. } => {
            as_prompt(text).map_or(LineContent::Nothing, LineContent::Prompt)
        }
        V1Record::Meta(_) => LineContent::Nothing,
    })
}

fn emit_lines(
    mut lines: JsonLines<'_>,
    mut report: ReadReport,
    state: &mut ClawState,
    sink: &mut dyn EventSink,
) -> Result<ReadReport> {
    while let Some((content, number, range)) = lines.next_parsed(&mut report, parse_line)? {
        match content {
            LineContent::Messages(messages) => {
                for json in messages {
                    if !state.emit_message(&json, sink)? {
                        report.add_damage(number, &range, BAD_MESSAGE);
                    }
                }
            }
            LineContent::Summary(compaction) => state.emit_summary(&compaction, sink)?,
            LineContent::Unknown(kind) => report.add_unknown(&kind),
            LineContent::Prompt(prompt) => state.prompts.push(prompt),
            LineContent::Nothing => {}
        }
    }
    // A file of which nothing was read may become anything.
    if report.read_to > 0 {
        state.lines = report.lines;
        report.state = save_state(state);
    }
    Ok(report)
}

/// Finds the last meta of a file, and the time of the first prompt.
fn last_meta(source: &Source) -> Result<(Option<V1Meta>, Option<i64>)> {
    let mut last = None;
    let mut first_prompt_ms = None;
    let mut lines = Lines::new(source, 0, 0);
    while let Some(line) = lines.next()? {
        let text = line.text();
        last = as_meta(&text).or(last);
        first_prompt_ms = first_prompt_ms.or_else(|| as_prompt(&text).map(|prompt| prompt.at_ms));
    }
    Ok((last, first_prompt_ms))
}

/// A prompt that is kept beside the messages, with the time that those do not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TimedPrompt {
    at_ms: i64,
    /// A hash of its text.
    text: String,
}

fn as_prompt(line: &str) -> Option<TimedPrompt> {
    #[derive(Deserialize)]
    struct Prompt {
        timestamp_ms: i64,
        text: Text,
    }
    memchr::memmem::find(line.as_bytes(), b"prompt_history")?;
    match V1Record::read(line) {
        Ok(V1Record::Prompt { .. }) => {}
        _ => return None,
    }
    let prompt: Prompt = serde_json::from_str(line).ok()?;
    Some(TimedPrompt {
        at_ms: prompt.timestamp_ms,
        text: hash(prompt.text.as_bytes(), 16),
    })
}

fn has_line(source: &Source, from: u64, is_wanted: impl Fn(&str) -> bool) -> Result<bool> {
    let mut lines = Lines::new(source, from, 0);
    while let Some(line) = lines.next()? {
        if is_wanted(&line.text()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn as_meta(line: &str) -> Option<V1Meta> {
    memchr::memmem::find(line.as_bytes(), b"session_meta")?;
    match V1Record::read(line) {
        Ok(V1Record::Meta(meta)) => Some(meta),
        _ => None,
    }
}

#[cfg(test)]
#[path = "claw_code_tests.rs"]
mod tests;
