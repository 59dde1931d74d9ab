//! What the pages need besides what the screens need. Each subject is in a file of its own.

mod context_parts;
mod dearest_turns;
mod exports;
mod find_sessions;
mod health;
mod outline;
mod path_memory;
mod protection;
mod records;
mod refresher;
mod session_page;
mod spending;
mod workspaces;

use std::sync::Arc;

use backtrail_view::library::SearchResults;
use backtrail_web::library::{
    ContextPart, DearTurn, Exported, FilterChoices, Health, Outline, Records, RecordsRequest,
    Redaction, SessionPage, SessionQuery, SessionsFound, Site, SpendingQuery, SpendingView,
    WorkspaceEntry,
};

use self::path_memory::PathMemory;
pub(super) use self::refresher::Refresher;
use self::workspaces::Others;
use super::{Answer, StoreLibrary};

/// What a library keeps for the pages.
#[derive(Debug, Default)]
pub(super) struct SiteState {
    /// Brings the catalogue up to date behind the answers.
    pub(super) refresher: Refresher,
    paths: PathMemory,
    others: Others,
}

impl SiteState {
    /// Returns what another workspace of the same store shares.
    pub(super) fn beside(&self) -> Self {
        Self {
            refresher: self.refresher.clone(),
            paths: self.paths.clone(),
            others: Others::default(),
        }
    }
}

impl Site for StoreLibrary {
    fn find_sessions(&self, query: &SessionQuery) -> Answer<SessionsFound> {
        find_sessions::find(self, query)
    }

    fn find_messages(&self, words: &str, query: &SessionQuery) -> Answer<SearchResults> {
        find_sessions::find_messages(self, words, query)
    }

    fn choices(&self) -> Answer<FilterChoices> {
        find_sessions::choices(self)
    }

    fn session_page(&self, reference: &str) -> Answer<SessionPage> {
        session_page::session_page(self, reference)
    }

    fn records(&self, request: &RecordsRequest) -> Answer<Records> {
        records::records(self, request)
    }

    fn outline(&self, session: &str) -> Answer<Outline> {
        outline::outline(self, session)
    }

    fn export(&self, session: &str, format: &str, redaction: Redaction) -> Answer<Exported> {
        exports::export(self, session, format, redaction)
    }

    fn spending(&self, query: &SpendingQuery) -> Answer<SpendingView> {
        spending::spending(self, query)
    }

    fn dearest_turns(&self, query: &SpendingQuery) -> Answer<Vec<DearTurn>> {
        dearest_turns::dearest_turns(self, query)
    }

    fn context_parts(&self, session: &str) -> Answer<Vec<ContextPart>> {
        context_parts::context_parts(self, session)
    }

    fn health(&self) -> Answer<Health> {
        health::health(self)
    }

    fn workspaces(&self) -> Answer<Vec<WorkspaceEntry>> {
        workspaces::workspaces(self)
    }

    fn in_workspace(&self, workspace: &str) -> Answer<Arc<dyn Site>> {
        workspaces::in_workspace(self, workspace)
    }
}

#[cfg(test)]
#[path = "site/site_tests.rs"]
mod tests;
