//! Requests about packs: what is in them, and which are removed.

use backtrail::replica::{Answer, ObjectPlace, PackStatus, ReplicaError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::Doing;
use crate::pool::Pool;
use crate::rows::{column, common, first, hash, int, millis, unsigned};

pub(crate) async fn seal(pool: &Pool, objects: &[ObjectPlace]) -> Result<Answer, ReplicaError> {
    let Some(pack) = objects.first().map(|object| object.pack) else {
        return Ok(Answer::Done);
    };
    if objects.iter().any(|object| object.pack != pack) {
        return Err(crate::error::corrupt(
            "objects of several packs cannot be sealed as one",
        ));
    }
    let ids: Vec<&[u8]> = objects.iter().map(|object| object.id.as_slice()).collect();
    let firsts: Vec<i64> = objects.iter().map(|object| int(object.from)).collect();
    let bytes: Vec<i64> = objects.iter().map(|object| int(object.bytes)).collect();
    let rows = pool
        .call(
            Doing::Remote("record a pack"),
            "seal_1",
            &[
                (&pack.as_slice(), Type::BYTEA),
                (&ids, Type::BYTEA_ARRAY),
                (&firsts, Type::INT8_ARRAY),
                (&bytes, Type::INT8_ARRAY),
            ],
        )
        .await?;
    let row = first(&rows)?;
    match column(row, "answer")? {
        "gone" => Ok(Answer::PacksGone(vec![pack])),
        _ => common(row),
    }
}

pub(crate) async fn locate(pool: &Pool, ids: &[[u8; 32]]) -> Result<Answer, ReplicaError> {
    let ids: Vec<&[u8]> = ids.iter().map(<[u8; 32]>::as_slice).collect();
    let rows = pool
        .call(
            Doing::Remote("find objects"),
            "locate_1",
            &[(&ids, Type::BYTEA_ARRAY)],
        )
        .await?;
    let places = rows.iter().map(|row| {
        Ok(ObjectPlace {
            id: hash(row, "id")?,
            pack: hash(row, "pack")?,
            from: unsigned(row, "first")?,
            bytes: unsigned(row, "bytes")?,
        })
    });
    places.collect::<Result<_, _>>().map(Answer::Objects)
}

pub(crate) async fn list(
    pool: &Pool,
    after: Option<[u8; 32]>,
    limit: u32,
) -> Result<Answer, ReplicaError> {
    let after = after.as_ref().map(<[u8; 32]>::as_slice);
    let rows = pool
        .call(
            Doing::Remote("list packs"),
            "packs_1",
            &[(&after, Type::BYTEA), (&i64::from(limit), Type::INT8)],
        )
        .await?;
    statuses(&rows)
}

pub(crate) async fn condemn(
    pool: &Pool,
    packs: &[([u8; 32], u64)],
) -> Result<Answer, ReplicaError> {
    let names: Vec<&[u8]> = packs.iter().map(|(name, _)| name.as_slice()).collect();
    let uses: Vec<i64> = packs.iter().map(|(_, uses)| int(*uses)).collect();
    let rows = pool
        .call(
            Doing::Remote("condemn packs"),
            "condemn_1",
            &[(&names, Type::BYTEA_ARRAY), (&uses, Type::INT8_ARRAY)],
        )
        .await?;
    statuses(&rows)
}

/// Removes packs from the tables; what is in the bucket is removed afterwards.
pub(crate) async fn remove(
    pool: &Pool,
    condemned_ms: u64,
    limit: u32,
) -> Result<Answer, ReplicaError> {
    let rows = pool
        .call(
            Doing::Remote("remove packs"),
            "remove_packs_1",
            &[
                (&millis(condemned_ms), Type::INT8),
                (&i64::from(limit), Type::INT8),
            ],
        )
        .await?;
    statuses(&rows)
}

fn statuses(rows: &[Row]) -> Result<Answer, ReplicaError> {
    let packs = rows.iter().map(|row| {
        let condemned: Option<i64> = column(row, "condemned_ms")?;
        Ok(PackStatus {
            pack: hash(row, "pack")?,
            bytes: unsigned(row, "bytes")?,
            objects: u32::try_from(unsigned(row, "objects")?).unwrap_or(u32::MAX),
            uses: unsigned(row, "uses")?,
            // A clock that went back counts as no time.
            condemned_ms: condemned.map(|ms| u64::try_from(ms).unwrap_or(0)),
        })
    });
    packs.collect::<Result<_, _>>().map(Answer::Packs)
}
