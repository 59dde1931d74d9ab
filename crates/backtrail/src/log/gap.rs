//! Records that are gone from a line of history without being damaged.
//!
//! A purged session leaves a file in the trash that records the purge. Trails that were
//! moved to the trash are listed in a file beside the others, with the record that each
//! continues, so that the line can be followed after the trash is emptied.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use super::deleted::purged_at;
use super::directory::LogDir;
use crate::error::{IoContext, Result};
use crate::ids::SessionId;
use crate::storage::{is_absent, read_range};
use crate::time::Timestamp;
use crate::trail::opener::Continues;

/// Records that are gone from a line of history, or are in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryGap {
    /// The session that they belong to.
    pub session: SessionId,
    /// The first of them.
    pub from: u64,
    /// The last of them.
    pub until: u64,
    /// The reason.
    #[serde(flatten)]
    pub reason: GapReason,
}

/// The reason why records are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GapReason {
    /// Their trails were moved to the trash because there were too many, and the trash was
    /// emptied.
    Emptied,
    /// Their trails were moved to the trash because there were too many. They can be read
    /// there until it is emptied.
    InTrash,
    /// Their session was purged.
    Purged {
        /// When, if that can be read.
        at: Option<Timestamp>,
    },
}

impl HistoryGap {
    /// Returns whether the records cannot be read any more.
    pub fn is_gone(&self) -> bool {
        self.reason != GapReason::InTrash
    }

    /// Returns how many seqs the gap covers.
    pub fn count(&self) -> u64 {
        (self.until + 1).saturating_sub(self.from)
    }

    /// Returns whether another gap of the same kind directly precedes this one.
    pub(super) fn joins(&self, before: &Self) -> bool {
        self.session == before.session
            && self.reason == before.reason
            && before.until.saturating_add(1) >= self.from
    }
}

impl fmt::Display for HistoryGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = (self.from, self.until);
        let session = &self.session;
        match self.count() {
            1 => write!(f, "record {until} ")?,
            _ => write!(f, "records {from} to {until} ")?,
        }
        let (was, is) = match self.count() {
            1 => ("was", "is"),
            _ => ("were", "are"),
        };
        match self.reason {
            GapReason::Purged { .. } => write!(f, "{was} purged with session {session}"),
            GapReason::Emptied => write!(f, "{was} removed from the trash"),
            GapReason::InTrash => write!(f, "{is} in the trash"),
        }
    }
}

/// The file that lists the trails that were moved to the trash.
pub(crate) const GONE_TRAILS: &str = "gone-trails";
/// The limit for the length of such a file.
const MAX_FILE: u64 = 16 << 20;

/// The trails of a session that were moved to the trash.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct GoneTrails {
    pub(crate) trails: Vec<GoneTrail>,
}

/// A trashed trail, and where the line continues before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GoneTrail {
    pub(crate) trail: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<Continues>,
}

impl GoneTrails {
    /// Reads the list of a session; it is empty if the file is missing.
    pub(crate) fn read(files: &LogDir) -> Result<Self> {
        let file = match files.find_read(GONE_TRAILS) {
            Err(error) if is_absent(&error) => return Ok(Self::default()),
            found => found.map(|(_, file)| file),
        };
        let bytes = file.and_then(|file| read_range(file.as_ref(), 0..file.len()?.min(MAX_FILE)));
        let what = "cannot read the list of trashed trails";
        let bytes = bytes.context(what, &files.path().join(GONE_TRAILS))?;
        // An invalid file counts as empty: then a missing trail is damage.
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }

    fn find(self, trail: u32) -> Option<GoneTrail> {
        self.trails.into_iter().find(|gone| gone.trail == trail)
    }
}

/// The replacement of a missing trail.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) gap: HistoryGap,
    /// Where the line continues before it.
    pub(super) continues: Option<Continues>,
}

/// Returns whether a missing trail is known to be gone, and what replaces it.
pub(super) fn look(files: &LogDir, trail: u32, until: u64) -> Result<Option<Gone>> {
    if files.is_of_workspace() {
        return Ok(None);
    }
    let gap = |from, reason| HistoryGap {
        session: files.id().clone(),
        from,
        until,
        reason,
    };
    if let Some(gone) = GoneTrails::read(files)?.find(trail) {
        let from = gone.continues.as_ref().map_or(0, |from| from.seq);
        return Ok(Some(Gone {
            gap: gap(from.min(until) + 1, GapReason::Emptied),
            continues: gone.continues.filter(|from| from.seq > 0),
        }));
    }
    let purged = purged_at(files)?;
    Ok(purged.map(|at| Gone {
        gap: gap(1, GapReason::Purged { at }),
        continues: None,
    }))
}
