//! Statistics of a session: how much was said and done, how long it took, what
//! it used and what it cost.
//!
//! They describe the whole line of history up to the head, and not what a model
//! would be sent now: what a compaction summarised has been used and paid for.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reader::SessionReader;
use super::spending::{Spending, Spent};
use super::turn::{Calls, Event, is_answer};
use crate::error::Result;
use crate::log::Records;
use crate::message::{Message, Role, Usage, estimated_tokens};
use crate::time::Timestamp;
use crate::trail::readable::Readable;
use crate::trail::{Details, RecordKind, RecordRef};

/// Statistics of a session.
///
/// # Turns and time
///
/// A turn is a prompt (a message of the user's that has anything in it but
/// results of tools) and all messages up to the next. The time spent is the sum
/// of the durations that were recorded; a turn in which no message has one counts
/// with the span from its first message to its last.
///
/// # Tokens
///
/// A *response* is what one model call gave: an assistant message, or several
/// with one response id, of which the last usage and the last cost count; and any
/// other message or compaction that carries a usage or a cost. Where its usage is
/// known, it is in [`usage`](Self::usage), and nowhere else. Where it is not, its
/// text (thinking, text and the input of tools) and that of the messages since
/// the assistant spoke last are in [`estimated_tokens`](Self::estimated_tokens):
/// one token for every four bytes, rounded up for each message. So is what no
/// answer follows yet. Images and other media are not estimated, nor is the
/// history that was sent again with each call: an estimate says rather too little.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Stats {
    /// When the first record was made; where that is not known, the session.
    pub started_at: Option<Timestamp>,
    /// When the last record was made.
    pub last_at: Option<Timestamp>,
    /// The messages.
    pub messages: MessageCounts,
    /// How many prompts there are, each with what answers it.
    pub turns: u64,
    /// How often tools were called.
    pub tool_calls: u64,
    /// How many of the calls failed.
    pub failed_tool_calls: u64,
    /// How many of the calls have no result.
    pub open_tool_calls: u64,
    /// How long it all took.
    pub time_spent_ms: u64,
    /// Whether a part of the time is the span of a turn, since no duration was
    /// recorded there.
    pub time_has_spans: bool,
    /// What was measured.
    pub usage: Usage,
    /// What is estimated, where nothing was measured.
    pub estimated_tokens: u64,
    /// What providers say it cost; `None` where none said anything.
    pub cost_usd: Option<f64>,
    /// How many responses there are.
    pub responses: u64,
    /// How many of them have no cost.
    pub responses_without_cost: u64,
    /// How many compactions there are.
    pub compactions: u64,
    /// The models that messages and compactions name, in alphabetical order.
    pub models: Vec<String>,
    /// How many places could not be read, messages of unknown shape or with a lost
    /// part included.
    pub damaged: u64,
    /// How many records of the history are gone, purged or emptied with the trash: what
    /// was said there is not counted.
    pub gone: u64,
}

/// How many messages there are, by who said them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MessageCounts {
    /// All messages.
    pub total: u64,
    /// Those of the role system.
    pub system: u64,
    /// Those of the role user, results of tools included.
    pub user: u64,
    /// Those of the role assistant.
    pub assistant: u64,
    /// Those of the role tool.
    pub tool: u64,
    /// Those of another role.
    pub other: u64,
    /// Those of the user that are prompts.
    pub prompts: u64,
    /// Those of the assistant that say something, and do not only call tools.
    pub answers: u64,
}

impl Stats {
    /// Returns how long it all took.
    pub fn time_spent(&self) -> Duration {
        Duration::from_millis(self.time_spent_ms)
    }
}

impl SessionReader {
    /// Returns the session's statistics, reading its history once.
    ///
    /// That takes constant memory, save for the distinct models and, for each
    /// response id, a hash of eight bytes: a response is counted once, however
    /// many records it has. Once 1,024 newer responses came, further records of
    /// it change nothing.
    pub fn stats(&self) -> Result<Stats> {
        self.tally(self.records()?)
    }

    /// Returns the statistics of the line that ended at a record of a trail.
    pub(crate) fn stats_at(&self, trail: u32, seq: u64) -> Result<Stats> {
        self.tally(self.log.records_until(trail, seq)?)
    }

    fn tally(&self, mut records: Records) -> Result<Stats> {
        let mut tally = Tally::default();
        while let Some(record) = records.next()? {
            tally.add(&record)?;
        }
        let mut stats = tally.finish();
        stats.damaged += records.damage().count();
        stats.gone = records.gone();
        if stats.started_at.is_none() {
            stats.started_at = self.info()?.created_at;
        }
        Ok(stats)
    }
}

/// Writes a duration as people say it: `42s`, `3m 7s`, `2h 5m`.
///
/// Smaller units are cut off, not rounded.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m {}s", seconds % 60),
        _ => format!("{hours}h {}m", minutes % 60),
    }
}

/// Statistics in the making.
#[derive(Debug, Default)]
struct Tally {
    stats: Stats,
    calls: Calls,
    answered: u64,
    spending: Spending,
    /// What was said since the assistant spoke last, in tokens.
    unread_tokens: u64,
    turn: Option<Turn>,
    span_ms: u64,
    models: BTreeSet<String>,
    /// Whether a record was counted yet.
    begun: bool,
}

impl Tally {
    fn add(&mut self, record: &RecordRef<'_>) -> Result<()> {
        let at = record.at();
        // Records of version 1 have no time: then the session began before any
        // that has.
        if !std::mem::replace(&mut self.begun, true) {
            self.stats.started_at = at;
        }
        self.stats.last_at = at.or(self.stats.last_at);
        match record.kind() {
            RecordKind::Message => self.add_message(record, at)?,
            RecordKind::Compaction => self.add_compaction(record),
            RecordKind::Usage => {
                let beside = record.beside();
                self.spend_aside(beside.usage.as_ref(), &beside.details);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_message(&mut self, record: &RecordRef<'_>, at: Option<Timestamp>) -> Result<()> {
        let details = record.details();
        let readable = record.readable()?;
        if !matches!(readable, Readable::Whole(_)) {
            self.stats.damaged += 1;
        }
        match readable {
            Readable::Whole(message) | Readable::InPart(message) => {
                self.count(&message);
                self.follow_calls(&message);
                self.spend(&message, &details);
            }
            // What it cost stands beside what cannot be read.
            _ => self.spend_aside(None, &details),
        }
        if let Some(turn) = &mut self.turn {
            turn.add(at, &details);
        }
        self.models.extend(details.model);
        Ok(())
    }

    fn count(&mut self, message: &Message) {
        let counts = &mut self.stats.messages;
        counts.total += 1;
        match message.role {
            Role::System => counts.system += 1,
            Role::User => counts.user += 1,
            Role::Assistant => counts.assistant += 1,
            Role::Tool => counts.tool += 1,
            Role::Other(_) => counts.other += 1,
        }
        if is_answer(message) {
            counts.answers += 1;
        }
    }

    fn follow_calls(&mut self, message: &Message) {
        let mut calls = std::mem::take(&mut self.calls);
        calls.take_in(message, |event| match event {
            Event::Prompt => self.begin_turn(),
            Event::Call(_) => self.stats.tool_calls += 1,
            Event::Result(_, result) => {
                self.answered += 1;
                self.stats.failed_tool_calls += u64::from(result.is_error);
            }
        });
        self.calls = calls;
    }

    fn begin_turn(&mut self) {
        self.end_turn();
        self.stats.messages.prompts += 1;
        self.stats.turns += 1;
        self.turn = Some(Turn::default());
    }

    fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.span_ms = self.span_ms.saturating_add(turn.span_ms());
        }
    }

    fn spend(&mut self, message: &Message, details: &Details) {
        let tokens = message.estimated_tokens();
        if message.role != Role::Assistant {
            // The next call reads it.
            self.unread_tokens = self.unread_tokens.saturating_add(tokens);
            return self.spend_aside(message.usage.as_ref(), details);
        }
        let response_id = details.response_id.as_deref();
        // What was said in the midst of a response, the next call reads.
        let read = if self.spending.is_new(response_id) {
            std::mem::take(&mut self.unread_tokens)
        } else {
            0
        };
        let spent = Spent::new(message.usage.as_ref(), tokens.saturating_add(read), details);
        self.spending.add(response_id, spent);
    }

    /// Counts what a record says was spent that is no word of the assistant's.
    fn spend_aside(&mut self, usage: Option<&Usage>, details: &Details) {
        if usage.is_none() && details.cost_usd.is_none() {
            return self.spending.add_duration(details.duration_ms);
        }
        let response_id = details.response_id.as_deref();
        self.spending
            .add(response_id, Spent::new(usage, 0, details));
    }

    /// Counts a compaction. It answers no prompt, so that it is in no turn.
    fn add_compaction(&mut self, record: &RecordRef<'_>) {
        self.stats.compactions += 1;
        let beside = record.beside();
        let details = beside.details;
        let tokens = beside
            .summary
            .map_or(0, |summary| estimated_tokens(&summary));
        let is_response = beside.usage.is_some() || details != Details::default();
        if is_response {
            let spent = Spent::new(beside.usage.as_ref(), tokens, &details);
            self.spending.add(details.response_id.as_deref(), spent);
        } else {
            // Nobody says that a model wrote it; but the next call reads it.
            self.unread_tokens = self.unread_tokens.saturating_add(tokens);
        }
        self.models.extend(details.model);
    }

    fn finish(mut self) -> Stats {
        self.end_turn();
        let total = self.spending.finish();
        Stats {
            open_tool_calls: self.stats.tool_calls - self.answered,
            time_spent_ms: total.duration_ms.saturating_add(self.span_ms),
            time_has_spans: self.span_ms > 0,
            usage: total.usage,
            estimated_tokens: total.estimated_tokens.saturating_add(self.unread_tokens),
            cost_usd: total.cost_usd,
            responses: total.responses,
            responses_without_cost: total.without_cost,
            models: self.models.into_iter().collect(),
            ..self.stats
        }
    }
}

/// The time of a turn.
#[derive(Debug, Default)]
struct Turn {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// Whether a message in it says how long it took.
    is_timed: bool,
}

impl Turn {
    fn add(&mut self, at: Option<Timestamp>, details: &Details) {
        self.first = self.first.or(at);
        self.last = at.or(self.last);
        self.is_timed |= details.duration_ms.is_some();
    }

    /// Returns the span of a turn that has no durations. A clock that was set
    /// back makes it 0 at the least.
    fn span_ms(&self) -> u64 {
        let (Some(first), Some(last), false) = (self.first, self.last, self.is_timed) else {
            return 0;
        };
        let span = last.as_millis().saturating_sub(first.as_millis());
        u64::try_from(span).unwrap_or(0)
    }
}
