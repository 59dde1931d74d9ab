//! The promises of the faulty storage.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::{Loss, MemoryStorage};

const EIO: i32 = 5;

fn faulty() -> (MemoryStorage, FaultyStorage) {
    let memory = MemoryStorage::new();
    let disk = FaultyStorage::new(memory.clone());
    (memory, disk)
}

fn path() -> &'static Path {
    Path::new("/log")
}

/// Five operations that change something, and three that do not.
fn workload(disk: &FaultyStorage) -> io::Result<()> {
    let file = disk.create_new(path())?;
    disk.sync_dir(Path::new("/"))?;
    file.len()?;
    file.append(b"12345678")?;
    file.sync()?;
    disk.exists(path())?;
    disk.list(Path::new("/"))?;
    file.truncate(8)
}

#[test]
fn the_nth_operation_fails_and_only_it() {
    for n in 0..4 {
        let (memory, disk) = faulty();
        memory.write(path(), b"").unwrap();
        let file = disk.open_append(path()).unwrap();
        disk.arm(n, Fault::Error(EIO));
        for at in 0..4 {
            let result = file.append(b"x");
            assert_eq!(result.is_err(), at == n);
            if let Err(error) = result {
                assert_eq!(error.raw_os_error(), Some(EIO));
            }
            assert_eq!(disk.fired(), at >= n);
        }
        assert_eq!(memory.read(path()).unwrap(), b"xxx");
        assert_eq!(disk.operations(), 4);
        assert!(!disk.crashed());
    }
}

#[test]
fn every_operation_from_the_nth_on_fails_until_disarmed() {
    let (memory, disk) = faulty();
    memory.write(path(), b"").unwrap();
    let file = disk.open_append(path()).unwrap();
    disk.arm(1, Fault::ErrorFrom(EIO));
    file.append(b"x").unwrap();
    for _ in 0..3 {
        assert_eq!(file.append(b"y").unwrap_err().raw_os_error(), Some(EIO));
    }
    assert_eq!(file.len().unwrap(), 1);
    disk.disarm();
    file.append(b"z").unwrap();
    assert_eq!(memory.read(path()).unwrap(), b"xz");
}

#[test]
fn reads_count_only_if_chosen() {
    let (_, disk) = faulty();
    workload(&disk).unwrap();
    assert_eq!(disk.operations(), 5);
    let (_, disk) = faulty();
    let disk = disk.counting(Count::All);
    workload(&disk).unwrap();
    assert_eq!(disk.operations(), 8);
    disk.arm(0, Fault::Error(EIO));
    assert!(disk.exists(path()).is_err());
    assert!(disk.exists(path()).unwrap());
}

#[test]
fn the_log_names_operations_and_marks_the_fault() {
    let (_, disk) = faulty();
    disk.arm(2, Fault::Error(EIO));
    workload(&disk).unwrap_err();
    let expected = ["create log", "sync_dir /", "append log 8 <- Error(5)"];
    assert_eq!(disk.log(), expected);
}

#[test]
fn after_a_crash_everything_fails_and_says_so() {
    for when in [When::Before, When::After] {
        let (memory, disk) = faulty();
        let file = disk.create_new(path()).unwrap();
        disk.arm(0, Fault::Crash { when });
        let error = file.append(b"x").unwrap_err();
        assert!(error.to_string().contains("crashed"));
        assert!(disk.crashed() && disk.fired());
        for error in [
            file.append(b"y").unwrap_err(),
            file.len().unwrap_err(),
            file.unlock().unwrap_err(),
            disk.exists(path()).unwrap_err(),
            disk.clone().open_read(path()).unwrap_err(),
        ] {
            assert!(error.to_string().contains("crashed"));
        }
        let expected: &[u8] = if when == When::After { b"x" } else { b"" };
        assert_eq!(memory.read(path()).unwrap(), expected);
    }
}

#[test]
fn a_tear_writes_its_share_of_an_append_and_crashes() {
    for numerator in 0..=4 {
        let (memory, disk) = faulty();
        let denominator = 4;
        disk.arm(
            2,
            Fault::Tear {
                numerator,
                denominator,
            },
        );
        workload(&disk).unwrap_err();
        let after = memory.crash(Loss::Nothing).read(path()).unwrap();
        assert_eq!(after, b"12345678"[..2 * numerator as usize]);
        assert!(disk.crashed());
    }
    let (memory, disk) = faulty();
    let tear = Fault::Tear {
        numerator: 1,
        denominator: 2,
    };
    disk.arm(0, tear);
    workload(&disk).unwrap_err();
    assert!(memory.files().is_empty() && disk.crashed());
}

#[test]
fn a_lost_sync_reports_success_and_secures_nothing() {
    let (memory, disk) = faulty();
    disk.arm(3, Fault::LostSync);
    workload(&disk).unwrap();
    assert!(disk.fired());
    assert_eq!(memory.crash(Loss::Unsynced).read(path()).unwrap(), b"");
    let (memory, disk) = faulty();
    disk.arm(1, Fault::LostSync);
    workload(&disk).unwrap();
    assert!(memory.crash(Loss::Unsynced).files().is_empty());
}

#[test]
fn arming_again_counts_from_zero() {
    let (_, disk) = faulty();
    disk.arm(0, Fault::Crash { when: When::Before });
    workload(&disk).unwrap_err();
    disk.arm(100, Fault::Error(EIO));
    workload(&disk).unwrap();
    assert_eq!((disk.operations(), disk.fired()), (5, false));
}

#[test]
fn a_crashed_unlock_frees_the_lock_anyway() {
    let (memory, disk) = faulty();
    let file = disk.create_new(path()).unwrap();
    let other = memory.open_append(path()).unwrap();
    file.lock().unwrap();
    disk.arm(0, Fault::Crash { when: When::Before });
    file.append(b"x").unwrap_err();
    assert!(!other.try_lock().unwrap());
    file.unlock().unwrap_err();
    assert!(other.try_lock().unwrap());
}

#[test]
fn a_lock_that_was_taken_as_the_machine_stopped_is_free_again() {
    let (memory, disk) = faulty();
    let file = disk.create_new(path()).unwrap();
    disk.arm(0, Fault::Crash { when: When::After });
    file.lock().unwrap_err();
    let other = memory.open_append(path()).unwrap();
    assert!(other.try_lock().unwrap());
}

#[test]
fn a_failed_lock_leaves_a_lock_that_was_held() {
    let (memory, disk) = faulty();
    let file = disk.create_new(path()).unwrap();
    file.lock().unwrap();
    disk.arm(0, Fault::Error(EIO));
    file.try_lock().unwrap_err();
    let other = memory.open_append(path()).unwrap();
    assert!(!other.try_lock().unwrap());
    drop(file);
    assert!(other.try_lock().unwrap());
}

#[test]
fn a_crash_ends_the_wait_for_a_lock() {
    let (_, disk) = faulty();
    let holder = disk.create_new(path()).unwrap();
    holder.lock().unwrap();
    let waiting = disk.open_append(path()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || sender.send(waiting.lock()).unwrap());
    let early = receiver.recv_timeout(Duration::from_millis(30));
    assert!(early.is_err());
    disk.arm(0, Fault::Crash { when: When::Before });
    holder.append(b"x").unwrap_err();
    let ended = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(ended.unwrap_err().to_string().contains("crashed"));
    waiter.join().unwrap();
}
