//! Codex: rollouts, plain and compressed.
//!
//! A rollout is a file of JSON lines, each `{"timestamp","type","payload"}`. The oldest have no
//! such envelope, and the very first are one JSON object, rewritten with every turn. Memory
//! does not grow with the length of a rollout.

mod failures;
mod inherited;
mod items;
mod lookahead;
mod names;
mod reader;
mod state;
mod usage;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Origin, ReadReport};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::Object;
use crate::json_lines::JsonLines;
use crate::source::{Source, file_name};
use reader::Reader;
use state::{CodexState, begin};

/// Codex: rollouts, plain and compressed.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Format for Codex {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["codex"],
            packages: &["@openai/codex"],
            appends: true,
            branches: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new("codex", "Codex", "0.1 to 0.166")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.folders("CODEX_HOME", ".codex", &["sessions", "archived_sessions"])
    }

    fn turn_end(&self) -> Option<fn(&str) -> bool> {
        Some(items::ends_turn)
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let name = file_name(path);
        let endings = [".jsonl", ".jsonl.zst", ".json"];
        name.starts_with("rollout-") && endings.iter().any(|ending| name.ends_with(ending))
    }

    fn recognises(&self, source: &Source) -> bool {
        if is_single_value(source) {
            return true;
        }
        let head = source.head();
        let lines = head.split(|byte| *byte == b'\n');
        let mut lines = lines.filter(|line| !line.trim_ascii().is_empty()).take(8);
        let first = lines.next();
        first.is_some_and(|line| is_record(line) || is_long_head(line)) || lines.any(is_record)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        match is_single_value(source) {
            true => open_value(source),
            false => open_lines(source),
        }
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let from = resume.read_to;
        let state = CodexState::load(&resume.state);
        // The second record shows whether the rollout is a copy.
        let Some(mut state) = state.filter(|state| state.records >= 2) else {
            return Ok(None);
        };
        let before = state.duplicates;
        state.duplicates.scan(source, from)?;
        if state.duplicates.contradict(&before) {
            return Ok(None);
        }
        if state.prompts.are_incomplete() {
            let turns = lookahead::rolled_back_turns(source, from)?;
            if !state.prompts.can_roll_back(turns) {
                return Ok(None);
            }
        }
        Ok(Some(open_rollout(source, from, state, Details::default())))
    }
}

/// Opens a rollout of lines from its beginning.
fn open_lines(source: &Source) -> Result<OpenFile<'_>> {
    let (mut lines, mut report) = JsonLines::new(source);
    let Some(line) = lines.next(&mut report)? else {
        return Ok(without_records(source, report));
    };
    let copied = lookahead::copied_thread(source)?;
    let (mut state, details) = begin(&line.object(), source.path(), copied);
    state.duplicates.scan(source, 0)?;
    Ok(open_rollout(source, 0, state, details))
}

/// Opens a rollout at a byte.
fn open_rollout(source: &Source, from: u64, state: CodexState, details: Details) -> OpenFile<'_> {
    let (session, origin) = (state.session.clone(), state.from.origin());
    OpenFile::new(session, origin, move |sink| {
        let (mut lines, report) = JsonLines::resume(source, from, state.lines);
        let mut reader = Reader::new(state, source.path(), details, report, sink)?;
        while let Some(line) = lines.next(&mut reader.report)? {
            reader.record(&line.object(), line.range.start)?;
        }
        reader.state.lines = reader.report.lines;
        reader.report.state = reader.state.save();
        Ok(reader.report)
    })
}

/// Opens a rollout without a record. Its name may tell its session.
fn without_records(source: &Source, report: ReadReport) -> OpenFile<'_> {
    match names::ids_in(source.path()).0 {
        Some(session) => OpenFile::new(session, Origin::Start, |_| Ok(report)),
        None => OpenFile::unnamed(report),
    }
}

/// The types of envelopes.
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
    let line = String::from_utf8_lossy(line);
    let Ok(object) = Object::parse(&line) else {
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

/// Returns whether a line that is longer than the head of the file starts a rollout.
fn is_long_head(line: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&line[..line.len().min(512)]);
    begin.starts_with("{\"timestamp\":\"")
        && begin.contains("\"type\":\"session_meta\"")
        && begin.contains("\"payload\":{")
}

/// Returns whether a rollout is one object: `{"session":{…},"items":[…]}`.
fn is_single_value(source: &Source) -> bool {
    // For most files the first bytes are enough.
    let begin = source.read_range(0..256).unwrap_or_default();
    after_session_start(&String::from_utf8_lossy(&begin)).is_some() && {
        let head = source.head();
        after_session_start(&String::from_utf8_lossy(&head)).is_some_and(|rest| {
            let session = rest.split('}').next().unwrap_or_default();
            session.contains("\"id\"")
                && session.contains("\"timestamp\"")
                && rest.contains("\"items\"")
        })
    }
}

/// Returns the text after the start of the session object.
fn after_session_start(text: &str) -> Option<&str> {
    let tokens = ["{", "\"session\"", ":", "{"];
    tokens
        .into_iter()
        .try_fold(text, |text, token| text.trim_start().strip_prefix(token))
}

/// Opens a rollout that is one object.
fn open_value(source: &Source) -> Result<OpenFile<'_>> {
    let text = source.read_value()?;
    let parsed = parse_value(&text);
    let (state, details) = match parsed.map(|(head, _)| begin(&head, source.path(), None)) {
        Ok(begun) => begun,
        Err(reason) => {
            let mut report = ReadReport::default();
            report.add_damage(1, &(0..source.len()), reason);
            return Ok(without_records(source, report));
        }
    };
    let (session, origin) = (state.session.clone(), state.from.origin());
    Ok(OpenFile::new(session, origin, move |sink| {
        let report = ReadReport::for_single_value(source.len());
        let mut reader = Reader::new(state, source.path(), details, report, sink)?;
        let items = parse_value(&text).map_or_else(|_| Vec::new(), |(_, items)| items);
        for (number, item) in (1..).zip(&items) {
            match Object::from_json(item) {
                Some(item) => reader.record(&item, number)?,
                None => reader.unknown("(not an object)")?,
            }
        }
        reader.report.lines = items.len() as u64 + 1;
        Ok(reader.report)
    }))
}

fn parse_value(text: &str) -> std::result::Result<(Object<'_>, Vec<&str>), String> {
    let object = Object::parse(text)?;
    let session = object.object("session").ok_or("no session")?;
    let items = object.list("items").ok_or("no items")?;
    Ok((session, items))
}
