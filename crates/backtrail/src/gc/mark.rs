//! Marking the objects that a snapshot is made of.

use crate::error::{Error, ErrorKind, Result};
use crate::objects::{Mark, ObjectId, ObjectTable, SHORT_STREAM};
use crate::snapshot::entry::Node;
use crate::snapshot::node::{Listing, read_listing, read_root};

/// How many objects became live.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marked {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// Marks a snapshot and all that is in it as live; returns how much was not live before.
/// `missing` is called with contents that are not stored.
pub(super) fn mark_snapshot(
    table: &mut ObjectTable,
    snapshot: &ObjectId,
    missing: &mut dyn FnMut(ObjectId),
) -> Result<Marked> {
    let mut marking = Marking {
        table,
        missing,
        marked: Marked::default(),
        waiting: Vec::new(),
    };
    marking.live(snapshot);
    if marking.table.mark(snapshot, Mark::Walked).is_some() {
        let root = read_root(snapshot, &marking.table.read(snapshot)?)?;
        marking.waiting.push(root.listing);
        marking.walk()?;
    }
    Ok(marking.marked)
}

struct Marking<'a> {
    table: &'a mut ObjectTable,
    missing: &'a mut dyn FnMut(ObjectId),
    marked: Marked,
    /// Listings that are still to be read.
    waiting: Vec<ObjectId>,
}

impl Marking<'_> {
    /// Marks an object as live, and returns whether it was not before.
    fn live(&mut self, id: &ObjectId) -> bool {
        let marked = self.table.mark(id, Mark::Live);
        self.marked.bytes += marked.unwrap_or(0);
        self.marked.objects += u64::from(marked.is_some());
        marked.is_some()
    }

    fn walk(&mut self) -> Result<()> {
        while let Some(id) = self.waiting.pop() {
            self.live(&id);
            // The same bytes may also be the content of a file.
            if self.table.mark(&id, Mark::Walked).is_none() {
                continue;
            }
            match read_listing(&id, &self.table.read(&id)?)? {
                Listing::Branch(children) => {
                    self.waiting.extend(children.iter().map(|child| child.id));
                }
                Listing::Leaf(entries) => {
                    for entry in entries {
                        self.node(&entry.node)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Dir(dir) => self.waiting.push(dir.listing),
            Node::File { content, size, .. } => {
                let is_new = self.live(content);
                // Only a long content can be in chunks.
                if *size >= SHORT_STREAM as u64 {
                    self.open(content)?;
                } else if is_new && !self.table.has(content) {
                    self.must_be_there(content)?;
                }
            }
            Node::Link { .. } | Node::Skipped(_) => {}
        }
        Ok(())
    }

    /// Marks the chunks of a content, and theirs.
    fn open(&mut self, content: &ObjectId) -> Result<()> {
        let mut waiting = vec![*content];
        while let Some(id) = waiting.pop() {
            self.live(&id);
            if self.table.mark(&id, Mark::Opened).is_none() {
                continue;
            }
            match self.table.chunks(&id) {
                Ok(chunks) => waiting.extend(chunks),
                // An object that cannot be read may name chunks.
                Err(error) if self.table.has(&id) => return Err(error),
                Err(error) if error.kind() == ErrorKind::Corrupt => (self.missing)(id),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes a content that is not stored, unless it was stored just now.
    fn must_be_there(&mut self, content: &ObjectId) -> Result<()> {
        if !self.table.is_stored(content)? {
            (self.missing)(*content);
        }
        Ok(())
    }
}

/// Returns the error of a snapshot that cannot be read, with what names it.
pub(super) fn unreadable(named_by: &str, error: &Error) -> Error {
    let what = format!("the files of {named_by} cannot be read: {error}");
    let mut stopped = Error::new(error.kind(), what);
    if let Some(path) = error.path() {
        stopped = stopped.at_path(path);
    }
    error.byte().into_iter().fold(stopped, Error::at_byte)
}
