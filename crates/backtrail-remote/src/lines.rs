//! Requests about lines: appends, new trails, reading and changes.

use backtrail::replica::{
    Answer, Change, End, Fence, Line, LogKey, Order, ReplicaError, TrailStatus,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::Doing;
use crate::pool::Pool;
use crate::rows::{
    as_hash, column, common, end, first, head, int, log_key, millis, owner_in, sum, sum_in, trail,
    unsigned,
};

/// What an append and the beginning of a trail have in common.
pub(crate) struct Writing<'a> {
    pub(crate) log: &'a LogKey,
    pub(crate) fence: Fence,
    pub(crate) relies_on: &'a [[u8; 32]],
    pub(crate) ttl_ms: u64,
}

impl Writing<'_> {
    fn packs(&self) -> Vec<&[u8]> {
        self.relies_on.iter().map(<[u8; 32]>::as_slice).collect()
    }
}

pub(crate) async fn append(
    pool: &Pool,
    writing: &Writing<'_>,
    after: End,
    lines: &[Line],
) -> Result<Answer, ReplicaError> {
    let seqs: Vec<i64> = lines.iter().map(|line| int(line.seq)).collect();
    let sums: Vec<i64> = lines.iter().map(|line| sum_in(line.sum)).collect();
    let texts: Vec<&[u8]> = lines.iter().map(|line| line.bytes.as_slice()).collect();
    let bytes = texts.iter().map(|text| text.len() as u64).sum();
    let rows = pool
        .call_with_bytes(
            bytes,
            Doing::Log("append to", writing.log),
            "append_1",
            &[
                (&owner_in(writing.log.owner), Type::INT4),
                (&writing.log.id.as_str(), Type::TEXT),
                (&int(writing.fence.0), Type::INT8),
                (&i64::from(after.trail), Type::INT8),
                (&int(after.seq), Type::INT8),
                (&sum_in(after.sum), Type::INT8),
                (&seqs, Type::INT8_ARRAY),
                (&sums, Type::INT8_ARRAY),
                (&texts, Type::BYTEA_ARRAY),
                (&writing.packs(), Type::BYTEA_ARRAY),
                (&millis(writing.ttl_ms), Type::INT8),
            ],
        )
        .await?;
    written(first(&rows)?)
}

pub(crate) async fn begin(
    pool: &Pool,
    writing: &Writing<'_>,
    head: Option<End>,
    number: u32,
    opener: &Line,
) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call(
            Doing::Log("begin a trail of", writing.log),
            "begin_1",
            &[
                (&owner_in(writing.log.owner), Type::INT4),
                (&writing.log.id.as_str(), Type::TEXT),
                (&int(writing.fence.0), Type::INT8),
                (&head.map(|end| i64::from(end.trail)), Type::INT8),
                (&head.map(|end| int(end.seq)), Type::INT8),
                (&head.map(|end| sum_in(end.sum)), Type::INT8),
                (&i64::from(number), Type::INT8),
                (&int(opener.seq), Type::INT8),
                (&sum_in(opener.sum), Type::INT8),
                (&opener.bytes, Type::BYTEA),
                (&writing.packs(), Type::BYTEA_ARRAY),
                (&millis(writing.ttl_ms), Type::INT8),
            ],
        )
        .await?;
    written(first(&rows)?)
}

fn written(row: &Row) -> Result<Answer, ReplicaError> {
    match column(row, "answer")? {
        "appended" => end(row).map(Answer::Appended),
        "moved" => head(row).map(Answer::Moved),
        "gone" => {
            let packs: Vec<&[u8]> = column(row, "packs")?;
            Ok(Answer::PacksGone(
                packs.into_iter().filter_map(as_hash).collect(),
            ))
        }
        _ => common(row),
    }
}

pub(crate) async fn trails(pool: &Pool, log: &LogKey) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call(
            Doing::Log("list the trails of", log),
            "trails_1",
            &[
                (&owner_in(log.owner), Type::INT4),
                (&log.id.as_str(), Type::TEXT),
            ],
        )
        .await?;
    let Some((first, trails)) = rows.split_first() else {
        return Ok(Answer::Absent);
    };
    if column::<&str>(first, "answer")? != "trails" {
        return common(first);
    }
    let trails = trails.iter().map(trail_status);
    trails.collect::<Result<_, _>>().map(Answer::Trails)
}

fn trail_status(row: &Row) -> Result<TrailStatus, ReplicaError> {
    Ok(TrailStatus {
        opener: Line {
            seq: unsigned(row, "opener_seq")?,
            sum: sum(row, "opener_sum")?,
            bytes: column(row, "opener")?,
        },
        end: End {
            trail: trail(row, "trail")?,
            seq: unsigned(row, "end_seq")?,
            sum: sum(row, "end_sum")?,
        },
    })
}

/// Which lines of a trail are read.
pub(crate) struct Reading<'a> {
    pub(crate) log: &'a LogKey,
    pub(crate) trail: u32,
    pub(crate) beyond: Option<u64>,
    pub(crate) order: Order,
    pub(crate) max_bytes: u64,
}

pub(crate) async fn read(pool: &Pool, reading: &Reading<'_>) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call_with_bytes(
            reading.max_bytes.min(1 << 30),
            Doing::Log("read", reading.log),
            "read_1",
            &[
                (&owner_in(reading.log.owner), Type::INT4),
                (&reading.log.id.as_str(), Type::TEXT),
                (&i64::from(reading.trail), Type::INT8),
                (&reading.beyond.map(int), Type::INT8),
                (&(reading.order == Order::Backwards), Type::BOOL),
                (&int(reading.max_bytes), Type::INT8),
            ],
        )
        .await?;
    let status = first(&rows)?;
    if column::<&str>(status, "answer")? != "lines" {
        return common(status);
    }
    let mut lines = Vec::with_capacity(rows.len());
    let mut more = false;
    for row in rows.iter().skip(1) {
        match column(row, "answer")? {
            "line" => lines.push(line(row)?),
            "more" => more = true,
            _ => return common(row),
        }
    }
    Ok(Answer::Lines { lines, more })
}

fn line(row: &Row) -> Result<Line, ReplicaError> {
    Ok(Line {
        seq: unsigned(row, "seq")?,
        sum: sum(row, "sum")?,
        bytes: column(row, "line")?,
    })
}

pub(crate) async fn changes(pool: &Pool, after: u64, limit: u32) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call(
            Doing::Remote("read what changed"),
            "changes_1",
            &[(&int(after), Type::INT8), (&i64::from(limit), Type::INT8)],
        )
        .await?;
    let changes = rows.iter().map(|row| {
        Ok(Change {
            id: unsigned(row, "id")?,
            log: log_key(row, "log_id")?,
            end: end(row)?,
            at_ms: column(row, "at_ms")?,
            by: column(row, "holder")?,
        })
    });
    changes.collect::<Result<_, _>>().map(Answer::Changes)
}
