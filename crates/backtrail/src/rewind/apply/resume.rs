//! Resuming a step that a crash interrupted, wherever it stopped.

use rustix::io::Errno;

use super::super::outcome::NotRestored;
use super::super::path_change::{PathChange, PathEntry};
use super::mover::{CHANGED, GONE, Mover, is_ours};
use super::root_dir::{RootDir, SplitPath, is_gone, may_write};
use super::stage::{OnChanged, Prepared, Stager};
use super::staging_dir::{OPEN, StagingDir};
use super::sweep::StagedKind;
use super::{FileWork, WorkResult};
use crate::error::Result;
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

pub(super) fn resume(work: FileWork<'_>, root_dir: &RootDir<'_>) -> Result<WorkResult> {
    let items = work.items;
    open_dirs(root_dir, items)?;
    let found = StagingDir::find(root_dir, work.id)?;
    let mut left = vec![None; items.len()];
    let mut staging = match found {
        Some(staging) => staging,
        None if evaluate(root_dir, items, &mut left)?.is_empty() => {
            return done(root_dir, items, left);
        }
        None => StagingDir::create(root_dir, work.id)?,
    };
    let none: Vec<Prepared> = items.iter().map(|_| Prepared::default()).collect();
    let mut mover = Mover::new(root_dir, &mut staging, items, &none);
    mover.make_writable()?;
    salvage(&mut mover, work)?;
    left = std::mem::take(&mut mover.left);
    let todo = evaluate(root_dir, items, &mut left)?;
    mover.left = vec![None; items.len()];
    mover.sweep(work.objects)?;
    let rescued = std::mem::take(&mut mover.left);
    // Their modes are set as items.
    staging.made_writable.retain(|(path, _)| {
        let is_it = |(item, left): &(&PathChange, &Option<String>)| {
            item.path == *path && item.becomes_dir() && left.is_none()
        };
        !items.iter().zip(&left).any(|pair| is_it(&pair))
    });
    let stager = Stager::new(root_dir, &staging, work.objects, OnChanged::Leave, false);
    let ready = stager.run(&todo)?;
    let mut mover = Mover::new(root_dir, &mut staging, &todo, &ready);
    mover.lenient = true;
    mover.forward()?;
    let mut all = super::clean_up(&mut mover, work.objects, super::mover::Direction::Forward)?;
    all.extend(mover.into_left());
    all.extend(named(items, left));
    all.extend(named(items, rescued));
    Ok(WorkResult {
        left: merged(all),
        rolled_back: None,
    })
}

/// Syncs what was done; nothing else remained.
fn done(
    root_dir: &RootDir<'_>,
    items: &[PathChange],
    left: Vec<Option<String>>,
) -> Result<WorkResult> {
    let synced = root_dir.sync_all();
    synced.map_err(|error| {
        let path = std::path::Path::new("");
        root_dir.failed("make the changes durable", "syncfs", path, error)
    })?;
    Ok(WorkResult {
        left: merged(named(items, left).collect()),
        rolled_back: None,
    })
}

fn named(items: &[PathChange], left: Vec<Option<String>>) -> impl Iterator<Item = NotRestored> {
    let all = items.iter().zip(left);
    all.filter_map(|(item, reason)| {
        let path = item.path.clone();
        reason.map(|reason| NotRestored { path, reason })
    })
}

/// Names each path once, with the longest reason.
fn merged(mut all: Vec<NotRestored>) -> Vec<NotRestored> {
    all.sort_by(|a, b| (&a.path, b.reason.len()).cmp(&(&b.path, a.reason.len())));
    all.dedup_by(|b, a| a.path == b.path);
    all
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
        if let Some(seen) = seen.filter(shut)
            && !is_usable(root_dir, item)
        {
            let mode = seen.stamp.mode;
            root_dir
                .set_mode(&item.path, mode | OPEN, shut)
                .map_err(failed)?;
        }
    }
    Ok(())
}

fn is_usable(root_dir: &RootDir<'_>, item: &PathChange) -> bool {
    let path = bytes_of(&item.path);
    root_dir
        .open_dir(path)
        .is_ok_and(|dir| may_write(&dir).unwrap_or(false))
}

/// Puts back files that are not ours to remove, and files that were moved out of the way
/// of something that did not arrive.
fn salvage(mover: &mut Mover<'_>, work: FileWork<'_>) -> Result<()> {
    for (name, n) in mover.staged_names()? {
        let item = &work.items[n];
        let place = SplitPath::of(&item.path);
        match mover.staged_kind(work.objects, &name, n)? {
            StagedKind::Foreign => mover.rescue(work.objects, &name, n)?,
            StagedKind::Old if name.starts_with("o-") && item.new.is_some() => {
                let failed = |error| mover.failed("put a file back", "renameat2", n, error);
                if mover.root_dir.look(place.path).map_err(failed)?.is_none() {
                    match mover.root_dir.put(&mover.staging.fd, &name, place, None) {
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

/// Finds what remains to do; items in neither state go to `left`.
fn evaluate(
    root_dir: &RootDir<'_>,
    items: &[PathChange],
    left: &mut [Option<String>],
) -> Result<Vec<PathChange>> {
    let mut todo = Vec::new();
    for (item, left) in items.iter().zip(left) {
        match stands(root_dir, item)? {
            ItemProgress::New => {}
            ItemProgress::Todo(item) => todo.push(item),
            ItemProgress::Other(reason) => _ = left.get_or_insert(reason.to_owned()),
        }
    }
    Ok(todo)
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
    for (entry, is_new) in [(&item.new, true), (&item.old, false)] {
        if let Some(entry) = entry
            && is_at(root_dir, item, entry).map_err(failed)?
        {
            return Ok(if is_new {
                ItemProgress::New
            } else {
                from(item.old.clone())
            });
        }
    }
    Ok(ItemProgress::Other(CHANGED))
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

fn is_at(root_dir: &RootDir<'_>, item: &PathChange, entry: &PathEntry) -> rustix::io::Result<bool> {
    let place = SplitPath::of(&item.path);
    match root_dir.open_dir(place.dir) {
        Ok(dir) => root_dir.is((&dir, place.name), place.path, entry, None),
        Err(error) if is_gone(error) => Ok(false),
        Err(error) => Err(error),
    }
}
