//! F30: whatever stops a clean-up, at any step, the store verifies, every kept state is
//! whole, and the next clean-up leaves only what is needed.

use std::collections::BTreeSet;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Duration;

use backtrail::gc::GcOptions;
use backtrail::snapshot::ObjectId;
use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, Reason, Store, StoreOptions};
use backtrail_testkit::{
    Count, Fault, FaultyStorage, Loss, ManualClock, MemoryStorage, SeededRandomness, When,
};
use tempfile::TempDir;

use super::kit::{START, noise, options, read_all};
use crate::rewind::kit::HOME;

/// A store in memory with a few packs, parts of which are needed.
struct Filled {
    _dir: TempDir,
    memory: MemoryStorage,
    /// States that are never dropped.
    always: BTreeSet<ObjectId>,
}

/// Two with the same seed would create the same names.
fn small(clock: &ManualClock, seed: u64) -> StoreOptions {
    let options = options(clock).pack_size(6 << 10);
    options.randomness(SeededRandomness::new(seed))
}

impl Filled {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let memory = MemoryStorage::new();
        let clock = ManualClock::new(START);
        let store = small(&clock, 1)
            .storage(memory.clone())
            .open_or_create(HOME)
            .unwrap();
        let mut always = BTreeSet::new();
        for (n, name) in (0..).zip(["one", "two"]) {
            let root = dir.path().join(name);
            fs::create_dir(&root).unwrap();
            let workspace = store.workspace(&root).unwrap();
            for state in 0..5 {
                fs::write(root.join("file"), noise(10 * n + state, 1500)).unwrap();
                fs::write(root.join("both"), noise(state, 800)).unwrap();
                let options = match state {
                    2 => CheckpointOptions::new().label("mine"),
                    4 => CheckpointOptions::new(),
                    _ => CheckpointOptions::new().reason(CheckpointReason::ToolEnd),
                };
                let kept = workspace.checkpoint(options).unwrap();
                if state == 2 || state == 4 {
                    always.insert(kept.snapshot_id());
                }
            }
        }
        Self {
            _dir: dir,
            memory: memory.crash(Loss::Nothing),
            always,
        }
    }
}

fn open(memory: &MemoryStorage) -> Store {
    let clock = ManualClock::new(START + 1_000_000);
    small(&clock, 3).storage(memory.clone()).open(HOME).unwrap()
}

fn all() -> GcOptions {
    GcOptions::new().older_than(Duration::ZERO)
}

/// Asserts that the store is whole after a clean-up that was stopped, and that the next one
/// leaves exactly what is needed.
fn assert_recovers(memory: &MemoryStorage, filled: &Filled) {
    let store = open(memory);
    let report = store.verify_snapshots().unwrap();
    assert!(
        report.incomplete.is_empty() && report.damaged == 0,
        "{report:#?}"
    );
    for (_, trail) in &report.trails {
        // A power cut may leave part of a record that was never acknowledged.
        let mut damage = trail.damage.first().iter();
        assert!(
            damage.all(|damage| damage.reason == Reason::Unfinished),
            "{trail:#?}"
        );
    }
    assert!(read_all(&store) >= filled.always.len());
    let mut kept = BTreeSet::new();
    for workspace in store.workspaces().unwrap() {
        let checkpoints = workspace.checkpoints().unwrap().map(Result::unwrap);
        let has_files = |kept: &backtrail::Checkpoint| kept.dropped().unwrap().is_none();
        kept.extend(checkpoints.filter(has_files).map(|kept| kept.snapshot_id()));
    }
    assert!(kept.is_superset(&filled.always));
    store.gc(&all()).unwrap();
    assert_eq!(read_all(&store), filled.always.len());
    let report = store.verify_snapshots().unwrap();
    assert!(report.is_ok() && report.leftovers == 0, "{report:#?}");
    let again = store.gc(&all()).unwrap();
    assert!(again.is_empty(), "every object is there once: {again:#?}");
    let objects = Path::new(HOME).join("objects");
    for file in memory
        .files()
        .iter()
        .filter(|file| file.starts_with(&objects))
    {
        let name = file.file_name().unwrap().to_str().unwrap();
        let locks = ["objects.lock", "gate.lock", "gc.lock"];
        let is_pack = name.ends_with(".pack") || name.ends_with(".open");
        assert!(is_pack || locks.contains(&name), "{name} is left over");
    }
}

#[test]
fn f30_a_clean_up_that_is_stopped_at_any_step_loses_nothing_and_leaves_nothing() {
    let filled = Filled::new();
    let losses = [
        Loss::Unsynced,
        Loss::Tail { keep_bytes: 90 },
        Loss::Shuffled { seed: 1 },
        Loss::Shuffled { seed: 2 },
    ];
    for when in [When::Before, When::After] {
        for n in 0.. {
            let memory = filled.memory.kill();
            let disk = FaultyStorage::new(memory.clone()).counting(Count::Writes);
            let clock = ManualClock::new(START + 1_000_000);
            let store = small(&clock, 2).storage(disk.clone()).open(HOME).unwrap();
            disk.arm(n, Fault::Crash { when });
            let cleaned = store.gc(&all());
            let context = format!("{when:?} {n}: {:?}", disk.log().last());
            let cut = losses.iter().map(|loss| memory.crash(*loss));
            for after in cut.chain([memory.kill()]) {
                let recovers = AssertUnwindSafe(|| assert_recovers(&after, &filled));
                if std::panic::catch_unwind(recovers).is_err() {
                    panic!("{context}");
                }
            }
            if !disk.fired() {
                assert!(n > 25, "only {n} steps");
                cleaned.unwrap();
                break;
            }
        }
    }
}
