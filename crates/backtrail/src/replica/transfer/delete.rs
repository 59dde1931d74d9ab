//! Lists, deletes and purges sessions at a replica. What is here stays as it is.

use super::push::session_key;
use super::while_doing;
use crate::error::Result;
use crate::ids::SessionId;
use crate::replica::refusal::{Refusal, odd_answer};
use crate::replica::wire::{Answer, LogKey, LogOwner, LogStatus, Replica, Request};

/// How many logs are listed at a time.
const AT_ONCE: u32 = 1000;

/// Returns the sessions of a replica, in the order of their ids; those in its trash have
/// [`LogStatus::deleted_at_ms`].
///
/// # Errors
///
/// Fails if the replica does not answer.
pub fn sessions_there(replica: &dyn Replica) -> Result<Vec<(SessionId, LogStatus)>> {
    let mut found = Vec::new();
    let mut after: Option<LogKey> = None;
    loop {
        let answer = replica.ask(&Request::List {
            after: after.clone(),
            limit: AT_ONCE,
        })?;
        let Answer::Logs(logs) = answer else {
            let none = LogKey {
                owner: LogOwner::Session,
                id: "none".parse()?,
            };
            return Err(odd_answer(&none, "listing"));
        };
        let Some((last, _)) = logs.last() else {
            return Ok(found);
        };
        after = Some(last.clone());
        let sessions = logs.into_iter();
        let sessions = sessions.filter(|(log, _)| log.owner == LogOwner::Session);
        found.extend(sessions.map(|(log, status)| (log.id, status)));
    }
}

/// Moves a session to the trash of a replica.
///
/// # Errors
///
/// Fails if the session is not there, and if the replica does not answer.
pub fn delete_there(replica: &dyn Replica, id: &SessionId) -> Result<()> {
    set_deleted(replica, id, true)
}

/// Moves a session out of the trash of a replica.
///
/// # Errors
///
/// Fails if the session is not there, and if the replica does not answer.
pub fn restore_there(replica: &dyn Replica, id: &SessionId) -> Result<()> {
    set_deleted(replica, id, false)
}

fn set_deleted(replica: &dyn Replica, id: &SessionId, deleted: bool) -> Result<()> {
    let log = session_key(id);
    let request = Request::Delete {
        log: log.clone(),
        deleted,
    };
    answered(replica, &request, &log)
}

/// Purges a session at a replica: its lines and payloads are removed, and its id is never
/// accepted again.
///
/// # Errors
///
/// Fails if the replica does not answer.
pub fn purge_there(replica: &dyn Replica, id: &SessionId) -> Result<()> {
    let log = session_key(id);
    let request = Request::Purge { log: log.clone() };
    answered(replica, &request, &log)
}

fn answered(replica: &dyn Replica, request: &Request, log: &LogKey) -> Result<()> {
    let answer = replica.ask(request);
    match answer.map_err(while_doing("change", &log.id))? {
        Answer::Done => Ok(()),
        Answer::Absent => Err(Refusal::NotThere.of(log)),
        Answer::Purged(at) => Err(Refusal::PurgedThere(at).of(log)),
        _ => Err(odd_answer(log, "changing it")),
    }
}
