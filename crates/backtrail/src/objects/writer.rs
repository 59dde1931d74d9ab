//! Stores objects.

use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use fastcdc::v2020::StreamCDC;

use super::entry::PackEntry;
use super::format::{BlockKind, List};
use super::pack::Pack;
use super::pack_locks::PackLocks;
use super::pack_set::{PackSet, Packs};
use super::pack_writer::{PackLimits, PackWriter};
use super::{ObjectId, Objects};
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::sync::lock;

/// Contents up to this length are stored in one piece.
const PIECE: usize = 4 << 20;
/// A stream shorter than this is stored in one piece.
pub(crate) const SHORT_STREAM: usize = 1 << 20;
const CHUNK_MIN: usize = 256 << 10;
const CHUNK_MEAN: usize = 1 << 20;
const CHUNK_MAX: usize = 4 << 20;

/// Stores objects; shared between the threads of one snapshot.
///
/// Each thread hashes, looks up and compresses the contents it puts; only appending to
/// the pack is serialized. A writer dropped without [`finish`](Self::finish) stores
/// nothing.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    objects: Objects,
    limits: PackLimits,
    /// The packs when the writer was created. Objects that others store meanwhile may be
    /// stored twice.
    packs: Packs,
    /// Objects that were put, whether stored or found.
    put: Mutex<HashSet<ObjectId>>,
    locks: PackLocks,
    pack_writer: Mutex<Option<PackWriter>>,
    /// A full pack is sealed while the next one is written.
    sealing: Mutex<Option<JoinHandle<Result<()>>>>,
    has_failed: AtomicBool,
}

impl ObjectWriter {
    pub(super) fn new(objects: &Objects, limits: PackLimits) -> Result<Self> {
        Ok(Self {
            packs: objects.0.pack_set.refresh()?,
            objects: objects.clone(),
            limits,
            put: Mutex::default(),
            locks: PackLocks::default(),
            pack_writer: Mutex::default(),
            sealing: Mutex::default(),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Stores a content unless it is stored already, and returns its id.
    pub(crate) fn put(&self, content: &[u8]) -> Result<ObjectId> {
        let id = ObjectId::of(content);
        if content.len() <= PIECE {
            self.put_piece(id, content)?;
            return Ok(id);
        }
        match self.put_stream(&mut { content })? {
            Ok((id, _)) => Ok(id),
            Err(error) => Err(Error::machine("cannot read from memory", error)),
        }
    }

    /// Stores everything a reader returns, in content-defined chunks, and returns its id
    /// and length. The inner result is the reader's own error.
    pub(crate) fn put_stream(&self, content: &mut dyn Read) -> Result<io::Result<(ObjectId, u64)>> {
        let mut begin = Vec::new();
        let read = content.take(SHORT_STREAM as u64).read_to_end(&mut begin);
        match read {
            Err(error) => return Ok(Err(error)),
            Ok(len) if len < SHORT_STREAM => {
                return Ok(Ok((self.put(&begin)?, len as u64)));
            }
            Ok(_) => {}
        }
        let whole = io::Cursor::new(begin).chain(content);
        self.put_chunks(StreamCDC::new(whole, CHUNK_MIN, CHUNK_MEAN, CHUNK_MAX))
    }

    fn put_chunks<R: Read>(&self, source: StreamCDC<R>) -> Result<io::Result<(ObjectId, u64)>> {
        let mut hasher = blake3::Hasher::new();
        let (mut len, mut chunks) = (0, Vec::new());
        for chunk in source {
            let chunk = match chunk {
                Ok(chunk) => chunk.data,
                Err(error) => return Ok(Err(error.into())),
            };
            hasher.update(&chunk);
            len += chunk.len() as u64;
            let id = ObjectId::of(&chunk);
            self.put_piece(id, &chunk)?;
            chunks.push(id);
        }
        let id = ObjectId::finish(&hasher);
        if chunks != [id] {
            self.put_list(List { id, len, chunks })?;
        }
        Ok(Ok((id, len)))
    }

    /// Makes durable everything that was put, whether stored or found.
    ///
    /// If this fails, none of it counts as stored.
    pub(crate) fn finish(self) -> Result<()> {
        if self.has_failed.load(Ordering::SeqCst) {
            let what = "cannot store objects: an earlier one could not be written";
            return Err(Error::new(ErrorKind::Io, what).at_path(&self.pack_set().dir));
        }
        self.join_sealing()?;
        // Before the commit, because the commit may name lists of chunks that were found.
        self.locks.sync(self.pack_set())?;
        match lock(&self.pack_writer).take() {
            Some(pack_writer) => pack_writer.commit(),
            None => Ok(()),
        }
    }

    fn put_piece(&self, id: ObjectId, content: &[u8]) -> Result<()> {
        self.put_once(id, || {
            let mut compressed = Vec::new();
            let kind = self.pack_set().codec.compress(content, &mut compressed);
            let kind = kind.map_err(|error| Error::machine("cannot compress", error))?;
            let stored = if kind == BlockKind::Zstd {
                &compressed
            } else {
                content
            };
            self.append(id, kind, content.len(), stored)
        })
    }

    fn put_list(&self, list: List) -> Result<()> {
        self.put_once(list.id, || {
            let body = list.encode();
            self.append(list.id, BlockKind::List, body.len(), &body)
        })
    }

    /// Stores an object unless it was put or is already stored.
    ///
    /// A thread may return before another one has stored an object that both put; if that
    /// fails, so does [`finish`](Self::finish).
    fn put_once(&self, id: ObjectId, store: impl FnOnce() -> Result<()>) -> Result<()> {
        if !lock(&self.put).insert(id) || self.is_stored(&id) {
            return Ok(());
        }
        store().inspect_err(|_| self.has_failed.store(true, Ordering::SeqCst))
    }

    /// Returns whether an object is stored and will survive a power cut once this writer
    /// has finished.
    ///
    /// A copy that cannot be read now is not relied on: the object is stored again.
    fn is_stored(&self, id: &ObjectId) -> bool {
        let mut places = self.pack_set().places(&self.packs, id);
        places.any(|(pack, at)| self.is_reliable(pack, at, id))
    }

    fn is_reliable(&self, pack: &Arc<Pack>, at: u32, id: &ObjectId) -> bool {
        let place = u64::from(at);
        if self.pack_set().is_broken(pack, at) {
            return false;
        }
        if place < pack.settled {
            return true;
        }
        if !self.locks.try_lock(self.pack_set(), pack) {
            return false;
        }
        place < pack.durable()
            || match self.pack_set().entry(pack, at, id) {
                Ok(Some(PackEntry::Piece(_))) => true,
                // Its chunks were put before it, so they are stored.
                Ok(Some(PackEntry::List(list))) => {
                    let put = lock(&self.put);
                    list.chunks.iter().all(|id| put.contains(id))
                }
                _ => false,
            }
    }

    fn append(&self, id: ObjectId, kind: BlockKind, raw: usize, stored: &[u8]) -> Result<()> {
        let mut slot = lock(&self.pack_writer);
        let mut pack_writer = match slot.take() {
            Some(pack_writer) => pack_writer,
            None => self
                .locks
                .pack_writer(&self.objects, self.limits, &self.packs)?,
        };
        let what = "cannot store objects; nothing that was stored before is lost";
        let appended = pack_writer.append(id, kind, raw, stored);
        appended.context(what, &self.pack_set().dir)?;
        if pack_writer.is_full() {
            self.seal(pack_writer)
        } else {
            *slot = Some(pack_writer);
            Ok(())
        }
    }

    /// Seals a pack in the background, one at a time.
    fn seal(&self, pack_writer: PackWriter) -> Result<()> {
        self.join_sealing()?;
        let thread = thread::Builder::new().name("seal".to_owned());
        let sealing = thread
            .spawn(move || pack_writer.seal())
            .map_err(|error| Error::machine("cannot start a thread to write objects", error))?;
        *lock(&self.sealing) = Some(sealing);
        Ok(())
    }

    fn join_sealing(&self) -> Result<()> {
        let Some(sealing) = lock(&self.sealing).take() else {
            return Ok(());
        };
        sealing.join().unwrap_or_else(|_| {
            let what = "cannot store objects: sealing a pack panicked";
            Err(Error::new(ErrorKind::Io, what).at_path(&self.pack_set().dir))
        })
    }

    fn pack_set(&self) -> &Arc<PackSet> {
        &self.objects.0.pack_set
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        // So that no lock is held when the caller continues.
        self.join_sealing().ok();
    }
}
