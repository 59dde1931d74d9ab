//! Synced data survives every loss, and nothing appears that was never written: random
//! histories of one file and of the names in a directory, compared with models of what
//! must and what may be there.

use std::collections::{BTreeMap, BTreeSet};

use super::tests::losses;
use super::*;
use crate::splitmix::SplitMix;

/// What a crash may leave of a file.
#[derive(Default)]
struct FileModel {
    live: Vec<u8>,
    synced: Vec<u8>,
    /// How many of the synced bytes no later truncation has touched.
    safe: usize,
    /// Every byte that was at a position since the last sync.
    possible: Vec<BTreeSet<u8>>,
}

impl FileModel {
    fn append(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let at = self.live.len();
            if self.possible.len() == at {
                self.possible.push(BTreeSet::from([0]));
            }
            self.possible[at].insert(*byte);
            self.live.push(*byte);
        }
    }

    fn truncate(&mut self, len: usize) {
        self.live.truncate(len);
        self.safe = self.safe.min(len);
    }

    fn sync(&mut self) {
        self.synced = self.live.clone();
        self.safe = self.live.len();
        self.possible = self.live.iter().map(|b| BTreeSet::from([0, *b])).collect();
    }

    fn check(&self, loss: Loss, after: &[u8], seed: u64) {
        let at = format!("{loss:?} of history {seed}");
        match loss {
            Loss::Unsynced => assert_eq!(after, self.synced, "{at}"),
            Loss::Nothing => assert_eq!(after, self.live, "{at}"),
            Loss::Tail { .. } | Loss::Shuffled { .. } => {}
        }
        assert!(after.len() >= self.safe, "{at}");
        assert_eq!(after[..self.safe], self.synced[..self.safe], "{at}");
        assert!(after.len() <= self.possible.len(), "{at}");
        for (byte, possible) in after.iter().zip(&self.possible) {
            assert!(possible.contains(byte), "{at}");
        }
    }
}

#[test]
fn synced_bytes_survive_every_loss() {
    for seed in 0..60 {
        let mut random = SplitMix::new(seed);
        let mut model = FileModel::default();
        let memory = MemoryStorage::new();
        memory.write(Path::new("/log"), b"").unwrap();
        let file = memory.open_append(Path::new("/log")).unwrap();
        for _ in 0..random.below(30) {
            match random.below(8) {
                0 => {
                    file.sync().unwrap();
                    model.sync();
                }
                1 => {
                    let len = random.below(model.live.len() + 1);
                    file.truncate(len as u64).unwrap();
                    model.truncate(len);
                }
                _ => {
                    let bytes = vec![random.next() as u8; random.below(20)];
                    file.append(&bytes).unwrap();
                    model.append(&bytes);
                }
            }
        }
        for loss in losses() {
            let after = memory.crash(loss).read(Path::new("/log")).unwrap();
            model.check(loss, &after, seed);
        }
    }
}

/// What a crash may leave of a directory's names, each with the file's bytes.
#[derive(Default)]
struct NamesModel {
    live: BTreeMap<PathBuf, u8>,
    synced: BTreeMap<PathBuf, u8>,
    /// Everything a name may refer to; `None` for nothing.
    possible: BTreeMap<PathBuf, BTreeSet<Option<u8>>>,
}

impl NamesModel {
    fn set(&mut self, path: &Path, file: Option<u8>) {
        match file {
            Some(file) => self.live.insert(path.to_owned(), file),
            None => self.live.remove(path),
        };
        let synced = self.synced.get(path).copied();
        let possible = self.possible.entry(path.to_owned());
        possible
            .or_insert_with(|| BTreeSet::from([synced]))
            .insert(file);
    }

    fn sync(&mut self) {
        self.synced = self.live.clone();
        self.possible.clear();
    }

    fn check(&self, loss: Loss, after: &MemoryStorage, names: &[PathBuf], seed: u64) {
        let at = format!("{loss:?} of history {seed}");
        for path in names {
            let found = after.read(path).ok().map(|bytes| bytes[0]);
            let (live, synced) = (self.live.get(path), self.synced.get(path));
            match (loss, self.possible.get(path)) {
                (Loss::Unsynced, _) | (_, None) => assert_eq!(found.as_ref(), synced, "{at}"),
                (Loss::Nothing, _) => assert_eq!(found.as_ref(), live, "{at}"),
                (_, Some(possible)) => assert!(possible.contains(&found), "{at}"),
            }
        }
    }
}

#[test]
fn synced_names_survive_every_loss() {
    let names: Vec<PathBuf> = (0..5).map(|n| PathBuf::from(format!("/dir/{n}"))).collect();
    for seed in 0..60 {
        let mut random = SplitMix::new(seed);
        let mut model = NamesModel::default();
        let memory = MemoryStorage::new();
        memory.create_dir(Path::new("/dir")).unwrap();
        memory.sync_dir(Path::new("/")).unwrap();
        for n in 0..random.below(30) as u8 {
            let path = &names[random.below(names.len())];
            let other = &names[random.below(names.len())];
            match random.below(6) {
                0 => {
                    memory.sync_dir(Path::new("/dir")).unwrap();
                    model.sync();
                }
                1 | 2 => {
                    if memory.remove_file(path).is_ok() {
                        model.set(path, None);
                    }
                }
                3 => {
                    if memory.link_new(path, other).is_ok() {
                        model.set(other, model.live.get(path).copied());
                    }
                }
                _ => {
                    if let Ok(file) = memory.create_new(path) {
                        file.append(&[n]).unwrap();
                        file.sync().unwrap();
                        model.set(path, Some(n));
                    }
                }
            }
        }
        for loss in losses() {
            model.check(loss, &memory.crash(loss), &names, seed);
        }
    }
}
