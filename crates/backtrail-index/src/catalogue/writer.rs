//! Writes what trails hold into the catalogue while they are read.

use std::collections::BTreeMap;

use backtrail::{Block, Message, ToolResult};
use rusqlite::params;

use super::ledger::LedgerWriter;
use super::{Catalogue, CatalogueUpdate};
use crate::error::Result;
use crate::feed::{End, FedRecord, FedResult, Sink, TrailPlace};
/// How much of a prompt is kept: enough to recognise it.
const PROMPT: usize = 200;

/// The trail that is being read.
#[derive(Debug)]
pub(super) struct Trail {
    key: i64,
    session: i64,
    place: TrailPlace,
    /// Places that could not be read: up to the last record, and behind it.
    damaged: (u64, u64),
    /// The calls of tools that have no result yet, by record and number: name and id.
    open_calls: BTreeMap<(u64, u32), (String, String)>,
    ledger: LedgerWriter,
}

impl CatalogueUpdate<'_> {
    fn trail_key(&self, session: i64, number: u32) -> Result<(i64, u64)> {
        let place = params![session, number];
        let sql = "SELECT key, unread FROM trails WHERE session = ?1 AND number = ?2";
        let found = self.db.first(sql, place, |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
        let sql = "INSERT INTO trails (session, number, bytes, modified, read_to, sum)
            VALUES (?1, ?2, 0, 0, 0, 0)";
        Ok((self.db.insert(sql, place)?, 0))
    }

    fn message(&mut self, record: &FedRecord<'_>, message: &Message) -> Result<()> {
        let Some(trail) = &mut self.trail else {
            return Ok(());
        };
        let read = record.read;
        let prompt = message.is_prompt().then(|| first_words(message));
        self.db.run(
            "INSERT OR REPLACE INTO messages (trail, seq, role, at, prompt)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                trail.key,
                read.seq as i64,
                message.role.as_str(),
                read.at.map(|at| at.as_millis()),
                prompt,
            ],
        )?;
        let mut results = record.results.iter();
        let mut n = 0;
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => {
                    let (name, id) = (call.name.as_str(), call.id.as_str());
                    let call = (name.to_owned(), id.to_owned());
                    trail.open_calls.insert((read.seq, n), call);
                    n += 1;
                }
                Block::ToolResult(result) => {
                    if let Some(answers) = results.next() {
                        write_result(self.db, trail, result, answers)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Sink for CatalogueUpdate<'_> {
    fn begin(&mut self, place: &TrailPlace) -> Result<()> {
        let session = self.session_key(&place.session)?;
        let (key, unread) = self.trail_key(session, place.trail.number)?;
        self.touched.insert(session);
        self.trail = Some(Trail {
            key,
            session,
            place: place.clone(),
            damaged: (0, 0),
            open_calls: BTreeMap::new(),
            ledger: LedgerWriter::new(
                session,
                key,
                unread,
                place.from > 0 || place.trail.number > 0,
            ),
        });
        Ok(())
    }

    fn record(&mut self, record: &FedRecord<'_>) -> Result<()> {
        if let Some(message) = &record.read.message {
            self.message(record, message)?;
        }
        match &mut self.trail {
            Some(trail) => trail.ledger.add(record.read, self.db, self.prices),
            None => Ok(()),
        }
    }

    fn damage(&mut self, before: u64, behind: u64) {
        if let Some(trail) = &mut self.trail {
            trail.damaged = (before, behind);
        }
    }

    fn end(&mut self, end: Option<End>) -> Result<()> {
        let Some(mut trail) = self.trail.take() else {
            return Ok(());
        };
        for ((seq, n), (name, id)) in &trail.open_calls {
            let row = params![trail.key, *seq as i64, n, name, id, None::<bool>];
            self.db.run(ADD_CALL, row)?;
        }
        trail.ledger.finish(self.db, self.prices)?;
        self.responses.extend(&trail.ledger.shared);
        // If nothing new was found, the place of the last record stays.
        self.db.run(
            "UPDATE trails SET bytes = ?2, modified = ?3, read_to = coalesce(?4, read_to),
             sum = coalesce(?5, sum), damaged = damaged + ?6, behind = ?7, unread = ?8
             WHERE key = ?1",
            params![
                trail.key,
                trail.place.trail.bytes as i64,
                trail.place.trail.modified,
                end.map(|end| end.byte as i64),
                end.map(|end| i64::from_be_bytes(end.sum)),
                trail.damaged.0 as i64,
                trail.damaged.1 as i64,
                i64::try_from(trail.ledger.unread_tokens()).unwrap_or(i64::MAX),
            ],
        )
    }
}

const ADD_CALL: &str = "INSERT OR REPLACE INTO tool_calls (trail, seq, n, name, id, failed)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Writes how a call ended: in the trail that is being read, or in an earlier one.
fn write_result(
    db: &Catalogue,
    trail: &mut Trail,
    result: &ToolResult,
    answers: &FedResult,
) -> Result<()> {
    let Some(call) = &answers.call else {
        return Ok(());
    };
    if let Some((name, id)) = trail.open_calls.remove(&(call.seq, call.n)) {
        let seq = call.seq as i64;
        let row = params![trail.key, seq, call.n, name, id, result.is_error];
        return db.run(ADD_CALL, row);
    }
    let (session, number, seq) = (trail.session, trail.place.trail.number, call.seq as i64);
    db.run(
        "UPDATE tool_calls SET failed = ?5 WHERE (trail, seq, n) IN (
             SELECT c.trail, c.seq, c.n FROM trails AS t JOIN tool_calls AS c ON c.trail = t.key
             WHERE t.session = ?1 AND t.number <= ?2 AND c.seq = ?3 AND c.n = ?4
             AND c.failed IS NULL ORDER BY t.number DESC LIMIT 1)",
        params![session, number, seq, call.n, result.is_error],
    )
}

/// Returns the beginning of a prompt, in one line.
fn first_words(message: &Message) -> String {
    let text = message.text();
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() >= PROMPT {
            break;
        }
    }
    match words.char_indices().nth(PROMPT) {
        Some((cut, _)) => words[..cut].to_owned(),
        None => words,
    }
}
