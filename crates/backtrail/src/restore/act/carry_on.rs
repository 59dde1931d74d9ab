//! Carrying on what a crash interrupted, wherever it stopped.

use rustix::io::Errno;

use super::super::plan::NotRestored;
use super::super::thing::{Item, Thing};
use super::beneath::{Beneath, Place, is_gone, may_write};
use super::desk::{Desk, OPEN};
use super::hands::{CHANGED, GONE, Hands, is_ours};
use super::stage::{OnMoved, Ready, Staging};
use super::sweep::Lies;
use super::{Outcome, Work};
use crate::error::Result;
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::sys::Seen;

/// How an item stands.
enum Stands {
    /// As it shall.
    New,
    /// In between: what there is to be done from here.
    Todo(Item),
    /// In neither state.
    Other(&'static str),
}

pub(super) fn carry_on(work: Work<'_>, beneath: &Beneath<'_>) -> Result<Outcome> {
    let items = work.items;
    open_dirs(beneath, items)?;
    let found = Desk::find(beneath, work.id)?;
    let mut left = vec![None; items.len()];
    let mut desk = match found {
        Some(desk) => desk,
        None if evaluate(beneath, items, &mut left)?.is_empty() => {
            return done(beneath, items, left);
        }
        None => Desk::create(beneath, work.id)?,
    };
    let none: Vec<Ready> = items.iter().map(|_| Ready::default()).collect();
    let mut hands = Hands::new(beneath, &mut desk, items, &none);
    hands.lend()?;
    salvage(&mut hands, work)?;
    left = std::mem::take(&mut hands.left);
    let todo = evaluate(beneath, items, &mut left)?;
    hands.left = vec![None; items.len()];
    hands.sweep(work.objects)?;
    let rescued = std::mem::take(&mut hands.left);
    // Their modes are set as items.
    desk.lent.retain(|(path, _)| {
        let is_it = |(item, left): &(&Item, &Option<String>)| {
            item.path == *path && item.becomes_dir() && left.is_none()
        };
        !items.iter().zip(&left).any(|pair| is_it(&pair))
    });
    let staging = Staging::new(beneath, &desk, work.objects, OnMoved::Leave, false);
    let ready = staging.run(&todo)?;
    let mut hands = Hands::new(beneath, &mut desk, &todo, &ready);
    hands.lenient = true;
    hands.forward()?;
    let mut all = super::tidy(&mut hands, work.objects, super::perform::Ended::Forward)?;
    all.extend(hands.into_left());
    all.extend(named(items, left));
    all.extend(named(items, rescued));
    Ok(Outcome {
        left: merged(all),
        rolled_back: None,
    })
}

/// Nothing was to be done, or only to be made durable.
fn done(beneath: &Beneath<'_>, items: &[Item], left: Vec<Option<String>>) -> Result<Outcome> {
    let synced = beneath.sync_all();
    synced.map_err(|error| {
        let path = std::path::Path::new("");
        beneath.failed("make the changes durable", "syncfs", path, error)
    })?;
    Ok(Outcome {
        left: merged(named(items, left).collect()),
        rolled_back: None,
    })
}

fn named(items: &[Item], left: Vec<Option<String>>) -> impl Iterator<Item = NotRestored> {
    let all = items.iter().zip(left);
    all.filter_map(|(item, why)| {
        let path = item.path.clone();
        why.map(|why| NotRestored { path, why })
    })
}

/// Names each path once, with what says most.
fn merged(mut all: Vec<NotRestored>) -> Vec<NotRestored> {
    all.sort_by(|a, b| (&a.path, b.why.len()).cmp(&(&b.path, a.why.len())));
    all.dedup_by(|b, a| a.path == b.path);
    all
}

/// Lets us into directories whose mode was set last and keeps us out now; what
/// follows sets it again.
fn open_dirs(beneath: &Beneath<'_>, items: &[Item]) -> Result<()> {
    for item in items.iter().filter(|item| item.becomes_dir()) {
        let failed = |error| beneath.failed("open a directory", "fchmod", &item.path, error);
        let seen = beneath.look(&item.path).map_err(failed)?;
        let shut = |seen: &Seen| {
            let bits = seen.stamp.mode & OPEN != OPEN && is_ours(item, seen.stamp.mode);
            seen.kind == FileKind::Dir && bits
        };
        if let Some(seen) = seen.filter(shut)
            && !is_usable(beneath, item)
        {
            let mode = seen.stamp.mode;
            beneath
                .set_mode(&item.path, mode | OPEN, shut)
                .map_err(failed)?;
        }
    }
    Ok(())
}

fn is_usable(beneath: &Beneath<'_>, item: &Item) -> bool {
    let path = bytes_of(&item.path);
    beneath
        .open_dir(path)
        .is_ok_and(|dir| may_write(&dir).unwrap_or(false))
}

/// Puts back what is nobody's to remove, and what was moved out of the way of
/// something that did not come.
fn salvage(hands: &mut Hands<'_>, work: Work<'_>) -> Result<()> {
    for (name, n) in hands.on_desk()? {
        let item = &work.items[n];
        let place = Place::of(&item.path);
        match hands.lies(work.objects, &name, n)? {
            Lies::Foreign => hands.rescue(work.objects, &name, n)?,
            Lies::Old if name.starts_with("o-") && item.new.is_some() => {
                let failed = |error| hands.failed("put a file back", "renameat2", n, error);
                if hands.beneath.look(place.path).map_err(failed)?.is_none() {
                    match hands.beneath.put(&hands.desk.fd, &name, place, None) {
                        // Somebody was quicker, and that stays.
                        Err(Errno::EXIST) => {}
                        Err(error) if !is_gone(error) => return Err(failed(error)),
                        _ => {}
                    }
                }
            }
            Lies::Old | Lies::New => {}
        }
    }
    Ok(())
}

/// Finds out what is to be done still; what is in neither state goes to `left`.
fn evaluate(
    beneath: &Beneath<'_>,
    items: &[Item],
    left: &mut [Option<String>],
) -> Result<Vec<Item>> {
    let mut todo = Vec::new();
    for (item, left) in items.iter().zip(left) {
        match stands(beneath, item)? {
            Stands::New => {}
            Stands::Todo(item) => todo.push(item),
            Stands::Other(why) => _ = left.get_or_insert(why.to_owned()),
        }
    }
    Ok(todo)
}

fn stands(beneath: &Beneath<'_>, item: &Item) -> Result<Stands> {
    let failed = |error| beneath.failed("read what is there", "openat", &item.path, error);
    let seen = beneath.look(&item.path).map_err(failed)?;
    let from = |old: Option<Thing>| {
        Stands::Todo(Item {
            path: item.path.clone(),
            old,
            new: item.new.clone(),
        })
    };
    let Some(seen) = seen else {
        return Ok(match (&item.old, &item.new) {
            (_, None) => Stands::New,
            (None, _) => from(None),
            // A directory is removed before something else comes in its place.
            (Some(Thing::Dir { .. }), Some(new)) if !new.is_dir() => from(None),
            _ => Stands::Other(GONE),
        });
    };
    if seen.kind == FileKind::Dir {
        return Ok(match dir_stands(item, seen.stamp.mode) {
            Some(true) => Stands::New,
            Some(false) => from(Some(Thing::Dir {
                mode: seen.stamp.mode,
            })),
            None => Stands::Other(CHANGED),
        });
    }
    for (thing, is_new) in [(&item.new, true), (&item.old, false)] {
        if let Some(thing) = thing
            && is_at(beneath, item, thing).map_err(failed)?
        {
            return Ok(if is_new {
                Stands::New
            } else {
                from(item.old.clone())
            });
        }
    }
    Ok(Stands::Other(CHANGED))
}

/// Returns whether a directory is as it shall be; `None` if it is not ours.
fn dir_stands(item: &Item, mode: u32) -> Option<bool> {
    match &item.new {
        Some(Thing::Dir { mode: own }) if mode == *own => Some(true),
        Some(Thing::Dir { .. }) if is_ours(item, mode) => Some(false),
        Some(Thing::Dir { .. }) => None,
        _ => (item.was_dir() && is_ours(item, mode)).then_some(false),
    }
}

fn is_at(beneath: &Beneath<'_>, item: &Item, thing: &Thing) -> rustix::io::Result<bool> {
    let place = Place::of(&item.path);
    match beneath.open_dir(place.dir) {
        Ok(dir) => beneath.is((&dir, place.name), place.path, thing, None),
        Err(error) if is_gone(error) => Ok(false),
        Err(error) => Err(error),
    }
}
