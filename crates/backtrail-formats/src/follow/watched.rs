//! The directories in which agents keep sessions, and the session files in them.
//!
//! Each directory is watched before it is listed, so that nothing is missed in between. A place
//! that does not exist yet is waited for in the nearest directory above it that does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backtrail::{LocalStorage, Storage as _};

use super::notify::{Interest, Notice, Notifier};
use super::places::Places;
use crate::container::FileStamp;
use crate::error::Error;
use crate::import::{AgentFile, file_stamp};

/// How often directories are searched that cannot be watched.
const POLL: Duration = Duration::from_millis(250);
/// Searching takes at most this part of the time.
const POLL_SHARE: u32 = 50;
/// How deep directories are searched; no agent nests them as deep.
const MAX_DEPTH: usize = 32;

/// Files, by path.
pub(super) type Files = BTreeMap<PathBuf, AgentFile>;

/// The directories and files that are followed.
pub(super) struct WatchedFiles {
    places: Places,
    notifier: Notifier,
    files: HashMap<PathBuf, FileStamp>,
    /// When directories are searched again, because some cannot be watched.
    next_search: Option<Instant>,
    must_poll: bool,
    problems: Vec<Error>,
    reported: BTreeSet<String>,
}

impl WatchedFiles {
    /// Begins to watch. Returns the files that there are.
    pub(super) fn new(places: Places, notifier: Notifier) -> (Self, Files) {
        let mut watched = Self {
            places,
            notifier,
            files: HashMap::new(),
            next_search: None,
            must_poll: false,
            problems: Vec::new(),
            reported: BTreeSet::new(),
        };
        let files = watched.search();
        (watched, files)
    }

    /// Returns what to wait on, if anything can be watched.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.notifier.as_fd()
    }

    /// Returns when to call [`changes`](Self::changes) even if nothing happened.
    pub(super) fn next_search(&self) -> Option<Instant> {
        self.next_search
    }

    /// Returns how long a file was when it was last looked at.
    pub(super) fn known_len(&self, path: &Path) -> Option<u64> {
        self.files.get(path).map(|stamp| stamp.len)
    }

    /// Returns the files whose names contain a text.
    pub(super) fn files_named(&self, text: &str) -> Vec<AgentFile> {
        let is_named = |path: &&PathBuf| path.to_string_lossy().contains(text);
        let files = self.files.keys().filter(is_named);
        files
            .filter_map(|path| self.places.session_file(path))
            .collect()
    }

    pub(super) fn take_problems(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.problems)
    }

    /// Returns the files that changed since the last time. Does not wait.
    pub(super) fn changes(&mut self) -> Files {
        let notices = self.notifier.read().unwrap_or_else(|error| {
            self.report(
                "cannot watch the directories of agents",
                Path::new(""),
                error,
            );
            vec![Notice::Lost]
        });
        let mut changed = Files::new();
        let mut must_search = self.next_search.is_some_and(|at| at <= Instant::now());
        for notice in notices {
            match notice {
                Notice::File(path) => {
                    if let Some(file) = self.places.session_file(&path) {
                        self.look_at(file, Always::Yes, &mut changed);
                    }
                }
                Notice::Directory(path) => {
                    must_search |= self.places.leads_to_place(&path);
                    if self.places.may_contain_sessions(&path) {
                        self.enter(&path, 0, &mut changed);
                    }
                }
                Notice::Gone => must_search = true,
                Notice::Lost => {
                    must_search = true;
                    let error = io::Error::other("too many changes at once");
                    let what = "changes were missed; all directories of agents are searched";
                    self.report(what, Path::new(""), error);
                }
            }
        }
        if must_search {
            changed.extend(self.search());
        }
        changed
    }

    /// Returns the files that changed since the last time, also those of which no notice came.
    pub(super) fn all_changes(&mut self) -> Files {
        let mut changed = self.changes();
        changed.extend(self.search());
        changed
    }

    /// Searches all places, and watches what is not watched yet.
    fn search(&mut self) -> Files {
        let start = Instant::now();
        self.must_poll = false;
        let mut changed = Files::new();
        for place in self.places.clone().iter() {
            self.attach(&place.directory, &mut changed);
        }
        let pause = POLL.max(start.elapsed() * POLL_SHARE);
        self.next_search = self.must_poll.then(|| Instant::now() + pause);
        changed
    }

    /// Watches a place, or waits for it to appear.
    fn attach(&mut self, directory: &Path, changed: &mut Files) {
        while let Some(nearest) = nearest_directory(directory) {
            if nearest == directory {
                return self.enter(directory, 0, changed);
            }
            self.watch(&nearest, Interest::NewDirectories);
            // It may have appeared just before it was watched.
            if nearest_directory(directory).as_ref() == Some(&nearest) {
                return;
            }
        }
    }

    /// Watches a directory that may contain sessions, and looks at the files in it.
    fn enter(&mut self, directory: &Path, depth: usize, changed: &mut Files) {
        if depth > MAX_DEPTH {
            let error = io::Error::other("nested too deep");
            return self.report("cannot follow the directory", directory, error);
        }
        self.watch(directory, Interest::Contents);
        let names = match LocalStorage.list(directory) {
            Ok(names) => names,
            Err(error) => return self.report("cannot read the directory", directory, error),
        };
        for name in names {
            let path = directory.join(name);
            match path.symlink_metadata().map(|found| found.file_type()) {
                Ok(kind) if kind.is_dir() && self.places.may_contain_sessions(&path) => {
                    self.enter(&path, depth + 1, changed);
                }
                Ok(kind) if kind.is_file() => {
                    if let Some(file) = self.places.session_file(&path) {
                        self.look_at(file, Always::IfChanged, changed);
                    }
                }
                // Links are not followed; agents do not create any.
                _ => {}
            }
        }
    }

    fn look_at(&mut self, file: AgentFile, always: Always, changed: &mut Files) {
        let Some(stamp) = stamp_of(&file) else {
            self.files.remove(&file.path);
            return;
        };
        let before = self.files.insert(file.path.clone(), stamp);
        if always == Always::Yes || before != Some(stamp) {
            changed.insert(file.path.clone(), file);
        }
    }

    fn watch(&mut self, directory: &Path, interest: Interest) {
        match self.notifier.watch(directory, interest) {
            Ok(()) => {}
            Err(error) if is_gone(&error) => {}
            Err(error) => {
                self.must_poll |= error.kind() != io::ErrorKind::PermissionDenied;
                if error.kind() != io::ErrorKind::Unsupported {
                    let what = "cannot watch the directory, which is searched every 250 ms instead";
                    self.report(what, directory, error);
                }
            }
        }
    }

    /// Reports a problem, once.
    fn report(&mut self, what: &str, path: &Path, error: io::Error) {
        if !is_gone(&error) && self.reported.insert(format!("{what} {error}")) {
            self.problems.push(Error::io(what, path, error));
        }
    }
}

/// Whether a file counts as changed even if it looks the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Always {
    Yes,
    IfChanged,
}

/// Returns the stamp of a file; that of a database includes its log.
fn stamp_of(file: &AgentFile) -> Option<FileStamp> {
    let mut stamp = file_stamp(&std::fs::metadata(&file.path).ok()?);
    if file.format.tables().is_some() {
        let mut log = file.path.clone().into_os_string();
        log.push("-wal");
        if let Ok(metadata) = std::fs::metadata(log) {
            let log = file_stamp(&metadata);
            stamp.len += log.len;
            stamp.modified_ns = stamp.modified_ns.max(log.modified_ns);
        }
    }
    Some(stamp)
}

/// Returns a directory, or the nearest one above it that exists.
fn nearest_directory(directory: &Path) -> Option<PathBuf> {
    let mut above = directory.ancestors();
    above.find(|path| path.is_dir()).map(Path::to_owned)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
