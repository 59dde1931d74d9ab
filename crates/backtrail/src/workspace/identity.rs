//! Finds the workspace of a directory.
//!
//! A workspace is identified by its path. A directory that was moved is recognised by its
//! device, inode and creation time, as long as there is no other directory at the old path.
//! The new path is then recorded on the workspace's trail, with the old one, which
//! sessions may refer to. The record also has the remote of its git repository, so that
//! the project is known when the directory is gone.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::new_checkpoint::SNAPSHOT;
use super::remote::{self, Remote};
use super::roots;
use super::{FormerRoot, Workspace};
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::ids::WorkspaceId;
use crate::log::{HeldLock, LockFile, LogDir, end_of_line, present_at};
use crate::session::{Note, append_note};
use crate::storage::names_in;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::present::{DirectoryId, FormerDirectory, Present, WorkspaceRef};

/// How many former directories of a workspace are kept: every note repeats them.
const MOST_FORMER: usize = 32;

/// An existing directory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) root: PathBuf,
    directory: DirectoryId,
}

impl Directory {
    pub(super) fn of(path: &Path) -> Result<Self> {
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

/// Returns the identity of the directory at a path, if it is one. Links are not followed.
fn directory_at(path: &Path) -> io::Result<Option<DirectoryId>> {
    let metadata = path.symlink_metadata()?;
    let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    let born = metadata.created().ok().and_then(since_1970);
    Ok(metadata.is_dir().then(|| DirectoryId {
        device: metadata.dev(),
        inode: metadata.ino(),
        born: born.and_then(|born| u64::try_from(born.as_nanos()).ok()),
    }))
}

/// A workspace of the store.
#[derive(Debug)]
pub(crate) struct KnownWorkspace {
    pub(super) id: WorkspaceId,
    /// Its last known directory.
    pub(super) root: PathBuf,
    /// Its directory, as recorded on its trail.
    pub(super) noted: WorkspaceRef,
}

impl KnownWorkspace {
    pub(crate) fn open(self, store: &Store) -> Workspace {
        Workspace::new(store, self.id, self.root)
    }

    /// Returns its former directories, oldest first.
    pub(super) fn former_roots(&self) -> impl Iterator<Item = FormerRoot> {
        self.noted.formerly.iter().map(FormerRoot::from)
    }

    /// Returns whether another workspace replaced it.
    pub(super) fn is_superseded(&self) -> bool {
        self.noted.superseded_by.is_some()
    }

    /// Returns whether it was moved to this directory.
    pub(super) fn moved_to(&self, place: &Directory) -> bool {
        let is_it = place.directory.born.is_some() && self.noted.directory == Some(place.directory);
        // A directory at the old path is the workspace, whatever its identity.
        is_it && !matches!(directory_at(&self.root), Ok(Some(_)))
    }

    /// Returns whether it has checkpoints.
    pub(super) fn is_used(&self, store: &Store) -> bool {
        let workspace = Workspace::new(store, self.id.clone(), self.root.clone());
        workspace.last_checkpoint().is_ok_and(|last| last.is_some())
    }
}

/// Returns all workspaces whose trail can be read.
pub(crate) fn known(store: &Store) -> Result<Vec<KnownWorkspace>> {
    // An unreadable workspace must not hide the others; `verify` reports it.
    let all = all(store)?.into_iter();
    Ok(all.filter_map(|(_, known)| known.ok().flatten()).collect())
}

/// Returns all workspaces, or the error of one that cannot be read; `None` for one that a
/// crash left incomplete.
pub(crate) fn all(store: &Store) -> Result<Vec<(WorkspaceId, Result<Option<KnownWorkspace>>)>> {
    let dir = store.workspaces_dir();
    let names = names_in(store.storage(), dir).context("cannot list the workspaces", dir)?;
    // There is also a lock file.
    let ids = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    Ok(ids
        .map(|id: WorkspaceId| (id.clone(), read_known(store, id)))
        .collect())
}

pub(super) fn read_known(store: &Store, id: WorkspaceId) -> Result<Option<KnownWorkspace>> {
    let files = store.workspace_files(&id);
    if files.trails()?.is_empty() {
        must_be_new(&files)?;
        return Ok(None);
    }
    let present = files.with_head(|head| present(store, &files, head))?;
    let workspace = present.workspace.ok_or_else(|| {
        let what = format!("cannot read the directory of workspace {id} from its trail");
        Error::new(ErrorKind::Corrupt, what).at_path(files.path())
    })?;
    Ok(Some(KnownWorkspace {
        id,
        root: workspace.root(),
        noted: workspace,
    }))
}

/// Refuses a workspace that has no trail, but had checkpoints: a crash during its creation
/// does not leave that.
pub(crate) fn must_be_new(files: &LogDir) -> Result<()> {
    let path = files.path().join(SNAPSHOT);
    let was_used = files.storage().exists(&path);
    match was_used.map_err(|error| Error::io("cannot read the workspace", &path, error))? {
        false => Ok(()),
        true => {
            let what = format!(
                "the trail of workspace {} is gone, and with it all its checkpoints; restore \
                 it from a backup, or remove the directory",
                files.id()
            );
            Err(Error::new(ErrorKind::Corrupt, what).at_path(files.path()))
        }
    }
}

fn present(store: &Store, files: &LogDir, head: u32) -> Result<Present> {
    let end = end_of_line(store, files, head)?;
    present_at(store, files, end.trail, &end.position)
}

/// Finds a workspace by its id.
pub(crate) fn by_id(store: &Store, id: &WorkspaceId) -> Result<Workspace> {
    let known = read_known(store, id.clone())?;
    let known = known.ok_or_else(|| store.workspace_files(id).not_found())?;
    // One step only: damage must not cause an endless loop.
    let taken = match &known.noted.superseded_by {
        Some(by) => read_known(store, by.clone())?,
        None => None,
    };
    Ok(taken.unwrap_or(known).open(store))
}

/// Finds the workspace of a directory, without creating one. If the directory is gone, it
/// is found by its path.
pub(crate) fn find(store: &Store, path: &Path) -> Result<Option<Workspace>> {
    let found = match Directory::of(path) {
        Ok(place) => {
            let found = find_at(store, &place)?;
            found.map(|found| (found, place.root))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let root = absent_root(path);
            let mut known = known(store)?.into_iter();
            let found = known
                .find(|known| known.root == root && !known.is_superseded())
                .ok_or(error)?;
            Some((found, root))
        }
        Err(error) => return Err(error),
    };
    let used = found.filter(|(known, _)| known.is_used(store));
    Ok(used.map(|(known, root)| Workspace::new(store, known.id, root)))
}

/// Returns the path of a directory that is gone.
pub(super) fn absent_root(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match parent.zip(path.file_name()) {
        Some((parent, name)) => parent.join(name),
        None => path,
    }
}

/// Finds the workspace of a directory, by reading only its own trail if that is possible.
fn find_at(store: &Store, place: &Directory) -> Result<Option<KnownWorkspace>> {
    match roots::noted_at(store, &place.root) {
        Some(known) => Ok(Some(known)),
        None => Ok(find_known(known(store)?, place)),
    }
}

pub(super) fn find_known(all: Vec<KnownWorkspace>, place: &Directory) -> Option<KnownWorkspace> {
    let (by_path, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|known| !known.is_superseded())
        .partition(|known| known.root == place.root);
    let moved = others.into_iter().find(|known| known.moved_to(place));
    by_path.into_iter().next().or(moved)
}

/// Finds the workspace of a directory, creates it if there is none, and records a new path
/// if the directory was moved.
pub(crate) fn register(store: &Store, path: &Path) -> Result<Workspace> {
    let workspace = register_directory(store, path)?;
    roots::note(store, workspace.root(), workspace.id());
    Ok(workspace)
}

fn register_directory(store: &Store, path: &Path) -> Result<Workspace> {
    let place = Directory::of(path)?;
    not_in_the_store(store, &place)?;
    let remote = remote::read(&place.root);
    let seen = find_at(store, &place)?;
    if let Some(known) = &seen
        && known.now(&place, &remote, store.now()) == known.noted
    {
        return Ok(Workspace::new(store, known.id.clone(), place.root));
    }
    store.make_workspaces_dir()?;
    // One at a time, so that a directory does not become two workspaces.
    let _guard = hold(store)?;
    // A workspace that was found but cannot be read now must not be created again.
    let again = match seen {
        Some(known) => read_known(store, known.id)?,
        None => None,
    };
    let again = again.and_then(|known| find_known(vec![known], &place));
    let found = match again {
        Some(known) => Some(known),
        None => find_known(known(store)?, &place),
    };
    let Some(known) = found else {
        return create(store, place);
    };
    let now = known.now(&place, &remote, store.now());
    if now != known.noted {
        note(store, &known.id, now)?;
    }
    Ok(Workspace::new(store, known.id, place.root))
}

/// Returns the lock for creating or moving workspaces.
pub(super) fn hold(store: &Store) -> Result<HeldLock> {
    LockFile::open(store.storage(), store.workspaces_dir(), "append.lock")?.hold()
}

/// Refuses a directory in the store.
pub(super) fn not_in_the_store(store: &Store, place: &Directory) -> Result<()> {
    let dir = store.root().canonicalize();
    if dir.is_ok_and(|dir| place.root.starts_with(dir)) {
        let what = format!(
            "{} is in the store; use another directory",
            place.root.display()
        );
        return Err(Error::invalid(what).at_path(&place.root));
    }
    Ok(())
}

impl KnownWorkspace {
    /// Returns the record for its present directory. It keeps the former directories, and the
    /// remote unless there is another one.
    pub(super) fn now(&self, place: &Directory, remote: &Remote, now: Timestamp) -> WorkspaceRef {
        let formerly = match self.root == place.root {
            true => self.noted.formerly.clone(),
            false => self.left(now),
        };
        WorkspaceRef {
            remote: match remote {
                Remote::Is(remote) => Some(remote.clone()),
                Remote::None => None,
                Remote::Unknown => self.noted.remote.clone(),
            },
            formerly,
            ..reference(place)
        }
    }

    /// Returns its former directories, including the present one that it leaves.
    pub(super) fn left(&self, now: Timestamp) -> Vec<FormerDirectory> {
        let mut formerly = self.noted.formerly.clone();
        let been = formerly.iter().filter(|former| !former.sessions_only);
        let mut since = been.map(|former| former.until).max();
        // One entry per directory, even if it was there several times.
        let here = |former: &FormerDirectory| former.root() == self.root;
        if let Some(again) = formerly.iter().find(|former| here(former)) {
            since = again.since.min(since);
        }
        formerly.retain(|former| !here(former));
        formerly.push(FormerDirectory::new(&self.root, since, now));
        formerly.drain(..formerly.len().saturating_sub(MOST_FORMER));
        formerly
    }
}

/// Records the directory on a workspace's trail.
pub(super) fn note(store: &Store, id: &WorkspaceId, workspace: WorkspaceRef) -> Result<()> {
    let note = Note::new().workspace(workspace);
    append_note(store, &store.workspace_files(id), &note).map(drop)
}

pub(super) fn create(store: &Store, place: Directory) -> Result<Workspace> {
    let id = WorkspaceId::from_uuid(store.new_id()?);
    let files = store.workspace_files(&id);
    store
        .storage()
        .create_dir(files.path())
        .map_err(|error| Error::io("cannot create the workspace", files.path(), error))?;
    let opener = files.opener(0, TrailReason::Start, store.now());
    let said = WorkspaceRef {
        remote: remote::remote_of(&place.root),
        ..reference(&place)
    };
    let present = Present {
        workspace: Some(said.clone()),
        ..Present::default()
    };
    files.create_opened(&Opener { present, ..opener })?;
    // Written twice: a damaged opener must not orphan the history after it.
    append_note(store, &files, &Note::new().workspace(said))?;
    Ok(Workspace::new(store, id, place.root))
}

fn reference(place: &Directory) -> WorkspaceRef {
    WorkspaceRef {
        directory: Some(place.directory),
        ..WorkspaceRef::new(&place.root)
    }
}

/// Returns the root of the workspace that a directory belongs to: the nearest known
/// workspace that contains it, else the nearest directory with a `.git`, else itself.
pub(crate) fn root_around(store: &Store, dir: &Path) -> Result<PathBuf> {
    let dir = Directory::of(dir)?.root;
    if roots::noted_at(store, &dir).is_some_and(|here| here.is_used(store)) {
        return Ok(dir);
    }
    let known = known(store)?;
    let is_known = |dir: &&Path| {
        let here = known
            .iter()
            .find(|known| known.root == *dir && !known.is_superseded());
        // A workspace without checkpoints does not count.
        here.is_some_and(|here| here.is_used(store))
    };
    let has_git = |dir: &&Path| rustix::fs::lstat(dir.join(".git")).is_ok();
    let around = dir.ancestors().find(is_known);
    let around = around.or_else(|| dir.ancestors().find(has_git));
    Ok(around.unwrap_or(&dir).to_owned())
}

/// Returns the nearest workspace around a directory, by what was noted when it was last used:
/// no other workspace is read. `None` if there is none with checkpoints.
pub(crate) fn noted_around(store: &Store, dir: &Path) -> Result<Option<Workspace>> {
    let dir = Directory::of(dir)?.root;
    if let Some(known) = roots::noted_around(store, &dir) {
        return Ok(Some(known.open(store)));
    }
    let all = store.workspaces_dir();
    let is_used = names_in(store.storage(), all).context("cannot list the workspaces", all)?;
    let is_id = |name: &std::ffi::OsString| {
        let id = name
            .to_str()
            .and_then(|name| name.parse::<WorkspaceId>().ok());
        id.is_some()
    };
    if roots::is_empty(store) && is_used.iter().any(is_id) {
        let what = "it is not noted where the workspaces are";
        return Err(Error::new(ErrorKind::NotFound, what).at_path(all));
    }
    Ok(None)
}

impl Workspace {
    /// Returns whether the directory exists.
    pub(crate) fn root_exists(&self) -> Result<bool> {
        match directory_at(self.root()) {
            Ok(directory) => Ok(directory.is_some()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("cannot open the workspace", self.root(), error)),
        }
    }

    /// Returns the error for a directory that does not exist.
    pub(super) fn not_there(&self) -> Error {
        let what = format!(
            "the workspace {} does not exist; if it was moved, make a checkpoint where it is now",
            self.root().display()
        );
        Error::new(ErrorKind::NotFound, what).at_path(self.root())
    }
}
