//! Imports what is new in a limited time, from the agents whose histories were imported before.
//!
//! If nothing is new it opens no file of an agent and takes no lock: a walk compares the files
//! with the stamps in the cache.

use std::cmp::Reverse;

use backtrail::Store;

use super::cache::{Cache, settled_key};
use super::contained::take_apart_and_settle;
use super::destination::Destination;
use super::found::{FoundFile, search};
use super::{Import, ImportOptions};
use crate::error::{Error, Result};

/// What an import of what is new did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct NewReport {
    /// How many files had something new, which was imported.
    pub imported: u64,
    /// How many files were left, as the time was over or they are too long.
    pub left: u64,
    /// Whether another process is importing.
    pub is_busy: bool,
    /// Why files were not imported. They are not tried again before they change.
    pub errors: Vec<Error>,
}

/// Files that have grown by more than this are left: one of them would take too long.
const MAX_NEW: u64 = 64 << 20;

/// Imports what agents wrote since the last import, newest first, until `is_over`; what is left
/// is imported by a later call. Only agents whose histories were imported are looked at.
///
/// # Errors
///
/// Fails if the store does. Errors about single files are in the report.
pub fn import_new(
    store: &Store,
    options: &ImportOptions,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<NewReport> {
    let mut options = options.clone();
    let agents = store.imported_agents();
    options
        .formats
        .retain(|format| agents.contains(format.name()));
    if options.formats.is_empty() {
        return Ok(NewReport::default());
    }
    let mut found = search(&options);
    let cache = load(store, &options);
    found.files.retain(|file| cache.is_news(file));
    if found.files.is_empty() {
        return Ok(NewReport::default());
    }
    let Some(staging) = store.try_stage()? else {
        return Ok(NewReport {
            is_busy: true,
            ..NewReport::default()
        });
    };
    // Another process may have imported them just now.
    let mut cache = load(store, &options);
    found.files.retain(|file| cache.is_news(file));
    let containers = take_apart_and_settle(&mut found, &mut cache);
    found.files.retain(|file| cache.is_news(file));
    found.files.sort_by_key(|file| Reverse(file.modified_ns));
    let all = found.files.len();
    found
        .files
        .retain(|file| new_bytes(file, &cache) <= MAX_NEW);
    let too_long = (all - found.files.len()) as u64;
    let destination = Destination::new(Some(store), Some(staging));
    let mut import = Import::new(destination, cache, &options, &found.files, &|_| {});
    import.is_over = is_over;
    let report = import.run(&found.files, &containers)?;
    let databases = found.unreadable_databases.into_iter();
    let mut new = NewReport {
        left: import.left.into_inner() + too_long,
        errors: databases.map(|(_, error)| error).collect(),
        ..NewReport::default()
    };
    for agent in report.agents {
        new.imported += agent.new + agent.updated;
        new.errors.extend(agent.errors);
    }
    Ok(new)
}

/// Reads the cache. One that is missing is not rebuilt from the sessions, which may take long:
/// the files are compared with their sessions one by one.
fn load(store: &Store, options: &ImportOptions) -> Cache {
    let exclude = &options.exclude;
    match Cache::load_saved(store) {
        Some(mut cache) => {
            cache.set_key(settled_key(store, exclude));
            cache
        }
        None => Cache::empty(store, exclude),
    }
}

/// Returns by how much a file has grown; a rewritten one is read as a whole.
fn new_bytes(file: &FoundFile, cache: &Cache) -> u64 {
    let known = cache.get(&file.path).map_or(0, |cached| cached.stamp.len);
    let len = file.stamp.len;
    len.checked_sub(known).unwrap_or(len)
}
