//! The record of a checkpoint on its workspace's trail.

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::agent_place::AgentPlace;
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace, SkippedFiles};
use super::git_head::GitHead;
use super::left_running::LeftProcess;
use super::unprotected::{Included, UnprotectedChanges};
use crate::error::Result;
use crate::ids::CheckpointId;
use crate::json::body;
use crate::log::append_entry;
use crate::objects::ObjectId;
use crate::snapshot::Totals;
use crate::time::Timestamp;

/// The type of its record.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// The fields of a checkpoint's record, after its number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CheckpointRecord {
    pub(crate) at: Timestamp,
    pub(crate) id: CheckpointId,
    #[serde(rename = "why")]
    pub(crate) reason: CheckpointReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<SessionPlace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<CheckpointId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// A command, or a summary of a step; in a turn of an earlier version, the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<String>,
    /// The message that a turn began with, or that the text ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<SessionPlace>,
    /// The place in the session of another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentPlace>,
    /// Whether the files may have changed between its record and the snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) late: bool,
    /// When a process that died was last alive; on the end of its turn or run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_seen: Option<Timestamp>,
    pub(crate) snapshot: ObjectId,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) changed: u64,
    #[serde(rename = "not_captured")]
    pub(crate) skipped: SkippedFiles,
    /// Ignored paths that are captured from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) included: Vec<Included>,
    /// What happened to unprotected files in the turn or run that it ends.
    #[serde(default, skip_serializing_if = "UnprotectedChanges::is_empty")]
    pub(crate) unprotected: UnprotectedChanges,
    /// How the command of a run ended. Earlier versions kept that only in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// git's HEAD at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) git: Option<GitHead>,
    /// Processes that outlived their run and may be alive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<LeftProcess>,
    /// Prompts before its turn that were not protected, as its binding says.
    #[serde(skip)]
    pub(crate) missed: Vec<SessionPlace>,
}

impl CheckpointRecord {
    /// Creates the record of a stored state.
    pub(crate) fn new(
        (at, id): (Timestamp, CheckpointId),
        reason: CheckpointReason,
        (snapshot, totals): (ObjectId, Totals),
    ) -> Self {
        Self {
            at,
            id,
            reason,
            session: None,
            of: None,
            label: None,
            about: None,
            prompt: None,
            agent: None,
            late: false,
            last_seen: None,
            snapshot,
            files: totals.files,
            bytes: totals.bytes,
            changed: 0,
            skipped: SkippedFiles::default(),
            included: Vec::new(),
            unprotected: UnprotectedChanges::default(),
            exit_code: None,
            signal: None,
            git: None,
            left: Vec::new(),
            missed: Vec::new(),
        }
    }

    /// Returns the checkpoint of the record at `seq`.
    pub(super) fn at(self, workspace: &Workspace, seq: u64) -> Checkpoint {
        Checkpoint {
            workspace: workspace.clone(),
            seq,
            record: self,
            protection: None,
        }
    }
}

impl Workspace {
    /// Appends a record to the trail. It is durable when this returns.
    pub(super) fn append(&self, kind: &str, fields: &impl Serialize) -> Result<u64> {
        append_entry(self.store(), self.files(), kind, &body(fields)?)
    }

    pub(crate) fn new_checkpoint_id(&self) -> Result<CheckpointId> {
        self.store().new_id().map(CheckpointId::from_uuid)
    }
}
