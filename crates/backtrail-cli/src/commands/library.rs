//! The store, as screens and pages see it. Each method is in the file of its subject.

mod actions;
mod agents;
mod blame;
mod changes;
mod costs;
mod diff_lines;
mod edits;
mod files;
#[cfg(test)]
mod lab;
mod moments;
mod next_undo;
mod pages;
#[cfg(test)]
mod player;
mod search;
mod sessions;
mod site;
#[cfg(test)]
mod testing;
mod timeline;
mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backtrail::{SessionId, SessionInfo, SessionReader, Store, WorkspaceId};
use backtrail_index::{Index, IndexOptions, Prices, Project};
use backtrail_view::library as tui;
use backtrail_view::library::{
    Action, Between, BlameLine, Change, Changes, ChangesOf, Costs, CostsBy, Failure, FileDiff,
    Freshness, Library, Moment, OnConflict, Page, PageRequest, Place, Plan, Report, Scope,
    SearchResults, SessionHead, SessionList, Timeline, Watch,
};

use jiff::tz::TimeZone;

use self::actions::Plans;
use self::next_undo::NextUndo;
use super::conversation::changes::Changes as TurnChanges;
use super::conversation::sub_agents::SubAgents;
use super::require_files_store;
use crate::error::{CommandError, Result};
use crate::home;
use crate::layout::{Line, Span};
use crate::settings::Settings;
use crate::text::{clean, one_line, visible};
use crate::ui::Ui;

/// The answer of a library.
type Answer<T> = tui::Answer<T>;

/// How old the answers of a search may be while sessions grow.
const STALE: Duration = Duration::from_secs(2);
/// How old they may be otherwise: not every session is watched.
const OLDEST: Duration = Duration::from_secs(30);
/// For how long it is remembered what the turns of a session changed, and whom they started.
const REMEMBERED: Duration = Duration::from_secs(5);

/// A store, and the workspace here.
#[derive(Debug)]
pub(super) struct StoreLibrary {
    pub(super) store: Store,
    /// The root of the workspace here, if there is one.
    pub(super) root: Option<PathBuf>,
    /// What commands need to know of the command line. It prints nothing.
    ui: Ui,
    /// What was planned and not done yet.
    plans: Plans,
    /// What undo would do, as far as it is known.
    next_undo: NextUndo,
    /// The project here.
    project: Option<Project>,
    /// The index, as it was when it last caught up.
    index: LastIndex,
    /// What the turns of the open session changed, and the sub-agents that they started.
    changes: TurnMemory,
    /// What is watched, if anything is.
    watched: Arc<Mutex<Option<watch::WatchedSessions>>>,
    /// What only the pages need.
    site: site::SiteState,
}

/// The index that caught up last, with its time.
type LastIndex = Arc<Mutex<Option<(Instant, Arc<Index>)>>>;

/// What it takes to open the index.
struct IndexAccess {
    store: Store,
    last: LastIndex,
    watched: Arc<Mutex<Option<watch::WatchedSessions>>>,
}

impl IndexAccess {
    /// Returns an index that catches up before its first answer, and is the one that others ask.
    fn fresh(&self) -> Result<Arc<Index>> {
        let options = index_options(&self.store)?.once();
        let index = Arc::new(Index::open(&self.store, options)?);
        *lock(&self.last) = Some((Instant::now(), Arc::clone(&index)));
        Ok(index)
    }
}

fn index_options(store: &Store) -> Result<IndexOptions> {
    let prices = Prices::with_own(Settings::read(store.root())?.prices.value);
    Ok(IndexOptions::new()
        .prices(prices)
        .time_zone(TimeZone::system()))
}

/// What the turns of a session did, for a while. Cheap to clone.
#[derive(Debug, Clone, Default)]
struct TurnMemory(Arc<Mutex<Option<KnownTurns>>>);

#[derive(Debug, Clone)]
struct KnownTurns {
    session: SessionId,
    at: Instant,
    changes: Arc<TurnChanges>,
    sub_agents: Arc<SubAgents>,
}

impl TurnMemory {
    /// Forgets it: the workspace or the session changed.
    fn forget(&self) {
        *lock(&self.0) = None;
    }
}

impl StoreLibrary {
    /// Opens the store that the command line names.
    pub(super) fn open(ui: &Ui) -> Result<Self> {
        let store = require_files_store(ui)?;
        let root = home::workspace_root(&store);
        Ok(Self::new(store, root, ui.quiet()))
    }

    /// Makes a library of a store, in a directory.
    pub(super) fn new(store: Store, root: Option<PathBuf>, ui: Ui) -> Self {
        Self {
            ui,
            plans: Plans::default(),
            next_undo: NextUndo::default(),
            project: root.as_deref().map(|root| Project::of(root, None)),
            store,
            root,
            index: Arc::default(),
            changes: TurnMemory::default(),
            watched: Arc::default(),
            site: site::SiteState::default(),
        }
    }

    /// Returns the same store as it is seen from another workspace. Its plans are its own; what is
    /// known of sessions and what keeps the process from ending is shared.
    fn seen_from(&self, root: PathBuf) -> Self {
        Self {
            index: Arc::clone(&self.index),
            changes: self.changes.clone(),
            watched: Arc::clone(&self.watched),
            plans: self.plans.beside(),
            site: self.site.beside(),
            ..Self::new(self.store.clone(), Some(root), self.ui.quiet())
        }
    }

    /// Waits until nothing moves files, and lets nothing begin to: the process ends then. An undo
    /// that began is done as a whole.
    pub(super) fn close(&self) {
        self.plans.gate.close();
    }

    /// Returns the name of the workspace here.
    fn workspace_name(&self) -> Option<String> {
        let name = self.root.as_deref()?.file_name()?;
        Some(one_line(&visible(&name.to_string_lossy()), 60))
    }

    /// Opens the index as it was left: at once, and possibly old.
    fn index_as_left(&self) -> Result<Index> {
        Ok(Index::open(
            &self.store,
            index_options(&self.store)?.as_left(),
        )?)
    }

    /// Returns an index that catches up before its first answer.
    fn fresh_index(&self) -> Result<Arc<Index>> {
        self.index_access().fresh()
    }

    /// Returns what a thread needs to open the index.
    fn index_access(&self) -> IndexAccess {
        IndexAccess {
            store: self.store.clone(),
            last: Arc::clone(&self.index),
            watched: Arc::clone(&self.watched),
        }
    }

    /// Returns the index that caught up last, if that was a moment ago or nothing changed since;
    /// else a new one.
    fn recent_index(&self) -> Result<Arc<Index>> {
        let known = lock(&self.index).clone();
        match known {
            Some((at, index)) if at.elapsed() < STALE => Ok(index),
            Some((at, index)) if at.elapsed() < OLDEST && !self.is_changed() => Ok(index),
            _ => self.fresh_index(),
        }
    }

    /// Returns whether the store may have changed since the index caught up.
    fn is_changed(&self) -> bool {
        let watched = lock(&self.watched);
        watched.as_ref().is_none_or(|it| it.take_changed())
    }

    /// Returns what the turns of a session changed, and the sub-agents that they started. Finding
    /// out reads the whole trail of the workspace, so it is remembered from page to page.
    fn turns_of(&self, reader: &SessionReader, info: &SessionInfo) -> KnownTurns {
        if let Some(known) = &*lock(&self.changes.0)
            && known.session == info.id
            && known.at.elapsed() < REMEMBERED
        {
            return known.clone();
        }
        let known = KnownTurns {
            session: info.id.clone(),
            at: Instant::now(),
            changes: Arc::new(TurnChanges::find(&self.store, reader, info)),
            sub_agents: Arc::new(self.sub_agents_of(reader)),
        };
        *lock(&self.changes.0) = Some(known.clone());
        known
    }

    /// Returns the sub-agents that only their own sessions name, as far as the index knows them: a
    /// conversation does not wait for it.
    fn sub_agents_of(&self, reader: &SessionReader) -> SubAgents {
        let index = self.index_as_left();
        let found = index.map(|index| SubAgents::find(&index, &self.store, reader));
        found.unwrap_or_default()
    }

    /// Returns what must be forgotten when the workspace or a session changes.
    fn turn_memory(&self) -> TurnMemory {
        self.changes.clone()
    }

    /// Watches a session that is shown beside others.
    fn show_session(&self, id: &SessionId) {
        if let Some(watched) = &*lock(&self.watched) {
            watched.show(id);
        }
    }

    /// Watches a workspace that is looked at.
    fn show_workspace(&self, id: &WorkspaceId) {
        if let Some(watched) = &*lock(&self.watched) {
            watched.add_workspace(id);
        }
    }

    /// Takes note of the session that is read.
    fn open_session(&self, id: &SessionId) {
        if let Some(watched) = &mut *lock(&self.watched) {
            watched.open(id);
        }
    }
}

/// Makes a line of a file or an output harmless: escapes are visible, and tabs are spaces.
fn plain(text: &str) -> String {
    visible(text).replace('\t', "    ").replace('\n', " ")
}

/// Locks something that stays usable whatever happened to others who did.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns an error of the command into a message on the screen.
fn failure(error: CommandError) -> Failure {
    let text = error.with_causes();
    let path = error.path.as_deref().map(Path::to_string_lossy);
    let message = match path.filter(|path| !text.contains(&**path)) {
        Some(path) => format!("{text} (in {path})"),
        None => text,
    };
    Failure {
        message: clean(&message).into_owned(),
        hints: error
            .hints
            .iter()
            .map(|hint| clean(hint).into_owned())
            .collect(),
    }
}

/// Returns the id that a text is.
fn session_id(text: &str) -> Answer<SessionId> {
    let parsed = text.parse::<SessionId>();
    parsed.map_err(|error| failure(CommandError::from(error)))
}

/// Turns lines into those of the screens.
fn tui_lines(lines: Vec<Line>) -> Vec<tui::Line> {
    let span = |span: Span| tui::Span {
        style: span.style,
        text: span.text,
    };
    let line = |line: Line| line.into_iter().map(span).collect();
    lines.into_iter().map(line).collect()
}

impl Library for StoreLibrary {
    fn sessions(&self, scope: Scope, freshness: Freshness) -> Answer<SessionList> {
        sessions::list(self, scope, freshness)
    }

    fn head(&self, session: &str) -> Answer<SessionHead> {
        sessions::head(self, session)
    }

    fn page(&self, request: &PageRequest) -> Answer<Page> {
        pages::page(self, request)
    }

    fn text(&self, place: &Place) -> Answer<String> {
        pages::text(self, place)
    }

    fn prompt_from(&self, place: &Place, forwards: bool) -> Answer<Option<u64>> {
        pages::prompt_from(self, place, forwards)
    }

    fn changes(&self, of: &ChangesOf) -> Answer<Changes> {
        changes::changes(self, of)
    }

    fn diff(&self, of: &ChangesOf, between: Option<&Between>, path: &str) -> Answer<FileDiff> {
        changes::diff(self, of, between, path)
    }

    fn files(&self, workspace: &str, moment: &Moment) -> Answer<Vec<String>> {
        files::files(self, workspace, moment)
    }

    fn file(&self, workspace: &str, moment: &Moment, path: &str) -> Answer<String> {
        files::file(self, workspace, moment, path)
    }

    fn blame(&self, workspace: &str, moment: &Moment, path: &str) -> Answer<Vec<BlameLine>> {
        blame::blame(self, workspace, moment, path)
    }

    fn timeline(&self, limit: usize) -> Answer<Timeline> {
        timeline::timeline(self, limit)
    }

    fn search(&self, words: &str, scope: Scope) -> Answer<SearchResults> {
        search::search(self, words, scope)
    }

    fn costs(&self, by: CostsBy, scope: Scope) -> Answer<Costs> {
        costs::costs(self, by, scope)
    }

    fn next_undo(&self) -> String {
        self.next_undo.ask(self)
    }

    fn plan(&self, action: &Action) -> Answer<Plan> {
        actions::plan(self, action)
    }

    fn apply(&self, token: u64, on_conflict: OnConflict) -> Answer<Report> {
        actions::apply(self, token, on_conflict)
    }

    fn agents(&self, session: &str) -> Vec<(String, String)> {
        agents::agents(self, session)
    }

    fn continue_command(&self, place: &Place, agent: &str) -> Vec<OsString> {
        agents::continue_command(self, place, agent)
    }

    fn exports(&self, session: &str) -> Vec<(String, String)> {
        agents::exports(self, session)
    }

    fn watch(&self, tell: Box<dyn Fn(Change) + Send>) -> Answer<Box<dyn Watch>> {
        watch::watch(self, tell)
    }
}

#[cfg(test)]
#[path = "library/library_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "library/files_tests.rs"]
mod files_tests;
