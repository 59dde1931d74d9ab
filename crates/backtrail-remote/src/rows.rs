//! Values on their way into a call and out of its rows.

use backtrail::SessionId;
use backtrail::replica::{Answer, End, Fence, Lease, LogKey, LogOwner, LogStatus, ReplicaError};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::error::corrupt;

/// Returns a number as the database has it. Larger ones mean "for ever" or "all".
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a time in milliseconds; ten years are as good as more.
pub(crate) fn millis(ms: u64) -> i64 {
    int(ms.min(10 * 365 * 24 * 3_600_000))
}

pub(crate) fn sum_in(sum: [u8; 8]) -> i64 {
    i64::from_be_bytes(sum)
}

pub(crate) fn owner_in(owner: LogOwner) -> i32 {
    match owner {
        LogOwner::Session => 0,
        LogOwner::Workspace => 1,
    }
}

/// Returns a column of a row.
pub(crate) fn column<'r, T: FromSql<'r>>(row: &'r Row, name: &str) -> Result<T, ReplicaError> {
    let value = row.try_get(name);
    value.map_err(|_| corrupt(&format!("the remote answered without a valid {name}")))
}

/// Returns the first row, which every function but those that list has.
pub(crate) fn first(rows: &[Row]) -> Result<&Row, ReplicaError> {
    rows.first()
        .ok_or_else(|| corrupt("the remote answered with nothing"))
}

pub(crate) fn unsigned(row: &Row, name: &str) -> Result<u64, ReplicaError> {
    let value: i64 = column(row, name)?;
    u64::try_from(value).map_err(|_| odd(name))
}

fn odd(name: &str) -> ReplicaError {
    corrupt(&format!("the remote answered with an impossible {name}"))
}

pub(crate) fn trail(row: &Row, name: &str) -> Result<u32, ReplicaError> {
    u32::try_from(column::<i64>(row, name)?).map_err(|_| odd(name))
}

pub(crate) fn sum(row: &Row, name: &str) -> Result<[u8; 8], ReplicaError> {
    Ok(column::<i64>(row, name)?.to_be_bytes())
}

pub(crate) fn hash(row: &Row, name: &str) -> Result<[u8; 32], ReplicaError> {
    as_hash(column(row, name)?).ok_or_else(|| odd(name))
}

pub(crate) fn as_hash(bytes: &[u8]) -> Option<[u8; 32]> {
    bytes.try_into().ok()
}

/// Returns the end in the columns `trail`, `seq` and `sum`.
pub(crate) fn end(row: &Row) -> Result<End, ReplicaError> {
    Ok(End {
        trail: trail(row, "trail")?,
        seq: unsigned(row, "seq")?,
        sum: sum(row, "sum")?,
    })
}

/// Returns the end of a log; `None` before its first trail.
pub(crate) fn head(row: &Row) -> Result<Option<End>, ReplicaError> {
    let trail: Option<i64> = column(row, "trail")?;
    trail.map(|_| end(row)).transpose()
}

pub(crate) fn fence(row: &Row) -> Result<Fence, ReplicaError> {
    unsigned(row, "fence").map(Fence)
}

/// Returns the lease, unless it has run out.
pub(crate) fn lease(row: &Row) -> Result<Option<Lease>, ReplicaError> {
    let left: Option<i64> = column(row, "left_ms")?;
    let Some(left_ms) = left.and_then(|left| u64::try_from(left).ok()) else {
        return Ok(None);
    };
    let holder = column(row, "holder")?;
    Ok(Some(Lease { holder, left_ms }))
}

pub(crate) fn log_status(row: &Row) -> Result<LogStatus, ReplicaError> {
    Ok(LogStatus {
        head: head(row)?,
        fence: fence(row)?,
        lease: lease(row)?,
        changed_at_ms: column(row, "changed_ms")?,
        bytes: unsigned(row, "bytes")?,
        deleted_at_ms: column(row, "deleted_ms")?,
        wrapped_key: column(row, "wrapped_key")?,
    })
}

pub(crate) fn log_key(row: &Row, id: &str) -> Result<LogKey, ReplicaError> {
    let owner = match column::<i32>(row, "owner")? {
        0 => LogOwner::Session,
        1 => LogOwner::Workspace,
        _ => return Err(odd("owner")),
    };
    let id: SessionId = column::<&str>(row, id)?.parse().map_err(|_| odd(id))?;
    Ok(LogKey { owner, id })
}

/// Returns the answers that every request about a log can get.
pub(crate) fn common(row: &Row) -> Result<Answer, ReplicaError> {
    match column(row, "answer")? {
        "absent" => Ok(Answer::Absent),
        "purged" => Ok(Answer::Purged(column(row, "purged_ms")?)),
        "fenced" => Ok(Answer::Fenced {
            fence: fence(row)?,
            lease: lease(row)?,
        }),
        "done" => Ok(Answer::Done),
        "refused" => Err(corrupt(
            "the remote refused what it was asked: lines or objects are missing or out of order",
        )),
        _ => Err(odd("answer")),
    }
}
