//! A session's payload file: large and binary parts of its messages, by hash.
//!
//! The file only grows. A payload is durable before the record that refers to it is
//! written, and it is stored once however often it is referred to. A reference contains
//! the offset of its entry, but that is a hint: a content counts only if it hashes to its
//! name, and one that is not at the offset is searched for in the whole file.

mod adopt;
mod entry;
mod outgoing;
mod writer;

#[cfg(test)]
mod payloads_tests;
#[cfg(test)]
mod testing;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::directory::LogDir;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;
use crate::message::parts::Reference;
use crate::storage::{StorageFile, read_full};
use crate::trail::PayloadSource;
use entry::{Entry, Search, is_content};

pub(crate) use adopt::adopt;
pub(crate) use outgoing::move_out;
pub(crate) use writer::{PayloadWriter, Placed};

/// The payload file's name in its session's directory.
const NAME: &str = "payloads";

/// How often, on average, each byte of the file may be hashed to find one payload: a
/// content can quote millions of headers that lead nowhere.
const EFFORT: u64 = 16;

/// A reader of a session's payloads. Clones share the open file.
#[derive(Debug, Clone)]
pub(crate) struct Payloads(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: LogDir,
    path: PathBuf,
    /// Opened when it is first needed; most sessions have none.
    file: OnceLock<Arc<dyn StorageFile>>,
}

impl Payloads {
    /// Creates a reader that has not opened the file yet.
    pub(crate) fn new(files: &LogDir) -> Self {
        Self(Arc::new(Inner {
            path: files.path().join(NAME),
            files: files.clone(),
            file: OnceLock::new(),
        }))
    }

    /// Returns a payload's content: that of the entry at `at` if it matches, otherwise
    /// that of another entry.
    pub(crate) fn fetch(&self, hash: ObjectId, bytes: u64, at: u64) -> Result<Vec<u8>> {
        let wanted = Entry { hash, bytes, at };
        let Some(file) = self.file()? else {
            let what = format!("the payload {hash} is lost: there is no payload file");
            return Err(self.corrupt(what));
        };
        let mut content = Vec::new();
        let found = find(file, wanted, |from| {
            read_content(file, from, bytes, &mut content)?;
            Ok(ObjectId::of(&content) == hash)
        });
        if found.map_err(|error| self.unreadable(hash, error))? {
            return Ok(content);
        }
        let what = format!("the payload {hash} of {bytes} bytes is lost or damaged");
        Err(self.corrupt(what))
    }

    /// Returns whether [`fetch`](Self::fetch) would find a payload, with no more memory
    /// than a buffer.
    pub(crate) fn check(&self, hash: ObjectId, bytes: u64, at: u64) -> Result<bool> {
        let wanted = Entry { hash, bytes, at };
        let Some(file) = self.file()? else {
            return Ok(false);
        };
        find(file, wanted, |from| is_content(file, from, bytes, hash))
            .map_err(|error| self.unreadable(hash, error))
    }

    /// Returns whether a payload's entry is where it is expected; otherwise, whether
    /// [`fetch`](Self::fetch) would find it.
    pub(crate) fn is_there(&self, hash: ObjectId, bytes: u64, at: u64) -> Result<bool> {
        let wanted = Entry { hash, bytes, at };
        let Some(file) = self.file()? else {
            return Ok(false);
        };
        let len = file.len();
        let found = len.and_then(|len| match wanted.content_within(len) {
            Some(_) => Entry::read(file, at),
            None => Ok(None),
        });
        let found = found.map_err(|error| self.unreadable(hash, error))?;
        Ok(found == Some(wanted) || self.check(hash, bytes, at)?)
    }

    /// Returns the open file; `None` if there is none.
    fn file(&self) -> Result<Option<&dyn StorageFile>> {
        let Inner { files, path, file } = &*self.0;
        if let Some(file) = file.get() {
            return Ok(Some(file.as_ref()));
        }
        match files.find_read(NAME) {
            Ok((_, opened)) => Ok(Some(file.get_or_init(|| opened).as_ref())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot open the payload file", path, error)),
        }
    }

    fn corrupt(&self, what: String) -> Error {
        let what = format!("{what}; restore the file from a backup");
        Error::new(ErrorKind::Corrupt, what).at_path(&self.0.path)
    }

    fn unreadable(&self, hash: ObjectId, error: io::Error) -> Error {
        Error::io(
            format!("cannot read the payload {hash}"),
            &self.0.path,
            error,
        )
    }
}

impl PayloadSource for Payloads {
    fn fetch(&self, reference: &Reference) -> Result<Vec<u8>> {
        Payloads::fetch(self, reference.hash, reference.bytes, reference.at)
    }
}

/// Searches for a payload at its offset, then wherever its header occurs; `is_it` checks a
/// possible beginning of the content. Returns whether it was found.
fn find(
    file: &dyn StorageFile,
    wanted: Entry,
    mut is_it: impl FnMut(u64) -> io::Result<bool>,
) -> io::Result<bool> {
    let len = file.len()?;
    // The header is not checked: if only that is damaged, nothing is lost.
    if let Some(from) = wanted.content_within(len)
        && is_it(from)?
    {
        return Ok(true);
    }
    let mut header = Vec::new();
    wanted.write_header(&mut header);
    let mut search = Search::new(file, &header);
    let mut effort = len.saturating_mul(EFFORT);
    let mut next = search.next(0)?;
    while let Some(at) = next {
        let Some(from) = Entry { at, ..wanted }.content_within(len) else {
            return Ok(false);
        };
        if at != wanted.at && is_it(from)? {
            return Ok(true);
        }
        match effort.checked_sub(wanted.len()) {
            Some(left) => effort = left,
            None => return Ok(false),
        }
        next = search.next(at + 1)?;
    }
    Ok(false)
}

/// Reads a content within the file, as far as it goes.
fn read_content(
    file: &dyn StorageFile,
    from: u64,
    bytes: u64,
    content: &mut Vec<u8>,
) -> io::Result<()> {
    let len = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    content
        .try_reserve_exact(len.saturating_sub(content.len()))
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    content.resize(len, 0);
    let n = read_full(file, content, from)?;
    content.truncate(n);
    Ok(())
}
