//! When something was deleted, and by what: a small file beside it.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::names::Names;
use crate::error::{Error, Result};
use crate::log::{DELETED, Holder, read_deleted};
use crate::storage::{Storage, append_all};
use crate::store::Store;
use crate::time::Timestamp;

/// When something was deleted, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Deleted {
    pub(super) at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<String>,
    /// Of a purge that left words in forks: their hashes, as long as they are there.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub(super) names: Names,
}

impl Deleted {
    pub(super) fn now(store: &Store) -> Self {
        let Holder { program, since, .. } = store.holder();
        Self {
            at: since,
            program,
            names: Names::default(),
        }
    }

    /// Reads the file in a directory; `None` where it is not there or not whole.
    pub(super) fn read(storage: &dyn Storage, dir: &Path) -> Option<Self> {
        Self::read_file(storage, &dir.join(DELETED))
    }

    pub(super) fn read_file(storage: &dyn Storage, path: &Path) -> Option<Self> {
        read_deleted(storage, path)
    }

    /// Writes the file into a directory, in the place of one that is there. Durable
    /// when it returns.
    pub(super) fn write(&self, storage: &dyn Storage, dir: &Path) -> Result<()> {
        self.write_file(storage, &dir.join(DELETED))?;
        super::sync(storage, dir)
    }

    pub(super) fn write_file(&self, storage: &dyn Storage, path: &Path) -> Result<()> {
        let failed = |error| Error::io("cannot say when it was deleted", path, error);
        let bytes = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        match storage.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file = storage.create_new(path).map_err(failed)?;
        append_all(file.as_ref(), &bytes).map_err(failed)?;
        file.sync().map_err(failed)
    }
}
