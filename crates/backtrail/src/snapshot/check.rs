//! Checking that all of a snapshot is stored. It only reads.

use std::collections::HashSet;

use super::entry::Node;
use super::node::{Listing, read_listing, read_root};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects, SHORT_STREAM};

/// Checks that everything a snapshot names is there. `whole` are the listings that
/// are known to be, with all below them; those of this snapshot are added.
pub(crate) fn check_snapshot(
    objects: &Objects,
    snapshot: &ObjectId,
    whole: &mut HashSet<ObjectId>,
) -> Result<()> {
    let root = read_root(snapshot, &objects.read(snapshot)?)?;
    let mut found = HashSet::new();
    let mut waiting = vec![root.listing];
    while let Some(id) = waiting.pop() {
        if whole.contains(&id) || !found.insert(id) {
            continue;
        }
        match read_listing(&id, &objects.read(&id)?)? {
            Listing::Branch(children) => waiting.extend(children.iter().map(|child| child.id)),
            Listing::Leaf(entries) => {
                for entry in entries {
                    match entry.node {
                        Node::Dir(dir) => waiting.push(dir.listing),
                        Node::File { content, size, .. } => {
                            check_content(objects, &content, size)?;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    // Only now: a part of something broken must not pass for whole.
    whole.extend(found);
    Ok(())
}

fn check_content(objects: &Objects, id: &ObjectId, size: u64) -> Result<()> {
    // Only a long one can be in chunks; to find that out it has to be read.
    let stored = if size < SHORT_STREAM as u64 {
        objects.contains(id)?
    } else {
        objects.contains_whole(id)?
    };
    if stored {
        return Ok(());
    }
    let what = format!("the content {id} of a file is not stored");
    Err(Error::new(ErrorKind::Corrupt, what))
}
