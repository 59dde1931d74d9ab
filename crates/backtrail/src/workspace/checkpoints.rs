//! The checkpoints of a workspace, either way.

use super::Workspace;
use super::checkpoint::Checkpoint;
use super::stored::Stored;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::log::Records;
use crate::trail::{DamageReport, RecordKind};

/// The checkpoints of a workspace, one after the other.
///
/// What is damaged on its trail is passed over, and told by
/// [`damage`](Self::damage).
#[derive(Debug)]
pub struct Checkpoints {
    workspace: Workspace,
    /// `None` where the workspace has no trail.
    records: Option<Records>,
    flawed: u64,
}

impl Checkpoints {
    /// Returns what had to be passed over so far.
    pub fn damage(&self) -> Option<&DamageReport> {
        self.records.as_ref().map(Records::damage)
    }

    /// Returns how many records so far are whole and yet no checkpoint that can
    /// be read.
    pub fn flawed(&self) -> u64 {
        self.flawed
    }

    fn advance(&mut self) -> Result<Option<Checkpoint>> {
        let Some(records) = &mut self.records else {
            return Ok(None);
        };
        while let Some(record) = records.next()? {
            if !matches!(record.kind(), RecordKind::Checkpoint | RecordKind::Done) {
                continue;
            }
            match Stored::read(&record) {
                Ok(stored) => {
                    return Ok(Some(stored.into_checkpoint(&self.workspace, record.seq())));
                }
                Err(_) => self.flawed += 1,
            }
        }
        Ok(None)
    }
}

impl Iterator for Checkpoints {
    type Item = Result<Checkpoint>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

impl Workspace {
    /// Returns the checkpoints in the order in which they were made.
    pub fn checkpoints(&self) -> Result<Checkpoints> {
        self.iterate(self.trail().records())
    }

    /// Returns the checkpoints, the newest first. The cost is that of what is
    /// read.
    pub fn checkpoints_back(&self) -> Result<Checkpoints> {
        self.iterate(self.trail().records_back())
    }

    fn iterate(&self, records: Result<Records>) -> Result<Checkpoints> {
        let records = match records {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            records => Some(records?),
        };
        Ok(Checkpoints {
            workspace: self.clone(),
            records,
            flawed: 0,
        })
    }

    /// Returns the newest checkpoint.
    pub fn last_checkpoint(&self) -> Result<Option<Checkpoint>> {
        self.checkpoints_back()?.next().transpose()
    }

    /// Returns the checkpoint with an id.
    pub fn checkpoint_by_id(&self, id: CheckpointId) -> Result<Option<Checkpoint>> {
        self.find_back(|checkpoint| checkpoint.id == id)
    }

    /// Returns the newest checkpoint before a number on the trail.
    pub(super) fn checkpoint_before(&self, seq: u64) -> Result<Option<Checkpoint>> {
        self.find_back(|checkpoint| checkpoint.seq < seq)
    }

    /// Returns the newest checkpoint that fits.
    pub(super) fn find_back(
        &self,
        mut fits: impl FnMut(&Checkpoint) -> bool,
    ) -> Result<Option<Checkpoint>> {
        for checkpoint in self.checkpoints_back()? {
            let checkpoint = checkpoint?;
            if fits(&checkpoint) {
                return Ok(Some(checkpoint));
            }
        }
        Ok(None)
    }

    /// Returns an error for where a checkpoint is needed and there is none.
    pub(crate) fn no_checkpoint(&self) -> Error {
        let what = format!("{} has no checkpoint yet", self.root().display());
        Error::new(ErrorKind::NotFound, what).at_path(self.root())
    }
}
