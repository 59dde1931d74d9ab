//! What went wrong with a remote, and what to do about it.

use backtrail::ErrorKind;
use backtrail::replica::{Refusal, ReplicaError};

use crate::error::CommandError;
use crate::short::short;
use backtrail::SessionId;

/// Makes an error of a remote that gave no answer.
pub(in crate::commands) fn failed(error: ReplicaError, remote: &str) -> CommandError {
    with_hints(backtrail::Error::from(error), remote)
}

/// Adds to an error of the engine what to do about the remote.
pub(in crate::commands) fn with_hints(error: backtrail::Error, remote: &str) -> CommandError {
    let kind = error.kind();
    let error = CommandError::from(error);
    match kind {
        ErrorKind::Away => error
            .hint(format!(
                "see what is wrong: backtrail remote check {remote}"
            ))
            .hint("what was sent is there; the same command continues"),
        ErrorKind::Denied => error.hint(format!(
            "see what you may do: backtrail remote check {remote}"
        )),
        _ => error,
    }
}

/// The name of a refusal for programs, and what to do about it.
pub(in crate::commands) struct Refused {
    pub(in crate::commands) reason: &'static str,
    pub(in crate::commands) hints: Vec<String>,
}

impl Refused {
    /// Returns what to do about a session that is neither pushed nor pulled.
    pub(in crate::commands) fn new(refusal: &Refusal, id: &SessionId, remote: &str) -> Self {
        let id = short(id);
        let pull = format!("get what is there: backtrail pull {remote} {id}");
        let (reason, hints) = match refusal {
            Refusal::Diverged { .. } => (
                "diverged",
                vec![format!(
                    "keep both: backtrail push {remote} {id} --as-fork, then backtrail pull \
                     {remote} --all"
                )],
            ),
            Refusal::Ahead => ("ahead", vec![pull]),
            Refusal::Held(_) => (
                "held",
                vec!["try again when that writer is done".to_owned()],
            ),
            Refusal::Fenced(_) => ("fenced", vec!["try again".to_owned()]),
            Refusal::NotThere => (
                "not_there",
                vec![format!("see what is there: backtrail remote list {remote}")],
            ),
            Refusal::InTrashThere(_) => (
                "in_trash",
                vec![format!(
                    "restore it: backtrail remote restore {remote} {id}"
                )],
            ),
            Refusal::PurgedThere(_) => ("purged", Vec::new()),
            Refusal::Version1 => ("version_1", Vec::new()),
            _ => ("other", Vec::new()),
        };
        Self { reason, hints }
    }
}
