//! Bounds the work for a tree that repeats its directories.
//!
//! Equal directories are one object, so a few bytes can spell a tree of 2^40 files: each of
//! forty directories has the next one twice. No scan finds such a tree. A directory that is
//! entered for the first time may be as large as it likes, because all of it is stored;
//! what is entered again is counted.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::cursor::Cursor;
use super::entry::Node;
use super::name::shown;
use super::source::Nodes;
use super::walk::MAX_DEPTH;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;

/// How many entries of repeated directories are listed or compared. Fewer in tests, which
/// have a slow build.
pub(super) const MAX_REPEATED: u64 = if cfg!(test) { 1 << 18 } else { 1 << 22 };
/// So many bytes of a path count as another entry: paths need memory, too.
const PATH_UNIT: usize = 128;
/// After so many, the whole tree is weighed once: what is far too large is refused early.
const WEIGH_AFTER: u64 = MAX_REPEATED >> 6;
/// A tree with more entries than this is refused as soon as it is weighed.
const FAR_TOO_MANY: u64 = MAX_REPEATED << 8;

/// The directories that a walk or a comparison entered.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// A part of each listing's hash. Two that share it cost only a wrong count.
    seen: HashSet<u64>,
    repeated: u64,
    was_weighed: bool,
}

impl Repeats {
    /// Enters a directory, on one side or on both. Returns whether it was entered before.
    pub(super) fn enter(&mut self, listings: [Option<ObjectId>; 2]) -> bool {
        let part = |id: ObjectId| {
            let bytes = id.as_bytes()[..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        let [before, after] = listings.map(|id| id.map_or(0, part));
        !self.seen.insert(before.rotate_left(1) ^ after)
    }

    /// Counts an entry of a directory that was entered before. `tree` is what to weigh: all
    /// that is walked or compared.
    pub(super) fn count(&mut self, path: &Path, tree: &[(&dyn Nodes, ObjectId)]) -> Result<()> {
        let path_len = path.as_os_str().len();
        self.repeated += 1 + (path_len / PATH_UNIT) as u64;
        if self.repeated > MAX_REPEATED {
            return Err(too_many(path));
        }
        if self.repeated > WEIGH_AFTER && !self.was_weighed {
            self.was_weighed = true;
            for (nodes, listing) in tree {
                if weigh(*nodes, *listing)? > FAR_TOO_MANY {
                    return Err(too_many(path));
                }
            }
        }
        Ok(())
    }
}

/// Returns the error for a tree that repeats its directories too often.
pub(super) fn too_many(path: &Path) -> Error {
    let start: PathBuf = path.components().take(2).collect();
    let what = format!(
        "the snapshot repeats the same directories more than {MAX_REPEATED} times below {}; \
         verify names its checkpoint",
        shown(&start)
    );
    Error::new(ErrorKind::Corrupt, what)
}

/// Returns how many entries a tree spells, reading each directory once. A directory that
/// cannot be read counts as empty: entering it reports the reason.
fn weigh(nodes: &dyn Nodes, listing: ObjectId) -> Result<u64> {
    let mut known: HashMap<ObjectId, u64> = HashMap::new();
    let mut open = vec![(listing, Cursor::new(listing), 0u64)];
    while let Some((id, cursor, entries)) = open.last_mut() {
        match cursor.advance(nodes) {
            Ok(Some(entry)) => {
                *entries = entries.saturating_add(1);
                let Node::Dir(dir) = entry.node else { continue };
                if let Some(below) = known.get(&dir.listing) {
                    *entries = entries.saturating_add(*below);
                } else if open.len() < MAX_DEPTH {
                    open.push((dir.listing, Cursor::new(dir.listing), 0));
                }
            }
            Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
            Ok(None) | Err(_) => {
                let (id, entries) = (*id, *entries);
                known.insert(id, entries);
                open.pop();
                if let Some((.., above)) = open.last_mut() {
                    *above = above.saturating_add(entries);
                }
            }
        }
    }
    Ok(known.get(&listing).copied().unwrap_or(0))
}
