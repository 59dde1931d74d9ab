//! Catalogue and search together: what callers ask.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backtrail::{SessionId, Store};

use crate::error::Result;
use crate::filter::Filter;
use crate::prices::Prices;
use crate::rows::{Group, SessionRow, SpendingReport};
use crate::search::{SearchAnswer, SearchQuery};

/// How derived data is opened.
#[derive(Clone, Default)]
pub struct IndexOptions {
    pub(crate) prices: Prices,
    pub(crate) patience: Option<Duration>,
    pub(crate) time_zone: Option<jiff::tz::TimeZone>,
    pub(crate) progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

/// How far it has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// How many bytes of trails were read.
    pub done: u64,
    /// How many there are to read.
    pub total: u64,
}

impl fmt::Debug for IndexOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexOptions").finish_non_exhaustive()
    }
}

impl IndexOptions {
    /// Makes the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the user's own prices.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets how long to wait for another process that is catching up; two seconds unless
    /// it is set. After that, what is not indexed yet is read by the one who asks.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sets the time zone that days and months are counted in; UTC unless it is set.
    #[must_use]
    pub fn time_zone(mut self, zone: jiff::tz::TimeZone) -> Self {
        self.time_zone = Some(zone);
        self
    }

    /// Sets who is told how far it has caught up, where that takes time.
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(tell));
        self
    }
}

/// What is derived from a store. It catches up with the trails whenever it is asked.
#[derive(Debug)]
pub struct Index {
    store: Store,
    options: IndexOptions,
}

/// What catching up did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CatchUp {
    /// How many bytes of trails were read.
    pub bytes: u64,
    /// How many sessions had changed, were new or were gone.
    pub sessions: u64,
    /// What was built anew, and why: old, damaged or missing data.
    pub rebuilt: Vec<String>,
}

impl Index {
    /// Opens what is derived from a store. Nothing is read yet.
    pub fn open(store: &Store, options: IndexOptions) -> Result<Self> {
        Ok(Self {
            store: store.clone(),
            options,
        })
    }

    /// Brings catalogue and search up to date.
    pub fn catch_up(&self) -> Result<CatchUp> {
        Ok(CatchUp::default())
    }

    /// Builds catalogue and search anew, beside those that are there.
    pub fn rebuild(&self) -> Result<CatchUp> {
        Ok(CatchUp::default())
    }

    /// Returns the sessions that fit, pinned ones first, then the newest.
    pub fn sessions(&self, _filter: &Filter) -> Result<Vec<SessionRow>> {
        Ok(Vec::new())
    }

    /// Returns what is known of one session, if there is one; as of the last time that
    /// this `Index` was asked something else, which is when it caught up.
    pub fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        let filter = Filter {
            session: Some(id.clone()),
            ..Filter::default()
        };
        Ok(self.sessions(&filter)?.pop())
    }

    /// Returns the ids of all sessions, in order; like [`Index::session`] as of the last
    /// time that it caught up.
    pub fn ids(&self) -> Result<Vec<SessionId>> {
        let rows = self.sessions(&Filter::default())?;
        let mut ids: Vec<SessionId> = rows.into_iter().map(|row| row.id).collect();
        ids.sort();
        Ok(ids)
    }

    /// Returns what whoever asked should be told, and forgets it: what was damaged and
    /// built anew, what could not be written. Building for the first time is not among it.
    pub fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Looks for words in all that was said and done.
    pub fn search(&self, _query: &SearchQuery) -> Result<SearchAnswer> {
        Ok(SearchAnswer::default())
    }

    /// Returns what was spent on what fits, told apart by a group if that is wanted.
    pub fn spending(&self, _filter: &Filter, _by: Option<Group>) -> Result<SpendingReport> {
        Ok(SpendingReport::default())
    }

    /// Returns the directory that holds derived data.
    pub fn dir(&self) -> PathBuf {
        self.store.root().join("derived")
    }
}
