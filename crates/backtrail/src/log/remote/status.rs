//! What a session knows of its replica without asking.

use super::{Shared, Until};
use crate::error::{Error, ErrorKind};
use crate::replica::{Refusal, ReplicaError, ReplicaErrorKind};

/// How long a replica that is away is left alone by a session that goes on without it.
const PAUSE_MS: u64 = 1000;
const LONGEST_PAUSE_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(super) struct Status {
    /// The error of everything from now on.
    stopped: Option<Error>,
    /// Why the replica lacks lines that were acknowledged.
    behind: Option<Error>,
    /// Until when a replica that is away is not asked, and for how long the last time.
    away_until: u64,
    pause_ms: u64,
    /// The end of what is to be sent.
    until: Option<Until>,
}

impl Status {
    pub(super) fn stopped(&self) -> Option<Error> {
        self.stopped.as_ref().map(Error::duplicate)
    }

    pub(super) fn behind(&self) -> Option<Error> {
        self.behind.as_ref().map(Error::duplicate)
    }

    /// Returns whether the replica is left alone for now.
    pub(super) fn pauses(&self, now_ms: u64) -> bool {
        self.behind.is_some() && now_ms < self.away_until
    }

    pub(super) fn stop(&mut self, error: &Error) {
        self.stopped = Some(error.duplicate());
    }

    pub(super) fn is_behind(&mut self, error: Error, now_ms: u64) {
        self.behind = Some(error);
        self.pause_ms = (self.pause_ms * 2).clamp(PAUSE_MS, LONGEST_PAUSE_MS);
        self.away_until = now_ms.saturating_add(self.pause_ms);
    }

    /// Takes note of what is to be sent now.
    pub(super) fn wants(&mut self, until: Until) {
        self.until = Some(until);
    }

    /// Takes note that the replica has everything up to a place.
    pub(super) fn has_all(&mut self, until: Until) {
        self.away_until = 0;
        self.pause_ms = 0;
        if self.until == Some(until) {
            self.behind = None;
        }
    }

    /// Returns up to where a session that is behind tries to catch up now.
    pub(super) fn catches_up(&self, now_ms: u64) -> Option<Until> {
        self.until
            .filter(|_| self.behind.is_some() && !self.pauses(now_ms))
    }
}

/// The error of a session that is not written to at a remote. Of one that is open here, another
/// machine took over the writing.
pub(super) fn stop_error(shared: &Shared, refusal: &Refusal, is_open: bool) -> Error {
    let continued = match refusal {
        _ if !is_open => None,
        Refusal::Held(lease) | Refusal::Fenced(Some(lease)) => Some(lease.holder.as_str()),
        Refusal::Fenced(None) | Refusal::Ahead | Refusal::Diverged { .. } => {
            Some("another machine")
        }
        _ => None,
    };
    let refusal = refusal.clone();
    let Some(by) = continued else {
        let name = &shared.remote.name;
        return refusal
            .of(&shared.key)
            .with_note(format!("the remote is {name}"));
    };
    let (id, name) = (&shared.key.id, &shared.remote.name);
    let what = format!("{by} took over session {id} at remote {name}; pull it to continue here");
    Error::refused(ErrorKind::Fenced, what, refusal)
}

/// The error of a request without an answer.
pub(super) fn unanswered(shared: &Shared, error: ReplicaError) -> Error {
    let what = match error.kind {
        ReplicaErrorKind::Away => "cannot be reached",
        ReplicaErrorKind::Corrupt => "is damaged",
        ReplicaErrorKind::Denied => "refuses this client",
        ReplicaErrorKind::Unfit => "cannot be used",
    };
    let name = &shared.remote.name;
    let message = format!("remote {name} {what}: {}", error.message);
    Error::from(ReplicaError { message, ..error })
}
