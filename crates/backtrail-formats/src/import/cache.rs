//! What is known of files that were taken in: a hint that can be deleted at any time.
//!
//! It tells by a file's length and time that nothing changed, and where the record stands
//! that says how far it was read. The truth is in the sessions; what is not here is found
//! out by reading the file again, which changes nothing that is known.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use backtrail::{SessionId, Store};
use serde::{Deserialize, Serialize};

use super::found::Stamp;

/// The name says the version: another one is not read, and not touched.
const NAME: &str = "import-1";

/// A file that was taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    len: u64,
    modified_ns: String,
    inode: u64,
    /// The session that holds it.
    pub(super) session: SessionId,
    /// Where the record of its last reading stands: trail, seq, byte.
    pub(super) place: Option<(u32, u64, u64)>,
    /// How many lines of it could not be read.
    pub(super) damaged: u64,
    /// Records of it that are not understood.
    pub(super) unknown: BTreeMap<String, u64>,
}

impl Known {
    pub(super) fn new(stamp: Stamp, session: SessionId) -> Self {
        Self {
            len: stamp.len,
            modified_ns: stamp.modified_ns.to_string(),
            inode: stamp.inode,
            session,
            place: None,
            damaged: 0,
            unknown: BTreeMap::new(),
        }
    }

    /// Returns whether a file is as it was.
    pub(super) fn is(&self, stamp: &Stamp) -> bool {
        self.len == stamp.len
            && self.inode == stamp.inode
            && self.modified_ns == stamp.modified_ns.to_string()
    }
}

/// All files that are known, by their paths.
#[derive(Debug, Default)]
pub(super) struct Cache {
    path: PathBuf,
    files: BTreeMap<String, Known>,
    changed: bool,
}

impl Cache {
    /// Reads what is known. What is missing or damaged is found out from the sessions.
    pub(super) fn load(store: &Store) -> Self {
        let path = store.root().join("derived").join(NAME);
        let files = fs::read(&path).ok().and_then(|bytes| read(&bytes));
        let mut cache = Self {
            path,
            changed: files.is_none(),
            files: files.unwrap_or_default(),
        };
        if cache.changed {
            // A session that cannot be read is compared with its file when that is read.
            for id in store.sessions().unwrap_or_default() {
                cache.learn(store, &id).ok();
            }
        }
        cache
    }

    /// Learns from a session which files it holds. When they were read is not known any
    /// more: they are compared with what is held.
    fn learn(&mut self, store: &Store, id: &SessionId) -> backtrail::Result<()> {
        let reader = store.read_session(id)?;
        // A session of our own came from no file, however long it is.
        if reader.info()?.belongs_to.is_none() {
            return Ok(());
        }
        for kept in reader.sources()? {
            if kept.held_by.is_none() {
                let mut known = Known::new(Stamp::default(), id.clone());
                known.place = Some(kept.place);
                self.set(&kept.path, known);
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Known> {
        self.files.get(path.to_str()?)
    }

    pub(super) fn set(&mut self, path: &Path, known: Known) {
        // A path that is no text is looked at anew each time.
        if let Some(path) = path.to_str() {
            self.changed =
                self.files.insert(path.to_owned(), known.clone()) != Some(known) || self.changed;
        }
    }

    /// Writes what is known, in one step.
    pub(super) fn save(&mut self) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let mut bytes = vec![b'0'; CHECK];
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, &self.files)?;
        let check = blake3::hash(&bytes[CHECK..]).to_hex();
        bytes[..CHECK].copy_from_slice(&check.as_bytes()[..CHECK]);
        let aside = self.path.with_extension("new");
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&aside)?;
        file.write_all(&bytes)?;
        drop(file);
        fs::rename(&aside, &self.path)?;
        self.changed = false;
        Ok(())
    }
}

/// How many digits of the check stand at the beginning.
const CHECK: usize = 16;

fn read(bytes: &[u8]) -> Option<BTreeMap<String, Known>> {
    let (check, rest) = bytes.split_at_checked(CHECK)?;
    let right = blake3::hash(rest).to_hex();
    if check != &right.as_bytes()[..CHECK] {
        return None;
    }
    serde_json::from_slice(rest).ok()
}
