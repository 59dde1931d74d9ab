//! What a client needs of a remote before it relies on it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backtrail::replica::ReplicaError;
use tokio_postgres::Row;

use crate::bucket::Bucket;
use crate::error::{Doing, corrupt, unfit};
use crate::pool::Pool;
use crate::rows::column;
use crate::version::VERSION;

/// How a remote is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteCheck {
    /// The version of PostgreSQL.
    pub server: String,
    /// The number of the newest migration there.
    pub version: i32,
    /// Whether the role may read sessions.
    pub may_read: bool,
    /// Whether the role may append to sessions.
    pub may_append: bool,
    /// Whether the role may purge sessions and remove packs.
    pub may_purge: bool,
    /// Whether the server syncs what it acknowledges.
    pub syncs: bool,
    /// By how many milliseconds the server's clock is ahead of this machine's.
    pub clock_ahead_ms: i64,
    /// How long the answer took.
    pub round_trip: Duration,
    /// Where blobs are.
    pub blobs: BlobsCheck,
}

/// Where blobs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobsCheck {
    /// In the database.
    InDatabase,
    /// In this bucket, which took a probe and gave it back.
    InBucket(String),
}

/// The row of `about_1`.
struct About {
    version: i32,
    oldest_client: i32,
}

async fn about(pool: &Pool) -> Result<(Row, About), ReplicaError> {
    let mut rows = pool.call(Doing::Remote("connect"), "about_1", &[]).await?;
    let row = rows
        .pop()
        .ok_or_else(|| corrupt("the remote does not know its version"))?;
    let about = About {
        version: column(&row, "version")?,
        oldest_client: column(&row, "oldest_client")?,
    };
    Ok((row, about))
}

/// Fails if this client and the remote do not understand each other.
pub(crate) async fn check_version(pool: &Pool) -> Result<(), ReplicaError> {
    let (_, about) = about(pool).await?;
    suits(pool, &about)
}

fn suits(pool: &Pool, about: &About) -> Result<(), ReplicaError> {
    if about.version < VERSION {
        return Err(unfit(&format!(
            "the remote at {} has version {}, and this program needs {VERSION}: run `backtrail remote init`",
            pool.name(),
            about.version
        )));
    }
    if about.oldest_client > VERSION {
        return Err(unfit(&format!(
            "the remote at {} needs a newer backtrail",
            pool.name()
        )));
    }
    Ok(())
}

pub(crate) async fn check(
    pool: &Pool,
    bucket: Option<&Bucket>,
) -> Result<RemoteCheck, ReplicaError> {
    // The first call also connects.
    check_version(pool).await?;
    let asked = Instant::now();
    let here_ms = now_ms();
    let (row, about) = about(pool).await?;
    let round_trip = asked.elapsed();
    let half_ms = i64::try_from(round_trip.as_millis() / 2).unwrap_or(0);
    Ok(RemoteCheck {
        server: column(&row, "server")?,
        version: about.version,
        may_read: column(&row, "may_read")?,
        may_append: column(&row, "may_append")?,
        may_purge: column(&row, "may_purge")?,
        syncs: column(&row, "syncs")?,
        clock_ahead_ms: column::<i64>(&row, "now_ms")? - here_ms - half_ms,
        round_trip,
        blobs: match bucket {
            None => BlobsCheck::InDatabase,
            Some(bucket) => {
                probe(bucket).await?;
                BlobsCheck::InBucket(bucket.name().to_owned())
            }
        },
    })
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// Stores a few bytes in the bucket, reads them, and removes them.
pub(crate) async fn probe(bucket: &Bucket) -> Result<(), ReplicaError> {
    let doing = Doing::Remote("store a probe");
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|cause| unfit(&format!("no random bytes: {cause}")))?;
    let name = format!("probe/{:032x}", u128::from_be_bytes(bytes));
    bucket.put(doing, &name, &bytes).await?;
    let got = bucket.get(doing, &name, None).await?;
    bucket.remove(doing, &name).await?;
    match got {
        Some(got) if got == bytes => Ok(()),
        _ => Err(corrupt(&format!(
            "{} does not give back what was stored",
            bucket.name()
        ))),
    }
}
