//! The public interface to the catalogue and the search index.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backtrail::plumbing::{LinePart, LinkRefused, ShortIds};
use backtrail::{SessionId, Store, Timestamp};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::blocks::UsageBlock;
use crate::catalogue::Catalogue;
use crate::catch_up::{IndexState, Wants};
use crate::error::{Error, Result};
use crate::files::find_link;
use crate::filter::Filter;
use crate::prices::Prices;
use crate::rows::{Field, Group, SessionRow, SpendingReport, ToolReport, TurnRow, UnpricedModel};
use crate::search::{SearchAnswer, SearchQuery, SearchRequest};

/// Options for opening an index.
#[derive(Clone, Default)]
pub struct IndexOptions {
    pub(crate) prices: Prices,
    pub(crate) patience: Option<Duration>,
    pub(crate) time_zone: Option<TimeZone>,
    pub(crate) once: bool,
    pub(crate) as_left: bool,
    pub(crate) progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

/// The progress of catching up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// How many bytes of trails were read.
    pub done: u64,
    /// How many bytes are to be read.
    pub total: u64,
}

impl fmt::Debug for IndexOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexOptions").finish_non_exhaustive()
    }
}

impl IndexOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the user's own prices.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets how long to wait for another process that is catching up; the default is two
    /// seconds. After that, records that are not indexed yet are read in memory.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sets the time zone for days and months; the default is UTC.
    #[must_use]
    pub fn time_zone(mut self, zone: TimeZone) -> Self {
        self.time_zone = Some(zone);
        self
    }

    /// Catches up only before the first query, for callers that make several at one
    /// moment.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Answers at once from what is on disk, as the last process left it: nothing is caught up
    /// with and nothing is written. If there is nothing, or it cannot be trusted, the answers are
    /// those of an empty store.
    #[must_use]
    pub fn as_left(mut self) -> Self {
        self.as_left = true;
        self
    }

    /// Sets a callback for the progress of catching up, if that takes time.
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(tell));
        self
    }
}

/// The data derived from a store. It catches up with the trails before every query.
///
/// If it cannot be written, or if another process is busy with it for long, it is built
/// in memory with the same answers.
#[derive(Debug)]
pub struct Index {
    pub(crate) store: Store,
    pub(crate) options: IndexOptions,
    state: Mutex<IndexState>,
}

/// What catching up did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct CatchUp {
    /// How many bytes of trails were read.
    pub bytes: u64,
    /// How many sessions were changed, new or gone.
    pub sessions: u64,
    /// What was rebuilt because it was old, damaged or missing, with the reason.
    pub rebuilt: Vec<String>,
}

impl Index {
    /// Opens the data derived from a store. Nothing is read yet.
    ///
    /// # Errors
    ///
    /// Fails if the search index cannot be initialized.
    pub fn open(store: &Store, options: IndexOptions) -> Result<Self> {
        Ok(Self {
            store: store.clone(),
            options,
            state: Mutex::default(),
        })
    }

    /// Updates the catalogue and the search index on disk.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read. Data that cannot be written is not an error.
    pub fn catch_up(&self) -> Result<CatchUp> {
        self.with(Wants::EVERYTHING, |state| Ok(state.take_report()))
    }

    /// Rebuilds the catalogue and the search index beside the existing ones.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read, or if the new data cannot be written.
    pub fn rebuild(&self) -> Result<CatchUp> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = IndexState::default();
        self.bring_up(&mut state, Wants::REBUILD)?;
        if state.catalogue()?.is_in_memory() {
            let reason = match find_link(&self.dir()) {
                Some(link) => LinkRefused::at(&link),
                None => std::io::ErrorKind::PermissionDenied.into(),
            };
            let what = "cannot write derived data";
            return Err(Error::io(what, &self.dir(), reason));
        }
        Ok(state.take_report())
    }

    /// Returns what catching up did since the last call.
    pub fn report(&self) -> CatchUp {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.take_report()
    }

    /// Returns the matching sessions, pinned ones first, then the newest.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn sessions(&self, filter: &Filter) -> Result<Vec<SessionRow>> {
        self.ask(|catalogue| catalogue.sessions(filter))
    }

    /// Searches all messages, tool calls and runs.
    ///
    /// All words must be in one record. `file:src/a.rs` or `file:auth` in the query is a filter:
    /// only sessions that touched such a file count, by a tool call whose input names it or by a
    /// checkpoint in which it changed. Without any words, the calls themselves are found.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Query`] if the query cannot be parsed, and otherwise if the
    /// store cannot be read.
    pub fn search(&self, query: &SearchQuery) -> Result<SearchAnswer> {
        let request = SearchRequest::new(query)?;
        self.with(Wants::SEARCH, |state| request.look(self, state))
    }

    /// Returns a query in which words that no record contains are replaced by the most similar
    /// ones that some do; `None` if there is nothing to replace.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn respelled(&self, words: &str) -> Result<Option<String>> {
        self.with(Wants::SEARCH, |state| {
            let Some(index) = &state.search else {
                return Ok(None);
            };
            let mut changed = false;
            let mut all = Vec::new();
            for word in words.split_whitespace() {
                let better = crate::search::respelled(index, word)?;
                changed |= better.is_some();
                all.push(better.unwrap_or_else(|| word.to_owned()));
            }
            Ok(changed.then(|| all.join(" ")))
        })
    }

    /// Returns the spending that matches a filter.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn spending(&self, filter: &Filter) -> Result<SpendingReport> {
        self.spending_by(filter, &[])
    }

    /// Returns the spending that matches a filter, in total and by up to two kinds of groups. By
    /// one kind of time, times without any spending are included: between the first and the last
    /// call, or in the time of the filter, which ends now.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn spending_by(&self, filter: &Filter, by: &[Group]) -> Result<SpendingReport> {
        let zone = self.options.time_zone.clone().unwrap_or(TimeZone::UTC);
        let now = Timestamp::from(std::time::SystemTime::now());
        self.ask(|catalogue| catalogue.spending(filter, by, &zone, Some(now)))
    }

    /// Counts the calls of tools that match a filter, by up to two kinds of groups.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn tool_calls(&self, filter: &Filter, by: &[Group]) -> Result<ToolReport> {
        let zone = self.options.time_zone.clone().unwrap_or(TimeZone::UTC);
        self.ask(|catalogue| catalogue.tools(filter, by, &zone))
    }

    /// Returns the blocks of five hours that the calls that match a filter are in.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn blocks(&self, filter: &Filter, now: Timestamp) -> Result<Vec<UsageBlock>> {
        let calls = self.ask(|catalogue| catalogue.calls(filter))?;
        Ok(crate::blocks::of_calls(&calls, now.as_millis()))
    }

    /// Returns how many prompts the sessions with spending that match a filter got.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn prompts(&self, filter: &Filter) -> Result<u64> {
        self.ask(|catalogue| catalogue.prompts(filter))
    }

    /// Returns what the turns of a session cost, in order: of the calls that match the times and
    /// models of a filter.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn turns(&self, session: &SessionId, filter: &Filter) -> Result<Vec<TurnRow>> {
        self.ask(|catalogue| catalogue.turns(session, filter))
    }

    /// Returns the models that answered sessions, by session: the one with the most calls.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn main_models(&self, sessions: &[&SessionId]) -> Result<HashMap<String, String>> {
        self.ask(|catalogue| catalogue.main_models(sessions))
    }

    /// Returns the models of the calls that match a filter and have no price, the one with the
    /// most tokens first.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn unpriced(&self, filter: &Filter) -> Result<Vec<UnpricedModel>> {
        self.ask(|catalogue| catalogue.unpriced(filter))
    }

    /// Returns all values of a field: agents, projects, models, tags or session ids.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn values(&self, field: Field) -> Result<Vec<String>> {
        self.ask(|catalogue| catalogue.values(field))
    }

    /// Returns the short ids of all sessions, those in the trash included. No session is read.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn short_ids(&self) -> Result<ShortIds> {
        let mut hashes = self.ask(Catalogue::short_hashes)?;
        let deleted = self.store.deleted_sessions()?;
        hashes.extend(deleted.iter().map(ShortIds::hash));
        Ok(ShortIds::of_hashes(hashes))
    }

    /// Returns how many prompts come before record `seq` on a line of history, and the record up to
    /// which the catalogue knows the line; `None` beyond record 50,000, where counting takes long.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn turns_before(&self, line: &[LinePart], seq: u64) -> Result<Option<(u64, u64)>> {
        self.ask(|catalogue| catalogue.turns_before(line, seq))
    }

    /// Returns how many different files sessions changed.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn files_changed(&self, sessions: &[&SessionId]) -> Result<u64> {
        self.ask(|catalogue| catalogue.files_changed(sessions))
    }

    /// Returns the directory that holds derived data.
    pub fn dir(&self) -> PathBuf {
        self.store.root().join("derived")
    }

    /// Queries the catalogue after catching up.
    fn ask<T>(&self, ask: impl Fn(&Catalogue) -> Result<T>) -> Result<T> {
        self.with(Wants::CATALOGUE, |state| ask(state.catalogue()?))
    }

    /// Runs a query after catching up. Data that turns out to be damaged is rebuilt, and
    /// the query repeated.
    fn with<T>(&self, wants: Wants, ask: impl Fn(&mut IndexState) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self
            .bring_up(&mut state, wants)
            .and_then(|()| ask(&mut state));
        match asked {
            Err(error) if error.is_damage() => {
                let report = state.take_report();
                *state = IndexState::default();
                state.put_report(report, &error);
                self.bring_up(&mut state, wants.rebuild_if(&error))?;
                ask(&mut state)
            }
            asked => asked,
        }
    }
}

impl Error {
    /// Returns whether derived data is damaged and must be rebuilt.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Database { source, .. } => match source {
                rusqlite::Error::SqliteFailure(failure, _) => matches!(
                    failure.code,
                    rusqlite::ErrorCode::DatabaseCorrupt
                        | rusqlite::ErrorCode::NotADatabase
                        | rusqlite::ErrorCode::ConstraintViolation
                        | rusqlite::ErrorCode::TypeMismatch
                        // A missing table or column.
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

    /// Returns whether the directory of derived data cannot be written.
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
