//! Edits a snapshot at some paths, rewriting only the directories that lead to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cursor::Cursor;
use super::entry::{Dir, DirEntry, Node, Totals};
use super::name::names_of;
use super::node::{write_listing, write_root};
use super::source::Nodes;
use super::tree::Snapshot;
use super::walk::check_depth;
use crate::error::{Error, Result};
use crate::objects::ObjectId;

/// The edit of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Removes it with everything below it.
    Remove,
    /// Replaces it with this node and everything below that.
    Put(Node),
    /// Makes it a directory with this mode and keeps its contents.
    Dir(u32),
}

/// Edits as a tree of names.
#[derive(Debug, Default)]
struct EditTree<'a> {
    edit: Option<&'a Edit>,
    below: BTreeMap<&'a [u8], EditTree<'a>>,
}

impl<'a> EditTree<'a> {
    fn new(edits: &'a BTreeMap<PathBuf, Edit>) -> Result<Self> {
        let mut names = Self::default();
        for (path, edit) in edits {
            let mut at = &mut names;
            for name in names_of(path)? {
                at = at.below.entry(name).or_default();
            }
            at.edit = Some(edit);
        }
        Ok(names)
    }

    /// Returns whether everything below is only removed.
    fn only_removes(&self) -> bool {
        let mut rest: Vec<&EditTree<'_>> = self.below.values().collect();
        while let Some(names) = rest.pop() {
            if !matches!(names.edit, None | Some(Edit::Remove)) {
                return false;
            }
            rest.extend(names.below.values());
        }
        true
    }
}

impl Drop for EditTree<'_> {
    /// Iterative, because directories may be nested deeper than the stack allows.
    fn drop(&mut self) {
        let mut rest: Vec<EditTree<'_>> = std::mem::take(&mut self.below).into_values().collect();
        while let Some(mut names) = rest.pop() {
            rest.extend(std::mem::take(&mut names.below).into_values());
        }
    }
}

/// Stores a node.
type Put<'a> = dyn FnMut(&[u8]) -> Result<ObjectId> + 'a;

/// Writes a snapshot with some paths changed and returns its id. The workspace itself is
/// the empty path; only its mode can be changed.
pub(crate) fn edit(
    snapshot: &Snapshot,
    edits: &BTreeMap<PathBuf, Edit>,
    put: &mut Put<'_>,
) -> Result<(ObjectId, Dir)> {
    let names = EditTree::new(edits)?;
    let root = snapshot.root();
    let mode = match names.edit {
        Some(Edit::Dir(mode)) => *mode,
        _ => root.mode,
    };
    let mut editor = Editor {
        nodes: snapshot.source(),
        put,
        path: PathBuf::new(),
    };
    let root = editor.tree(root.listing, mode, &names)?;
    let id = (editor.put)(&write_root(&root))?;
    Ok((id, root))
}

struct Editor<'a, 'p> {
    nodes: &'a dyn Nodes,
    put: &'a mut Put<'p>,
    path: PathBuf,
}

/// A directory that is being rewritten.
struct OpenDir<'n> {
    mode: u32,
    entries: BTreeMap<Box<[u8]>, Node>,
    /// The edits in it that are still to be made.
    edits: std::collections::btree_map::Iter<'n, &'n [u8], EditTree<'n>>,
}

/// The result of editing a name.
enum Edited {
    Node(Option<Node>),
    /// A directory to be rewritten, starting from this listing.
    Dir(Option<ObjectId>, u32),
}

impl Editor<'_, '_> {
    /// Rewrites all directories that lead to an edit, the deepest first.
    fn tree<'n>(&mut self, listing: ObjectId, mode: u32, names: &'n EditTree<'n>) -> Result<Dir> {
        let mut open: Vec<OpenDir<'n>> = vec![self.open(Some(listing), mode, names)?];
        loop {
            let depth = open.len();
            let top = open.last_mut().expect("the root is written last");
            let Some((name, below)) = top.edits.next() else {
                let dir = self.write(open.pop().expect("it was just there"))?;
                let Some(above) = open.last_mut() else {
                    return Ok(dir);
                };
                let name = self.path.file_name().expect("it is below the root");
                above.entries.insert(bytes(name), Node::Dir(dir));
                self.path.pop();
                continue;
            };
            self.path.push(super::name::os_str(name));
            match self.apply(top.entries.remove(*name), below)? {
                Edited::Node(node) => {
                    if let Some(node) = node {
                        top.entries.insert((*name).into(), node);
                    }
                    self.path.pop();
                }
                Edited::Dir(listing, mode) => {
                    check_depth(depth, &self.path)?;
                    open.push(self.open(listing, mode, below)?);
                }
            }
        }
    }

    fn open<'n>(
        &self,
        listing: Option<ObjectId>,
        mode: u32,
        names: &'n EditTree<'n>,
    ) -> Result<OpenDir<'n>> {
        let mut entries = BTreeMap::new();
        let mut cursor = listing.map(Cursor::new).unwrap_or_default();
        while let Some(entry) = cursor.advance(self.nodes)? {
            entries.insert(entry.name, entry.node);
        }
        Ok(OpenDir {
            mode,
            entries,
            edits: names.below.iter(),
        })
    }

    fn write(&mut self, open: OpenDir<'_>) -> Result<Dir> {
        let mut totals = Totals::default();
        let entries: Vec<DirEntry> = open
            .entries
            .into_iter()
            .map(|(name, node)| {
                totals.add(&node);
                DirEntry { name, node }
            })
            .collect();
        Ok(Dir {
            mode: open.mode,
            listing: write_listing(&entries, self.put)?,
            totals,
        })
    }

    fn apply(&self, before: Option<Node>, names: &EditTree<'_>) -> Result<Edited> {
        let node = match (names.edit, before) {
            (Some(Edit::Remove), _) => return Ok(Edited::Node(None)),
            (Some(Edit::Put(node)), _) => Some(node.clone()),
            (Some(Edit::Dir(mode)), Some(Node::Dir(dir))) => {
                Some(Node::Dir(Dir { mode: *mode, ..dir }))
            }
            (Some(Edit::Dir(mode)), _) => return Ok(Edited::Dir(None, *mode)),
            (None, before) => before,
        };
        match node {
            node if names.below.is_empty() => Ok(Edited::Node(node)),
            Some(Node::Dir(dir)) => Ok(Edited::Dir(Some(dir.listing), dir.mode)),
            // A file replaces a directory, whose contents are gone with it.
            node if names.only_removes() => Ok(Edited::Node(node)),
            _ => Err(not_a_directory(&self.path)),
        }
    }
}

fn bytes(name: &std::ffi::OsStr) -> Box<[u8]> {
    name.as_encoded_bytes().into()
}

fn not_a_directory(path: &Path) -> Error {
    Error::invalid(format!("{} is not a directory", path.display()))
}
