//! Why a session is neither pushed nor pulled.

use serde::Serialize;

use super::wire::{Lease, LogKey, ReplicaError, ReplicaErrorKind};
use crate::error::{Error, ErrorKind};
use crate::ids::SessionId;
use crate::time::Timestamp;

/// Why a session is neither pushed nor pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It was continued here and there. It is never merged; it can be pushed as a fork.
    Diverged {
        /// The last record that both have; `None` if they have none in common, or if a writer
        /// noticed it, which does not look for it.
        common: Option<LastCommon>,
    },
    /// The replica has records that are not here, which must be pulled first.
    Ahead,
    /// Another writer has the lease.
    Held(Lease),
    /// Another writer took the lease meanwhile. What was sent before is there.
    Fenced(Option<Lease>),
    /// There is no such session at the replica.
    NotThere,
    /// The replica has it in its trash, since then in milliseconds since 1970.
    InTrashThere(i64),
    /// It was purged at the replica, at that time in milliseconds since 1970: its id is never
    /// accepted again.
    PurgedThere(i64),
    /// One of its trails is a file of version 1, which has no sums.
    Version1,
}

/// The last record that a session has here and at a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LastCommon {
    /// Its trail.
    pub trail: u32,
    /// Its number.
    pub seq: u64,
}

impl Refusal {
    /// Creates the error for a session.
    pub(crate) fn of(self, log: &LogKey) -> Error {
        let message = self.message(&log.id);
        Error::refused(self.kind(), message, self)
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Diverged { .. } | Self::Ahead => ErrorKind::Conflict,
            Self::Held(_) | Self::Fenced(_) => ErrorKind::Locked,
            Self::NotThere | Self::InTrashThere(_) | Self::PurgedThere(_) => ErrorKind::NotFound,
            Self::Version1 => ErrorKind::Invalid,
        }
    }

    fn message(&self, id: &SessionId) -> String {
        match self {
            Self::Diverged { common: Some(it) } => format!(
                "session {id} was continued both here and there after record {} of trail {}; \
                 push what is here as a fork",
                it.seq, it.trail
            ),
            Self::Diverged { common: None } => {
                format!(
                    "session {id} was continued both here and there; push what is here as a fork"
                )
            }
            Self::Ahead => {
                format!("session {id} has records there that are not here; pull it first")
            }
            Self::Held(lease) => format!(
                "session {id} is being written to by {} (for {} s, unless it is renewed)",
                lease.holder,
                lease.left_ms.div_ceil(1000)
            ),
            Self::Fenced(Some(lease)) => format!(
                "{} took over the writing to session {id}; try again",
                lease.holder
            ),
            Self::Fenced(None) => {
                format!("another writer took over the writing to session {id}; try again")
            }
            Self::NotThere => format!("there is no session {id} there"),
            Self::InTrashThere(at) => {
                format!(
                    "session {id} is in the trash there{}; restore it first",
                    since(*at)
                )
            }
            Self::PurgedThere(at) => format!(
                "session {id} was purged there{}; its id is not accepted again",
                since(*at)
            ),
            Self::Version1 => format!(
                "session {id} has a file of version 1, which cannot be pushed; import that file \
                 again, and push the session that this makes"
            ),
        }
    }
}

fn since(at_ms: i64) -> String {
    Timestamp::from_millis(at_ms).map_or_else(String::new, |at| format!(" ({at})"))
}

impl From<ReplicaError> for Error {
    fn from(error: ReplicaError) -> Self {
        let kind = match error.kind {
            ReplicaErrorKind::Away => ErrorKind::Away,
            ReplicaErrorKind::Denied => ErrorKind::Denied,
            ReplicaErrorKind::Unfit => ErrorKind::Invalid,
            ReplicaErrorKind::Corrupt => ErrorKind::Corrupt,
        };
        Self::new(kind, error.message)
    }
}

/// Creates the error for an answer that fits no request.
pub(crate) fn odd_answer(log: &LogKey, doing: &str) -> Error {
    let what = format!("the replica gave an answer that does not fit while {doing}");
    Error::new(ErrorKind::Corrupt, format!("{what} (session {})", log.id))
}
