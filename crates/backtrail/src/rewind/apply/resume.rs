//! Resuming a step that a crash interrupted, wherever it stopped.

use std::path::Path;

use rustix::io::Errno;

use super::super::outcome::NotRestored;
use super::super::path_change::{PathChange, PathEntry};
use super::mover::{CHANGED, Direction, GONE, Mover, OnChanged, is_ours};
use super::root_dir::{RootDir, SplitPath, is_gone, may_write};
use super::staging_dir::{OLD, OPEN, StagingDir};
use super::sweep::StagedKind;
use super::{FileWork, WorkProgress, WorkResult};
use crate::error::{ErrorKind, Result};
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::sys::Seen;

/// How far an item is.
enum ItemProgress {
    /// In its new state.
    New,
    /// In between, with what remains to do.
    Todo(PathChange),
    /// In neither state.
    Other(&'static str),
}

impl FileWork<'_> {
    /// Returns which items are in their new state, in their old one, and in neither.
    pub(in crate::rewind) fn progress(&self) -> Result<WorkProgress> {
        let root_dir = RootDir::open(self.root, self.hook)?;
        let mut progress = WorkProgress::default();
        for item in self.items {
            match stands(&root_dir, item)? {
                ItemProgress::New => progress.moved.push(item.path.clone()),
                ItemProgress::Todo(_) => progress.waiting.push(item.path.clone()),
                ItemProgress::Other(reason) => {
                    progress
                        .other
                        .push(NotRestored::new(item.path.clone(), reason));
                }
            }
        }
        Ok(progress)
    }

    /// Resumes what a crash interrupted, wherever it stopped. After an error it can be
    /// called again.
    pub(in crate::rewind) fn resume(self) -> Result<WorkResult> {
        self.check_paths()?;
        let root_dir = match self.open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make_root()?;
                RootDir::open(self.root, self.hook)?
            }
            opened => opened?.0,
        };
        open_dirs(&root_dir, self.items)?;
        let staging = match StagingDir::find(&root_dir, self.id)? {
            Some(staging) => staging,
            None => {
                let (todo, left) = evaluate(&root_dir, self.items)?;
                if todo.is_empty() {
                    sync(&root_dir)?;
                    return Ok(resumed(left));
                }
                StagingDir::create(&root_dir, self.id)?
            }
        };
        let mut mover = Mover::new(self, root_dir, staging);
        mover.make_writable()?;
        mover.salvage()?;
        let mut left = mover.take_left();
        let (todo, others) = evaluate(&mover.root_dir, self.items)?;
        left.extend(others);
        mover.sweep()?;
        let rescued = mover.take_left();
        let Mover {
            root_dir,
            mut staging,
            ..
        } = mover;
        // Their modes are set as items.
        let is_set = |path: &Path| {
            let mut items = self.items.iter();
            let is_left = left.iter().any(|left| left.path == path);
            !is_left && items.any(|item| item.path == path && item.becomes_dir())
        };
        staging.made_writable.retain(|(path, _)| !is_set(path));
        let work = FileWork {
            items: &todo,
            ..self
        };
        let mut mover = Mover::new(work, root_dir, staging);
        mover.on_changed = OnChanged::Leave;
        mover.stage_and_sync()?;
        mover.move_all_in()?;
        left.extend(mover.clean_up(Direction::Forward)?);
        left.extend(mover.take_left());
        left.extend(rescued);
        Ok(resumed(left))
    }
}

/// Makes the changes durable; nothing else remained to do.
fn sync(root_dir: &RootDir<'_>) -> Result<()> {
    root_dir.sync_all().map_err(|error| {
        let doing = "make the changes durable";
        root_dir.failed(doing, "syncfs", Path::new(""), error)
    })
}

/// Names each path once, with the longest reason.
fn resumed(mut left: Vec<NotRestored>) -> WorkResult {
    left.sort_by(|a, b| (&a.path, b.reason.len()).cmp(&(&b.path, a.reason.len())));
    left.dedup_by(|b, a| a.path == b.path);
    WorkResult {
        left,
        rolled_back: None,
    }
}

/// Opens directories whose new mode keeps us out; their modes are set again later.
fn open_dirs(root_dir: &RootDir<'_>, items: &[PathChange]) -> Result<()> {
    for item in items.iter().filter(|item| item.becomes_dir()) {
        let failed = |error| root_dir.failed("open a directory", "fchmod", &item.path, error);
        let seen = root_dir.look(&item.path).map_err(failed)?;
        let shut = |seen: &Seen| {
            let bits = seen.stamp.mode & OPEN != OPEN && is_ours(item, seen.stamp.mode);
            seen.kind == FileKind::Dir && bits
        };
        let is_usable = || {
            let dir = root_dir.open_dir(bytes_of(&item.path));
            dir.is_ok_and(|dir| may_write(&dir).unwrap_or(false))
        };
        if let Some(seen) = seen.filter(shut)
            && !is_usable()
        {
            let mode = seen.stamp.mode | OPEN;
            let set = root_dir.set_mode(&item.path, mode, shut);
            set.map_err(failed)?;
        }
    }
    Ok(())
}

impl Mover<'_> {
    /// Puts back files that are not ours to remove, and files that were moved out of the
    /// way of something that did not arrive.
    fn salvage(&mut self) -> Result<()> {
        for (name, n) in self.staged_names()? {
            let place = SplitPath::of(self.path(n));
            let is_replaced = name.starts_with(OLD) && self.work.items[n].new.is_some();
            match self.staged_kind(&name, n)? {
                StagedKind::Foreign => self.rescue(&name, n)?,
                StagedKind::Old if is_replaced => {
                    let failed = |error| self.failed("put a file back", "renameat2", n, error);
                    if self.root_dir.look(place.path).map_err(failed)?.is_none() {
                        match self.root_dir.put(&self.staging.fd, &name, place, None) {
                            // Somebody else created it first, and that stays.
                            Err(Errno::EXIST) => {}
                            Err(error) if !is_gone(error) => return Err(failed(error)),
                            _ => {}
                        }
                    }
                }
                StagedKind::Old | StagedKind::New => {}
            }
        }
        Ok(())
    }
}

/// Finds what remains to do, and the items in neither state.
fn evaluate(
    root_dir: &RootDir<'_>,
    items: &[PathChange],
) -> Result<(Vec<PathChange>, Vec<NotRestored>)> {
    let (mut todo, mut left) = (Vec::new(), Vec::new());
    for item in items {
        match stands(root_dir, item)? {
            ItemProgress::New => {}
            ItemProgress::Todo(item) => todo.push(item),
            ItemProgress::Other(reason) => left.push(NotRestored {
                path: item.path.clone(),
                reason: reason.to_owned(),
            }),
        }
    }
    Ok((todo, left))
}

fn stands(root_dir: &RootDir<'_>, item: &PathChange) -> Result<ItemProgress> {
    let failed = |error| root_dir.failed("read what is there", "openat", &item.path, error);
    let seen = root_dir.look(&item.path).map_err(failed)?;
    let from = |old: Option<PathEntry>| {
        ItemProgress::Todo(PathChange {
            path: item.path.clone(),
            old,
            new: item.new.clone(),
        })
    };
    let Some(seen) = seen else {
        return Ok(match (&item.old, &item.new) {
            (_, None) => ItemProgress::New,
            (None, _) => from(None),
            // A directory is removed before something else takes its place.
            (Some(PathEntry::Dir { .. }), Some(new)) if !new.is_dir() => from(None),
            _ => ItemProgress::Other(GONE),
        });
    };
    if seen.kind == FileKind::Dir {
        return Ok(match dir_stands(item, seen.stamp.mode) {
            Some(true) => ItemProgress::New,
            Some(false) => from(Some(PathEntry::Dir {
                mode: seen.stamp.mode,
            })),
            None => ItemProgress::Other(CHANGED),
        });
    }
    let is = |entry: &Option<PathEntry>| match entry {
        Some(entry) => root_dir
            .is_at(SplitPath::of(&item.path), entry)
            .map_err(failed),
        None => Ok(false),
    };
    Ok(match () {
        () if is(&item.new)? => ItemProgress::New,
        () if is(&item.old)? => from(item.old.clone()),
        () => ItemProgress::Other(CHANGED),
    })
}

/// Returns whether a directory is in its new state; `None` if somebody else changed it.
fn dir_stands(item: &PathChange, mode: u32) -> Option<bool> {
    match &item.new {
        Some(PathEntry::Dir { mode: own }) if mode == *own => Some(true),
        Some(PathEntry::Dir { .. }) if is_ours(item, mode) => Some(false),
        Some(PathEntry::Dir { .. }) => None,
        _ => (item.was_dir() && is_ours(item, mode)).then_some(false),
    }
}
