//! Takes the sessions of other agents into a store.
//!
//! Each file is read by its format, and what it tells is woven into the session that it is
//! of: what the session holds already is passed by, what is new goes behind it, and where
//! the agent went another way the session does too, or a fork is made. The bytes of the
//! file are kept with it. So it does not matter in which order files come, how often they
//! are taken in, or where a crash left off; and the files themselves are only read.

mod cache;
mod found;
mod joined;
mod names;
mod report;
mod shop;
mod strand;
mod take;
mod weave;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use backtrail::{ErrorKind, Store};

use crate::error::{Error, Result};
use crate::format::{Format, formats};
use crate::places::Environment;
use cache::{Cache, Known};
use found::Found;
use report::{Outcome, Taken};
use shop::Shop;
use take::{Done, take};

pub use found::recognised;
pub use report::{AgentReport, ImportReport};

/// What to take in.
#[derive(Clone)]
pub struct ImportOptions {
    formats: Vec<&'static dyn Format>,
    paths: Vec<PathBuf>,
    environment: Environment,
    dry_run: bool,
    threads: usize,
}

impl ImportOptions {
    /// Takes in what all agents keep in their usual places.
    pub fn new(environment: Environment) -> Self {
        Self {
            formats: formats().collect(),
            paths: Vec::new(),
            environment,
            dry_run: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Takes in only what these agents keep.
    #[must_use]
    pub fn from(mut self, formats: Vec<&'static dyn Format>) -> Self {
        self.formats = formats;
        self
    }

    /// Takes in these files, and all in these directories, in place of the usual places.
    #[must_use]
    pub fn paths(mut self, paths: Vec<PathBuf>) -> Self {
        self.paths = paths;
        self
    }

    /// Only finds out what there is to take in.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }
}

/// How far an import is.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ImportProgress {
    /// Files that were looked at, of how many.
    pub files: (u64, u64),
    /// Bytes of them, of how many.
    pub bytes: (u64, u64),
}

/// How much is made aside before it is put in place.
const BATCH_BYTES: u64 = 256 << 20;
const BATCH_FILES: usize = 4_000;

/// Takes sessions of other agents into a store. Without a store nothing is known yet, and
/// nothing can be written: that is for a dry run.
pub fn import(
    store: Option<&Store>,
    options: &ImportOptions,
    progress: &(dyn Fn(ImportProgress) + Sync),
) -> Result<ImportReport> {
    let found = found::search(options);
    let staging = match store {
        Some(store) if !options.dry_run && !found.found.is_empty() => Some(store.stage()?),
        _ => None,
    };
    let cache = store.map(Cache::load).unwrap_or_default();
    let sessions = match store {
        Some(store) => store.sessions()?.into_iter().collect(),
        None => HashSet::new(),
    };
    let run = Run {
        shop: Shop::new(store, staging),
        sessions,
        cache: Mutex::new(cache),
        report: Mutex::new(Report::new(options, &found.found)),
        files: (AtomicU64::new(0), found.found.len() as u64),
        bytes: (
            AtomicU64::new(0),
            found.found.iter().map(|found| found.stamp.len).sum(),
        ),
        progress,
        threads: options.threads,
    };
    let done = run.all(&found.found);
    // What was taken in by then stays, whatever stopped the rest.
    let published = run.shop.publish();
    let mut report = run.finish();
    done?;
    published?;
    report.strangers = found.strangers;
    for (agent, error) in found.errors {
        let known = report
            .agents
            .iter_mut()
            .find(|known| Some(known.agent) == agent);
        match known {
            Some(agent) => agent.errors.push(error),
            None => report.errors.push(error),
        }
    }
    Ok(report)
}

struct Run<'r> {
    shop: Shop<'r>,
    /// The sessions that were there at the beginning.
    sessions: HashSet<backtrail::SessionId>,
    cache: Mutex<Cache>,
    report: Mutex<Report>,
    files: (AtomicU64, u64),
    bytes: (AtomicU64, u64),
    progress: &'r (dyn Fn(ImportProgress) + Sync),
    threads: usize,
}

#[derive(Default)]
struct Report {
    agents: Vec<AgentReport>,
}

impl Report {
    fn new(options: &ImportOptions, found: &[Found]) -> Self {
        let mut agents: Vec<AgentReport> = options
            .formats
            .iter()
            .map(|format| AgentReport::new(*format))
            .collect();
        for found in found {
            if let Some(agent) = agents
                .iter_mut()
                .find(|agent| agent.agent == found.format.name())
            {
                agent.found += 1;
            }
        }
        Self { agents }
    }

    fn of(&mut self, found: &Found) -> Option<&mut AgentReport> {
        let name = found.format.name();
        self.agents.iter_mut().find(|agent| agent.agent == name)
    }
}

impl Run<'_> {
    /// Takes in all files: those that stand by themselves first, then those that go with
    /// others, then those that had to wait.
    fn all(&self, found: &[Found]) -> Result<()> {
        let (follow, lead): (Vec<&Found>, Vec<&Found>) = found
            .iter()
            .partition(|found| found.format.follows(&found.path));
        let mut late = Vec::new();
        for files in [lead, follow] {
            let mut rest = &files[..];
            while !rest.is_empty() {
                let (batch, behind) = rest.split_at(batch_len(rest));
                late.extend(self.batch(batch)?);
                rest = behind;
            }
        }
        // Each pass takes in at least what waits for nobody any more.
        while !late.is_empty() {
            let waiting = late.len();
            late = self.one_by_one(&late, false)?;
            if late.len() == waiting {
                self.one_by_one(&late, true)?;
                break;
            }
        }
        self.shop.publish()
    }

    /// Takes in files side by side, and puts their sessions in place. Returns those that
    /// must wait for others.
    fn batch<'f>(&self, files: &[&'f Found]) -> Result<Vec<&'f Found>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut late = Vec::new();
            while let Some(found) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.one(found, false) {
                    Ok(true) => {}
                    Ok(false) => late.push(*found),
                    Err(error) => {
                        // The store failed: nobody goes on.
                        next.store(files.len(), Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(late)
        };
        let threads = self.threads.min(files.len()).max(1);
        let mut late = Vec::new();
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut done = vec![work()];
            for other in others {
                done.push(
                    other
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                );
            }
            for part in done {
                late.extend(part?);
            }
            Ok::<(), Error>(())
        })?;
        late.sort_by(|a, b| a.path.cmp(&b.path));
        self.shop.publish()?;
        Ok(late)
    }

    fn one_by_one<'f>(&self, files: &[&'f Found], last_pass: bool) -> Result<Vec<&'f Found>> {
        let mut late = Vec::new();
        for found in files {
            if !self.one(found, last_pass)? {
                late.push(*found);
            }
        }
        Ok(late)
    }

    /// Takes in one file. Returns whether that is done; an error is one of the store.
    fn one(&self, found: &Found, last_pass: bool) -> Result<bool> {
        let known = self.known(found);
        if let Some(known) = known.as_ref().filter(|known| known.is(&found.stamp)) {
            let taken = Taken {
                damaged: known.damaged,
                unknown: known.unknown.clone(),
                ..Taken::nothing(Outcome::Unchanged)
            };
            self.add(found, Ok(taken));
            return Ok(true);
        }
        match take(&self.shop, found, known.as_ref(), last_pass) {
            Ok(Done::Later) if last_pass => {
                let what = "this file waits for another one that does not come";
                self.add(found, Err(Error::invalid(what, &found.path)));
            }
            Ok(Done::Later) => return Ok(false),
            Ok(Done::Taken(taken, known)) => {
                if let Some(known) = known
                    && !self.shop.is_dry()
                {
                    self.cache().set(&found.path, known);
                }
                self.add(found, Ok(taken));
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => self.add(found, Err(error)),
        }
        Ok(true)
    }

    /// Returns what is known of a file. A session that somebody removed is not known.
    fn known(&self, found: &Found) -> Option<Known> {
        let known = self.cache().get(&found.path).cloned()?;
        let is_there = self.sessions.contains(&known.session);
        (is_there || self.shop.was_deleted(&known.session)).then_some(known)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        let cache = self.cache.lock();
        cache.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn add(&self, found: &Found, taken: Result<Taken>) {
        let report = self.report.lock();
        let mut report = report.unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(agent) = report.of(found) {
            match taken {
                Ok(taken) => agent.add(&found.path, taken),
                Err(error) => agent.errors.push(error),
            }
        }
        drop(report);
        let files = self.files.0.fetch_add(1, Ordering::Relaxed) + 1;
        let len = found.stamp.len;
        let bytes = self.bytes.0.fetch_add(len, Ordering::Relaxed) + len;
        (self.progress)(ImportProgress {
            files: (files, self.files.1),
            bytes: (bytes, self.bytes.1),
        });
    }

    fn finish(self) -> ImportReport {
        // What could not be saved is found out again.
        if !self.shop.is_dry() {
            self.cache().save().ok();
        }
        let report = self.report.into_inner();
        let report = report.unwrap_or_else(std::sync::PoisonError::into_inner);
        ImportReport {
            agents: report.agents,
            ..ImportReport::default()
        }
    }
}

fn batch_len(files: &[&Found]) -> usize {
    let mut bytes = 0;
    let fits = |found: &&&Found| {
        let fits = bytes < BATCH_BYTES;
        bytes += found.stamp.len;
        fits
    };
    files
        .iter()
        .take(BATCH_FILES)
        .take_while(fits)
        .count()
        .max(1)
}

/// Returns whether no other file can be taken in either: the store failed, not the file.
fn is_fatal(error: &Error) -> bool {
    let kind = error.store().map(backtrail::Error::kind);
    matches!(
        kind,
        Some(ErrorKind::Io | ErrorKind::DiskFull | ErrorKind::NewerFormat)
    )
}
