//! The stat cache of a workspace.
//!
//! It is derived data and only a hint: an unreadable cache is ignored, and a failure to
//! write one only costs time at the next snapshot. The objects that it names were stored
//! when it was written. So it ends with the list of packs: if one of them is missing or
//! shorter now, the cache is ignored too.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use super::Workspace;
use crate::objects::Inventory;
use crate::snapshot::scan::StatCache;
use crate::storage::{append_all, make_dir, read_full};

const DERIVED: &str = "derived";
/// The version of the cache is part of its name.
const CACHES: &str = "stat-cache-1";

impl Workspace {
    /// Reads the newest cache that can be read.
    pub(super) fn load_cache(&self) -> StatCache {
        let mut numbers = self.cache_numbers();
        while let Some(number) = numbers.pop() {
            if let Some(cache) = self.read_cache(number) {
                return cache;
            }
        }
        StatCache::empty()
    }

    /// Writes a cache and removes the earlier ones. Called under the snapshot lock, after the
    /// objects that it names are durable.
    pub(super) fn save_cache(&self, cache: &StatCache) {
        let numbers = self.cache_numbers();
        let next = numbers.last().map_or(0, |last| last + 1);
        let Ok(packs) = self.objects().inventory() else {
            return;
        };
        let mut bytes = cache.encode().to_vec();
        let at = bytes.len();
        packs.write(&mut bytes);
        bytes.extend_from_slice(&(at as u64).to_le_bytes());
        bytes.extend_from_slice(&check(&bytes[at..]));
        if self.write_cache(next, &bytes).is_ok() {
            for number in numbers {
                let path = self.cache_path(number);
                self.store().storage().remove_file(&path).ok();
            }
        }
    }

    /// Removes the caches. The next snapshot reads all files again.
    pub(crate) fn forget_cache(&self) {
        for number in self.cache_numbers() {
            let path = self.cache_path(number);
            self.store().storage().remove_file(&path).ok();
        }
    }

    fn read_cache(&self, number: u64) -> Option<StatCache> {
        let file = self
            .store()
            .storage()
            .open_read(&self.cache_path(number))
            .ok()?;
        let mut bytes = vec![0; usize::try_from(file.len().ok()?).ok()?];
        let len = read_full(file.as_ref(), &mut bytes, 0).ok()?;
        bytes.truncate(len);
        let (checked, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECK)?)?;
        let (rest, at) = checked.split_at_checked(checked.len().checked_sub(8)?)?;
        let at = usize::try_from(u64::from_le_bytes(at.try_into().ok()?)).ok()?;
        let packs = rest.get(at..)?;
        if check(&checked[at..]) != sum {
            return None;
        }
        let now = self.objects().inventory().ok()?;
        if !now.covers(&Inventory::read(packs)?) {
            return None;
        }
        bytes.truncate(at);
        StatCache::decode(bytes)
    }

    fn write_cache(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let storage = self.store().storage();
        for dir in [self.derived_dir(), self.cache_dir()] {
            make_dir(storage, &dir)?;
        }
        let path = self.cache_path(number);
        let file = storage.create_new(&path)?;
        let written = append_all(file.as_ref(), bytes);
        if written.is_err() {
            storage.remove_file(&path).ok();
        }
        written
    }

    /// Returns the numbers of the workspace's caches, lowest first.
    fn cache_numbers(&self) -> Vec<u64> {
        let names = self.store().storage().list(&self.cache_dir());
        let number = |name: &OsStr| {
            let rest = name.to_str()?.strip_prefix(self.id().as_str())?;
            rest.strip_prefix('.')?.parse().ok()
        };
        let names = names.unwrap_or_default();
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        numbers
    }

    fn cache_path(&self, number: u64) -> PathBuf {
        self.cache_dir().join(format!("{}.{number}", self.id()))
    }

    fn cache_dir(&self) -> PathBuf {
        self.derived_dir().join(CACHES)
    }

    fn derived_dir(&self) -> PathBuf {
        self.store().root().join(DERIVED)
    }
}

/// The length of the checksum over the list of packs.
const CHECK: usize = 8;

fn check(bytes: &[u8]) -> [u8; CHECK] {
    let hash = blake3::hash(bytes);
    let mut check = [0; CHECK];
    check.copy_from_slice(&hash.as_bytes()[..CHECK]);
    check
}
