//! The file that says when something was deleted, and by which program.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::inherited_names::NameHashes;
use crate::error::{Error, Result};
use crate::log::{DELETED, Holder, read_deleted};
use crate::storage::{Storage, append_all, if_found};
use crate::store::Store;
use crate::time::Timestamp;

/// When something was deleted, and by which program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Deleted {
    pub(super) at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<String>,
    /// After a purge that left a title or tags in forks: their hashes.
    #[serde(default, skip_serializing_if = "NameHashes::is_empty")]
    pub(super) names: NameHashes,
}

impl Deleted {
    pub(super) fn now(store: &Store) -> Self {
        let Holder { program, since, .. } = store.holder();
        Self {
            at: since,
            program,
            names: NameHashes::default(),
        }
    }

    /// Reads the file in a directory; `None` where it is missing or incomplete.
    pub(super) fn read(storage: &dyn Storage, dir: &Path) -> Option<Self> {
        Self::read_file(storage, &dir.join(DELETED))
    }

    pub(super) fn read_file(storage: &dyn Storage, path: &Path) -> Option<Self> {
        read_deleted(storage, path)
    }

    /// Writes the file into a directory, replacing one that is there. Durable when it
    /// returns.
    pub(super) fn write(&self, storage: &dyn Storage, dir: &Path) -> Result<()> {
        self.write_file(storage, &dir.join(DELETED))?;
        super::sync(storage, dir)
    }

    pub(super) fn write_file(&self, storage: &dyn Storage, path: &Path) -> Result<()> {
        let failed = |error| Error::io("cannot record the deletion time", path, error);
        let bytes = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        if_found(storage.remove_file(path)).map_err(failed)?;
        let file = storage.create_new(path).map_err(failed)?;
        append_all(file.as_ref(), &bytes).map_err(failed)?;
        file.sync().map_err(failed)
    }
}
