//! F21: a file that cannot be read stops the clean-up with an error that names it, before
//! anything is removed.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use backtrail::gc::GcOptions;
use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, ErrorKind, StoreOptions};
use backtrail_testkit::{ManualClock, SeededRandomness};

use super::kit::{Bench, DAY, START, noise, packs, read_whole};

/// Creates a store with something to remove.
fn bench() -> Bench {
    let mut bench = Bench::new();
    for n in 0..6 {
        bench.write(&format!("dir-{n}/file"), format!("{n}"));
        bench.state(n, CheckpointReason::Manual);
    }
    bench
}

fn trail(bench: &Bench) -> PathBuf {
    let dir = bench.store.root().join("workspaces");
    dir.join(bench.workspace.id().as_str()).join("0000.jsonl")
}

fn all() -> GcOptions {
    GcOptions::new().older_than(Duration::ZERO)
}

#[test]
fn f21_a_damaged_line_on_a_workspaces_trail_stops_it_by_name() {
    let bench = bench();
    let trail = trail(&bench);
    let whole = fs::read(&trail).unwrap();
    let before = packs(&bench.objects_dir());
    let mut stopped = 0;
    for byte in (0..whole.len() - 1).step_by(97) {
        let mut damaged = whole.clone();
        damaged[byte] ^= 0x10;
        fs::write(&trail, &damaged).unwrap();
        let error = bench.store.gc(&all()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{byte}: {error:?}");
        assert_eq!(error.path(), Some(trail.as_path()), "{byte}: {error:?}");
        assert_eq!(packs(&bench.objects_dir()), before, "{byte}");
        assert_eq!(fs::read(&trail).unwrap(), damaged, "nothing was dropped");
        stopped += 1;
    }
    assert!(stopped > 20);
    // A missing line stops it, too.
    let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    lines.remove(3);
    fs::write(&trail, lines.concat()).unwrap();
    bench.store.gc(&all()).unwrap_err();
    assert_eq!(packs(&bench.objects_dir()), before);
    fs::write(&trail, &whole).unwrap();
    assert!(bench.store.gc(&all()).unwrap().freed > 0);
}

#[test]
fn an_unfinished_last_line_was_never_acknowledged_and_stops_nothing() {
    let bench = bench();
    let trail = trail(&bench);
    let mut bytes = fs::read(&trail).unwrap();
    bytes.extend_from_slice(b"{\"type\":\"checkpoint\",\"seq\":99,\"at\":");
    fs::write(&trail, &bytes).unwrap();
    assert!(bench.store.gc(&all()).unwrap().freed > 0);
    bench.check();
}

#[test]
fn f21_a_directory_of_trails_with_another_name_stops_it() {
    let bench = bench();
    let before = packs(&bench.objects_dir());
    let dir = bench.store.root().join("workspaces");
    let odd = dir.join("not a workspace!");
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("note.txt"), "nothing of ours").unwrap();
    bench.gc();
    fs::copy(trail(&bench), odd.join("0000.jsonl")).unwrap();
    let error = bench.store.gc(&all()).unwrap_err();
    assert_eq!(error.path(), Some(odd.as_path()));
    assert_eq!(packs(&bench.objects_dir()), before);
}

#[test]
fn f21_a_workspace_that_cannot_be_listed_stops_it() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench();
    let before = packs(&bench.objects_dir());
    let dir = trail(&bench).parent().unwrap().to_owned();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&dir).is_ok() {
        eprintln!("SKIPPED: needs a user other than root; root can list every directory");
        return;
    }
    let error = bench.store.gc(&all()).unwrap_err();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(error.path(), Some(dir.as_path()));
    assert_eq!(packs(&bench.objects_dir()), before);
}

/// Creates a store with four states that go, and two that stay, in a short pack.
fn short() -> (Bench, PathBuf) {
    let mut bench = Bench::new();
    for n in 0..6 {
        bench.write(&format!("dir-{n}/file"), format!("{n}"));
        bench.write("file", noise(n, 200));
        let options = CheckpointOptions::new();
        bench.keep_with(match n {
            2 | 5 => options.label(format!("label {n}")),
            _ => options,
        });
    }
    let name = packs(&bench.objects_dir()).into_keys().next().unwrap();
    let path = bench.objects_dir().join(name);
    (bench, path)
}

/// Whichever byte of a pack is damaged: what could be read of kept states before can be
/// read afterwards, and a listing that cannot be read stops the clean-up.
#[test]
fn f21_damage_in_a_pack_never_makes_the_clean_up_lose_more() {
    let (mut stopped, mut left, mut done) = (0, 0, 0);
    let len = fs::read(short().1).unwrap().len();
    for byte in (20..len).step_by(len / 120) {
        let (bench, path) = short();
        let mut bytes = fs::read(&path).unwrap();
        bytes[byte] ^= 0x40;
        fs::write(&path, &bytes).unwrap();
        let open = || {
            let clock = ManualClock::new(START + DAY);
            let random = SeededRandomness::new(500);
            let options = StoreOptions::new().clock(clock).randomness(random);
            options.open(bench.store.root()).unwrap()
        };
        let readable = |n: usize| {
            let workspace = open().find_workspace(bench.workspace.root()).unwrap();
            let kept = workspace.unwrap().checkpoint_by_id(bench.kept[n].0.id());
            let kept = kept.unwrap().unwrap();
            let is_gone = kept.dropped().unwrap().is_some();
            is_gone
                || kept
                    .snapshot()
                    .and_then(|snapshot| read_whole(&snapshot))
                    .is_ok()
        };
        let before: Vec<bool> = (0..6).map(readable).collect();
        match open().gc(&all()) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{byte}: {error:?}");
                assert!(error.to_string().contains("checkpoint"), "{error}");
                assert_eq!(fs::read(&path).unwrap(), bytes, "{byte}");
                stopped += 1;
            }
            Ok(report) if !report.skipped_packs.is_empty() => left += 1,
            Ok(_) => done += 1,
        }
        for (n, was) in before.into_iter().enumerate() {
            assert!(!was || readable(n), "byte {byte}: state {n} was lost");
        }
    }
    assert!(
        stopped > 5 && left > 5 && done > 5,
        "{stopped} {left} {done}"
    );
}
