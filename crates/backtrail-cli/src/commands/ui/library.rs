//! The store, as the screens see it. Each method is in the file of its subject.

use std::ffi::OsString;
use std::path::PathBuf;

use backtrail::Store;
use backtrail_tui::library as tui;
use backtrail_tui::library::{
    Action, Between, BlameLine, Change, Changes, ChangesOf, Costs, CostsBy, Failure, FileDiff,
    Freshness, Library, Moment, OnConflict, Page, PageRequest, Place, Plan, Report, Scope,
    SearchResults, SessionHead, SessionList, Timeline, Watch,
};

use super::super::require_files_store;
use super::actions::Plans;
use super::next_undo::NextUndo;
use super::{
    actions, agents, blame, changes, costs, files, pages, search, sessions, timeline, watch,
};
use crate::error::{CommandError, Result};
use crate::home;
use crate::text::clean;
use crate::ui::Ui;

/// The answer of a library.
pub(super) type Answer<T> = tui::Answer<T>;

/// A store, and the workspace here.
#[derive(Debug)]
pub(super) struct StoreLibrary {
    pub(super) store: Store,
    /// The root of the workspace here, if there is one.
    pub(super) root: Option<PathBuf>,
    /// What commands need to know of the command line. It prints nothing.
    pub(super) ui: Ui,
    /// What was planned and not done yet.
    pub(super) plans: Plans,
    /// What undo would do, as far as it is known.
    pub(super) next_undo: NextUndo,
}

impl StoreLibrary {
    /// Opens the store that the command line names.
    pub(super) fn open(ui: &Ui) -> Result<Self> {
        let store = require_files_store(ui)?;
        let root = home::workspace_root(&store);
        Ok(Self {
            store,
            root,
            ui: ui.quiet(),
            plans: Plans::default(),
            next_undo: NextUndo::default(),
        })
    }
}

/// Turns an error of the command into a message on the screen.
pub(super) fn failure(error: CommandError) -> Failure {
    Failure {
        message: clean(&error.with_causes()).into_owned(),
        hints: error
            .hints
            .iter()
            .map(|it| clean(it).into_owned())
            .collect(),
    }
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
