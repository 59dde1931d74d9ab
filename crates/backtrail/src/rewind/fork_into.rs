//! Any old moment, continued in a directory of its own.
//!
//! The files of a checkpoint are written beside the new directory's place, and put
//! there in one step; then the directory becomes a workspace with a checkpoint and a
//! session of its own. A crash leaves nothing that looks finished and is not: what
//! was written aside is cleared away by the next fork beside it, and a directory in
//! its place is whole, if perhaps not known yet.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::apply::{NewDir, NewDirWriter, NewEntry, new_dir_name};
use super::path_change::PathEntry;
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::random::new_uuid;
use crate::session::{ForkOptions, Session, SessionOptions};
use crate::snapshot::edit::{Edit, edit};
use crate::snapshot::entry::{Node, Skipped};
use crate::snapshot::scan::ScanProgress;
use crate::snapshot::scan::sys::Root;
use crate::snapshot::{Progress, SkippedReason, Snapshot, Totals, shown};
use crate::store::ObjectsLock;
use crate::workspace::create::CapturedState;
use crate::workspace::new_directory::NewDirectory;
use crate::workspace::{
    Checkpoint, CheckpointOptions, Point, SessionPlace, SkippedFiles, Workspace,
};

/// How a moment is continued in a directory of its own.
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

    /// Names the session: the fork's branch, or the title of an empty one. The name
    /// is trimmed; a blank one is none.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets who is told how far it is.
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

/// What continuing a moment in a directory of its own would do.
#[derive(Debug)]
pub struct ForkIntoPlan {
    workspace: Workspace,
    place: NewDirectory,
    checkpoint: Checkpoint,
    snapshot: Snapshot,
    session: Option<SessionPlace>,
    lost: Option<SessionId>,
    skipped: BTreeMap<&'static str, u64>,
    has_git: bool,
}

/// A moment that goes on in a directory of its own.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForkedInto {
    /// The new session, to speak in.
    pub session: Session,
    /// The new directory.
    pub workspace: Workspace,
    /// Its first checkpoint.
    pub checkpoint: Checkpoint,
    /// How many files and links were written.
    pub files: u64,
    /// How many bytes those files have.
    pub bytes: u64,
    /// How many of them share their content with a file of the other workspace,
    /// and take no room of their own.
    pub reflinked: u64,
}

impl Workspace {
    /// Plans to continue a moment in a directory of its own: one that is empty, or
    /// not there yet, outside all workspaces and the store. Nothing is touched.
    pub fn fork_into_plan(&self, point: &Point, dir: &Path) -> Result<ForkIntoPlan> {
        self.recover()?;
        let moment = self.locate(point)?;
        let snapshot = moment.checkpoint.snapshot()?;
        let place = NewDirectory::find(self.store(), dir)?;
        let (session, lost) = match moment.session {
            // One that cannot be read any more keeps no file from being written.
            Some(place) if self.store().session_place(&place.id).is_err() => (None, Some(place.id)),
            session => (session, None),
        };
        Ok(ForkIntoPlan {
            skipped: count_left_out(&snapshot)?,
            has_git: is_git(&snapshot)?,
            workspace: self.clone(),
            place,
            checkpoint: moment.checkpoint,
            snapshot,
            session,
            lost,
        })
    }

    /// Continues a moment in a directory of its own: with the files of a checkpoint,
    /// and a session that goes on from there, or an empty one where the checkpoint
    /// has none. This workspace stays as it is.
    ///
    /// The files are as durable as a program's own: whole after a crash of the
    /// process, and in the store whatever happens.
    pub fn fork_into(&self, point: &Point, dir: &Path, options: &ForkInto) -> Result<ForkedInto> {
        self.fork_into_plan(point, dir)?.apply(options)
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

    /// Returns how much there is to write.
    pub fn totals(&self) -> Totals {
        self.snapshot.totals()
    }

    /// Returns the record that the new session goes on from; `None` where the
    /// checkpoint belongs to no session, and a new one begins.
    pub fn session(&self) -> Option<&SessionPlace> {
        self.session.as_ref()
    }

    /// Returns the session that the checkpoint belongs to, where that cannot be read
    /// any more and a new one begins.
    pub fn lost_session(&self) -> Option<&SessionId> {
        self.lost.as_ref()
    }

    /// Returns what the checkpoint saw and did not capture, which does not come
    /// along.
    pub fn skipped(&self) -> &SkippedFiles {
        self.checkpoint.skipped()
    }

    /// Returns how many paths were not captured, by reason as it is written.
    pub fn skipped_by_reason(&self) -> &BTreeMap<&'static str, u64> {
        &self.skipped
    }

    /// Returns whether the directory was a git repository, whose own state does not
    /// come along.
    pub fn has_git(&self) -> bool {
        self.has_git
    }

    /// Does it.
    pub fn apply(self, options: &ForkInto) -> Result<ForkedInto> {
        let mut session = SessionOptions::new();
        if let Some(name) = options.named() {
            session = session.title(name);
        }
        session.check()?;
        // From the first look at what is to be written until the new checkpoint names
        // it: nothing is let go.
        let objects = self.workspace.store().share_objects()?;
        let (all, skipped) = self.new_entries()?;
        let first = self.first_state(&skipped)?;
        let reflinked = self.write(&all, options)?;
        let begun = self.begin(options, session, first, objects);
        let (workspace, checkpoint, session) = begun.map_err(|error| {
            let dir = shown(&self.dir());
            error.with_note(format!(
                "the files are all in {dir}; a checkpoint there goes on with them"
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

    /// Stores what the new directory holds: what was captured, and nothing that was
    /// left out.
    fn first_state(&self, skipped: &BTreeMap<PathBuf, Edit>) -> Result<CapturedState> {
        if skipped.is_empty() {
            return Ok(CapturedState::whole(self.snapshot.id(), self.totals()));
        }
        let writer = self.workspace.objects().writer()?;
        let (id, root) = edit(&self.snapshot, skipped, &mut |bytes| writer.put(bytes))?;
        writer.finish()?;
        Ok(CapturedState::whole(id, root.totals))
    }

    /// Writes the files and puts them in their place. After an error nothing is left
    /// of them.
    fn write(&self, all: &[NewEntry], options: &ForkInto) -> Result<u64> {
        let store = self.workspace.store();
        if let Some(progress) = &options.progress {
            progress.update(ScanProgress::moving(all.len() as u64));
        }
        let id = new_uuid(store.random());
        let id = id.map_err(|error| Error::machine("cannot make an id", error))?;
        let aside = self.place.parent.join(new_dir_name(id));
        let new_dir = NewDir::create(&aside, &self.place, store.touch_hook())?;
        new_dir.clear_strays();
        let live = Root::open(self.workspace.root()).ok();
        let filled = NewDirWriter::new(&new_dir, self.workspace.objects(), live.as_ref()).run(all);
        match filled.and_then(|shared| new_dir.put().map(|()| shared)) {
            Ok(shared) => Ok(shared),
            Err(error) => {
                new_dir.clear();
                let kept = self.workspace.must_be_kept(self.checkpoint.id());
                Err(kept.err().unwrap_or(error))
            }
        }
    }

    /// Returns all that is to be written, a directory before what is in it, and what
    /// was left out.
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

    /// Returns the paths that are known to be something else by now.
    fn changed_since(&self) -> Result<HashSet<PathBuf>> {
        let last = match self.workspace.last_checkpoint()? {
            Some(last) if last.snapshot_id() != self.snapshot.id() => last.snapshot(),
            _ => return Ok(HashSet::new()),
        };
        // It only saves trying.
        let changed = last.and_then(|last| self.snapshot.differences(&last, None));
        let changed = changed.unwrap_or_default().into_iter();
        Ok(changed.map(|difference| difference.path).collect())
    }

    /// Makes the new directory a workspace with a checkpoint and a session.
    fn begin(
        &self,
        options: &ForkInto,
        empty: SessionOptions,
        first: CapturedState,
        objects: ObjectsLock,
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
                if let Some(name) = options.named() {
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

fn count_left_out(snapshot: &Snapshot) -> Result<BTreeMap<&'static str, u64>> {
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
