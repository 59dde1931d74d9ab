//! The lock of a clean-up: one runs at a time.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::log::{read_holder, write_holder};
use crate::storage::StorageFile;
use crate::store::Store;

const GC: &str = "gc.lock";

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct GcLock(Arc<dyn StorageFile>);

impl GcLock {
    /// Takes the lock. Fails with the process that holds it.
    pub(super) fn take(store: &Store) -> Result<Self> {
        let (path, file) = store.lock_file(GC)?;
        let is_free = file.try_lock();
        if !is_free.map_err(|error| Error::io("cannot lock the store", &path, error))? {
            let holder = read_holder(file.as_ref());
            let by = match &holder {
                Some(holder) => format!(" in {holder}"),
                None => String::new(),
            };
            let what = format!("another gc is running{by}");
            return Err(Error::locked(what, &path, holder));
        }
        // Only for the error of a process that finds it locked.
        write_holder(file.as_ref(), &store.holder()).ok();
        Ok(Self(file))
    }
}

impl Drop for GcLock {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}
