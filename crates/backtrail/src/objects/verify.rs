//! Checks every copy of every object without changing anything.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::entry::{Identity, RawEntry};
use super::format::{BLOCK_HEADER, Block, PACK_HEADER, Record};
use super::pack::{Leftover, Pack, PackFile, is_header};
use super::pack_name::PackName;
use super::{ObjectId, Objects};
use crate::error::{IoContext, Result};
use crate::storage::{StorageFile, Window, if_found, read_range};
use crate::sync::lock;

/// The most threads that read packs; more would only wait for the disk.
const THREADS: usize = 4;
/// How much of a pack is read at a time.
const WINDOW: usize = 1 << 20;

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The indexes.
    Structure,
    /// The indexes and every byte of every object.
    Everything,
}

/// The progress of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) packs: u64,
    /// Intact copies of objects; an object in two packs counts twice.
    pub(crate) objects: u64,
    /// The total length of the packs.
    pub(crate) bytes: u64,
    /// How much of that was read.
    pub(crate) read: u64,
    pub(crate) damages: u64,
    /// How many packs end with bytes that a crash left or that are being written just
    /// now. No writer has acknowledged them.
    pub(crate) leftovers: u64,
}

/// A damaged part of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackDamage {
    pub(crate) path: PathBuf,
    pub(crate) byte: u64,
    /// The damaged object, if known.
    pub(crate) object: Option<ObjectId>,
    pub(crate) what: &'static str,
}

/// Called with the progress of the check and each damage.
type Visit<'a> = &'a mut (dyn FnMut(&Verified, Option<&PackDamage>) + Send);

impl Objects {
    /// Checks every pack, and every copy of every object in it.
    ///
    /// Calls `visit` as the check progresses and for each damage. Damaged objects are
    /// stored again by the next writer that puts their content.
    pub(crate) fn verify(&self, depth: Depth, visit: Visit<'_>) -> Result<Verified> {
        let pack_set = &self.0.pack_set;
        pack_set.refresh()?;
        let names = pack_set.names()?;
        let verifier = Verifier {
            objects: self,
            depth,
            progress: Mutex::new((Verified::default(), visit)),
        };
        for name in &names {
            // A pack that cannot be measured fails when it is read.
            let len = pack_set.file(*name).and_then(|file| file.len());
            lock(&verifier.progress).0.bytes += len.unwrap_or(0);
        }
        verifier.packs(&names)?;
        let verified = lock(&verifier.progress).0;
        Ok(verified)
    }
}

struct Verifier<'a, 'v> {
    objects: &'a Objects,
    depth: Depth,
    progress: Mutex<(Verified, Visit<'v>)>,
}

impl Verifier<'_, '_> {
    fn packs(&self, names: &[PackName]) -> Result<()> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(THREADS).min(names.len());
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                self.pack(*name)
                    .inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|other| {
                other.join().unwrap_or_else(|panic| {
                    std::panic::resume_unwind(panic);
                })
            });
            others.fold(own, Result::and)
        })
    }

    fn pack(&self, name: PackName) -> Result<()> {
        let path = self.objects.0.pack_set.path(name);
        // If it was removed meanwhile, its live objects are in other packs.
        let checked = if_found(self.blocks(name));
        checked.context("cannot verify an object pack", &path)?;
        Ok(())
    }

    fn blocks(&self, name: PackName) -> io::Result<()> {
        let pack_set = &self.objects.0.pack_set;
        let file = pack_set.file(name)?;
        let file = file.as_ref();
        let pack = match Pack::open(file, name, &pack_set.codec)? {
            PackFile::Pack(pack) => pack,
            PackFile::Empty => {
                self.report(|verified| verified.leftovers += 1);
                return Ok(());
            }
            PackFile::Newer => {
                self.damaged(name, 0, None, "a pack of an unknown version");
                return Ok(());
            }
            PackFile::Foreign => {
                self.damaged(name, 0, None, "not a pack");
                return Ok(());
            }
        };
        self.report(|verified| verified.packs += 1);
        if !is_header(&read_range(file, 0..PACK_HEADER as u64)?) {
            self.damaged(name, 0, None, "the pack's header is damaged");
        }
        for byte in &pack.damage {
            self.damaged(name, *byte, None, "the index is damaged");
        }
        let rescanned = match self.depth {
            Depth::Structure if !pack.is_sealed() => None,
            _ => pack.rescan(file, &pack_set.codec)?,
        };
        if let (Some(_), true, true) = (&rescanned, pack.is_sealed(), pack.damage.is_empty()) {
            let at = pack.last.map_or(0, |last| last.at.into());
            self.damaged(name, at, None, "the index is damaged");
        }
        match self.depth {
            Depth::Everything => self.records(file, &pack),
            Depth::Structure => {
                let count = pack.records(file)?.len() as u64;
                let has_leftover = pack.leftover != Leftover::Nothing;
                self.report(|verified| {
                    verified.objects += count;
                    verified.leftovers += u64::from(has_leftover);
                    verified.read += pack.len;
                });
                Ok(())
            }
        }
    }

    fn records(&self, file: &dyn StorageFile, pack: &Pack) -> io::Result<()> {
        let mut records = pack.records(file)?;
        records.sort_unstable_by_key(|record| record.at);
        let mut has_leftover = pack.leftover != Leftover::Nothing;
        let mut window = Window::new(file, pack.len, WINDOW);
        let mut scratch = Vec::new();
        let (mut whole, mut told) = (0, 0);
        for record in records {
            match self.record(&mut window, &mut scratch, pack, record)? {
                None => whole += 1,
                // An entry in doubt may be what a power cut left of a commit.
                Some(_) if u64::from(record.at) >= pack.durable() => has_leftover = true,
                Some(what) => {
                    self.damaged(pack.name, record.at.into(), Some(record.id), what);
                }
            }
            // A damaged index may contain any offset.
            let at = u64::from(record.at).min(pack.len);
            if at - told >= WINDOW as u64 {
                self.report(|verified| verified.read += at - told);
                told = at;
            }
        }
        self.report(|verified| {
            verified.objects += whole;
            verified.read += pack.len - told;
            verified.leftovers += u64::from(has_leftover);
        });
        Ok(())
    }

    /// Returns what is wrong with an entry, if anything.
    fn record(
        &self,
        window: &mut Window<'_>,
        scratch: &mut Vec<u8>,
        pack: &Pack,
        Record { id, at }: Record,
    ) -> io::Result<Option<&'static str>> {
        let pack_set = &self.objects.0.pack_set;
        let bytes = entry_at(window, pack, at.into())?;
        let entry = RawEntry::parse(bytes, pack.salt(), at.into());
        let named = entry.map(|entry| entry.identify(&pack_set.codec, scratch));
        Ok(match named.transpose()? {
            Some(Identity::Piece(named)) if named == id => None,
            Some(Identity::List(list)) if list.id == id => {
                let read = self.objects.read_list(&list, super::DEPTH, &mut |_| Ok(()));
                read.is_err().then_some("an object has a damaged chunk")
            }
            _ => {
                pack_set.mark_broken(pack, at);
                Some("an object is damaged")
            }
        })
    }

    /// Updates the progress and reports it.
    fn report(&self, note: impl FnOnce(&mut Verified)) {
        let mut progress = lock(&self.progress);
        note(&mut progress.0);
        let (verified, visit) = &mut *progress;
        visit(verified, None);
    }

    fn damaged(&self, name: PackName, byte: u64, object: Option<ObjectId>, what: &'static str) {
        let path = self.objects.0.pack_set.path(name);
        let damage = PackDamage {
            path,
            byte,
            object,
            what,
        };
        let mut progress = lock(&self.progress);
        progress.0.damages += 1;
        let (verified, visit) = &mut *progress;
        visit(verified, Some(&damage));
    }
}

/// Returns the bytes from an offset on, including all of the entry there, if there is one.
fn entry_at<'w>(window: &'w mut Window<'_>, pack: &Pack, at: u64) -> io::Result<&'w [u8]> {
    let header = window.from(at, BLOCK_HEADER)?;
    let block = Block::parse(header, pack.salt(), at);
    let len = block.map_or(0, |block| block.stored as usize);
    window.from(at, BLOCK_HEADER + len)
}
