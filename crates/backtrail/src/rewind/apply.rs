//! Changing the files of a workspace: stage and sync, check, then move into place. When each
//! of them happens is decided in `execution.rs`.
//!
//! This is the only code that changes a workspace. Everything is reached from a handle on
//! the root, below it and through no link.

mod check;
mod compare;
mod mover;
mod new_dir;
mod readable;
mod resume;
mod root_dir;
mod stage;
mod staging_dir;
mod sweep;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::outcome::NotRestored;
use super::path_change::PathChange;
use super::test_hook::TouchHook;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::objects::Objects;
use crate::snapshot::name::os_str;
use crate::snapshot::scan::STAGING;
use crate::snapshot::scan::queue::in_parallel;
use crate::snapshot::scan::sys::Names;
use mover::{Direction, Mover, error_text};
use root_dir::{RootDir, SplitPath, ask, make_private_dir};
use staging_dir::StagingDir;

pub(super) use new_dir::{NewDir, NewEntry, WrittenFiles, new_dir_name};
pub(super) use readable::{MadeReadable, can_be_readable};

/// The changes that one step makes to a workspace's files.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileWork<'a> {
    /// The workspace's directory: absolute, without links.
    pub(super) root: &'a Path,
    /// The step, which names the staging directory.
    pub(super) id: CheckpointId,
    /// In the order of their paths' bytes.
    pub(super) items: &'a [PathChange],
    /// Has the content of every item, old and new.
    pub(super) objects: &'a Objects,
    pub(super) hook: Option<&'a dyn TouchHook>,
}

/// How a step ended.
#[derive(Debug, Default)]
pub(super) struct WorkResult {
    /// Paths in neither the old nor the new state, which were left alone.
    pub(super) left: Vec<NotRestored>,
    /// The error because of which everything was put back, if it was.
    pub(super) rolled_back: Option<Error>,
}

/// How far a step is.
#[derive(Debug, Default)]
pub(super) struct WorkProgress {
    pub(super) moved: Vec<PathBuf>,
    pub(super) waiting: Vec<PathBuf>,
    /// Paths in neither state.
    pub(super) other: Vec<NotRestored>,
}

impl<'a> FileWork<'a> {
    /// Writes every new file to the staging directory and syncs them all. After an error
    /// nothing is left of them.
    pub(super) fn stage(self) -> Result<Mover<'a>> {
        self.check_paths()?;
        let (root_dir, made_root) = self.open()?;
        let staging = match StagingDir::create(&root_dir, self.id) {
            Ok(staging) => staging,
            Err(error) => {
                self.unmake_root(made_root);
                return Err(error);
            }
        };
        let mut mover = Mover::new(self, root_dir, staging);
        mover.made_root = made_root;
        match mover.stage_and_sync() {
            Ok(()) => Ok(mover),
            Err(error) => {
                mover.give_up();
                Err(error)
            }
        }
    }

    /// Removes what was staged for a step that was given up and could not clean up then.
    pub(super) fn clear(self) -> Result<()> {
        self.check_paths()?;
        let root_dir = RootDir::open(self.root, self.hook)?;
        let Some(staging) = StagingDir::find(&root_dir, self.id)? else {
            return Ok(());
        };
        let mut mover = Mover::new(self, root_dir, staging);
        mover.clean_up(Direction::Back).map(drop)
    }

    /// Gives up a step that can neither be resumed nor put back. The files stay as they
    /// are, and what was staged gets a visible name, if there is any and that is possible.
    pub(super) fn abandon(self) -> Option<NotRestored> {
        let name = staging_dir::staging_name(self.id);
        match self.show_staging(&name) {
            Ok(None) => None,
            Ok(Some(saved)) => {
                let reason = "holds the files that were moved out of the way";
                Some(NotRestored::new(saved, reason))
            }
            // It is removed as soon as it can be: the store has what is in it.
            Err(error) => Some(NotRestored::new(name, error_text(&error))),
        }
    }

    fn show_staging(self, name: &Path) -> Result<Option<PathBuf>> {
        let root_dir = RootDir::open(self.root, self.hook)?;
        let failed =
            |error| root_dir.failed("rename the staging directory", "renameat2", name, error);
        if root_dir.look(name).map_err(failed)?.is_none() {
            return Ok(None);
        }
        let saved = PathBuf::from(format!("backtrail-saved-{}", self.id));
        root_dir.rename(name, &saved).map_err(failed)?;
        Ok(Some(saved))
    }

    /// Refuses paths that lead out of the workspace, before anything is done.
    fn check_paths(&self) -> Result<()> {
        for item in self.items {
            SplitPath::check(&item.path)?;
            if item.is_root() && !item.becomes_dir() {
                let what = "the workspace's own directory can only be a directory";
                return Err(Error::invalid(what).at_path(self.root));
            }
        }
        Ok(())
    }

    /// Opens the root, and creates it if that is among the items.
    fn open(&self) -> Result<(RootDir<'a>, bool)> {
        let mut items = self.items.iter();
        let makes = items.any(|item| item.is_root() && item.old.is_none());
        match RootDir::open(self.root, self.hook) {
            Err(error) if makes && error.kind() == ErrorKind::NotFound => {
                self.make_root()?;
                Ok((RootDir::open(self.root, self.hook)?, true))
            }
            opened => Ok((opened?, false)),
        }
    }

    fn make_root(&self) -> Result<()> {
        let asked = ask(self.hook, "mkdirat", Path::new(""));
        let made = asked.and_then(|()| make_private_dir(rustix::fs::CWD, self.root));
        made.map_err(|error| {
            Error::io(
                "cannot create the workspace's directory",
                self.root,
                error.into(),
            )
        })
    }

    fn unmake_root(&self, made_root: bool) {
        if made_root && ask(self.hook, "unlinkat", Path::new("")).is_ok() {
            // It stays if it is not empty by now.
            rustix::fs::rmdir(self.root).ok();
        }
    }
}

/// Fewer than so many files are worked on by one thread.
const MANY: usize = 64;
/// How many files a thread takes at a time.
const BATCH: usize = 32;

/// Works on batches of items, in several threads if there are many, and returns the results
/// in order. The first failure stops all threads. A hook is asked in a fixed order.
fn in_batches<T: Sync, R: Send>(
    all: &[T],
    root_dir: &RootDir<'_>,
    work: impl Fn(&[T]) -> Result<Vec<R>> + Sync,
) -> Result<Vec<R>> {
    if all.len() < MANY || root_dir.hook.is_some() {
        return work(all);
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = in_parallel(threads.min(8), || {
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(BATCH, Ordering::Relaxed);
            let Some(rest) = all.get(at..) else { break };
            let made = work(&rest[..rest.len().min(BATCH)]);
            done.push((
                at,
                made.inspect_err(|_| stop.store(true, Ordering::Relaxed))?,
            ));
        }
        Ok(done)
    })?;
    let mut parts: Vec<(usize, Vec<R>)> = parts.into_iter().flatten().collect();
    parts.sort_unstable_by_key(|(at, _)| *at);
    Ok(parts.into_iter().flat_map(|(_, made)| made).collect())
}

/// Returns the staging directories in a workspace, with the steps that their names give.
pub(super) fn staged_in(root: &Path) -> Result<Vec<(PathBuf, Option<CheckpointId>)>> {
    let root_dir = RootDir::open(root, None)?;
    let mut names = Names::default();
    let read = root_dir.open_dir(b"").and_then(|fd| names.read(&fd));
    read.map_err(|error| Error::io("cannot read the workspace", root, error.into()))?;
    let names = names.iter().map(|(name, _)| name.to_bytes());
    let staged = names.filter_map(|name| {
        let id = std::str::from_utf8(name.strip_prefix(STAGING)?).ok();
        Some((
            PathBuf::from(os_str(name)),
            id.and_then(|id| id.parse().ok()),
        ))
    });
    Ok(staged.collect())
}

/// Removes the empty staging directories, and returns the steps of the others.
pub(super) fn sweep_strays(root: &Path, hook: Option<&dyn TouchHook>) -> Result<Vec<CheckpointId>> {
    let root_dir = RootDir::open(root, hook)?;
    let held = staged_in(root)?.into_iter();
    let held = held.filter(|(name, _)| root_dir.remove_dir(name).is_err());
    Ok(held.filter_map(|(_, id)| id).collect())
}
