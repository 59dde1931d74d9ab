//! Writes a new trail with records of others.

use std::path::Path;

use crate::error::{IoContext, Result};
use crate::storage::{StorageFile, append_all};
use crate::trail::opener::Opener;
use crate::trail::record::{finish_line, split_prev, split_sum};
use crate::trail::sum::Sum;

/// A new trail that is being written. The records keep their seqs; their sums and links
/// are recomputed.
pub(crate) struct TrailCopy<'a> {
    file: &'a dyn StorageFile,
    path: &'a Path,
    buffer: Vec<u8>,
    /// The sum of the last record.
    pub(crate) prev: Sum,
}

/// The size of a write.
const CHUNK: usize = 1 << 20;

impl<'a> TrailCopy<'a> {
    pub(crate) fn new(file: &'a dyn StorageFile, path: &'a Path) -> Self {
        Self {
            file,
            path,
            buffer: Vec::with_capacity(CHUNK * 2),
            prev: Sum::ZERO,
        }
    }

    pub(crate) fn opener(&mut self, opener: &Opener) -> Result<()> {
        self.prev = opener.write(&mut self.buffer)?;
        Ok(())
    }

    /// Adds a record that continues the one with the sum `prev`. Its line may be complete, or
    /// end before its own `prev`.
    pub(crate) fn add(&mut self, line: &[u8], prev: Sum) -> Result<()> {
        let covered = split_sum(line).map_or(line, |(covered, _)| covered);
        let body = split_prev(covered).map_or(covered, |(body, _)| body);
        let start = self.buffer.len();
        self.buffer.extend_from_slice(body);
        self.prev = finish_line(&mut self.buffer, start, prev);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        append_all(self.file, &self.buffer).context("cannot write the new trail", self.path)?;
        self.buffer.clear();
        Ok(())
    }
}
