//! A snapshot with some paths changed: only the directories on their way are
//! written anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cursor::Cursor;
use super::entry::{Dir, Entry, Node, Totals};
use super::name::names_of;
use super::node::{write_listing, write_root};
use super::source::Nodes;
use super::tree::Snapshot;
use super::walk::check_depth;
use crate::error::{Error, Result};
use crate::objects::ObjectId;

/// What becomes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// It goes, with all that is below it.
    Remove,
    /// It becomes this, with all that is below it.
    Put(Node),
    /// It becomes a directory with this mode; what is in it stays.
    Dir(u32),
}

/// The edits of a directory, by name.
#[derive(Debug, Default)]
struct Names<'a> {
    edit: Option<&'a Edit>,
    below: BTreeMap<&'a [u8], Names<'a>>,
}

impl Names<'_> {
    /// Returns whether all that lies below only goes.
    fn only_removes(&self) -> bool {
        let mut below = self.below.values();
        below.all(|names| matches!(names.edit, None | Some(Edit::Remove)) && names.only_removes())
    }
}

/// Stores a node.
type Put<'a> = dyn FnMut(&[u8]) -> Result<ObjectId> + 'a;

/// Writes a snapshot with some paths changed, and returns its name. The workspace
/// itself is the empty path; only its mode can be changed.
pub(crate) fn edit(
    snapshot: &Snapshot,
    edits: &BTreeMap<PathBuf, Edit>,
    put: &mut Put<'_>,
) -> Result<(ObjectId, Dir)> {
    let mut names = Names::default();
    for (path, edit) in edits {
        let mut at = &mut names;
        for name in names_of(path)? {
            at = at.below.entry(name).or_default();
        }
        at.edit = Some(edit);
    }
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
    let root = editor.dir(Some(root.listing), mode, &names, 0)?;
    let id = (editor.put)(&write_root(&root))?;
    Ok((id, root))
}

struct Editor<'a, 'p> {
    nodes: &'a dyn Nodes,
    put: &'a mut Put<'p>,
    path: PathBuf,
}

impl Editor<'_, '_> {
    /// Writes a directory anew.
    fn dir(
        &mut self,
        listing: Option<ObjectId>,
        mode: u32,
        names: &Names<'_>,
        depth: usize,
    ) -> Result<Dir> {
        check_depth(depth, &self.path)?;
        let mut entries = BTreeMap::new();
        let mut cursor = listing.map(Cursor::new).unwrap_or_default();
        while let Some(entry) = cursor.advance(self.nodes)? {
            entries.insert(entry.name, entry.node);
        }
        for (name, below) in &names.below {
            self.path.push(super::name::os_str(name));
            let before = entries.remove(*name);
            if let Some(node) = self.node(before, below, depth)? {
                entries.insert((*name).into(), node);
            }
            self.path.pop();
        }
        let mut totals = Totals::default();
        let entries: Vec<Entry> = entries
            .into_iter()
            .map(|(name, node)| {
                totals.add(&node);
                Entry { name, node }
            })
            .collect();
        Ok(Dir {
            mode,
            listing: write_listing(&entries, self.put)?,
            totals,
        })
    }

    fn node(
        &mut self,
        before: Option<Node>,
        names: &Names<'_>,
        depth: usize,
    ) -> Result<Option<Node>> {
        let node = match (names.edit, before) {
            (Some(Edit::Remove), _) => return Ok(None),
            (Some(Edit::Put(node)), _) => Some(node.clone()),
            (Some(Edit::Dir(mode)), Some(Node::Dir(dir))) => {
                Some(Node::Dir(Dir { mode: *mode, ..dir }))
            }
            (Some(Edit::Dir(mode)), _) => {
                let dir = self.dir(None, *mode, names, depth + 1)?;
                return Ok(Some(Node::Dir(dir)));
            }
            (None, before) => before,
        };
        match node {
            node if names.below.is_empty() => Ok(node),
            // A file in the place of a directory: what was in that is gone with it.
            node if !matches!(node, Some(Node::Dir(_))) && names.only_removes() => Ok(node),
            Some(Node::Dir(dir)) => {
                let dir = self.dir(Some(dir.listing), dir.mode, names, depth + 1)?;
                Ok(Some(Node::Dir(dir)))
            }
            _ => Err(no_directory(&self.path)),
        }
    }
}

fn no_directory(path: &Path) -> Error {
    let what = format!(
        "{} is no directory, and nothing can be in it",
        path.display()
    );
    Error::invalid(what)
}
