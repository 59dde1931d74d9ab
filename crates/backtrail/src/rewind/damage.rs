//! Which contents of files the store cannot give back.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::path_change::FileEntry;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects};
use crate::snapshot::Snapshot;
use crate::snapshot::restorable::check_length;
use crate::snapshot::scan::queue::in_parallel;

/// Fewer files than this are read by one thread.
const MANY: usize = 64;

/// A file whose content is damaged.
#[derive(Debug)]
pub(super) struct DamagedContent<'a> {
    pub(super) path: &'a Path,
    pub(super) content: ObjectId,
    pub(super) error: Error,
}

/// Reads the contents of files and returns those that are damaged, in the same order.
pub(super) fn damaged_contents<'a>(
    objects: &Objects,
    files: &[(&'a Path, FileEntry)],
) -> Result<Vec<DamagedContent<'a>>> {
    let next = AtomicUsize::new(0);
    let threads = match files.len() {
        0..MANY => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let found = in_parallel(threads.min(8), || {
        let mut found = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((path, file)) = files.get(at) else {
                return Ok(found);
            };
            if let Some(error) = damage_of(objects, file)? {
                let content = file.content;
                found.push((
                    at,
                    DamagedContent {
                        path,
                        content,
                        error,
                    },
                ));
            }
        }
    })?;
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    found.sort_unstable_by_key(|(at, _)| *at);
    Ok(found.into_iter().map(|(_, one)| one).collect())
}

/// Reads a content, and returns what is wrong with it, if anything is.
fn damage_of(objects: &Objects, file: &FileEntry) -> Result<Option<Error>> {
    let mut len = 0;
    let read = objects.read_to(&file.content, &mut |piece| {
        len += piece.len() as u64;
        Ok(())
    });
    match read.and_then(|()| check_length(&file.content, len, file.size)) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// Returns the contents of all files of a snapshot.
pub(super) fn contents_of(snapshot: &Snapshot) -> Result<HashSet<ObjectId>> {
    let mut contents = HashSet::new();
    for entry in snapshot.entries() {
        contents.extend(entry?.1.content);
    }
    Ok(contents)
}
