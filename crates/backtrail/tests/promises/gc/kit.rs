//! Helpers of the tests of the clean-up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use backtrail::gc::{GcOptions, GcReport};
use backtrail::snapshot::{FileKind, ObjectId};
use backtrail::workspace::CheckpointReason;
use backtrail::{
    Checkpoint, CheckpointOptions, LocalStorage, Snapshot, Storage, Store, StoreOptions, Workspace,
};
use backtrail_testkit::{ManualClock, SeededRandomness};
use tempfile::TempDir;

use crate::rewind::kit::quick_dir;
use crate::snapshots::tree::{Tree, materialised, read_tree, same};

pub(crate) const START: i64 = 1_794_729_600_000;
pub(crate) const DAY: i64 = 86_400_000;

/// A store with a clock that is set by hand, and a workspace.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) clock: ManualClock,
    pub(crate) store: Store,
    pub(crate) workspace: Workspace,
    /// The checkpoints, and what the directory held then.
    pub(crate) kept: Vec<(Checkpoint, Tree)>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::on(LocalStorage)
    }

    pub(crate) fn on(storage: impl Storage) -> Self {
        let dir = quick_dir();
        let clock = ManualClock::new(START);
        let store = options(&clock)
            .storage(storage)
            .open_or_create(dir.path().join("store"));
        let store = store.unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let workspace = store.workspace(&dir.path().join("work")).unwrap();
        Self {
            dir,
            clock,
            store,
            workspace,
            kept: Vec::new(),
        }
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.workspace.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Keeps the files as they are, for a reason.
    pub(crate) fn keep(&mut self, reason: CheckpointReason) -> Checkpoint {
        self.keep_with(CheckpointOptions::new().reason(reason))
    }

    pub(crate) fn keep_with(&mut self, options: CheckpointOptions) -> Checkpoint {
        let tree = read_tree(self.workspace.root());
        let kept = self.workspace.checkpoint(options).unwrap();
        self.kept.push((kept.clone(), tree));
        kept
    }

    /// Writes content that no other state has, and keeps it for a reason.
    pub(crate) fn state(&mut self, n: u64, reason: CheckpointReason) -> Checkpoint {
        self.write("file", noise(n, 3000));
        self.keep(reason)
    }

    pub(crate) fn gc(&self) -> GcReport {
        self.store.gc(&GcOptions::new()).unwrap()
    }

    pub(crate) fn objects_dir(&self) -> PathBuf {
        self.store.root().join("objects")
    }

    /// Asserts that the store verifies, that every kept state is whole and unchanged, and
    /// that dropped ones are reported. Returns which were dropped.
    pub(crate) fn check(&self) -> Vec<bool> {
        assert_verifies(&self.store);
        let gone = self.kept.iter().map(|(kept, tree)| {
            let is_gone = kept.dropped().unwrap().is_some();
            if !is_gone {
                let snapshot = kept.snapshot().unwrap();
                same(&materialised(&snapshot), tree).unwrap();
            }
            is_gone
        });
        gone.collect()
    }
}

pub(crate) fn options(clock: &ManualClock) -> StoreOptions {
    StoreOptions::new()
        .clock(clock.clone())
        .randomness(SeededRandomness::new(7))
}

#[track_caller]
pub(crate) fn assert_verifies(store: &Store) {
    let report = store.verify_snapshots().unwrap();
    assert!(report.is_ok(), "{report:#?}");
}

/// Returns bytes that do not compress, different ones for every number.
pub(crate) fn noise(n: u64, len: usize) -> Vec<u8> {
    use backtrail_testkit::Randomness;
    let mut bytes = vec![0; len];
    SeededRandomness::new(n).fill(&mut bytes).unwrap();
    bytes
}

/// Returns the packs of a store, with their lengths.
pub(crate) fn packs(objects: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(objects).unwrap().map(Result::unwrap);
    let packs = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        let is_pack = name.ends_with(".pack") || name.ends_with(".open");
        is_pack.then(|| (name, entry.metadata().unwrap().len()))
    });
    packs.collect()
}

/// Reads every name and every byte of a snapshot.
pub(crate) fn read_whole(snapshot: &Snapshot) -> Result<u64, backtrail::Error> {
    let mut bytes = 0;
    for entry in snapshot.entries() {
        let (path, state) = entry?;
        if state.kind == FileKind::File {
            bytes += snapshot.read(&path)?.expect("it is there").len() as u64;
        }
    }
    Ok(bytes)
}

/// Reads all kept states of all workspaces, and returns how many there are.
pub(crate) fn read_all(store: &Store) -> usize {
    let mut seen: BTreeSet<ObjectId> = BTreeSet::new();
    for workspace in store.workspaces().unwrap() {
        for kept in workspace.checkpoints().unwrap() {
            let kept = kept.unwrap();
            if kept.dropped().unwrap().is_none() && seen.insert(kept.snapshot_id()) {
                let read = kept.snapshot().and_then(|snapshot| read_whole(&snapshot));
                read.unwrap_or_else(|error| panic!("{} lacks something: {error:?}", kept.id()));
            }
        }
    }
    seen.len()
}
