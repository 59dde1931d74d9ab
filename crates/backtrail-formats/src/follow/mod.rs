//! Follows agents while they work: what they add to their sessions is imported as they write it.
//!
//! A [`Follower`] watches the directories in which agents keep their sessions. When a file
//! changes, that file alone is imported, exactly as [`import`](crate::import()) would do it, and
//! [`Follower::wait`] returns what was added. Between changes it sleeps in `poll(2)`.
//!
//! | module | what it does |
//! |---|---|
//! | `places` | tells which files and directories are followed |
//! | `notify` | tells what changes in directories |
//! | `watched` | finds the files that changed |
//! | `pending` | holds changes back for a moment, and tries again what failed |
//! | `progress` | reads what was added to a session |
//! | `turn_ends` | finds the ends of turns |

mod followed;
mod notify;
mod pending;
mod places;
mod progress;
mod stop;
mod turn_ends;
mod watched;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use backtrail::{SessionId, Store, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::format::{Format, formats};
use crate::import::{AgentFile, ChangeImporter, ImportOutcome, ImportedFile, ReadSession};
use pending::Pending;
use places::Places;
use progress::{Progress, Since};
use watched::{Files, WatchedFiles};

pub use followed::{Followed, FollowedKind, FollowedRecord, Wake};
pub use notify::{Interest, Notice, Notifier};
pub use stop::{Stop, StopHandle};

/// Which agents and sessions to follow.
#[derive(Clone)]
pub struct FollowOptions {
    formats: Vec<&'static dyn Format>,
    environment: Environment,
    directory: Option<PathBuf>,
    exclude: Exclude,
    max_watches: usize,
}

impl FollowOptions {
    /// Follows all sessions of all agents.
    pub fn new(environment: Environment) -> Self {
        Self {
            formats: formats().collect(),
            environment,
            directory: None,
            exclude: Exclude::default(),
            max_watches: usize::MAX,
        }
    }

    /// Follows only these agents.
    #[must_use]
    pub fn formats(mut self, formats: Vec<&'static dyn Format>) -> Self {
        self.formats = formats;
        self
    }

    /// Follows only sessions that work in this directory, below it or in one that contains it,
    /// and those whose agent does not tell. Others are not imported.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Does not import these.
    #[must_use]
    pub fn exclude(mut self, exclude: Exclude) -> Self {
        self.exclude = exclude;
        self
    }

    /// Watches at most this many directories; the others are searched from time to time.
    #[must_use]
    pub fn max_watches(mut self, directories: usize) -> Self {
        self.max_watches = directories;
        self
    }
}

/// Clocks of agents may be as coarse as this.
const CLOCK_STEP: Duration = Duration::from_secs(1);
/// How often what was learnt is saved for the next import.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// Follows agents while they work.
pub struct Follower {
    importer: ChangeImporter,
    watched: WatchedFiles,
    stop: Stop,
    pending: Pending,
    directory: Option<PathBuf>,
    started: Timestamp,
    /// How far the files were read for the ends of turns. Those that were there before the
    /// follower begin at their end.
    read_to: HashMap<PathBuf, u64>,
    progress: HashMap<SessionId, Progress>,
    /// Files that wait for the sessions that they come from.
    waiting: Files,
    saved: Instant,
}

impl Follower {
    /// Begins to follow. What agents write from now on is reported.
    ///
    /// # Errors
    ///
    /// Fails if the system has no room for a pipe.
    pub fn start(store: &Store, options: &FollowOptions) -> Result<Self> {
        let directory = options.directory.as_deref().map(real_path);
        let places = Places::new(&options.formats, &options.environment, directory.as_deref());
        let stop =
            Stop::new().map_err(|error| Error::io("cannot follow agents", store.root(), error))?;
        let started = SystemTime::now() - CLOCK_STEP;
        let (watched, files) = WatchedFiles::new(places, Notifier::new(options.max_watches));
        let mut importer = ChangeImporter::new(store, &options.exclude);
        let mut read_to = HashMap::new();
        for (path, file) in &files {
            if file.format.tables().is_some() && path.extension().is_some_and(|it| it == "db") {
                importer.note_contents(file);
            }
            read_to.insert(path.clone(), watched.known_len(path).unwrap_or(0));
        }
        Ok(Self {
            importer,
            watched,
            stop,
            pending: Pending::default(),
            directory,
            started: started.into(),
            read_to,
            progress: HashMap::new(),
            waiting: Files::new(),
            saved: Instant::now(),
        })
    }

    /// Returns a handle that stops it.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.handle()
    }

    /// Waits until an agent adds to a session, the deadline comes, or the follower is stopped.
    ///
    /// # Errors
    ///
    /// Fails if the store does. Changes are then imported in a later call.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Wake> {
        loop {
            if self.stop.is_stopped() {
                return Ok(Wake {
                    is_stopped: true,
                    ..Wake::default()
                });
            }
            let changed = self.watched.changes();
            self.pending.add(changed.into_values());
            let sessions = self.import_ready()?;
            let problems = self.take_problems();
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late || !sessions.is_empty() || !problems.is_empty() {
                return Ok(Wake {
                    sessions,
                    problems,
                    is_stopped: false,
                });
            }
            let times = [deadline, self.pending.next(), self.watched.next_search()];
            self.sleep_until(times.into_iter().flatten().min())?;
        }
    }

    /// Imports what has changed so far without holding anything back, such as when the agent has
    /// ended. Until the deadline it waits for another process that is importing, and for files
    /// that are not complete.
    ///
    /// # Errors
    ///
    /// Fails if the store does. Changes are then imported in a later call.
    pub fn catch_up(&mut self, deadline: Instant) -> Result<Wake> {
        let mut wake = Wake::default();
        let changed = self.watched.all_changes();
        self.pending.add(changed.into_values());
        self.pending.hurry();
        loop {
            wake.sessions.append(&mut self.import_ready()?);
            let next = self.pending.next();
            let Some(next) = next.filter(|_| Instant::now() < deadline) else {
                break;
            };
            std::thread::sleep(next.min(deadline).saturating_duration_since(Instant::now()));
        }
        wake.problems = self.take_problems();
        wake.is_stopped = self.stop.is_stopped();
        Ok(wake)
    }

    fn take_problems(&mut self) -> Vec<Error> {
        let mut problems = self.watched.take_problems();
        problems.append(&mut self.pending.take_problems());
        problems
    }

    /// Sleeps until something happens or the time comes.
    fn sleep_until(&self, time: Option<Instant>) -> Result<()> {
        let left = time.map(|time| time.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut sources = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        if let Some(notices) = self.watched.as_fd() {
            sources.push(PollFd::from_borrowed_fd(notices, PollFlags::IN));
        }
        match poll(&mut sources, left.as_ref()) {
            Err(error) if error != rustix::io::Errno::INTR => {
                let root = self.importer.store().root();
                Err(Error::io("cannot wait for agents", root, error.into()))
            }
            _ => Ok(()),
        }
    }

    /// Imports the files that have waited long enough.
    fn import_ready(&mut self) -> Result<Vec<Followed>> {
        let files = self.pending.take_ready();
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let start = worked();
        let ends = self.known_ends(&files);
        let imported = match self.import(&files) {
            Ok(Some(imported)) => imported,
            // Another process is importing.
            Ok(None) => {
                self.pending.put_back(files);
                return Ok(Vec::new());
            }
            Err(error) => {
                self.pending.put_back(files);
                return Err(error);
            }
        };
        let mut found = BTreeMap::new();
        for imported in imported {
            self.imported(imported, &ends, &mut found)?;
        }
        self.pending.done(&files, worked().saturating_sub(start));
        self.save_sometimes();
        Ok(found.into_values().collect())
    }

    /// Imports files; with a directory, only sessions in or around it.
    fn import(&mut self, files: &[AgentFile]) -> Result<Option<Vec<ImportedFile>>> {
        let Some(directory) = &self.directory else {
            return self.importer.import(files, None);
        };
        let is_near = |other: Option<&Path>| other.is_none_or(|it| are_nested(directory, it));
        self.importer.import(files, Some(&is_near))
    }

    /// Returns the last records of the sessions that the files belonged to before, so that what
    /// is new can be told.
    fn known_ends(&self, files: &[AgentFile]) -> HashMap<SessionId, u64> {
        let mut ends = HashMap::new();
        for file in files {
            let session = self.importer.session_of(&file.path);
            if let Some(session) = session.filter(|it| !self.progress.contains_key(*it))
                && let Ok(reader) = self.importer.store().read_session(session)
                && let Ok(info) = reader.info()
            {
                ends.insert(session.clone(), info.last_seq);
            }
        }
        ends
    }

    fn imported(
        &mut self,
        imported: ImportedFile,
        ends: &HashMap<SessionId, u64>,
        found: &mut BTreeMap<(PathBuf, SessionId), Followed>,
    ) -> Result<()> {
        let ImportedFile { file, outcome } = imported;
        match outcome {
            Ok(ImportOutcome::Nothing) => {}
            Ok(ImportOutcome::Waits { parent }) => self.wait_for_parent(file, parent.as_deref()),
            Ok(ImportOutcome::Read(sessions)) => {
                self.pending.succeeded(&file.path);
                for (at, session) in sessions.iter().enumerate() {
                    let followed = self.followed(&file, session, at == 0, ends)?;
                    if let Some(followed) = followed {
                        found.insert((file.path.clone(), session.id.clone()), followed);
                    }
                }
                self.wake_waiting(&file);
            }
            Err(error) => self.pending.failed(&file, error),
        }
        Ok(())
    }

    /// Returns what was added to a session; `None` if there is nothing to tell.
    fn followed(
        &mut self,
        file: &AgentFile,
        session: &ReadSession,
        is_own: bool,
        ends: &HashMap<SessionId, u64>,
    ) -> Result<Option<Followed>> {
        let reader = match self.importer.store().read_session(&session.id) {
            Ok(reader) => reader,
            // It was deleted just now.
            Err(error) if error.kind() == backtrail::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut records = match self.progress.get_mut(&session.id) {
            Some(progress) => progress.advance(&reader)?,
            None => {
                let since = Since {
                    started: self.started,
                    after: ends.get(&session.id).copied(),
                };
                let (progress, records) = Progress::begin(&reader, since)?;
                self.progress.insert(session.id.clone(), progress);
                records
            }
        };
        let progress = &self.progress[&session.id];
        match file.format.turn_end() {
            Some(_) if is_own => {
                let read_to = self.read_to.entry(file.path.clone()).or_default();
                let (told, to) = turn_ends::told_ends(file.format, &file.path, *read_to)?;
                *read_to = to;
                turn_ends::insert_told(&mut records, told, progress);
            }
            Some(_) => {}
            None => turn_ends::add_inferred(&mut records, progress),
        }
        if records.is_empty() && !session.created {
            return Ok(None);
        }
        let info = reader.info()?;
        Ok(Some(Followed {
            agent: file.format.name(),
            agent_session_id: info.original_id.unwrap_or_else(|| session.id.to_string()),
            session: session.id.clone(),
            source: file.path.clone(),
            directory: info.workspace_root,
            is_new: session.created,
            spawned_by: info.spawned_by,
            forked_from: info.forked_from,
            records,
        }))
    }

    /// Keeps a file until the session that it comes from is there. That one's file may be older
    /// than the follower.
    fn wait_for_parent(&mut self, file: AgentFile, parent: Option<&str>) {
        let is_new = self.waiting.insert(file.path.clone(), file).is_none();
        if let Some(parent) = parent.filter(|parent| is_new && !parent.is_empty()) {
            let files = self.watched.files_named(parent);
            let waiting = &self.waiting;
            let others = files.into_iter();
            let others = others.filter(|file| !waiting.contains_key(&file.path));
            self.pending.add(others);
        }
    }

    /// Tries the files again that may have waited for this one.
    fn wake_waiting(&mut self, file: &AgentFile) {
        let agent = file.format.name();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (ready, others): (Files, Files) =
            waiting.partition(|(_, waiting)| waiting.format.name() == agent);
        self.waiting = others;
        self.pending.add(ready.into_values());
    }

    fn save_sometimes(&mut self) {
        if self.saved.elapsed() >= SAVE_EVERY {
            self.importer.save();
            self.saved = Instant::now();
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.importer.save();
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower")
            .field("store", &self.importer.store().root())
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Returns how long this thread has worked, without waiting for disks.
fn worked() -> Duration {
    let worked = clock_gettime(ClockId::ThreadCPUTime);
    worked.try_into().unwrap_or_default()
}

/// Returns whether one directory is the other or contains it.
fn are_nested(directory: &Path, other: &Path) -> bool {
    let other = real_path(other);
    other.starts_with(directory) || directory.starts_with(&other)
}

/// Returns a path without links, if it exists.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
