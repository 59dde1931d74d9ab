//! Entries that cannot or must not be captured are listed with a reason, everything else
//! is captured, and a workspace that changes during the scan never leads it elsewhere.

#![expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{CWD, FileType, Mode};

use super::super::entry::{FileKind, SkippedReason};
use super::super::tree::Snapshot;
use super::super::walk::MAX_DEPTH;
use super::testing::{TestWorkspace, Thing, truth};
use super::{Hook, NAMED, ScanStep, SnapshotLimits};
use crate::error::ErrorKind;

fn hook(place: &mut TestWorkspace, act: impl Fn(ScanStep, &str) + Send + Sync + 'static) {
    let act = move |step, path: &[u8]| act(step, &String::from_utf8_lossy(path));
    place.options.hook = Some(Hook(Arc::new(act)));
}

/// Runs `act` once, when a step is reached.
fn once(
    place: &mut TestWorkspace,
    at: (ScanStep, &'static str),
    act: impl Fn() + Send + Sync + 'static,
) {
    let done = AtomicUsize::new(0);
    hook(place, move |step, path| {
        if (step, path) == at && done.fetch_add(1, Ordering::SeqCst) == 0 {
            act();
        }
    });
}

#[test]
fn pipes_sockets_and_devices_are_noted_and_never_opened() {
    let mut place = TestWorkspace::new();
    place.write("file", "x");
    rustix::fs::mknodat(
        CWD,
        place.at("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(place.at("socket")).unwrap();
    let things = place.things();
    assert_eq!(things, truth(&place.root()));
    assert_eq!(
        things[&b"pipe"[..]],
        Thing::Skipped(SkippedReason::Special, FileKind::Fifo)
    );
    assert_eq!(
        things[&b"socket"[..]],
        Thing::Skipped(SkippedReason::Special, FileKind::Socket)
    );
    assert_eq!(place.scan().root.totals.skipped, 2);
}

/// F18.
#[test]
fn a_file_over_the_cap_is_skipped_until_the_cap_is_raised() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.options.cap = 100;
    place.write("d/small", vec![1; 100]);
    place.write("d/large", vec![1; 101]);
    assert_eq!(place.names(Some(SkippedReason::TooLarge)), ["d/large"]);
    let scanned = place.scan();
    assert_eq!(scanned.skipped.len(), 1);
    assert_eq!(scanned.skipped[0].0, PathBuf::from("d/large"));
    assert_eq!(
        (scanned.skipped[0].1.size, scanned.skipped[0].1.kind),
        (101, FileKind::File)
    );
    place.options.cap = 101;
    assert_eq!(place.names(None), ["d/large", "d/small"]);
}

#[test]
fn the_store_is_never_captured() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.write("deep/store/secret", "x");
    place.write("file", "x");
    place.options.store = place.at("deep/store");
    assert_eq!(place.names(Some(SkippedReason::Store)), ["deep/store"]);
    assert_eq!(place.names(None), ["file"]);
    // Nor with a cache from when the store was elsewhere.
    place.options.store = place.dir.path().join("store");
    assert_eq!(place.names(None), ["deep/store/secret", "file"]);
    place.options.store = place.at("deep/store");
    assert_eq!(place.names(None), ["file"]);
}

#[test]
fn staged_files_of_a_restore_are_ignored() {
    let mut place = TestWorkspace::new();
    place.write(".backtrail-staging-1", "x");
    place.write("d/.backtrail-staging-2/file", "x");
    place.write("d/file", "x");
    assert_eq!(place.names(None), ["d/file"]);
    assert_eq!(place.scan().root.totals.skipped, 0);
}

/// F28: an unreadable directory is named, and everything else is captured.
#[test]
fn a_directory_without_permission_is_skipped_and_named() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.write("closed/file", "x");
    place.write("open/file", "x");
    place.write("open/closed-file", "x");
    fs::set_permissions(place.at("closed"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(place.at("open/closed-file"), Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(place.at("closed")).is_ok() {
        eprintln!("SKIPPED: needs a user other than root; root can read every file");
        return;
    }
    let names = ["closed", "open/closed-file"];
    assert_eq!(place.names(Some(SkippedReason::Unreadable)), names);
    assert_eq!(place.names(None), ["open/file"]);
    // Readable again, they are captured although nothing else changed.
    fs::set_permissions(place.at("closed"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(place.at("open/closed-file"), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(place.things(), truth(&place.root()));
}

/// F28: unreadable files do not count as deleted.
#[test]
fn a_directory_closed_before_its_files_are_read_leaves_them_out() {
    let mut place = TestWorkspace::new();
    place.options.threads = 1;
    place.write("a", "x");
    place.write("closed/b", "x");
    let closed = place.at("closed");
    let at = closed.clone();
    once(&mut place, (ScanStep::ReadFile, "a"), move || {
        fs::set_permissions(&at, Permissions::from_mode(0o000)).unwrap();
    });
    let scanned = place.scan();
    let may_read_all = fs::read_dir(&closed).is_ok();
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    if may_read_all {
        eprintln!("SKIPPED: needs a user other than root; root can read every file");
        return;
    }
    let found = place.of(&scanned).get(&b"closed/b"[..]).cloned();
    let unreadable = Thing::Skipped(SkippedReason::Unreadable, FileKind::File);
    assert_eq!(found, Some(unreadable));
    place.options.hook = None;
    assert_eq!(place.things(), truth(&place.root()));
}

#[test]
fn a_workspace_that_is_gone_is_an_error() {
    let place = TestWorkspace::new();
    fs::remove_dir(place.root()).unwrap();
    assert_eq!(place.try_scan().unwrap_err().kind(), ErrorKind::NotFound);
    fs::write(place.root(), "a file").unwrap();
    place.try_scan().unwrap_err();
}

#[test]
fn a_workspace_swapped_for_a_link_is_not_followed() {
    let place = TestWorkspace::new();
    let elsewhere = place.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("private"), "x").unwrap();
    fs::rename(place.root(), place.dir.path().join("moved")).unwrap();
    symlink("elsewhere", place.root()).unwrap();
    let error = place.try_scan().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let said = error.to_string();
    assert!(said.contains("is now a link"), "{said}");
}

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    for known in [false, true] {
        let mut place = TestWorkspace::new();
        place.later_millis = 3_600_000;
        place.write("d/e/file", "mine");
        let outside = place.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "not mine").unwrap();
        if known {
            place.scan();
        }
        let (at, moved) = (place.at("d/e"), place.dir.path().join("moved"));
        once(&mut place, (ScanStep::OpenDir, "d/e"), move || {
            fs::rename(&at, &moved).unwrap();
            symlink(&outside, &at).unwrap();
        });
        let scanned = place.scan();
        let target = place
            .dir
            .path()
            .join("outside")
            .into_os_string()
            .into_encoded_bytes();
        assert_eq!(place.of(&scanned)[&b"d/e"[..]], Thing::Link(target));
        assert_eq!(place.of(&scanned).len(), 3);
        place.options.hook = None;
        assert_eq!(place.things(), truth(&place.root()));
    }
}

#[test]
fn a_directory_above_swapped_for_a_link_leads_nowhere() {
    let mut place = TestWorkspace::new();
    place.write("d/e/file", "mine");
    let outside = place.dir.path().join("outside");
    fs::create_dir_all(outside.join("e")).unwrap();
    fs::write(outside.join("e/secret"), "not mine").unwrap();
    let (at, moved) = (place.at("d"), place.dir.path().join("moved"));
    once(&mut place, (ScanStep::OpenDir, "d/e"), move || {
        fs::rename(&at, &moved).unwrap();
        symlink(&outside, &at).unwrap();
    });
    let scanned = place.scan();
    assert!(!place.of(&scanned).contains_key(&b"d/e/secret"[..]));
    place.options.hook = None;
    assert_eq!(place.things(), truth(&place.root()));
}

#[test]
fn a_directory_that_became_a_file_is_captured_as_one() {
    let mut place = TestWorkspace::new();
    place.write("d/e/file", "x");
    let at = place.at("d/e");
    once(&mut place, (ScanStep::OpenDir, "d/e"), move || {
        fs::remove_dir_all(&at).unwrap();
        fs::write(&at, "a file now").unwrap();
    });
    let scanned = place.scan();
    assert_eq!(place.of(&scanned), truth(&place.root()));
    place.options.hook = None;
    assert_eq!(place.things(), truth(&place.root()));
}

#[test]
fn a_directory_that_vanished_is_absent() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.write("d/e/file", "x");
    place.scan();
    let at = place.at("d/e");
    once(&mut place, (ScanStep::OpenDir, "d/e"), move || {
        fs::remove_dir_all(&at).unwrap()
    });
    let scanned = place.scan();
    assert_eq!(place.of(&scanned), truth(&place.root()));
    place.options.hook = None;
    assert_eq!(place.things(), truth(&place.root()));
}

#[test]
fn a_file_changed_while_it_is_read_is_read_again() {
    for len in [10, 5 << 20] {
        let mut place = TestWorkspace::new();
        place.write("f", vec![1; len]);
        let at = place.at("f");
        once(&mut place, (ScanStep::ReadFile, "f"), move || {
            fs::write(&at, "changed").unwrap()
        });
        let scanned = place.scan();
        assert_eq!(place.of(&scanned), truth(&place.root()));
    }
}

#[test]
fn a_file_that_never_holds_still_is_unstable() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.write("f", "0");
    place.write("g", "still");
    let (at, count) = (place.at("f"), AtomicUsize::new(0));
    hook(&mut place, move |step, path| {
        if step == ScanStep::ReadFile && path == "f" {
            // The same length and a different time.
            let seconds = count.fetch_add(1, Ordering::SeqCst) as u64;
            fs::write(&at, seconds.to_string()).unwrap();
            let file = fs::File::options().write(true).open(&at).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            file.set_modified(time).unwrap();
        }
    });
    let scanned = place.scan();
    let things = place.of(&scanned);
    assert_eq!(
        things[&b"f"[..]],
        Thing::Skipped(SkippedReason::Unstable, FileKind::File)
    );
    assert!(matches!(things[&b"g"[..]], Thing::File { .. }));
    assert_eq!(scanned.skipped[0].0, PathBuf::from("f"));
    // The next scan tries again, although nothing changed since.
    place.options.hook = None;
    assert_eq!(place.things(), truth(&place.root()));
}

#[test]
fn a_file_deleted_or_replaced_before_it_is_read_is_what_it_is_now() {
    for becomes in ["gone", "link", "dir", "longer"] {
        let mut place = TestWorkspace::new();
        // Two files, so that the second changes while the first is read.
        place.options.threads = 1;
        place.write("a", "x");
        place.write("b", "y");
        let at = place.at("b");
        once(&mut place, (ScanStep::ReadFile, "a"), move || {
            fs::remove_file(&at).unwrap();
            match becomes {
                "link" => symlink("a", &at).unwrap(),
                "dir" => fs::create_dir(&at).unwrap(),
                "longer" => fs::write(&at, "much longer").unwrap(),
                _ => {}
            }
        });
        let scanned = place.scan();
        let found = place.of(&scanned).get(&b"b"[..]).cloned();
        match becomes {
            "dir" => assert_eq!(
                found,
                Some(Thing::Skipped(SkippedReason::Unstable, FileKind::Dir))
            ),
            _ => assert_eq!(place.of(&scanned), truth(&place.root()), "{becomes}"),
        }
        place.options.hook = None;
        assert_eq!(place.things(), truth(&place.root()), "{becomes}");
    }
}

#[test]
fn too_much_stops_before_anything_is_read() {
    let mut place = TestWorkspace::new();
    for n in 0..20 {
        place.write(&format!("web/node_modules/p{n}/f"), vec![0; 1000]);
    }
    place.write("data/x/y/blob", vec![0; 5000]);
    place.write("src/main", vec![0; 10]);
    place.write("odd [name]*/f", vec![0; 300]);
    let read = Arc::new(Mutex::new(HashSet::new()));
    let noted = read.clone();
    hook(&mut place, move |step, path| {
        if step == ScanStep::ReadFile {
            noted.lock().unwrap().insert(path.to_owned());
        }
    });
    let limits = SnapshotLimits {
        bytes: 10_000,
        ..SnapshotLimits::default()
    };
    place.options.limits = Some(SnapshotLimits { free: 0, ..limits });
    let error = place.try_scan().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooMuch);
    let too_much = error.too_much().unwrap();
    assert_eq!((too_much.files, too_much.bytes), (23, 25_310));
    let named: Vec<_> = too_much
        .largest
        .iter()
        .map(|dir| dir.path.to_str().unwrap())
        .collect();
    assert_eq!(named, ["web/node_modules", "data/x/y", "odd [name]*"]);
    assert_eq!(too_much.largest[0].bytes, 20_000);
    let lines: Vec<_> = too_much
        .largest
        .iter()
        .filter_map(|dir| dir.ignore_line())
        .collect();
    assert_eq!(
        lines[..3],
        ["/web/node_modules/", "/data/x/y/", r"/odd \[name\]\*/"]
    );
    assert!(error.to_string().contains("/web/node_modules/"), "{error}");
    assert!(read.lock().unwrap().is_empty());
    // The suggested lines solve the problem.
    place.write(".backtrailignore", lines.join("\n"));
    place.options.limits = Some(SnapshotLimits {
        bytes: 10_000,
        files: 1000,
        free: 0,
    });
    assert_eq!(place.names(None), [".backtrailignore", "src/main"]);
}

#[test]
fn no_directory_is_blamed_that_holds_little() {
    let mut place = TestWorkspace::new();
    place.write("blob", vec![0; 1000]);
    place.write("proj/f", "x");
    place.options.limits = Some(SnapshotLimits {
        bytes: 100,
        files: 100,
        free: 0,
    });
    let error = place.try_scan().unwrap_err();
    assert!(error.too_much().unwrap().largest.is_empty());
    let said = error.to_string();
    assert!(
        said.contains("most of it is in the directory itself"),
        "{said}"
    );
    assert!(
        !said.contains("proj") && !said.contains("for example"),
        "{said}"
    );
}

#[test]
fn too_many_files_and_too_little_space_stop_as_well() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.write("a", "x");
    place.write("b", "x");
    place.options.limits = Some(SnapshotLimits {
        bytes: 10,
        files: 1,
        free: 0,
    });
    assert_eq!(place.try_scan().unwrap_err().kind(), ErrorKind::TooMuch);
    place.options.limits = Some(SnapshotLimits {
        bytes: 10,
        files: 2,
        free: u64::MAX,
    });
    let error = place.try_scan().unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("2 bytes in 2 files, with too little free space"),
        "{said}"
    );
    assert!(!said.contains(".backtrailignore"), "{said}");
    place.options.limits = Some(SnapshotLimits {
        bytes: 2,
        files: 2,
        free: 0,
    });
    place.scan();
    // Files that are already stored do not count.
    place.options.limits = Some(SnapshotLimits {
        bytes: 0,
        files: 0,
        free: 0,
    });
    place.scan();
}

#[test]
fn the_first_few_skipped_entries_are_listed_in_order() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.options.cap = 1;
    for n in 0..30 {
        place.write(&format!("d{}/f{n:02}", n % 3), "too large");
    }
    place.write("d1/e/f", "too large");
    for _ in 0..2 {
        let scanned = place.scan();
        assert_eq!(scanned.root.totals.skipped, 31);
        let told: Vec<_> = scanned
            .skipped
            .iter()
            .take(NAMED)
            .map(|(path, _)| path.clone())
            .collect();
        let expected: Vec<_> = (0..10)
            .map(|n| PathBuf::from(format!("d0/f{:02}", n * 3)))
            .collect();
        assert_eq!(told, expected);
    }
}

#[test]
fn ignored_entries_are_listed_after_more_important_ones() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.options.cap = 16;
    place.write(".gitignore", "node_modules/\n");
    for n in 0..30 {
        place.write(&format!("a/p{n:02}/node_modules/f"), "x");
    }
    place.write("z/large", "more than ten bytes");
    let mode = Mode::from_raw_mode(0o600);
    let fifo = place.at("z/a-pipe");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
    for _ in 0..2 {
        let told: Vec<_> = place.scan().skipped;
        let told: Vec<_> = told
            .iter()
            .map(|(path, _)| path.to_str().unwrap())
            .collect();
        assert_eq!(told.len(), 32);
        assert_eq!(told[..3], ["z/large", "z/a-pipe", "a/p00/node_modules"]);
    }
}

/// Everything captured can be read again, however deep it is.
#[test]
fn directories_deeper_than_a_snapshot_is_read_are_skipped() {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o755);
    let none = Mode::empty();
    let mut at = rustix::fs::open(place.root(), flags, none).unwrap();
    for _ in 0..MAX_DEPTH + 3 {
        rustix::fs::mkdirat(&at, "d", mode).unwrap();
        at = rustix::fs::openat(&at, "d", flags, none).unwrap();
    }
    place.write("file", "x");
    for _ in 0..2 {
        let scanned = place.scan();
        assert_eq!(scanned.root.totals.skipped, 1);
        let (path, told) = &scanned.skipped[0];
        assert_eq!(told.reason, SkippedReason::TooDeep);
        assert_eq!(path.components().count(), MAX_DEPTH);
        let snapshot = Snapshot::stored(&place.objects, scanned.id).unwrap();
        let read: Vec<_> = snapshot.entries().collect::<Result<_, _>>().unwrap();
        assert_eq!(read.len(), MAX_DEPTH);
        let skipped: Vec<_> = snapshot.skipped().collect::<Result<_, _>>().unwrap();
        assert_eq!(skipped.len(), 1);
        snapshot.diff(&snapshot).unwrap();
    }
}

/// F28: an error that passes is no reason to skip anything; one that lasts is.
#[test]
fn a_directory_or_file_that_fails_once_is_read_again() {
    use rustix::io::Errno;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Faults, ScanStep};

    let steps = [
        (ScanStep::OpenDir, "d", FileKind::Dir),
        (ScanStep::ListDir, "d", FileKind::Dir),
        (ScanStep::ReadFile, "d/file", FileKind::File),
    ];
    for (at, path, kind) in steps {
        for error in [Errno::INTR, Errno::IO] {
            for times in [1, 2, usize::MAX] {
                let mut place = TestWorkspace::new();
                place.write("d/file", "content");
                let left = AtomicUsize::new(times);
                let fail = move |step, name: &[u8]| {
                    let is_it = step == at && name == path.as_bytes();
                    let more = |left: usize| left.checked_sub(1);
                    let fails = is_it
                        && left
                            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
                            .is_ok();
                    if fails { Err(error) } else { Ok(()) }
                };
                place.options.faults = Some(Faults(Arc::new(fail)));
                let scanned = place.scan();
                let found = place.of(&scanned).remove(path.as_bytes());
                let is_skipped = found == Some(Thing::Skipped(SkippedReason::Unreadable, kind));
                assert_eq!(is_skipped, times > 2, "{at:?} {error:?} {times}: {found:?}");
                assert!(found.is_some());
            }
        }
    }
}
