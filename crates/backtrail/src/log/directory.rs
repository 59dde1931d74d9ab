//! The files of one log.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::deleted::{TRAILS, TRASH, deleted_error};
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::ids::{SessionId, WorkspaceId};
use crate::storage::{
    Storage, StorageFile, append_all, directory, for_each_chunk, if_found, is_absent, names_in,
};
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::opener::{Opener, Owner, TrailReason};
use crate::trail::record::Position;
use crate::trail::{file_name, trail_number};

/// The directory of a session or workspace, and the files in it.
#[derive(Debug, Clone)]
pub(crate) struct LogDir {
    storage: Arc<dyn Storage>,
    owner: Owner,
    id: SessionId,
    dir: PathBuf,
    /// The trash, where a deleted session's files are read.
    trash: PathBuf,
}

impl LogDir {
    pub(crate) fn new(storage: Arc<dyn Storage>, sessions: &Path, id: &SessionId) -> Self {
        Self {
            storage,
            owner: Owner::Session,
            dir: sessions.join(id.as_str()),
            trash: sessions.with_file_name(TRASH),
            id: id.clone(),
        }
    }

    /// Returns the files of a deleted session, in their present place.
    pub(crate) fn deleted(&self) -> Self {
        Self {
            dir: self.trash.join(self.id.as_str()),
            ..self.clone()
        }
    }

    /// Returns the files of a workspace, which has trails like a session.
    pub(crate) fn of_workspace(
        storage: Arc<dyn Storage>,
        workspaces: &Path,
        id: &WorkspaceId,
    ) -> Self {
        Self {
            owner: Owner::Workspace,
            ..Self::new(storage, workspaces, id.as_trail_id())
        }
    }

    /// Returns the same session's files in another directory.
    pub(crate) fn at(&self, dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            ..self.clone()
        }
    }

    /// Creates the opener of a trail that continues nothing yet.
    pub(crate) fn opener(&self, trail: u32, reason: TrailReason, at: Timestamp) -> Opener {
        Opener {
            owner: self.owner,
            ..Opener::new(&self.id, trail, reason, at)
        }
    }

    /// Returns the files of a log that a trail of this one continues.
    pub(crate) fn of(&self, store: &Store, id: &SessionId) -> Self {
        if *id == self.id {
            self.clone()
        } else {
            store.files(id)
        }
    }

    /// Returns whether the trails are those of a workspace.
    pub(crate) fn is_of_workspace(&self) -> bool {
        self.owner == Owner::Workspace
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    pub(crate) fn trail_path(&self, trail: u32) -> PathBuf {
        self.dir.join(file_name(trail))
    }

    /// Returns the numbers of the session's trails, lowest first.
    pub(crate) fn trails(&self) -> Result<Vec<u32>> {
        let names = names_in(self.storage(), &self.dir);
        let names = names.context("cannot list the trails", &self.dir)?;
        let mut trails: Vec<u32> = names.iter().filter_map(|name| trail_number(name)).collect();
        trails.sort_unstable();
        Ok(trails)
    }

    /// Returns the highest-numbered trail, which is the session's head.
    pub(crate) fn head(&self) -> Result<u32> {
        self.trails()?
            .last()
            .copied()
            .ok_or_else(|| self.not_found())
    }

    /// Reads the head, or the next one if a purge rewrote it meanwhile.
    pub(crate) fn with_head<T>(&self, read: impl Fn(u32) -> Result<T>) -> Result<T> {
        let mut head = self.head()?;
        loop {
            match read(head) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let now = self.head()?;
                    if now == head {
                        return Err(error);
                    }
                    head = now;
                }
                done => return done,
            }
        }
    }

    pub(crate) fn not_found(&self) -> Error {
        if !self.is_of_workspace()
            && let Some(error) = deleted_error(self)
        {
            return error;
        }
        let what = format!("there is no {} {}", self.owner.noun(), self.id);
        Error::new(ErrorKind::NotFound, what).at_path(&self.dir)
    }

    /// Refuses the id of a session that is in the trash or was purged: its forks must not
    /// continue another session.
    pub(crate) fn refuse_gone(&self) -> Result<()> {
        deleted_error(self).map_or(Ok(()), Err)
    }

    pub(crate) fn open_read(&self, trail: u32) -> Result<Arc<dyn StorageFile>> {
        self.find_read(&file_name(trail))
            .map(|(_, file)| file)
            .map_err(|error| self.unopened(trail, error))
    }

    /// Opens a trail in its present place: the trash if it was deleted.
    pub(crate) fn find_trail(&self, trail: u32) -> Result<(PathBuf, Arc<dyn StorageFile>)> {
        self.find_read(&file_name(trail))
            .map_err(|error| self.unopened(trail, error))
    }

    fn unopened(&self, trail: u32, error: io::Error) -> Error {
        // The session may be moved or purged while it is read.
        if is_absent(&error)
            && !self.is_of_workspace()
            && !self.storage.is_dir(&self.dir).unwrap_or(true)
            && let Some(moved) = deleted_error(self)
        {
            return moved;
        }
        Error::io("cannot open the trail", &self.trail_path(trail), error)
    }

    /// Opens one of the files for reading, in its present place. A session may be moved to
    /// the trash, and back, while it is read.
    pub(crate) fn find_read(&self, name: &str) -> io::Result<(PathBuf, Arc<dyn StorageFile>)> {
        let home = self.dir.join(name);
        let open = |path: PathBuf| self.storage.open_read(&path).map(|file| (path, file));
        let missing = match open(home.clone()) {
            Err(error) if is_absent(&error) && !self.is_of_workspace() => error,
            opened => return opened,
        };
        for dir in [self.deleted().dir, self.trails_in_trash()] {
            match open(dir.join(name)) {
                Err(error) if is_absent(&error) => {}
                opened => return opened,
            }
        }
        // Restored meanwhile.
        open(home).map_err(|_| missing)
    }

    /// Returns the directory of this session's trails in the trash.
    pub(crate) fn trails_in_trash(&self) -> PathBuf {
        self.trash.join(format!("{}{TRAILS}", self.id))
    }

    pub(crate) fn trash(&self) -> &Path {
        &self.trash
    }

    /// Returns the numbers of all readable trails, lowest first, including those in the
    /// trash.
    pub(crate) fn readable_trails(&self) -> Result<Vec<u32>> {
        let mut trails = self.trails()?;
        if !self.is_of_workspace() {
            trails.extend(self.deleted().trails()?);
            let moved = Self {
                dir: self.trails_in_trash(),
                ..self.clone()
            };
            trails.extend(moved.trails()?);
            trails.sort_unstable();
            trails.dedup();
        }
        Ok(trails)
    }

    pub(crate) fn open_append(&self, trail: u32) -> Result<Arc<dyn StorageFile>> {
        let path = self.trail_path(trail);
        self.storage
            .open_append(&path)
            .context("cannot open the trail", &path)
    }

    /// Creates a trail: writes it to a temporary file, syncs it, and moves it into place
    /// without replacing anything, so that a crash leaves all of it or nothing.
    pub(crate) fn create_trail(
        &self,
        trail: u32,
        write: impl FnOnce(&dyn StorageFile) -> Result<()>,
    ) -> Result<Arc<dyn StorageFile>> {
        let path = self.trail_path(trail);
        let aside = self.dir.join("new-trail");
        let storage = self.storage.as_ref();
        let failed = |error| Error::io("cannot create the trail", &path, error);
        let created = create_whole(storage, &aside, &path, |file| write(file.as_ref()));
        // Even after a failure, so that a full disk regains the space at once.
        let removed = if_found(storage.remove_file(&aside)).map_err(failed);
        created.and(removed)?;
        storage.sync_dir(&self.dir).map_err(failed)?;
        self.open_append(trail)
    }

    /// Creates a trail that has only its opener.
    pub(crate) fn create_opened(&self, opener: &Opener) -> Result<CreatedTrail> {
        let mut line = Vec::new();
        let sum = opener.write(&mut line)?;
        let path = self.trail_path(opener.trail);
        let file = self.create_trail(opener.trail, |file| {
            append_all(file, &line).context("cannot create the trail", &path)
        })?;
        Ok(CreatedTrail {
            file,
            len: line.len() as u64,
            position: Position {
                seq: opener.seq,
                sum,
                noted: None,
                compacted: opener.compacted,
            },
        })
    }

    /// Removes a trail that was set aside, durably.
    pub(crate) fn remove_trail(&self, trail: u32) -> Result<()> {
        let path = self.trail_path(trail);
        let failed = |error| Error::io("cannot remove the trail", &path, error);
        if_found(self.storage.remove_file(&path)).map_err(failed)?;
        self.storage.sync_dir(&self.dir).map_err(failed)
    }

    /// Copies a part of a trail to a file beside it, synced, and returns its path. The file's
    /// name contains the highest seq that may have been assigned there: once the part is cut
    /// off, nothing else records it.
    pub(crate) fn set_aside(
        &self,
        trail: u32,
        source: &dyn StorageFile,
        place: Range<u64>,
        given: Option<u64>,
    ) -> Result<PathBuf> {
        let from = place.start;
        let name = |again| self.dir.join(aside_name(trail, from, given, again));
        copy_aside(self.storage.as_ref(), source, place, name)
    }

    /// Makes the names of the session's files, and its own name in the store's directory,
    /// durable. If a process died between creating a name and syncing it, the name exists now
    /// but is gone after a power cut.
    pub(crate) fn sync_names(&self) -> Result<()> {
        for dir in self.dir.ancestors().take(3) {
            self.storage
                .sync_dir(dir)
                .map_err(|error| match error.kind() {
                    // Deleted at this moment.
                    io::ErrorKind::NotFound if dir == self.dir => self.not_found(),
                    _ => Error::io("cannot sync the directory", dir, error),
                })?;
        }
        Ok(())
    }

    /// Returns the highest seq that may have been assigned in parts that were cut off a
    /// trail.
    pub(crate) fn given(&self, trail: u32) -> Result<Option<u64>> {
        let asides = self.asides()?;
        let names = asides.iter().filter_map(|path| path.file_name()?.to_str());
        Ok(names.filter_map(|name| given_in(name, trail)).max())
    }

    /// Returns the files of parts that were set aside.
    pub(crate) fn asides(&self) -> Result<Vec<PathBuf>> {
        let names = self
            .storage
            .list(&self.dir)
            .context("cannot list the trails", &self.dir)?;
        let mut asides: Vec<PathBuf> = names
            .into_iter()
            .filter(|name| name.to_str().is_some_and(is_aside))
            .map(|name| self.dir.join(name))
            .collect();
        asides.sort_unstable();
        Ok(asides)
    }
}

/// Creates a complete file: writes it to `aside`, syncs it, and moves it into place without
/// replacing anything. Its name is not durable yet, and the caller removes `aside`.
pub(crate) fn create_whole(
    storage: &dyn Storage,
    aside: &Path,
    path: &Path,
    write: impl FnOnce(&Arc<dyn StorageFile>) -> Result<()>,
) -> Result<()> {
    let failed = |error| Error::io("cannot create the trail", path, error);
    // A crash between link and removal leaves `aside` as a second name of a file that is
    // in use: it is removed, never written to.
    if_found(storage.remove_file(aside)).map_err(failed)?;
    let file = storage.create_new(aside).map_err(failed)?;
    write(&file)?;
    file.sync().map_err(failed)?;
    storage.link_new(aside, path).map_err(failed)
}

/// Copies a part of a file to a new file, synced, and returns its path. `name` makes a
/// path from a number, for the case that a path is in use.
pub(crate) fn copy_aside(
    storage: &dyn Storage,
    source: &dyn StorageFile,
    part: Range<u64>,
    name: impl Fn(u32) -> PathBuf,
) -> Result<PathBuf> {
    let failed =
        |path: &Path, error| Error::io("cannot set the trail's unfinished end aside", path, error);
    let mut again = 0;
    let (path, file) = loop {
        let path = name(again);
        match storage.create_new(&path) {
            Ok(file) => break (path, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => again += 1,
            Err(error) => return Err(failed(&path, error)),
        }
    };
    let append = |_, chunk: &[u8]| append_all(file.as_ref(), chunk).map(|()| true);
    let written = for_each_chunk(source, part, append)
        .and_then(|_| file.sync())
        .and_then(|()| storage.sync_dir(directory(&path)));
    if let Err(error) = written {
        // The bytes are still in the trail: half a copy is useless.
        storage.remove_file(&path).ok();
        return Err(failed(&path, error));
    }
    Ok(path)
}

/// A trail that was just created, and its end.
#[derive(Debug)]
pub(crate) struct CreatedTrail {
    pub(crate) file: Arc<dyn StorageFile>,
    pub(crate) len: u64,
    pub(crate) position: Position,
}

fn aside_name(trail: u32, offset: u64, given: Option<u64>, again: u32) -> String {
    let given = given.map_or_else(String::new, |seq| format!(".given-{seq}"));
    match again {
        0 => format!("{trail:04}.aside-{offset}{given}"),
        n => format!("{trail:04}.aside-{offset}{given}.{n}"),
    }
}

/// Returns the highest seq that may have been assigned in a part of `trail` that was set
/// aside in a file of this name.
fn given_in(name: &str, trail: u32) -> Option<u64> {
    let (number, rest) = name.split_once(".aside-")?;
    let (_, given) = rest.split_once(".given-")?;
    let digits = given.split('.').next()?;
    (number.parse() == Ok(trail)).then(|| digits.parse().ok())?
}

fn is_aside(name: &str) -> bool {
    name.split_once(".aside-")
        .is_some_and(|(trail, _)| trail.parse::<u32>().is_ok())
}

/// Returns whether a file of this name in a session's directory belongs to the log.
pub(crate) fn is_session_file(name: &str) -> bool {
    let known = [
        "payloads",
        "speaker.lock",
        "append.lock",
        "new-trail",
        "deleted",
        "gone-trails",
        "gone-trails.new",
    ];
    known.contains(&name) || is_aside(name) || trail_number(name.as_ref()).is_some()
}
