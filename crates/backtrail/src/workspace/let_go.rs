//! File states that were let go, so that the store stays small.
//!
//! The checkpoints stay on the trail; a `let_go` record says which of them have no
//! files any more. It is durable before the first object is removed, so that
//! whoever misses one knows why.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::checkpoint::Checkpoint;
use super::journal::body;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::ids::CheckpointId;
use crate::log::append_entry;
use crate::time::Timestamp;
use crate::trail::{RecordKind, RecordRef};

const LET_GO: &str = "let_go";
/// How many checkpoints one record names, at the most.
const IN_ONE: usize = 1000;
/// How many checkpoints an error names, before and after one that was let go.
const NEAR: usize = 2;

/// When and why the files of a checkpoint were let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LetGo {
    /// When that was.
    pub at: Timestamp,
    /// Why.
    pub because: LetGoBecause,
}

/// Why files were let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LetGoBecause {
    /// They were older than what was asked to be kept.
    Age,
    /// The store was larger than what was asked for.
    Size,
    /// Their session was purged.
    Purge,
    /// They were damaged beyond repair, and were given up.
    Damage,
    /// Another reason, of a newer version.
    #[serde(other)]
    Other,
}

impl fmt::Display for LetGoBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Age => "they were older than was asked to be kept",
            Self::Size => "the store was larger than was asked for",
            Self::Purge => "their session was purged",
            Self::Damage => "they were damaged beyond repair",
            Self::Other => "a newer version had a reason",
        })
    }
}

/// What was let go, as of a length of the newest trail: every look at a state asks.
#[derive(Debug, Default)]
pub(super) struct Known {
    of: Option<(u32, u64)>,
    /// The last record that was looked at.
    seq: Option<u64>,
    all: Arc<HashMap<CheckpointId, LetGo>>,
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The record.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    at: Timestamp,
    because: LetGoBecause,
    checkpoints: Vec<CheckpointId>,
}

/// Reads the record: when and why, and of which checkpoints.
pub(crate) fn read(record: &RecordRef<'_>) -> Result<(LetGo, Vec<CheckpointId>), Reason> {
    let stored: Stored = serde_json::from_slice(record.bytes())
        .map_err(|error| Reason::Syntax(error.to_string()))?;
    let let_go = LetGo {
        at: stored.at,
        because: stored.because,
    };
    Ok((let_go, stored.checkpoints))
}

impl Workspace {
    /// Says that the files of checkpoints are let go. Durable when it returns. The
    /// caller holds the snapshot lock, and nothing is half done.
    pub(crate) fn let_go(&self, ids: &[CheckpointId], because: LetGoBecause) -> Result<()> {
        for ids in ids.chunks(IN_ONE) {
            let body = body(&Stored {
                at: self.store().now(),
                because,
                checkpoints: ids.to_vec(),
            })?;
            append_entry(self.store(), self.files(), LET_GO, &body)?;
        }
        Ok(())
    }

    /// Returns all checkpoints whose files were let go.
    pub fn all_let_go(&self) -> Result<Arc<HashMap<CheckpointId, LetGo>>> {
        if self.files().trails()?.is_empty() {
            return Ok(Arc::default());
        }
        let (head, len) = self.files().with_head(|head| {
            let len = self.files().open_read(head)?.len();
            let len = len.map_err(|error| self.failed("cannot read the trail", error))?;
            Ok((head, len))
        })?;
        let mut known = lock(&self.0.let_go);
        if known.of != Some((head, len)) {
            // What is appended meanwhile makes it longer than that.
            self.learn_let_go(&mut known)?;
            known.of = Some((head, len));
        }
        Ok(Arc::clone(&known.all))
    }

    /// Reads what is new, from the end back to what is known.
    fn learn_let_go(&self, known: &mut Known) -> Result<()> {
        let mut records = self.trail().records_back()?;
        let mut newest = known.seq;
        while let Some(record) = records.next()? {
            if known.seq.is_some_and(|seq| record.seq() <= seq) {
                break;
            }
            newest = newest.max(Some(record.seq()));
            // One that cannot be read is named by `verify`, and stops the clean-up.
            if record.kind() == RecordKind::LetGo
                && let Ok((let_go, checkpoints)) = read(&record)
            {
                let all = Arc::make_mut(&mut known.all);
                all.extend(checkpoints.into_iter().map(|id| (id, let_go)));
            }
        }
        known.seq = newest;
        Ok(())
    }

    /// Returns when and why the files of a checkpoint were let go, if they were.
    pub(crate) fn let_go_of(&self, id: CheckpointId) -> Result<Option<LetGo>> {
        Ok(self.all_let_go()?.get(&id).copied())
    }

    /// Returns whether another checkpoint keeps the same state as one that was let go.
    fn is_kept_elsewhere(&self, id: CheckpointId) -> Result<bool> {
        let gone = self.all_let_go()?;
        let all = self.checkpoints()?.collect::<Result<Vec<_>>>()?;
        let own = all.iter().find(|kept| kept.id == id);
        let own = own.map(Checkpoint::snapshot_id);
        let is_same = |kept: &Checkpoint| Some(kept.snapshot_id()) == own;
        Ok(all
            .iter()
            .any(|kept| is_same(kept) && !gone.contains_key(&kept.id)))
    }

    /// Refuses a checkpoint whose files were let go, naming the nearest ones that
    /// have theirs.
    pub(crate) fn must_be_kept(&self, id: CheckpointId) -> Result<()> {
        match self.let_go_of(id)? {
            Some(_) if self.is_kept_elsewhere(id)? => Ok(()),
            Some(let_go) => {
                let what = format!(
                    "the files of checkpoint {} were let go at {}: {}",
                    id.prefix(8),
                    let_go.at,
                    let_go.because
                );
                let error = Error::new(ErrorKind::LetGo, what).at_path(self.root());
                Err(error.with_points(self.kept_near(id)))
            }
            None => Ok(()),
        }
    }

    /// Returns the labels or ids of the checkpoints around one that have their files.
    fn kept_near(&self, id: CheckpointId) -> Vec<String> {
        let gone = self.all_let_go().unwrap_or_default();
        let all = self.checkpoints().into_iter().flatten().flatten();
        let all: Vec<Checkpoint> = all.collect();
        let place = all.iter().position(|kept| kept.id == id).unwrap_or(0);
        let is_kept = |kept: &&Checkpoint| !gone.contains_key(&kept.id);
        let before = all[..place].iter().rev().filter(is_kept).take(NEAR);
        let after = all[place..].iter().filter(is_kept).take(NEAR);
        let near = before.collect::<Vec<_>>().into_iter().rev().chain(after);
        near.map(|kept| kept.label.clone().unwrap_or_else(|| kept.id.prefix(8)))
            .collect()
    }
}
