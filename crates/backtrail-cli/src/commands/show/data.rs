//! The records of a session as JSON.

use std::io::{self, Write};

use backtrail::conversation::StoredCompaction;
use backtrail::{RecordRef, Run, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::text::harmless;

/// A compaction or a run, and where it is.
#[derive(Serialize)]
pub(super) struct Placed<T> {
    seq: u64,
    at: Option<Timestamp>,
    #[serde(flatten)]
    what: T,
}

impl<T> Placed<T> {
    fn new(record: &RecordRef<'_>, what: T) -> Self {
        let (seq, at) = (record.seq(), record.at());
        Self { seq, at, what }
    }
}

pub(super) fn compaction(record: &RecordRef<'_>) -> Option<Placed<StoredCompaction>> {
    let stored = record.compaction().ok()??;
    Some(Placed::new(record, stored))
}

pub(super) fn run(record: &RecordRef<'_>) -> Option<Placed<Run>> {
    let run = record.run().ok()??;
    Some(Placed::new(record, run))
}

/// Writes a message and what its record says of it, after `separator`; returns whether
/// there was one.
pub(super) fn write_json(
    out: &mut impl Write,
    record: &RecordRef<'_>,
    separator: &str,
    unreadable: &mut Vec<u64>,
) -> io::Result<bool> {
    let json = match record.message_json() {
        Ok(Some(json)) => json,
        Ok(None) => return Ok(false),
        Err(_) => {
            unreadable.push(record.seq());
            match record.stored_message_json() {
                Some(json) => json.into(),
                None => return Ok(false),
            }
        }
    };
    let Ok(message) = serde_json::from_str::<MessageParts<'_>>(&json) else {
        unreadable.push(record.seq());
        return Ok(false);
    };
    let beside = Beside::of(record);
    write!(out, "{separator}{{\"seq\":{}", record.seq())?;
    let parts = [
        ("id", beside.id),
        ("at", beside.at),
        ("role", Some(message.role)),
        ("blocks", Some(message.blocks)),
        ("usage", message.usage),
        ("model", beside.model),
        ("response_id", beside.response_id),
        ("duration_ms", beside.duration_ms),
        ("cost_usd", beside.cost_usd),
    ];
    for (name, value) in parts {
        let value = harmless(value.map_or("null", RawValue::get));
        write!(out, ",\"{name}\":{value}")?;
    }
    out.write_all(b"}")?;
    Ok(true)
}

/// The fields beside a message in its record, as JSON.
#[derive(Deserialize, Default)]
struct Beside<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    at: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    response_id: Option<&'a RawValue>,
    #[serde(borrow)]
    duration_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    cost_usd: Option<&'a RawValue>,
}

impl<'a> Beside<'a> {
    fn of(record: &RecordRef<'a>) -> Self {
        serde_json::from_slice(record.bytes()).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct MessageParts<'a> {
    #[serde(borrow)]
    role: &'a RawValue,
    #[serde(borrow)]
    blocks: &'a RawValue,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}
