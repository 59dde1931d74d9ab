//! What an entry of a snapshot must be like to be restored. A restore refuses by these
//! rules, and a check of the store reports by them.

use std::path::Path;

use super::entry::{DirEntry, Node};
use super::name::shown;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;

/// The prefix of temporary names that a restore uses; scans ignore them.
pub(crate) const STAGING: &[u8] = b".backtrail-staging-";
/// The longest name that file systems allow.
const LONGEST_NAME: usize = 255;
/// The longest target of a link that systems allow.
const LONGEST_TARGET: usize = 4095;

/// Returns whether a file of this name may be written: it stays in its directory, is not
/// git's own state or a staging directory, and file systems allow it.
pub(crate) fn is_restorable_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b".." | b".git")
        && !name.contains(&0)
        && !name.contains(&b'/')
        && name.len() <= LONGEST_NAME
        && !name.starts_with(STAGING)
}

/// Refuses an entry that cannot be restored. What was skipped never is.
pub(super) fn check_entry(path: &Path, entry: &DirEntry) -> Result<()> {
    let fits = match &entry.node {
        Node::Skipped(_) => true,
        Node::Link { target, .. } => {
            is_restorable_name(&entry.name) && is_restorable_target(target)
        }
        Node::File { .. } | Node::Dir(_) => is_restorable_name(&entry.name),
    };
    match fits {
        true => Ok(()),
        false => {
            let what = format!("{} cannot be restored", shown(path));
            Err(Error::new(ErrorKind::Corrupt, what))
        }
    }
}

fn is_restorable_target(target: &[u8]) -> bool {
    !target.is_empty() && !target.contains(&0) && target.len() <= LONGEST_TARGET
}

/// Checks that a content has the length that its entry says.
pub(crate) fn check_length(content: &ObjectId, len: u64, expected: u64) -> Result<()> {
    if len == expected {
        return Ok(());
    }
    let what = format!("object {content} has {len} bytes, expected {expected}");
    Err(Error::new(ErrorKind::Corrupt, what))
}
