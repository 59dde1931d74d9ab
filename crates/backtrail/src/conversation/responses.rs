//! Spending: counts each response of a provider once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use super::record::ReadRecord;
use crate::message::{Details, Role, Usage, estimated_tokens};
use crate::time::Timestamp;
use crate::trail::RecordKind;
use crate::trail::sum::Sum;

/// How many responses stay open for further records.
const OPEN: usize = 1_024;

/// The usage, duration and cost of one model call, from all its records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Response {
    /// The provider's id; `None` for a record that is a response by itself.
    pub id: Option<String>,
    /// The seq of its last record.
    pub seq: u64,
    /// When its first record was made.
    pub at: Option<Timestamp>,
    /// The model.
    pub model: Option<String>,
    /// Whether it wrote the summary of a compaction.
    pub is_compaction: bool,
    /// The usage in its last record that has one.
    pub usage: Option<Usage>,
    /// The estimated tokens of its texts, which count only without a usage.
    pub estimated_tokens: u64,
    /// The duration of the call.
    pub duration_ms: Option<u64>,
    /// The cost that the provider reports.
    pub cost_usd: Option<f64>,
}

impl Response {
    fn new(record: &ReadRecord<'_>, usage: Option<&Usage>, estimated_tokens: u64) -> Self {
        let details = &record.details;
        Self {
            id: details.response_id.clone(),
            seq: record.seq,
            at: record.at,
            model: details.model.clone(),
            is_compaction: record.kind == RecordKind::Compaction,
            // A sum with one usage has no unknown fields.
            usage: usage.map(|usage| {
                let mut counters = Usage::default();
                counters.add(usage);
                counters
            }),
            estimated_tokens,
            duration_ms: details.duration_ms,
            cost_usd: details.cost_usd,
        }
    }

    /// Returns whether one of its records has a usage or a cost.
    pub fn is_measured(&self) -> bool {
        self.usage.is_some() || self.cost_usd.is_some()
    }

    /// Adds a later record of the same response: the last usage, cost, duration and model
    /// count, and the texts of all records.
    fn update(&mut self, later: Self) {
        self.usage = later.usage.or(self.usage.take());
        self.duration_ms = later.duration_ms.or(self.duration_ms);
        self.cost_usd = later.cost_usd.or(self.cost_usd);
        self.model = later.model.or(self.model.take());
        self.estimated_tokens = self.estimated_tokens.saturating_add(later.estimated_tokens);
        self.at = self.at.or(later.at);
        self.seq = later.seq;
    }
}

/// Counts the responses of a conversation, each once, however many records it has.
///
/// A provider's response often has several records, each of which repeats its usage, or the
/// usage so far: the last one counts. A response stays open until there are 1,024 newer
/// ones. Then it is finished: only a hash of its id is kept, and further records of it are
/// ignored.
///
/// A record without a response id is a response by itself if it is the assistant's, or if
/// it has a usage or a cost.
///
/// # Estimates
///
/// A response without a usage is estimated by its texts and those of the messages since the
/// assistant's last message: one token for every four bytes, rounded up for each
/// message.
#[derive(Debug, Default)]
pub struct ResponseCounter {
    open: HashMap<Sum, Response>,
    /// The ids in `open`, oldest first.
    order: VecDeque<Sum>,
    closed: HashSet<Sum>,
    finished: Vec<Response>,
    unread_tokens: u64,
    other_ms: u64,
}

impl ResponseCounter {
    /// Creates a counter that begins with this many tokens that no call has read yet.
    pub fn with_unread_tokens(unread_tokens: u64) -> Self {
        Self {
            unread_tokens,
            ..Self::default()
        }
    }

    /// Counts a record.
    pub fn add(&mut self, record: &ReadRecord<'_>) {
        let nothing_before = |_: &str| Ok::<_, Infallible>(None);
        match self.add_to(record, nothing_before) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Counts a record when earlier responses may already be counted: `earlier` returns the
    /// known state of the response with this id.
    ///
    /// # Errors
    ///
    /// Fails if `earlier` fails.
    pub fn add_to<E>(
        &mut self,
        record: &ReadRecord<'_>,
        earlier: impl FnOnce(&str) -> Result<Option<Response>, E>,
    ) -> Result<(), E> {
        match (record.kind, &record.message) {
            (RecordKind::Message, Some(message)) if message.role == Role::Assistant => {
                let tokens = message.estimated_tokens();
                let response = Response::new(record, message.usage.as_ref(), tokens);
                self.count(response, Reads::Unread, earlier)
            }
            (RecordKind::Message, message) => {
                if let Some(message) = message {
                    // The next call reads it.
                    self.add_unread(message.estimated_tokens());
                }
                let usage = message.as_ref().and_then(|message| message.usage.as_ref());
                self.count_aside(Response::new(record, usage, 0), earlier)
            }
            (RecordKind::Compaction, _) => {
                let tokens = record.summary.as_deref().map_or(0, estimated_tokens);
                if record.usage.is_none() && record.details == Details::default() {
                    // It may not be a model's, but the next call reads it.
                    self.add_unread(tokens);
                    return Ok(());
                }
                let response = Response::new(record, record.usage.as_ref(), tokens);
                self.count(response, Reads::Nothing, earlier)
            }
            (RecordKind::Usage, _) => {
                let response = Response::new(record, record.usage.as_ref(), 0);
                self.count_aside(response, earlier)
            }
            _ => Ok(()),
        }
    }

    /// Returns an open response.
    pub(super) fn get(&self, id: &str) -> Option<&Response> {
        self.open.get(&key(id))
    }

    /// Returns the tokens that no call has read yet.
    pub fn unread_tokens(&self) -> u64 {
        self.unread_tokens
    }

    /// Removes and returns the finished responses.
    pub fn take_finished(&mut self) -> Vec<Response> {
        std::mem::take(&mut self.finished)
    }

    /// Finishes all responses, and returns those that were not returned yet.
    pub fn finish(&mut self) -> Vec<Response> {
        while !self.order.is_empty() {
            self.close_oldest();
        }
        self.take_finished()
    }

    /// Forgets what was counted so far, except which responses there were: further records of
    /// those are ignored. Their texts were not read by a call yet, or count elsewhere.
    pub(super) fn start_over(&mut self) {
        self.finish();
        self.other_ms = 0;
        self.unread_tokens = 0;
    }

    /// Returns the duration of work other than model calls.
    pub(super) fn other_ms(&self) -> u64 {
        self.other_ms
    }

    fn add_unread(&mut self, tokens: u64) {
        self.unread_tokens = self.unread_tokens.saturating_add(tokens);
    }

    /// Counts the usage and cost in a message that is not the assistant's.
    fn count_aside<E>(
        &mut self,
        response: Response,
        earlier: impl FnOnce(&str) -> Result<Option<Response>, E>,
    ) -> Result<(), E> {
        if !response.is_measured() {
            let duration_ms = response.duration_ms.unwrap_or(0);
            self.other_ms = self.other_ms.saturating_add(duration_ms);
            return Ok(());
        }
        self.count(response, Reads::Nothing, earlier)
    }

    fn count<E>(
        &mut self,
        mut response: Response,
        reads: Reads,
        earlier: impl FnOnce(&str) -> Result<Option<Response>, E>,
    ) -> Result<(), E> {
        let Some(id) = &response.id else {
            self.read_unread(&mut response, reads);
            self.finished.push(response);
            return Ok(());
        };
        let key = key(id);
        if let Some(open) = self.open.get_mut(&key) {
            open.update(response);
            return Ok(());
        }
        if self.closed.contains(&key) {
            return Ok(());
        }
        match earlier(id)? {
            Some(mut known) => {
                known.update(response);
                self.open.insert(key, known);
            }
            None => {
                self.read_unread(&mut response, reads);
                self.open.insert(key, response);
            }
        }
        self.order.push_back(key);
        if self.order.len() > OPEN {
            self.close_oldest();
        }
        Ok(())
    }

    /// The model call of an assistant's response read the messages before its first record.
    /// Messages in the middle of a response are read by the next call.
    fn read_unread(&mut self, response: &mut Response, reads: Reads) {
        if reads == Reads::Unread {
            let read = std::mem::take(&mut self.unread_tokens);
            response.estimated_tokens = response.estimated_tokens.saturating_add(read);
        }
    }

    fn close_oldest(&mut self) {
        if let Some(id) = self.order.pop_front()
            && let Some(response) = self.open.remove(&id)
        {
            self.finished.push(response);
            self.closed.insert(id);
        }
    }
}

/// What the call of a response reads, for estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    Unread,
}

/// Identifies an id by a hash of eight bytes: among a million of them, the chance of any
/// collision is one in thirty million.
fn key(response_id: &str) -> Sum {
    Sum::of(response_id.as_bytes())
}
