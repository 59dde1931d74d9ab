//! Older trails of a session that go to the trash as it grows (`keep_trails`).
//!
//! Only trails that are wholly before what the last compaction keeps may go, so that the
//! context does not change. The first trail stays: it says where the session comes from,
//! and has its instructions. The trails that go are named in a file beside the others
//! first; as long as they are in the trash they are read there, and belong to the history.

use super::deleted::Deleted;
use crate::error::{Error, Result};
use crate::log::{GONE_TRAILS, GoneTrail, GoneTrails, LogDir};
use crate::session::SessionReader;
use crate::storage::{append_all, if_found, make_dir};
use crate::store::Store;

/// Moves trails of a session to the trash that are not needed for the context, until `keep`
/// are left: the first and the newest; returns how many. The caller holds the session's write lock
/// and its short lock.
pub(crate) fn move_old_trails(store: &Store, files: &LogDir, keep: u32) -> Result<u32> {
    let trails = trails_to_go(store, files, keep)?;
    if trails.is_empty() {
        return Ok(0);
    }
    // The next rotation is soon enough.
    let Some(_guard) = store.trash_lock()?.try_hold()? else {
        return Ok(0);
    };
    name_them(files, &trails)?;
    let storage = store.storage();
    let dir = files.trails_in_trash();
    let failed = |error| Error::io("cannot move older trails to the trash", &dir, error);
    make_dir(storage, &dir).map_err(failed)?;
    super::sync(storage, &store.trash_dir())?;
    Deleted::now(store).write(storage, &dir)?;
    for gone in &trails {
        let from = files.trail_path(gone.trail);
        let to = dir.join(crate::trail::file_name(gone.trail));
        storage.rename_new(&from, &to).map_err(failed)?;
    }
    store.sync_dirs([dir.as_path(), files.path()])?;
    Ok(u32::try_from(trails.len()).unwrap_or(u32::MAX))
}

/// Finds the trails that may go.
fn trails_to_go(store: &Store, files: &LogDir, keep: u32) -> Result<Vec<GoneTrail>> {
    let reader = SessionReader::new(store, files.clone());
    let compaction = reader.newest_compaction()?;
    let Some(kept_from) = compaction.and_then(|(_, stored)| stored.keeps_from) else {
        return Ok(Vec::new());
    };
    let Some(needed) = reader.log.own_trail_of(kept_from)? else {
        return Ok(Vec::new());
    };
    let instructions = reader.instructions()?.said;
    let instructed = instructions.last().map_or(0, |said| said.seq);
    let head = files.head()?;
    // The first trail stays, and so does the newest.
    let newest = u64::from(keep.saturating_sub(1).max(1));
    let mut trails = Vec::new();
    for trail in files.trails()? {
        let is_old = u64::from(trail) + newest <= u64::from(head);
        if trail < needed && is_old {
            trails.extend(reader.log.gone_trail(trail, instructed)?);
        }
    }
    Ok(trails)
}

/// Writes which trails go and what each of them continues. Durable when it returns.
fn name_them(files: &LogDir, trails: &[GoneTrail]) -> Result<()> {
    let mut gone = GoneTrails::read(files)?;
    let is_new = |known: &GoneTrail| !trails.iter().any(|trail| trail.trail == known.trail);
    gone.trails.retain(is_new);
    gone.trails.extend_from_slice(trails);
    let storage = files.storage();
    let path = files.path().join(GONE_TRAILS);
    let aside = path.with_extension("new");
    let failed = |error| Error::io("cannot record which trails are trashed", &path, error);
    if_found(storage.remove_file(&aside)).map_err(failed)?;
    let file = storage.create_new(&aside).map_err(failed)?;
    let bytes = gone.to_bytes().map_err(failed)?;
    append_all(file.as_ref(), &bytes).map_err(failed)?;
    file.sync().map_err(failed)?;
    storage.replace(&aside, &path).map_err(failed)?;
    super::sync(storage, files.path())
}
