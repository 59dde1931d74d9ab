//! Checks that every checkpoint is complete. It only reads.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::{Workspace, identity};
use crate::error::{Error, ErrorKind, Result};
use crate::hex::lossy_path;
use crate::ids::CheckpointId;
use crate::log::VerifyReport;
use crate::objects::{Depth, ObjectId};
use crate::snapshot::{Missing, WholeListings, find_missing};
use crate::store::Store;

/// Options of a check.
#[derive(Clone, Default)]
pub struct VerifyOptions {
    pub(crate) quick: bool,
    progress: Option<Arc<VerifyProgress>>,
}

/// Called with how many bytes of objects were read, and how many there are.
type VerifyProgress = dyn Fn(u64, u64) + Send + Sync;

impl VerifyOptions {
    /// Returns options for a check of everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the structure only: that every referenced record and object exists. The bytes
    /// of files and messages are not read.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.quick = true;
        self
    }

    /// Sets a function that is called with how many bytes of objects were read, and how
    /// many there are.
    #[must_use]
    pub fn progress(mut self, progress: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }
}

impl fmt::Debug for VerifyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyOptions")
            .field("quick", &self.quick)
            .finish_non_exhaustive()
    }
}

/// The result of a check of a store's snapshots.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SnapshotsReport {
    /// How many workspaces there are.
    pub workspaces: u64,
    /// How many checkpoints they have.
    pub checkpoints: u64,
    /// How many of those have dropped files.
    pub dropped: u64,
    /// The reports on their trails.
    pub trails: Vec<(Workspace, VerifyReport)>,
    /// Workspaces and records that cannot be read.
    pub incomplete: Vec<Incomplete>,
    /// Damaged or missing states in checkpoints.
    pub lost: Vec<LostState>,
    /// How many copies of objects are intact.
    pub objects: u64,
    /// The size of the packs in bytes.
    pub bytes: u64,
    /// The first damaged places in the packs.
    pub damage: Vec<ObjectDamage>,
    /// How many places in the packs are damaged.
    pub damaged: u64,
    /// How many damaged copies there are of objects that also have an intact one.
    pub spare: u64,
    /// How many packs end in bytes that a crash left, or that are being written.
    pub leftovers: u64,
}

/// A workspace or one of its records that cannot be read.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Incomplete {
    /// The directory of its workspace's trail.
    #[serde(serialize_with = "lossy_path")]
    pub trail: PathBuf,
    /// The error.
    pub error: Error,
}

/// A state of a path in checkpoints that is damaged or missing.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct LostState {
    /// The workspace.
    pub workspace: Workspace,
    /// The path in it; `.` is the workspace itself.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// Whether it is a directory: its content is unknown.
    pub is_dir: bool,
    /// The damaged or missing object.
    pub object: ObjectId,
    /// The checkpoints that have it, oldest first.
    pub checkpoints: Vec<CheckpointId>,
    /// The error.
    pub error: Error,
}

/// A damaged place in a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ObjectDamage {
    /// The pack.
    #[serde(serialize_with = "lossy_path")]
    pub file: PathBuf,
    /// The position in it.
    pub byte: u64,
    /// The object there, if known.
    pub object: Option<ObjectId>,
    /// The reason.
    pub reason: String,
}

impl SnapshotsReport {
    /// Returns whether nothing is damaged.
    pub fn is_ok(&self) -> bool {
        self.incomplete.is_empty()
            && self.lost.is_empty()
            && self.damaged == 0
            && self.trails.iter().all(|(_, report)| report.is_ok())
    }
}

/// Checks the trails of all workspaces, the snapshots that they name, and every
/// object.
pub(crate) fn verify(store: &Store, options: &VerifyOptions) -> Result<SnapshotsReport> {
    let mut report = SnapshotsReport::default();
    check_packs(store, options, &mut report)?;
    let mut whole = WholeListings::default();
    for (id, known) in identity::all(store)? {
        match known {
            Ok(None) => {}
            Ok(Some(known)) => {
                report.workspaces += 1;
                known.open(store).check(options, &mut report, &mut whole)?;
            }
            Err(error) => {
                report.workspaces += 1;
                let trail = store.workspace_files(&id).path().to_owned();
                report.incomplete.push(Incomplete { trail, error });
            }
        }
    }
    Ok(report)
}

/// How many damaged places are listed.
const LISTED: usize = 100;

fn check_packs(store: &Store, options: &VerifyOptions, report: &mut SnapshotsReport) -> Result<()> {
    let depth = match options.quick {
        true => Depth::Structure,
        false => Depth::Everything,
    };
    let mut damages = Vec::new();
    let verified = store.objects().verify(depth, &mut |verified, found| {
        damages.extend(found.cloned());
        if let Some(progress) = &options.progress {
            progress(verified.read, verified.bytes);
        }
    })?;
    for damage in damages {
        if let Some(object) = &damage.object
            && store.objects().is_whole(object)?
        {
            report.spare += 1;
            continue;
        }
        report.damaged += 1;
        if report.damage.len() < LISTED {
            report.damage.push(ObjectDamage {
                file: damage.path,
                byte: damage.byte,
                object: damage.object,
                reason: damage.what.to_owned(),
            });
        }
    }
    report.objects = verified.objects;
    report.bytes = verified.bytes;
    report.leftovers = verified.leftovers;
    Ok(())
}

impl Workspace {
    fn check(
        &self,
        options: &VerifyOptions,
        report: &mut SnapshotsReport,
        whole: &mut WholeListings,
    ) -> Result<()> {
        let trail = match options.quick {
            true => self.trail().verify_structure()?,
            false => self.trail().verify()?,
        };
        report.trails.push((self.clone(), trail));
        let gone = self.all_dropped()?;
        // By path and object, which many checkpoints share.
        let mut lost: BTreeMap<(PathBuf, ObjectId), LostState> = BTreeMap::new();
        let mut checkpoints = self.checkpoints()?;
        for checkpoint in &mut checkpoints {
            let checkpoint = checkpoint?;
            report.checkpoints += 1;
            if gone.contains_key(&checkpoint.id()) {
                report.dropped += 1;
                continue;
            }
            let missing = find_missing(self.objects(), &checkpoint.snapshot_id(), whole)?;
            // Its files may have been dropped and removed meanwhile.
            if missing.is_empty() || checkpoint.dropped()?.is_some() {
                continue;
            }
            for missing in missing {
                let key = (missing.path.clone(), missing.object);
                let state = lost.entry(key).or_insert_with(|| self.lost_state(missing));
                if state.checkpoints.last() != Some(&checkpoint.id()) {
                    state.checkpoints.push(checkpoint.id());
                }
            }
        }
        report.lost.extend(lost.into_values());
        if checkpoints.flawed() > 0 {
            let what = format!("{} checkpoint records are unreadable", checkpoints.flawed());
            report.incomplete.push(Incomplete {
                trail: self.files().path().to_owned(),
                error: Error::new(ErrorKind::Corrupt, what),
            });
        }
        Ok(())
    }

    fn lost_state(&self, missing: Missing) -> LostState {
        LostState {
            workspace: self.clone(),
            path: match missing.path.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => missing.path,
            },
            is_dir: missing.is_listing,
            object: missing.object,
            checkpoints: Vec::new(),
            error: missing.error,
        }
    }
}
