//! Several at once: in one workspace they take turns, in several they do not mix.

use std::fs;
use std::sync::Barrier;
use std::thread;

use backtrail::snapshot::ObjectId;
use backtrail::{CheckpointOptions, Store};

use super::desk::Desk;
use super::tree::{materialised, read_tree, same};

#[test]
fn four_processes_in_one_workspace_take_turns_and_every_checkpoint_is_complete() {
    let desk = Desk::new();
    for n in 0..40 {
        desk.write(&format!("f{n}"), format!("content {n}"));
    }
    let tree = read_tree(desk.root());
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // A handle of its own is what another process has.
                let store = Store::open(desk.store.root()).unwrap();
                barrier.wait();
                let workspace = store.workspace(desk.root()).unwrap();
                for _ in 0..5 {
                    workspace.checkpoint(CheckpointOptions::new()).unwrap();
                }
            });
        }
    });
    let kept: Vec<_> = desk.workspace.checkpoints().unwrap().collect();
    assert_eq!(kept.len(), 20);
    for (n, kept) in kept.into_iter().enumerate() {
        let kept = kept.unwrap();
        // The first record says where the workspace is.
        assert_eq!(kept.seq(), n as u64 + 2, "each has a number of its own");
        same(&materialised(&kept.snapshot().unwrap()), &tree).unwrap();
    }
    desk.verify();
}

/// Each of two counts what changed against the checkpoint before its own, so no
/// change is counted by neither and none by both.
#[test]
fn of_two_snapshots_at_once_one_sees_a_change_and_the_other_sees_none() {
    let desk = Desk::new();
    desk.write("file", "0");
    desk.keep();
    for round in 1..=20 {
        desk.write("file", format!("{round}"));
        let barrier = Barrier::new(2);
        let changed: Vec<u64> = thread::scope(|scope| {
            let make = || {
                let store = Store::open(desk.store.root()).unwrap();
                let workspace = store.workspace(desk.root()).unwrap();
                barrier.wait();
                let kept = workspace.checkpoint(CheckpointOptions::new());
                kept.unwrap().changed()
            };
            let both = [scope.spawn(make), scope.spawn(make)];
            both.map(|thread| thread.join().unwrap()).to_vec()
        });
        assert_eq!(changed.iter().sum::<u64>(), 1, "round {round}: {changed:?}");
    }
}

#[test]
fn four_workspaces_in_one_store_are_kept_at_once_and_share_equal_files() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("store");
    Store::open_or_create(&home).unwrap();
    let barrier = Barrier::new(4);
    let snapshots: Vec<ObjectId> = thread::scope(|scope| {
        let (dir, home, barrier) = (dir.path(), &home, &barrier);
        let threads: Vec<_> = (0..4)
            .map(|n| {
                scope.spawn(move || {
                    let root = dir.join(format!("work{n}"));
                    fs::create_dir(&root).unwrap();
                    let store = Store::open(home).unwrap();
                    barrier.wait();
                    let workspace = store.workspace(&root).unwrap();
                    for round in 0..5 {
                        fs::write(root.join("file"), format!("{n} in {round}")).unwrap();
                        fs::write(root.join(format!("{round}")), vec![n; 1000]).unwrap();
                        workspace.checkpoint(CheckpointOptions::new()).unwrap();
                        let tree = read_tree(&root);
                        let kept = workspace.last_checkpoint().unwrap().unwrap();
                        same(&materialised(&kept.snapshot().unwrap()), &tree).unwrap();
                    }
                    fs::write(root.join("file"), "equal in the end").unwrap();
                    for round in 0..5 {
                        fs::write(root.join(format!("{round}")), "so").unwrap();
                    }
                    let kept = workspace.checkpoint(CheckpointOptions::new());
                    kept.unwrap().snapshot_id()
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect()
    });
    assert!(snapshots.iter().all(|id| *id == snapshots[0]));
    let store = Store::open(&home).unwrap();
    let report = store.verify_snapshots().unwrap();
    assert!(report.is_ok(), "{report:#?}");
    assert_eq!((report.workspaces, report.checkpoints), (4, 24));
}
