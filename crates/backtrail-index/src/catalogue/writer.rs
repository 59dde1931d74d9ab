//! Writes what trails hold into the catalogue while they are read.

use std::collections::BTreeMap;

use backtrail::{Block, Message, Role, ToolResult};
use rusqlite::params;

use super::branches::{BranchReader, names_branches};
use super::ledger::{LedgerWriter, hash};
use super::{Catalogue, CatalogueUpdate};
use crate::edited_paths::{edited_paths, written_paths};
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
    /// The calls of tools that have no result yet, by record and number.
    open_calls: BTreeMap<(u64, u32), OpenCall>,
    branches: BranchReader,
    ledger: LedgerWriter,
}

/// A call of a tool without a result.
#[derive(Debug)]
struct OpenCall {
    name: String,
    id: String,
    at: Option<i64>,
    model: Option<String>,
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
        let at = read.at.map(|at| at.as_millis());
        // A copy of a prompt in another session has the same time and words.
        let prompt_key = prompt.as_ref().map(|prompt| match at {
            Some(at) => hash(b'p', &[&at.to_be_bytes()[..], prompt.as_bytes()].concat()),
            None => hash(
                b'n',
                &[trail.key.to_be_bytes(), read.seq.to_be_bytes()].concat(),
            ),
        });
        self.db.run(
            "INSERT OR REPLACE INTO messages (trail, seq, role, at, prompt, prompt_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                trail.key,
                read.seq as i64,
                message.role.as_str(),
                at,
                prompt,
                prompt_key,
            ],
        )?;
        let mut results = record.results.iter();
        let mut n = 0;
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => {
                    for path in edited_paths(call) {
                        let edit = params![trail.key, read.seq as i64, n, path];
                        self.db.run(ADD_EDIT, edit)?;
                    }
                    let call = OpenCall {
                        name: call.name.as_str().to_owned(),
                        id: call.id.as_str().to_owned(),
                        at: read.at.map(|at| at.as_millis()),
                        model: read.details.model.clone(),
                    };
                    trail.open_calls.insert((read.seq, n), call);
                    n += 1;
                }
                Block::Text(text) if message.role == Role::Assistant => {
                    for path in written_paths(&text.text) {
                        let edit = params![trail.key, read.seq as i64, n, path];
                        self.db.run(ADD_EDIT, edit)?;
                    }
                }
                Block::ToolResult(result) => {
                    if let Some(answers) = results.next() {
                        let at = read.at.map(|at| at.as_millis());
                        write_result(self.db, trail, (result, at), answers)?;
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
            branches: BranchReader::default(),
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

    fn wants_source(&self, agent: &str) -> bool {
        names_branches(agent)
    }

    fn source(&mut self, agent: &str, bytes: &[u8]) -> bool {
        match &mut self.trail {
            Some(trail) => trail.branches.read(agent, bytes),
            None => false,
        }
    }

    fn source_end(&mut self) {
        if let Some(trail) = &mut self.trail {
            trail.branches.end_file();
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
        for (place, call) in &trail.open_calls {
            add_call(self.db, trail.key, *place, call, None)?;
        }
        for (at, branch) in trail.branches.finish() {
            let sql = "INSERT OR REPLACE INTO branches (session, at, branch) VALUES (?1, ?2, ?3)";
            self.db.run(sql, params![trail.session, at, branch])?;
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

const ADD_EDIT: &str = "INSERT OR IGNORE INTO edits (trail, seq, n, path) VALUES (?1, ?2, ?3, ?4)";

/// Adds a call, and if it has a result, whether it failed and when the result came.
fn add_call(
    db: &Catalogue,
    trail: i64,
    (seq, n): (u64, u32),
    call: &OpenCall,
    result: Option<(bool, Option<i64>)>,
) -> Result<()> {
    let (failed, ended) = result.unzip();
    let ms = call.at.zip(ended.flatten()).map(|(at, ended)| ended - at);
    db.run(
        "INSERT OR REPLACE INTO tool_calls (trail, seq, n, name, id, failed, at, model, ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            trail,
            seq as i64,
            n,
            call.name,
            call.id,
            failed,
            call.at,
            call.model,
            ms.filter(|ms| *ms >= 0),
        ],
    )
}

/// Writes how a call ended: in the trail that is being read, or in an earlier one.
fn write_result(
    db: &Catalogue,
    trail: &mut Trail,
    (result, ended): (&ToolResult, Option<i64>),
    answers: &FedResult,
) -> Result<()> {
    let Some(call) = &answers.call else {
        return Ok(());
    };
    let place = (call.seq, call.n);
    if let Some(call) = trail.open_calls.remove(&place) {
        let result = Some((result.is_error, ended));
        return add_call(db, trail.key, place, &call, result);
    }
    let (session, number, seq) = (trail.session, trail.place.trail.number, call.seq as i64);
    db.run(
        "UPDATE tool_calls SET failed = ?5, ms = CASE WHEN ?6 >= at THEN ?6 - at END WHERE (trail, seq, n) IN (
             SELECT c.trail, c.seq, c.n FROM trails AS t JOIN tool_calls AS c ON c.trail = t.key
             WHERE t.session = ?1 AND t.number <= ?2 AND c.seq = ?3 AND c.n = ?4
             AND c.failed IS NULL ORDER BY t.number DESC LIMIT 1)",
        params![session, number, seq, call.n, result.is_error, ended],
    )
}

/// Returns the beginning of what the user said in a prompt, with its lines.
fn first_words(message: &Message) -> String {
    let said = message.said().text;
    let mut words = String::new();
    for line in said.trim().lines() {
        if !words.is_empty() {
            words.push('\n');
        }
        for (n, word) in line.split_whitespace().enumerate() {
            if n > 0 {
                words.push(' ');
            }
            words.push_str(word);
            if words.len() > 4 * PROMPT {
                break;
            }
        }
        if words.len() > 4 * PROMPT {
            break;
        }
    }
    match words.char_indices().nth(PROMPT) {
        Some((cut, _)) => words[..cut].to_owned(),
        None => words,
    }
}
