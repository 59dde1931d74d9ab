//! Forks into a directory of their own: the files of a checkpoint, and a session that
//! continues from there.
//!
//! The files are written under another name beside the new directory, which is then
//! renamed in one step; then it becomes a workspace with a checkpoint and a session. A crash
//! leaves nothing incomplete under the final name: the next fork beside it removes what was
//! left.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::apply::{NewDir, NewEntry, new_dir_name};
use super::outcome::TargetPoint;
use super::path_change::PathEntry;
use crate::error::Result;
use crate::ids::SessionId;
use crate::log::HeldLock;
use crate::session::{ForkOptions, Session, SessionOptions};
use crate::snapshot::edit::Edit;
use crate::snapshot::entry::{Node, Skipped};
use crate::snapshot::scan::ScanProgress;
use crate::snapshot::scan::sys::Root;
use crate::snapshot::{Progress, SkippedReason, Snapshot, Totals, shown};
use crate::workspace::new_checkpoint::CapturedState;
use crate::workspace::new_directory::NewDirectory;
use crate::workspace::{
    Checkpoint, CheckpointOptions, Point, SessionPlace, SkippedFiles, Workspace,
};

/// Options of a fork into a directory of its own.
#[derive(Debug, Clone, Default)]
pub struct ForkInto {
    name: Option<String>,
    progress: Option<Arc<dyn Progress>>,
}

impl ForkInto {
    /// Makes options for a fork without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the session: the fork's branch, or the title of an empty session. The name is
    /// trimmed; a blank one does not count.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the receiver of progress reports.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    fn named(&self) -> Option<&str> {
        let name = self.name.as_deref().map(str::trim);
        name.filter(|name| !name.is_empty())
    }
}

/// A fork into a directory of its own that is planned. Nothing is touched before it is
/// applied.
#[derive(Debug)]
#[must_use = "a plan does nothing until it is applied"]
pub struct ForkIntoPlan {
    options: ForkInto,
    workspace: Workspace,
    place: NewDirectory,
    checkpoint: Checkpoint,
    target: TargetPoint,
    snapshot: Snapshot,
    session: Option<SessionPlace>,
    lost: Option<SessionId>,
    skipped: BTreeMap<&'static str, u64>,
    has_git: bool,
}

/// A fork that was made in a directory of its own.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForkedInto {
    /// The new session, open for writing.
    pub session: Session,
    /// The new directory.
    pub workspace: Workspace,
    /// Its first checkpoint.
    pub checkpoint: Checkpoint,
    /// The number of files and links that were written.
    pub files: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// How many of them share their content with a file of the original workspace, and need
    /// no space of their own.
    pub reflinked: u64,
}

impl Workspace {
    /// Plans a fork into a directory of its own, which is empty or does not exist, outside
    /// all workspaces and the store. Nothing is touched.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the point does not exist,
    /// [`Dropped`](crate::ErrorKind::Dropped) if its files were dropped, and
    /// [`Invalid`](crate::ErrorKind::Invalid) if the directory cannot be used.
    pub fn fork_into_plan(
        &self,
        point: &Point,
        dir: &Path,
        options: ForkInto,
    ) -> Result<ForkIntoPlan> {
        self.recover()?;
        let moment = self.locate(point)?;
        let snapshot = moment.checkpoint.snapshot()?;
        let place = NewDirectory::find(self.store(), dir)?;
        let (session, lost) = match moment.session {
            // A session that cannot be read does not keep files from being written.
            Some(place) if self.store().session_place(&place.id).is_err() => (None, Some(place.id)),
            session => (session, None),
        };
        Ok(ForkIntoPlan {
            options,
            skipped: count_skipped(&snapshot)?,
            has_git: is_git(&snapshot)?,
            workspace: self.clone(),
            place,
            target: TargetPoint::of(self, &moment.checkpoint)?,
            checkpoint: moment.checkpoint,
            snapshot,
            session,
            lost,
        })
    }

    /// Makes a fork in a directory of its own: with the files of a checkpoint, and a session
    /// that continues from there, or an empty one if the checkpoint has none. This workspace
    /// stays as it is.
    ///
    /// The files are complete after a crash of the process, and in the store in any case;
    /// they are not synced.
    ///
    /// # Errors
    ///
    /// As [`fork_into_plan`](Self::fork_into_plan) and [`ForkIntoPlan::apply`].
    pub fn fork_into(&self, point: &Point, dir: &Path, options: ForkInto) -> Result<ForkedInto> {
        self.fork_into_plan(point, dir, options)?.apply()
    }
}

impl ForkIntoPlan {
    /// Returns the new directory.
    pub fn dir(&self) -> PathBuf {
        self.place.path()
    }

    /// Returns the checkpoint whose files it gets.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Returns the point whose files it gets.
    pub fn target(&self) -> &TargetPoint {
        &self.target
    }

    /// Returns how much there is to write.
    pub fn totals(&self) -> Totals {
        self.snapshot.totals()
    }

    /// Returns the record that the new session continues; `None` if the checkpoint has no
    /// session, and a new one begins.
    pub fn session(&self) -> Option<&SessionPlace> {
        self.session.as_ref()
    }

    /// Returns the checkpoint's session if it cannot be read and a new one begins.
    pub fn lost_session(&self) -> Option<&SessionId> {
        self.lost.as_ref()
    }

    /// Returns what the checkpoint skipped, which is not copied.
    pub fn skipped(&self) -> &SkippedFiles {
        self.checkpoint.skipped()
    }

    /// Returns how many paths were skipped for each reason.
    pub fn skipped_by_reason(&self) -> &BTreeMap<&'static str, u64> {
        &self.skipped
    }

    /// Returns whether the directory was a git repository. `.git` is not copied.
    pub fn has_git(&self) -> bool {
        self.has_git
    }

    /// Makes the fork.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) if another process created the directory meanwhile,
    /// and what reading the store and writing the files can fail with. Nothing is left of
    /// the directory then, unless the error says that its files are complete.
    pub fn apply(self) -> Result<ForkedInto> {
        let mut session = SessionOptions::new();
        if let Some(name) = self.options.named() {
            session = session.title(name);
        }
        session.check()?;
        // Nothing is dropped from the first look until the new checkpoint names it.
        let objects = self.workspace.store().share_objects()?;
        let (all, skipped) = self.new_entries()?;
        let first = self.first_state(&skipped)?;
        let reflinked = self.write(&all)?;
        let begun = self.begin(session, first, objects);
        let (workspace, checkpoint, session) = begun.map_err(|error| {
            let dir = shown(&self.dir());
            error.with_note(format!(
                "the files are complete in {dir}; to continue, run backtrail checkpoint there"
            ))
        })?;
        let Totals { files, bytes, .. } = self.totals();
        Ok(ForkedInto {
            session,
            workspace,
            checkpoint,
            files,
            bytes,
            reflinked,
        })
    }

    /// Stores the state of the new directory: without what was skipped.
    fn first_state(&self, skipped: &BTreeMap<PathBuf, Edit>) -> Result<CapturedState> {
        if skipped.is_empty() {
            return Ok(CapturedState::whole(self.snapshot.id(), self.totals()));
        }
        let (id, totals) = self.workspace.store_edited(&self.snapshot, skipped)?;
        Ok(CapturedState::whole(id, totals))
    }

    /// Writes the files and renames their directory. After an error nothing is left of them.
    fn write(&self, all: &[NewEntry]) -> Result<u64> {
        let store = self.workspace.store();
        if let Some(progress) = &self.options.progress {
            progress.update(ScanProgress::moving(all.len() as u64));
        }
        let aside = self.place.parent.join(new_dir_name(store.new_id()?));
        let new_dir = NewDir::create(&aside, &self.place, store.touch_hook())?;
        new_dir.clear_strays();
        let live = Root::open(self.workspace.root()).ok();
        let filled = new_dir.write_all(all, self.workspace.objects(), live.as_ref());
        match filled.and_then(|shared| new_dir.put().map(|()| shared)) {
            Ok(shared) => Ok(shared),
            Err(error) => {
                new_dir.clear();
                let kept = self.workspace.must_be_kept(self.checkpoint.id());
                Err(kept.err().unwrap_or(error))
            }
        }
    }

    /// Returns all entries to write, directories first, and what was skipped.
    fn new_entries(&self) -> Result<(Vec<NewEntry>, BTreeMap<PathBuf, Edit>)> {
        let changed = self.changed_since()?;
        let root = NewEntry {
            path: PathBuf::new(),
            entry: PathEntry::Dir {
                mode: self.snapshot.root().mode,
            },
            is_alive: false,
        };
        let (mut all, mut skipped) = (vec![root], BTreeMap::new());
        for found in self.snapshot.nodes() {
            let (path, node) = found?;
            match PathEntry::of(&node) {
                None => _ = skipped.insert(path, Edit::Remove),
                Some(entry) => all.push(NewEntry {
                    is_alive: !changed.contains(&path),
                    path,
                    entry,
                }),
            }
        }
        Ok((all, skipped))
    }

    /// Returns the paths that are known to have changed since.
    fn changed_since(&self) -> Result<HashSet<PathBuf>> {
        let last = match self.workspace.last_checkpoint()? {
            Some(last) if last.snapshot_id() != self.snapshot.id() => last.snapshot(),
            _ => return Ok(HashSet::new()),
        };
        // This only saves attempts.
        let changed = last.and_then(|last| self.snapshot.differences(&last, None));
        let changed = changed.unwrap_or_default().into_iter();
        Ok(changed.map(|difference| difference.path).collect())
    }

    /// Makes the new directory a workspace with a checkpoint and a session.
    fn begin(
        &self,
        empty: SessionOptions,
        first: CapturedState,
        objects: HeldLock,
    ) -> Result<(Workspace, Checkpoint, Session)> {
        let store = self.workspace.store();
        let workspace = store.workspace(&self.dir())?;
        let about = format!(
            "fork of {} at {}",
            shown(self.workspace.root()),
            self.checkpoint.id().prefix(8)
        );
        let checkpoint = CheckpointOptions::new().about(&about).unlimited();
        let begin = || match &self.session {
            Some(place) => {
                let mut fork = ForkOptions::new().at_place(place).works_in(&workspace);
                if let Some(name) = self.options.named() {
                    fork = fork.branch_name(name);
                }
                store.fork_session(&place.id, &fork)
            }
            None => store.create_session(empty.workspace(&workspace)),
        };
        let begun = workspace.first_checkpoint(checkpoint, first, objects, begin);
        let (checkpoint, session) = begun?;
        Ok((workspace, checkpoint, session))
    }
}

fn count_skipped(snapshot: &Snapshot) -> Result<BTreeMap<&'static str, u64>> {
    let mut counts = BTreeMap::new();
    for entry in snapshot.skipped() {
        *counts.entry(entry?.reason.as_str()).or_default() += 1;
    }
    Ok(counts)
}

fn is_git(snapshot: &Snapshot) -> Result<bool> {
    let found = snapshot.walk_down(Path::new(".git"))?;
    Ok(matches!(
        found,
        Some(Node::Skipped(Skipped {
            reason: SkippedReason::Git,
            ..
        }))
    ))
}
