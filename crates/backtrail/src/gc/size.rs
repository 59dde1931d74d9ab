//! The size of a store.

use std::path::Path;

use crate::storage::Storage;

/// Returns how many bytes the files in a directory and below it have. Files that go away
/// meanwhile or cannot be opened are not counted; links are not followed.
pub(super) fn bytes_below(storage: &dyn Storage, dir: &Path) -> u64 {
    let mut bytes = 0;
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        if storage.is_dir(&path).unwrap_or(false) {
            let names = storage.list(&path).unwrap_or_default();
            waiting.extend(names.into_iter().map(|name| path.join(name)));
        } else {
            let len = storage.open_read(&path).and_then(|file| file.len());
            bytes += len.unwrap_or(0);
        }
    }
    bytes
}
