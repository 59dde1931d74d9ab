//! Requests about whole logs: their state, leases, trash and purge.

use backtrail::replica::{Answer, Fence, LogKey, ReplicaError};
use tokio_postgres::types::Type;

use crate::error::Doing;
use crate::pool::Pool;
use crate::rows::{
    column, common, fence, first, int, lease, log_key, log_status, millis, owner_in,
};

pub(crate) async fn status(pool: &Pool, log: &LogKey) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call(
            Doing::Log("read the state of", log),
            "status_1",
            &[
                (&owner_in(log.owner), Type::INT4),
                (&log.id.as_str(), Type::TEXT),
            ],
        )
        .await?;
    match rows.first() {
        None => Ok(Answer::Absent),
        Some(row) if column::<&str>(row, "answer")? == "log" => Ok(Answer::Log(log_status(row)?)),
        Some(row) => common(row),
    }
}

pub(crate) async fn list(
    pool: &Pool,
    after: Option<&LogKey>,
    limit: u32,
) -> Result<Answer, ReplicaError> {
    let owner = after.map(|log| owner_in(log.owner));
    let id = after.map(|log| log.id.as_str());
    let rows = pool
        .call(
            Doing::Remote("list sessions"),
            "list_1",
            &[
                (&owner, Type::INT4),
                (&id, Type::TEXT),
                (&i64::from(limit), Type::INT8),
            ],
        )
        .await?;
    let logs = rows
        .iter()
        .map(|row| Ok((log_key(row, "id")?, log_status(row)?)));
    logs.collect::<Result<_, _>>().map(Answer::Logs)
}

pub(crate) async fn take_lease(
    pool: &Pool,
    log: &LogKey,
    holder: &str,
    ttl_ms: u64,
    wrapped_key: &[u8],
) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call(
            Doing::Log("take the lease of", log),
            "lease_1",
            &[
                (&owner_in(log.owner), Type::INT4),
                (&log.id.as_str(), Type::TEXT),
                (&holder, Type::TEXT),
                (&millis(ttl_ms), Type::INT8),
                (&wrapped_key, Type::BYTEA),
            ],
        )
        .await?;
    let row = first(&rows)?;
    match (column(row, "answer")?, lease(row)?) {
        ("leased", _) => Ok(Answer::Leased {
            fence: fence(row)?,
            log: log_status(row)?,
        }),
        ("held", Some(lease)) => Ok(Answer::Held(lease)),
        _ => common(row),
    }
}

pub(crate) async fn renew(
    pool: &Pool,
    log: &LogKey,
    fence: Fence,
    ttl_ms: u64,
) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call(
            Doing::Log("renew the lease of", log),
            "renew_1",
            &[
                (&owner_in(log.owner), Type::INT4),
                (&log.id.as_str(), Type::TEXT),
                (&int(fence.0), Type::INT8),
                (&millis(ttl_ms), Type::INT8),
            ],
        )
        .await?;
    let row = first(&rows)?;
    match column(row, "answer")? {
        "renewed" => Ok(Answer::Renewed),
        _ => common(row),
    }
}

/// Ends a lease. One that somebody else has stays, which is what the caller wants.
pub(crate) async fn release(
    pool: &Pool,
    log: &LogKey,
    fence: Fence,
) -> Result<Answer, ReplicaError> {
    match renew(pool, log, fence, 0).await? {
        Answer::Fenced { .. } => Ok(Answer::Renewed),
        answer => Ok(answer),
    }
}

pub(crate) async fn delete(
    pool: &Pool,
    log: &LogKey,
    deleted: bool,
) -> Result<Answer, ReplicaError> {
    let verb = match deleted {
        true => "delete",
        false => "restore",
    };
    let rows = pool
        .call(
            Doing::Log(verb, log),
            "delete_1",
            &[
                (&owner_in(log.owner), Type::INT4),
                (&log.id.as_str(), Type::TEXT),
                (&deleted, Type::BOOL),
            ],
        )
        .await?;
    common(first(&rows)?)
}
