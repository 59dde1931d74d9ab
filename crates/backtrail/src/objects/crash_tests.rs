//! However a writer is interrupted, finished objects survive and unfinished ones are
//! harmless (F13, F30).

use std::panic::AssertUnwindSafe;
use std::path::Path;

use backtrail_testkit::Storage as _;
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};

use super::testing::*;
use super::*;

const EIO: i32 = 5;

/// Stores contents with three writers, one of which seals a pack, and returns those that
/// were acknowledged.
fn work(objects: &Objects) -> Vec<Vec<u8>> {
    let goes: [Vec<Vec<u8>>; 4] = [
        vec![noise(1, 90), text(2, 700)],
        vec![noise(3, 300), noise(1, 90), noise(4, 1000)],
        vec![noise(5, 60)],
        (6..9).map(|n| noise(n, 900)).collect(),
    ];
    let mut acknowledged = Vec::new();
    for go in goes {
        if store(objects, &go).is_ok() {
            acknowledged.extend(go);
        }
    }
    acknowledged
}

fn assert_recovers(memory: &MemoryStorage, acknowledged: &[Vec<u8>], context: &str) {
    let recovers = || assert_whole(memory, acknowledged);
    if std::panic::catch_unwind(AssertUnwindSafe(recovers)).is_err() {
        panic!("{context}");
    }
}

/// Asserts that acknowledged contents are stored and that a writer can continue.
fn assert_whole(memory: &MemoryStorage, acknowledged: &[Vec<u8>]) {
    let objects = open(memory, 77);
    assert_stored(&objects, acknowledged);
    assert_sound(&objects);
    let new = (1..9).map(|n| noise(n, 90));
    let all: Vec<_> = new.chain(acknowledged.to_vec()).collect();
    store(&open(memory, 78), &all).unwrap();
    let after = memory.crash(Loss::Unsynced);
    assert_stored(&open(&after, 79), &all);
    assert_sound(&open(&after, 80));
}

fn losses() -> Vec<Loss> {
    let mut losses = vec![Loss::Unsynced, Loss::Nothing];
    losses.extend([1, 60, 700].map(|keep_bytes| Loss::Tail { keep_bytes }));
    losses.extend((0..12).map(|seed| Loss::Shuffled { seed }));
    losses
}

/// Runs `work` with a fault at every operation in turn.
fn at_every_step(count: Count, fault: Fault, check: impl Fn(&MemoryStorage, &[Vec<u8>], &str)) {
    for n in 0.. {
        let memory = memory();
        let disk = FaultyStorage::new(memory.clone()).counting(count);
        disk.arm(n, fault);
        let objects = Disk::of(disk.clone()).objects(5, SMALL);
        let acknowledged = work(&objects);
        drop(objects);
        check(
            &memory,
            &acknowledged,
            &format!("{fault:?} at {n}: {:?}", disk.log().last()),
        );
        if !disk.fired() {
            assert!(n > 30, "only {n} operations");
            assert_eq!(acknowledged.len(), 9);
            break;
        }
    }
}

#[test]
fn what_was_finished_survives_a_power_cut_at_every_step() {
    let faults = [
        Fault::Crash { when: When::Before },
        Fault::Crash { when: When::After },
        Fault::Tear {
            numerator: 1,
            denominator: 2,
        },
        Fault::Tear {
            numerator: 9,
            denominator: 10,
        },
    ];
    for fault in faults {
        at_every_step(Count::Writes, fault, |memory, acknowledged, context| {
            for loss in losses() {
                let after = memory.crash(loss);
                assert_recovers(&after, acknowledged, &format!("{context}, {loss:?}"));
            }
            assert_recovers(&memory.kill(), acknowledged, context);
        });
    }
}

#[test]
fn what_was_finished_survives_an_error_of_any_operation() {
    for fault in [Fault::Error(EIO), Fault::ErrorFrom(EIO)] {
        at_every_step(Count::All, fault, |memory, acknowledged, context| {
            assert_recovers(&memory.crash(Loss::Unsynced), acknowledged, context);
            assert_recovers(memory, acknowledged, context);
        });
    }
}

#[test]
fn a_full_disk_is_reported_and_nothing_stored_before_is_lost() {
    for space in (0..4000).step_by(37) {
        let memory = memory();
        memory.set_space(Some(space));
        let objects = open(&memory, 5);
        let acknowledged = work(&objects);
        if acknowledged.len() < 9 {
            let content = noise(70, 5000);
            let error = store(&objects, &[content]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DiskFull, "{space}: {error:?}");
        }
        memory.set_space(None);
        assert_recovers(&memory, &acknowledged, &format!("{space} bytes"));
    }
}

/// Returns a disk on which a writer has written its commit of these contents but not
/// synced it, and the previous length of the pack.
fn with_commit_in_flight(contents: &[Vec<u8>]) -> (MemoryStorage, u64) {
    let memory = memory();
    store(&open(&memory, 1), &[noise(50, 10)]).unwrap();
    let before = open(&memory, 1).size().unwrap();
    for n in 1.. {
        let attempt = memory.kill();
        let disk = FaultyStorage::new(attempt.clone());
        disk.arm(n, Fault::Crash { when: When::Before });
        store(&Disk::of(disk.clone()).objects(1, SMALL), contents).unwrap_err();
        let at_sync = disk.log().last().map(|last| last.starts_with("sync "));
        if at_sync == Some(true) {
            return (attempt.kill(), before);
        }
    }
    unreachable!("a writer syncs");
}

#[test]
fn what_was_found_in_the_pack_of_a_writer_that_died_is_durable_after_finish() {
    let contents: Vec<_> = (0..3).map(|n| noise(n, 100)).collect();
    let (memory, _) = with_commit_in_flight(&contents);
    let size = open(&memory, 2).size().unwrap();
    store(&open(&memory, 2), &contents).unwrap();
    assert_eq!(open(&memory, 2).size().unwrap(), size, "stored again");
    for loss in losses() {
        assert_stored(&open(&memory.crash(loss), 3), &contents);
    }
}

#[test]
fn objects_that_a_live_writer_may_roll_back_are_stored_again() {
    let contents: Vec<_> = (0..3).map(|n| noise(n, 100)).collect();
    let (memory, before) = with_commit_in_flight(&contents);
    let path = pack_files(&memory).remove(0);
    let live = memory.open_append(&path).unwrap();
    assert!(live.try_lock().unwrap());
    store(&open(&memory, 2), &contents).unwrap();
    live.truncate(before).unwrap();
    assert_stored(&open(&memory, 3), &contents);
    assert_stored(&open(&memory.crash(Loss::Unsynced), 4), &contents);
}

#[test]
fn what_a_live_writer_has_not_finished_is_not_relied_on() {
    let memory = memory();
    store(&open(&memory, 1), &[noise(50, 10)]).unwrap();
    let (one, two) = (open(&memory, 1), open(&memory, 2));
    let slow = one.writer().unwrap();
    slow.put(&noise(1, 100)).unwrap();
    store(&two, &[noise(1, 100), noise(50, 10)]).unwrap();
    let after = memory.crash(Loss::Unsynced);
    assert_stored(&open(&after, 3), &[noise(1, 100), noise(50, 10)]);
    slow.finish().unwrap();
    assert_stored(&open(&memory, 4), &[noise(1, 100), noise(50, 10)]);
}

#[test]
fn what_a_crash_leaves_is_cut_off_or_used_again() {
    let memory = memory();
    store(&open(&memory, 1), &[noise(1, 100)]).unwrap();
    let path = pack_files(&memory).remove(0);
    let whole = memory.read(&path).unwrap();
    // An unfinished entry, NUL bytes, and an empty file.
    for torn in [noise(3, 15), vec![0; 400]] {
        memory.write(&path, &[&whole[..], &torn].concat()).unwrap();
        assert_eq!(assert_sound(&open(&memory, 2)).leftovers, 1);
        let objects = open(&memory, 3);
        let writer = objects.writer().unwrap();
        writer.put(&noise(9, 10)).unwrap();
        drop(writer);
        assert_eq!(memory.read(&path).unwrap(), whole);
    }
    let empty = Path::new(DIR).join("0123456789abcdef.open");
    memory.write(&path, &[]).unwrap();
    memory.write(&empty, b"backtrail pa").unwrap();
    assert_eq!(assert_sound(&open(&memory, 4)).leftovers, 2);
    let objects = open(&memory, 5);
    let writers = [(); 2].map(|()| objects.writer().unwrap());
    for (n, writer) in (0..).zip(&writers) {
        writer.put(&noise(n, 100)).unwrap();
    }
    finish(writers);
    assert_eq!(pack_files(&memory).len(), 2);
    assert_eq!(assert_sound(&open(&memory, 6)).leftovers, 0);
    assert_stored(&open(&memory, 7), &[noise(0, 100), noise(1, 100)]);
}
