//! What is not on disk yet, searchable in memory.

use std::fmt;
use std::path::Path;

use tantivy::{Directory as _, Index, IndexMeta, Searcher};

use super::book::TrailBook;
use super::commit::KnownTrail;
use super::dir::{guarded, searcher_of};
use super::document::{Batch, schema, tokenizers};
use super::files::META;
use super::segments::{Making, settings};
use crate::error::{Error, Result};
use crate::feed::{End, FedRecord, Sink, TrailPlace};

/// How much text is held before it is indexed.
const BATCH: usize = 1 << 20;
/// What a segment in memory begins with; it takes more once it needs that.
const MEMORY: usize = 1 << 20;

/// Takes in records to be searched in memory. Give it at most 64 MiB of trails.
#[derive(Debug)]
pub(crate) struct MemoryWriter {
    index: Index,
    making: Making,
    book: TrailBook,
    batch: Batch,
}

impl MemoryWriter {
    /// Makes one that is empty.
    pub(crate) fn new() -> Result<Self> {
        let (index, making) = tantivy(|| {
            let index = Index::builder()
                .schema(schema())
                .settings(settings())
                .tokenizers(tokenizers())
                .create_in_ram()?;
            let making = Making::begin(&index, MEMORY)?;
            Ok((index, making))
        })?;
        Ok(Self {
            index,
            making,
            book: TrailBook::default(),
            batch: Batch::default(),
        })
    }

    /// Makes what was taken in searchable. A trail that was not read to its end is left
    /// out.
    pub(crate) fn finish(mut self) -> Result<MemoryIndex> {
        self.book.give_up();
        let searcher = tantivy(|| {
            self.making.add(self.batch)?;
            let meta = IndexMeta {
                index_settings: settings(),
                segments: self.making.end()?.into_iter().collect(),
                ..IndexMeta::with_schema(schema())
            };
            let meta = serde_json::to_vec(&meta)?;
            self.index
                .directory()
                .atomic_write(Path::new(META), &meta)?;
            searcher_of(&self.index)
        })?;
        let (trails, _) = self.book.known();
        Ok(MemoryIndex { searcher, trails })
    }
}

impl Sink for MemoryWriter {
    fn begin(&mut self, place: &TrailPlace) -> Result<()> {
        self.book.begin(place)
    }

    fn record(&mut self, record: &FedRecord<'_>) -> Result<()> {
        let Some(trail) = self.book.ordinal(record.byte) else {
            return Ok(());
        };
        if self.batch.add_record(trail, record) {
            self.book.count();
        }
        if self.batch.bytes() >= BATCH {
            let batch = std::mem::take(&mut self.batch);
            tantivy(|| self.making.add(batch))?;
        }
        Ok(())
    }

    fn end(&mut self, end: Option<End>) -> Result<()> {
        self.book.end(end);
        Ok(())
    }
}

/// Records that are searched in memory.
pub(crate) struct MemoryIndex {
    pub(super) searcher: Searcher,
    pub(super) trails: Vec<KnownTrail>,
}

impl fmt::Debug for MemoryIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryIndex")
            .field("trails", &self.trails)
            .finish_non_exhaustive()
    }
}

impl MemoryIndex {
    /// Returns the trails that records are of, by session and number.
    pub(crate) fn known(&self) -> &[KnownTrail] {
        &self.trails
    }
}

fn tantivy<T>(run: impl FnOnce() -> tantivy::Result<T>) -> Result<T> {
    guarded(run).map_err(|what| Error::Search {
        doing: "cannot search what is not indexed yet",
        what,
    })
}
