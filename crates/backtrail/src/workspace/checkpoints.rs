//! The checkpoints of a workspace, forwards and backwards.

use std::vec::IntoIter;

use super::Workspace;
use super::bindings::{Bindings, add_newer, add_older};
use super::checkpoint::Checkpoint;
use super::checkpoint_record::CheckpointRecord;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::log::Records;
use crate::trail::{DamageReport, RecordKind, RecordRef};

/// Iterates over the checkpoints of a workspace.
///
/// Damage on the trail is skipped, and reported by [`damage`](Self::damage).
#[derive(Debug)]
pub struct Checkpoints {
    workspace: Workspace,
    /// `None` if the workspace has no trail.
    records: Option<Records>,
    /// The places that checkpoints got later, as far as they were met.
    bindings: Bindings,
    /// Forwards, all of them: a place comes after its checkpoint.
    all: Option<IntoIter<Checkpoint>>,
    flawed: u64,
}

impl Checkpoints {
    fn back(workspace: &Workspace, records: Option<Records>) -> Self {
        Self {
            workspace: workspace.clone(),
            records,
            bindings: Bindings::new(),
            all: None,
            flawed: 0,
        }
    }

    /// Reads all checkpoints, and then gives them their places.
    fn forwards(workspace: &Workspace, records: Option<Records>) -> Result<Self> {
        let mut read = Self::back(workspace, records);
        let mut all = Vec::new();
        while let Some(checkpoint) = read.advance(add_newer)? {
            all.push(checkpoint);
        }
        for checkpoint in &mut all {
            checkpoint.record.bind(&read.bindings);
        }
        read.all = Some(all.into_iter());
        Ok(read)
    }

    /// Returns the damage that was skipped so far.
    pub fn damage(&self) -> Option<&DamageReport> {
        self.records.as_ref().map(Records::damage)
    }

    /// Returns how many intact records so far are not valid checkpoints.
    pub fn flawed(&self) -> u64 {
        self.flawed
    }

    /// Reads on to the next checkpoint. `add` adds a record of places to those that are known.
    fn advance(
        &mut self,
        add: impl Fn(&mut Bindings, &RecordRef<'_>),
    ) -> Result<Option<Checkpoint>> {
        let Some(records) = &mut self.records else {
            return Ok(None);
        };
        while let Some(record) = records.next()? {
            match record.kind() {
                RecordKind::Checkpoint | RecordKind::Done => {}
                RecordKind::Bound => {
                    add(&mut self.bindings, &record);
                    continue;
                }
                _ => continue,
            }
            match record.parse::<CheckpointRecord>() {
                Ok(mut stored) => {
                    stored.bind(&self.bindings);
                    return Ok(Some(stored.at(&self.workspace, record.seq())));
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
        match &mut self.all {
            Some(all) => all.next().map(Ok),
            None => self.advance(add_older).transpose(),
        }
    }
}

impl Workspace {
    /// Returns the checkpoints, oldest first. Reads the whole trail, once.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn checkpoints(&self) -> Result<Checkpoints> {
        Checkpoints::forwards(self, self.records()?)
    }

    /// Returns the checkpoints, newest first. Reads only as far as the caller iterates.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn checkpoints_back(&self) -> Result<Checkpoints> {
        self.records_back()
            .map(|records| Checkpoints::back(self, records))
    }

    /// Returns the records of the trail, oldest first; `None` if there is no trail.
    pub(super) fn records(&self) -> Result<Option<Records>> {
        if_there(self.trail().records())
    }

    /// Returns the records of the trail, newest first; `None` if there is no trail.
    pub(super) fn records_back(&self) -> Result<Option<Records>> {
        if_there(self.trail().records_back())
    }

    /// Returns the newest checkpoint.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn last_checkpoint(&self) -> Result<Option<Checkpoint>> {
        self.checkpoints_back()?.next().transpose()
    }

    /// Returns the checkpoint with this id.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn checkpoint_by_id(&self, id: CheckpointId) -> Result<Option<Checkpoint>> {
        self.find_back(|checkpoint| checkpoint.id() == id)
    }

    /// Returns the newest checkpoint before record `seq` of the trail.
    pub(super) fn checkpoint_before(&self, seq: u64) -> Result<Option<Checkpoint>> {
        self.find_back(|checkpoint| checkpoint.seq < seq)
    }

    /// Returns the newest checkpoint that matches.
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

    /// Returns the error for a workspace without checkpoints.
    pub(crate) fn no_checkpoint(&self) -> Error {
        let what = format!("{} has no checkpoint yet", self.root().display());
        Error::new(ErrorKind::NotFound, what).at_path(self.root())
    }
}

fn if_there(records: Result<Records>) -> Result<Option<Records>> {
    match records {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        records => records.map(Some),
    }
}
