//! What a session shows, read through every reader, compared with the model.

use std::collections::HashSet;

use backtrail::{
    Block, Error, Record, RecordKind, RecordRef, Records, Result, SessionId, SessionReader, Step,
    Steps,
};

use super::chance::Dice;
use super::state::{Cover, Entry, Known, Model, Origin, Talk, What};
use crate::kit::Checked;

/// A session as it is read.
#[derive(Debug)]
pub(crate) struct Seen {
    line: Vec<Entry>,
    known: Known,
    origin: Origin,
    last_seq: u64,
    pub(crate) steps: Steps,
    /// Whether damage was skipped.
    pub(crate) damaged: bool,
    /// Whether the last line is unfinished.
    pub(crate) unfinished: bool,
}

pub(crate) fn told(what: &str, error: &Error) -> String {
    format!("{what}: {error:?}")
}

impl Seen {
    pub(crate) fn read(reader: &SessionReader) -> Checked<Self> {
        let (line, damaged, unfinished) = all(reader.records(), "records")?;
        let (mut back, damaged_back, _) = all(reader.records_back(), "records_back")?;
        back.reverse();
        if back != line {
            return Err(format!("forwards {line:#?}\nbackwards {back:#?}"));
        }
        let info = reader.info().map_err(|e| told("info", &e))?;
        let origin = match (info.forked_from, info.spawned_by) {
            (None, None) => Origin::Nowhere,
            (Some(fork), None) => Origin::Fork(fork.parent_session_id, fork.branch_name, fork.seq),
            (None, Some(by)) => Origin::Call(by.session_id, by.seq, by.tool_use_id),
            both => return Err(format!("forked and spawned: {both:?}")),
        };
        Ok(Self {
            line,
            known: Known {
                title: info.title,
                tags: info.tags,
                pinned: info.pinned,
            },
            origin,
            last_seq: info.last_seq,
            steps: reader.steps().map_err(|e| told("steps", &e))?,
            damaged: damaged || damaged_back,
            unfinished,
        })
    }

    /// Checks that this matches the model.
    pub(crate) fn check(&self, model: &Model) -> Checked {
        let same = self.line.iter().eq(model.line.iter().map(AsRef::as_ref));
        if !same {
            let expected = short(model.line.iter().map(AsRef::as_ref));
            return Err(format!("line {}, not {expected}", short(&self.line)));
        }
        equal("what is known", &self.known, &model.known)?;
        equal("the origin", &self.origin, &model.origin)?;
        equal("the last seq", &self.last_seq, &model.last())?;
        let undo = model.undo.iter().rev();
        check_steps("to_undo", &self.steps.to_undo, undo)?;
        let redo = model.redo.iter().rev().map(|undone| &undone.done);
        check_steps("to_redo", &self.steps.to_redo, redo)
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, seen: &T, expected: &T) -> Checked {
    if seen == expected {
        return Ok(());
    }
    Err(format!("{what}: {seen:?}, not {expected:?}"))
}

fn check_steps<'a>(
    what: &str,
    seen: &[Step],
    expected: impl Iterator<Item = &'a super::state::Done>,
) -> Checked {
    let expected: Vec<_> = expected.collect();
    let same = |(step, done): (&Step, &&super::state::Done)| {
        step.kind == done.kind && step.at.is_some() && (done.at.is_none() || done.at == step.at)
    };
    if seen.len() == expected.len() && seen.iter().zip(&expected).all(same) {
        return Ok(());
    }
    let expected: Vec<_> = expected.iter().map(|done| (&done.kind, done.at)).collect();
    Err(format!("{what}: {seen:#?}, not {expected:#?}"))
}

/// Checks that parts of the history, by number and by count, match.
pub(crate) fn check_parts(reader: &SessionReader, model: &Model, dice: &mut Dice) -> Checked {
    let seq = dice.below(model.last() + 3);
    let from = all(reader.records_from(seq), "records_from")?.0;
    let expected = model.line.iter().filter(|entry| entry.seq >= seq);
    if !from.iter().eq(expected.map(AsRef::as_ref)) {
        return Err(format!("records_from({seq}) is {}", short(&from)));
    }
    for seq in [seq, dice.below(model.last() + 3)] {
        let found = reader.record(seq).map_err(|e| told("record", &e))?;
        let found = found.as_ref().map(read).transpose()?;
        if found.as_ref() != model.entry(seq).map(AsRef::as_ref) {
            return Err(format!("record({seq}) is {found:?}"));
        }
    }
    let count = dice.below(5) as usize;
    let last = reader.last_records(count);
    let last = last.map_err(|e| told("last_records", &e))?;
    let last: Checked<Vec<_>> = last.iter().map(read).collect();
    let expected = &model.line[model.line.len().saturating_sub(count)..];
    if !last?.iter().eq(expected.iter().map(AsRef::as_ref)) {
        return Err(format!("last_records({count}) are others"));
    }
    Ok(())
}

/// Reads records to the end, and returns whether any are damaged or unfinished.
fn all(records: Result<Records>, door: &str) -> Checked<(Vec<Entry>, bool, bool)> {
    let mut records = records.map_err(|e| told(door, &e))?;
    let mut line = Vec::new();
    while let Some(record) = records.next().map_err(|e| told(door, &e))? {
        line.push(read_ref(&record)?);
    }
    let damaged = !records.damage().is_empty();
    Ok((line, damaged, records.unfinished_bytes() > 0))
}

/// Checks that the line's calls started exactly the existing sessions.
pub(crate) fn check_spawned(
    reader: &SessionReader,
    model: &Model,
    exist: &HashSet<SessionId>,
) -> Checked {
    let all = reader.spawned().map_err(|e| told("spawned", &e))?;
    let all: Vec<SessionId> = all.into_iter().map(|spawned| spawned.session_id).collect();
    let named = model.spawned().filter(|id| exist.contains(id));
    equal("the sessions begun", &all, &named.cloned().collect())
}

fn read(record: &Record) -> Checked<Entry> {
    read_ref(&record.as_ref())
}

fn read_ref(record: &RecordRef<'_>) -> Checked<Entry> {
    let fields = || {
        serde_json::from_slice::<serde_json::Value>(record.bytes())
            .map_err(|error| error.to_string())
    };
    let (what, text) = match record.kind() {
        RecordKind::Message => read_message(record)?,
        RecordKind::Note => (What::Note, noted(&fields()?)),
        RecordKind::Compaction => read_compaction(&fields()?),
        RecordKind::Spawned => {
            let fields = fields()?;
            let call = fields["tool_use_id"].as_str().unwrap_or_default();
            let id = fields["session_id"].as_str().and_then(|id| id.parse().ok());
            (What::Spawned(id), format!("{} {call}", fields["call"]))
        }
        other => return Err(format!("a record of kind {other:?} was never written")),
    };
    let seq = record.seq();
    Ok(Entry { seq, what, text })
}

fn read_message(record: &RecordRef<'_>) -> Checked<(What, String)> {
    let message = record.message().map_err(|e| told("message", &e))?;
    let message = message.expect("it is one");
    let mut talk = Talk {
        role: message.role.as_str().to_owned(),
        ..Talk::default()
    };
    let mut words = Vec::new();
    for block in &message.blocks {
        words.push(match block {
            Block::Text(block) => {
                talk.speaks = true;
                Some(block.text.clone())
            }
            Block::ToolUse(call) => {
                talk.calls.push(call.id.to_string());
                serde_json::from_str(call.input.as_str()).ok()
            }
            Block::ToolResult(result) => {
                talk.results.push(result.tool_use_id.to_string());
                result.output_text()
            }
            other => return Err(format!("a block that was never written: {other:?}")),
        });
    }
    words.dedup();
    match &words[..] {
        [Some(word)] => Ok((What::Message(talk), word.to_string())),
        _ => Err(format!("a message of several others: {message:?}")),
    }
}

fn noted(fields: &serde_json::Value) -> String {
    let tags = fields["tags"].as_array().map(Vec::as_slice);
    let tags = tags.unwrap_or_default().iter();
    let known = Known {
        title: fields["title"].as_str().map(str::to_owned),
        tags: tags
            .filter_map(|tag| tag.as_str().map(str::to_owned))
            .collect(),
        pinned: fields["pinned"] == true,
    };
    known.as_text()
}

fn read_compaction(fields: &serde_json::Value) -> (What, String) {
    let number = |name: &str| fields[name].as_u64().unwrap_or(u64::MAX);
    let cover = Cover {
        count: number("count"),
        removed: number("removed_message_count"),
        keeps_from: number("keeps_from"),
    };
    let summary = fields["summary"].as_str().unwrap_or_default();
    (What::Compaction(cover), summary.to_owned())
}

/// Returns the session that the last record of the line names, if it names one.
pub(crate) fn last_spawned(reader: &SessionReader) -> Option<SessionId> {
    let last = reader.last_records(1).ok()?.pop()?;
    if last.as_ref().kind() != RecordKind::Spawned {
        return None;
    }
    let fields: serde_json::Value = serde_json::from_slice(last.as_ref().bytes()).ok()?;
    fields["session_id"].as_str()?.parse().ok()
}

/// Formats a line of history on one line.
fn short<'a>(line: impl IntoIterator<Item = &'a Entry>) -> String {
    let words = line.into_iter().map(|entry| {
        let sign = match &entry.what {
            What::Message(_) => "",
            What::Note => "note ",
            What::Compaction(_) => "* ",
            What::Spawned(_) => "> ",
        };
        format!("{}:{sign}{}", entry.seq, entry.text)
    });
    format!("[{}]", words.collect::<Vec<_>>().join(", "))
}
