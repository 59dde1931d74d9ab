//! Scans find every change since the last scan, however it was made; the cache only saves
//! work. Random trees and changes are compared with an independent reader and a scan
//! without cache.

#![expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

use super::testing::{TestWorkspace, Thing, truth};

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

const NAMES: [&[u8]; 12] = [
    b"a",
    b"b",
    b"c.txt",
    b"long-name-of-a-file.rs",
    b"with space",
    b"new\nline",
    b"\xff\xfe",
    b"-dash",
    b"\xc3\xa9",
    b".hidden",
    b"a\\b",
    b"*",
];

fn odd_name(dice: &mut Dice) -> &'static [u8] {
    NAMES[dice.roll(NAMES.len())]
}

/// Makes one random change to the tree.
fn change(root: &Path, dice: &mut Dice) {
    let (dirs, others) = all(root);
    let fresh = dice.pick(&dirs).join(OsStr::from_bytes(odd_name(dice)));
    match dice.roll(12) {
        0..=2 => write(&fresh, &bytes(dice)),
        3 => fs::create_dir(&fresh).unwrap_or_default(),
        4 => symlink(OsStr::from_bytes(odd_name(dice)), &fresh).unwrap_or_default(),
        5 => {
            let mode = Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(CWD, &fresh, FileType::Fifo, mode, 0).unwrap_or_default();
        }
        6 if dirs.len() > 1 => {
            let modes = [0o700, 0o755, 0o1777, 0o2750];
            let mode = Permissions::from_mode(*dice.pick(&modes));
            fs::set_permissions(dice.pick(&dirs[1..]), mode).unwrap();
        }
        7 if dirs.len() > 1 => fs::remove_dir_all(dice.pick(&dirs[1..])).unwrap(),
        8 if dirs.len() > 1 => fs::rename(dice.pick(&dirs[1..]), &fresh).unwrap_or_default(),
        _ if others.is_empty() => write(&fresh, b"first"),
        _ => change_file(&others[dice.roll(others.len())], &fresh, dice),
    }
}

fn change_file(path: &Path, fresh: &Path, dice: &mut Dice) {
    match dice.roll(7) {
        0 => fs::remove_file(path).unwrap(),
        1 => fs::rename(path, fresh).unwrap_or_default(),
        2 => fs::hard_link(path, fresh).unwrap_or_default(),
        3 => {
            // Something of another kind takes its name.
            fs::remove_file(path).unwrap();
            match dice.roll(3) {
                0 => fs::create_dir(path).unwrap(),
                1 => symlink("elsewhere", path).unwrap(),
                _ => write(path, b"a file"),
            }
        }
        _ if !fs::symlink_metadata(path).unwrap().is_file() => {}
        4 => {
            let modes = [0o644, 0o755, 0o4755, 0o600, 0o2644];
            fs::set_permissions(path, Permissions::from_mode(*dice.pick(&modes))).unwrap();
        }
        5 => write(path, &bytes(dice)),
        _ => rewrite_unseen(path),
    }
}

/// Changes a file's bytes and restores its time.
fn rewrite_unseen(path: &Path) {
    let before = fs::metadata(path).unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes
        .iter_mut()
        .for_each(|byte| *byte = byte.wrapping_add(1));
    fs::write(path, bytes).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    let after = fs::metadata(path).unwrap();
    assert_eq!(after.mtime_nsec(), before.mtime_nsec());
    assert_eq!(after.len(), before.len());
}

fn write(path: &Path, bytes: &[u8]) {
    // There may be a link to a directory, or a pipe.
    if fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return;
    }
    fs::write(path, bytes).unwrap();
}

fn bytes(dice: &mut Dice) -> Vec<u8> {
    let len = *dice.pick(&[0, 1, 5, 5, 5, 100, 5000]);
    let first = dice.roll(256) as u8;
    (0..len)
        .map(|n: usize| first.wrapping_add(n as u8))
        .collect()
}

/// Returns all directories, the root first, and everything else.
fn all(root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut dirs, mut others) = (vec![root.to_owned()], Vec::new());
    let mut next = 0;
    while next < dirs.len() {
        let mut below: Vec<_> = fs::read_dir(&dirs[next]).unwrap().flatten().collect();
        below.sort_by_key(fs::DirEntry::file_name);
        for entry in below {
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(entry.path()),
                false => others.push(entry.path()),
            }
        }
        next += 1;
    }
    (dirs, others)
}

/// Returns when the file system's clock has advanced.
fn tick(place: &TestWorkspace) {
    let probe = place.dir.path().join("probe");
    let now = || {
        fs::write(&probe, b"x").unwrap();
        fs::metadata(&probe)
            .map(|meta| (meta.ctime(), meta.ctime_nsec()))
            .unwrap()
    };
    let start = now();
    while now() == start {}
}

fn random_changes_are_found(trust_times: bool) {
    for seed in 1..=30_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut place = TestWorkspace::new();
        let root = place.root();
        for _ in 0..30 {
            change(&root, &mut dice);
        }
        for round in 0..12 {
            if trust_times {
                // The scan believes that it is late and trusts all times, so changes must
                // be at least a tick apart.
                place.later_millis = 3_600_000;
                tick(&place);
            }
            for _ in 0..dice.roll(5) {
                change(&root, &mut dice);
            }
            assert_eq!(place.things(), truth(&root), "seed {seed}, round {round}");
        }
    }
}

/// B3, F12: content, mode, kind, links, emptiness, renames, odd names.
#[test]
fn random_changes_are_found_by_their_times() {
    random_changes_are_found(true);
}

/// F12: within the same tick of the clock.
#[test]
fn random_changes_are_found_within_one_tick() {
    random_changes_are_found(false);
}

#[test]
fn what_is_young_is_read_again_and_what_is_old_is_not() {
    let mut place = TestWorkspace::new();
    place.write("a/b", "content");
    assert_eq!(place.scan().counts.files, 1);
    let again = place.scan();
    assert_eq!((again.counts.files, again.counts.dirs), (1, 2));
    // Two seconds later both are read once more, and then trusted.
    place.later_millis = 3000;
    let once = place.scan();
    assert_eq!((once.counts.files, once.counts.dirs), (1, 2));
    let never = place.scan();
    assert_eq!((never.counts.files, never.counts.dirs), (0, 0));
    assert_eq!(never.id, again.id);
}

#[test]
fn a_time_in_the_future_is_never_trusted() {
    let mut place = TestWorkspace::new();
    place.write("a", "content");
    let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(1_000_000);
    File::options()
        .write(true)
        .open(place.at("a"))
        .unwrap()
        .set_modified(ahead)
        .unwrap();
    place.later_millis = 3000;
    place.scan();
    assert_eq!(place.scan().counts.files, 1);
}

#[test]
fn a_time_before_1970_is_a_time() {
    let mut place = TestWorkspace::new();
    place.write("a", "content");
    let past = std::time::UNIX_EPOCH - std::time::Duration::new(86_400, 5);
    File::options()
        .write(true)
        .open(place.at("a"))
        .unwrap()
        .set_modified(past)
        .unwrap();
    place.later_millis = 3000;
    assert_eq!(place.things(), truth(&place.root()));
    assert_eq!(place.scan().counts.files, 0);
}

#[test]
fn an_unchanged_workspace_costs_no_reading_and_no_new_cache() {
    let mut place = TestWorkspace::new();
    for n in 0..50 {
        place.write(&format!("d{}/e{}/f{n}", n % 3, n % 7), format!("{n}"));
    }
    place.later_millis = 3000;
    let first = place.scan();
    let same = place.try_scan().unwrap();
    assert!(same.cache.is_none());
    assert_eq!(
        (same.counts.files, same.counts.bytes, same.counts.dirs),
        (0, 0, 0)
    );
    assert_eq!((same.id, same.root), (first.id, first.root));
}

#[test]
fn one_change_reads_one_file() {
    let mut place = TestWorkspace::new();
    for n in 0..50 {
        place.write(&format!("d{}/e{}/f{n}", n % 3, n % 7), format!("{n}"));
    }
    place.later_millis = 3_600_000;
    let first = place.scan();
    tick(&place);
    place.write("d1/e1/f1", "another");
    let then = place.scan();
    assert_eq!((then.counts.files, then.counts.dirs), (1, 0));
    assert_ne!(then.id, first.id);
    assert_eq!(place.things(), truth(&place.root()));
}

/// F13: a scan without storing stores nothing and its cache is not kept.
#[test]
fn a_scan_without_storing_finds_the_same() {
    let mut place = TestWorkspace::new();
    place.write("a/b", "content");
    let inspected = place.scan_fresh();
    assert!(inspected.cache.is_none());
    assert!(!place.objects.contains(&inspected.id).unwrap());
    assert!(
        !place
            .objects
            .contains(&crate::snapshot::ObjectId::of(b"content"))
            .unwrap()
    );
    assert_eq!(place.scan().id, inspected.id);
}

#[test]
fn ten_thousand_files_in_one_directory_are_captured() {
    let mut place = TestWorkspace::new();
    for n in 0..10_000 {
        fs::write(place.at(&format!("f{n}")), format!("{n}")).unwrap();
    }
    place.later_millis = 3_600_000;
    let first = place.scan();
    assert_eq!(first.root.totals.files, 10_000);
    assert_eq!(place.things(), truth(&place.root()));
    tick(&place);
    fs::remove_file(place.at("f5000")).unwrap();
    place.write("f77", "another");
    let then = place.scan();
    assert_eq!((then.counts.files, then.root.totals.files), (1, 9_999));
    assert_eq!(place.things(), truth(&place.root()));
}

#[test]
fn a_tree_two_hundred_deep_is_captured_also_past_the_longest_path() {
    let mut place = TestWorkspace::new();
    let name = "a-name-of-thirty-characters-or";
    let mut at = File::open(place.root()).unwrap().into();
    for _ in 0..200 {
        rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755)).unwrap();
        at = rustix::fs::openat(&at, name, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&at, "deep", flags, Mode::from_raw_mode(0o644)).unwrap();
    rustix::io::write(&file, b"at the bottom").unwrap();
    let things = place.things();
    let path = format!("{}deep", format!("{name}/").repeat(200));
    let Some(Thing::File { bytes, .. }) = things.get(path.as_bytes()) else {
        panic!("the file is not there")
    };
    assert_eq!(bytes, b"at the bottom");
    assert_eq!(things.len(), 202);
}

#[test]
fn files_of_every_length_are_whole() {
    let mut place = TestWorkspace::new();
    let edge = 2 * 1024 * 1024;
    for len in [0, 1, edge - 1, edge, edge + 1, 3 * edge + 7] {
        place.write(&format!("f{len}"), vec![len as u8; len]);
    }
    assert_eq!(place.things(), truth(&place.root()));
}
