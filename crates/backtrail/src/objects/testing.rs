//! Shared test support: the test kit's disks behind the engine's traits, and contents of
//! every sort.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backtrail_testkit as kit;
use backtrail_testkit::{Randomness as _, SeededRandomness, Storage as _};

use super::pack_writer::PackLimits;
use super::{Depth, ObjectWriter, Objects, PackDamage, Verified};
use crate::error::Result;
use crate::random::Randomness;
use crate::storage::{Storage, StorageFile};

pub(super) const DIR: &str = "/store/objects";

/// Small limits, so that a few bytes trigger everything.
pub(super) const SMALL: PackLimits = PackLimits {
    seal_at: 3000,
    seal_commits: 6,
    buffered: 500,
    in_doubt: 800,
};

/// A disk of the test kit. In a unit test the kit is built against another copy of the
/// engine crate, with its own traits.
#[derive(Debug, Clone)]
pub(super) struct Disk(Arc<dyn kit::Storage>);

#[derive(Debug)]
struct DiskFile(Arc<dyn kit::StorageFile>);

impl Disk {
    pub(super) fn of(storage: impl kit::Storage) -> Self {
        Self(Arc::new(storage))
    }

    pub(super) fn objects(&self, seed: u64, limits: PackLimits) -> Objects {
        let random = Arc::new(Seeded(SeededRandomness::new(seed)));
        Objects::with_limits(Arc::new(self.clone()), random, Path::new(DIR), limits)
    }
}

/// Returns an empty disk with a durable store directory.
pub(super) fn memory() -> kit::MemoryStorage {
    let memory = kit::MemoryStorage::new();
    memory.create_dir(Path::new("/store")).unwrap();
    memory.sync_dir(Path::new("/")).unwrap();
    memory
}

pub(super) fn open(memory: &kit::MemoryStorage, seed: u64) -> Objects {
    Disk::of(memory.clone()).objects(seed, SMALL)
}

/// Returns the pack files on a disk.
pub(super) fn pack_files(memory: &kit::MemoryStorage) -> Vec<PathBuf> {
    let files = memory.files().into_iter();
    files.filter(|path| path.starts_with(DIR)).collect()
}

fn wrap(file: Arc<dyn kit::StorageFile>) -> Arc<dyn StorageFile> {
    Arc::new(DiskFile(file))
}

impl Storage for Disk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.0.create_new(path).map(wrap)
    }
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.0.open_append(path).map(wrap)
    }
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.0.open_read(path).map(wrap)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }
    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.link_new(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename_new(from, to)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

impl StorageFile for DiskFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
    fn lock_shared(&self) -> io::Result<()> {
        self.0.lock_shared()
    }
    fn try_lock_shared(&self) -> io::Result<bool> {
        self.0.try_lock_shared()
    }
    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

#[derive(Debug)]
pub(super) struct Seeded(pub(super) SeededRandomness);

impl Randomness for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.fill(bytes)
    }
}

/// Returns incompressible bytes, the same for the same seed.
pub(super) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    SeededRandomness::new(seed).fill(&mut bytes).unwrap();
    bytes
}

/// Returns compressible text.
pub(super) fn text(seed: u64, len: usize) -> Vec<u8> {
    let line = format!("line {seed} of a text that says the same again and again\n");
    line.bytes().cycle().take(len).collect()
}

/// Stores contents and finishes.
pub(super) fn store(objects: &Objects, contents: &[Vec<u8>]) -> Result<()> {
    let writer = objects.writer()?;
    for content in contents {
        writer.put(content)?;
    }
    writer.finish()
}

pub(super) fn finish(writers: impl IntoIterator<Item = ObjectWriter>) {
    for writer in writers {
        writer.finish().unwrap();
    }
}

#[track_caller]
pub(super) fn assert_stored(objects: &Objects, contents: &[Vec<u8>]) {
    for content in contents {
        let id = super::ObjectId::of(content);
        assert!(objects.contains(&id).unwrap(), "{id} is not there");
        let read = objects.read(&id);
        assert!(read.unwrap() == *content, "{id} is another");
    }
}

/// Verifies the objects and returns the result with all damages.
pub(super) fn verify(objects: &Objects) -> (Verified, Vec<PackDamage>) {
    let mut damages = Vec::new();
    let verified = objects.verify(Depth::Everything, &mut |_, damage| {
        damages.extend(damage.cloned())
    });
    (verified.unwrap(), damages)
}

#[track_caller]
pub(super) fn assert_sound(objects: &Objects) -> Verified {
    let (verified, damages) = verify(objects);
    assert_eq!(damages, []);
    verified
}
