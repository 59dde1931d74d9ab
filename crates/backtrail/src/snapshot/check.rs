//! Checking that all of a snapshot is stored. It only reads.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::entry::Node;
use super::name::os_str;
use super::node::{Listing, read_listing, read_root};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects, SHORT_STREAM};

/// Something of a snapshot that is not there, or not whole.
#[derive(Debug)]
pub(crate) struct Missing {
    /// The file, or the directory of which it is the listing; the workspace itself is
    /// empty.
    pub(crate) path: PathBuf,
    pub(crate) object: ObjectId,
    /// Whether it is a listing: all that is below it is out of reach.
    pub(crate) is_listing: bool,
    pub(crate) error: Error,
}

/// Finds out what of a snapshot is not stored. `whole` are the listings that are
/// known to be, with all below them; those that are found so are added.
pub(crate) fn missing_of(
    objects: &Objects,
    snapshot: &ObjectId,
    whole: &mut HashSet<ObjectId>,
) -> Result<Vec<Missing>> {
    let mut check = Check {
        objects,
        whole,
        missing: Vec::new(),
        waiting: Vec::new(),
    };
    let root = objects.read(snapshot);
    match root.and_then(|bytes| read_root(snapshot, &bytes)) {
        Ok(root) => check
            .waiting
            .push(Step::Enter(PathBuf::new(), root.listing)),
        Err(error) => check.miss(Path::new(""), *snapshot, true, error)?,
    }
    while let Some(step) = check.waiting.pop() {
        match step {
            Step::Enter(path, listing) => check.enter(&path, listing)?,
            // Whatever was found since lies below it.
            Step::Leave(listing, before) if check.missing.len() == before => {
                check.whole.insert(listing);
            }
            Step::Leave(..) => {}
        }
    }
    Ok(check.missing)
}

struct Check<'a> {
    objects: &'a Objects,
    whole: &'a mut HashSet<ObjectId>,
    missing: Vec<Missing>,
    waiting: Vec<Step>,
}

enum Step {
    Enter(PathBuf, ObjectId),
    /// All below a listing was looked at; so much was missing before that.
    Leave(ObjectId, usize),
}

impl Check<'_> {
    fn enter(&mut self, path: &Path, id: ObjectId) -> Result<()> {
        if self.whole.contains(&id) {
            return Ok(());
        }
        let bytes = self.objects.read(&id);
        let listing = match bytes.and_then(|bytes| read_listing(&id, &bytes)) {
            Ok(listing) => listing,
            Err(error) => return self.miss(path, id, true, error),
        };
        self.waiting.push(Step::Leave(id, self.missing.len()));
        match listing {
            Listing::Branch(children) => {
                let steps = children.iter();
                let steps = steps.map(|child| Step::Enter(path.to_owned(), child.id));
                self.waiting.extend(steps);
            }
            Listing::Leaf(entries) => {
                for entry in entries {
                    let path = path.join(os_str(&entry.name));
                    match entry.node {
                        Node::Dir(dir) => self.waiting.push(Step::Enter(path, dir.listing)),
                        Node::File { content, size, .. } => self.content(&path, content, size)?,
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn content(&mut self, path: &Path, id: ObjectId, size: u64) -> Result<()> {
        // Only a long one can be in chunks; to find that out it has to be read.
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
        self.miss(path, id, false, error)
    }

    fn miss(
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
