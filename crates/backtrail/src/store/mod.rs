//! The store: the one handle that users open.

mod derived;
mod imported;
mod layout;
mod links;
#[cfg(feature = "snapshots")]
mod objects_lock;
#[cfg(feature = "snapshots")]
mod snapshots;
mod staging;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, IoContext, Result, quoted};
use crate::ids::{SessionId, is_id_like, is_name_like};
use crate::log::{Durability, Holder, LogDir, RepairPlan, repair_plan};
use crate::random::{OsRandomness, Randomness, new_uuid};
use crate::replica::Remote;
use crate::session::{
    ForkOptions, Note, Run, Session, SessionInfo, SessionOptions, SessionReader, append_note,
    append_run, fork, spawn,
};
use crate::short_id::{SHORTEST, ShortIds, named_by};
use crate::storage::{LocalStorage, Storage, names_in};
use crate::time::{Clock, SystemClock, Timestamp};
#[cfg(feature = "snapshots")]
use crate::workspace::SessionsHere;

pub use staging::Staging;

pub(crate) const SESSIONS: &str = "sessions";
const WORKSPACES: &str = "workspaces";
const OBJECTS: &str = "objects";

/// Options of a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Randomness>,
    durability: Durability,
    rotation: u64,
    keep_trails: Option<u32>,
    program: Option<String>,
    remote: Option<Remote>,
    #[cfg(feature = "snapshots")]
    snapshots: snapshots::SnapshotSettings,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            storage: Arc::new(LocalStorage),
            clock: Arc::new(SystemClock),
            random: Arc::new(OsRandomness),
            durability: Durability::default(),
            rotation: Self::DEFAULT_ROTATION,
            keep_trails: None,
            program: None,
            remote: None,
            #[cfg(feature = "snapshots")]
            snapshots: snapshots::SnapshotSettings::default(),
        }
    }
}

impl StoreOptions {
    /// The length past which a trail continues in a new file: 64 MiB.
    pub const DEFAULT_ROTATION: u64 = 64 << 20;

    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the storage of the store's files.
    #[must_use]
    pub fn storage(mut self, storage: impl Storage) -> Self {
        self.storage = Arc::new(storage);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of randomness for ids.
    #[must_use]
    pub fn randomness(mut self, random: impl Randomness) -> Self {
        self.random = Arc::new(random);
        self
    }

    /// Sets when an append returns, unless a session is opened with its own durability.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the length past which a trail continues in a new file.
    #[must_use]
    pub fn rotation(mut self, bytes: u64) -> Self {
        self.rotation = bytes.max(1);
        self
    }

    /// Sets how many trails of a session are kept: at a rotation, older trails that the last
    /// compaction covers completely are moved to the trash. By default all are kept. The
    /// first trail and the newest are among them; they are never moved.
    #[must_use]
    pub fn keep_trails(mut self, count: u32) -> Self {
        self.keep_trails = Some(count.max(1));
        self
    }

    /// Sets the program's name, which other processes report when they find a session locked.
    #[must_use]
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.program = Some(name.into());
        self
    }

    /// Sets the replica of sessions that are opened with [`Durability::Remote`].
    #[must_use]
    pub fn remote(mut self, remote: Remote) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Opens the store in a directory.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) if there is no store.
    pub fn open(self, root: impl Into<PathBuf>) -> Result<Store> {
        let store = self.store(root.into());
        store.check_format()?;
        Ok(store)
    }

    /// Opens the store in a directory, and creates one if the directory is missing or empty.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](ErrorKind::Invalid) if the directory contains anything else.
    pub fn open_or_create(self, root: impl Into<PathBuf>) -> Result<Store> {
        let store = self.store(root.into());
        match store.check_format() {
            Err(error) if error.kind() == ErrorKind::NotFound => store.create()?,
            checked => checked?,
        }
        Ok(store)
    }

    fn store(mut self, root: PathBuf) -> Store {
        if let Some(storage) = self.storage.within(&root) {
            self.storage = storage;
        }
        Store(Arc::new(StoreInner {
            sessions: root.join(SESSIONS),
            #[cfg(feature = "snapshots")]
            snapshots: snapshots::SnapshotFiles::new(&self, &root),
            root,
            options: self,
        }))
    }
}

/// All sessions, in one directory. Cheap to clone and to share between threads.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let home = dir.path().join("store");
/// use backtrail::{Message, SessionOptions, Store};
///
/// let store = Store::open_or_create(home)?;
/// let session = store.create_session(SessionOptions::new().title("a first try"))?;
/// let seq = session.append(Message::user_text("hello"))?;
/// assert_eq!(seq, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Store(Arc<StoreInner>);

#[derive(Debug)]
struct StoreInner {
    root: PathBuf,
    sessions: PathBuf,
    #[cfg(feature = "snapshots")]
    snapshots: snapshots::SnapshotFiles,
    options: StoreOptions,
}

impl Store {
    /// Opens the store in a directory with the default options.
    ///
    /// # Errors
    ///
    /// Fails as [`StoreOptions::open`] does.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        StoreOptions::new().open(root)
    }

    /// Opens the store in a directory, and creates one if the directory is missing or empty.
    ///
    /// # Errors
    ///
    /// Fails as [`StoreOptions::open_or_create`] does.
    pub fn open_or_create(root: impl Into<PathBuf>) -> Result<Self> {
        StoreOptions::new().open_or_create(root)
    }

    /// Returns the store's directory.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Creates a session, and opens it for writing.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub fn create_session(&self, options: SessionOptions) -> Result<Session> {
        Session::create(self, options)
    }

    /// Opens a session for writing.
    ///
    /// # Errors
    ///
    /// Fails with [`Locked`](ErrorKind::Locked) if another process is writing to it, and
    /// with [`NewerFormat`](ErrorKind::NewerFormat) if a newer version wrote it; both
    /// can still be read.
    pub fn open_session(&self, id: &SessionId) -> Result<Session> {
        self.opened(Session::open(self, id, None)?)
    }

    /// Opens a session for writing, with its own durability.
    ///
    /// # Errors
    ///
    /// Fails as [`open_session`](Self::open_session) does.
    pub fn open_session_with(&self, id: &SessionId, durability: Durability) -> Result<Session> {
        self.opened(Session::open(self, id, Some(durability))?)
    }

    /// Finishes a step that a crash interrupted, before anything is written: files and
    /// conversation must agree.
    fn opened(&self, session: Session) -> Result<Session> {
        // A workspace that is missing or unreadable does not prevent writing.
        #[cfg(feature = "snapshots")]
        if let Ok(Some(workspace)) = session.workspace() {
            workspace.recover_with(Some(&session))?;
        }
        Ok(session)
    }

    /// Opens a session for reading.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) if it does not exist; the error says
    /// whether it is in the trash or was purged.
    pub fn read_session(&self, id: &SessionId) -> Result<SessionReader> {
        SessionReader::open(self, self.files(id))
    }

    /// Appends a note to a session, even if another process is writing to it; returns its seq.
    ///
    /// # Errors
    ///
    /// Fails if the session does not exist or cannot be written.
    pub fn note(&self, id: &SessionId, note: &Note) -> Result<u64> {
        append_note(self, &self.files(id), note)
    }

    /// Forks a session, even if another process is writing to it, and opens the fork for
    /// writing. Nothing is copied: the fork continues the session from one of its records.
    ///
    /// # Errors
    ///
    /// Fails if the session or the record does not exist.
    pub fn fork_session(&self, id: &SessionId, options: &ForkOptions) -> Result<Session> {
        fork(self, id, options)
    }

    /// Creates the session of a sub-agent that a tool call of session `parent` starts, even if
    /// another process is writing to the parent, and opens it for writing.
    ///
    /// # Errors
    ///
    /// Fails if the parent has no such tool call.
    pub fn spawn_session(
        &self,
        parent: &SessionId,
        tool_use_id: &str,
        options: SessionOptions,
    ) -> Result<Session> {
        spawn(self, parent, tool_use_id, options)
    }

    /// Plans the repair of a session, and changes nothing.
    ///
    /// # Errors
    ///
    /// Fails if the session does not exist or cannot be read.
    pub fn repair_plan(&self, id: &SessionId) -> Result<RepairPlan> {
        repair_plan(self, &self.files(id))
    }

    /// Records a command in a session, even if another process is writing to it; returns the
    /// record's seq.
    ///
    /// # Errors
    ///
    /// Fails if the session does not exist or cannot be written.
    pub fn record_run(&self, id: &SessionId, run: &Run) -> Result<u64> {
        append_run(self, id, run)
    }

    /// Returns the ids of all sessions, in no particular order.
    ///
    /// Skips directories without a trail: a crash leaves one of a session that was never
    /// acknowledged.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed.
    pub fn sessions(&self) -> Result<Vec<SessionId>> {
        self.sessions_like(|_| true)
    }

    /// Returns the ids of the sessions that match; reads only their directories.
    fn sessions_like(&self, fits: impl Fn(&SessionId) -> bool) -> Result<Vec<SessionId>> {
        let mut found = self.session_names()?;
        found.retain(|id| fits(id) && self.is_there(id));
        Ok(found)
    }

    /// Returns the ids that directories of sessions have, whatever is in those.
    fn session_names(&self) -> Result<Vec<SessionId>> {
        let dir = self.sessions_dir();
        let names = names_in(self.storage(), dir).context("cannot list the sessions", dir)?;
        let ids = names.iter().filter_map(|name| name.to_str()?.parse().ok());
        Ok(ids.collect())
    }

    /// Returns whether the directory of a session has a trail. An unreadable session must not
    /// hide the others: opening it fails with the reason.
    fn is_there(&self, id: &SessionId) -> bool {
        let trails = self.files(id).trails();
        !trails.is_ok_and(|trails| trails.is_empty())
    }

    /// Returns the short ids of all sessions, those in the trash included. Only names are read.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed.
    pub fn short_ids(&self) -> Result<ShortIds> {
        let mut ids = self.session_names()?;
        ids.extend(self.deleted_sessions()?);
        Ok(ShortIds::new(&ids))
    }

    /// Finds the session that a reference names: an id, a prefix of its
    /// [short id](SessionId::short) or of its id (4 characters or more), the name of a fork, or
    /// `latest`: see [`SessionInfo::latest`]. The first of these that fits counts. A reference
    /// is never a path.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) if no session matches, and with
    /// [`Ambiguous`](ErrorKind::Ambiguous) if several do.
    pub fn resolve(&self, reference: &str) -> Result<SessionId> {
        if reference == "latest" {
            return self.latest(None);
        }
        let mut what = "session ids begin with";
        let mut fitting = match is_id_like(reference) {
            true => named_by(self.session_names()?, reference, |id| self.is_there(id)),
            false => Vec::new(),
        };
        if fitting.is_empty() {
            what = "forks are named";
            fitting = self.forks_named(reference)?;
        }
        fitting.sort_unstable();
        match fitting.len() {
            0 => Err(self.no_such_session(reference)?),
            1 => Ok(fitting.remove(0)),
            n => {
                let what = format!("{n} {what} {}", quoted(reference));
                Err(Error::ambiguous(what, fitting))
            }
        }
    }

    /// Returns the forks of a name.
    fn forks_named(&self, name: &str) -> Result<Vec<SessionId>> {
        if !is_name_like(name) {
            return Ok(Vec::new());
        }
        let is_named = |id: &SessionId| {
            // One unreadable session must not hide the others.
            let info = self.read_session(id).and_then(|reader| reader.info());
            info.is_ok_and(|info| info.name.as_deref() == Some(name))
        };
        let mut named = self.sessions()?;
        named.retain(is_named);
        Ok(named)
    }

    /// Returns the error for a reference that fits no session.
    fn no_such_session(&self, reference: &str) -> Result<Error> {
        let quoted = quoted(reference);
        if !is_id_like(reference) {
            return Ok(Error::invalid(format!(
                "{quoted} is not a session; give an id, a prefix of {SHORTEST}+ characters, \
                 a fork's name, or latest"
            )));
        }
        if reference.len() < SHORTEST {
            return Ok(Error::invalid(format!(
                "{quoted} is too short for a session; give {SHORTEST} characters or more"
            )));
        }
        let deleted = self.like_deleted(reference)?;
        Ok(deleted.unwrap_or_else(|| {
            let what = format!("no session begins with {quoted}");
            Error::new(ErrorKind::NotFound, what)
        }))
    }

    /// Finds the session that a reference names, as [`resolve`](Self::resolve) does, but
    /// `latest` prefers sessions that work in `workspace_root`.
    ///
    /// # Errors
    ///
    /// Fails as [`resolve`](Self::resolve) does.
    pub fn resolve_in(&self, reference: &str, workspace_root: &Path) -> Result<SessionId> {
        match reference {
            "latest" => self.latest(Some(workspace_root)),
            _ => self.resolve(reference),
        }
    }

    /// Returns the error for a reference to a session in the trash.
    fn like_deleted(&self, reference: &str) -> Result<Option<Error>> {
        let mut ids = named_by(self.deleted_sessions()?, reference, |_| true);
        if ids.is_empty() {
            ids = named_by(self.purged_sessions()?, reference, |_| true);
        }
        match ids.as_slice() {
            [id] => Ok(Some(self.files(id).not_found())),
            _ => Ok(None),
        }
    }

    /// Opens a session for reading, even if it is in the trash.
    pub(crate) fn read_anywhere(&self, id: &SessionId) -> Result<SessionReader> {
        match self.read_session(id) {
            Err(error) if error.in_trash().is_some() => self.read_deleted(id),
            opened => opened,
        }
    }

    /// Returns the [latest](SessionInfo::latest) session: among those of the workspace if it
    /// has any, otherwise among all.
    fn latest(&self, workspace_root: Option<&Path>) -> Result<SessionId> {
        #[cfg(feature = "snapshots")]
        let homes = workspace_root.map(|root| SessionsHere::at(self, root));
        #[cfg(feature = "snapshots")]
        let is_here = |info: &&SessionInfo| homes.as_ref().is_some_and(|here| here.has(info));
        #[cfg(not(feature = "snapshots"))]
        let is_here = |info: &&SessionInfo| {
            workspace_root.is_some() && info.workspace_root.as_deref() == workspace_root
        };
        let all = self.infos()?;
        // One unreadable session must not hide the others.
        let readable = || all.iter().filter_map(|(_, info)| info.as_ref().ok());
        let here = SessionInfo::latest(readable().filter(is_here));
        match here.or_else(|| SessionInfo::latest(readable())) {
            Some(info) => Ok(info.id.clone()),
            None => {
                let what = match all.is_empty() {
                    true => "no sessions yet",
                    false => "no session is the latest: all are sub-agents' or unreadable",
                };
                Err(Error::new(ErrorKind::NotFound, what).at_path(self.root()))
            }
        }
    }

    /// Returns the details of every session, or the error of one that cannot be read.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed.
    pub fn infos(&self) -> Result<Vec<(SessionId, Result<SessionInfo>)>> {
        let infos = self.sessions()?.into_iter().map(|id| {
            let info = self.read_session(&id).and_then(|reader| reader.info());
            (id, info)
        });
        Ok(infos.collect())
    }

    pub(crate) fn files(&self, id: &SessionId) -> LogDir {
        LogDir::new(Arc::clone(&self.0.options.storage), &self.0.sessions, id)
    }

    pub(crate) fn sessions_dir(&self) -> &Path {
        &self.0.sessions
    }

    pub(crate) fn new_session_id(&self) -> Result<SessionId> {
        self.new_id().map(SessionId::from_uuid)
    }

    pub(crate) fn new_id(&self) -> Result<uuid::Uuid> {
        new_uuid(self.random()).map_err(|error| Error::machine("cannot create an id", error))
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        self.0.options.storage.as_ref()
    }

    pub(crate) fn shared_storage(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.0.options.storage)
    }

    pub(crate) fn random(&self) -> &dyn Randomness {
        self.0.options.random.as_ref()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.options.clock.now()
    }

    /// Returns the durability of appends, unless a session is opened with its own.
    pub fn durability(&self) -> Durability {
        self.0.options.durability
    }

    pub(crate) fn remote(&self) -> Option<&Remote> {
        self.0.options.remote.as_ref()
    }

    pub(crate) fn rotation(&self) -> u64 {
        self.0.options.rotation
    }

    pub(crate) fn keep_trails(&self) -> Option<u32> {
        self.0.options.keep_trails
    }

    pub(crate) fn holder(&self) -> Holder {
        Holder {
            pid: std::process::id(),
            program: self.0.options.program.clone(),
            since: self.now(),
        }
    }
}
