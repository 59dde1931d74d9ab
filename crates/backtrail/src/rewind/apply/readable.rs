//! Making files and directories readable that their owner closed, for as long as they are
//! needed.

use std::path::{Path, PathBuf};

use super::super::test_hook::TouchHook;
use super::root_dir::RootDir;
use crate::error::Result;
use crate::snapshot::FileKind;
use crate::snapshot::scan::sys::{self, Seen};

/// The bits without which the owner cannot read a directory, or a file.
const READ_DIR: u32 = 0o500;
const READ_FILE: u32 = 0o400;
const WRITE: u32 = 0o200;

/// Paths that are readable for now. Their modes are put back when this is dropped.
#[derive(Debug)]
pub(in crate::rewind) struct MadeReadable<'a> {
    root_dir: RootDir<'a>,
    /// Each with its own mode, and the one that it has now.
    opened: Vec<(PathBuf, u32, u32)>,
}

impl<'a> MadeReadable<'a> {
    pub(in crate::rewind) fn new(root: &'a Path, hook: Option<&'a dyn TouchHook>) -> Result<Self> {
        Ok(Self {
            root_dir: RootDir::open(root, hook)?,
            opened: Vec::new(),
        })
    }

    /// Makes a path readable, and the directories that lead to it; `then` is the mode that it
    /// will get, which must differ so that it shows as a change. Returns whether anything was
    /// opened.
    pub(in crate::rewind) fn make(&mut self, path: &Path, then: Option<u32>) -> bool {
        let mut ancestors: Vec<&Path> = path.ancestors().collect();
        ancestors.reverse();
        let mut any = false;
        for at in ancestors
            .into_iter()
            .filter(|at| !at.as_os_str().is_empty())
        {
            any |= self.open(at, then.filter(|_| at == path));
        }
        any
    }

    fn open(&mut self, path: &Path, then: Option<u32>) -> bool {
        let Some(seen) = self.root_dir.look(path).ok().flatten() else {
            return false;
        };
        let (was, Some(mut now)) = (seen.stamp.mode, readable_mode(&seen)) else {
            return false;
        };
        if Some(now) == then {
            now ^= WRITE;
        }
        let is_it = |seen: &Seen| seen.stamp.mode == was;
        let set = self.root_dir.set_mode(path, now, is_it);
        let is_set = matches!(set, Ok(Some(_)));
        if is_set {
            self.opened.push((path.to_owned(), was, now));
        }
        is_set
    }

    /// Returns what was made readable.
    pub(in crate::rewind) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.opened.iter().map(|(path, ..)| path.as_path())
    }

    /// Leaves these paths as they are now: they got a mode of their own.
    pub(in crate::rewind) fn settle(&mut self, is_settled: impl Fn(&Path) -> bool) {
        self.opened.retain(|(path, ..)| !is_settled(path));
    }
}

impl Drop for MadeReadable<'_> {
    fn drop(&mut self) {
        for (path, was, now) in self.opened.iter().rev() {
            let is_ours = |seen: &Seen| seen.stamp.mode == *now;
            // It cannot be reported here. It stays readable for its owner.
            self.root_dir.set_mode(path, *was, is_ours).ok();
        }
    }
}

/// Returns the mode in which its owner, which we are, can read something; `None` if that is
/// not the reason why it cannot be read.
fn readable_mode(seen: &Seen) -> Option<u32> {
    let bits = match seen.kind {
        FileKind::Dir => READ_DIR,
        FileKind::File => READ_FILE,
        _ => return None,
    };
    let mode = seen.stamp.mode;
    (mode & bits != bits && is_ours(seen)).then_some(mode | bits)
}

/// Returns whether something belongs to the user that this process runs as, as far as the
/// system says.
fn is_ours(seen: &Seen) -> bool {
    let process = sys::seen_path(Path::new("/proc/self"));
    process.map_or(true, |process| process.uid == seen.uid)
}

/// Returns whether a path can be made readable.
pub(in crate::rewind) fn can_be_readable(root: &Path, path: &Path) -> bool {
    let Ok(root_dir) = RootDir::open(root, None) else {
        return false;
    };
    let mut ancestors = path.ancestors();
    ancestors.any(|at| {
        let seen = root_dir.look(at).ok().flatten();
        !at.as_os_str().is_empty() && seen.is_some_and(|seen| readable_mode(&seen).is_some())
    })
}
