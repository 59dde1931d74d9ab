//! Finds ignore rules that git keeps outside the tree. Git's files are never written.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;

use super::rules::LONGEST;
use super::sys;

/// The longest `.git` file that is followed.
const LONGEST_POINTER: u64 = 16 * 1024;

/// Returns the directories above a root that is inside a repository, from the
/// repository's own down to the root's parent. Empty if the root is a repository itself.
pub(super) fn directories_above(root: &Path) -> Vec<PathBuf> {
    let is_repository = |dir: &Path| sys::seen_path(&dir.join(".git")).is_ok();
    if is_repository(root) {
        return Vec::new();
    }
    let above: Vec<&Path> = root.ancestors().skip(1).collect();
    let Some(top) = above.iter().position(|dir| is_repository(dir)) else {
        return Vec::new();
    };
    above[..=top]
        .iter()
        .rev()
        .map(|dir| (*dir).to_owned())
        .collect()
}

/// Reads the repository's own rules in `info/exclude`. `whole` is the directory's path,
/// which is only needed for a `.git` file.
pub(super) fn exclude_of(
    dir: &OwnedFd,
    whole: impl FnOnce() -> PathBuf,
) -> io::Result<Option<Vec<u8>>> {
    match sys::read_beneath(dir, c".git", LONGEST_POINTER)? {
        Some(pointer) => exclude_elsewhere(&pointer, &whole()),
        None => sys::read_beneath(dir, c".git/info/exclude", LONGEST),
    }
}

/// The same for a directory above the root.
pub(super) fn exclude_of_path(dir: &Path) -> io::Result<Option<Vec<u8>>> {
    match sys::read_path(&dir.join(".git"), LONGEST_POINTER)? {
        Some(pointer) => exclude_elsewhere(&pointer, dir),
        None => sys::read_path(&dir.join(".git/info/exclude"), LONGEST),
    }
}

/// Follows the `.git` file of a worktree or submodule. A worktree's own directory names
/// the one it shares with the others, which has the rules.
fn exclude_elsewhere(pointer: &[u8], dir: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(own) = pointer.strip_prefix(b"gitdir:") else {
        return Ok(None);
    };
    let own = dir.join(OsStr::from_bytes(own.trim_ascii()));
    let common = match sys::read_path(&own.join("commondir"), LONGEST_POINTER)? {
        Some(common) => own.join(OsStr::from_bytes(common.trim_ascii())),
        None => own,
    };
    sys::read_path(&common.join("info/exclude"), LONGEST)
}
