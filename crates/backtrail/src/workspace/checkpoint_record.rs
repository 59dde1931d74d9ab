//! The record of a checkpoint on its workspace's trail.

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace, SkippedFiles};
use crate::error::{Error, Reason, Result};
use crate::ids::CheckpointId;
use crate::json::write_fields;
use crate::objects::ObjectId;
use crate::time::Timestamp;
use crate::trail::RecordRef;

/// The type of its record.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// The fields of a checkpoint's record, after its number.
#[derive(Debug, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<SessionPlace>,
    pub(crate) snapshot: ObjectId,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) changed: u64,
    #[serde(rename = "not_captured")]
    pub(crate) skipped: SkippedFiles,
}

impl CheckpointRecord {
    /// Reads the record of a checkpoint.
    pub(crate) fn read(record: &RecordRef<'_>) -> Result<Self, Reason> {
        serde_json::from_slice(record.bytes()).map_err(|error| Reason::Syntax(error.to_string()))
    }

    /// Writes the fields after the record's number.
    pub(crate) fn body(&self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        write_fields(&mut body, self).map_err(|error| {
            let reason = Reason::Syntax(error.to_string());
            Error::invalid("cannot write the checkpoint").with_reason(reason)
        })?;
        Ok(body)
    }

    pub(crate) fn into_checkpoint(self, workspace: &Workspace, seq: u64) -> Checkpoint {
        Checkpoint {
            workspace: workspace.clone(),
            seq,
            id: self.id,
            at: self.at,
            reason: self.reason,
            session: self.session,
            of: self.of,
            label: self.label,
            about: self.about,
            prompt: self.prompt,
            snapshot: self.snapshot,
            files: self.files,
            bytes: self.bytes,
            changed: self.changed,
            skipped: self.skipped,
        }
    }
}
