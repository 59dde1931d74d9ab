//! Builds segments: the parts of an index, each written once.

use std::fmt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tantivy::indexer::{AddOperation, SegmentWriter, merge_filtered_segments};
use tantivy::store::Compressor;
use tantivy::{Index, IndexSettings, Segment, SegmentMeta};

use super::dir::guarded;
use super::document::Batch;
use super::files::Files;

/// How much memory a segment may take while it is built. This gives about ten segments
/// per gigabyte of text.
const MEMORY: usize = 96 << 20;
/// The most threads that build segments; each uses its own memory.
const MOST_THREADS: usize = 2;
/// How many batches may wait for them.
const WAITING: usize = 2;

/// Returns the settings of segments: they contain no text to be compressed.
pub(super) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

/// A segment that is being built.
pub(super) struct SegmentBuilder {
    segment: Segment,
    writer: SegmentWriter,
}

impl fmt::Debug for SegmentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentBuilder").finish_non_exhaustive()
    }
}

impl SegmentBuilder {
    pub(super) fn begin(index: &Index, memory: usize) -> tantivy::Result<Self> {
        let segment = index.new_segment();
        let writer = SegmentWriter::for_segment(memory, segment.clone())?;
        Ok(Self { segment, writer })
    }

    /// Adds records.
    pub(super) fn add(&mut self, batch: Batch) -> tantivy::Result<()> {
        for document in batch.records() {
            let opstamp = 0;
            self.writer
                .add_document(AddOperation { opstamp, document })?;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.writer.mem_usage() >= MEMORY
    }

    /// Writes the segment; `None` if it is empty.
    pub(super) fn end(self) -> tantivy::Result<Option<SegmentMeta>> {
        let docs = self.writer.max_doc();
        if docs == 0 {
            return Ok(None);
        }
        self.writer.finalize()?;
        let meta = self.segment.with_max_doc(docs).meta().clone();
        meta.untrack_temp_docstore();
        Ok(Some(meta))
    }
}

/// Threads that build segments.
#[derive(Debug)]
pub(super) struct SegmentBuilders {
    batches: SyncSender<Batch>,
    threads: Vec<JoinHandle<Result<Vec<SegmentMeta>, String>>>,
}

impl SegmentBuilders {
    pub(super) fn start(index: &Index) -> Self {
        let (batches, receiver) = sync_channel(WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..cores.min(MOST_THREADS)).map(|_| {
            let (index, receiver) = (index.clone(), Arc::clone(&receiver));
            thread::spawn(move || guarded(|| make_segments(&index, &receiver)))
        });
        Self {
            threads: threads.collect(),
            batches,
        }
    }

    /// Sends records to a thread, waiting if they are behind. Errors are returned by
    /// `end`.
    pub(super) fn give(&self, batch: Batch) {
        // If no thread is left, `end` returns the reason.
        self.batches.send(batch).ok();
    }

    /// Waits until everything is written.
    pub(super) fn end(self) -> Result<Vec<SegmentMeta>, String> {
        drop(self.batches);
        let mut segments = Vec::new();
        let mut failed = None;
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(more)) => segments.extend(more),
                Ok(Err(error)) => failed = Some(error),
                Err(_) => failed = Some("a thread panicked".to_owned()),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(segments),
        }
    }
}

fn make_segments(
    index: &Index,
    batches: &Mutex<Receiver<Batch>>,
) -> tantivy::Result<Vec<SegmentMeta>> {
    let mut segments = Vec::new();
    let mut making: Option<SegmentBuilder> = None;
    let next = || {
        let batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.recv().ok()
    };
    while let Some(batch) = next() {
        let current = match &mut making {
            Some(current) => current,
            none => none.insert(SegmentBuilder::begin(index, MEMORY)?),
        };
        current.add(batch)?;
        if current.is_full()
            && let Some(full) = making.take()
        {
            segments.extend(full.end()?);
        }
    }
    if let Some(last) = making {
        segments.extend(last.end()?);
    }
    Ok(segments)
}

/// Segments with fewer records are small.
const SMALL: u32 = 20_000;
/// The most small segments.
const MOST_SMALL: usize = 12;

/// Merges the small segments once there are many, because every query visits each. Large
/// ones stay.
pub(super) fn merge_small(
    dir: &Path,
    index: &Index,
    segments: Vec<SegmentMeta>,
) -> tantivy::Result<Vec<SegmentMeta>> {
    let is_small = |meta: &SegmentMeta| meta.max_doc() < SMALL;
    if segments.iter().filter(|meta| is_small(meta)).count() <= MOST_SMALL {
        return Ok(segments);
    }
    let (small, mut kept): (Vec<_>, Vec<_>) = segments.into_iter().partition(is_small);
    let small: Vec<Segment> = small.into_iter().map(|meta| index.segment(meta)).collect();
    let all = vec![None; small.len()];
    let merged = merge_filtered_segments(&small, settings(), all, Files::open(dir)?)?;
    kept.extend(merged.searchable_segment_metas()?);
    Ok(kept)
}
