//! Checks that all objects of a snapshot are stored, without changing anything.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::entry::Node;
use super::name::os_str;
use super::node::{Listing, read_listing, read_root};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects, SHORT_STREAM};

/// An object of a snapshot that is missing or damaged.
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

/// Returns the objects of a snapshot that are not stored. `whole` holds the listings that
/// are known to be complete with everything below them; listings found complete are
/// added.
pub(crate) fn find_missing(
    objects: &Objects,
    snapshot: &ObjectId,
    whole: &mut HashSet<ObjectId>,
) -> Result<Vec<Missing>> {
    let mut check = SnapshotCheck {
        objects,
        whole,
        missing: Vec::new(),
        waiting: Vec::new(),
    };
    let root = objects.read(snapshot);
    match root.and_then(|bytes| read_root(snapshot, &bytes)) {
        Ok(root) => check
            .waiting
            .push(CheckStep::Enter(PathBuf::new(), root.listing)),
        Err(error) => check.add_missing(Path::new(""), *snapshot, true, error)?,
    }
    while let Some(step) = check.waiting.pop() {
        match step {
            CheckStep::Enter(path, listing) => check.enter(&path, listing)?,
            // Everything found missing since is below this listing.
            CheckStep::Leave(listing, before) if check.missing.len() == before => {
                check.whole.insert(listing);
            }
            CheckStep::Leave(..) => {}
        }
    }
    Ok(check.missing)
}

struct SnapshotCheck<'a> {
    objects: &'a Objects,
    whole: &'a mut HashSet<ObjectId>,
    missing: Vec<Missing>,
    waiting: Vec<CheckStep>,
}

enum CheckStep {
    Enter(PathBuf, ObjectId),
    /// Everything below a listing was checked; holds how many were missing before.
    Leave(ObjectId, usize),
}

impl SnapshotCheck<'_> {
    fn enter(&mut self, path: &Path, id: ObjectId) -> Result<()> {
        if self.whole.contains(&id) {
            return Ok(());
        }
        let bytes = self.objects.read(&id);
        let listing = match bytes.and_then(|bytes| read_listing(&id, &bytes)) {
            Ok(listing) => listing,
            Err(error) => return self.add_missing(path, id, true, error),
        };
        self.waiting.push(CheckStep::Leave(id, self.missing.len()));
        match listing {
            Listing::Branch(children) => {
                let steps = children.iter();
                let steps = steps.map(|child| CheckStep::Enter(path.to_owned(), child.id));
                self.waiting.extend(steps);
            }
            Listing::Leaf(entries) => {
                for entry in entries {
                    let path = path.join(os_str(&entry.name));
                    match entry.node {
                        Node::Dir(dir) => self.waiting.push(CheckStep::Enter(path, dir.listing)),
                        Node::File { content, size, .. } => self.content(&path, content, size)?,
                        _ => {}
                    }
                }
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
        let error = match stored {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let what = format!("the content {id} of a file is not stored");
                Error::new(ErrorKind::Corrupt, what)
            }
            Err(error) => error,
        };
        self.add_missing(path, id, false, error)
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
