//! Which agents' histories were imported: an empty file for each, in `imported/`.

use std::collections::BTreeSet;
use std::io;

use super::Store;
use crate::error::{IoContext, Result};
use crate::storage::{make_dir, names_in};

/// The directory in the store.
pub(super) const IMPORTED: &str = "imported";

impl Store {
    /// Returns the agents whose histories were imported; none if that cannot be read.
    #[doc(hidden)]
    pub fn imported_agents(&self) -> BTreeSet<String> {
        let names = names_in(self.storage(), &self.root().join(IMPORTED));
        let names = names.unwrap_or_default().into_iter();
        names.filter_map(|name| name.into_string().ok()).collect()
    }

    /// Notes that the history of an agent was imported. The name must be a file's name.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    #[doc(hidden)]
    pub fn note_imported_agent(&self, agent: &str) -> Result<()> {
        let dir = self.root().join(IMPORTED);
        let path = dir.join(agent);
        let storage = self.storage();
        let note = || {
            make_dir(storage, &dir)?;
            match storage.create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
                file => file?.sync()?,
            }
            storage.sync_dir(&dir)?;
            storage.sync_dir(self.root())
        };
        note().context("cannot note what was imported", &path)
    }
}
