//! Reads snapshots.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::change::FileState;
use super::compare::{Comparison, Difference};
use super::cursor::{Cursor, find};
use super::damage::{DamagedPart, DamagedPath, DamagedSides, damage_error, name_damage};
use super::diff::Diff;
use super::entry::{Dir, Node, SkippedReason, Totals};
use super::name::{bytes_of, names_of, os_str, shown};
use super::node::read_root;
use super::source::{Contents, Present};
use super::walk::{Entries, SkippedEntries, Walk};
use crate::error::{Error, Result};
use crate::objects::{ObjectId, Objects};

/// A path and what was there.
pub(crate) type PathNode = (PathBuf, Node);

/// The state of a workspace at one moment. Cheap to clone.
///
/// Directories are read only when they are needed.
#[derive(Debug, Clone)]
pub struct Snapshot {
    id: ObjectId,
    root: Dir,
    source: Arc<dyn Contents>,
    /// The checkpoint that it belongs to, as text.
    of: Option<Arc<str>>,
}

impl Snapshot {
    /// Opens a stored snapshot.
    pub(crate) fn stored(objects: &Objects, id: ObjectId) -> Result<Self> {
        Self::open(Arc::new(objects.clone()), id)
    }

    /// Opens a snapshot from a source of nodes and contents.
    pub(crate) fn open(source: Arc<dyn Contents>, id: ObjectId) -> Result<Self> {
        let root = read_root(&id, &source.node(&id)?)?;
        Ok(Self::new(id, root, source))
    }

    /// Wraps the result of a scan of `path` that was not stored.
    pub(crate) fn present(
        path: &Path,
        (id, root): (ObjectId, Dir),
        nodes: HashMap<ObjectId, Vec<u8>>,
        objects: &Objects,
    ) -> Self {
        let present = Present::new(path, nodes, objects.clone());
        Self::new(id, root, Arc::new(present))
    }

    pub(crate) fn new(id: ObjectId, root: Dir, source: Arc<dyn Contents>) -> Self {
        Self {
            id,
            root,
            source,
            of: None,
        }
    }

    /// Sets the checkpoint that errors name.
    pub(crate) fn of_checkpoint(mut self, text: &Arc<str>) -> Self {
        self.of = Some(Arc::clone(text));
        self
    }

    /// Returns the checkpoint that errors name.
    pub(super) fn of(&self) -> Option<&Arc<str>> {
        self.of.as_ref()
    }

    /// Opens another snapshot from the same source.
    pub(crate) fn sibling(&self, id: ObjectId) -> Result<Self> {
        Self::open(Arc::clone(&self.source), id)
    }

    pub(crate) fn root(&self) -> &Dir {
        &self.root
    }

    pub(crate) fn source(&self) -> &dyn Contents {
        &*self.source
    }

    /// Returns the snapshot's id. Equal states have equal ids.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// Returns how much was captured and how much was skipped.
    pub fn totals(&self) -> Totals {
        self.root.totals
    }

    /// Returns the captured state of `path`, which is relative to the workspace; the
    /// workspace itself is `.`.
    ///
    /// Returns `None` if nothing was captured there. If the path was skipped,
    /// [`Snapshot::skipped_reason`] returns the reason.
    ///
    /// # Errors
    ///
    /// Fails if the path is absolute or contains `..`, or if a node cannot be read.
    pub fn entry(&self, path: impl AsRef<Path>) -> Result<Option<FileState>> {
        let node = self.walk_down(path.as_ref())?;
        Ok(node.as_ref().and_then(FileState::from_node))
    }

    /// Returns the reason why `path`, or a directory that leads to it, was skipped.
    ///
    /// # Errors
    ///
    /// Fails if the path is absolute or contains `..`, or if a node cannot be read.
    pub fn skipped_reason(&self, path: impl AsRef<Path>) -> Result<Option<SkippedReason>> {
        Ok(match self.walk_down(path.as_ref())? {
            Some(Node::Skipped(skipped)) => Some(skipped.reason),
            _ => None,
        })
    }

    /// Returns everything that was captured, in [`Path`] order: a directory comes just
    /// before its contents. The workspace itself is not included.
    pub fn entries(&self) -> Entries {
        Entries(Walk::new(self, |_| true))
    }

    /// Returns all entries, captured or skipped, in [`Path`] order, as far as they can be
    /// read, and the directories that are damaged.
    pub(crate) fn readable_nodes(&self) -> Result<(Vec<PathNode>, Vec<DamagedPath>)> {
        let mut walk = Walk::new(self, |_| true);
        let nodes = walk.by_ref().collect::<Result<_>>()?;
        Ok((nodes, walk.into_damaged()))
    }

    /// Returns the skipped entries except `.git`, in [`Path`] order.
    pub fn skipped(&self) -> SkippedEntries {
        SkippedEntries(Walk::new(self, |dir| dir.totals.skipped > 0))
    }

    /// Reads a file or a link's target. Returns `None` if nothing was captured there.
    ///
    /// # Errors
    ///
    /// Fails if the path is a directory, or if the content is damaged or cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let found = self.read_to(path, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(found.then_some(bytes))
    }

    /// Reads a file or a link's target piece by piece in constant memory. Returns whether
    /// it exists.
    ///
    /// # Errors
    ///
    /// Fails if the path is a directory, or if the content is damaged or cannot be read.
    /// Pieces passed to `take` before an error must be discarded.
    pub fn read_to(
        &self,
        path: impl AsRef<Path>,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let path = path.as_ref();
        match self.walk_down(path)? {
            None | Some(Node::Skipped(_)) => Ok(false),
            Some(Node::File { content, .. }) => {
                let read = self.source.content(path, &content, take);
                read.map_err(|error| self.damaged(path, DamagedPart::Content, error))?;
                Ok(true)
            }
            Some(Node::Link { target, .. }) => take(&target).map(|()| true),
            Some(Node::Dir(_)) => {
                let what = format!("{} is a directory; name a file in it", shown(path));
                Err(Error::invalid(what))
            }
        }
    }

    /// Writes a file or a link's target to `out`. Returns whether it exists.
    ///
    /// # Errors
    ///
    /// Fails like [`read_to`](Self::read_to), or if `out` cannot be written.
    pub fn write_to(&self, path: impl AsRef<Path>, out: &mut dyn io::Write) -> Result<bool> {
        let failed = |error| Error::machine("cannot write the file", error);
        self.read_to(path, &mut |piece| out.write_all(piece).map_err(failed))
    }

    /// Compares this snapshot with a later one.
    ///
    /// # Errors
    ///
    /// Fails if a node of either snapshot cannot be read.
    pub fn diff(&self, after: &Self) -> Result<Diff> {
        Diff::between(self, after, None)
    }

    /// Compares this snapshot with a later one at and below `paths`. An empty list
    /// compares everything.
    ///
    /// Nothing else is read, so a renamed file is only recognised if both its paths are
    /// included; [`Diff::only`] filters a complete diff.
    ///
    /// # Errors
    ///
    /// Fails if a path is absolute or contains `..`, or if a node cannot be read.
    pub fn diff_paths<P: AsRef<Path>>(&self, after: &Self, paths: &[P]) -> Result<Diff> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        Diff::between(self, after, Some(&paths))
    }

    /// Returns every path that differs in a later snapshot, at some paths or everywhere,
    /// including directories and skipped entries.
    pub(crate) fn differences(
        &self,
        after: &Self,
        only: Option<&[&Path]>,
    ) -> Result<Vec<Difference>> {
        let (differences, damaged) = self.readable_differences(after, only)?;
        damage_error(&damaged.all()).map_or(Ok(differences), Err)
    }

    /// Like `differences`, as far as both snapshots can be read, with the directories that
    /// are damaged: what is in them is not among the differences.
    pub(crate) fn readable_differences(
        &self,
        after: &Self,
        only: Option<&[&Path]>,
    ) -> Result<(Vec<Difference>, DamagedSides)> {
        Comparison::new(self, after).differences(only)
    }

    /// Names the path that an error is about, if the error is damage.
    fn damaged(&self, path: &Path, part: DamagedPart, error: Error) -> Error {
        name_damage(path, part, self.of(), error)
    }

    /// Reads the content of `state`, found at `path`; `None` for a directory.
    pub(crate) fn bytes(&self, path: &Path, state: &FileState) -> Result<Option<Vec<u8>>> {
        if let Some(target) = &state.target {
            return Ok(Some(bytes_of(target).to_vec()));
        }
        let Some(content) = &state.content else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = self.source.content(path, content, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        read.map_err(|error| self.damaged(path, DamagedPart::Content, error))?;
        Ok(Some(bytes))
    }

    /// Returns the contents of the directory at `path`; empty if there is none.
    pub(crate) fn children(&self, path: &Path) -> Result<Vec<(PathBuf, Node)>> {
        let mut children = Vec::new();
        if let Some(Node::Dir(dir)) = self.walk_down(path)? {
            let mut cursor = Cursor::new(dir.listing);
            let failed = |error| self.damaged(path, DamagedPart::SomeNames, error);
            while let Some(entry) = cursor.advance(&*self.source).map_err(failed)? {
                children.push((PathBuf::from(os_str(&entry.name)), entry.node));
            }
        }
        Ok(children)
    }

    /// Returns the node at `path`, or the skipped entry that leads to it.
    pub(crate) fn walk_down(&self, path: &Path) -> Result<Option<Node>> {
        let mut node = Node::Dir(self.root);
        let names = names_of(path)?;
        for (depth, name) in names.iter().enumerate() {
            let dir = match node {
                Node::Dir(dir) => dir,
                Node::Skipped(_) => return Ok(Some(node)),
                _ => return Ok(None),
            };
            let found = find(&*self.source, dir.listing, name).map_err(|error| {
                let dir: PathBuf = names[..depth].iter().map(|name| os_str(name)).collect();
                self.damaged(&dir, DamagedPart::SomeNames, error)
            })?;
            match found {
                Some(found) => node = found,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    /// Like `walk_down`, for a path at which two snapshots differ. If this is one of
    /// them, nothing needs to be read, because such a path is never below a skipped
    /// entry.
    pub(crate) fn walk_down_to(
        &self,
        difference: &Difference,
        between: [ObjectId; 2],
    ) -> Result<Option<Node>> {
        let [before, after] = between.map(|id| id == self.id);
        match () {
            () if before => Ok(difference.before.clone()),
            () if after => Ok(difference.after.clone()),
            () => self.walk_down(&difference.path),
        }
    }
}
