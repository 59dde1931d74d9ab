//! A session's first trail may be a file of version 1, taken in as it was.

use super::files::SessionFiles;
use crate::error::{Error, Result};
use crate::legacy::{Form, Found, Index, look};
use crate::storage::{StorageFile, read_full};
use crate::trail::lines::PEEK_BUFFER;
use crate::trail::opener::{Because, Opener};
use crate::trail::reader::TrailReader;
use crate::trail::{RecordKind, Sums};

/// How every opener of ours begins.
const OPENING: &[u8] = b"{\"type\":\"session_meta\",\"version\":";
/// How far a file is looked through for a record of ours.
const LOOKED_AT: usize = 64 << 10;

/// Returns whether the first trail of a session is a file of version 1.
///
/// The second trail says so. Where that is not there yet, or cannot be read, the
/// file itself must tell.
pub(crate) fn is_legacy(files: &SessionFiles, file: &dyn StorageFile) -> Result<bool> {
    let path = files.trail_path(0);
    let failed = |error| Error::io("cannot read the trail", &path, error);
    let mut beginning = [0; OPENING.len()];
    let n = read_full(file, &mut beginning, 0).map_err(failed)?;
    if beginning[..n] == *OPENING {
        return says_version_1(file, OPENING.len() as u64).map_err(failed);
    }
    if let Some(opener) = second_opener(files)? {
        return Ok(opener.because == Because::Import);
    }
    let mut bytes = vec![0; LOOKED_AT];
    let n = read_full(file, &mut bytes, 0).map_err(failed)?;
    let bytes = bytes[..n].trim_ascii_start();
    if memchr::memmem::find(bytes, b"\",\"sum\":\"").is_some() || !bytes.starts_with(b"{") {
        return Ok(false);
    }
    match memchr::memchr(b'\n', bytes) {
        Some(end) if is_version_1(&bytes[..end]) => Ok(true),
        // An object may be long, or be spread over lines.
        _ => Ok(Index::read(file, &path)?.form == Form::Object),
    }
}

fn is_version_1(line: &[u8]) -> bool {
    !matches!(
        look(Form::Lines, line),
        Found::Damage(_) | Found::Other { .. }
    )
}

/// Returns whether the number at `offset` is 1.
fn says_version_1(file: &dyn StorageFile, offset: u64) -> std::io::Result<bool> {
    let mut digits = [0; 2];
    read_full(file, &mut digits, offset)?;
    Ok(digits[0] == b'1' && !digits[1].is_ascii_digit())
}

/// Reads the opener of a session's second trail, where there is one.
pub(crate) fn second_opener(files: &SessionFiles) -> Result<Option<Opener>> {
    if !files.trails()?.contains(&1) {
        return Ok(None);
    }
    let file = files.open_read(1)?;
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
