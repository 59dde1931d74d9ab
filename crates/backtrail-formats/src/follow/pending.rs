//! Files that changed and are about to be imported.
//!
//! A change is held back for a moment, so that a burst of writes is imported once. A file whose
//! import is much work is imported less often.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::import::AgentFile;
use crate::source::Source;

/// How long a change is held back.
const HOLD: Duration = Duration::from_millis(10);
/// A file is not imported again before this many times the work that it was.
const REST: u32 = 9;
const MAX_REST: Duration = Duration::from_secs(2);
/// When another process is importing, or a file cannot be read yet, it is tried again.
const RETRY: Duration = Duration::from_millis(25);
/// How often a file that cannot be read is tried again before that is reported.
const TRIES: u32 = 8;

/// Files that changed.
#[derive(Default)]
pub(super) struct Pending {
    files: BTreeMap<PathBuf, (AgentFile, Instant)>,
    rests: HashMap<PathBuf, Instant>,
    failures: HashMap<PathBuf, u32>,
    problems: Vec<Error>,
}

impl Pending {
    /// Adds files that changed.
    pub(super) fn add(&mut self, files: impl IntoIterator<Item = AgentFile>) {
        let now = Instant::now();
        for file in files {
            let rest = self.rests.get(&file.path).copied();
            let at = rest.map_or(now + HOLD, |rest| rest.max(now + HOLD));
            self.files.entry(file.path.clone()).or_insert((file, at));
        }
    }

    /// Makes all files ready.
    pub(super) fn hurry(&mut self) {
        let now = Instant::now();
        for (_, at) in self.files.values_mut() {
            *at = now;
        }
    }

    /// Returns when the next file is ready.
    pub(super) fn next(&self) -> Option<Instant> {
        self.files.values().map(|(_, at)| *at).min()
    }

    /// Takes the files that are ready. A JSON file that is not complete waits for its agent.
    pub(super) fn take_ready(&mut self) -> Vec<AgentFile> {
        let now = Instant::now();
        let files = std::mem::take(&mut self.files).into_iter();
        let (ready, later) = files.partition(|(_, (_, at))| *at <= now);
        self.files = later;
        let ready: BTreeMap<PathBuf, (AgentFile, Instant)> = ready;
        let ready = ready.into_values().map(|(file, _)| file);
        let (whole, partial): (Vec<_>, Vec<_>) = ready.partition(is_whole);
        for file in partial {
            let what = "not complete JSON; it is imported once its agent completes it";
            self.failed(&file, Error::invalid(what, &file.path));
        }
        whole
    }

    /// Tries files again in a moment.
    pub(super) fn put_back(&mut self, files: Vec<AgentFile>) {
        let at = Instant::now() + RETRY;
        for file in files {
            self.files.entry(file.path.clone()).or_insert((file, at));
        }
    }

    /// Notes how much work files were that were imported together.
    pub(super) fn done(&mut self, files: &[AgentFile], work: Duration) {
        let rest = Instant::now() + (work * REST).min(MAX_REST);
        for file in files {
            self.rests.insert(file.path.clone(), rest);
        }
    }

    pub(super) fn succeeded(&mut self, path: &Path) {
        self.failures.remove(path);
    }

    /// Notes that a file could not be imported: its agent may be in the middle of writing it.
    /// It is tried again, each time later; in the end that is reported, once, and it is tried
    /// only when it changes.
    pub(super) fn failed(&mut self, file: &AgentFile, error: Error) {
        let tries = self.failures.entry(file.path.clone()).or_default();
        *tries = tries.saturating_add(1);
        if *tries == TRIES {
            self.problems.push(error);
        } else if *tries < TRIES {
            let at = Instant::now() + RETRY * 2_u32.pow(*tries - 1);
            let entry = self.files.entry(file.path.clone());
            entry.or_insert((file.clone(), at));
        }
    }

    pub(super) fn take_problems(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.problems)
    }
}

/// Returns whether a file that is one JSON value is complete. Others can be read at any time.
fn is_whole(file: &AgentFile) -> bool {
    if file.path.extension().is_none_or(|kind| kind != "json") {
        return true;
    }
    match Source::open(&file.path).and_then(|source| source.read_value()) {
        Ok(text) => serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(),
        // The import tells why.
        Err(_) => true,
    }
}
