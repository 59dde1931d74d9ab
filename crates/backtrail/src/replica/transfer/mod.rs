//! Pushes and pulls sessions: reads and writes the store as the machines ask, and asks the
//! replica.

mod delete;
mod fork;
mod pull;
mod push;
mod relatives;
mod verify;

pub use delete::{delete_there, purge_there, restore_there, sessions_there};
pub use fork::PushedFork;
pub use push::OnProgress;
pub use verify::{Depth, LinePlace, LinePlaces, ReplicaReport};

use std::time::Duration;

use serde::Serialize;

use super::wire::{ReplicaError, ReplicaErrorKind};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::trail::DamageReport;

/// Options of a push.
#[derive(Debug, Clone)]
pub struct PushOptions {
    holder: String,
    ttl: Duration,
}

impl PushOptions {
    /// For how long a push may be silent before another writer can take its lease.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(30);

    /// Creates options for a push by `holder`: who pushes, in words for people. Two processes
    /// must not have the same, nor a push and a writer of this process: the second would fence
    /// the first.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            ttl: Self::DEFAULT_TTL,
        }
    }

    /// Sets for how long the lease is taken, and prolonged with each append.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    fn ttl_ms(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Options of a pull.
#[derive(Debug, Clone, Default)]
pub struct PullOptions {
    purged: bool,
}

impl PullOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pulls the named sessions even if they were purged here.
    #[must_use]
    pub fn even_purged(mut self) -> Self {
        self.purged = true;
        self
    }
}

/// Why a session is pushed or pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The caller named it.
    Named,
    /// Another one was forked from it.
    Ancestor,
    /// A tool call of another one started it.
    SubAgent,
}

/// How far a push or pull is, in one session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferProgress {
    /// The session.
    pub session: SessionId,
    /// How many bytes of it were sent or fetched, payloads included.
    pub done: u64,
    /// How many it will be, as far as that is known: payloads count once a line that names them
    /// was read.
    pub total: u64,
}

/// What was sent of a session, or fetched.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Transferred {
    /// Whether the session is new where it went.
    pub is_new: bool,
    /// How many lines, openers included.
    pub lines: u64,
    /// How many bytes these have.
    pub bytes: u64,
    /// How many payloads, without those that were there already.
    pub payloads: u64,
    /// How many bytes these have.
    pub payload_bytes: u64,
    /// Lines that were not sent: damaged here, or out of order.
    pub skipped: DamageReport,
    /// Lines that were not fetched: damaged there.
    pub damaged_there: u64,
    /// Payloads that the lines name, and that are lost or damaged where they come from.
    pub lost_payloads: Vec<String>,
}

impl Transferred {
    /// Returns whether there was nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.lines == 0 && self.payloads == 0
    }
}

/// A session that was pushed or pulled, or why it was not.
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionTransfer {
    /// The session.
    pub id: SessionId,
    /// Why it came along.
    pub role: Role,
    /// What was sent or fetched.
    pub outcome: Result<Transferred>,
}

/// What a push or pull did: each session after those that it continues.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Transfer {
    /// The sessions. If the replica was away or denied something, those after it are missing.
    pub sessions: Vec<SessionTransfer>,
}

impl Transfer {
    /// Returns what became of a session.
    pub fn of(&self, id: &SessionId) -> Option<&Result<Transferred>> {
        let found = self.sessions.iter().find(|session| session.id == *id);
        found.map(|session| &session.outcome)
    }

    /// Returns itself, unless a session that the caller named failed, or the replica was away or
    /// denied something, so that sessions are missing.
    ///
    /// # Errors
    ///
    /// Fails with the first error of that kind.
    pub fn check(mut self) -> Result<Self> {
        let failed = |session: &SessionTransfer| match &session.outcome {
            Ok(_) => false,
            Err(error) => session.role == Role::Named || ends_all(error),
        };
        let Some(at) = self.sessions.iter().position(failed) else {
            return Ok(self);
        };
        self.sessions.swap_remove(at).outcome.map(|_| self)
    }
}

/// Adds to an error of the replica what was attempted.
fn while_doing(doing: &str, id: &SessionId) -> impl Fn(ReplicaError) -> Error {
    let what = format!("cannot {doing} session {id}");
    move |error| {
        let ReplicaError { kind, message } = error;
        Error::from(ReplicaError {
            kind,
            message: format!("{what}: {message}"),
        })
    }
}

/// Returns whether nothing else can be asked of the replica either.
fn ends_all(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Away | ErrorKind::Denied)
}

/// Returns whether only what was asked for is damaged at the replica.
fn is_damage(error: &ReplicaError) -> bool {
    error.kind == ReplicaErrorKind::Corrupt
}
