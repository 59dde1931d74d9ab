//! Where workspaces were before, and how somebody says where one is now.
//!
//! Sessions may name a directory and no workspace. While a workspace is at a directory,
//! such sessions are its own; when it leaves, its trail says from when to when it was
//! there, so that the sessions of that time stay with it, and later ones belong to
//! whatever lies at the old path then.

use std::path::{Path, PathBuf};

use super::Workspace;
use super::identity::{
    Known, Place, absent_root, by_id, create, find_known, known, lock, not_in_the_store, note,
    read_known,
};
use super::remote;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::WorkspaceId;
use crate::session::SessionInfo;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::present::{Formerly, WorkspaceRef};

/// A directory that a workspace was at before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormerRoot {
    /// The directory.
    pub root: PathBuf,
    /// When the workspace came there; `None` if it was there from the beginning.
    pub since: Option<Timestamp>,
    /// When it was there no more.
    pub until: Timestamp,
    /// Whether only sessions were there, and the workspace itself never was.
    pub sessions_only: bool,
}

impl FormerRoot {
    /// Returns whether a session that names a directory and no workspace belongs to the
    /// workspace for having begun there in this time.
    pub fn covers(&self, root: &Path, began: Option<Timestamp>) -> bool {
        let in_time =
            |began: Timestamp| began < self.until && self.since.is_none_or(|since| began >= since);
        self.root == root && began.is_none_or(in_time)
    }
}

impl From<&Formerly> for FormerRoot {
    fn from(former: &Formerly) -> Self {
        Self {
            root: former.root(),
            since: former.since,
            until: former.until,
            sessions_only: former.sessions_only,
        }
    }
}

/// What [`Store::relink`] may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct RelinkOptions {
    although_there: bool,
}

impl RelinkOptions {
    /// Makes options that allow nothing but the plain case.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes ahead although a directory lies at the old path: it loses its past to the
    /// new one.
    #[must_use]
    pub fn although_there(mut self, yes: bool) -> Self {
        self.although_there = yes;
        self
    }
}

/// What [`Store::relink`] did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Relinked {
    /// The workspace, at its new directory.
    pub workspace: Workspace,
    /// The old directory.
    pub from: PathBuf,
    /// What was linked.
    pub what: RelinkedWhat,
}

/// What was linked to another directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelinkedWhat {
    /// A workspace with all that is kept of it.
    Workspace,
    /// Sessions alone: nothing else is kept of the old directory.
    Sessions,
    /// Sessions that were linked by an earlier call are as they were before it.
    SessionsBack,
}

impl Store {
    /// Says that the workspace which was at `old` is now at `new`, for a directory that is
    /// not recognised (one that was copied to another disk, say). Where nothing but
    /// sessions is known of `old`, they are those of `new` from now on. The other way
    /// round it is taken back; then `new` need not be there, and `old` may be.
    pub fn relink(&self, old: &Path, new: &Path, options: RelinkOptions) -> Result<Relinked> {
        let target = Target::of(new)?;
        if let Target::There(place) = &target {
            not_in_the_store(self, place)?;
        }
        self.make_workspaces_dir()?;
        let lock = lock(self)?;
        let _guard = lock.hold()?;
        let old = Old::find(self, old)?;
        if old.root == target.root() {
            let what = format!("{} is where it already is", old.root.display());
            return Err(Error::invalid(what).at_path(&old.root));
        }
        if let Some(back) = old.sessions_back(self, &target)? {
            return Ok(back);
        }
        let place = old.place(target)?;
        let back = old.was_at(place.root());
        if old.root.is_dir() && !back && !options.although_there {
            let what = format!(
                "{} is still there; what was kept of it would be that of {}",
                old.root.display(),
                place.root().display()
            );
            return Err(Error::invalid(what).at_path(&old.root));
        }
        match old.workspace {
            Some(known) => move_workspace(self, known, old.root, place),
            None => adopt_sessions(self, old.root, place),
        }
    }
}

/// The directory that something is linked to.
enum Target {
    There(Place),
    /// It is gone, or was never there.
    Absent(PathBuf),
}

impl Target {
    fn of(path: &Path) -> Result<Self> {
        match Place::of(path) {
            Ok(place) => Ok(Self::There(place)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(Self::Absent(absent_root(path)))
            }
            Err(error) => Err(error),
        }
    }

    fn root(&self) -> &Path {
        match self {
            Self::There(place) => &place.root,
            Self::Absent(root) => root,
        }
    }
}

/// What is known of the old directory.
struct Old {
    root: PathBuf,
    workspace: Option<Known>,
}

impl Old {
    fn find(store: &Store, path: &Path) -> Result<Self> {
        // A path as it was written is also one whose links lead elsewhere by now.
        let written = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut ways = vec![absent_root(path), written];
        ways.extend(path.canonicalize());
        let mut all = known(store)?;
        all.retain(|known| !known.is_superseded());
        let at = all
            .iter()
            .position(|known| ways.iter().any(|way| way == known.root()));
        if let Some(at) = at {
            let known = all.swap_remove(at);
            let root = known.root().to_owned();
            return Ok(Self {
                root,
                workspace: Some(known),
            });
        }
        let infos = store.infos()?.into_iter().filter_map(|(_, info)| info.ok());
        let mut roots = infos.filter_map(|info| info.workspace_root);
        if let Some(root) = roots.find(|root| ways.contains(root)) {
            return Ok(Self {
                root,
                workspace: None,
            });
        }
        let path = &ways[0];
        let what = format!("nothing is known of {}", path.display());
        Err(Error::new(ErrorKind::NotFound, what).at_path(path))
    }

    /// Takes back that sessions were linked, where that is what is asked for.
    fn sessions_back(&self, store: &Store, target: &Target) -> Result<Option<Relinked>> {
        let (Some(known), Target::Absent(root)) = (&self.workspace, target) else {
            return Ok(None);
        };
        let is_it = |former: &Formerly| former.sessions_only && former.root() == *root;
        if !known.said.formerly.iter().any(is_it) {
            return Ok(None);
        }
        let mut said = known.said.clone();
        said.formerly.retain(|former| !is_it(former));
        note(store, &known.id, said)?;
        Ok(Some(Relinked {
            workspace: Workspace::new(store, known.id.clone(), self.root.clone()),
            from: self.root.clone(),
            what: RelinkedWhat::SessionsBack,
        }))
    }

    /// Returns the directory to link to, if it is there, or is one that the workspace was
    /// at before.
    fn place(&self, target: Target) -> Result<Target> {
        if let Target::Absent(root) = &target
            && !self.was_at(root)
        {
            let what = format!("there is no directory {}", root.display());
            return Err(Error::new(ErrorKind::NotFound, what).at_path(root));
        }
        Ok(target)
    }

    fn was_at(&self, root: &Path) -> bool {
        let mut former = self.workspace.iter().flat_map(|known| &known.said.formerly);
        former.any(|former| former.root() == root)
    }
}

fn move_workspace(store: &Store, old: Known, from: PathBuf, to: Target) -> Result<Relinked> {
    let (said, root) = match &to {
        Target::There(place) => {
            if let Some(there) = find_known(known(store)?, place)
                && there.id != old.id
            {
                give_way(store, there, &old.id, place)?;
            }
            let said = old.now(place, &remote::read(&place.root), store.now());
            (said, place.root.clone())
        }
        Target::Absent(root) => {
            let said = WorkspaceRef {
                remote: old.said.remote.clone(),
                formerly: old.left(store.now()),
                ..WorkspaceRef::new(root)
            };
            (said, root.clone())
        }
    };
    note(store, &old.id, said)?;
    Ok(Relinked {
        workspace: Workspace::new(store, old.id, root),
        from,
        what: RelinkedWhat::Workspace,
    })
}

/// Makes room at a directory that is a workspace already, of which nothing was ever kept.
fn give_way(store: &Store, there: Known, to: &WorkspaceId, place: &Place) -> Result<()> {
    if there.is_used(store) {
        let what = format!(
            "{} is a workspace of its own, with checkpoints",
            place.root.display()
        );
        return Err(Error::invalid(what).at_path(&place.root));
    }
    let said = WorkspaceRef {
        superseded_by: Some(to.clone()),
        ..there.said
    };
    note(store, &there.id, said)
}

/// Makes sessions that name a directory those of the workspace at another one.
fn adopt_sessions(store: &Store, from: PathBuf, to: Target) -> Result<Relinked> {
    let Target::There(place) = to else {
        let what = format!("there is no directory {}", to.root().display());
        return Err(Error::new(ErrorKind::NotFound, what).at_path(to.root()));
    };
    let root = place.root.clone();
    let id = match find_known(known(store)?, &place) {
        Some(known) => known.id,
        None => create(store, place)?.id().clone(),
    };
    let known = read_known(store, id.clone())?;
    let mut said = known.map_or_else(|| WorkspaceRef::new(&root), |known| known.said);
    said.formerly.retain(|former| former.root() != from);
    said.formerly.push(Formerly {
        sessions_only: true,
        ..Formerly::new(&from, None, store.now())
    });
    note(store, &id, said)?;
    Ok(Relinked {
        workspace: Workspace::new(store, id, root),
        from,
        what: RelinkedWhat::Sessions,
    })
}

/// Which workspace a session works in, as all trails together say.
#[derive(Debug)]
pub(crate) struct Homes(Vec<Known>);

impl Homes {
    pub(crate) fn of(store: &Store) -> Result<Self> {
        Ok(Self(known(store)?))
    }

    /// Returns the workspace that a session belongs to.
    pub(crate) fn home(&self, info: &SessionInfo) -> Option<&WorkspaceId> {
        match &info.workspace_id {
            Some(id) => self.0.iter().find_map(|known| {
                (known.id == *id).then(|| known.said.superseded_by.as_ref().unwrap_or(&known.id))
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
            all.find(|known| known.root() == root && !known.is_superseded())
        };
        // The one that was there then, and not one that came later.
        former
            .min_by_key(|(until, _)| *until)
            .map(|(_, id)| id)
            .or_else(|| current().map(|known| &known.id))
    }
}

/// Opens the workspace of a session whose directory was moved away from where it says.
pub(crate) fn moved_home(store: &Store, info: &SessionInfo) -> Option<Workspace> {
    let root = info
        .workspace_root
        .as_deref()
        .filter(|root| !root.is_dir())?;
    let homes = Homes::of(store).ok()?;
    let home = by_id(store, homes.home(info)?).ok()?;
    (home.root() != root).then_some(home)
}

/// The sessions of a directory, be it a workspace or not.
#[derive(Debug)]
pub(crate) struct Here<'a> {
    root: &'a Path,
    homes: Option<(Homes, WorkspaceId)>,
}

impl<'a> Here<'a> {
    pub(crate) fn at(store: &Store, root: &'a Path) -> Self {
        // Where workspaces cannot be read, paths still tell.
        let homes = || {
            let id = match Place::of(root) {
                Ok(place) => find_known(known(store).ok()?, &place)?.id,
                Err(_) => return None,
            };
            Some((Homes::of(store).ok()?, id))
        };
        Self {
            root,
            homes: homes(),
        }
    }

    pub(crate) fn has(&self, info: &SessionInfo) -> bool {
        let home = self
            .homes
            .as_ref()
            .and_then(|(homes, id)| Some((homes.home(info)?, id)));
        match home {
            Some((home, id)) => home == id,
            None => info.workspace_root.as_deref() == Some(self.root),
        }
    }
}

impl Workspace {
    /// Returns where its repository is from (`github.com/acme/shop`), as its trail says:
    /// known also when the directory is gone.
    pub fn remote(&self) -> Result<Option<String>> {
        let known = read_known(self.store(), self.id().clone())?;
        Ok(known.and_then(|known| known.said.remote))
    }

    /// Returns the directories that it was at before, the latest last. A session that
    /// names one of them and no workspace may be its own: see [`FormerRoot::covers`].
    pub fn former_roots(&self) -> Result<Vec<FormerRoot>> {
        let known = read_known(self.store(), self.id().clone())?;
        Ok(known.iter().flat_map(Known::former_roots).collect())
    }
}
