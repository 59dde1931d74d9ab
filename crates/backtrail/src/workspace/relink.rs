//! Former directories of workspaces, and relinking a workspace to another directory.
//!
//! A session may name a directory but no workspace. While a workspace is at a directory,
//! such sessions belong to it. When it moves away, its trail records the time that it was
//! there, so that the sessions of that time stay with it; later ones belong to the
//! workspace that is at the old path then.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Workspace;
use super::identity::{
    Directory, KnownWorkspace, absent_root, by_id, create, find_known, hold, known,
    not_in_the_store, note, read_known,
};
use super::remote;
use crate::error::{Error, ErrorKind, Result};
use crate::hex::lossy_path;
use crate::ids::WorkspaceId;
use crate::session::SessionInfo;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::present::{FormerDirectory, WorkspaceRef};

/// A former directory of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FormerRoot {
    /// The directory.
    #[serde(serialize_with = "lossy_path")]
    pub root: PathBuf,
    /// When the workspace was moved there; `None` if it was there from the beginning.
    pub since: Option<Timestamp>,
    /// When it was moved away.
    pub until: Timestamp,
    /// Whether only sessions were there, and never the workspace itself.
    pub sessions_only: bool,
}

impl FormerRoot {
    /// Returns whether a session that names this directory and no workspace belongs to the
    /// workspace, because it began there in this time.
    pub fn covers(&self, root: &Path, began: Option<Timestamp>) -> bool {
        let in_time =
            |began: Timestamp| began < self.until && self.since.is_none_or(|since| began >= since);
        self.root == root && began.is_none_or(in_time)
    }
}

impl From<&FormerDirectory> for FormerRoot {
    fn from(former: &FormerDirectory) -> Self {
        Self {
            root: former.root(),
            since: former.since,
            until: former.until,
            sessions_only: former.sessions_only,
        }
    }
}

/// Options of [`Store::relink`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RelinkOptions {
    replace_existing: bool,
}

impl RelinkOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Relinks even if there is a directory at the old path: its history then belongs to
    /// the new one.
    #[must_use]
    pub fn replace_existing(mut self) -> Self {
        self.replace_existing = true;
        self
    }
}

/// The outcome of [`Store::relink`].
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Relinked {
    /// The workspace, at its new directory.
    pub workspace: Workspace,
    /// The old directory.
    #[serde(serialize_with = "lossy_path")]
    pub from: PathBuf,
    /// The kind of relink.
    pub what: RelinkedWhat,
}

/// The kind of a relink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum RelinkedWhat {
    /// A workspace with its checkpoints.
    Workspace,
    /// Sessions only: the old directory has no checkpoints.
    Sessions,
    /// Sessions, back to the directory from which an earlier call relinked them.
    SessionsBack,
}

impl Store {
    /// Moves the workspace at `old` to `new`, for a directory that is not recognised, such
    /// as one that was copied to another disk. If `old` has only sessions, they belong to
    /// `new` from then on. Swap the arguments to undo it; then `new` need not exist, and `old`
    /// may.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](ErrorKind::Invalid) if `old` still exists or `new` has its own
    /// checkpoints, and with [`NotFound`](ErrorKind::NotFound) if `old` is unknown or `new`
    /// does not exist.
    pub fn relink(&self, old: &Path, new: &Path, options: RelinkOptions) -> Result<Relinked> {
        let (root, place) = match Directory::of(new) {
            Ok(place) => (place.root.clone(), Some(place)),
            Err(error) if error.kind() == ErrorKind::NotFound => (absent_root(new), None),
            Err(error) => return Err(error),
        };
        if let Some(place) = &place {
            not_in_the_store(self, place)?;
        }
        self.make_workspaces_dir()?;
        let _guard = hold(self)?;
        let (from, known) = find_old(self, old)?;
        if from == root {
            let what = format!("{} is already at this path", from.display());
            return Err(Error::invalid(what).at_path(&from));
        }
        let relinked = |id: WorkspaceId, root: &Path, what| Relinked {
            workspace: Workspace::new(self, id, root.to_owned()),
            from: from.clone(),
            what,
        };
        if let (Some(known), None) = (&known, &place)
            && known.gave_sessions_back(self, &root)?
        {
            return Ok(relinked(
                known.id.clone(),
                &from,
                RelinkedWhat::SessionsBack,
            ));
        }
        let former = known.iter().flat_map(|known| &known.noted.formerly);
        let was_there = former.into_iter().any(|former| former.root() == root);
        if from.is_dir() && !was_there && place.is_some() && !options.replace_existing {
            let what = format!(
                "{} still exists; its checkpoints would belong to {}",
                from.display(),
                root.display()
            );
            return Err(Error::invalid(what).at_path(&from));
        }
        match (known, place) {
            (Some(known), place) if place.is_some() || was_there => {
                known.move_to(self, &root, place)?;
                Ok(relinked(known.id, &root, RelinkedWhat::Workspace))
            }
            (None, Some(place)) => {
                let id = adopt_sessions(self, &from, place)?;
                Ok(relinked(id, &root, RelinkedWhat::Sessions))
            }
            _ => {
                let what = format!("{} does not exist", root.display());
                Err(Error::new(ErrorKind::NotFound, what).at_path(&root))
            }
        }
    }
}

/// Finds the old directory, and its workspace unless it only has sessions.
fn find_old(store: &Store, path: &Path) -> Result<(PathBuf, Option<KnownWorkspace>)> {
    // The path as given counts too: its links may have changed since.
    let written = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut ways = vec![absent_root(path), written];
    ways.extend(path.canonicalize());
    let mut all = known(store)?.into_iter();
    if let Some(known) = all.find(|known| !known.is_superseded() && ways.contains(&known.root)) {
        return Ok((known.root.clone(), Some(known)));
    }
    let infos = store.infos()?.into_iter().filter_map(|(_, info)| info.ok());
    let mut roots = infos.filter_map(|info| info.workspace_root);
    match roots.find(|root| ways.contains(root)) {
        Some(root) => Ok((root, None)),
        None => {
            let what = format!("no checkpoints or sessions in {}", ways[0].display());
            Err(Error::new(ErrorKind::NotFound, what).at_path(&ways[0]))
        }
    }
}

impl KnownWorkspace {
    /// Undoes a relink of the sessions of a directory, if there was one.
    fn gave_sessions_back(&self, store: &Store, root: &Path) -> Result<bool> {
        let mut noted = self.noted.clone();
        let is_it = |former: &FormerDirectory| former.sessions_only && former.root() == root;
        noted.formerly.retain(|former| !is_it(former));
        let gave = noted.formerly.len() < self.noted.formerly.len();
        if gave {
            note(store, &self.id, noted)?;
        }
        Ok(gave)
    }

    /// Records another directory, which may not exist.
    fn move_to(&self, store: &Store, root: &Path, place: Option<Directory>) -> Result<()> {
        let noted = match place {
            Some(place) => {
                if let Some(there) = find_known(known(store)?, &place)
                    && there.id != self.id
                {
                    supersede(store, there, &self.id, &place)?;
                }
                self.now(&place, &remote::read(&place.root), store.now())
            }
            None => WorkspaceRef {
                remote: self.noted.remote.clone(),
                formerly: self.left(store.now()),
                ..WorkspaceRef::new(root)
            },
        };
        note(store, &self.id, noted)
    }
}

/// Replaces a workspace without checkpoints at the new directory.
fn supersede(
    store: &Store,
    there: KnownWorkspace,
    to: &WorkspaceId,
    place: &Directory,
) -> Result<()> {
    if there.is_used(store) {
        let what = format!("{} already has its own checkpoints", place.root.display());
        return Err(Error::invalid(what).at_path(&place.root));
    }
    let noted = WorkspaceRef {
        superseded_by: Some(to.clone()),
        ..there.noted
    };
    note(store, &there.id, noted)
}

/// Gives the sessions of a directory to the workspace at another one.
fn adopt_sessions(store: &Store, from: &Path, place: Directory) -> Result<WorkspaceId> {
    let root = place.root.clone();
    let id = match find_known(known(store)?, &place) {
        Some(known) => known.id,
        None => create(store, place)?.id().clone(),
    };
    let known = read_known(store, id.clone())?;
    let mut noted = known.map_or_else(|| WorkspaceRef::new(&root), |known| known.noted);
    noted.formerly.retain(|former| former.root() != from);
    noted.formerly.push(FormerDirectory {
        sessions_only: true,
        ..FormerDirectory::new(from, None, store.now())
    });
    note(store, &id, noted)?;
    Ok(id)
}

/// Maps sessions to the workspaces they work in.
#[derive(Debug)]
pub(crate) struct SessionHomes(Vec<KnownWorkspace>);

impl SessionHomes {
    pub(crate) fn of(store: &Store) -> Result<Self> {
        Ok(Self(known(store)?))
    }

    /// Returns the workspace that a session belongs to.
    pub(crate) fn home(&self, info: &SessionInfo) -> Option<&WorkspaceId> {
        match &info.workspace_id {
            Some(id) => self.0.iter().find_map(|known| {
                (known.id == *id).then(|| known.noted.superseded_by.as_ref().unwrap_or(&known.id))
            }),
            None => self.of_root(info.workspace_root.as_deref()?, info.created_at),
        }
    }

    fn of_root(&self, root: &Path, began: Option<Timestamp>) -> Option<&WorkspaceId> {
        let former = self.0.iter().flat_map(|known| {
            let fitting = known.former_roots().filter(|f| f.covers(root, began));
            fitting.map(|former| (former.until, &known.id))
        });
        let current = || {
            let mut all = self.0.iter();
            all.find(|known| known.root == root && !known.is_superseded())
        };
        // The workspace that was there at the time, not a later one.
        former
            .min_by_key(|(until, _)| *until)
            .map(|(_, id)| id)
            .or_else(|| current().map(|known| &known.id))
    }
}

/// Opens the workspace of a session whose directory was moved.
pub(crate) fn moved_home(store: &Store, info: &SessionInfo) -> Option<Workspace> {
    let root = info
        .workspace_root
        .as_deref()
        .filter(|root| !root.is_dir())?;
    let homes = SessionHomes::of(store).ok()?;
    let home = by_id(store, homes.home(info)?).ok()?;
    (home.root() != root).then_some(home)
}

/// The sessions of a directory, whether or not it is a workspace.
#[derive(Debug)]
pub(crate) struct SessionsHere<'a> {
    root: &'a Path,
    homes: Option<(SessionHomes, WorkspaceId)>,
}

impl<'a> SessionsHere<'a> {
    pub(crate) fn at(store: &Store, root: &'a Path) -> Self {
        // If the workspaces cannot be read, paths are compared.
        let homes = || {
            let place = Directory::of(root).ok()?;
            let id = find_known(known(store).ok()?, &place)?.id;
            Some((SessionHomes::of(store).ok()?, id))
        };
        Self {
            root,
            homes: homes(),
        }
    }

    pub(crate) fn has(&self, info: &SessionInfo) -> bool {
        let homes = self.homes.as_ref();
        let home = homes.and_then(|(homes, id)| Some(homes.home(info)? == id));
        match home {
            Some(is_here) => is_here,
            None => info.workspace_root.as_deref() == Some(self.root),
        }
    }
}

impl Workspace {
    /// Returns the remote of its git repository (`github.com/acme/shop`) from its trail,
    /// even if the directory is gone.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn remote(&self) -> Result<Option<String>> {
        let known = read_known(self.store(), self.id().clone())?;
        Ok(known.and_then(|known| known.noted.remote))
    }

    /// Returns its former directories, oldest first. A session that names one of them and no
    /// workspace may belong to it: see [`FormerRoot::covers`].
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn former_roots(&self) -> Result<Vec<FormerRoot>> {
        let known = read_known(self.store(), self.id().clone())?;
        Ok(known
            .iter()
            .flat_map(KnownWorkspace::former_roots)
            .collect())
    }
}
