//! Blobs, in the bucket or the database.
//!
//! In the bucket a blob's name ends with the hash of the bytes as they were stored. Two clients that
//! store the same blob, encrypted differently, never mix their bytes: the first to end its upload wins.
//!
//! An upload begins with a row in the database, and ends with its sum. A purge in between finds the row
//! gone, or leaves the name to be looked for again.

use std::collections::HashSet;

use backtrail::replica::{BlobKind, BlobName, LogKey, LogOwner, ReplicaError};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::bucket::{AT_ONCE, Bucket};
use crate::error::{Doing, corrupt, unfit};
use crate::pool::{Params, Pool};
use crate::rows::{column, first, hash, int, owner_in, unsigned};

/// The largest blob that is stored in the database.
const MAX_IN_DATABASE: usize = 128 << 20;

/// Where blobs are kept.
#[derive(Clone, Copy)]
pub(crate) struct Blobs<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) bucket: Option<&'a Bucket>,
    pub(crate) keyed_names: bool,
}

/// A blob as it is recorded.
struct Recorded {
    bytes: u64,
    sum: [u8; 32],
    /// Whether the bytes are in the database.
    here: bool,
}

impl<'a> Blobs<'a> {
    fn bucket(&self) -> Result<&'a Bucket, ReplicaError> {
        self.bucket.ok_or_else(|| {
            unfit("this remote keeps blobs in a bucket: name it when the remote is added (--blobs URL)")
        })
    }

    pub(crate) async fn has(
        &self,
        log: &LogKey,
        names: &[BlobName],
    ) -> Result<Vec<bool>, ReplicaError> {
        let mut found = vec![false; names.len()];
        for kind in [BlobKind::Payload, BlobKind::Pack] {
            let hashes: Vec<[u8; 32]> = names
                .iter()
                .filter(|name| name.kind == kind)
                .map(|name| name.hash)
                .collect();
            let there = self.there(log, kind, &hashes).await?;
            for (found, name) in found.iter_mut().zip(names) {
                *found |= name.kind == kind && there.contains(&name.hash);
            }
        }
        Ok(found)
    }

    /// Returns those blobs that are recorded, and whose bytes are where the record says.
    async fn there(
        &self,
        log: &LogKey,
        kind: BlobKind,
        hashes: &[[u8; 32]],
    ) -> Result<HashSet<[u8; 32]>, ReplicaError> {
        if hashes.is_empty() {
            return Ok(HashSet::new());
        }
        let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
        let doing = Doing::Log("look for blobs of", log);
        let rows = self
            .pool
            .call(
                doing,
                "blobs_1",
                &[
                    (&owner_in(log.owner), Type::INT4),
                    (&log.id.as_str(), Type::TEXT),
                    (&(kind == BlobKind::Pack), Type::BOOL),
                    (&hashes, Type::BYTEA_ARRAY),
                ],
            )
            .await?;
        let looks = stream::iter(&rows).map(|row| async move {
            let hash = hash(row, "hash")?;
            let recorded = recorded(row)?;
            let name = BlobName { kind, hash };
            let is_there = self.is_there(doing, log, name, &recorded).await?;
            Ok(is_there.then_some(hash))
        });
        looks
            .buffer_unordered(AT_ONCE)
            .try_filter_map(|found| async move { Ok(found) })
            .try_collect()
            .await
    }

    async fn is_there(
        &self,
        doing: Doing<'_>,
        log: &LogKey,
        name: BlobName,
        recorded: &Recorded,
    ) -> Result<bool, ReplicaError> {
        if recorded.here {
            return Ok(true);
        }
        let place = place(log, name, &recorded.sum);
        Ok(self.bucket()?.size(doing, &place).await? == Some(recorded.bytes))
    }

    pub(crate) async fn put(
        &self,
        log: &LogKey,
        name: BlobName,
        bytes: &[u8],
    ) -> Result<(), ReplicaError> {
        let sum = *blake3::hash(bytes).as_bytes();
        if !self.keyed_names && sum != name.hash {
            return Err(corrupt(
                "a blob that was to be stored does not match its name",
            ));
        }
        let doing = Doing::Log("store a blob of", log);
        let data = match self.bucket {
            Some(_) => None,
            None if bytes.len() <= MAX_IN_DATABASE => Some(bytes),
            None => return Err(too_large(bytes.len())),
        };
        let blob = Blob {
            log,
            name,
            bytes,
            sum,
        };
        let rows = self.begin(doing, &blob, data).await?;
        let row = first(&rows)?;
        match (column(row, "answer")?, self.bucket) {
            ("upload", Some(bucket)) => self.upload(doing, bucket, &blob, None).await,
            // The bytes may be lost although they are recorded.
            ("stored", Some(bucket)) => {
                let recorded = recorded(row)?;
                match self.is_there(doing, log, name, &recorded).await? {
                    true => Ok(()),
                    false => self.upload(doing, bucket, &blob, Some(recorded.sum)).await,
                }
            }
            ("stored", None) => Ok(()),
            // Purged: nothing is stored, and the append that follows says so.
            ("purged", _) => Ok(()),
            _ => Err(corrupt("the remote answered a blob with something else")),
        }
    }

    async fn begin(
        &self,
        doing: Doing<'_>,
        blob: &Blob<'_>,
        data: Option<&[u8]>,
    ) -> Result<Vec<Row>, ReplicaError> {
        let size = blob.bytes.len() as u64;
        let params: &Params<'_> = &[
            (&owner_in(blob.log.owner), Type::INT4),
            (&blob.log.id.as_str(), Type::TEXT),
            (&blob.is_pack(), Type::BOOL),
            (&blob.name.hash.as_slice(), Type::BYTEA),
            (&int(size), Type::INT8),
            (&blob.sum.as_slice(), Type::BYTEA),
            (&data, Type::BYTEA),
        ];
        self.pool
            .call_with_bytes(size, doing, "put_1", params)
            .await
    }

    /// Stores a blob in the bucket, then records it. What a purge or another upload overtook is removed.
    async fn upload(
        &self,
        doing: Doing<'_>,
        bucket: &Bucket,
        blob: &Blob<'_>,
        instead_of: Option<[u8; 32]>,
    ) -> Result<(), ReplicaError> {
        let place = place(blob.log, blob.name, &blob.sum);
        bucket.put(doing, &place, blob.bytes).await?;
        let instead_of = instead_of.as_ref().map(<[u8; 32]>::as_slice);
        let rows = self
            .pool
            .call(
                doing,
                "uploaded_1",
                &[
                    (&owner_in(blob.log.owner), Type::INT4),
                    (&blob.log.id.as_str(), Type::TEXT),
                    (&blob.is_pack(), Type::BOOL),
                    (&blob.name.hash.as_slice(), Type::BYTEA),
                    (&int(blob.bytes.len() as u64), Type::INT8),
                    (&blob.sum.as_slice(), Type::BYTEA),
                    (&instead_of, Type::BYTEA),
                ],
            )
            .await?;
        match column(first(&rows)?, "answer")? {
            "done" => Ok(()),
            _ => bucket.remove(doing, &place).await,
        }
    }

    pub(crate) async fn get(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        let doing = Doing::Log("read a blob of", log);
        let wanted = part.map_or(MAX_IN_DATABASE as u64, |(_, bytes)| bytes);
        let rows = self
            .pool
            .call_with_bytes(
                wanted.min(MAX_IN_DATABASE as u64),
                doing,
                "get_1",
                &[
                    (&owner_in(log.owner), Type::INT4),
                    (&log.id.as_str(), Type::TEXT),
                    (&(name.kind == BlobKind::Pack), Type::BOOL),
                    (&name.hash.as_slice(), Type::BYTEA),
                    (&part.map(|(from, _)| int(from)), Type::INT8),
                    (&part.map(|(_, bytes)| int(bytes)), Type::INT8),
                ],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let recorded = recorded(row)?;
        let (from, bytes) = part.unwrap_or((0, recorded.bytes));
        if from
            .checked_add(bytes)
            .is_none_or(|end| end > recorded.bytes)
        {
            return Err(corrupt(
                "a blob at the remote does not have the part that was asked for",
            ));
        }
        let got = match recorded.here {
            true => column(row, "data")?,
            false => {
                let place = place(log, name, &recorded.sum);
                self.bucket()?.get(doing, &place, part).await?
            }
        };
        let Some(got) = got else {
            return Ok(None);
        };
        let right = got.len() as u64 == bytes
            && (part.is_some() || blake3::hash(&got) == blake3::Hash::from(recorded.sum));
        match right {
            true => Ok(Some(got)),
            false => Err(corrupt(&format!(
                "cannot {doing} at {}: the bytes do not match what was stored",
                self.bucket.map_or(self.pool.name(), Bucket::name)
            ))),
        }
    }

    /// Removes from the bucket what was purged or removed, also what an earlier attempt left there.
    pub(crate) async fn sweep(&self, doing: Doing<'_>) -> Result<(), ReplicaError> {
        let rows = self.pool.call(doing, "doomed_1", &[]).await?;
        let doomed: Vec<String> = rows
            .iter()
            .map(|row| column(row, "doomed"))
            .collect::<Result<_, _>>()?;
        self.remove(doing, &doomed).await
    }

    pub(crate) async fn purge(&self, log: &LogKey) -> Result<(), ReplicaError> {
        let doing = Doing::Log("purge", log);
        let rows = self
            .pool
            .call(
                doing,
                "purge_1",
                &[
                    (&owner_in(log.owner), Type::INT4),
                    (&log.id.as_str(), Type::TEXT),
                    (&payloads(log), Type::TEXT),
                ],
            )
            .await?;
        let doomed: Vec<String> = rows
            .iter()
            .map(|row| column(row, "doomed"))
            .collect::<Result<_, _>>()?;
        self.remove(doing, &doomed).await
    }

    async fn remove(&self, doing: Doing<'_>, doomed: &[String]) -> Result<(), ReplicaError> {
        if doomed.is_empty() {
            return Ok(());
        }
        let bucket = self.bucket()?;
        for name in doomed {
            bucket.remove(doing, name).await?;
        }
        let params: &Params<'_> = &[(&doomed, Type::TEXT_ARRAY)];
        self.pool.call(doing, "forget_1", params).await.map(drop)
    }
}

/// A blob that is stored.
struct Blob<'a> {
    log: &'a LogKey,
    name: BlobName,
    bytes: &'a [u8],
    sum: [u8; 32],
}

impl Blob<'_> {
    fn is_pack(&self) -> bool {
        self.name.kind == BlobKind::Pack
    }
}

fn recorded(row: &Row) -> Result<Recorded, ReplicaError> {
    Ok(Recorded {
        bytes: unsigned(row, "bytes")?,
        sum: hash(row, "sum")?,
        here: column(row, "here")?,
    })
}

/// Returns where the payloads of a log are in the bucket.
fn payloads(log: &LogKey) -> String {
    let owner = match log.owner {
        LogOwner::Session => 's',
        LogOwner::Workspace => 'w',
    };
    format!("payload/{owner}-{}/", log.id.as_str())
}

fn place(log: &LogKey, name: BlobName, sum: &[u8; 32]) -> String {
    let below = match name.kind {
        BlobKind::Payload => payloads(log),
        BlobKind::Pack => "pack/".to_owned(),
    };
    let hash = blake3::Hash::from(name.hash).to_hex();
    format!("{below}{hash}/{}", blake3::Hash::from(*sum).to_hex())
}

fn too_large(bytes: usize) -> ReplicaError {
    unfit(&format!(
        "a blob of {} MiB is too large for the database: add the remote with a bucket (--blobs URL)",
        bytes >> 20
    ))
}
