//! A search index in memory for records that are not on disk yet.

use std::fmt;
use std::path::Path;

use tantivy::{Directory as _, Index, IndexMeta, Searcher};

use super::commit::KnownTrail;
use super::dir::{guarded, searcher_of};
use super::document::{Batch, schema, tokenizers};
use super::files::META;
use super::segments::{SegmentBuilder, settings};
use super::trail_table::TrailTable;
use crate::error::{Error, Result};
use crate::feed::{End, FedRecord, Sink, TrailPlace};

/// How much text is buffered before it is indexed.
const BATCH: usize = 1 << 20;
/// The initial size of a segment in memory; it grows as needed.
const MEMORY: usize = 1 << 20;

/// Indexes records in memory, at most 64 MiB of trails.
#[derive(Debug)]
pub(crate) struct MemoryWriter {
    index: Index,
    making: SegmentBuilder,
    trails: TrailTable,
    batch: Batch,
}

impl MemoryWriter {
    /// Creates an empty writer.
    pub(crate) fn new() -> Result<Self> {
        let (index, making) = tantivy(|| {
            let index = Index::builder()
                .schema(schema())
                .settings(settings())
                .tokenizers(tokenizers())
                .create_in_ram()?;
            let making = SegmentBuilder::begin(&index, MEMORY)?;
            Ok((index, making))
        })?;
        Ok(Self {
            index,
            making,
            trails: TrailTable::default(),
            batch: Batch::default(),
        })
    }

    /// Makes the records searchable. Trails that were not read completely are skipped.
    pub(crate) fn finish(mut self) -> Result<MemoryIndex> {
        self.trails.give_up();
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
        let (trails, _) = self.trails.known();
        Ok(MemoryIndex { searcher, trails })
    }
}

impl Sink for MemoryWriter {
    fn begin(&mut self, place: &TrailPlace) -> Result<()> {
        self.trails.begin(place)
    }

    fn record(&mut self, record: &FedRecord<'_>) -> Result<()> {
        let Some(trail) = self.trails.ordinal(record.byte) else {
            return Ok(());
        };
        if self.batch.add_record(trail, record) {
            self.trails.count();
        }
        if self.batch.bytes() >= BATCH {
            let batch = std::mem::take(&mut self.batch);
            tantivy(|| self.making.add(batch))?;
        }
        Ok(())
    }

    fn end(&mut self, end: Option<End>) -> Result<()> {
        self.trails.end(end);
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
    /// Returns the trails of the records, by session and number.
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
