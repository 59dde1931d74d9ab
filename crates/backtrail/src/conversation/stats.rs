//! Statistics of a session: messages, tool calls, time, tokens and cost.
//!
//! They cover the whole line of history up to the head, not just the present context:
//! messages that a compaction summarised have been used and paid for. What a fork inherits
//! was paid for by its parent.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::calls::{CallVisitor, Calls};
use super::record::{MessageParts, ReadRecord, is_answer};
use super::responses::{Response, ResponseCounter};
use crate::error::Result;
use crate::log::Records;
use crate::message::{Details, Message, Role, ToolResult, ToolUse, Usage};
use crate::session::SessionReader;
use crate::time::Timestamp;
use crate::trail::RecordKind;
#[cfg(feature = "snapshots")]
use crate::workspace::Checkpoint;

/// Statistics of a session.
///
/// # Forks
///
/// Messages, turns and tool calls are those of the conversation, with the part that a fork
/// inherits. Time, tokens, cost and responses are what the session itself spent: what it
/// inherits was spent by its parent, and counts there.
///
/// # Turns and time
///
/// A turn is a prompt ([`Message::is_prompt`]) and all messages up to the next. The time
/// spent is the sum of the durations that were recorded; a turn in which no message has
/// one counts with the span from its first message to its last.
///
/// # Tokens
///
/// A *response* is the output of one model call: an assistant message, or several with one
/// response id, of which the last usage and the last cost count; and any other message or
/// compaction that has a usage or a cost. If its usage is known, it is in
/// [`usage`](Self::usage), and nowhere else. Otherwise its text (thinking, text and the
/// input of tools) and that of the messages since the assistant's last message are in
/// [`estimated_tokens`](Self::estimated_tokens): one token for every four bytes, rounded
/// up for each message. So are messages without an answer yet. Images and other media are
/// not estimated, nor is the history that is sent again with each call, so estimates are
/// rather low.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Stats {
    /// When the first record was made, or the session if no record has a time.
    pub started_at: Option<Timestamp>,
    /// When the last record was made.
    pub last_at: Option<Timestamp>,
    /// The messages.
    pub messages: MessageCounts,
    /// How many prompts there are.
    pub turns: u64,
    /// How often tools were called.
    pub tool_calls: u64,
    /// How many of the calls failed.
    pub failed_tool_calls: u64,
    /// How many of the calls have no result.
    pub open_tool_calls: u64,
    /// The time spent.
    pub time_spent_ms: u64,
    /// Whether a part of the time is the span of a turn, because no duration was
    /// recorded there.
    pub time_has_spans: bool,
    /// The measured usage of responses.
    pub usage: Usage,
    /// The estimated tokens of responses without a usage.
    pub estimated_tokens: u64,
    /// The cost that providers report; `None` if none does.
    pub cost_usd: Option<f64>,
    /// How many responses there are.
    pub responses: u64,
    /// How many of them have no cost.
    pub responses_without_cost: u64,
    /// How many compactions there are.
    pub compactions: u64,
    /// The models that messages and compactions name, in alphabetical order.
    pub models: Vec<String>,
    /// How many places could not be read, including messages of unknown shape or with a lost
    /// part.
    pub damaged: u64,
    /// How many records of the history are gone, purged or removed with the trash: they
    /// are not counted.
    pub gone: u64,
}

/// The number of messages by role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MessageCounts {
    /// All messages.
    pub total: u64,
    /// Those with the role system.
    pub system: u64,
    /// Those with the role user, including tool results.
    pub user: u64,
    /// Those with the role assistant.
    pub assistant: u64,
    /// Those with the role tool.
    pub tool: u64,
    /// Those with another role.
    pub other: u64,
    /// User messages that are prompts.
    pub prompts: u64,
    /// Assistant messages with text, not only tool calls.
    pub answers: u64,
}

impl Stats {
    /// Returns the time spent.
    pub fn time_spent(&self) -> Duration {
        Duration::from_millis(self.time_spent_ms)
    }
}

/// A session's statistics, and where its turns begin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionSurvey {
    /// The statistics.
    pub stats: Stats,
    /// The seqs at which turns begin.
    pub turns: Vec<u64>,
}

impl SessionReader {
    /// Returns the session's statistics, reading its history once.
    ///
    /// That takes constant memory, apart from the distinct models and, for each response id, a
    /// hash of eight bytes: a response is counted once, however many records it has. After
    /// 1,024 newer responses, further records of it are ignored.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn stats(&self) -> Result<Stats> {
        self.survey(|_| {}).map(|survey| survey.stats)
    }

    /// Returns the session's statistics and where its turns begin, reading its history
    /// once; `each` receives the responses that the statistics count.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn survey(&self, each: impl FnMut(Response)) -> Result<SessionSurvey> {
        self.survey_of(self.records()?, each)
    }

    /// Returns the statistics of the line that ended at a record of a trail.
    fn stats_at(&self, trail: u32, seq: u64) -> Result<Stats> {
        let records = self.log.records_until(trail, seq)?;
        self.survey_of(records, |_| {}).map(|survey| survey.stats)
    }

    fn survey_of(
        &self,
        mut records: Records,
        mut each: impl FnMut(Response),
    ) -> Result<SessionSurvey> {
        let mut tally = Tally::default();
        let mut counter = ResponseCounter::default();
        let inherited = records.inherited_until();
        while let Some(record) = records.next()? {
            let record = ReadRecord::of(&record, MessageParts::All)?;
            let is_own = inherited.is_none_or(|until| record.seq > until);
            if is_own && !std::mem::replace(&mut tally.has_own, true) {
                // Responses that the parent began are the parent's.
                counter.start_over();
                tally.spend_nothing();
            }
            tally.add(&record);
            counter.add(&record);
            for response in counter.take_finished().into_iter().filter(|_| is_own) {
                tally.spend(&response);
                each(response);
            }
        }
        if !tally.has_own {
            counter.start_over();
            tally.spend_nothing();
        }
        for response in counter.finish() {
            tally.spend(&response);
            each(response);
        }
        let mut survey = tally.finish(&counter);
        survey.stats.damaged += records.damage().count();
        survey.stats.gone = records.gone();
        if survey.stats.started_at.is_none() {
            survey.stats.started_at = self.info()?.created_at;
        }
        Ok(survey)
    }
}

#[cfg(feature = "snapshots")]
impl Checkpoint {
    /// Returns the statistics of its session at that time; `None` if it belongs to
    /// none.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read.
    pub fn stats(&self) -> Result<Option<Stats>> {
        let Some(place) = self.session() else {
            return Ok(None);
        };
        let reader = self.workspace.store().read_anywhere(&place.id)?;
        reader.stats_at(place.trail, place.seq).map(Some)
    }
}

/// Formats a duration: `42s`, `3m 7s`, `2h 5m`.
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

/// Collects statistics.
#[derive(Debug, Default)]
struct Tally {
    stats: Stats,
    turns: Vec<u64>,
    calls: Calls<()>,
    answered: u64,
    turn: Option<TurnTime>,
    span_ms: u64,
    models: BTreeSet<String>,
    has_records: bool,
    /// Whether a record of the session itself was read, and not only inherited ones.
    has_own: bool,
    /// The current record.
    seq: u64,
}

impl Tally {
    fn add(&mut self, record: &ReadRecord<'_>) {
        let at = record.at;
        self.seq = record.seq;
        // Records of version 1 have no time: then the session began before the first
        // record with one.
        if !std::mem::replace(&mut self.has_records, true) {
            self.stats.started_at = at;
        }
        self.stats.last_at = at.or(self.stats.last_at);
        match record.kind {
            RecordKind::Message => self.add_message(record),
            RecordKind::Compaction => {
                // It answers no prompt, so it is in no turn.
                self.stats.compactions += 1;
                self.models.extend(record.details.model.clone());
            }
            _ => {}
        }
    }

    fn add_message(&mut self, record: &ReadRecord<'_>) {
        self.stats.damaged += u64::from(record.is_incomplete);
        if let Some(message) = &record.message {
            self.count(message);
            let mut calls = std::mem::take(&mut self.calls);
            calls.read(message, self);
            self.calls = calls;
        }
        if let Some(turn) = &mut self.turn {
            turn.add(record.at, &record.details);
        }
        self.models.extend(record.details.model.clone());
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

    fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.span_ms = self.span_ms.saturating_add(turn.span_ms());
        }
    }

    /// Forgets the time that was spent: by the parent of a fork.
    fn spend_nothing(&mut self) {
        self.span_ms = 0;
        self.turn = self.turn.take().map(|_| TurnTime::default());
    }

    fn spend(&mut self, response: &Response) {
        let stats = &mut self.stats;
        stats.responses += 1;
        match &response.usage {
            Some(usage) => stats.usage.add(usage),
            None => {
                stats.estimated_tokens = stats
                    .estimated_tokens
                    .saturating_add(response.estimated_tokens);
            }
        }
        match response.cost_usd {
            // Stays a number even if the largest possible cost was recorded twice.
            Some(cost) => {
                stats.cost_usd = Some((stats.cost_usd.unwrap_or(0.0) + cost).min(f64::MAX));
            }
            None => stats.responses_without_cost += 1,
        }
        let duration_ms = response.duration_ms.unwrap_or(0);
        stats.time_spent_ms = stats.time_spent_ms.saturating_add(duration_ms);
    }

    fn finish(mut self, counter: &ResponseCounter) -> SessionSurvey {
        self.end_turn();
        let stats = self.stats;
        let time_spent_ms = stats.time_spent_ms.saturating_add(counter.other_ms());
        let unread = counter.unread_tokens();
        SessionSurvey {
            stats: Stats {
                open_tool_calls: stats.tool_calls - self.answered,
                time_spent_ms: time_spent_ms.saturating_add(self.span_ms),
                time_has_spans: self.span_ms > 0,
                estimated_tokens: stats.estimated_tokens.saturating_add(unread),
                models: self.models.into_iter().collect(),
                ..stats
            },
            turns: self.turns,
        }
    }
}

impl CallVisitor for Tally {
    type Call = ();

    fn prompt(&mut self) {
        self.end_turn();
        self.stats.messages.prompts += 1;
        self.stats.turns += 1;
        self.turns.push(self.seq);
        self.turn = Some(TurnTime::default());
    }

    fn call(&mut self, _call: &ToolUse) {
        self.stats.tool_calls += 1;
    }

    fn result(&mut self, call: Option<()>, result: &ToolResult) {
        if call.is_some() {
            self.answered += 1;
            self.stats.failed_tool_calls += u64::from(result.is_error);
        }
    }
}

/// The time of a turn.
#[derive(Debug, Default)]
struct TurnTime {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// Whether one of its messages has a duration.
    is_timed: bool,
}

impl TurnTime {
    fn add(&mut self, at: Option<Timestamp>, details: &Details) {
        self.first = self.first.or(at);
        self.last = at.or(self.last);
        self.is_timed |= details.duration_ms.is_some();
    }

    /// Returns the span of a turn that has no durations; 0 if the clock was set back.
    fn span_ms(&self) -> u64 {
        let (Some(first), Some(last), false) = (self.first, self.last, self.is_timed) else {
            return 0;
        };
        let span = last.as_millis().saturating_sub(first.as_millis());
        u64::try_from(span).unwrap_or(0)
    }
}
