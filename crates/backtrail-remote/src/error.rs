//! Why there was no answer: errors of the database and the bucket as those of a replica.

use std::error::Error;
use std::fmt;

use backtrail::replica::{LogKey, LogOwner, ReplicaError, ReplicaErrorKind};
use tokio_postgres::error::SqlState;

/// What was attempted, for messages.
#[derive(Clone, Copy)]
pub(crate) enum Doing<'a> {
    /// Something with the remote.
    Remote(&'static str),
    /// Something with one log.
    Log(&'static str, &'a LogKey),
}

impl fmt::Display for Doing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(verb) => f.write_str(verb),
            Self::Log(verb, log) => {
                let owner = match log.owner {
                    LogOwner::Session => "session",
                    LogOwner::Workspace => "workspace",
                };
                write!(f, "{verb} {owner} {}", log.id.as_str())
            }
        }
    }
}

pub(crate) fn error(kind: ReplicaErrorKind, message: String) -> ReplicaError {
    ReplicaError { kind, message }
}

pub(crate) fn unfit(message: &str) -> ReplicaError {
    error(ReplicaErrorKind::Unfit, message.to_owned())
}

pub(crate) fn corrupt(message: &str) -> ReplicaError {
    error(ReplicaErrorKind::Corrupt, message.to_owned())
}

/// Returns whether the connection is of no use any more.
pub(crate) fn is_lost(cause: &tokio_postgres::Error) -> bool {
    match cause.code() {
        Some(code) => ["57P", "08"]
            .iter()
            .any(|class| code.code().starts_with(class)),
        None => cause.is_closed() || cause_of::<std::io::Error>(cause).is_some(),
    }
}

/// Returns the error for a failed call of `name`, a database.
pub(crate) fn of_database(
    doing: Doing<'_>,
    name: &str,
    cause: &tokio_postgres::Error,
) -> ReplicaError {
    let (kind, reason) = match cause.as_db_error() {
        Some(db) => (
            kind_of(db.code()),
            format!("{}{}", db.message(), way_out(db.code())),
        ),
        None => without_code(cause),
    };
    error(kind, format!("cannot {doing} at {name}: {reason}"))
}

fn without_code(cause: &tokio_postgres::Error) -> (ReplicaErrorKind, String) {
    let text = chain(cause);
    if let Some(cause) = distrust(cause) {
        let text = format!(
            "the server did not prove who it is: {cause}; name the certificate to trust with sslrootcert=FILE in the URL of the remote"
        );
        return (ReplicaErrorKind::Unfit, text);
    }
    if text.contains("server does not support TLS") {
        let text = format!("{text}; sslmode=disable in the URL of the remote does without");
        return (ReplicaErrorKind::Unfit, text);
    }
    // The client has no code for these two.
    let kind = match text {
        _ if text.contains("password missing") || text.contains("authentication") => {
            ReplicaErrorKind::Denied
        }
        _ if text.contains("deserializing") || text.contains("parsing response") => {
            ReplicaErrorKind::Corrupt
        }
        _ => ReplicaErrorKind::Away,
    };
    (kind, text)
}

/// Returns why TLS failed.
fn distrust(cause: &tokio_postgres::Error) -> Option<&rustls::Error> {
    let io = cause_of::<std::io::Error>(cause)?;
    io.get_ref()?.downcast_ref()
}

fn cause_of<T: Error + 'static>(cause: &tokio_postgres::Error) -> Option<&T> {
    let mut next = cause.source();
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns an error and its causes as one text.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

fn kind_of(code: &SqlState) -> ReplicaErrorKind {
    let code = code.code();
    match code.get(..2).unwrap_or_default() {
        // A right or a password is missing.
        "28" => ReplicaErrorKind::Denied,
        _ if code == "42501" => ReplicaErrorKind::Denied,
        // The connection, resources, an operator, a deadlock, a lock that took too long, read only.
        "08" | "53" | "57" | "58" | "40" | "55" | "25" => ReplicaErrorKind::Away,
        "22" | "23" | "XX" => ReplicaErrorKind::Corrupt,
        _ => ReplicaErrorKind::Unfit,
    }
}

fn way_out(code: &SqlState) -> &'static str {
    match code.code() {
        "3F000" | "42P01" | "42883" => "; set it up with `backtrail remote init`",
        "3D000" => "; create the database first",
        "42501" => "; the role has to be a member of one that `backtrail remote init` made",
        _ => "",
    }
}
