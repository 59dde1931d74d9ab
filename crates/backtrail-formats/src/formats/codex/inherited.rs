//! Which part of a rollout is a copy of another one.
//!
//! A fork and a sub-agent begin with their parent's history: its items, its events and
//! its counts, written anew, mostly with the time of the copying. What was copied was
//! used by the parent. Newer rollouts say where their own part begins; in others it shows
//! by the ids of turns, which tell when a turn began, or by the first pause: a copy is
//! written in one go, and a person or a model takes longer.

use backtrail::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::json::Object;

/// The longest pause within a copy.
const PAUSE_MS: i64 = 1_000;

/// Where a rollout's own part begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Inherited {
    /// It began.
    #[default]
    Over,
    /// With the record of this number.
    Before(u64),
    /// It must show.
    Open(Signs),
}

/// What shows where a rollout's own part begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Signs {
    /// When the rollout's thread began, in milliseconds.
    began: Option<i64>,
    /// The time of the record before.
    before: Option<i64>,
    /// Whether turns have ids that tell their time.
    timed_turns: bool,
}

impl Inherited {
    /// Begins a copy whose end must show.
    pub(super) fn open(thread: &str, began: Option<Timestamp>) -> Self {
        Self::Open(Signs {
            began: time_of(thread).or(began.map(Timestamp::as_millis)),
            before: None,
            timed_turns: false,
        })
    }

    /// Returns whether the own part began.
    pub(super) fn is_over(&self) -> bool {
        *self == Self::Over
    }

    /// Takes the next record; returns whether it is copied.
    pub(super) fn covers(
        &mut self,
        ordinal: Option<u64>,
        at: Option<Timestamp>,
        payload: &Object,
    ) -> bool {
        let copied = match self {
            Self::Over => false,
            Self::Before(start) => ordinal.is_none_or(|ordinal| ordinal < *start),
            Self::Open(signs) => signs.cover(at.map(Timestamp::as_millis), payload),
        };
        if !copied {
            *self = Self::Over;
        }
        copied
    }
}

impl Signs {
    fn cover(&mut self, at: Option<i64>, payload: &Object) -> bool {
        if let Some(turn) = turn_of(payload) {
            self.timed_turns = true;
            self.before = at.or(self.before);
            return self.began.is_none_or(|began| turn < began);
        }
        let Some(at) = at else {
            return true;
        };
        let before = self.before.replace(at);
        // A copy may have kept the times of what it copied.
        let is_older = self.began.is_some_and(|began| at < began);
        let pause = before.is_some_and(|before| at.saturating_sub(before) > PAUSE_MS);
        self.timed_turns || is_older || !pause
    }
}

/// Returns when the turn of a record began, where its id tells.
fn turn_of(payload: &Object) -> Option<i64> {
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
