//! Where each record of a version-1 file lies.

use std::ops::Range;
use std::path::Path;

use super::look::{Looked, look_closely};
use super::scan::{Event, Scanner, Verdict};
use super::{CHUNK, Form};
use crate::error::{Error, Reason, Result};
use crate::storage::{StorageFile, read_full};
use crate::trail::lines::Ending;
use crate::trail::record::MAX_READ;

/// Where each record of a version-1 file lies, by its seq.
///
/// In the lines form a record's seq is the number of its line, in the object
/// form its position in `messages`; both count from 1.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) form: Form,
    entries: Vec<Entry>,
    /// Whether a newline ends the last line.
    ended: bool,
}

/// A line without its newline, or an element of `messages`.
#[derive(Debug, Clone, Copy)]
struct Entry {
    offset: u64,
    len: u64,
}

impl Index {
    /// Reads a file once, or twice if it only begins like one object. Memory
    /// goes into the index alone, 16 bytes an entry.
    pub(crate) fn read(file: &dyn StorageFile, path: &Path) -> Result<Self> {
        let mut index = match elements(file, path)? {
            Some(entries) => Self {
                form: Form::Object,
                entries,
                ended: true,
            },
            None => lines(file, path)?,
        };
        index.entries.shrink_to_fit();
        Ok(index)
    }

    /// Returns the highest seq, 0 if there is none.
    pub(crate) fn last_seq(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns where a record lies. A line may turn out to hold none.
    pub(crate) fn place(&self, seq: u64) -> Option<Range<u64>> {
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        let entry = self.entries.get(at)?;
        Some(entry.offset..entry.offset + entry.len)
    }

    /// Reads what stands under a seq into `buffer`; says why where it is too long
    /// for that.
    pub(crate) fn load(
        &self,
        file: &dyn StorageFile,
        path: &Path,
        seq: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Result<(), Reason>> {
        let place = self.place(seq).unwrap_or(0..0);
        read_place(file, path, place, buffer)
    }

    /// Looks at what was loaded of a seq.
    pub(crate) fn look<'b>(&self, seq: u64, bytes: &'b [u8]) -> Looked<'b> {
        let ending = if self.ended || seq < self.last_seq() {
            Ending::Newline
        } else {
            Ending::Missing
        };
        look_closely(self.form, bytes, ending)
    }
}

/// Reads a part of a file into `buffer`, unless it is too long for a record.
pub(super) fn read_place(
    file: &dyn StorageFile,
    path: &Path,
    place: Range<u64>,
    buffer: &mut Vec<u8>,
) -> Result<Result<(), Reason>> {
    let bytes = place.end - place.start;
    buffer.clear();
    if bytes > MAX_READ as u64 {
        let limit = MAX_READ as u64;
        return Ok(Err(Reason::TooLong { bytes, limit }));
    }
    buffer.resize(bytes as usize, 0);
    let n = read_chunk(file, path, buffer, place.start)?;
    buffer.truncate(n);
    Ok(Ok(()))
}

pub(super) fn read_chunk(
    file: &dyn StorageFile,
    path: &Path,
    buffer: &mut [u8],
    at: u64,
) -> Result<usize> {
    read_full(file, buffer, at)
        .map_err(|error| Error::io("cannot read the session file", path, error))
}

/// Returns whether a file is one object with `messages`.
pub(crate) fn is_object(file: &dyn StorageFile, path: &Path) -> Result<bool> {
    Ok(elements(file, path)?.is_some())
}

/// Finds the elements of `messages`; `None` where the file is lines.
fn elements(file: &dyn StorageFile, path: &Path) -> Result<Option<Vec<Entry>>> {
    let mut scanner = Scanner::new();
    let mut entries = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    loop {
        let n = read_chunk(file, path, &mut chunk, at)?;
        scanner.feed(&chunk[..n]);
        if scanner.is_lines() {
            return Ok(None);
        }
        let places = scanner.take_events().into_iter().filter_map(|event| {
            let Event::Element { place, .. } = event else {
                return None;
            };
            Some(Entry {
                offset: place.start,
                len: place.end - place.start,
            })
        });
        entries.extend(places);
        at += n as u64;
        if n < chunk.len() {
            let is_object = scanner.finish() != Verdict::Lines;
            return Ok(is_object.then_some(entries));
        }
    }
}

fn lines(file: &dyn StorageFile, path: &Path) -> Result<Index> {
    let mut entries = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    let mut offset = 0;
    loop {
        let n = read_chunk(file, path, &mut chunk, at)?;
        for newline in memchr::memchr_iter(b'\n', &chunk[..n]) {
            let end = at + newline as u64;
            let len = end - offset;
            entries.push(Entry { offset, len });
            offset = end + 1;
        }
        at += n as u64;
        if n < chunk.len() {
            break;
        }
    }
    let ended = offset == at;
    if !ended {
        let len = at - offset;
        entries.push(Entry { offset, len });
    }
    Ok(Index {
        form: Form::Lines,
        entries,
        ended,
    })
}
