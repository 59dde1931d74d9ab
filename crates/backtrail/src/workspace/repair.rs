//! Repairs snapshots: captures damaged objects again if the same content is still in a
//! workspace.
//!
//! An object is identified by its content. So a damaged or missing object is restored as
//! soon as any workspace has that content, at any path. The listing of a directory is
//! restored in the same way, if the directory is unchanged. The damaged copy stays in its
//! pack and is not read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Workspace;
use super::dropped::DropReason;
use super::scan::scan_time;
use super::verify::{Incomplete, LostState, VerifyOptions, verify};
use crate::error::Result;
use crate::hex::lossy_path;
use crate::ids::CheckpointId;
use crate::log::{RepairReport, repair_plan};
use crate::objects::{ObjectId, ObjectWriter};
use crate::snapshot::Snapshot;
use crate::snapshot::entry::Node;
use crate::snapshot::scan::{Sink, StatCache, capture, scan};
use crate::store::Store;

/// The outcome of a repair of snapshots, or its plan.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SnapshotsRepair {
    /// The objects that were captured again, or can be.
    pub recaptured: Vec<Recaptured>,
    /// The states that are in no workspace any more.
    pub lost: Vec<LostState>,
    /// The workspaces' trails that were repaired; empty in a plan.
    pub trails: Vec<(Workspace, RepairReport)>,
    /// How many of the workspaces' trails are damaged.
    pub damaged_trails: u64,
    /// Workspaces whose files could not be read, with the error.
    pub unseen: Vec<(Workspace, crate::Error)>,
    /// Workspaces whose trail cannot be read at all: none of it can be recovered.
    pub unreadable: Vec<Incomplete>,
    /// How many checkpoints lost their files for good.
    pub given_up: u64,
    /// Whether this is a plan, and nothing was done.
    pub dry_run: bool,
}

/// An object that is still in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Recaptured {
    /// The object.
    pub object: ObjectId,
    /// The file that has it, or the directory that it lists.
    #[serde(serialize_with = "lossy_path")]
    pub from: PathBuf,
}

impl SnapshotsRepair {
    /// Returns whether there is nothing to repair.
    pub fn is_empty(&self) -> bool {
        self.recaptured.is_empty()
            && self.lost.is_empty()
            && self.damaged_trails == 0
            && self.unreadable.is_empty()
    }

    /// Returns whether something is lost for good.
    pub fn has_losses(&self) -> bool {
        let has_lost = |(_, report): &(Workspace, RepairReport)| !report.missing.is_empty();
        !self.lost.is_empty() || !self.unreadable.is_empty() || self.trails.iter().any(has_lost)
    }
}

/// Options of a repair of snapshots.
#[derive(Debug, Clone, Copy, Default)]
pub struct SnapshotsRepairOptions {
    give_up_lost: bool,
}

impl SnapshotsRepairOptions {
    /// Returns options that drop no files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the files of checkpoints that lost a whole directory for good: otherwise `gc`
    /// cannot free anything. Their records stay.
    #[must_use]
    pub fn give_up_lost(mut self) -> Self {
        self.give_up_lost = true;
        self
    }
}

/// A planned repair of snapshots.
#[derive(Debug)]
pub struct SnapshotsRepairPlan {
    store: Store,
    options: SnapshotsRepairOptions,
    damaged: Vec<Workspace>,
    /// The damaged or missing objects.
    needed: HashSet<ObjectId>,
    present: Vec<PresentFiles>,
    planned: SnapshotsRepair,
}

/// Plans a repair. Changes nothing.
pub(crate) fn repair_snapshots_plan(
    store: &Store,
    options: SnapshotsRepairOptions,
) -> Result<SnapshotsRepairPlan> {
    let found = verify(store, &VerifyOptions::new())?;
    let damaged = found
        .trails
        .into_iter()
        .filter(|(_, report)| !report.is_ok());
    let damaged: Vec<Workspace> = damaged.map(|(workspace, _)| workspace).collect();
    let mut planned = SnapshotsRepair {
        dry_run: true,
        damaged_trails: damaged.len() as u64,
        unreadable: found.incomplete,
        ..SnapshotsRepair::default()
    };
    let present = match found.lost.is_empty() {
        true => Vec::new(),
        false => planned.read_workspaces(store)?,
    };
    let needed = found.lost.iter().map(|lost| lost.object).collect();
    planned.find_in(&present, found.lost);
    Ok(SnapshotsRepairPlan {
        store: store.clone(),
        options,
        damaged,
        needed,
        present,
        planned,
    })
}

impl SnapshotsRepairPlan {
    /// Returns the planned repair.
    pub fn repair(&self) -> &SnapshotsRepair {
        &self.planned
    }

    /// Applies the repair, as far as possible.
    ///
    /// # Errors
    ///
    /// Fails if the store or a workspace in it cannot be read or written.
    pub fn apply(mut self) -> Result<SnapshotsRepair> {
        let mut repair = SnapshotsRepair {
            damaged_trails: self.planned.damaged_trails,
            unseen: std::mem::take(&mut self.planned.unseen),
            unreadable: std::mem::take(&mut self.planned.unreadable),
            ..SnapshotsRepair::default()
        };
        for workspace in &self.damaged {
            let _guard = workspace.hold_snapshots(None)?;
            let plan = repair_plan(workspace.store(), workspace.files())?;
            repair.trails.push((workspace.clone(), plan.apply()?));
        }
        let gives_up = self.options.give_up_lost;
        self.recapture(&mut repair)?;
        if gives_up {
            repair.give_up()?;
        }
        Ok(repair)
    }

    fn recapture(self, repair: &mut SnapshotsRepair) -> Result<()> {
        let mut needed = self.needed;
        let mut lost = None;
        // The objects in a listing are known once the listing can be read.
        while !needed.is_empty() {
            let before = repair.recaptured.len();
            for present in &self.present {
                repair.recaptured.extend(present.store(&needed)?);
            }
            if repair.recaptured.len() == before {
                break;
            }
            let found = verify(&self.store, &VerifyOptions::new().quick())?;
            needed = found.lost.iter().map(|lost| lost.object).collect();
            lost = Some(found.lost);
        }
        repair.lost = match lost {
            Some(lost) => lost,
            None if self.planned.recaptured.is_empty() => self.planned.lost,
            // Files changed since the plan was made.
            None => verify(&self.store, &VerifyOptions::new())?.lost,
        };
        Ok(())
    }
}

impl SnapshotsRepair {
    /// Drops the files of the checkpoints that lost a directory, whose content is
    /// unknown.
    fn give_up(&mut self) -> Result<()> {
        let mut by_workspace: BTreeMap<PathBuf, (Workspace, HashSet<CheckpointId>)> =
            BTreeMap::new();
        for lost in self.lost.iter().filter(|lost| lost.is_dir) {
            let root = lost.workspace.root().to_owned();
            let known = by_workspace.entry(root);
            let known = known.or_insert_with(|| (lost.workspace.clone(), HashSet::new()));
            known.1.extend(lost.checkpoints.iter().copied());
        }
        for (workspace, ids) in by_workspace.into_values() {
            let _guard = workspace.hold_recovered()?;
            let mut ids: Vec<CheckpointId> = ids.into_iter().collect();
            ids.sort_unstable_by_key(CheckpointId::to_string);
            workspace.drop_files(&ids, DropReason::Damage)?;
            self.given_up += ids.len() as u64;
        }
        Ok(())
    }

    /// Reads the present files of all workspaces.
    fn read_workspaces(&mut self, store: &Store) -> Result<Vec<PresentFiles>> {
        let mut present = Vec::new();
        for workspace in store.workspaces()? {
            if !workspace.root_exists()? {
                continue;
            }
            match PresentFiles::read(&workspace) {
                Ok(found) => present.push(found),
                // An unreadable workspace must not stop the repair of others.
                Err(error) => self.unseen.push((workspace, error)),
            }
        }
        Ok(present)
    }

    /// Lists the objects that can be captured again. Finding a directory includes finding its
    /// content.
    fn find_in(&mut self, present: &[PresentFiles], lost: Vec<LostState>) {
        let mut named = HashSet::new();
        for state in lost {
            let from = present
                .iter()
                .find_map(|found| found.path_of(&state.object));
            match from {
                Some(from) if named.insert(state.object) => self.recaptured.push(Recaptured {
                    object: state.object,
                    from,
                }),
                Some(_) => {}
                None => self.lost.push(state),
            }
        }
    }
}

/// The present files of a workspace.
#[derive(Debug)]
struct PresentFiles {
    workspace: Workspace,
    /// The listings of its directories.
    nodes: HashMap<ObjectId, Vec<u8>>,
    /// The path of each content.
    files: HashMap<ObjectId, PathBuf>,
}

impl PresentFiles {
    /// Reads all files: the stat cache may name the damaged objects.
    fn read(workspace: &Workspace) -> Result<Self> {
        let mut options = workspace.scan_options(&workspace.included()?, None, None);
        options.keep = true;
        let (root, cache) = (workspace.root(), StatCache::empty());
        let scanned = scan(root, &options, &cache, Sink::HashOnly, scan_time())?;
        let nodes = scanned.nodes.clone();
        let found = (scanned.id, scanned.root);
        let present = Snapshot::present(root, found, scanned.nodes, workspace.objects());
        let mut files = HashMap::new();
        for entry in present.entries() {
            let (path, state) = entry?;
            if let Some(content) = state.content {
                files.entry(content).or_insert(path);
            }
        }
        Ok(Self {
            workspace: workspace.clone(),
            nodes,
            files,
        })
    }

    /// Returns the path of an object's content.
    fn path_of(&self, id: &ObjectId) -> Option<PathBuf> {
        let file = self.files.get(id).map(PathBuf::as_path);
        let path = file.or(self.nodes.contains_key(id).then_some(Path::new("")))?;
        Some(self.workspace.root().join(path))
    }

    /// Stores the needed objects that are here. They are durable when this returns.
    fn store(&self, needed: &HashSet<ObjectId>) -> Result<Vec<Recaptured>> {
        let is_here = |id: &&ObjectId| self.path_of(id).is_some();
        let here: Vec<&ObjectId> = needed.iter().filter(is_here).collect();
        if here.is_empty() {
            return Ok(Vec::new());
        }
        let _guard = self.workspace.hold_snapshots(None)?;
        let writer = self.workspace.objects().writer()?;
        let mut stored = Vec::new();
        for id in here {
            if self.put(id, &writer)?
                && let Some(from) = self.path_of(id)
            {
                stored.push(Recaptured { object: *id, from });
            }
        }
        writer.finish()?;
        Ok(stored)
    }

    /// Stores an object, and returns whether it is unchanged.
    fn put(&self, id: &ObjectId, writer: &ObjectWriter) -> Result<bool> {
        if let Some(node) = self.nodes.get(id) {
            return Ok(writer.put(node)? == *id);
        }
        let Some(path) = self.files.get(id) else {
            return Ok(false);
        };
        let options = self
            .workspace
            .scan_options(&self.workspace.included()?, None, None);
        let node = capture(self.workspace.root(), path, &options, writer)?;
        Ok(matches!(node, Some(Node::File { content, .. }) if content == *id))
    }
}
