//! The files that a session was imported from, byte for byte.
//!
//! Each reading of such a file adds one record. It names the file, the bytes of it that the
//! session now holds, and their place in the payload file, compressed. The records of one
//! file that follow a beginning at byte 0 make up the whole file; if the file was
//! rewritten, another beginning follows, and the earlier bytes stay.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::reader::SessionReader;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::json::Json;
use crate::log::payloads::{PayloadWriter, Payloads};
use crate::trail::source::{Piece, SourceRecord};

/// The size of one piece of a file: small enough to hold in memory, large enough to
/// compress well.
pub(crate) const PIECE: usize = 1 << 20;
/// Sources are written once and read rarely, so speed matters more than size.
const LEVEL: i32 = 1;

impl SourceRecord {
    /// Stores the next bytes, compressed, in a session's payloads.
    pub(crate) fn keep(&mut self, bytes: &[u8], payloads: &mut PayloadWriter) -> Result<()> {
        let chunks = || bytes.chunks(PIECE);
        let packed = chunks()
            .map(|bytes| zstd::bulk::compress(bytes, LEVEL))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| Error::io("cannot pack the file", &self.path, error))?;
        let contents: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
        let kept = payloads.store(&contents)?;
        for ((bytes, packed), (payload, at)) in chunks().zip(&packed).zip(kept) {
            self.pieces.push(Piece {
                payload,
                bytes: packed.len() as u64,
                at,
                unpacked: bytes.len() as u64,
            });
        }
        self.to += bytes.len() as u64;
        Ok(())
    }
}

/// A file that a session was imported from, as far as the session holds it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeptSource {
    /// The program that keeps the file.
    pub agent: String,
    /// The file.
    pub path: PathBuf,
    /// The session that holds its bytes, if that is another one.
    pub held_by: Option<SessionId>,
    /// How many bytes of it are held.
    pub bytes: u64,
    /// The note of the newest reading.
    pub note: Option<Json>,
    /// Whether a reading is missing or damaged, so that the file is incomplete.
    pub incomplete: bool,
    /// The record of the newest reading: its trail, its seq and its first byte.
    pub place: (u32, u64, u64),
    pieces: Vec<Piece>,
}

impl KeptSource {
    /// Creates a source without any bytes.
    fn new(path: PathBuf) -> Self {
        Self {
            agent: String::new(),
            path,
            held_by: None,
            bytes: 0,
            note: None,
            incomplete: false,
            place: (0, 0, 0),
            pieces: Vec::new(),
        }
    }

    /// Drops the bytes from `to` on, which a later reading replaces. Returns whether all before
    /// them are there.
    fn truncate(&mut self, to: u64) -> bool {
        let mut at = 0;
        let is_before = |piece: &&Piece| {
            let is_before = at < to;
            at += if is_before { piece.unpacked } else { 0 };
            is_before
        };
        let kept = self.pieces.iter().take_while(is_before).count();
        self.pieces.truncate(kept);
        at == to
    }

    fn add(&mut self, record: SourceRecord) {
        if !record.pieces.is_empty() {
            let is_complete = self.truncate(record.from);
            self.incomplete = !is_complete || (self.incomplete && record.from > 0);
        }
        self.bytes = record.to;
        self.agent = record.agent;
        self.held_by = record.held_by;
        self.note = record.note;
        self.pieces.extend(record.pieces);
    }
}

impl SessionReader {
    /// Returns the files that the session was imported from, the most recently read last.
    /// Reads all trails of the session.
    #[doc(hidden)]
    pub fn sources(&self) -> Result<Vec<KeptSource>> {
        let files = &self.log.dir;
        let mut sources: Vec<KeptSource> = Vec::new();
        for trail in files.readable_trails()? {
            let mut records = self.trail_records(trail, 0)?;
            while let Some(found) = records.next()? {
                let Some(record) = found.record.source() else {
                    continue;
                };
                let known = sources.iter().position(|kept| kept.path == record.path);
                let mut kept = match known {
                    None => KeptSource::new(record.path.clone()),
                    Some(at) => sources.remove(at),
                };
                kept.add(record);
                kept.place = (trail, found.record.seq(), found.byte);
                sources.push(kept);
            }
        }
        Ok(sources)
    }

    /// Writes a file that the session was imported from, byte for byte.
    #[doc(hidden)]
    pub fn write_source(&self, source: &KeptSource, out: &mut dyn Write) -> Result<u64> {
        let files = &self.log.dir;
        let payloads = Payloads::new(files);
        let unwritable = |error: io::Error| Error::machine("cannot write the file", error);
        let mut written = 0;
        for piece in &source.pieces {
            let bytes = self.unpack(&payloads, piece, &source.path)?;
            out.write_all(&bytes).map_err(unwritable)?;
            written += bytes.len() as u64;
        }
        if source.incomplete {
            let what = format!(
                "a part of {} is lost from session {}; {written} bytes were written",
                source.path.display(),
                self.id()
            );
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        Ok(written)
    }

    /// Calls `each` with the bytes that a `source` record adds, piece by piece, while it returns
    /// `true`.
    ///
    /// # Errors
    ///
    /// Fails if the bytes cannot be read.
    #[doc(hidden)]
    pub fn read_source(
        &self,
        source: &SourceRecord,
        each: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let payloads = Payloads::new(&self.log.dir);
        for piece in &source.pieces {
            if !each(&self.unpack(&payloads, piece, &source.path)?) {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether the held bytes of a file begin with, or are the beginning of, the data
    /// that `read` returns. `read` fills a buffer from an offset on and returns how far.
    ///
    /// # Errors
    ///
    /// Fails if the held bytes or the file cannot be read.
    pub fn source_begins_as(
        &self,
        source: &KeptSource,
        mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    ) -> Result<bool> {
        let files = &self.log.dir;
        let payloads = Payloads::new(files);
        let mut at = 0;
        let mut theirs = Vec::new();
        for piece in &source.pieces {
            let ours = self.unpack(&payloads, piece, &source.path)?;
            theirs.resize(ours.len(), 0);
            let n = read(&mut theirs, at)
                .map_err(|error| Error::io("cannot read the file", &source.path, error))?;
            if theirs[..n] != ours[..n] {
                return Ok(false);
            }
            if n < ours.len() {
                return Ok(true);
            }
            at += n as u64;
        }
        Ok(!source.incomplete)
    }

    fn unpack(&self, payloads: &Payloads, piece: &Piece, path: &Path) -> Result<Vec<u8>> {
        let packed = payloads.fetch(piece.payload, piece.bytes, piece.at)?;
        let len = usize::try_from(piece.unpacked).unwrap_or(usize::MAX);
        let bytes = zstd::bulk::decompress(&packed, len.min(PIECE));
        bytes
            .ok()
            .filter(|bytes| bytes.len() as u64 == piece.unpacked)
            .ok_or_else(|| {
                let what = format!("a part of {} cannot be unpacked", path.display());
                Error::new(ErrorKind::Corrupt, what)
            })
    }
}
