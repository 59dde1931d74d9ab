//! Where git keeps the files of a repository. They are only read, and git is not run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::snapshot::scan::sys::{names_in, read_path};

/// The longest file that points to another one.
const LONGEST_POINTER: u64 = 16 << 10;

/// The directories of a repository.
#[derive(Debug)]
pub(super) struct GitDir {
    /// That of this worktree.
    own: PathBuf,
    /// The one that all worktrees share.
    common: PathBuf,
}

impl GitDir {
    /// Finds the repository whose root a directory is, following the `.git` file of a worktree
    /// or submodule. Nothing is promised about what it has.
    pub(super) fn of(root: &Path) -> Option<Self> {
        let git = root.join(".git");
        let Some(pointer) = read(&git, LONGEST_POINTER) else {
            return Some(Self {
                own: git.clone(),
                common: git,
            });
        };
        let own = pointer.strip_prefix(b"gitdir:")?.trim_ascii();
        let own = root.join(OsStr::from_bytes(own));
        let common = match read(&own.join("commondir"), LONGEST_POINTER) {
            Some(common) => own.join(OsStr::from_bytes(common.trim_ascii())),
            None => own.clone(),
        };
        Some(Self { own, common })
    }

    /// Returns the directories of the main worktree's repository.
    pub(super) fn main(common: &Path) -> Self {
        Self::linked(common.to_owned(), common)
    }

    /// Returns the directories of a linked worktree.
    pub(super) fn linked(own: PathBuf, common: &Path) -> Self {
        let common = common.to_owned();
        Self { own, common }
    }

    /// Returns the directory that all worktrees share.
    pub(super) fn common(&self) -> &Path {
        &self.common
    }

    /// Returns whether it is a linked worktree.
    pub(super) fn is_linked(&self) -> bool {
        self.own != self.common
    }

    /// Returns the names of the linked worktrees.
    pub(super) fn worktree_names(&self) -> Vec<OsString> {
        names_in(&self.common.join("worktrees"))
    }

    /// Reads a file of this worktree; `None` if it is not there or too long.
    pub(super) fn read_own(&self, name: &str, longest: u64) -> Option<Vec<u8>> {
        read(&self.own.join(name), longest)
    }

    /// Reads a file that all worktrees share.
    pub(super) fn read_common(&self, name: &str, longest: u64) -> Option<Vec<u8>> {
        read(&self.common.join(name), longest)
    }
}

/// Returns the directory of the repository that a worktree belongs to; `None` if the directory is
/// not a worktree beside it.
pub fn repository_of(root: &Path) -> Option<PathBuf> {
    let git = GitDir::of(root)?;
    if git.common == git.own {
        return None;
    }
    let common = without_dots(&git.common);
    match common.file_name()? == ".git" {
        true => common.parent().map(Path::to_owned),
        // A repository without files of its own.
        false => Some(common),
    }
}

/// Returns a path without `.` and `..`.
pub(super) fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

fn read(path: &Path, longest: u64) -> Option<Vec<u8>> {
    read_path(path, longest).ok().flatten()
}
