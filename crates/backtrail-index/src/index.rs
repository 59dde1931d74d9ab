//! Catalogue and search together: what callers ask.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backtrail::Store;
use jiff::tz::TimeZone;

use crate::catalogue::Catalogue;
use crate::catch_up::{State, Wants};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::prices::Prices;
use crate::rows::{Field, Group, SessionRow, SpendingReport};
use crate::search::{SearchAnswer, SearchQuery};

/// How derived data is opened.
#[derive(Clone, Default)]
pub struct IndexOptions {
    pub(crate) prices: Prices,
    pub(crate) patience: Option<Duration>,
    pub(crate) time_zone: Option<TimeZone>,
    pub(crate) once: bool,
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
    pub fn time_zone(mut self, zone: TimeZone) -> Self {
        self.time_zone = Some(zone);
        self
    }

    /// Catches up with the first question alone: for whoever asks several at one moment.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
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
///
/// One that cannot be written, or that another process is busy with for long, is made in
/// memory: the answers are the same.
#[derive(Debug)]
pub struct Index {
    pub(crate) store: Store,
    pub(crate) options: IndexOptions,
    state: Mutex<State>,
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
            state: Mutex::default(),
        })
    }

    /// Brings catalogue and search up to date, on disk.
    pub fn catch_up(&self) -> Result<CatchUp> {
        self.with(Wants::EVERYTHING, |state| Ok(state.take_report()))
    }

    /// Builds catalogue and search anew, beside those that are there.
    pub fn rebuild(&self) -> Result<CatchUp> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State::default();
        self.bring_up(&mut state, Wants::ANEW)?;
        if state.catalogue()?.is_in_memory() {
            let denied = std::io::ErrorKind::PermissionDenied.into();
            let what = "cannot write what is derived from the sessions";
            return Err(Error::io(what, &self.dir(), denied));
        }
        Ok(state.take_report())
    }

    /// Returns what catching up has done since this was last asked.
    pub fn report(&self) -> CatchUp {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.take_report()
    }

    /// Returns the sessions that fit, pinned ones first, then the newest.
    pub fn sessions(&self, filter: &Filter) -> Result<Vec<SessionRow>> {
        self.ask(|catalogue| catalogue.sessions(filter))
    }

    /// Looks for words in all that was said and done.
    pub fn search(&self, query: &SearchQuery) -> Result<SearchAnswer> {
        let looked = crate::look::Look::new(query)?;
        self.with(Wants::SEARCH, |state| looked.look(self, state))
    }

    /// Returns what was spent on what fits, told apart by a group if that is wanted.
    pub fn spending(&self, filter: &Filter, by: Option<Group>) -> Result<SpendingReport> {
        let zone = self.options.time_zone.clone().unwrap_or(TimeZone::UTC);
        self.ask(|catalogue| catalogue.spending(filter, by, &zone))
    }

    /// Returns the values that there are: agents, projects, models or tags.
    pub fn values(&self, field: Field) -> Result<Vec<String>> {
        self.ask(|catalogue| catalogue.values(field))
    }

    /// Returns the directory that holds derived data.
    pub fn dir(&self) -> PathBuf {
        self.store.root().join("derived")
    }

    /// Asks the catalogue, once it has caught up.
    fn ask<T>(&self, ask: impl Fn(&Catalogue) -> Result<T>) -> Result<T> {
        self.with(Wants::CATALOGUE, |state| ask(state.catalogue()?))
    }

    /// Asks what has caught up. What turns out to be damaged is built anew, and asked
    /// again.
    fn with<T>(&self, wants: Wants, ask: impl Fn(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self
            .bring_up(&mut state, wants)
            .and_then(|()| ask(&mut state));
        match asked {
            Err(error) if error.is_damage() => {
                let report = state.take_report();
                *state = State::default();
                state.put_report(report, &error);
                self.bring_up(&mut state, wants.anew_if(&error))?;
                ask(&mut state)
            }
            asked => asked,
        }
    }
}

impl Error {
    /// Returns whether derived data is damaged: what is built anew is not.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Database { source, .. } => match source {
                rusqlite::Error::SqliteFailure(failure, _) => matches!(
                    failure.code,
                    rusqlite::ErrorCode::DatabaseCorrupt
                        | rusqlite::ErrorCode::NotADatabase
                        | rusqlite::ErrorCode::ConstraintViolation
                        | rusqlite::ErrorCode::TypeMismatch
                        // A table or a column that is not there.
                        | rusqlite::ErrorCode::Unknown
                ),
                rusqlite::Error::SqlInputError { .. }
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..) => true,
                _ => false,
            },
            Self::Search { .. } => true,
            _ => false,
        }
    }

    /// Returns whether nothing can be written where derived data is.
    pub(crate) fn is_unwritable(&self) -> bool {
        match self {
            Self::Database {
                source: rusqlite::Error::SqliteFailure(failure, _),
                ..
            } => matches!(
                failure.code,
                rusqlite::ErrorCode::ReadOnly
                    | rusqlite::ErrorCode::DiskFull
                    | rusqlite::ErrorCode::CannotOpen
                    | rusqlite::ErrorCode::PermissionDenied
                    | rusqlite::ErrorCode::SystemIoFailure
                    | rusqlite::ErrorCode::DatabaseBusy
                    | rusqlite::ErrorCode::DatabaseLocked
            ),
            Self::Io { source, .. } => crate::lock::is_read_only(source),
            _ => false,
        }
    }
}
