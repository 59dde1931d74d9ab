//! Capturing damaged objects again, where the same content still lies.
//!
//! An object is its content, whoever brings it. So what is damaged or gone in the
//! packs is whole again as soon as a workspace is found that still holds it, at
//! whatever path. A directory's listing comes back in the same way, if the directory
//! is what it was. The damaged copy stays where it is and counts for nothing.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::Workspace;
use super::look::scan_time;
use super::verify::{LostState, SnapshotsReport, VerifyOptions, verify};
use crate::error::Result;
use crate::objects::{ObjectId, ObjectWriter};
use crate::restore::capture::capture;
use crate::session::{RepairReport, repair_plan};
use crate::snapshot::Snapshot;
use crate::snapshot::entry::Node;
use crate::snapshot::scan::{Sink, StatCache, scan};
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
        self.recaptured.is_empty() && self.lost.is_empty() && self.damaged_trails == 0
    }
}

/// Repairs what can be.
pub(crate) fn mend(store: &Store, dry_run: bool) -> Result<SnapshotsRepair> {
    let mut repair = SnapshotsRepair {
        dry_run,
        ..SnapshotsRepair::default()
    };
    let mut report = verify(store, &VerifyOptions::new())?;
    repair.mend_trails(&report)?;
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
        let scanned = scan(root, &options, &cache, Sink::Look, scan_time())?;
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
