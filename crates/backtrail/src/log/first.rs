//! A session's first trail may be a file of version 1, taken in as it was.

use std::path::Path;
use std::sync::Arc;

use super::chain::Segment;
use super::directory::LogDir;
use crate::error::{Error, ErrorKind, Result};
use crate::legacy::{Form, Found, is_object, look};
use crate::storage::{StorageFile, read_full};
use crate::trail::lines::{Forwards, PEEK_BUFFER, STREAM_BUFFER};
use crate::trail::opener::{Because, Opener};
use crate::trail::reader::TrailReader;
use crate::trail::record::{split_prev, split_sum};
use crate::trail::{RecordKind, Sums};

/// How every opener of ours begins.
pub(crate) const OPENING: &[u8] = b"{\"type\":\"session_meta\",\"version\":";

/// Returns whether the first trail of a session is a file of version 1.
///
/// The second trail says so. Where that is not there yet, or its opener was lost,
/// the file itself must tell.
pub(crate) fn is_legacy(files: &LogDir, file: &Arc<dyn StorageFile>) -> Result<bool> {
    if files.is_of_workspace() {
        return Ok(false);
    }
    let path = files.trail_path(0);
    if let Some(version) = opening_version(file.as_ref(), &path)? {
        return Ok(version == 1);
    }
    match second_opener(files)?.map(|opener| opener.because) {
        Some(Because::Import) => Ok(true),
        // A lost opener gets one of a repair in its place.
        None | Some(Because::Repair) => looks_like_version_1(file, &path),
        Some(_) => Ok(false),
    }
}

/// Returns the version of a file that begins as trails of ours do.
pub(crate) fn opening_version(file: &dyn StorageFile, path: &Path) -> Result<Option<u64>> {
    let mut beginning = [0; OPENING.len() + 4];
    let n = read_full(file, &mut beginning, 0)
        .map_err(|error| Error::io("cannot read the trail", path, error))?;
    let number = beginning[..n].strip_prefix(OPENING).map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
    });
    Ok(number)
}

/// Returns whether version 1 wrote the first line that tells. What does not tell
/// is damaged, and may be as long as the file.
fn looks_like_version_1(file: &Arc<dyn StorageFile>, path: &Path) -> Result<bool> {
    if is_object(file.as_ref(), path)? {
        return Ok(true);
    }
    let mut lines = Forwards::new(Arc::clone(file), 0, STREAM_BUFFER);
    loop {
        let line = lines
            .next()
            .map_err(|error| Error::io("cannot read the trail", path, error))?;
        let Some(line) = line else {
            return Ok(false);
        };
        let bytes = lines.bytes(&line);
        if ends_as_ours(bytes.trim_ascii_end()) {
            return Ok(false);
        }
        match look(Form::Lines, bytes) {
            Found::Damage(_) | Found::Other { .. } | Found::Blank => {}
            _ => return Ok(true),
        }
    }
}

/// Returns whether a line ends as lines of ours do, be its sum right or wrong. They
/// would else pass for lines of version 1.
fn ends_as_ours(line: &[u8]) -> bool {
    split_sum(line).is_some_and(|(covered, _)| split_prev(covered).is_some())
}

/// Reads the opener of a session's second trail, where there is one.
pub(crate) fn second_opener(files: &LogDir) -> Result<Option<Opener>> {
    let file = match files.open_read(1) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let path = files.trail_path(1);
    let mut reader = TrailReader::forwards(file, &path, 0, PEEK_BUFFER, Sums::Check);
    let Some(record) = reader.next_record()? else {
        return Ok(None);
    };
    if record.kind() != RecordKind::Opener {
        return Ok(None);
    }
    Ok(Opener::read(&record, files.id(), 1).ok())
}

/// Reads what says where a session comes from: the opener of its first trail, or that
/// of the second where the first is a file of version 1. `None` where it cannot be
/// read.
pub(crate) fn first_opener(files: &LogDir) -> Result<Option<Opener>> {
    let Some(first) = files.trails()?.first().copied() else {
        return Ok(None);
    };
    let segment = Segment::open(files, first, u64::MAX)?;
    if segment.is_legacy() {
        second_opener(files)
    } else {
        Ok(segment.opener)
    }
}
