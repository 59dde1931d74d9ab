//! Snapshots by the real program: killed, crowded, on a full disk, beside git.

mod disk;
pub(crate) mod git;
mod kill;
mod processes;
mod unreadable;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backtrail::{Checkpoint, Store, Workspace};

/// The files of a workspace with their bytes.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Reads all files beneath a directory.
fn read_files(root: &Path) -> Files {
    let mut files = Files::new();
    for path in walk(root) {
        if path.is_file() {
            let name = path.strip_prefix(root).unwrap().to_owned();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

/// Returns every path beneath a directory; what vanishes meanwhile is passed over.
fn walk(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(dir) = ahead.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push(path.clone());
            }
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Reads the files of a checkpoint.
fn kept_files(kept: &Checkpoint) -> Files {
    let snapshot = kept.snapshot().unwrap();
    let mut files = Files::new();
    for entry in snapshot.entries() {
        let (path, state) = entry.unwrap();
        if state.content.is_some() {
            let bytes = snapshot.read(&path).unwrap().unwrap();
            files.insert(path, bytes);
        }
    }
    files
}

fn workspace(store: &Path, root: &Path) -> Workspace {
    let store = Store::open(store).unwrap();
    store.find_workspace(root).unwrap().expect("it is known")
}

/// Everything about the files beneath a directory that anybody could have touched:
/// bytes, modes, inodes and all times but that of reading.
pub(crate) fn picture(root: &Path) -> Vec<String> {
    let paths = walk(root).into_iter().chain([root.to_owned()]);
    paths
        .map(|path| {
            let meta = fs::symlink_metadata(&path).unwrap();
            let bytes = fs::read(&path).unwrap_or_default();
            format!(
                "{path:?} {:o} {} {}.{} {}.{} {bytes:?}",
                meta.mode(),
                meta.ino(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
            )
        })
        .collect()
}
