//! Checks that a snapshot can be restored, without changing anything: all its objects are
//! stored, and a restore refuses none of its entries.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::cursor::{Cursor, Next};
use super::entry::Node;
use super::name::os_str;
use super::node::read_root;
use super::repeats::{MAX_REPEATED, Repeats};
use super::restorable::{check_entry, check_length};
use super::tree::Snapshot;
use super::walk::check_depth;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects, SHORT_STREAM};

/// An object of a snapshot that is missing, damaged or refused.
#[derive(Debug)]
pub(crate) struct Missing {
    /// The path of the file, or of the directory whose listing it is; empty for the
    /// workspace itself.
    pub(crate) path: PathBuf,
    pub(crate) object: ObjectId,
    /// Whether it is a listing, so that everything below it is unreachable.
    pub(crate) is_listing: bool,
    pub(crate) error: Error,
}

/// Listings that are complete with everything below them.
#[derive(Debug, Default)]
pub(crate) struct WholeListings(HashMap<ObjectId, Subtree>);

/// What is below a complete listing.
#[derive(Debug, Clone, Copy, Default)]
struct Subtree {
    /// How many directories are within each other.
    height: usize,
    /// How many entries it spells; repeated ones count each time.
    entries: u64,
}

/// Returns what of a snapshot cannot be restored: missing and damaged objects, wrong
/// lengths, and names, nesting or repetition that a restore refuses. Listings that are
/// found complete are added to `whole`.
pub(crate) fn find_missing(
    objects: &Objects,
    snapshot: &ObjectId,
    whole: &mut WholeListings,
) -> Result<Vec<Missing>> {
    let mut check = SnapshotCheck {
        objects,
        whole,
        missing: Vec::new(),
        open: Vec::new(),
        repeats: Repeats::default(),
    };
    let root = objects.read(snapshot);
    let root = match root.and_then(|bytes| read_root(snapshot, &bytes)) {
        Ok(root) => root,
        Err(error) => {
            check.add_missing(Path::new(""), *snapshot, true, error)?;
            return Ok(check.missing);
        }
    };
    check.enter(PathBuf::new(), root.listing)?;
    while !check.open.is_empty() {
        if let Err(error) = check.step(root.listing) {
            // Nothing else is known of such a tree.
            check.missing.clear();
            check.add_missing(Path::new(""), root.listing, true, error)?;
            return Ok(check.missing);
        }
    }
    if check.missing.is_empty() && check.whole.entries(&root.listing) > MAX_REPEATED {
        check.list_all(snapshot, root.listing)?;
    }
    Ok(check.missing)
}

impl WholeListings {
    fn entries(&self, listing: &ObjectId) -> u64 {
        self.0.get(listing).map_or(0, |below| below.entries)
    }
}

struct SnapshotCheck<'a> {
    objects: &'a Objects,
    whole: &'a mut WholeListings,
    missing: Vec<Missing>,
    open: Vec<OpenDir>,
    repeats: Repeats,
}

/// A directory that is being checked.
struct OpenDir {
    path: PathBuf,
    listing: ObjectId,
    cursor: Cursor,
    below: Subtree,
    /// Whether it was checked before, elsewhere, and is not complete.
    is_repeated: bool,
    /// How many were missing before it.
    missing: usize,
}

impl SnapshotCheck<'_> {
    fn enter(&mut self, path: PathBuf, listing: ObjectId) -> Result<()> {
        let known = self.whole.0.get(&listing).copied();
        let height = known.map_or(0, |known| known.height);
        if let Err(error) = check_depth(self.open.len() + height, &path) {
            return self.add_missing(&path, listing, true, error);
        }
        if let Some(known) = known {
            self.add_below(known);
            return Ok(());
        }
        let is_repeated = self.repeats.enter([Some(listing), None]);
        self.open.push(OpenDir {
            path,
            listing,
            cursor: Cursor::new(listing),
            below: Subtree::default(),
            is_repeated,
            missing: self.missing.len(),
        });
        Ok(())
    }

    /// Adds a complete directory to the one that has it.
    fn add_below(&mut self, known: Subtree) {
        if let Some(above) = self.open.last_mut() {
            let below = &mut above.below;
            below.height = below.height.max(known.height + 1);
            below.entries = below.entries.saturating_add(known.entries);
        }
    }

    /// Checks the next entry of the innermost directory. Fails if the tree has no end.
    fn step(&mut self, root: ObjectId) -> Result<()> {
        let Some(dir) = self.open.last_mut() else {
            return Ok(());
        };
        let entry = match dir.cursor.peek() {
            Next::Entry(_) => dir.cursor.take(),
            Next::Node(id, _) => {
                if let Err(error) = dir.cursor.open(self.objects) {
                    let path = dir.path.clone();
                    return self.add_missing(&path, id, true, error);
                }
                return Ok(());
            }
            Next::End => None,
        };
        let Some(entry) = entry else {
            self.leave();
            return Ok(());
        };
        let path = dir.path.join(os_str(&entry.name));
        dir.below.entries = dir.below.entries.saturating_add(1);
        if dir.is_repeated {
            self.repeats.count(&path, &[(self.objects, root)])?;
        }
        let object = match &entry.node {
            Node::File { content, .. } => *content,
            _ => dir.listing,
        };
        if let Err(error) = check_entry(&path, &entry) {
            return self.add_missing(&path, object, false, error);
        }
        match entry.node {
            Node::Dir(dir) => self.enter(path, dir.listing),
            Node::File { content, size, .. } => self.content(&path, content, size),
            Node::Link { .. } | Node::Skipped(_) => Ok(()),
        }
    }

    fn leave(&mut self) {
        if let Some(dir) = self.open.pop()
            && self.missing.len() == dir.missing
        {
            self.whole.0.insert(dir.listing, dir.below);
            self.add_below(dir.below);
        }
    }

    /// Lists a large tree as a restore does, to find out whether it repeats too much.
    fn list_all(&mut self, snapshot: &ObjectId, root: ObjectId) -> Result<()> {
        for entry in Snapshot::stored(self.objects, *snapshot)?.entries() {
            if let Err(error) = entry {
                return self.add_missing(Path::new(""), root, true, error);
            }
        }
        Ok(())
    }

    fn content(&mut self, path: &Path, id: ObjectId, size: u64) -> Result<()> {
        // Only a long content can be in chunks; finding out means reading it.
        let stored = if size < SHORT_STREAM as u64 {
            self.objects.contains(&id)
        } else {
            self.objects.contains_whole(&id)
        };
        let checked = stored.and_then(|stored| match stored {
            true => {
                let len = self.objects.length(&id)?;
                check_length(&id, len.unwrap_or(size), size)
            }
            false => {
                let what = format!("the content {id} of a file is not stored");
                Err(Error::new(ErrorKind::Corrupt, what))
            }
        });
        match checked {
            Ok(()) => Ok(()),
            Err(error) => self.add_missing(path, id, false, error),
        }
    }

    fn add_missing(
        &mut self,
        path: &Path,
        object: ObjectId,
        is_listing: bool,
        error: Error,
    ) -> Result<()> {
        if error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        self.missing.push(Missing {
            path: path.to_owned(),
            object,
            is_listing,
            error,
        });
        Ok(())
    }
}
