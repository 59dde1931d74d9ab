//! Remembers the files that were imported. It can be deleted at any time.
//!
//! By a file's length and time it tells that nothing changed, and it knows where the record
//! is that says how far the file was read. The truth is in the sessions: without the cache,
//! the file is compared with them again, which changes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use backtrail::{SessionId, Store};
use serde::{Deserialize, Serialize};

use super::contained::CachedContainer;
use crate::container::FileStamp;

/// The name includes the version; files of other versions are neither read nor touched.
const NAME: &str = "import-2";

/// A file that was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedFile {
    pub(super) stamp: FileStamp,
    /// The session that keeps it.
    pub(super) session: SessionId,
    /// Where the record of its last import is: trail, seq, byte.
    pub(super) place: Option<(u32, u64, u64)>,
    /// How many damaged lines it has.
    pub(super) damaged: u64,
    /// The number of its unknown records, by type.
    pub(super) unknown: BTreeMap<String, u64>,
}

impl CachedFile {
    pub(super) fn new(stamp: FileStamp, session: SessionId) -> Self {
        Self {
            stamp,
            session,
            place: None,
            damaged: 0,
            unknown: BTreeMap::new(),
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
}

impl Cache {
    /// Reads the cache. One that is missing or damaged is rebuilt from the sessions.
    pub(super) fn load(store: &Store) -> Self {
        if let Some(saved) = Self::load_saved(store) {
            return saved;
        }
        let mut cache = Self {
            changed: true,
            ..Self::default()
        };
        // If a session cannot be read, its files are compared with it when they are read.
        for id in store.sessions().unwrap_or_default() {
            cache.add_session(store, &id).ok();
        }
        cache
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
                let mut cached = CachedFile::new(FileStamp::default(), id.clone());
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

    pub(super) fn set(&mut self, path: &Path, cached: CachedFile) {
        // A file whose path is not UTF-8 is compared each time.
        if let Some(path) = path.to_str() {
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
