//! Checking every copy of every object. It only reads.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::entry::{Named, Raw};
use super::format::{BLOCK_HEADER, Block, PACK_HEADER, Record};
use super::name::PackName;
use super::pack::{Look, Pack, Rest, is_header, read_range};
use super::shelf::lock;
use super::{ObjectId, Objects};
use crate::error::{Error, Result};
use crate::storage::{StorageFile, read_full};

/// How many threads read packs at most; more only wait for the disk.
const THREADS: usize = 4;
/// How much of a pack is read at a time.
const WINDOW: usize = 1 << 20;

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What names the objects.
    Structure,
    /// Every byte of every object as well.
    Everything,
}

/// What was checked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) packs: u64,
    /// Copies of objects that are right; an object in two packs counts twice.
    pub(crate) objects: u64,
    /// How long the packs are together.
    pub(crate) bytes: u64,
    /// How much of that was read.
    pub(crate) read: u64,
    pub(crate) damages: u64,
    /// How many packs have something at their end that a crash left, or that is
    /// being written just now. Nobody was told that it is stored.
    pub(crate) leftovers: u64,
}

/// Something in a pack that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) path: PathBuf,
    pub(crate) byte: u64,
    /// The object that it concerns, where that is known.
    pub(crate) object: Option<ObjectId>,
    pub(crate) what: &'static str,
}

/// Who is told how far the check is, with what was found there.
type Visit<'a> = &'a mut (dyn FnMut(&Verified, Option<&Damage>) + Send);

impl Objects {
    /// Checks every pack, and every copy of every object in it.
    ///
    /// `visit` hears how far it is, and of each damage as it is found. Objects that
    /// turn out to be damaged are stored again by the next writer that is given their
    /// content.
    pub(crate) fn verify(&self, depth: Depth, visit: Visit<'_>) -> Result<Verified> {
        let shelf = &self.0.shelf;
        shelf.refresh()?;
        let names = shelf.names()?;
        let check = Check {
            objects: self,
            depth,
            told: Mutex::new((Verified::default(), visit)),
        };
        for name in &names {
            // What cannot be measured is named when it is read.
            let len = shelf.file(*name).and_then(|file| file.len());
            lock(&check.told).0.bytes += len.unwrap_or(0);
        }
        check.all(&names)?;
        let verified = lock(&check.told).0;
        Ok(verified)
    }
}

struct Check<'a, 'v> {
    objects: &'a Objects,
    depth: Depth,
    told: Mutex<(Verified, Visit<'v>)>,
}

impl Check<'_, '_> {
    fn all(&self, names: &[PackName]) -> Result<()> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(THREADS).min(names.len());
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                self.one(*name)
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

    fn one(&self, name: PackName) -> Result<()> {
        match self.pack(name) {
            // Taken away meanwhile, with all that is needed elsewhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            checked => checked.map_err(|error| {
                let path = name.path(&self.objects.0.shelf.dir);
                Error::io("cannot verify a pack of objects", &path, error)
            }),
        }
    }

    fn pack(&self, name: PackName) -> io::Result<()> {
        let shelf = &self.objects.0.shelf;
        let file = shelf.file(name)?;
        let file = file.as_ref();
        let pack = match Pack::look(file, name, &shelf.codec)? {
            Look::Pack(pack) => pack,
            Look::Empty => {
                self.tell(|verified| verified.leftovers += 1);
                return Ok(());
            }
            Look::Newer => {
                self.damaged(name, 0, None, "a pack of a version that is not known here");
                return Ok(());
            }
            Look::Foreign => {
                self.damaged(name, 0, None, "not a pack");
                return Ok(());
            }
        };
        self.tell(|verified| verified.packs += 1);
        if !is_header(&read_range(file, 0, PACK_HEADER as u64)?) {
            self.damaged(name, 0, None, "the pack's header is damaged");
        }
        for byte in &pack.damage {
            self.damaged(name, *byte, None, "the index is damaged");
        }
        let closely = match self.depth {
            Depth::Structure if !pack.is_sealed() => None,
            _ => pack.look_closely(file, &shelf.codec)?,
        };
        if let (Some(_), true, true) = (&closely, pack.is_sealed(), pack.damage.is_empty()) {
            let at = pack.last.map_or(0, |last| last.at.into());
            self.damaged(name, at, None, "the index is damaged");
        }
        match self.depth {
            Depth::Everything => self.records(file, &pack),
            Depth::Structure => {
                let count = pack.records(file)?.len() as u64;
                let has_leftover = pack.rest != Rest::Nothing;
                self.tell(|verified| {
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
        let mut has_leftover = pack.rest != Rest::Nothing;
        let mut window = Window::new(file, pack.len);
        let (mut whole, mut told) = (0, 0);
        for record in records {
            match self.record(&mut window, pack, record)? {
                None => whole += 1,
                // What is in doubt may be what a power cut left of a commit.
                Some(_) if u64::from(record.at) >= pack.durable() => has_leftover = true,
                Some(what) => {
                    self.damaged(pack.name, record.at.into(), Some(record.id), what);
                }
            }
            // A damaged index may say anything.
            let at = u64::from(record.at).min(pack.len);
            if at - told >= WINDOW as u64 {
                self.tell(|verified| verified.read += at - told);
                told = at;
            }
        }
        self.tell(|verified| {
            verified.objects += whole;
            verified.read += pack.len - told;
            verified.leftovers += u64::from(has_leftover);
        });
        Ok(())
    }

    /// Returns what is wrong with an entry, if anything is.
    fn record(
        &self,
        window: &mut Window<'_>,
        pack: &Pack,
        Record { id, at }: Record,
    ) -> io::Result<Option<&'static str>> {
        let shelf = &self.objects.0.shelf;
        let mut scratch = std::mem::take(&mut window.scratch);
        let entry = Raw::parse(window.entry(pack, at.into())?, pack.salt(), at.into());
        let named = entry.map(|entry| entry.named(&shelf.codec, &mut scratch));
        window.scratch = scratch;
        Ok(match named.transpose()? {
            Some(Named::Piece(named)) if named == id => None,
            Some(Named::List(list)) if list.id == id => {
                let read = self.objects.read_list(&list, super::DEPTH, &mut |_| Ok(()));
                read.is_err()
                    .then_some("an object is damaged in one of its chunks")
            }
            _ => {
                shelf.mark_broken(pack, at);
                Some("an object is damaged")
            }
        })
    }

    /// Takes note, and tells how far it is.
    fn tell(&self, note: impl FnOnce(&mut Verified)) {
        let mut told = lock(&self.told);
        note(&mut told.0);
        let (verified, visit) = &mut *told;
        visit(verified, None);
    }

    fn damaged(&self, name: PackName, byte: u64, object: Option<ObjectId>, what: &'static str) {
        let path = name.path(&self.objects.0.shelf.dir);
        let damage = Damage {
            path,
            byte,
            object,
            what,
        };
        let mut told = lock(&self.told);
        told.0.damages += 1;
        let (verified, visit) = &mut *told;
        visit(verified, Some(&damage));
    }
}

/// A part of a pack in memory, which is read from its beginning to its end.
struct Window<'a> {
    file: &'a dyn StorageFile,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a dyn StorageFile, len: u64) -> Self {
        Self {
            file,
            len,
            start: 0,
            bytes: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Returns the bytes from a place on, all of the entry there among them, if one
    /// is there.
    fn entry(&mut self, pack: &Pack, at: u64) -> io::Result<&[u8]> {
        let header = self.from(at, BLOCK_HEADER)?;
        let block = Block::parse(header, pack.salt(), at);
        let len = block.map_or(0, |block| block.stored as usize);
        self.from(at, BLOCK_HEADER + len)
    }

    /// Returns the bytes from a place on: at least `least`, unless the pack ends.
    fn from(&mut self, at: u64, least: usize) -> io::Result<&[u8]> {
        let skipped = at
            .checked_sub(self.start)
            .and_then(|skipped| usize::try_from(skipped).ok())
            .filter(|skipped| skipped + least <= self.bytes.len());
        if let Some(skipped) = skipped {
            return Ok(&self.bytes[skipped..]);
        }
        let rest = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        self.bytes.resize(rest.min(least.max(WINDOW)), 0);
        self.start = at;
        let n = read_full(self.file, &mut self.bytes, at)?;
        self.bytes.truncate(n);
        Ok(&self.bytes)
    }
}
