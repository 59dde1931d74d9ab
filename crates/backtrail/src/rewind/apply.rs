//! Changing the files of a workspace: stage, check, then move into place.
//!
//! This is the only code that changes a workspace. Everything is reached from a handle on
//! the root, below it and through no link.

mod check;
mod compare;
mod mover;
mod new_dir;
mod resume;
mod root_dir;
mod stage;
mod staging_dir;
mod sweep;

use std::io;
use std::path::{Path, PathBuf};

use super::outcome::NotRestored;
use super::path_change::PathChange;
use super::touch::{Touch, TouchHook};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::objects::Objects;
use crate::snapshot::name::os_str;
use crate::snapshot::scan::STAGING;
use crate::snapshot::scan::sys::Names;
use mover::{Direction, Mover, error_text};
use root_dir::{RootDir, SplitPath};
use stage::{OnChanged, Prepared, Stager};
use staging_dir::StagingDir;

pub(super) use new_dir::{NewDir, NewDirWriter, NewEntry, new_dir_name};

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

impl<'a> FileWork<'a> {
    /// Writes every new file to the staging directory and syncs them all. After an error
    /// nothing is left of them.
    pub(super) fn stage(self) -> Result<StagedWork<'a>> {
        self.check_paths()?;
        let (root_dir, made_root) = self.open()?;
        let staging = match StagingDir::create(&root_dir, self.id) {
            Ok(staging) => staging,
            Err(error) => {
                self.unmake_root(made_root);
                return Err(error);
            }
        };
        let on_changed = OnChanged::Stop;
        let stager = Stager::new(&root_dir, &staging, self.objects, on_changed, made_root);
        let staged = stager.run(self.items);
        let (ready, error) = match staged {
            Ok(ready) => (ready, None),
            Err(error) => {
                let none = self.items.iter().map(|_| Prepared::default());
                (none.collect(), Some(error))
            }
        };
        let staged = StagedWork {
            work: self,
            root_dir,
            staging,
            ready,
            made_root,
        };
        match error {
            None => Ok(staged),
            Some(error) => {
                staged.give_up();
                Err(error)
            }
        }
    }

    /// Resumes what a crash interrupted, wherever it stopped. After an error it can be
    /// called again.
    pub(super) fn resume(self) -> Result<WorkResult> {
        self.check_paths()?;
        let root_dir = match self.open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make_root()?;
                RootDir::open(self.root, self.hook)?
            }
            opened => opened?.0,
        };
        resume::resume(self, &root_dir)
    }

    /// Removes what was staged for a step that was given up and could not clean up then.
    pub(super) fn clear(self) -> Result<()> {
        self.check_paths()?;
        let root_dir = RootDir::open(self.root, self.hook)?;
        let Some(mut staging) = StagingDir::find(&root_dir, self.id)? else {
            return Ok(());
        };
        let none: Vec<Prepared> = self.items.iter().map(|_| Prepared::default()).collect();
        let mut mover = Mover::new(&root_dir, &mut staging, self.items, &none);
        clean_up(&mut mover, self.objects, Direction::Back).map(drop)
    }

    /// Gives up a step that can neither be resumed nor put back. The files stay as they
    /// are, and what was staged gets a visible name, which is returned.
    pub(super) fn abandon(self) -> Result<Option<PathBuf>> {
        let root_dir = RootDir::open(self.root, self.hook)?;
        let name = staging_dir::staging_name(self.id);
        let failed =
            |error| root_dir.failed("rename the staging directory", "renameat2", &name, error);
        if root_dir.look(&name).map_err(failed)?.is_none() {
            return Ok(None);
        }
        let saved = PathBuf::from(format!("backtrail-saved-{}", self.id));
        root_dir.rename(&name, &saved).map_err(failed)?;
        Ok(Some(saved))
    }

    /// Refuses paths that lead out of the workspace, before anything is done.
    fn check_paths(&self) -> Result<()> {
        for item in self.items {
            SplitPath::check(&item.path)?;
            let is_root = item.path.as_os_str().is_empty();
            if is_root && !item.becomes_dir() {
                let what = "the workspace's own directory can only be a directory";
                return Err(Error::invalid(what).at_path(self.root));
            }
        }
        Ok(())
    }

    /// Opens the root, and creates it if that is among the items.
    fn open(&self) -> Result<(RootDir<'a>, bool)> {
        let is_root = |item: &&PathChange| item.path.as_os_str().is_empty();
        let makes = self.items.iter().find(is_root);
        let makes = makes.is_some_and(|item| item.old.is_none());
        match RootDir::open(self.root, self.hook) {
            Err(error) if makes && error.kind() == ErrorKind::NotFound => {
                self.make_root()?;
                Ok((RootDir::open(self.root, self.hook)?, true))
            }
            opened => Ok((opened?, false)),
        }
    }

    fn make_root(&self) -> Result<()> {
        let path = Path::new("");
        let asked = self.ask("mkdirat", path);
        let made = asked.and_then(|()| {
            let made = rustix::fs::mkdir(self.root, rustix::fs::Mode::RWXU);
            made.map_err(io::Error::from)
        });
        made.map_err(|error| Error::io("cannot create the workspace's directory", self.root, error))
    }

    fn unmake_root(&self, made_root: bool) {
        if made_root && self.ask("unlinkat", Path::new("")).is_ok() {
            // It stays if it is not empty by now.
            rustix::fs::rmdir(self.root).ok();
        }
    }

    fn ask(&self, call: &'static str, path: &Path) -> io::Result<()> {
        self.hook
            .map_or(Ok(()), |hook| hook.before(&Touch { call, path }))
    }
}

/// Work whose new files are all written and synced.
#[derive(Debug)]
pub(super) struct StagedWork<'a> {
    work: FileWork<'a>,
    root_dir: RootDir<'a>,
    staging: StagingDir,
    ready: Vec<Prepared>,
    made_root: bool,
}

impl StagedWork<'_> {
    /// Checks once more that every path is in its old state, and that all changes seem
    /// possible.
    pub(super) fn check(&self) -> Result<()> {
        check::FinalCheck::new(self).run()
    }

    /// Moves the files and sets their modes, removes what was staged, and syncs the
    /// directories. An error means that the clean-up must be resumed.
    pub(super) fn move_files(mut self) -> Result<WorkResult> {
        let items = self.work.items;
        let mut mover = Mover::new(&self.root_dir, &mut self.staging, items, &self.ready);
        let Err(error) = mover.forward() else {
            let mut left = clean_up(&mut mover, self.work.objects, Direction::Forward)?;
            left.extend(mover.into_left());
            return Ok(WorkResult {
                left,
                rolled_back: None,
            });
        };
        mover.back();
        let cleaned = clean_up(&mut mover, self.work.objects, Direction::Back);
        let mut left = mover.into_left();
        match cleaned {
            Ok(more) => left.extend(more),
            Err(error) => left.push(NotRestored {
                path: self.staging.name.clone(),
                reason: error_text(&error),
            }),
        }
        self.work.unmake_root(self.made_root);
        Ok(WorkResult {
            left,
            rolled_back: Some(error),
        })
    }

    /// Removes what was staged; nothing else was touched.
    pub(super) fn give_up(mut self) {
        let items = self.work.items;
        let mut mover = Mover::new(&self.root_dir, &mut self.staging, items, &self.ready);
        clean_up(&mut mover, self.work.objects, Direction::Back).ok();
        self.work.unmake_root(self.made_root);
    }
}

/// Empties the staging directory, restores the modes of directories, removes the staging
/// directory and syncs everything. Returns what had to stay.
fn clean_up(
    mover: &mut Mover<'_>,
    objects: &Objects,
    ended: Direction,
) -> Result<Vec<NotRestored>> {
    let swept = mover.sweep(objects);
    // Even if something has to stay in the staging directory for now.
    mover.restore_modes(ended)?;
    swept?;
    let mut left = Vec::new();
    if !mover.staging.remove(mover.root_dir)? {
        left.push(NotRestored {
            path: mover.staging.name.clone(),
            reason: mover::HOLDS.to_owned(),
        });
    }
    mover.finish_root(ended)?;
    mover.touched.insert(PathBuf::new());
    mover.sync()?;
    Ok(left)
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
