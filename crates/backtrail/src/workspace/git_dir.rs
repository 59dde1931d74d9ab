//! Where git keeps the files of a repository. They are only read, and git is not run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::snapshot::scan::sys::read_path;

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

    /// Reads a file of this worktree; `None` if it is not there or too long.
    pub(super) fn read_own(&self, name: &str, longest: u64) -> Option<Vec<u8>> {
        read(&self.own.join(name), longest)
    }

    /// Reads a file that all worktrees share.
    pub(super) fn read_common(&self, name: &str, longest: u64) -> Option<Vec<u8>> {
        read(&self.common.join(name), longest)
    }
}

fn read(path: &Path, longest: u64) -> Option<Vec<u8>> {
    read_path(path, longest).ok().flatten()
}
