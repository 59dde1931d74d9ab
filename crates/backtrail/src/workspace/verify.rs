//! Checking that every checkpoint is complete. It only reads.

use std::collections::HashSet;
use std::path::PathBuf;

use super::{Workspace, identity};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::objects::ObjectId;
use crate::session::VerifyReport;
use crate::snapshot::check_snapshot;
use crate::store::Store;

/// What a check of the snapshots of a store found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SnapshotsReport {
    /// How many workspaces there are.
    pub workspaces: u64,
    /// How many checkpoints they have.
    pub checkpoints: u64,
    /// What was found on their trails.
    pub trails: Vec<(Workspace, VerifyReport)>,
    /// Checkpoints whose snapshot is not whole.
    pub incomplete: Vec<Incomplete>,
    /// How many copies of objects are whole.
    pub objects: u64,
    /// How many bytes the packs have.
    pub bytes: u64,
    /// What is damaged in the packs: the first few.
    pub damage: Vec<ObjectDamage>,
    /// How many places in the packs are damaged.
    pub damaged: u64,
    /// How many packs end in something that a crash left, or that is being
    /// written now.
    pub leftovers: u64,
}

/// A checkpoint whose snapshot is not whole, or that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Incomplete {
    /// The directory of its workspace's trail.
    pub trail: PathBuf,
    /// Which it is; `None` where that cannot be read.
    pub checkpoint: Option<CheckpointId>,
    /// What is wrong.
    pub error: Error,
}

/// A place in a pack that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectDamage {
    /// The pack.
    pub file: PathBuf,
    /// Where in it.
    pub byte: u64,
    /// The object that it concerns, where that is known.
    pub object: Option<ObjectId>,
    /// What is wrong.
    pub reason: String,
}

impl SnapshotsReport {
    /// Returns whether nothing is damaged.
    pub fn is_ok(&self) -> bool {
        self.incomplete.is_empty()
            && self.damaged == 0
            && self.trails.iter().all(|(_, report)| report.is_ok())
    }
}

/// Checks the trails of all workspaces, the snapshots that they name, and every
/// object.
pub(crate) fn verify(store: &Store) -> Result<SnapshotsReport> {
    let mut report = SnapshotsReport::default();
    check_packs(store, &mut report)?;
    let mut whole = HashSet::new();
    for (id, known) in identity::all(store)? {
        match known {
            Ok(None) => {}
            Ok(Some(known)) => {
                report.workspaces += 1;
                known.open(store).check(&mut report, &mut whole)?;
            }
            Err(error) => {
                report.workspaces += 1;
                let trail = store.workspace_files(&id).dir().to_owned();
                report.incomplete.push(Incomplete {
                    trail,
                    checkpoint: None,
                    error,
                });
            }
        }
    }
    Ok(report)
}

/// How many damaged places are told one by one.
const TOLD: usize = 100;

fn check_packs(store: &Store, report: &mut SnapshotsReport) -> Result<()> {
    let damage = &mut report.damage;
    let verified = store.objects().verify(&mut |_, found| {
        if let Some(found) = found.filter(|_| damage.len() < TOLD) {
            damage.push(ObjectDamage {
                file: found.path.clone(),
                byte: found.byte,
                object: found.object,
                reason: found.what.to_owned(),
            });
        }
    })?;
    report.objects = verified.objects;
    report.bytes = verified.bytes;
    report.damaged = verified.damages;
    report.leftovers = verified.leftovers;
    Ok(())
}

impl Workspace {
    fn check(&self, report: &mut SnapshotsReport, whole: &mut HashSet<ObjectId>) -> Result<()> {
        report.trails.push((self.clone(), self.trail().verify()?));
        let mut checkpoints = self.checkpoints()?;
        for checkpoint in &mut checkpoints {
            let checkpoint = checkpoint?;
            report.checkpoints += 1;
            if let Err(error) = check_snapshot(self.objects(), &checkpoint.snapshot_id(), whole) {
                report.incomplete.push(Incomplete {
                    trail: self.files().dir().to_owned(),
                    checkpoint: Some(checkpoint.id()),
                    error,
                });
            }
        }
        if checkpoints.flawed() > 0 {
            let what = format!(
                "{} records cannot be read as checkpoints",
                checkpoints.flawed()
            );
            report.incomplete.push(Incomplete {
                trail: self.files().dir().to_owned(),
                checkpoint: None,
                error: Error::new(ErrorKind::Corrupt, what),
            });
        }
        Ok(())
    }
}
