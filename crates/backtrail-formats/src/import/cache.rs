//! Remembers the files that were imported. It can be deleted at any time.
//!
//! By a file's length and time it tells that nothing changed, and it knows where the record
//! is that says how far the file was read. The truth is in the sessions: without the cache,
//! the file is compared with them again, which changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use backtrail::{SessionId, Store};
use serde::{Deserialize, Serialize};

use super::contained::CachedContainer;
use super::found::{FoundFile, file_stamp};
use super::report::Outcome;
use crate::container::FileStamp;
use crate::exclude::Exclude;

/// The name includes the version; files of other versions are neither read nor touched.
const NAME: &str = "import-2";

/// A file that was imported, or is not a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedFile {
    pub(super) stamp: FileStamp,
    /// The session that keeps it; `None` if it has no conversation.
    pub(super) session: Option<SessionId>,
    /// Why it is not a session at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) not_a_session: Option<String>,
    /// Where the record of its last import is: trail, seq, byte.
    pub(super) place: Option<(u32, u64, u64)>,
    /// How many damaged lines it has.
    pub(super) damaged: u64,
    /// The number of its unknown records, by type.
    pub(super) unknown: BTreeMap<String, u64>,
}

impl CachedFile {
    pub(super) fn new(stamp: FileStamp, session: Option<SessionId>) -> Self {
        Self {
            stamp,
            session,
            not_a_session: None,
            place: None,
            damaged: 0,
            unknown: BTreeMap::new(),
        }
    }

    /// Returns what importing it again does, as long as it does not change.
    pub(super) fn outcome(&self) -> Outcome {
        match (&self.session, &self.not_a_session) {
            (_, Some(reason)) => Outcome::NotASession(reason.clone()),
            (Some(_), None) => Outcome::Unchanged,
            (None, None) => Outcome::NoConversation,
        }
    }
}

/// All files that were imported, by path.
#[derive(Debug, Default)]
pub(super) struct Cache {
    known: Known,
    changed: bool,
}

/// What is written.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    files: BTreeMap<String, CachedFile>,
    containers: BTreeMap<String, CachedContainer>,
    #[serde(default)]
    settled: Settled,
}

/// Files from which nothing more comes as long as they have these stamps: they are broken, empty
/// or excluded, or their sessions were deleted here.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Settled {
    /// Changes with the patterns of what is excluded, and with the trash.
    key: String,
    files: BTreeMap<String, FileStamp>,
}

impl Cache {
    /// Reads the cache. One that is missing or damaged is rebuilt from the sessions.
    pub(super) fn load(store: &Store, exclude: &Exclude) -> Self {
        if let Some(mut saved) = Self::load_saved(store) {
            saved.set_key(settled_key(store, exclude));
            return saved;
        }
        let mut cache = Self::empty(store, exclude);
        // If a session cannot be read, its files are compared with it when they are read.
        for id in store.sessions().unwrap_or_default() {
            cache.add_session(store, &id).ok();
        }
        cache
    }

    /// Creates an empty cache, which is saved even if nothing is added.
    pub(super) fn empty(store: &Store, exclude: &Exclude) -> Self {
        let mut cache = Self {
            changed: true,
            ..Self::default()
        };
        cache.set_key(settled_key(store, exclude));
        cache
    }

    /// Forgets the settled files if the key is another.
    pub(super) fn set_key(&mut self, key: String) {
        let settled = &mut self.known.settled;
        if settled.key != key {
            self.changed |= !settled.files.is_empty();
            *settled = Settled {
                key,
                files: BTreeMap::new(),
            };
        }
    }

    /// Reads the cache. `None` if it is missing or damaged.
    pub(super) fn load_saved(store: &Store) -> Option<Self> {
        let known = parse(&store.read_derived(NAME)?)?;
        Some(Self {
            known,
            changed: false,
        })
    }

    /// Adds the files that a session keeps. Their times are not known any more, so they will
    /// be compared with what is kept.
    fn add_session(&mut self, store: &Store, id: &SessionId) -> backtrail::Result<()> {
        let reader = store.read_session(id)?;
        // A session of our own was not imported, and may be long.
        if reader.info()?.belongs_to.is_none() {
            return Ok(());
        }
        for kept in reader.sources()? {
            if kept.held_by.is_none() {
                let mut cached = CachedFile::new(FileStamp::default(), Some(id.clone()));
                cached.place = Some(kept.place);
                self.set(&kept.path, cached);
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, path: &Path) -> Option<&CachedFile> {
        self.known.files.get(path.to_str()?)
    }

    pub(super) fn container(&self, path: &Path) -> Option<&CachedContainer> {
        self.known.containers.get(path.to_str()?)
    }

    /// Remembers a container; with `None`, forgets it.
    pub(super) fn set_container(&mut self, path: &Path, cached: Option<CachedContainer>) {
        let Some(path) = path.to_str() else { return };
        if self.known.containers.get(path) == cached.as_ref() {
            return;
        }
        match cached {
            Some(cached) => drop(self.known.containers.insert(path.to_owned(), cached)),
            None => drop(self.known.containers.remove(path)),
        }
        self.changed = true;
    }

    /// Returns whether a file may have something new, judging by its stamp.
    pub(super) fn is_news(&self, file: &FoundFile) -> bool {
        let stamp = settled_stamp(file);
        let settled = &self.known.settled.files;
        let is_settled = || file.path.to_str().and_then(|path| settled.get(path)) == Some(&stamp);
        let is_cached = || {
            self.get(&file.path)
                .is_some_and(|it| it.stamp == file.stamp)
        };
        let is_database = || {
            let cached = self.container(&file.path);
            cached.is_some_and(|it| it.is_as_stamped(&file.path, self))
        };
        stamp.len > 0 && !is_cached() && !is_settled() && !is_database()
    }

    /// Returns the stamp that a file had when it was imported or settled.
    pub(super) fn stamp_of(&self, path: &Path) -> Option<FileStamp> {
        let settled = || self.known.settled.files.get(path.to_str()?).copied();
        self.get(path).map(|it| it.stamp).or_else(settled)
    }

    /// Notes that nothing more comes from a file as it is.
    pub(super) fn settle(&mut self, file: &FoundFile) {
        self.settle_path(&file.path, settled_stamp(file));
    }

    pub(super) fn settle_path(&mut self, path: &Path, stamp: FileStamp) {
        if let Some(path) = path.to_str() {
            let before = self.known.settled.files.insert(path.to_owned(), stamp);
            self.changed |= before != Some(stamp);
        }
    }

    /// Forgets the files of sessions.
    fn forget_sessions(&mut self, ids: &[SessionId]) {
        let is_kept = |cached: &CachedFile| !cached.session.iter().any(|id| ids.contains(id));
        self.known.files.retain(|_, cached| is_kept(cached));
        self.known.containers.clear();
        self.changed = true;
    }

    pub(super) fn set(&mut self, path: &Path, cached: CachedFile) {
        // A file whose path is not UTF-8 is compared each time.
        if let Some(path) = path.to_str() {
            self.known.settled.files.remove(path);
            let before = self.known.files.insert(path.to_owned(), cached.clone());
            self.changed |= before != Some(cached);
        }
    }

    /// Writes the cache, atomically.
    pub(super) fn save(&mut self, store: &Store) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let mut bytes = vec![b'0'; CHECKSUM_LEN];
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, &self.known)?;
        let checksum = blake3::hash(&bytes[CHECKSUM_LEN..]).to_hex();
        bytes[..CHECKSUM_LEN].copy_from_slice(&checksum.as_bytes()[..CHECKSUM_LEN]);
        store.write_derived(NAME, &bytes)?;
        self.changed = false;
        Ok(())
    }
}

/// Does work that removes sessions, and derived data with them, but keeps what is known about the
/// files of other sessions: otherwise all of them would have to be compared again.
pub fn forgetting_sessions<T>(store: &Store, ids: &[SessionId], work: impl FnOnce() -> T) -> T {
    let saved = Cache::load_saved(store);
    let done = work();
    if let Some(mut cache) = saved {
        cache.forget_sessions(ids);
        // A cache that cannot be saved is rebuilt next time.
        cache.save(store).ok();
    }
    done
}

/// Returns the key of files that are settled now: it changes when something is deleted or
/// restored, or other files are excluded.
pub(super) fn settled_key(store: &Store, exclude: &Exclude) -> String {
    let trash = fs::metadata(store.root().join("trash")).and_then(|it| it.modified());
    let text = format!("{:?} {:?}", trash.ok(), exclude.patterns());
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// Returns the stamp that shows whether anything changed in a file, or in a database and its log.
pub(super) fn settled_stamp(file: &FoundFile) -> FileStamp {
    let mut stamp = file.stamp;
    if file.contained.is_none() && file.format.tables().is_some() {
        let mut log = file.path.as_os_str().to_owned();
        log.push("-wal");
        if let Ok(log) = fs::symlink_metadata(log) {
            let log = file_stamp(&log);
            stamp.len += log.len;
            stamp.modified_ns = stamp.modified_ns.max(log.modified_ns);
        }
    }
    stamp
}

/// How many digits of the checksum are at the beginning.
const CHECKSUM_LEN: usize = 16;

fn parse(bytes: &[u8]) -> Option<Known> {
    let (checksum, rest) = bytes.split_at_checked(CHECKSUM_LEN)?;
    let expected = blake3::hash(rest).to_hex();
    if checksum != &expected.as_bytes()[..CHECKSUM_LEN] {
        return None;
    }
    serde_json::from_slice(rest).ok()
}
