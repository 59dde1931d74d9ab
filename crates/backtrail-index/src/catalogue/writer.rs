//! Writes records to the catalogue while trails are read.

use std::collections::{BTreeSet, HashMap};

use backtrail::{Block, Message, RecordKind, Role, SessionId, ToolResult, Usage, estimated_tokens};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;

use super::failed;
use super::ledger::{Call, Calls};
use crate::error::Result;
use crate::feed::{End, Said, Sink, TrailPlace};
use crate::prices::Prices;

/// How much of a prompt is kept: enough to recognize it.
const PROMPT: usize = 200;

/// Writes records to the catalogue within the caller's transaction.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    db: &'a Connection,
    prices: &'a Prices,
    trail: Option<Trail>,
    /// The sessions with new records.
    pub(super) touched: BTreeSet<i64>,
    /// The responses that a row was written for.
    pub(super) responses: Vec<i64>,
}

/// The trail that is being read.
#[derive(Debug)]
struct Trail {
    key: i64,
    session: i64,
    place: TrailPlace,
    /// Tokens in messages that no call has read yet.
    unread: u64,
    /// Unreadable places: up to the last record, and after it.
    damaged: (u64, u64),
    /// Tool calls that wait for their result, by id: message and number.
    waiting: HashMap<String, Vec<(i64, u32, String)>>,
    calls: Calls,
}

impl<'a> Writer<'a> {
    pub(super) fn new(db: &'a Connection, prices: &'a Prices) -> Self {
        Self {
            db,
            prices,
            trail: None,
            touched: BTreeSet::new(),
            responses: Vec::new(),
        }
    }

    /// Returns the key of a session, adding a row for a new one.
    pub(super) fn session_key(&self, id: &SessionId) -> Result<i64> {
        let writing = failed("cannot write to the catalogue");
        let mut find = self
            .db
            .prepare_cached("SELECT key FROM sessions WHERE id = ?1")
            .map_err(&writing)?;
        let found = find.query_row([id.as_str()], |row| row.get(0)).optional();
        if let Some(key) = found.map_err(&writing)? {
            return Ok(key);
        }
        let mut insert = self
            .db
            .prepare_cached("INSERT INTO sessions (id) VALUES (?1)")
            .map_err(&writing)?;
        insert.insert([id.as_str()]).map_err(&writing)
    }

    fn trail_key(&self, session: i64, number: u32) -> Result<(i64, u64)> {
        let writing = failed("cannot write to the catalogue");
        let mut find = self
            .db
            .prepare_cached("SELECT key, unread FROM trails WHERE session = ?1 AND number = ?2")
            .map_err(&writing)?;
        let found = find
            .query_row(params![session, number], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })
            .optional();
        if let Some(found) = found.map_err(&writing)? {
            return Ok(found);
        }
        let mut insert = self
            .db
            .prepare_cached(
                "INSERT INTO trails (session, number, bytes, modified, read_to, sum)
                 VALUES (?1, ?2, 0, 0, 0, 0)",
            )
            .map_err(&writing)?;
        let key = insert.insert(params![session, number]).map_err(&writing)?;
        Ok((key, 0))
    }

    fn message(&mut self, said: &Said<'_>, message: &Message) -> Result<()> {
        let Some(trail) = &mut self.trail else {
            return Ok(());
        };
        let prompt = message.is_prompt().then(|| first_words(message));
        let mut insert = self
            .db
            .prepare_cached(
                "INSERT OR REPLACE INTO messages (trail, seq, role, at, prompt)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .map_err(failed("cannot write a message to the catalogue"))?;
        insert
            .execute(params![
                trail.key,
                said.seq as i64,
                message.role.as_str(),
                said.at.map(|at| at.as_millis()),
                prompt,
            ])
            .map_err(failed("cannot write a message to the catalogue"))?;
        let mut n = 0;
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => {
                    let waiting = trail.waiting.entry(call.id.as_str().to_owned());
                    let call = (said.seq as i64, n, call.name.as_str().to_owned());
                    waiting.or_default().push(call);
                    n += 1;
                }
                Block::ToolResult(result) => answer(self.db, trail, result)?,
                _ => {}
            }
        }
        trail.spend(said, message, self.db)
    }

    fn compaction(&mut self, said: &Said<'_>) {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Body {
            summary: Option<backtrail::Text>,
            usage: Option<Usage>,
        }
        let Some(trail) = &mut self.trail else {
            return;
        };
        let body: Body = serde_json::from_slice(said.bytes).unwrap_or_default();
        let tokens = body.summary.map_or(0, |summary| estimated_tokens(&summary));
        let is_response = body.usage.is_some() || *said.details != backtrail::Details::default();
        if is_response {
            let call = Call::new(said, body.usage.as_ref(), tokens);
            trail.calls.add(call.who("compaction"));
        } else {
            trail.unread = trail.unread.saturating_add(tokens);
        }
    }
}

impl Writer<'_> {
    /// Records the usage of a call whose agent reports it apart from its messages.
    fn usage(&mut self, said: &Said<'_>) {
        #[derive(Deserialize)]
        struct Body {
            usage: Option<Usage>,
        }
        if let Some(trail) = &mut self.trail
            && let Ok(body) = serde_json::from_slice::<Body>(said.bytes)
        {
            trail.spend_aside(said, body.usage.as_ref());
        }
    }
}

impl Sink for Writer<'_> {
    fn begin(&mut self, place: &TrailPlace) -> Result<()> {
        let session = self.session_key(&place.session)?;
        let (key, unread) = self.trail_key(session, place.number)?;
        self.touched.insert(session);
        self.trail = Some(Trail {
            key,
            session,
            place: place.clone(),
            unread,
            damaged: (0, 0),
            waiting: HashMap::new(),
            calls: Calls::new(place.from > 0 || place.number > 0),
        });
        Ok(())
    }

    fn record(&mut self, said: &Said<'_>) -> Result<()> {
        match (said.kind, said.message) {
            (RecordKind::Message, Some(message)) => self.message(said, message)?,
            // The cost is recorded even if the message cannot be read.
            (RecordKind::Message, None) => {
                if let Some(trail) = &mut self.trail {
                    trail.spend_aside(said, None);
                }
            }
            (RecordKind::Compaction, _) => self.compaction(said),
            (RecordKind::Usage, _) => self.usage(said),
            _ => {}
        }
        Ok(())
    }

    fn damage(&mut self, before: u64, behind: u64) {
        if let Some(trail) = &mut self.trail {
            trail.damaged = (before, behind);
        }
    }

    fn end(&mut self, end: Option<End>) -> Result<()> {
        let Some(trail) = self.trail.take() else {
            return Ok(());
        };
        let writing = failed("cannot write to the catalogue");
        let mut insert = self
            .db
            .prepare_cached(
                "INSERT OR REPLACE INTO tool_calls (trail, seq, n, name, id)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .map_err(&writing)?;
        for (id, calls) in &trail.waiting {
            for (seq, n, name) in calls {
                let row = params![trail.key, seq, n, name, id];
                insert.execute(row).map_err(&writing)?;
            }
        }
        let written = trail
            .calls
            .write(self.db, trail.session, trail.key, self.prices)?;
        self.responses.extend(written);
        // If nothing new was found, the position of the last record stays.
        let mut update = self
            .db
            .prepare_cached(
                "UPDATE trails SET bytes = ?2, modified = ?3, read_to = coalesce(?4, read_to),
                 sum = coalesce(?5, sum), damaged = damaged + ?6, behind = ?7, unread = ?8
                 WHERE key = ?1",
            )
            .map_err(&writing)?;
        update
            .execute(params![
                trail.key,
                trail.place.bytes as i64,
                trail.place.modified,
                end.map(|end| end.byte as i64),
                end.map(|end| i64::from_be_bytes(end.sum)),
                trail.damaged.0 as i64,
                trail.damaged.1 as i64,
                i64::try_from(trail.unread).unwrap_or(i64::MAX),
            ])
            .map_err(&writing)?;
        Ok(())
    }
}

/// Records the result of a tool call: in the trail that is being read, otherwise in the
/// one before it.
fn answer(db: &Connection, trail: &mut Trail, result: &ToolResult) -> Result<()> {
    let writing = failed("cannot write a tool call to the catalogue");
    let id = result.tool_use_id.as_str();
    if let Some(calls) = trail.waiting.get_mut(id) {
        let (seq, n, name) = calls.remove(0);
        if calls.is_empty() {
            trail.waiting.remove(id);
        }
        let mut insert = db
            .prepare_cached(
                "INSERT OR REPLACE INTO tool_calls (trail, seq, n, name, id, failed)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .map_err(&writing)?;
        let row = params![trail.key, seq, n, name, id, result.is_error];
        insert.execute(row).map_err(&writing)?;
        return Ok(());
    }
    if trail.place.from == 0 && trail.place.number == 0 {
        return Ok(());
    }
    let mut update = db
        .prepare_cached(
            "UPDATE tool_calls SET failed = ?3 WHERE (trail, seq, n) IN (
                 SELECT c.trail, c.seq, c.n FROM trails AS t JOIN tool_calls AS c ON c.trail = t.key
                 WHERE t.session = ?1 AND c.id = ?2 AND c.failed IS NULL
                 ORDER BY t.number DESC, c.seq, c.n LIMIT 1)",
        )
        .map_err(&writing)?;
    let row = params![trail.session, id, result.is_error];
    update.execute(row).map_err(&writing)?;
    Ok(())
}

impl Trail {
    /// Records the usage of a message's model call, or counts the message for the next
    /// call.
    fn spend(&mut self, said: &Said<'_>, message: &Message, db: &Connection) -> Result<()> {
        let tokens = message.estimated_tokens();
        if message.role != Role::Assistant {
            self.unread = self.unread.saturating_add(tokens);
            self.spend_aside(said, message.usage.as_ref());
            return Ok(());
        }
        let read = if self.calls.is_new(said, db, self.session)? {
            std::mem::take(&mut self.unread)
        } else {
            0
        };
        let call = Call::new(said, message.usage.as_ref(), tokens.saturating_add(read));
        self.calls.add(call);
        Ok(())
    }

    /// Records the usage of a record that is not an assistant message.
    fn spend_aside(&mut self, said: &Said<'_>, usage: Option<&Usage>) {
        if usage.is_some() || said.details.cost_usd.is_some() {
            self.calls.add(Call::new(said, usage, 0));
        }
    }
}

/// Returns the beginning of a prompt on one line.
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
