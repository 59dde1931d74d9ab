//! The sessions at a remote, and which of them a reference means.

use backtrail::plumbing::{ShortIds, named_by};
use backtrail::replica::{LogStatus, Replica, sessions_there};
use backtrail::{ErrorKind, SessionId, Store};

use super::failure::with_hints;
use crate::error::{CommandError, Result};
use crate::short;
use crate::text::one_line;

/// Returns the sessions at a remote, by id.
pub(in crate::commands) fn sessions(
    replica: &dyn Replica,
    remote: &str,
) -> Result<Vec<(SessionId, LogStatus)>> {
    sessions_there(replica).map_err(|error| with_hints(error, remote))
}

/// Sets the short ids so that they are unique among the sessions here and there.
pub(in crate::commands) fn know_short_ids(store: Option<&Store>, there: &[(SessionId, LogStatus)]) {
    short::know(|| {
        let here = store.and_then(|store| store.sessions().ok());
        let here = here.unwrap_or_default();
        let all = here.iter().chain(there.iter().map(|(id, _)| id));
        Some(ShortIds::new(all))
    });
}

/// Finds the session at a remote that a reference means.
pub(in crate::commands) fn resolve_there(
    reference: &str,
    there: &[(SessionId, LogStatus)],
    remote: &str,
) -> Result<SessionId> {
    let ids: Vec<SessionId> = there.iter().map(|(id, _)| id.clone()).collect();
    let mut found = named_by(ids, reference, |_| true);
    let shown = one_line(reference, 60);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let what = format!("the remote {remote} has no session \"{shown}\"");
            let hint = format!("see what is there: backtrail remote list {remote}");
            Err(CommandError::not_found(what).hint(hint))
        }
        n => {
            let what = format!("\"{shown}\" matches {n} sessions at the remote {remote}");
            let error = CommandError::new(ErrorKind::Ambiguous, what);
            let names = found.iter().take(5);
            Err(names.fold(error, |error, id| error.hint(id.to_string())))
        }
    }
}
