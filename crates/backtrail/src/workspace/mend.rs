//! Capturing damaged objects again, where the same content still lies.
//!
//! An object is its content, whoever brings it. So what is damaged or gone in the
//! packs is whole again as soon as a workspace is found that still holds it, at
//! whatever path. A directory's listing comes back in the same way, if the directory
//! is what it was. The damaged copy stays where it is and counts for nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::Workspace;
use super::let_go::LetGoBecause;
use super::look::scan_time;
use super::verify::{Incomplete, LostState, SnapshotsReport, VerifyOptions, verify};
use crate::error::Result;
use crate::ids::CheckpointId;
use crate::log::{RepairReport, repair_plan};
use crate::objects::{ObjectId, ObjectWriter};
use crate::snapshot::Snapshot;
use crate::snapshot::entry::Node;
use crate::snapshot::scan::{Sink, StatCache, capture, scan};
use crate::store::Store;

/// What a repair of the file states did, or could do.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SnapshotsRepair {
    /// What was captured again, or could be.
    pub recaptured: Vec<Recaptured>,
    /// What lies nowhere any more.
    pub lost: Vec<LostState>,
    /// The trails of workspaces that were repaired; without those of a dry run.
    pub trails: Vec<(Workspace, RepairReport)>,
    /// How many trails of workspaces are damaged.
    pub damaged_trails: u64,
    /// Workspaces that could not be looked at, and why.
    pub unseen: Vec<(Workspace, crate::Error)>,
    /// Workspaces whose trail cannot be read at all: nothing can be made of it.
    pub unreadable: Vec<Incomplete>,
    /// How many checkpoints were given up.
    pub given_up: u64,
    /// Whether nothing was done.
    pub dry_run: bool,
}

/// An object that still lies in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recaptured {
    /// The object.
    pub object: ObjectId,
    /// Where it lies: a file, or the directory that it lists.
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

/// Gives up the checkpoints of which a directory is lost: nobody knows what was in it,
/// and as long as they count, nothing can be cleaned up.
pub(crate) fn give_up(store: &Store) -> Result<SnapshotsRepair> {
    let mut repair = mend(store, false)?;
    let mut by_workspace: BTreeMap<PathBuf, (Workspace, HashSet<CheckpointId>)> = BTreeMap::new();
    for lost in repair.lost.iter().filter(|lost| lost.is_dir) {
        let root = lost.workspace.root().to_owned();
        let known = by_workspace.entry(root);
        let known = known.or_insert_with(|| (lost.workspace.clone(), HashSet::new()));
        known.1.extend(lost.checkpoints.iter().copied());
    }
    for (workspace, ids) in by_workspace.into_values() {
        let lock = workspace.snapshot_lock()?;
        let _turn = lock.wait(None)?;
        workspace.recover_locked(None)?;
        let mut ids: Vec<CheckpointId> = ids.into_iter().collect();
        ids.sort_unstable_by_key(CheckpointId::to_string);
        workspace.let_go(&ids, LetGoBecause::Damage)?;
        repair.given_up += ids.len() as u64;
    }
    Ok(repair)
}

/// Repairs what can be.
pub(crate) fn mend(store: &Store, dry_run: bool) -> Result<SnapshotsRepair> {
    let mut repair = SnapshotsRepair {
        dry_run,
        ..SnapshotsRepair::default()
    };
    let mut report = verify(store, &VerifyOptions::new())?;
    repair.mend_trails(&report)?;
    repair.unreadable = std::mem::take(&mut report.incomplete);
    let mut lying = Vec::new();
    if !report.lost.is_empty() {
        lying = repair.look_around(store)?;
    }
    if dry_run {
        repair.name_lying(&lying, report.lost);
        return Ok(repair);
    }
    // What a listing names shows once it can be read.
    while !report.lost.is_empty() {
        let needed: HashSet<ObjectId> = report.lost.iter().map(|lost| lost.object).collect();
        let before = repair.recaptured.len();
        for found in &lying {
            repair.recaptured.extend(found.store(&needed)?);
        }
        if repair.recaptured.len() == before {
            break;
        }
        report = verify(store, &VerifyOptions::new().quick())?;
    }
    repair.lost = report.lost;
    Ok(repair)
}

impl SnapshotsRepair {
    fn mend_trails(&mut self, report: &SnapshotsReport) -> Result<()> {
        let damaged = report.trails.iter().filter(|(_, report)| !report.is_ok());
        for (workspace, _) in damaged {
            self.damaged_trails += 1;
            if !self.dry_run {
                let lock = workspace.snapshot_lock()?;
                let _turn = lock.wait(None)?;
                let plan = repair_plan(workspace.store(), workspace.files())?;
                self.trails.push((workspace.clone(), plan.apply()?));
            }
        }
        Ok(())
    }

    /// Looks at what all workspaces hold now.
    fn look_around(&mut self, store: &Store) -> Result<Vec<Lying>> {
        let mut lying = Vec::new();
        for workspace in store.workspaces()? {
            if !workspace.root_exists()? {
                continue;
            }
            match Lying::look(&workspace) {
                Ok(found) => lying.push(found),
                // One that cannot be looked at must not stop the others.
                Err(error) => self.unseen.push((workspace, error)),
            }
        }
        Ok(lying)
    }

    /// Names what could be captured again. What is below a directory that lies
    /// somewhere lies there, too.
    fn name_lying(&mut self, lying: &[Lying], lost: Vec<LostState>) {
        let mut named = HashSet::new();
        for state in lost {
            let from = lying.iter().find_map(|found| found.place(&state.object));
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

/// What a workspace holds now.
struct Lying {
    workspace: Workspace,
    /// The listings of its directories.
    nodes: HashMap<ObjectId, Vec<u8>>,
    /// Where each content lies.
    files: HashMap<ObjectId, PathBuf>,
}

impl Lying {
    /// Looks at everything: what is known of files from before may be what is damaged.
    fn look(workspace: &Workspace) -> Result<Self> {
        let mut options = workspace.scan_options(None, None);
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

    /// Returns where an object lies.
    fn place(&self, id: &ObjectId) -> Option<PathBuf> {
        let file = self.files.get(id).map(PathBuf::as_path);
        let path = file.or(self.nodes.contains_key(id).then_some(Path::new("")))?;
        Some(self.workspace.root().join(path))
    }

    /// Stores what is needed and lies here. It is durable then.
    fn store(&self, needed: &HashSet<ObjectId>) -> Result<Vec<Recaptured>> {
        let is_here = |id: &&ObjectId| self.place(id).is_some();
        let here: Vec<&ObjectId> = needed.iter().filter(is_here).collect();
        if here.is_empty() {
            return Ok(Vec::new());
        }
        let lock = self.workspace.snapshot_lock()?;
        let _turn = lock.wait(None)?;
        let writer = self.workspace.objects().writer()?;
        let mut stored = Vec::new();
        for id in here {
            if self.put(id, &writer)?
                && let Some(from) = self.place(id)
            {
                stored.push(Recaptured { object: *id, from });
            }
        }
        writer.finish()?;
        Ok(stored)
    }

    /// Puts an object, and returns whether it is the same still.
    fn put(&self, id: &ObjectId, writer: &ObjectWriter) -> Result<bool> {
        if let Some(node) = self.nodes.get(id) {
            return Ok(writer.put(node)? == *id);
        }
        let Some(path) = self.files.get(id) else {
            return Ok(false);
        };
        let options = self.workspace.scan_options(None, None);
        let node = capture(self.workspace.root(), path, &options, writer)?;
        Ok(matches!(node, Some(Node::File { content, .. }) if content == *id))
    }
}
