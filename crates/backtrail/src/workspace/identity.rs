//! Which workspace a directory is.
//!
//! A workspace is known by its path. Where a known one was moved, its directory
//! is told by what the file system calls it, as long as nothing else lies at the
//! old path; the new path is then noted on its trail.

use std::io;
use std::path::{Path, PathBuf};

use super::Workspace;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::WorkspaceId;
use crate::random::new_uuid;
use crate::session::{
    AppendLock, Note, SessionFiles, append_note, end_of_line, is_absent, present_at,
};
use crate::store::Store;
use crate::trail::opener::{Because, Opener};
use crate::trail::present::{DirectoryId, Present, WorkspaceRef};

/// A directory, as it is now.
#[derive(Debug)]
struct Place {
    root: PathBuf,
    directory: DirectoryId,
}

impl Place {
    fn of(path: &Path) -> Result<Self> {
        let failed = |error| Error::io("cannot open the workspace", path, error);
        let root = path.canonicalize().map_err(failed)?;
        match directory_at(&root).map_err(failed)? {
            Some(directory) => Ok(Self { root, directory }),
            None => {
                let what = format!("{} is not a directory", path.display());
                Err(Error::invalid(what).at_path(path))
            }
        }
    }
}

/// Returns what the file system calls the directory at a path, if it is one.
fn directory_at(path: &Path) -> io::Result<Option<DirectoryId>> {
    let stat = rustix::fs::stat(path)?;
    let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    Ok(is_dir.then_some(DirectoryId {
        device: stat.st_dev,
        inode: stat.st_ino,
    }))
}

/// A workspace that the store knows.
#[derive(Debug)]
pub(crate) struct Known {
    id: WorkspaceId,
    root: PathBuf,
    directory: Option<DirectoryId>,
}

impl Known {
    pub(crate) fn open(self, store: &Store) -> Workspace {
        Workspace::new(store, self.id, self.root)
    }

    /// Returns whether the directory that it was is no longer at its path.
    fn is_gone(&self) -> bool {
        match directory_at(&self.root) {
            Ok(directory) => directory != self.directory,
            Err(_) => true,
        }
    }
}

/// Returns all workspaces whose trail can be read.
pub(crate) fn known(store: &Store) -> Result<Vec<Known>> {
    let dir = store.workspaces_dir();
    let names = match store.storage().list(dir) {
        Ok(names) => names,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("cannot list the workspaces", dir, error)),
    };
    let ids = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    // One that cannot be read must not hide the others.
    Ok(ids
        .filter_map(|id| read_known(store, id).ok().flatten())
        .collect())
}

fn read_known(store: &Store, id: WorkspaceId) -> Result<Option<Known>> {
    let files = store.workspace_files(&id);
    let present = match files.trails()?.last() {
        Some(head) => present(store, &files, *head)?,
        // What a crash left of one that was about to be made.
        None => return Ok(None),
    };
    Ok(present.workspace.map(|workspace| Known {
        id,
        root: workspace.root(),
        directory: workspace.directory,
    }))
}

fn present(store: &Store, files: &SessionFiles, head: u32) -> Result<Present> {
    let end = end_of_line(store, files, head)?;
    present_at(store, files, end.trail, &end.position)
}

/// Finds the workspace that a directory is, without making anything.
pub(crate) fn find(store: &Store, path: &Path) -> Result<Option<Workspace>> {
    let place = Place::of(path)?;
    let found = find_known(known(store)?, &place);
    Ok(found.map(|known| Workspace::new(store, known.id, place.root)))
}

fn find_known(all: Vec<Known>, place: &Place) -> Option<Known> {
    let (by_path, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|known| known.root == place.root);
    let moved_here = |known: &Known| known.directory == Some(place.directory) && known.is_gone();
    by_path
        .into_iter()
        .next()
        .or_else(|| others.into_iter().find(moved_here))
}

/// Finds the workspace that a directory is, making it where it is new, and
/// noting where it was moved to.
pub(crate) fn register(store: &Store, path: &Path) -> Result<Workspace> {
    let place = Place::of(path)?;
    if lies_within(&place.root, store.root()) {
        let what = format!(
            "{} lies in the store; name another directory",
            path.display()
        );
        return Err(Error::invalid(what).at_path(path));
    }
    if let Some(known) = find_known(known(store)?, &place) {
        return bind(store, known, place);
    }
    store.make_workspaces_dir()?;
    // One at a time, so that no directory becomes two workspaces.
    let lock = AppendLock::in_dir(store.storage(), store.workspaces_dir())?;
    let _guard = lock.hold()?;
    match find_known(known(store)?, &place) {
        Some(known) => bind(store, known, place),
        None => create(store, place),
    }
}

/// Returns whether a path lies in a directory, or is it.
fn lies_within(path: &Path, dir: &Path) -> bool {
    dir.canonicalize().is_ok_and(|dir| path.starts_with(dir))
}

/// Opens a workspace that is known, and notes where it is now if that is new.
fn bind(store: &Store, known: Known, place: Place) -> Result<Workspace> {
    if known.root != place.root || known.directory != Some(place.directory) {
        let note = Note::new().workspace(reference(&place));
        append_note(store, &store.workspace_files(&known.id), &note)?;
    }
    Ok(Workspace::new(store, known.id, place.root))
}

fn create(store: &Store, place: Place) -> Result<Workspace> {
    let dir = store.workspaces_dir();
    let id =
        new_uuid(store.random()).map_err(|error| Error::io("cannot make an id", dir, error))?;
    let id = WorkspaceId::from_uuid(id);
    let files = store.workspace_files(&id);
    store
        .storage()
        .create_dir(files.dir())
        .map_err(|error| Error::io("cannot create the workspace", files.dir(), error))?;
    let opener = files.opener(0, Because::Start, store.now());
    let present = Present {
        workspace: Some(reference(&place)),
        ..Present::default()
    };
    files.create_opened(&Opener { present, ..opener })?;
    files.sync_names()?;
    Ok(Workspace::new(store, id, place.root))
}

fn reference(place: &Place) -> WorkspaceRef {
    WorkspaceRef {
        directory: Some(place.directory),
        ..WorkspaceRef::new(&place.root)
    }
}

/// Returns the root of the workspace that a directory belongs to: the nearest
/// known one around it, else the nearest directory with a `.git`, else itself.
pub(crate) fn root_around(store: Option<&Store>, dir: &Path) -> Result<PathBuf> {
    let dir = Place::of(dir)?.root;
    let roots: Vec<PathBuf> = match store {
        Some(store) => known(store)?.into_iter().map(|known| known.root).collect(),
        None => Vec::new(),
    };
    let is_known = |dir: &&Path| roots.iter().any(|root| root == dir);
    let has_git = |dir: &&Path| rustix::fs::lstat(dir.join(".git")).is_ok();
    let around = dir.ancestors().find(is_known);
    let around = around.or_else(|| dir.ancestors().find(has_git));
    Ok(around.unwrap_or(&dir).to_owned())
}

impl Workspace {
    /// Returns whether the directory is there.
    pub(super) fn root_exists(&self) -> Result<bool> {
        match directory_at(self.root()) {
            Ok(directory) => Ok(directory.is_some()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("cannot open the workspace", self.root(), error)),
        }
    }

    /// Refuses a workspace that is not there.
    pub(super) fn not_there(&self) -> Error {
        let what = format!("the workspace {} is not there", self.root().display());
        Error::new(ErrorKind::NotFound, what).at_path(self.root())
    }
}
