//! The promises of the memory storage. The random histories are in `history_tests.rs`.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

fn path(text: &str) -> &Path {
    Path::new(text)
}

/// Every kind of loss, the shuffled ones with many seeds.
pub(super) fn losses() -> impl Iterator<Item = Loss> {
    let tails = [0, 1, 5, 100, usize::MAX].map(|keep_bytes| Loss::Tail { keep_bytes });
    [Loss::Unsynced, Loss::Nothing]
        .into_iter()
        .chain(tails)
        .chain((0..100).map(|seed| Loss::Shuffled { seed }))
}

/// Returns a storage with a durable file `/log` with these bytes.
fn with_log(bytes: &[u8]) -> (MemoryStorage, Arc<dyn StorageFile>) {
    let memory = MemoryStorage::new();
    memory.write(path("/log"), bytes).unwrap();
    let file = memory.open_append(path("/log")).unwrap();
    (memory, file)
}

fn survivors(memory: &MemoryStorage) -> impl Iterator<Item = (Loss, Vec<u8>)> {
    losses().map(|loss| (loss, memory.crash(loss).read(path("/log")).unwrap()))
}

#[test]
fn unsynced_bytes_are_gone_after_the_loss_of_all_unsynced() {
    let (memory, file) = with_log(b"old ");
    file.append(b"new").unwrap();
    assert_eq!(memory.read(path("/log")).unwrap(), b"old new");
    let after = memory.crash(Loss::Unsynced);
    assert_eq!(after.read(path("/log")).unwrap(), b"old ");
    file.sync().unwrap();
    let after = memory.crash(Loss::Unsynced);
    assert_eq!(after.read(path("/log")).unwrap(), b"old new");
}

#[test]
fn an_unsynced_name_is_gone_and_a_synced_one_stays() {
    let memory = MemoryStorage::new();
    memory.create_dir(path("/dir")).unwrap();
    memory.sync_dir(path("/")).unwrap();
    let file = memory.create_new(path("/dir/file")).unwrap();
    file.append(b"bytes").unwrap();
    file.sync().unwrap();
    assert!(memory.crash(Loss::Unsynced).files().is_empty());
    memory.sync_dir(path("/dir")).unwrap();
    for loss in losses() {
        assert_eq!(
            memory.crash(loss).read(path("/dir/file")).unwrap(),
            b"bytes",
            "{loss:?}"
        );
    }
}

#[test]
fn an_unsynced_removal_is_undone() {
    let (memory, file) = with_log(b"bytes");
    drop(file);
    memory.remove_file(path("/log")).unwrap();
    assert!(!memory.exists(path("/log")).unwrap());
    let after = memory.crash(Loss::Unsynced);
    assert_eq!(after.read(path("/log")).unwrap(), b"bytes");
    memory.sync_dir(path("/")).unwrap();
    for loss in losses() {
        assert!(memory.crash(loss).files().is_empty(), "{loss:?}");
    }
}

#[test]
fn a_lost_directory_takes_what_is_in_it_along() {
    let memory = MemoryStorage::new();
    memory.create_dir(path("/dir")).unwrap();
    memory.write(path("/dir/file"), b"bytes").unwrap();
    let after = memory.crash(Loss::Unsynced);
    assert!(!after.exists(path("/dir")).unwrap());
    assert!(after.files().is_empty());
}

#[test]
fn a_lost_tail_is_torn_at_the_byte() {
    let (memory, file) = with_log(b"0");
    file.append(b"123").unwrap();
    file.append(b"456").unwrap();
    for keep_bytes in 0..9 {
        let after = memory.crash(Loss::Tail { keep_bytes });
        let expected = &b"0123456"[..7.min(1 + keep_bytes)];
        assert_eq!(after.read(path("/log")).unwrap(), expected);
    }
}

#[test]
fn a_lost_truncation_brings_the_durable_bytes_back() {
    let (memory, file) = with_log(b"abcdef");
    file.truncate(2).unwrap();
    let mut seen = Vec::new();
    for (loss, bytes) in survivors(&memory) {
        match loss {
            Loss::Unsynced => assert_eq!(bytes, b"abcdef"),
            Loss::Nothing | Loss::Tail { .. } => assert_eq!(bytes, b"ab"),
            Loss::Shuffled { .. } => seen.push(bytes),
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, [b"ab".to_vec(), b"abcdef".to_vec()]);
}

#[test]
fn shuffling_leaves_holes_of_zero_bytes_and_partial_appends() {
    let (memory, file) = with_log(b"=");
    file.append(b"aaaa").unwrap();
    file.append(b"bbbb").unwrap();
    let seen: Vec<Vec<u8>> = (0..2_000)
        .map(|seed| memory.crash(Loss::Shuffled { seed }))
        .map(|after| after.read(path("/log")).unwrap())
        .collect();
    for expected in [
        &b"="[..],
        b"=aaaa",
        b"=aaaabbbb",
        b"=\0\0\0\0bbbb",
        b"=aaaabb",
        b"=aaaabb\0\0",
    ] {
        assert!(seen.iter().any(|bytes| bytes == expected), "{expected:?}");
    }
}

#[test]
fn equal_seeds_lose_equally() {
    let (memory, file) = with_log(b"=");
    for n in 0..20_u8 {
        file.append(&[n; 9]).unwrap();
    }
    let once: Vec<_> = survivors(&memory).collect();
    assert_eq!(once, survivors(&memory).collect::<Vec<_>>());
}

#[test]
fn what_a_crash_left_is_durable_and_apart() {
    let (memory, file) = with_log(b"old ");
    file.append(b"new").unwrap();
    let after = memory.crash(Loss::Nothing);
    file.append(b"er").unwrap();
    let again = after.crash(Loss::Unsynced);
    assert_eq!(again.read(path("/log")).unwrap(), b"old new");
}

#[test]
fn a_killed_process_leaves_what_was_pending_pending() {
    let memory = MemoryStorage::new();
    let file = memory.create_new(path("/log")).unwrap();
    file.append(b"bytes").unwrap();
    assert!(file.try_lock().unwrap());
    let next = memory.kill();
    let reopened = next.open_append(path("/log")).unwrap();
    assert_eq!(next.read(path("/log")).unwrap(), b"bytes");
    assert!(reopened.try_lock().unwrap());
    reopened.sync().unwrap();
    assert!(next.crash(Loss::Unsynced).files().is_empty());
    next.sync_dir(path("/")).unwrap();
    let after = next.crash(Loss::Unsynced);
    assert_eq!(after.read(path("/log")).unwrap(), b"bytes");
}

#[test]
fn hard_links_share_an_inode() {
    let (memory, file) = with_log(b"one");
    memory.link_new(path("/log"), path("/two")).unwrap();
    file.append(b" two").unwrap();
    memory.remove_file(path("/log")).unwrap();
    file.append(b" three").unwrap();
    assert_eq!(memory.read(path("/two")).unwrap(), b"one two three");
    // Durable under its second name, with bytes that were synced through the first.
    file.sync().unwrap();
    memory.sync_dir(path("/")).unwrap();
    let after = memory.crash(Loss::Unsynced);
    assert_eq!(after.files(), [Path::new("/two")]);
    assert_eq!(after.read(path("/two")).unwrap(), b"one two three");
}

#[test]
fn a_lock_is_exclusive_and_dies_with_its_handle() {
    let (memory, first) = with_log(b"");
    let second = memory.open_read(path("/log")).unwrap();
    assert!(first.try_lock().unwrap());
    assert!(first.try_lock().unwrap());
    first.lock().unwrap();
    assert!(!second.try_lock().unwrap());
    second.unlock().unwrap();
    assert!(!second.try_lock().unwrap());
    let clone = Arc::clone(&first);
    drop(first);
    assert!(!second.try_lock().unwrap());
    drop(clone);
    assert!(second.try_lock().unwrap());
}

#[test]
fn a_crash_frees_all_locks() {
    let (memory, file) = with_log(b"");
    file.lock().unwrap();
    let after = memory.crash(Loss::Nothing);
    let reopened = after.open_append(path("/log")).unwrap();
    assert!(reopened.try_lock().unwrap());
}

#[test]
fn lock_waits_until_the_lock_is_free() {
    let (memory, first) = with_log(b"");
    first.lock().unwrap();
    let second = memory.open_append(path("/log")).unwrap();
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || {
        second.lock().unwrap();
        sender.send(()).unwrap();
    });
    let early = receiver.recv_timeout(Duration::from_millis(30));
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
    drop(first);
    receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    waiter.join().unwrap();
}

#[test]
fn space_runs_out_with_a_short_write() {
    let (memory, file) = with_log(b"12");
    memory.set_space(Some(4));
    assert_eq!(file.append(b"345678").unwrap(), 4);
    let full = file.append(b"7").unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.append(b"").unwrap(), 0);
    file.truncate(3).unwrap();
    assert_eq!(file.append(b"4567").unwrap(), 3);
    assert_eq!(memory.read(path("/log")).unwrap(), b"123456");
    memory.set_space(None);
    assert_eq!(file.append(b"7").unwrap(), 1);
}

#[test]
fn a_removed_file_gives_its_space_back_once_closed() {
    let (memory, file) = with_log(b"");
    memory.set_space(Some(3));
    let other = memory.create_new(path("/other")).unwrap();
    assert_eq!(other.append(b"12345").unwrap(), 3);
    memory.remove_file(path("/other")).unwrap();
    file.append(b"1").unwrap_err();
    drop(other);
    assert_eq!(file.append(b"12345").unwrap(), 3);
}

#[test]
fn a_disk_is_as_large_after_a_crash_as_before() {
    let (memory, file) = with_log(b"12");
    memory.set_space(Some(4));
    file.append(b"345").unwrap();
    let after = memory.crash(Loss::Unsynced);
    let file = after.open_append(path("/log")).unwrap();
    assert_eq!(file.append(b"3456789").unwrap(), 4);
}
