//! Errors that name the log.

use backtrail::replica::{LogKey, LogOwner, ReplicaError, ReplicaErrorKind};

pub(super) fn corrupt(message: String) -> ReplicaError {
    error(ReplicaErrorKind::Corrupt, message)
}

pub(super) fn denied(message: String) -> ReplicaError {
    error(ReplicaErrorKind::Denied, message)
}

pub(super) fn unfit(message: String) -> ReplicaError {
    error(ReplicaErrorKind::Unfit, message)
}

/// Returns the error for a request that is worth asking again.
pub(super) fn away(message: String) -> ReplicaError {
    error(ReplicaErrorKind::Away, message)
}

fn error(kind: ReplicaErrorKind, message: String) -> ReplicaError {
    ReplicaError { kind, message }
}

/// Returns the log in words.
pub(super) fn named(log: &LogKey) -> String {
    match log.owner {
        LogOwner::Session => format!("session {}", log.id),
        LogOwner::Workspace => format!("workspace {}", log.id),
    }
}
