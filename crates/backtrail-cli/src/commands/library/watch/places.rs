//! Which directories of a store are watched, and what a change in them means.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use backtrail::{SessionId, Store, WorkspaceId};
use backtrail_formats::{Interest, Notice, Notifier};
use backtrail_index::known_sessions;

use super::super::lock;
use crate::files::entries;

/// How many sessions are watched besides the open one: those that were active last.
const RECENT: usize = 256;
/// How many sessions that were shown are watched, too.
const SHOWN: usize = 64;
/// The directories of a store in which others come and go.
const PARTS: [&str; 3] = ["sessions", "workspaces", "trash"];

/// What changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// The sessions that grew.
    pub(super) sessions: BTreeSet<SessionId>,
    /// Whether sessions came or went.
    pub(super) is_list_changed: bool,
    pub(super) is_workspace_changed: bool,
}

/// The directories that are watched.
#[derive(Debug)]
pub(super) struct WatchedPlaces {
    notifier: Notifier,
    store: Store,
    sessions: PathBuf,
    workspaces: PathBuf,
    /// The directory that is worked in.
    root: Option<PathBuf>,
    /// The directory of its workspace, once there is one.
    workspace: Option<PathBuf>,
    /// The directories of other workspaces that are looked at.
    others: BTreeSet<PathBuf>,
    open: Option<SessionId>,
    /// The sessions that were shown last, the oldest first.
    shown: VecDeque<SessionId>,
    /// The sessions that were active last, the oldest first.
    recent: VecDeque<SessionId>,
}

impl WatchedPlaces {
    pub(super) fn new(store: &Store, root: Option<&Path>) -> Self {
        let dir = |name: &str| store.root().join(name);
        let mut places = Self {
            notifier: Notifier::new(usize::MAX),
            store: store.clone(),
            sessions: dir("sessions"),
            workspaces: dir("workspaces"),
            root: root.map(Path::to_owned),
            workspace: None,
            others: BTreeSet::new(),
            open: None,
            shown: VecDeque::new(),
            recent: VecDeque::new(),
        };
        let directory = store.root();
        places
            .notifier
            .watch(directory, Interest::NewDirectories)
            .ok();
        for part in PARTS {
            places.watch_part(&dir(part));
        }
        match places.find_workspace() {
            Some(workspace) => drop(places.notifier.watch(&workspace, Interest::Contents)),
            // It may be one that has no record yet.
            None => places.look_into(&places.workspaces.clone(), &mut News::default()),
        }
        places
    }

    /// Watches a directory of the store. One that is not there yet is seen when it comes.
    fn watch_part(&mut self, dir: &Path) {
        self.notifier.watch(dir, Interest::NewDirectories).ok();
    }

    /// Returns the directory of the workspace that is worked in.
    fn find_workspace(&mut self) -> Option<PathBuf> {
        if self.workspace.is_none() {
            let root = self.root.as_deref()?;
            let found = self.store.find_workspace(root).ok()??;
            self.workspace = Some(self.workspaces.join(found.id().as_str()));
        }
        self.workspace.clone()
    }

    fn watch_session(&mut self, id: &SessionId) {
        let dir = self.sessions.join(id.as_str());
        // A session that is gone does not grow.
        self.notifier.watch(&dir, Interest::Contents).ok();
    }

    fn forget_session(&mut self, id: &SessionId) {
        let is_open = self.open.as_ref() == Some(id) || self.shown.contains(id);
        if !is_open && !self.recent.contains(id) {
            self.notifier.forget(&self.sessions.join(id.as_str()));
        }
    }

    fn open(&mut self, id: &SessionId) {
        if self.open.as_ref() != Some(id) {
            self.watch_session(id);
            if let Some(before) = self.open.replace(id.clone()) {
                self.forget_session(&before);
            }
        }
    }

    /// Watches a session that is shown beside others.
    fn show(&mut self, id: &SessionId) {
        let before = self.shown.iter().position(|shown| shown == id);
        match before.and_then(|before| self.shown.remove(before)) {
            Some(_) => {}
            None => self.watch_session(id),
        }
        self.shown.push_back(id.clone());
        if self.shown.len() > SHOWN
            && let Some(oldest) = self.shown.pop_front()
        {
            self.forget_session(&oldest);
        }
    }

    /// Watches another workspace.
    fn add_workspace(&mut self, id: &WorkspaceId) {
        let dir = self.workspaces.join(id.as_str());
        if self.find_workspace().as_ref() != Some(&dir) && self.others.insert(dir.clone()) {
            self.notifier.watch(&dir, Interest::Contents).ok();
        }
    }

    fn add_recent(&mut self, id: SessionId) {
        if self.recent.contains(&id) {
            return;
        }
        self.watch_session(&id);
        self.recent.push_back(id);
        if self.recent.len() > RECENT
            && let Some(oldest) = self.recent.pop_front()
        {
            self.forget_session(&oldest);
        }
    }

    fn news_of(&mut self, notices: &[Notice]) -> News {
        let mut news = News::default();
        for notice in notices {
            match notice {
                Notice::File(path) => self.file_changed(path, &mut news),
                Notice::Directory(path) => self.directory_came(path, &mut news),
                Notice::Gone => news.is_list_changed = true,
                Notice::Lost => {
                    news.is_list_changed = true;
                    news.is_workspace_changed = true;
                    news.sessions.extend(self.open.clone());
                    news.sessions.extend(self.shown.iter().cloned());
                }
            }
        }
        news
    }

    fn file_changed(&mut self, path: &Path, news: &mut News) {
        // Locks and payloads change, too.
        if path.extension().is_none_or(|it| it != "jsonl") {
            return;
        }
        if path.starts_with(&self.workspaces) {
            let is_here = self.find_workspace().is_some_and(|it| path.starts_with(it));
            let is_other = path.parent().is_some_and(|dir| self.others.contains(dir));
            news.is_workspace_changed |= is_here || is_other;
        }
        news.sessions.extend(self.session_at(path.parent()));
    }

    fn directory_came(&mut self, path: &Path, news: &mut News) {
        if path.parent() == Some(self.store.root()) {
            return self.part_came(path, news);
        }
        if path.starts_with(&self.workspaces) {
            // Whose it is cannot be told before its first record is there.
            self.notifier.watch(path, Interest::Contents).ok();
            news.is_workspace_changed |= self.find_workspace().is_some_and(|it| it == path);
            return;
        }
        news.is_list_changed = true;
        if let Some(id) = self.session_at(Some(path)) {
            self.add_recent(id);
        }
    }

    /// Watches a new directory of the store, and what came into it before that.
    fn part_came(&mut self, path: &Path, news: &mut News) {
        if !PARTS.iter().any(|part| path.ends_with(part)) {
            return;
        }
        self.watch_part(path);
        self.look_into(path, news);
    }

    /// Takes the directories in one as if they came just now.
    fn look_into(&mut self, path: &Path, news: &mut News) {
        let inside = entries(path).into_iter().flatten();
        for dir in inside.take(RECENT) {
            self.directory_came(&dir, news);
        }
    }

    /// Returns the session whose directory a path is.
    fn session_at(&self, dir: Option<&Path>) -> Option<SessionId> {
        let name = dir?.strip_prefix(&self.sessions).ok()?;
        name.to_str()?.parse().ok()
    }
}

/// The watched sessions, shared with the thread that waits for changes. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::commands::library) struct WatchedSessions {
    places: Arc<Mutex<WatchedPlaces>>,
    is_changed: Arc<AtomicBool>,
}

impl WatchedSessions {
    pub(super) fn new(places: WatchedPlaces, is_changed: Arc<AtomicBool>) -> Self {
        Self {
            places: Arc::new(Mutex::new(places)),
            is_changed,
        }
    }

    /// Watches the session that is read.
    pub(in crate::commands::library) fn open(&mut self, id: &SessionId) {
        lock(&self.places).open(id);
    }

    /// Watches a session that is shown beside others.
    pub(in crate::commands::library) fn show(&self, id: &SessionId) {
        lock(&self.places).show(id);
    }

    /// Watches another workspace.
    pub(in crate::commands::library) fn add_workspace(&self, id: &WorkspaceId) {
        lock(&self.places).add_workspace(id);
    }

    /// Returns whether something changed since the last call.
    pub(in crate::commands::library) fn take_changed(&self) -> bool {
        self.is_changed.swap(false, Ordering::AcqRel)
    }

    /// Watches the sessions that were active last.
    pub(in crate::commands::library) fn watch_recent(&self, store: &Store) {
        let known = known_sessions(store).into_iter().take(RECENT);
        let ids: Vec<SessionId> = known.filter_map(|it| it.id.parse().ok()).collect();
        let mut places = lock(&self.places);
        ids.into_iter().rev().for_each(|id| places.add_recent(id));
    }

    /// Returns what can be read from once something changed.
    pub(super) fn queue(&self) -> Option<OwnedFd> {
        let places = lock(&self.places);
        places.notifier.as_fd()?.try_clone_to_owned().ok()
    }

    pub(super) fn read(&mut self) -> Vec<Notice> {
        let notices = lock(&self.places).notifier.read();
        notices.unwrap_or_default()
    }

    pub(super) fn news_of(&mut self, notices: &[Notice]) -> News {
        lock(&self.places).news_of(notices)
    }
}
