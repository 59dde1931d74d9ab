//! The records of a session as JSON.

use std::io::{self, IsTerminal, Write};

use backtrail::RecordRef;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::text::path_json;
use crate::ui::harmless;

/// Returns a compaction and its record.
pub(super) fn compaction_json(record: &RecordRef<'_>) -> Option<Value> {
    let stored = record.compaction().ok()??;
    Some(json!({
        "seq": record.seq(),
        "at": record.at(),
        "count": stored.count,
        "removed_message_count": stored.removed_message_count,
        "keeps_from": stored.keeps_from,
        "summary": stored.summary,
    }))
}

/// Returns a run and its record.
pub(super) fn run_json(record: &RecordRef<'_>) -> Option<Value> {
    let run = record.run().ok()??;
    let argv: Vec<_> = run.argv.iter().map(|arg| arg.to_string_lossy()).collect();
    Some(json!({
        "seq": record.seq(),
        "at": record.at(),
        "argv": argv,
        "directory": path_json(&run.directory),
        "started_at": run.started_at,
        "duration_ms": run.duration_ms,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "before": run.before,
        "after": run.after,
    }))
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
        let value = value.map_or("null", RawValue::get);
        // In a pipe it keeps the bytes that it came with.
        let value = match io::stdout().is_terminal() {
            true => harmless(value),
            false => value.into(),
        };
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
