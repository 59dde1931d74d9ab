//! File states that were let go, so that the store stays small.
//!
//! The checkpoints stay on the trail; a `let_go` record says which of them have no
//! files any more. It is durable before the first object is removed, so that
//! whoever misses one knows why.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::journal::body;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::session::append_entry;
use crate::time::Timestamp;
use crate::trail::RecordKind;

const LET_GO: &str = "let_go";
/// How many checkpoints one record names, at the most.
const IN_ONE: usize = 1000;

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
            Self::Other => "a newer version had a reason",
        })
    }
}

/// The record.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    at: Timestamp,
    because: LetGoBecause,
    checkpoints: Vec<CheckpointId>,
}

impl Workspace {
    /// Says that the files of checkpoints are let go. Durable when it returns. The
    /// caller holds the snapshot lock, and nothing is half done.
    #[expect(dead_code, reason = "the clean-up comes next")]
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
    pub(crate) fn all_let_go(&self) -> Result<HashMap<CheckpointId, LetGo>> {
        let mut gone = HashMap::new();
        let mut records = match self.trail().records() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(gone),
            records => records?,
        };
        while let Some(record) = records.next()? {
            if record.kind() != RecordKind::LetGo {
                continue;
            }
            // One that cannot be read is named by `verify`, and stops the clean-up.
            if let Ok(stored) = serde_json::from_slice::<Stored>(record.bytes()) {
                let let_go = LetGo {
                    at: stored.at,
                    because: stored.because,
                };
                gone.extend(stored.checkpoints.into_iter().map(|id| (id, let_go)));
            }
        }
        Ok(gone)
    }

    /// Says of something that cannot be read that it was let go, if it was.
    pub(crate) fn say_let_go(&self, id: CheckpointId, error: Error) -> Error {
        if error.kind() != ErrorKind::Corrupt {
            return error;
        }
        match self.all_let_go().map(|mut gone| gone.remove(&id)) {
            Ok(Some(let_go)) => {
                let what = format!(
                    "the files of checkpoint {} were let go at {}: {}",
                    id.prefix(8),
                    let_go.at,
                    let_go.because
                );
                Error::new(ErrorKind::LetGo, what).at_path(self.root())
            }
            _ => error,
        }
    }
}
