//! Reading a snapshot.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::change::FileState;
use super::compare::{Comparison, Difference};
use super::cursor::{Cursor, find};
use super::diff::Diff;
use super::entry::{Dir, LeftOutReason, Node, Totals};
use super::name::{bytes_of, names_of, os_str, shown};
use super::node::read_root;
use super::source::{Contents, Present};
use super::walk::{Entries, LeftOutEntries, Walk};
use crate::error::{Error, Result};
use crate::objects::{ObjectId, Objects};

/// The state of a workspace at one moment. Cheap to clone.
///
/// Directories are read when they are asked for, and no others.
#[derive(Debug, Clone)]
pub struct Snapshot {
    id: ObjectId,
    root: Dir,
    source: Arc<dyn Contents>,
}

impl Snapshot {
    /// Opens a snapshot that is stored.
    pub(crate) fn stored(objects: &Objects, id: ObjectId) -> Result<Self> {
        Self::of(Arc::new(objects.clone()), id)
    }

    /// Opens a snapshot whose nodes and contents come from there.
    pub(crate) fn of(source: Arc<dyn Contents>, id: ObjectId) -> Result<Self> {
        let root = read_root(&id, &source.node(&id)?)?;
        Ok(Self::new(id, root, source))
    }

    /// Takes what a scan of `path` found, without it being stored.
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
        Self { id, root, source }
    }

    pub(crate) fn root(&self) -> &Dir {
        &self.root
    }

    pub(crate) fn source(&self) -> &dyn Contents {
        &*self.source
    }

    /// Returns the snapshot's name: equal states have equal names.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// Returns how much was captured, and how many entries were not.
    pub fn totals(&self) -> Totals {
        self.root.totals
    }

    /// Returns what was captured at `path`, relative to the workspace.
    ///
    /// The workspace itself is `.`. `None` also for what was seen and not
    /// captured; see [`Snapshot::left_out_reason`].
    pub fn entry(&self, path: impl AsRef<Path>) -> Result<Option<FileState>> {
        let node = self.walk_down(path.as_ref())?;
        Ok(node.as_ref().and_then(FileState::of))
    }

    /// Returns why nothing was captured at `path`, if it, or a directory that leads
    /// to it, was seen and not captured.
    pub fn left_out_reason(&self, path: impl AsRef<Path>) -> Result<Option<LeftOutReason>> {
        Ok(match self.walk_down(path.as_ref())? {
            Some(Node::LeftOut(left_out)) => Some(left_out.reason),
            _ => None,
        })
    }

    /// Returns everything that was captured, in the order of [`Path`]: a directory
    /// comes just before what is in it. The workspace itself is not among it.
    pub fn entries(&self) -> Entries {
        Entries::new(Walk::new(self, |_| true))
    }

    /// Returns everything that was seen, in the order of [`Path`].
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Result<(PathBuf, Node)>> {
        Walk::new(self, |_| true)
    }

    /// Returns what was seen and not captured, in the order of [`Path`]; `.git` is
    /// not among it.
    pub fn left_out(&self) -> LeftOutEntries {
        LeftOutEntries::new(Walk::new(self, |dir| dir.totals.left_out > 0))
    }

    /// Reads a file, or a link's target.
    ///
    /// `None` where nothing was captured; an error for a directory.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let found = self.read_to(path, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(found.then_some(bytes))
    }

    /// Reads a file, or a link's target, piece by piece in constant memory, and
    /// returns whether there is one.
    ///
    /// What was given before an error counts for nothing.
    pub fn read_to(
        &self,
        path: impl AsRef<Path>,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let path = path.as_ref();
        match self.walk_down(path)? {
            None | Some(Node::LeftOut(_)) => Ok(false),
            Some(Node::File { content, .. }) => {
                self.source.content(path, &content, take)?;
                Ok(true)
            }
            Some(Node::Link { target, .. }) => take(&target).map(|()| true),
            Some(Node::Dir(_)) => {
                let what = format!("{} is a directory; name a file in it", shown(path));
                Err(Error::invalid(what))
            }
        }
    }

    /// Writes a file, or a link's target, and returns whether there is one.
    pub fn write_to(&self, path: impl AsRef<Path>, out: &mut dyn io::Write) -> Result<bool> {
        let failed = |error| Error::machine("cannot write the file", error);
        self.read_to(path, &mut |piece| out.write_all(piece).map_err(failed))
    }

    /// Compares this snapshot with a later one.
    pub fn diff(&self, after: &Self) -> Result<Diff> {
        Diff::between(self, after, None)
    }

    /// Compares this snapshot with a later one at some paths and beneath them; no
    /// path stands for all of them.
    ///
    /// Nothing else is read, so a file that was renamed is told as such only if
    /// both its places are among them; [`Diff::only`] chooses from a whole diff.
    pub fn diff_paths<P: AsRef<Path>>(&self, after: &Self, paths: &[P]) -> Result<Diff> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        Diff::between(self, after, Some(&paths))
    }

    /// Returns every path that differs in a later snapshot, at some paths or
    /// everywhere: directories and what was left out included.
    pub(crate) fn differences(
        &self,
        after: &Self,
        only: Option<&[&Path]>,
    ) -> Result<Vec<Difference>> {
        let comparison = Comparison::new(self.source(), after.source());
        comparison.differences(&self.root, &after.root, only)
    }

    /// Reads the content that `state`, found at `path`, refers to; a directory has
    /// none.
    pub(crate) fn bytes(&self, path: &Path, state: &FileState) -> Result<Option<Vec<u8>>> {
        if let Some(target) = &state.target {
            return Ok(Some(bytes_of(target).to_vec()));
        }
        let Some(content) = &state.content else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        self.source.content(path, content, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(Some(bytes))
    }

    /// Returns what is in the directory at `path`; nothing where none is there.
    pub(crate) fn children(&self, path: &Path) -> Result<Vec<(PathBuf, Node)>> {
        let mut children = Vec::new();
        if let Some(Node::Dir(dir)) = self.walk_down(path)? {
            let mut cursor = Cursor::new(dir.listing);
            while let Some(entry) = cursor.advance(&*self.source)? {
                children.push((PathBuf::from(os_str(&entry.name)), entry.node));
            }
        }
        Ok(children)
    }

    /// Finds what is at `path`, or the entry on the way to it that was left out.
    pub(crate) fn walk_down(&self, path: &Path) -> Result<Option<Node>> {
        let mut node = Node::Dir(self.root);
        for name in names_of(path)? {
            let dir = match node {
                Node::Dir(dir) => dir,
                Node::LeftOut(_) => return Ok(Some(node)),
                _ => return Ok(None),
            };
            match find(&*self.source, dir.listing, name)? {
                Some(found) => node = found,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    /// Does the same at a path in which two snapshots differ. Where this is one of
    /// them, nothing needs to be read: such a path never lies in what was left out.
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
