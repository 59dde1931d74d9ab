//! Where each record of a version-1 file is.

use std::ops::Range;
use std::path::Path;

use super::object::{CHUNK, V1Object};
use super::reader::{read_part, scan_object, too_long, unreadable};
use super::record::{LineContent, V1Line, V1Record};
use crate::error::{Reason, Result};
use crate::message::CompactionSummary;
use crate::storage::{StorageFile, read_full};
use crate::trail::lines::Ending;

/// Where each record of a version-1 file is, by its seq: in JSON lines the number of
/// its line, in a single object its position in `messages`, both from 1.
#[derive(Debug)]
pub(crate) enum V1Index {
    Lines {
        /// Where each line ends, without its newline.
        ends: Vec<u64>,
        /// Whether the last line has a newline.
        ended: bool,
    },
    Object(V1Object),
}

impl V1Index {
    /// Reads a file once, or twice if it only begins like one object.
    pub(crate) fn read(file: &dyn StorageFile, path: &Path) -> Result<Self> {
        if let Some(object) = scan_object(file, path)? {
            return Ok(Self::Object(object));
        }
        let mut ends = Vec::new();
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        loop {
            let n = read_full(file, &mut chunk, at).map_err(|error| unreadable(path, error))?;
            let newlines = memchr::memchr_iter(b'\n', &chunk[..n]);
            ends.extend(newlines.map(|newline| at + newline as u64));
            at += n as u64;
            if n < chunk.len() {
                break;
            }
        }
        let ended = ends.last().map_or(0, |last| last + 1) == at;
        if !ended {
            ends.push(at);
        }
        ends.shrink_to_fit();
        Ok(Self::Lines { ends, ended })
    }

    /// Returns whether the records are lines.
    pub(crate) fn is_lines(&self) -> bool {
        matches!(self, Self::Lines { .. })
    }

    /// Returns the highest seq, 0 if there is none.
    pub(crate) fn last_seq(&self) -> u64 {
        match self {
            Self::Lines { ends, .. } => ends.len() as u64,
            Self::Object(object) => object.elements.len() as u64,
        }
    }

    /// Returns where a record is. A line may turn out to hold none.
    pub(crate) fn place(&self, seq: u64) -> Option<Range<u64>> {
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        match self {
            Self::Lines { ends, .. } => {
                let end = *ends.get(at)?;
                let start = at.checked_sub(1).map_or(0, |before| ends[before] + 1);
                Some(start..end)
            }
            Self::Object(object) => object.elements.get(at).map(|it| it.place.clone()),
        }
    }

    /// Reads the bytes of a record; the inner error is what is wrong with it.
    pub(crate) fn load(
        &self,
        file: &dyn StorageFile,
        path: &Path,
        seq: u64,
    ) -> Result<Result<Vec<u8>, Reason>> {
        let place = self.place(seq).unwrap_or(0..0);
        match too_long(place.end - place.start) {
            Some(reason) => Ok(Err(reason)),
            None => read_part(file, path, place).map(Ok),
        }
    }

    /// Reads the record that was loaded.
    pub(crate) fn look<'b>(&self, seq: u64, bytes: &'b [u8]) -> V1Line<'b> {
        match self {
            Self::Object(_) => V1Line::element(bytes),
            Self::Lines { ends, ended } => {
                let is_torn = !ended && seq == ends.len() as u64;
                let ending = match is_torn {
                    true => Ending::Missing,
                    false => Ending::Newline,
                };
                V1Line::read(bytes, ending)
            }
        }
    }

    /// Returns the last compaction of the file.
    pub(crate) fn compaction(
        &self,
        file: &dyn StorageFile,
        path: &Path,
    ) -> Result<Option<CompactionSummary>> {
        if let Self::Object(object) = self {
            let about = object.about(|part| read_part(file, path, part))?;
            return Ok(about.compaction);
        }
        for seq in (1..=self.last_seq()).rev() {
            if let Ok(bytes) = self.load(file, path, seq)?
                && let LineContent::Record(V1Record::Compaction(last)) =
                    self.look(seq, &bytes).content
            {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }
}
