//! Imports the sessions of other agents into a store.
//!
//! Each file is opened by its format, which tells the session that the file belongs to. Its
//! events are then compared with those that the session has, which gives a plan: what the
//! session has is skipped, what is new is appended, and where the agent went another way the
//! session is rewound or a branch is created. The bytes of the file are kept with the session.
//! So it does not matter in which order files come, how often they are imported, or where a
//! crash interrupted an import; and the files themselves are only read.
//!
//! | module | what it does |
//! |---|---|
//! | `found` | finds the files |
//! | `changes` | imports single files when they change |
//! | `new` | imports what is new in a limited time |
//! | `excluded` | tells what is never imported |
//! | `contained` | takes files apart that contain many sessions |
//! | `file_import` | imports one file: opens it, decides what to do, keeps its bytes |
//! | `importer` | receives the events of a file and carries out the plan |
//! | `session_import` | one conversation of a file, and its session |
//! | `diff` | makes the plan; no input or output |
//! | `hand_over` | creates the session of a file that another agent continues |
//! | `copies` | tells which events of such a file are copies |
//! | `file_note` | what is noted in a session about a file |
//! | `destination` | the store and the staging store |
//! | `combined` | several files of one session, read as one |

mod cache;
mod changes;
mod combined;
mod contained;
mod copies;
mod destination;
mod diff;
mod excluded;
mod file_import;
mod file_note;
mod found;
mod hand_over;
mod ids;
mod importer;
mod new;
mod report;
mod session_import;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use backtrail::{ErrorKind, SessionReader, Store};
use serde::Serialize;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::format::{Format, formats};
use crate::formats::CheckpointFiles;
use cache::{Cache, CachedFile};
use contained::ContainerFile;
use destination::{Destination, lock, source_record_at};
use excluded::is_excluded;
use file_import::{Done, Patience, import_file};
use found::FoundFile;
use report::{FileResult, Outcome};

pub use cache::forgetting_sessions;
pub(crate) use changes::{AgentFile, ChangeImporter, ImportOutcome, ImportedFile};
pub(crate) use found::file_stamp;
pub use found::{is_database_file, recognise};
pub use hand_over::{HandOver, PausedImports, hand_over, is_handed_over};
pub(crate) use ids::session_id;
pub use new::{NewReport, import_new};
pub(crate) use report::ReadSession;
pub use report::{AgentReport, DamagedFileLine, ImportReport, SkippedFile};

/// What to import.
#[derive(Clone)]
pub struct ImportOptions {
    formats: Vec<&'static dyn Format>,
    paths: Vec<PathBuf>,
    environment: Environment,
    exclude: Exclude,
    dry_run: bool,
    waits: bool,
    is_history: bool,
    threads: usize,
}

impl ImportOptions {
    /// Imports what all agents keep in their usual directories.
    pub fn new(environment: Environment) -> Self {
        Self {
            formats: formats().collect(),
            paths: Vec::new(),
            environment,
            exclude: Exclude::default(),
            dry_run: false,
            waits: true,
            is_history: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Imports only files of these formats.
    #[must_use]
    pub fn formats(mut self, formats: Vec<&'static dyn Format>) -> Self {
        self.formats = formats;
        self
    }

    /// Imports these files, and all files in these directories, instead of those in the usual
    /// directories.
    #[must_use]
    pub fn paths(mut self, paths: Vec<PathBuf>) -> Self {
        self.paths = paths;
        self
    }

    /// Does not import these.
    #[must_use]
    pub fn exclude(mut self, exclude: Exclude) -> Self {
        self.exclude = exclude;
        self
    }

    /// Remembers the agents that have sessions, so that [`import_new`] looks at them from now on.
    /// Files that are given by their paths are not an agent's history.
    #[must_use]
    pub fn as_history(mut self) -> Self {
        self.is_history = true;
        self
    }

    /// Does nothing if another process is importing, instead of waiting for it.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.waits = false;
        self
    }

    /// Only reports what an import would do.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }
}

/// The progress of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportProgress {
    /// How many files are done.
    pub files: u64,
    /// How many files there are.
    pub files_total: u64,
    /// How many bytes are done.
    pub bytes: u64,
    /// How many bytes there are.
    pub bytes_total: u64,
    /// Whether it waits for another process that imports.
    pub waits: bool,
}

impl ImportProgress {
    const WAITING: Self = Self {
        files: 0,
        files_total: 0,
        bytes: 0,
        bytes_total: 0,
        waits: true,
    };
}

/// How much is written to the staging store before it is moved to the store.
const BATCH_BYTES: u64 = 256 << 20;
const BATCH_FILES: usize = 4_000;

/// Imports sessions of other agents into a store.
///
/// # Errors
///
/// Fails if the store does. Errors about single files are in the report.
pub fn import(
    store: &Store,
    options: &ImportOptions,
    progress: &(dyn Fn(ImportProgress) + Sync),
) -> Result<ImportReport> {
    run(Some(store), options, progress)
}

/// Imports checkpoint files of an older design: those at `paths`, and all in the directories at
/// `paths`. The files of one session, saved one after the other, become one session. Importing
/// them again adds only what is new.
///
/// ```
/// use backtrail::Store;
/// use backtrail_formats::import_checkpoint_files;
///
/// # let dir = tempfile::tempdir()?;
/// # let (home, checkpoints) = (dir.path().join("store"), dir.path().join("checkpoints"));
/// # std::fs::create_dir(&checkpoints)?;
/// # let file = r#"{"id":"c1","stats":{},"user_prompts":["fix it"],"assistant_responses":["done"],
/// #     "tool_calls":[],"file_diffs":[]}"#;
/// # std::fs::write(checkpoints.join("c1.json"), file)?;
/// let store = Store::open_or_create(&home)?;
/// let report = import_checkpoint_files(&store, [&checkpoints])?;
/// assert_eq!(report.agents[0].messages, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Fails if the store does. Errors about single files are in the report.
pub fn import_checkpoint_files<P: Into<PathBuf>>(
    store: &Store,
    paths: impl IntoIterator<Item = P>,
) -> Result<ImportReport> {
    let options = ImportOptions::new(Environment::default())
        .formats(vec![&CheckpointFiles])
        .paths(paths.into_iter().map(Into::into).collect());
    import(store, &options, &|_| {})
}

/// Reports what an import into an empty store would do, and writes nothing.
///
/// # Errors
///
/// Fails if temporary files cannot be written. Errors about single files are in the report.
pub fn preview(
    options: &ImportOptions,
    progress: &(dyn Fn(ImportProgress) + Sync),
) -> Result<ImportReport> {
    run(None, options, progress)
}

fn run(
    store: Option<&Store>,
    options: &ImportOptions,
    progress: &(dyn Fn(ImportProgress) + Sync),
) -> Result<ImportReport> {
    let mut found = found::search(options);
    let mut cache = match store {
        Some(store) => Cache::load(store, &options.exclude),
        None => Cache::default(),
    };
    let containers = contained::take_apart_and_settle(&mut found, &mut cache);
    let staging = match store {
        Some(store) if !options.dry_run && !found.files.is_empty() => {
            match (store.try_stage()?, options.waits) {
                (None, false) => return Ok(ImportReport::default()),
                (None, true) => {
                    progress(ImportProgress::WAITING);
                    Some(store.stage()?)
                }
                (staging, _) => staging,
            }
        }
        _ => None,
    };
    let destination = Destination::new(store, staging);
    let import = Import::new(destination, cache, options, &found.files, progress);
    let mut report = import.run(&found.files, &containers)?;
    report.other_files = found.other_files;
    for agent in found.empty_databases {
        let mut agents = report.agents.iter_mut();
        if let Some(agent) = agents.find(|report| report.agent == agent) {
            agent.found += 1;
            agent.unchanged += 1;
            agent.without_conversation += 1;
        }
    }
    for (agent, error) in found.unreadable_databases {
        let mut agents = report.agents.iter_mut();
        if let Some(agent) = agents.find(|report| report.agent == agent) {
            agent.found += 1;
            agent.errors.push(error);
        }
    }
    for (agent, error) in found.errors {
        let mut agents = report.agents.iter_mut();
        match agents.find(|report| Some(report.agent) == agent) {
            Some(agent) => agent.errors.push(error),
            None => report.errors.push(error),
        }
    }
    for agent in found.excluded {
        let mut agents = report.agents.iter_mut();
        if let Some(agent) = agents.find(|report| report.agent == agent) {
            agent.found += 1;
            agent.excluded += 1;
        }
    }
    let is_history = options.is_history && options.paths.is_empty() && !options.dry_run;
    if let Some(store) = store.filter(|_| is_history) {
        for agent in report.agents.iter().filter(|agent| agent.found > 0) {
            store.note_imported_agent(agent.agent)?;
        }
    }
    Ok(report)
}

fn agent_reports(options: &ImportOptions, files: &[FoundFile]) -> Vec<AgentReport> {
    let report = |format: &&'static dyn Format| {
        let mut report = AgentReport::new(*format);
        let is_own = |file: &&FoundFile| file.format.name() == format.name();
        report.found = files.iter().filter(is_own).count() as u64;
        report
    };
    options.formats.iter().map(report).collect()
}

/// An import under way.
struct Import<'i> {
    destination: Destination<'i>,
    cache: Mutex<Cache>,
    agents: Mutex<Vec<AgentReport>>,
    files: AtomicU64,
    files_total: u64,
    bytes: AtomicU64,
    bytes_total: u64,
    progress: &'i (dyn Fn(ImportProgress) + Sync),
    threads: usize,
    exclude: &'i Exclude,
    /// Tells that the time is over; files that come after it are left.
    is_over: &'i (dyn Fn() -> bool + Sync),
    left: AtomicU64,
}

impl<'i> Import<'i> {
    fn new(
        destination: Destination<'i>,
        cache: Cache,
        options: &'i ImportOptions,
        files: &[FoundFile],
        progress: &'i (dyn Fn(ImportProgress) + Sync),
    ) -> Self {
        Self {
            destination,
            cache: Mutex::new(cache),
            agents: Mutex::new(agent_reports(options, files)),
            files: AtomicU64::new(0),
            files_total: files.len() as u64,
            bytes: AtomicU64::new(0),
            bytes_total: files.iter().map(|file| file.stamp.len).sum(),
            progress,
            threads: options.threads,
            exclude: &options.exclude,
            is_over: &|| false,
            left: AtomicU64::new(0),
        }
    }

    /// Imports files, and remembers what became of them.
    fn run(&self, files: &[FoundFile], containers: &[ContainerFile]) -> Result<ImportReport> {
        let done = self.all(files);
        // What was imported until then stays, whatever stopped the rest.
        let published = self.destination.publish();
        let report = self.finish(containers);
        done?;
        published?;
        Ok(report)
    }

    /// Imports all files: sub-agents' files after the others, and then those that had to wait.
    fn all(&self, files: &[FoundFile]) -> Result<()> {
        let (sub_agents, others): (Vec<&FoundFile>, Vec<&FoundFile>) =
            files.iter().partition(|file| file.is_sub_agent());
        let mut waiting = Vec::new();
        for files in [others, sub_agents] {
            let mut rest = &files[..];
            while !rest.is_empty() {
                let (batch, after) = rest.split_at(batch_len(rest));
                waiting.extend(self.batch(batch)?);
                rest = after;
            }
        }
        // Each pass imports at least the files whose parents have come.
        while !waiting.is_empty() {
            let count = waiting.len();
            waiting = self.one_by_one(&waiting, Patience::Wait)?;
            if waiting.len() == count {
                self.one_by_one(&waiting, Patience::ImportNow)?;
                break;
            }
        }
        self.destination.publish()
    }

    /// Imports files in parallel, and moves their sessions to the store. Returns the files
    /// that must wait for others.
    fn batch<'f>(&self, files: &[&'f FoundFile]) -> Result<Vec<&'f FoundFile>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut waiting = Vec::new();
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.one(file, Patience::Wait) {
                    Ok(true) => {}
                    Ok(false) => waiting.push(*file),
                    Err(error) => {
                        // The store failed: the other threads stop too.
                        next.store(files.len(), Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(waiting)
        };
        let threads = self.threads.min(files.len()).max(1);
        let mut waiting = Vec::new();
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut results = vec![work()];
            for other in others {
                let result = other.join();
                results.push(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            for result in results {
                waiting.extend(result?);
            }
            Ok::<(), Error>(())
        })?;
        waiting.sort_by(|a, b| a.path.cmp(&b.path));
        self.destination.publish()?;
        Ok(waiting)
    }

    fn one_by_one<'f>(
        &self,
        files: &[&'f FoundFile],
        patience: Patience,
    ) -> Result<Vec<&'f FoundFile>> {
        let mut waiting = Vec::new();
        for file in files {
            if !self.one(file, patience)? {
                waiting.push(*file);
            }
        }
        Ok(waiting)
    }

    /// Imports one file. Returns whether it is done, or must wait; an error is the store's.
    fn one(&self, file: &FoundFile, patience: Patience) -> Result<bool> {
        if (self.is_over)() {
            self.left.fetch_add(1, Ordering::Relaxed);
            return Ok(true);
        }
        let (cached, session) = self.cached(file)?.unzip();
        let session = session.flatten();
        let unchanged = cached.as_ref().filter(|it| it.stamp == file.stamp);
        if let Some(cached) = unchanged
            && is_kept(file, cached, session.as_ref())
        {
            let result = FileResult {
                outcome: cached.outcome(),
                damaged: cached.damaged,
                unknown: cached.unknown.clone(),
                ..FileResult::default()
            };
            self.add(file, Ok(result));
            return Ok(true);
        }
        if is_excluded(self.exclude, &self.destination, file, session.as_ref())? {
            lock(&self.cache).settle(file);
            self.add(file, Ok(FileResult::from(Outcome::Excluded)));
            return Ok(true);
        }
        match import_file(&self.destination, file, cached.as_ref(), patience) {
            Ok(Done::Wait) if patience == Patience::ImportNow => {
                let what = "another import is using this session; try again";
                self.add(file, Err(Error::invalid(what, &file.path)));
            }
            Ok(Done::Wait) => return Ok(false),
            Ok(Done::Imported(result, cached)) => {
                if !self.destination.is_dry_run() {
                    let mut cache = lock(&self.cache);
                    match cached {
                        Some(cached) => cache.set(&file.path, cached),
                        None => cache.settle(file),
                    }
                }
                self.add(file, Ok(result));
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                lock(&self.cache).settle(file);
                self.add(file, Err(error));
            }
        }
        Ok(true)
    }

    /// Returns what the cache knows about a file, and its session unless that was deleted.
    /// `None` if the session is gone without a trace.
    fn cached(&self, file: &FoundFile) -> Result<Option<(CachedFile, Option<SessionReader>)>> {
        let Some(cached) = lock(&self.cache).get(&file.path).cloned() else {
            return Ok(None);
        };
        let Some(id) = &cached.session else {
            return Ok(Some((cached, None)));
        };
        let session = self.destination.stored_session(id)?;
        let is_known = session.is_some() || self.destination.was_deleted(id);
        Ok(is_known.then_some((cached, session)))
    }

    fn add(&self, file: &FoundFile, result: Result<FileResult>) {
        let mut agents = lock(&self.agents);
        let mut reports = agents.iter_mut();
        if let Some(agent) = reports.find(|report| report.agent == file.format.name()) {
            match result {
                Ok(result) => agent.add(&file.path, result),
                Err(error) => agent.errors.push(error),
            }
        }
        drop(agents);
        let len = file.stamp.len;
        (self.progress)(ImportProgress {
            files: self.files.fetch_add(1, Ordering::Relaxed) + 1,
            files_total: self.files_total,
            bytes: self.bytes.fetch_add(len, Ordering::Relaxed) + len,
            bytes_total: self.bytes_total,
            waits: false,
        });
    }

    fn finish(&self, containers: &[ContainerFile]) -> ImportReport {
        // A cache that cannot be saved is rebuilt next time.
        if let Some(store) = self.destination.home() {
            let mut cache = lock(&self.cache);
            for container in containers {
                let cached = container.to_cache(&cache);
                cache.set_container(&container.path, cached);
                if container.is_done(&cache) {
                    cache.settle_path(&container.path, container.file);
                }
            }
            cache.save(store).ok();
        }
        for container in containers {
            let mut agents = lock(&self.agents);
            let mut reports = agents.iter_mut();
            if let Some(agent) = reports.find(|it| it.agent == container.format.name()) {
                agent.add_container(&container.path, container.damaged, &container.others);
            }
        }
        ImportReport {
            agents: std::mem::take(&mut lock(&self.agents)),
            ..ImportReport::default()
        }
    }
}

/// Returns whether the session has the record that the cache names: the cache may be newer
/// than a session that was restored from a backup.
fn is_kept(file: &FoundFile, cached: &CachedFile, session: Option<&SessionReader>) -> bool {
    let (Some(place), Some(session)) = (cached.place, session) else {
        return true;
    };
    source_record_at(session, &file.path, place).is_ok_and(|record| record.is_some())
}

fn batch_len(files: &[&FoundFile]) -> usize {
    let mut bytes = 0;
    let fits = |file: &&&FoundFile| {
        let fits = bytes < BATCH_BYTES;
        bytes += file.stamp.len;
        fits
    };
    let files = files.iter().take(BATCH_FILES);
    files.take_while(fits).count().max(1)
}

/// Returns whether the error is the store's, so that no other file can be imported either.
fn is_fatal(error: &Error) -> bool {
    let kind = error.store().map(backtrail::Error::kind);
    matches!(
        kind,
        Some(ErrorKind::Io | ErrorKind::DiskFull | ErrorKind::NewerFormat)
    )
}
