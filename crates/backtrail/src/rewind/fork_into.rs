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
use std::{fmt, io};

use super::apply::{NewDir, NewEntry, WrittenFiles, new_dir_name};
use super::damage::damaged_contents;
use super::outcome::{NotRestored, TargetPoint};
use super::path_change::PathEntry;
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::HeldLock;
use crate::session::{ForkOptions, Session, SessionOptions};
use crate::snapshot::damage::{DamagedPart, DamagedPath, damage_error};
use crate::snapshot::edit::Edit;
use crate::snapshot::entry::{Node, Skipped};
use crate::snapshot::scan::ScanProgress;
use crate::snapshot::scan::sys::Root;
use crate::snapshot::{Progress, SkippedEntry, SkippedReason, Snapshot, Totals, shown};
use crate::workspace::new_checkpoint::CapturedState;
use crate::workspace::new_directory::NewDirectory;
use crate::workspace::{
    Checkpoint, CheckpointOptions, Point, SessionPlace, SkippedFiles, Workspace,
};

/// Options of a fork into a directory of its own.
#[derive(Debug, Clone, Default)]
pub struct ForkInto {
    name: Option<String>,
    skip_damaged: bool,
    progress: Option<Arc<dyn Progress>>,
}

/// Something that the caller makes together with a new directory, such as a git worktree: it
/// is there when the directory is, and gone if the fork fails.
pub trait ForkCompanion: fmt::Debug + Send + Sync {
    /// Makes it. `dir` is the new directory, still empty and under another name; `to` is the
    /// path that it gets.
    ///
    /// # Errors
    ///
    /// An error fails the fork. [`undo`](Self::undo) is called then, too.
    fn make(&self, dir: &Path, to: &Path) -> io::Result<()>;

    /// Called when the directory is complete and has its final path.
    fn done(&self);

    /// Called if the fork failed and the directory is gone.
    fn undo(&self);
}

impl ForkInto {
    /// Makes options for a fork without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the session: the fork's branch, or the title of an empty session. The name is a
    /// reference to it. It is trimmed; a blank one does not count.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Leaves out files and directories that are damaged in the store, and writes the rest.
    /// [`ForkedInto::not_restored`] names them. Without it, nothing is written if anything is
    /// damaged; see [`Error::damaged`](crate::Error::damaged).
    #[must_use]
    pub fn skip_damaged(mut self) -> Self {
        self.skip_damaged = true;
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
    /// All that can be read of it.
    nodes: Vec<(PathBuf, Node)>,
    /// The directories that are damaged.
    damaged: Vec<DamagedPath>,
    session: Option<SessionPlace>,
    lost: Option<SessionId>,
    skipped: BTreeMap<&'static str, u64>,
    has_git: bool,
    companion: Option<Arc<dyn ForkCompanion>>,
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
    /// What was left out because it is damaged.
    pub not_restored: Vec<NotRestored>,
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
    /// [`Dropped`](crate::ErrorKind::Dropped) if its files were dropped,
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if directories are damaged and are not to be
    /// [skipped](ForkInto::skip_damaged), and
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
        let (nodes, damaged) = snapshot.readable_nodes()?;
        if let Some(error) = damage_error(&damaged).filter(|_| !options.skip_damaged) {
            return Err(error);
        }
        let place = NewDirectory::find(self.store(), dir)?;
        let (session, lost) = match moment.session {
            // A session that cannot be read does not keep files from being written.
            Some(place) if self.store().session_place(&place.id).is_err() => (None, Some(place.id)),
            session => (session, None),
        };
        Ok(ForkIntoPlan {
            options,
            skipped: count_skipped(&nodes),
            has_git: nodes.iter().any(is_git),
            workspace: self.clone(),
            place,
            target: TargetPoint::of(self, &moment.checkpoint)?,
            checkpoint: moment.checkpoint,
            snapshot,
            nodes,
            damaged,
            session,
            lost,
            companion: None,
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
        match self.damaged.is_empty() {
            true => self.snapshot.totals(),
            false => totals_of(self.nodes.iter().map(|(_, node)| node)),
        }
    }

    /// Reads every file, and returns what is damaged and would be left out.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if anything is damaged and is not to be
    /// [skipped](ForkInto::skip_damaged).
    pub fn damaged(&self) -> Result<Vec<NotRestored>> {
        let file = |node: &Node| PathEntry::of(node).and_then(|entry| entry.file());
        let nodes = self.nodes.iter();
        let files = nodes.filter_map(|(path, node)| Some((path.as_path(), file(node)?)));
        let files: Vec<_> = files.collect();
        let damaged = damaged_contents(self.workspace.objects(), &files)?;
        let damaged = damaged
            .into_iter()
            .map(|one| (one.path.to_owned(), one.error));
        self.left_out(damaged.collect())
    }

    /// Names what is left out; `files` are those whose content is damaged.
    fn left_out(&self, files: Vec<(PathBuf, Error)>) -> Result<Vec<NotRestored>> {
        let of = self.checkpoint.name_for_errors();
        let mut damaged = Vec::new();
        for (path, error) in files {
            damaged.push(DamagedPath::new(
                &path,
                DamagedPart::Content,
                Some(&of),
                error,
            )?);
        }
        if let Some(error) = damage_error(&damaged).filter(|_| !self.options.skip_damaged) {
            return Err(error);
        }
        let names = self.damaged.iter().chain(&damaged).map(DamagedPath::name);
        Ok(names.map(NotRestored::damaged).collect())
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

    /// Sets what is made together with the directory.
    pub fn with_companion(mut self, companion: Arc<dyn ForkCompanion>) -> Self {
        self.companion = Some(companion);
        self
    }

    /// Makes the fork.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) if another process created the directory meanwhile,
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if files are damaged and are not to be
    /// [skipped](ForkInto::skip_damaged), and what reading the store and writing the files can
    /// fail with. Nothing is left of the directory then, unless the error says that its files are complete.
    pub fn apply(self) -> Result<ForkedInto> {
        let mut session = SessionOptions::new();
        if let Some(name) = self.options.named() {
            session = session.named(name);
        }
        session.check()?;
        // Nothing is dropped from the first look until the new checkpoint names it.
        let objects = self.workspace.store().share_objects()?;
        let NewFiles {
            first,
            totals: Totals { files, bytes, .. },
            reflinked,
            not_restored,
        } = self.write(&self.new_entries()?)?;
        let begun = self.begin(session, first, objects);
        let (workspace, checkpoint, session) = begun.map_err(|error| {
            let dir = shown(&self.dir());
            error.with_note(format!(
                "the files are complete in {dir}; to continue, run backtrail checkpoint there"
            ))
        })?;
        Ok(ForkedInto {
            session,
            workspace,
            checkpoint,
            not_restored,
            files,
            bytes,
            reflinked,
        })
    }

    /// Stores the state of the new directory: without what was skipped, and without the files
    /// that are damaged.
    fn first_state(&self, damaged: &HashSet<PathBuf>) -> Result<(CapturedState, Totals)> {
        let is_there = |(path, node): &&(PathBuf, Node)| {
            !matches!(node, Node::Skipped(_)) && !damaged.contains(path)
        };
        let mode = self.snapshot.root().mode;
        let nodes = self.nodes.iter();
        let (id, totals) = if !self.damaged.is_empty() {
            // Its directories cannot be read to change them.
            let paths = nodes.filter(is_there).map(|(path, node)| match node {
                Node::Dir(dir) => (path.clone(), Edit::Dir(dir.mode)),
                node => (path.clone(), Edit::Put(node.clone())),
            });
            self.workspace.store_only(mode, &paths.collect())?
        } else {
            let gone = nodes.filter(|entry| !is_there(entry));
            let gone: BTreeMap<_, _> = gone.map(|(path, _)| (path.clone(), Edit::Remove)).collect();
            match gone.is_empty() {
                true => (self.snapshot.id(), self.snapshot.totals()),
                false => self.workspace.store_edited(&self.snapshot, &gone)?,
            }
        };
        Ok((CapturedState::whole(id, totals), totals))
    }

    /// Writes the files and renames their directory. After an error nothing is left of them.
    fn write(&self, all: &[NewEntry]) -> Result<NewFiles> {
        let store = self.workspace.store();
        if let Some(progress) = &self.options.progress {
            progress.update(ScanProgress::moving(all.len() as u64));
        }
        let aside = self.place.parent.join(new_dir_name(store.new_id()?));
        let new_dir = NewDir::create(&aside, &self.place, store.touch_hook())?;
        new_dir.clear_strays();
        let live = Root::open(self.workspace.root()).ok();
        let companion = self.companion.as_deref();
        let fill = || {
            let made = companion.map_or(Ok(()), |companion| companion.make(&aside, &self.dir()));
            made.map_err(|error| Error::io("cannot prepare the directory", &self.dir(), error))?;
            let WrittenFiles { shared, damaged } =
                new_dir.write_all(all, self.workspace.objects(), live.as_ref())?;
            let paths = damaged.iter().map(|(path, _)| path.clone()).collect();
            let not_restored = self.left_out(damaged)?;
            let (first, totals) = self.first_state(&paths)?;
            new_dir.put()?;
            companion.inspect(|companion| companion.done());
            Ok(NewFiles {
                first,
                totals,
                reflinked: shared,
                not_restored,
            })
        };
        fill().map_err(|error| {
            new_dir.clear();
            companion.inspect(|companion| companion.undo());
            let kept = self.workspace.must_be_kept(self.checkpoint.id());
            kept.err().unwrap_or(error)
        })
    }

    /// Returns all entries to write, directories first.
    fn new_entries(&self) -> Result<Vec<NewEntry>> {
        let changed = self.changed_since()?;
        let root = NewEntry {
            path: PathBuf::new(),
            entry: PathEntry::Dir {
                mode: self.snapshot.root().mode,
            },
            is_alive: false,
        };
        let entries = self.nodes.iter().filter_map(|(path, node)| {
            Some(NewEntry {
                is_alive: !changed.contains(path),
                path: path.clone(),
                entry: PathEntry::of(node)?,
            })
        });
        Ok([root].into_iter().chain(entries).collect())
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
        let mut checkpoint = CheckpointOptions::new().about(&about).unlimited();
        for included in self.checkpoint.included() {
            checkpoint = checkpoint.include_ignored(&included.path);
        }
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

/// Files that were written, and their state.
struct NewFiles {
    first: CapturedState,
    totals: Totals,
    reflinked: u64,
    not_restored: Vec<NotRestored>,
}

fn count_skipped(nodes: &[(PathBuf, Node)]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for (path, node) in nodes {
        if let Node::Skipped(skipped) = node
            && let Some(entry) = SkippedEntry::new(path.clone(), skipped)
        {
            *counts.entry(entry.reason.as_str()).or_default() += 1;
        }
    }
    counts
}

/// Returns whether an entry is the `.git` of the workspace itself.
fn is_git((path, node): &(PathBuf, Node)) -> bool {
    let is_git = |skipped: &Skipped| skipped.reason == SkippedReason::Git;
    path == Path::new(".git") && matches!(node, Node::Skipped(skipped) if is_git(skipped))
}

fn totals_of<'a>(nodes: impl Iterator<Item = &'a Node>) -> Totals {
    let mut totals = Totals::default();
    // A directory's totals would count its files twice.
    nodes
        .filter(|node| !matches!(node, Node::Dir(_)))
        .for_each(|node| totals.add(node));
    totals
}
