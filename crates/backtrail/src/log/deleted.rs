//! The files of deleted sessions: in the trash, or purged.

use std::path::Path;

use serde::Deserialize;

use super::directory::LogDir;
use crate::error::{Error, IoContext, Result};
use crate::storage::{Storage, read_range};
use crate::store::SESSIONS;
use crate::time::Timestamp;

/// The trash's directory in the store.
pub(crate) const TRASH: &str = "trash";
/// Follows a session's id in the name of the directory of its trashed trails.
pub(crate) const TRAILS: &str = ".trails";
/// Follows a session's id in the name of the file that records its purge.
pub(crate) const PURGED: &str = ".purged";
/// The file in a deleted directory that records when it was deleted. In a session that is
/// not in the trash it means nothing: a deletion was interrupted, or the session was
/// restored.
pub(crate) const DELETED: &str = "deleted";
/// The limit for the length of such a file.
const MAX_FILE: u64 = 256 << 10;

/// Reads a file that records when something was deleted; `None` if it does not exist or is
/// incomplete.
pub(crate) fn read_deleted<T: for<'a> Deserialize<'a>>(
    storage: &dyn Storage,
    path: &Path,
) -> Option<T> {
    let file = storage.open_read(path).ok()?;
    let bytes = read_range(file.as_ref(), 0..file.len().ok()?.min(MAX_FILE));
    serde_json::from_slice(&bytes.ok()?).ok()
}

/// The one field that matters here.
#[derive(Deserialize)]
struct DeletedAt {
    at: Timestamp,
}

/// Returns the error for a session that was deleted, purged or restored meanwhile; `None`
/// for any other session.
pub(super) fn deleted_error(files: &LogDir) -> Option<Error> {
    let id = files.id();
    let dir = files.trash().join(id.as_str());
    if files.storage().is_dir(&dir).ok()? {
        let since = match read_deleted::<DeletedAt>(files.storage(), &dir.join(DELETED)) {
            Some(deleted) => format!(" (deleted at {})", deleted.at),
            None => String::new(),
        };
        let what = format!("session {id} is in the trash{since}");
        return Some(Error::deleted(what, id).at_path(&dir));
    }
    if let Some(at) = purged_at(files).ok()? {
        let when = at.map_or_else(String::new, |at| format!(" at {at}"));
        let what = format!("session {id} was purged{when}");
        return Some(Error::purged(what, id));
    }
    let home = files.trash().with_file_name(SESSIONS).join(id.as_str());
    if files.path() == dir && files.storage().is_dir(&home).ok()? {
        let what = format!("session {id} is no longer in the trash");
        return Some(Error::restored(what).at_path(&home));
    }
    None
}

/// Returns whether a session was purged, and when, if that can be read.
pub(super) fn purged_at(files: &LogDir) -> Result<Option<Option<Timestamp>>> {
    let path = files.trash().join(format!("{}{PURGED}", files.id()));
    let there = files.storage().exists(&path);
    if !there.context("cannot read the trash", &path)? {
        return Ok(None);
    }
    let purged: Option<DeletedAt> = read_deleted(files.storage(), &path);
    Ok(Some(purged.map(|purged| purged.at)))
}
