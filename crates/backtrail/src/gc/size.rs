//! How large a store is.

use std::path::Path;

use crate::error::{Error, Result};
use crate::session::is_absent;
use crate::storage::Storage;

/// Returns how many bytes the files in a directory and below it have. What goes
/// meanwhile counts for nothing.
pub(super) fn bytes_below(storage: &dyn Storage, dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        match storage.list(&path) {
            Ok(names) => waiting.extend(names.into_iter().map(|name| path.join(name))),
            // A file; one that cannot be opened is gone meanwhile, or none of ours.
            Err(error) if is_absent(&error) => {
                let len = storage.open_read(&path).and_then(|file| file.len());
                bytes += len.unwrap_or(0);
            }
            Err(error) => return Err(Error::io("cannot measure the store", &path, error)),
        }
    }
    Ok(bytes)
}
