//! A directory as a value: every path with its kind, mode and content.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) nodes: BTreeMap<PathBuf, Node>,
}

/// What is at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Dir { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Link(PathBuf),
}

impl Tree {
    /// Reads a directory.
    pub(crate) fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        tree.add(root, root);
        tree
    }

    /// Returns this tree with every path that differs between the two others as the second has it.
    pub(crate) fn with_changes(&self, before: &Self, after: &Self) -> Self {
        let mut tree = self.clone();
        for path in before.nodes.keys().chain(after.nodes.keys()) {
            match after.nodes.get(path) {
                node if node == before.nodes.get(path) => {}
                Some(node) => drop(tree.nodes.insert(path.clone(), node.clone())),
                None => drop(tree.nodes.remove(path)),
            }
        }
        tree
    }

    /// Fails with the paths that differ.
    #[track_caller]
    pub(crate) fn assert_is(&self, expected: &Self, what: &str) {
        let paths = self.nodes.keys().chain(expected.nodes.keys());
        let differ = paths.filter(|path| self.nodes.get(*path) != expected.nodes.get(*path));
        let lines: BTreeMap<_, _> = differ
            .map(|path| (path, (self.nodes.get(path), expected.nodes.get(path))))
            .collect();
        assert!(lines.is_empty(), "{what}: is, should be: {lines:#?}");
    }

    fn add(&mut self, root: &Path, dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let mode = meta.permissions().mode() & 0o7777;
            let node = if meta.is_symlink() {
                Node::Link(path.read_link().unwrap())
            } else if meta.is_dir() {
                self.add(root, &path);
                Node::Dir { mode }
            } else {
                let content = std::fs::read(&path).unwrap();
                Node::File { mode, content }
            };
            let name = path
                .strip_prefix(root)
                .expect("it was listed below the root");
            self.nodes.insert(name.to_owned(), node);
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dir { mode } => write!(f, "directory {mode:o}"),
            Self::File { mode, content } => {
                write!(f, "file {mode:o} {:?}", String::from_utf8_lossy(content))
            }
            Self::Link(to) => write!(f, "link to {}", to.display()),
        }
    }
}

#[test]
fn modes_links_empty_directories_and_bytes_count() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("a"), [0, 255]).unwrap();
    let first = Tree::read(dir.path());
    let mut seen = vec![first.clone()];
    std::fs::set_permissions(at("a"), PermissionsExt::from_mode(0o700)).unwrap();
    seen.push(Tree::read(dir.path()));
    std::fs::create_dir(at("empty")).unwrap();
    seen.push(Tree::read(dir.path()));
    std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
    seen.push(Tree::read(dir.path()));
    for (n, tree) in seen.iter().enumerate() {
        assert!(!seen[..n].contains(tree), "{n}");
    }
    assert_eq!(&seen[3].with_changes(&seen[3], &first), &first);
    assert_eq!(seen[3].with_changes(&seen[2], &seen[1]).nodes.len(), 2);
}
