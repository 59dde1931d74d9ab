//! Codex: rollouts, plain and packed.
//!
//! A rollout is a file of JSON lines, each `{"timestamp","type","payload"}`; the oldest
//! have no such envelope, and the very first are one JSON object. They are read from the
//! beginning to the end, and on from where a reading ended, in memory that does not grow
//! with the file.

mod ahead;
mod begin;
mod content;
mod events;
mod inherited;
mod items;
mod names;
mod reader;
mod state;
mod tokens;
mod whole;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::format::{Format, ReadError, Resume, Support};
use crate::json::Object;
use crate::places::Environment;
use crate::reading::Reading;
use crate::source::Source;
use crate::told::{About, Sink, Told};
use reader::Reader;
use state::State;

/// Codex: rollouts, plain and packed.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Format for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex"
    }

    fn support(&self) -> Support {
        Support {
            appends: true,
            branches: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Support::messages("0.1 to 0.166")
        }
    }

    fn places(&self, environment: &Environment) -> Vec<PathBuf> {
        let Some(home) = environment.directory("CODEX_HOME", ".codex") else {
            return Vec::new();
        };
        vec![home.join("sessions"), home.join("archived_sessions")]
    }

    fn is_session_name(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| {
            let is_rollout = name.starts_with("rollout-");
            let endings = [".jsonl", ".jsonl.zst", ".json"];
            is_rollout && endings.iter().any(|ending| name.ends_with(ending))
        })
    }

    fn recognises(&self, source: &Source) -> bool {
        if whole::is_whole(source) {
            return true;
        }
        let head = source.head();
        let mut lines = head.split(|byte| *byte == b'\n');
        let first: Vec<_> = lines
            .by_ref()
            .filter(|line| !line.trim_ascii().is_empty())
            .take(8)
            .collect();
        first.iter().any(|line| is_record(line))
            || first.first().is_some_and(|line| is_long_head(line))
    }

    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        match resume {
            Some(resume) => go_on(source, resume, sink),
            None if whole::is_whole(source) => Ok(whole::read(source, sink)?),
            None => read_all(source, sink),
        }
    }
}

/// Reads a rollout from its beginning.
fn read_all(source: &Source, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let mut state = State::default();
    state.twins.look(source, 0)?;
    let reader = Reader::new(state, source.path(), sink);
    tell(source, 0, reader)
}

/// Reads what came since.
fn go_on(source: &Source, resume: &Resume, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let Some(mut state) = State::load(&resume.state) else {
        return Err(ReadError::StartOver);
    };
    // The second record tells whether it is a copy.
    if state.records < 2 {
        return Err(ReadError::StartOver);
    }
    let before = state.twins;
    state.twins.look(source, resume.read_to)?;
    if state.twins.were_wrong(&before) {
        return Err(ReadError::StartOver);
    }
    if state.prompts.have_forgotten() {
        let turns = ahead::turns_taken_back(source, resume.read_to)?;
        if !state.prompts.can_take_back(turns) {
            return Err(ReadError::StartOver);
        }
    }
    let mut reader = Reader::new(state, source.path(), sink);
    reader.introduce(About::default())?;
    tell(source, resume.read_to, reader)
}

/// Tells what comes from a byte on.
fn tell(source: &Source, from: u64, mut reader: Reader<'_>) -> Result<Told, ReadError> {
    let mut reading = Reading::new(source, from, reader.state.lines);
    while let Some(found) = reading.next()? {
        if reader.state.records == 0 {
            reader.begin(&found.object, ahead::copied_thread(source)?)?;
        }
        if let Some(kind) = reader.record(&found.object, found.place.start)? {
            reading.unknown(&kind);
        }
    }
    let session = match reader.state.records {
        0 => names::ids_in(source.path()).0.unwrap_or_default(),
        _ => reader.state.session.clone(),
    };
    let mut told = reading.finish(session, None);
    reader.state.lines = told.lines;
    told.state = reader.state.save();
    Ok(told)
}

/// What the envelopes of rollouts are of.
const KINDS: [&str; 7] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "token_usage_record",
];

/// Returns whether a line is a record of a rollout.
fn is_record(line: &[u8]) -> bool {
    let Ok(object) = Object::parse(&String::from_utf8_lossy(line)) else {
        return false;
    };
    match object.string("type") {
        Some(kind) => KINDS.contains(&kind.as_ref()) && object.object("payload").is_some(),
        // The head of an old one.
        None => {
            let is_head = object.string("id").is_some() && object.string("timestamp").is_some();
            is_head && object.get("instructions").is_some()
        }
    }
}

/// Returns whether a line that is longer than what is looked at begins a rollout.
fn is_long_head(line: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&line[..line.len().min(512)]);
    begin.starts_with("{\"timestamp\":\"")
        && begin.contains("\"type\":\"session_meta\"")
        && begin.contains("\"payload\":{")
}
