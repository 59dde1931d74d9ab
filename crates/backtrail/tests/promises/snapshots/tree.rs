//! Directories as plain values: read from the disk, and from a snapshot by way of
//! the disk.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use backtrail::Snapshot;
use backtrail::snapshot::FileKind;

/// What stands at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    File { mode: u32, bytes: Vec<u8> },
    Link(PathBuf),
    Dir { mode: u32 },
}

/// What stands in a directory, by relative path; the directory itself is `.`.
pub(crate) type Tree = BTreeMap<PathBuf, Thing>;

impl fmt::Debug for Thing {
    /// Cuts contents short: a failing test shows many of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { mode, bytes } => {
                let start = bytes[..bytes.len().min(12)].escape_ascii();
                write!(f, "file {mode:04o} {} bytes {start}", bytes.len())
            }
            Self::Link(target) => write!(f, "link {target:?}"),
            Self::Dir { mode } => write!(f, "dir {mode:04o}"),
        }
    }
}

/// Reads a directory as it is, links not followed, without what `.git` names.
pub(crate) fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mode = mode_of(&fs::metadata(root).unwrap());
    tree.insert(".".into(), Thing::Dir { mode });
    read_into(root, Path::new(""), &mut tree);
    tree
}

fn read_into(root: &Path, dir: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(root.join(dir)).unwrap() {
        let name = entry.unwrap().file_name();
        if name == ".git" {
            continue;
        }
        let path = dir.join(name);
        let full = root.join(&path);
        let meta = fs::symlink_metadata(&full).unwrap();
        let mode = mode_of(&meta);
        let thing = if meta.is_symlink() {
            Thing::Link(fs::read_link(&full).unwrap())
        } else if meta.is_dir() {
            read_into(root, &path, tree);
            Thing::Dir { mode }
        } else {
            let bytes = fs::read(&full).unwrap();
            Thing::File { mode, bytes }
        };
        tree.insert(path, thing);
    }
}

fn mode_of(meta: &fs::Metadata) -> u32 {
    meta.permissions().mode() & 0o7777
}

/// Writes a snapshot out into an empty directory, and reads that.
pub(crate) fn materialised(snapshot: &Snapshot) -> Tree {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("copy");
    fs::create_dir(&root).unwrap();
    let mut modes = vec![(root.clone(), snapshot.entry(".").unwrap().unwrap())];
    for entry in snapshot.entries() {
        let (path, state) = entry.unwrap();
        let full = root.join(&path);
        match state.kind {
            FileKind::Dir => {
                fs::create_dir(&full).unwrap();
                modes.push((full, state));
            }
            FileKind::Link => symlink(state.target.unwrap(), &full).unwrap(),
            FileKind::File => {
                let bytes = snapshot.read(&path).unwrap().expect("an entry can be read");
                assert_eq!(bytes.len() as u64, state.bytes, "{path:?}");
                fs::write(&full, bytes).unwrap();
                modes.push((full, state));
            }
            kind => panic!("{kind:?} was captured at {path:?}"),
        }
    }
    // The deepest first: a directory may come to forbid what is in it.
    for (path, state) in modes.into_iter().rev() {
        let mode = state.mode.expect("files and directories have modes");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    read_tree(&root)
}

/// Reads a snapshot as it is, where the way over the disk would take too long.
pub(crate) fn stored(snapshot: &Snapshot) -> Tree {
    let dir = |mode: Option<u32>| Thing::Dir {
        mode: mode.expect("a directory has a mode"),
    };
    let mut tree = Tree::new();
    tree.insert(".".into(), dir(snapshot.entry(".").unwrap().unwrap().mode));
    for entry in snapshot.entries() {
        let (path, state) = entry.unwrap();
        let thing = match state.kind {
            FileKind::Dir => dir(state.mode),
            FileKind::Link => Thing::Link(state.target.unwrap()),
            _ => Thing::File {
                mode: state.mode.expect("a file has a mode"),
                bytes: snapshot.read(&path).unwrap().expect("an entry can be read"),
            },
        };
        tree.insert(path, thing);
    }
    tree
}

/// Compares two trees, and tells the first few differences.
pub(crate) fn same(found: &Tree, expected: &Tree) -> Result<(), String> {
    let paths = found.keys().chain(expected.keys());
    let mut wrong: Vec<String> = paths
        .filter(|path| found.get(*path) != expected.get(*path))
        .map(|path| {
            let (found, expected) = (found.get(path), expected.get(path));
            format!("{path:?}: {found:?} instead of {expected:?}")
        })
        .collect();
    wrong.dedup();
    wrong.truncate(10);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n  "))
    }
}

/// Counts the files and links of a tree, and the bytes of the files.
pub(crate) fn totals(tree: &Tree) -> (u64, u64) {
    let mut totals = (0, 0);
    for thing in tree.values() {
        match thing {
            Thing::File { bytes, .. } => {
                totals.0 += 1;
                totals.1 += bytes.len() as u64;
            }
            Thing::Link(_) => totals.0 += 1,
            Thing::Dir { .. } => {}
        }
    }
    totals
}
