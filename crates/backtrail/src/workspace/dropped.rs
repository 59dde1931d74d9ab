//! Checkpoints whose files were dropped to keep the store small.
//!
//! The checkpoints stay on the trail; a `let_go` record names those that no longer have
//! files. It is durable before the first object is removed, so that a missing object is
//! explained.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::checkpoint::Checkpoint;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::ids::CheckpointId;
use crate::sync::lock;
use crate::time::Timestamp;
use crate::trail::{RecordKind, RecordRef};

/// The type of the record.
const LET_GO: &str = "let_go";
/// The limit of checkpoints in one record.
const IN_ONE: usize = 1000;
/// How many checkpoints with files an error names, before and after one without.
const NEAR: usize = 2;

/// When and why the files of a checkpoint were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// When they were dropped.
    pub at: Timestamp,
    /// The reason.
    pub reason: DropReason,
}

/// The reason for dropping files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DropReason {
    /// They were older than the limit.
    Age,
    /// The store was larger than the limit.
    Size,
    /// Their session was purged.
    Purge,
    /// They were damaged beyond repair.
    Damage,
    /// A reason that only a newer version knows.
    #[serde(other)]
    Other,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Age => "they were older than the limit",
            Self::Size => "the store was larger than the limit",
            Self::Purge => "their session was purged",
            Self::Damage => "they were damaged beyond repair",
            Self::Other => "for a reason only a newer version knows",
        })
    }
}

/// The dropped checkpoints, up to a length of the newest trail. Every access to a
/// checkpoint's files needs them.
#[derive(Debug, Default)]
pub(super) struct DroppedCache {
    as_of: Option<(u32, u64)>,
    /// The last record that was read.
    seq: Option<u64>,
    all: Arc<HashMap<CheckpointId, Dropped>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DroppedRecord {
    at: Timestamp,
    #[serde(rename = "because")]
    reason: DropReason,
    checkpoints: Vec<CheckpointId>,
}

/// Parses the record: the time, the reason and the checkpoints.
pub(crate) fn read(record: &RecordRef<'_>) -> Result<(Dropped, Vec<CheckpointId>), Reason> {
    let stored: DroppedRecord = record.parse()?;
    let dropped = Dropped {
        at: stored.at,
        reason: stored.reason,
    };
    Ok((dropped, stored.checkpoints))
}

impl Workspace {
    /// Records that the files of checkpoints are dropped. It is durable when this returns. The
    /// caller holds the snapshot lock, and no step is half done.
    pub(crate) fn drop_files(&self, ids: &[CheckpointId], reason: DropReason) -> Result<()> {
        for ids in ids.chunks(IN_ONE) {
            let dropped = DroppedRecord {
                at: self.store().now(),
                reason,
                checkpoints: ids.to_vec(),
            };
            self.append(LET_GO, &dropped)?;
        }
        Ok(())
    }

    /// Returns all checkpoints whose files were dropped.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn all_dropped(&self) -> Result<Arc<HashMap<CheckpointId, Dropped>>> {
        if self.files().trails()?.is_empty() {
            return Ok(Arc::default());
        }
        let (head, len) = self.files().with_head(|head| {
            let len = self.files().open_read(head)?.len();
            let len = len.map_err(|error| self.failed("cannot read the trail", error))?;
            Ok((head, len))
        })?;
        let mut cache = lock(&self.0.dropped);
        if cache.as_of != Some((head, len)) {
            // Records that are appended meanwhile make the trail longer than that.
            self.read_dropped(&mut cache)?;
            cache.as_of = Some((head, len));
        }
        Ok(Arc::clone(&cache.all))
    }

    /// Reads the new records, from the end back to the known ones.
    fn read_dropped(&self, cache: &mut DroppedCache) -> Result<()> {
        let mut records = self.trail().records_back()?;
        let mut newest = cache.seq;
        while let Some(record) = records.next()? {
            if cache.seq.is_some_and(|seq| record.seq() <= seq) {
                break;
            }
            newest = newest.max(Some(record.seq()));
            // `verify` reports an unreadable record, and `gc` stops at it.
            if record.kind() == RecordKind::Dropped
                && let Ok((dropped, checkpoints)) = read(&record)
            {
                let all = Arc::make_mut(&mut cache.all);
                all.extend(checkpoints.into_iter().map(|id| (id, dropped)));
            }
        }
        cache.seq = newest;
        Ok(())
    }

    /// Returns when and why the files of a checkpoint were dropped, if they were.
    pub(crate) fn drop_of(&self, id: CheckpointId) -> Result<Option<Dropped>> {
        Ok(self.all_dropped()?.get(&id).copied())
    }

    /// Refuses a checkpoint whose files were dropped, and names the nearest ones that still
    /// have files.
    pub(crate) fn must_be_kept(&self, id: CheckpointId) -> Result<()> {
        let gone = self.all_dropped()?;
        let Some(dropped) = gone.get(&id) else {
            return Ok(());
        };
        let all = self.checkpoints()?.collect::<Result<Vec<_>>>()?;
        let own = all.iter().position(|checkpoint| checkpoint.id() == id);
        let is_kept = |checkpoint: &&Checkpoint| !gone.contains_key(&checkpoint.id());
        // Another checkpoint may have the same files.
        let is_same =
            |kept: &Checkpoint| own.is_some_and(|own| kept.snapshot_id() == all[own].snapshot_id());
        if all.iter().filter(is_kept).any(is_same) {
            return Ok(());
        }
        let (before, after) = all.split_at(own.unwrap_or(0));
        let before: Vec<&Checkpoint> = before.iter().rev().filter(is_kept).take(NEAR).collect();
        let after = after.iter().filter(is_kept).take(NEAR);
        let near = before.into_iter().rev().chain(after);
        let what = format!(
            "the files of checkpoint {} were dropped at {}: {}",
            id.prefix(8),
            dropped.at,
            dropped.reason
        );
        let error = Error::new(ErrorKind::Dropped, what).at_path(self.root());
        Err(error.with_points(near.map(Checkpoint::name).collect()))
    }
}
