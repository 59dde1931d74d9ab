//! Imports single files when they change, at a cost that depends on what was added to them.
//!
//! It does what an import of everything does with each file. But it searches no directories
//! and lists no sessions, and it keeps the cache in memory: what it learns reaches the saved
//! cache from time to time. If that fails, the next import compares these files again.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use backtrail::Store;

use super::cache::{Cache, CachedFile};
use super::contained::{ContainerFile, take_apart};
use super::destination::Destination;
use super::excluded::{directory_of, is_excluded};
use super::file_import::{Done, Patience, import_file};
use super::found::{FoundFile, Search, file_stamp};
use super::report::ReadSession;
use crate::container::FileStamp;
use crate::error::{Error, Result};
use crate::event::Origin;
use crate::exclude::Exclude;
use crate::format::Format;

/// A file of an agent.
#[derive(Clone)]
pub(crate) struct AgentFile {
    pub(crate) format: &'static dyn Format,
    pub(crate) path: PathBuf,
}

/// What became of a file that changed, or of a session in it.
pub(crate) struct ImportedFile {
    pub(crate) file: AgentFile,
    pub(crate) outcome: Result<ImportOutcome>,
}

/// What became of a file.
pub(crate) enum ImportOutcome {
    /// It was read into these sessions, its own first.
    Read(Vec<ReadSession>),
    /// It is not imported before the session that it comes from.
    Waits {
        /// The agent's name for that session.
        parent: Option<String>,
    },
    /// It is gone, empty, not wanted, or has no session.
    Nothing,
}

/// Tells whether a session is imported, by the directory that it works in, if that is known.
/// Without one, all are.
pub(crate) type Wanted<'w> = Option<&'w dyn Fn(Option<&Path>) -> bool>;

/// Imports files that changed.
pub(crate) struct ChangeImporter {
    store: Store,
    exclude: Exclude,
    cache: Cache,
    /// Files that the saved cache does not know as they are.
    unsaved: BTreeSet<PathBuf>,
    /// Sessions in databases, as they were last seen.
    seen: HashMap<PathBuf, FileStamp>,
    /// Files of sessions that are not wanted.
    unwanted: BTreeSet<PathBuf>,
}

impl ChangeImporter {
    pub(crate) fn new(store: &Store, exclude: &Exclude) -> Self {
        Self {
            store: store.clone(),
            exclude: exclude.clone(),
            cache: Cache::load_saved(store).unwrap_or_default(),
            unsaved: BTreeSet::new(),
            seen: HashMap::new(),
            unwanted: BTreeSet::new(),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Notes the sessions that a database has now, so that only those that change from now on
    /// are imported. A database that cannot be read is imported whole when it changes.
    pub(crate) fn note_contents(&mut self, file: &AgentFile) {
        let (files, _, _) = self.take_apart(std::slice::from_ref(file));
        for found in files.iter().filter(|found| found.contained.is_some()) {
            self.seen.insert(found.path.clone(), found.stamp);
        }
    }

    /// Imports files that changed. `None` if another process is importing.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub(crate) fn import(
        &mut self,
        files: &[AgentFile],
        wanted: Wanted<'_>,
    ) -> Result<Option<Vec<ImportedFile>>> {
        let Some(staging) = self.store.try_stage()? else {
            return Ok(None);
        };
        let store = self.store.clone();
        let destination = Destination::new(Some(&store), Some(staging));
        let (found, containers, mut results) = self.take_apart(files);
        let mut read = Vec::new();
        for found in &found {
            let outcome = self.one(&destination, found, wanted);
            match outcome {
                Err(error) if super::is_fatal(&error) => {
                    destination.publish().ok();
                    return Err(error);
                }
                outcome => read.push((found, outcome)),
            }
        }
        destination.publish()?;
        for container in containers {
            let cached = container.to_cache(&self.cache);
            self.cache.set_container(&container.path, cached);
        }
        let result = |(found, outcome): (&FoundFile, Result<_>)| ImportedFile {
            file: AgentFile {
                format: found.format,
                path: found.path.clone(),
            },
            outcome,
        };
        results.extend(read.into_iter().map(result));
        Ok(Some(results))
    }

    /// Returns the session that a file was last imported into.
    pub(crate) fn session_of(&self, path: &Path) -> Option<&backtrail::SessionId> {
        self.cache.get(path)?.session.as_ref()
    }

    /// Adds what was learnt to the saved cache. Without one there is nothing to add to: the
    /// next import makes it from the sessions.
    pub(crate) fn save(&mut self) {
        let unsaved = std::mem::take(&mut self.unsaved);
        if unsaved.is_empty() {
            return;
        }
        let Some(mut saved) = Cache::load_saved(&self.store) else {
            return;
        };
        for path in unsaved {
            if let Some(cached) = self.cache.get(&path) {
                saved.set(&path, cached.clone());
            }
        }
        // A cache that cannot be saved is rebuilt next time.
        saved.save(&self.store).ok();
    }

    /// Finds the files that are still there, and the sessions of databases.
    fn take_apart(
        &self,
        files: &[AgentFile],
    ) -> (Vec<FoundFile>, Vec<ContainerFile>, Vec<ImportedFile>) {
        let mut search = Search::default();
        for file in files {
            // One that is gone changes nothing: what was imported stays.
            if let Ok(metadata) = std::fs::metadata(&file.path)
                && metadata.is_file()
            {
                let stamp = file_stamp(&metadata);
                let found = FoundFile::new(file.format, file.path.clone(), stamp);
                search.files.push(found);
            }
        }
        let containers = take_apart(&mut search, &self.cache);
        let to_failed = |(agent, error): (Option<&'static str>, Error)| {
            let is_it = |file: &&AgentFile| {
                agent == Some(file.format.name()) && error.path() == Some(&file.path)
            };
            let file = files.iter().find(is_it).or(files.first())?.clone();
            Some(ImportedFile {
                file,
                outcome: Err(error),
            })
        };
        let databases = search.unreadable_databases.into_iter();
        let databases = databases.map(|(agent, error)| (Some(agent), error));
        let failed = search.errors.into_iter().chain(databases);
        let failed = failed.filter_map(to_failed).collect();
        // A sub-agent's file comes after that of its parent.
        search.files.sort_by_key(FoundFile::is_sub_agent);
        (search.files, containers, failed)
    }

    fn one(
        &mut self,
        destination: &Destination<'_>,
        found: &FoundFile,
        wanted: Wanted<'_>,
    ) -> Result<ImportOutcome> {
        let seen = found.contained.as_ref().map(|_| found.stamp);
        if seen.is_some() && self.seen.get(&found.path) == seen.as_ref() {
            return Ok(ImportOutcome::Nothing);
        }
        let cached = self.cached(destination, found)?;
        if let Some(cached) = cached.as_ref().filter(|it| it.stamp == found.stamp) {
            let session = cached
                .session
                .clone()
                .map(|id| ReadSession { id, created: false });
            self.saw(found, seen);
            return Ok(match session {
                Some(session) => ImportOutcome::Read(vec![session]),
                None => ImportOutcome::Nothing,
            });
        }
        if !self.is_wanted(destination, found, cached.as_ref(), wanted)? {
            self.saw(found, seen);
            return Ok(ImportOutcome::Nothing);
        }
        match import_file(destination, found, cached.as_ref(), Patience::Wait)? {
            Done::Wait => Ok(ImportOutcome::Waits {
                parent: parent_of(destination, found)?,
            }),
            Done::Imported(result, cached) => {
                if let Some(cached) = cached {
                    self.cache.set(&found.path, cached);
                    self.unsaved.insert(found.path.clone());
                }
                self.saw(found, seen);
                Ok(match result.sessions.is_empty() {
                    true => ImportOutcome::Nothing,
                    false => ImportOutcome::Read(result.sessions),
                })
            }
        }
    }

    fn saw(&mut self, found: &FoundFile, stamp: Option<FileStamp>) {
        if let Some(stamp) = stamp {
            self.seen.insert(found.path.clone(), stamp);
        }
    }

    /// Returns what the cache knows about a file, unless its session is gone without a trace.
    fn cached(
        &self,
        destination: &Destination<'_>,
        found: &FoundFile,
    ) -> Result<Option<CachedFile>> {
        let Some(cached) = self.cache.get(&found.path) else {
            return Ok(None);
        };
        let is_known = match &cached.session {
            Some(id) => destination.was_deleted(id) || destination.find_store(id)?.is_some(),
            None => true,
        };
        Ok(is_known.then(|| cached.clone()))
    }

    fn is_wanted(
        &mut self,
        destination: &Destination<'_>,
        found: &FoundFile,
        cached: Option<&CachedFile>,
        wanted: Wanted<'_>,
    ) -> Result<bool> {
        if self.unwanted.contains(&found.path) {
            return Ok(false);
        }
        if self.is_excluded(destination, found, cached)? {
            self.unwanted.insert(found.path.clone());
            return Ok(false);
        }
        let Some(wanted) = wanted else {
            return Ok(true);
        };
        let session = cached.and_then(|cached| cached.session.as_ref());
        let store = match session {
            Some(id) => destination.find_store(id)?,
            None => None,
        };
        let directory = match (session, store) {
            (Some(id), Some(store)) => store.read_session(id)?.info()?.workspace_root,
            _ => directory_of(destination, found)?,
        };
        let is_wanted = wanted(directory.as_deref());
        // One without a directory may name it later.
        if !is_wanted && directory.is_some() {
            self.unwanted.insert(found.path.clone());
        }
        Ok(is_wanted)
    }
}

impl ChangeImporter {
    /// Returns whether the user excludes a file, by its agent, its path or its directory.
    fn is_excluded(
        &self,
        destination: &Destination<'_>,
        found: &FoundFile,
        cached: Option<&CachedFile>,
    ) -> Result<bool> {
        if self.exclude.has_agent(found.format) || self.exclude.has_path(&found.path) {
            return Ok(true);
        }
        let session = match cached.and_then(|cached| cached.session.as_ref()) {
            Some(id) => destination.stored_session(id)?,
            None => None,
        };
        is_excluded(&self.exclude, destination, found, session.as_ref())
    }
}

/// Returns the agent's name for the session that a file comes from.
fn parent_of(destination: &Destination<'_>, found: &FoundFile) -> Result<Option<String>> {
    let Some(source) = found.open(destination)? else {
        return Ok(None);
    };
    let opened = found.format.open(&source)?;
    Ok(match opened.origin() {
        Origin::Continues { session, .. } | Origin::Spawned { session, .. } => session.clone(),
        Origin::Start | Origin::Copy { .. } => None,
    })
}
