//! Which part of a rollout is a copy of another one.
//!
//! A fork and a sub-agent start with their parent's history: its items, events and token
//! counts, mostly with the time of the copying. The parent used those tokens. Newer rollouts
//! say where their own part starts. In others, the ids of turns show it, since they contain
//! the time of the turn, or the first pause: a copy is written in one go, while a person or a
//! model takes longer.

use backtrail::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::json::Object;

/// The longest pause within a copy.
const PAUSE_MS: i64 = 1_000;

/// Where a rollout's own part starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Inherited {
    /// It has started.
    #[default]
    Over,
    /// With the record of this number.
    Before(u64),
    /// The records must show it.
    Open(Signs),
}

/// What shows where a rollout's own part starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Signs {
    /// When the rollout's thread started, in milliseconds.
    began: Option<i64>,
    /// The time of the record before.
    before: Option<i64>,
    /// Whether the ids of turns contain times.
    timed_turns: bool,
    /// Whether there is a copy at all.
    is_copy: bool,
}

impl Inherited {
    /// Starts a part that is or may be a copy.
    pub(super) fn open(thread: &str, began: Option<Timestamp>, is_copy: bool) -> Self {
        Self::Open(Signs {
            began: time_of(thread).or(began.map(Timestamp::as_millis)),
            before: None,
            timed_turns: false,
            is_copy,
        })
    }

    /// Returns whether the own part has started.
    pub(super) fn is_over(&self) -> bool {
        *self == Self::Over
    }

    /// Returns whether the next record is copied.
    pub(super) fn covers(
        &mut self,
        ordinal: Option<u64>,
        at: Option<Timestamp>,
        payload: &Object<'_>,
    ) -> bool {
        let part = match self {
            Self::Over => Part::Own,
            Self::Before(start) if ordinal.is_none_or(|ordinal| ordinal < *start) => Part::Copied,
            Self::Before(_) => Part::Own,
            Self::Open(signs) => signs.part(at.map(Timestamp::as_millis), payload),
        };
        if part == Part::Own {
            *self = Self::Over;
        }
        part == Part::Copied
    }
}

/// The part that a record belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Copied,
    /// Own, unless a later record shows that it was copied.
    Unclear,
    Own,
}

impl Signs {
    fn part(&mut self, at: Option<i64>, payload: &Object<'_>) -> Part {
        let before = self.before;
        self.before = at.or(before);
        if let Some(turn) = turn_of(payload) {
            self.timed_turns = true;
            return match self.began.is_none_or(|began| turn < began) {
                true => self.copied(),
                false => Part::Own,
            };
        }
        // A copy may have kept the original times.
        if at.zip(self.began).is_some_and(|(at, began)| at < began) {
            return self.copied();
        }
        let is_count = payload
            .string("type")
            .is_some_and(|kind| kind == "token_count");
        if !self.is_copy {
            return if is_count { Part::Own } else { Part::Unclear };
        }
        let pause = at.zip(before).map(|(at, before)| at.saturating_sub(before));
        match pause.is_some_and(|pause| pause > PAUSE_MS) && !self.timed_turns {
            true => Part::Own,
            false => Part::Copied,
        }
    }

    fn copied(&mut self) -> Part {
        self.is_copy = true;
        Part::Copied
    }
}

/// Returns when the turn of a record started, if its id tells.
fn turn_of(payload: &Object<'_>) -> Option<i64> {
    let passed = || payload.object("internal_chat_message_metadata_passthrough");
    match payload.string("turn_id") {
        Some(turn) => time_of(&turn),
        None => time_of(&passed()?.string("turn_id")?),
    }
}

/// Returns the time in an id, in milliseconds.
fn time_of(id: &str) -> Option<i64> {
    let id = Uuid::try_parse(id).ok()?;
    let millis = i64::try_from(id.as_u128() >> 80).ok()?;
    (id.get_version_num() == 7).then_some(millis)
}
