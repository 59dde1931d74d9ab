//! What is not protected is said: what a turn or run destroyed of it is named, undo names it
//! again, and the user can ask to include it (F32).

use std::fs;
use std::path::{Path, PathBuf};

use backtrail::snapshot::{FileKind, SkippedReason};
use backtrail::workspace::Lost;
use backtrail::{Checkpoint, CheckpointOptions, ErrorKind, Point, Rewind, StoreOptions};

use super::kit::{Lab, begin, done, end, is_tree, run, run_end, run_start, turn};

const CAP: u64 = 2 << 20;

/// A workspace with ignored directories and files over the cap.
fn lab() -> Lab {
    let lab = Lab::with(super::kit::options(1).snapshot_cap(CAP).include_cap(CAP));
    lab.write(".gitignore", "data/\ncache/\nlarge.db\n");
    lab.write("src/main", "fn main\n");
    lab.write("data/a/one", vec![b'1'; 1000]);
    lab.write("data/two", vec![b'2'; 500]);
    lab.write("cache/built", "built");
    lab.write("large.db", vec![b'd'; 1_100_000]);
    lab.write("film", vec![b'f'; CAP as usize + 1]);
    lab.keep();
    lab
}

/// What a run was said to have destroyed, in words.
fn lost(end: &Checkpoint) -> Vec<String> {
    let words = |lost: &Lost| {
        let of = |amount: &Option<backtrail::snapshot::Amount>| {
            amount.map_or("none".to_owned(), |it| it.bytes.to_string())
        };
        format!(
            "{} {} -> {}",
            lost.path.display(),
            of(&lost.before),
            of(&lost.after)
        )
    };
    let all: Vec<String> = end.unprotected().lost.iter().map(words).collect();
    assert_eq!(all.len() as u64, end.unprotected().count);
    all
}

fn changed(end: &Checkpoint) -> Vec<PathBuf> {
    let changed = end.unprotected().changed.iter();
    changed.map(|it| it.path.clone()).collect()
}

/// F32: whatever way something unprotected goes, it is named, with what it was.
#[test]
fn f32_a_run_that_destroys_something_unprotected_is_reported_by_name() {
    type Work = fn(&Lab);
    let film = CAP + 1;
    let cases: [(Work, String); 8] = [
        (
            |lab| fs::remove_dir_all(lab.path("data")).unwrap(),
            "data 1500 -> none".to_owned(),
        ),
        (
            |lab| fs::remove_file(lab.path("data/a/one")).unwrap(),
            "data 1500 -> 500".to_owned(),
        ),
        (
            |lab| lab.write("data/two", "2"),
            "data 1500 -> 1001".to_owned(),
        ),
        (
            |lab| {
                fs::remove_dir_all(lab.path("data")).unwrap();
                lab.write("data", "a file");
            },
            "data 1500 -> none".to_owned(),
        ),
        (|lab| lab.write("film", "cut"), format!("film {film} -> 3")),
        (
            |lab| fs::remove_file(lab.path("film")).unwrap(),
            format!("film {film} -> none"),
        ),
        (
            |lab| lab.write("large.db", "reset"),
            "large.db 1100000 -> 5".to_owned(),
        ),
        (
            // Out of the workspace is gone as well.
            |lab| fs::rename(lab.path("data"), lab.root().with_extension("x")).unwrap(),
            "data 1500 -> none".to_owned(),
        ),
    ];
    for (n, (work, expected)) in cases.into_iter().enumerate() {
        let lab = lab();
        let ended = run(&lab, None, || work(&lab));
        assert_eq!(lost(&ended), [expected.as_str()], "case {n}");
        // The same from the trail, where a later process reads it.
        let again = lab.workspace.last_checkpoint().unwrap().unwrap();
        assert_eq!(lost(&again), [expected.as_str()], "case {n}");

        let outcome = done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
        let path = PathBuf::from(expected.split(' ').next().unwrap());
        let named: Vec<&PathBuf> = outcome.not_restored.iter().map(|it| &it.path).collect();
        assert_eq!(named, [&path], "case {n}: {:?}", outcome.not_restored);
        assert!(outcome.not_restored[0].reason.contains("not protected"));
        assert!(outcome.is_partial(), "case {n}");
        lab.verify();
    }
}

/// F32 for turns of an agent.
#[test]
fn f32_a_turn_that_destroys_something_unprotected_says_so() {
    let lab = lab();
    let session = lab.session();
    let ended = turn(&session, "clean up", || {
        fs::remove_dir_all(lab.path("data")).unwrap();
        lab.write("src/main", "edited\n");
    });
    assert_eq!(lost(&ended), ["data 1500 -> none"]);
    let outcome = done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert_eq!(outcome.restored(), [Path::new("src/main")]);
    assert_eq!(outcome.not_restored[0].path, Path::new("data"));
}

/// F32: a repository's own data is not protected either.
#[test]
fn f32_a_deleted_git_directory_is_reported() {
    let lab = lab();
    lab.write(".git/HEAD", "ref: refs/heads/main\n");
    let ended = run(&lab, None, || {
        fs::remove_dir_all(lab.path(".git")).unwrap();
    });
    assert_eq!(lost(&ended), [".git none -> none"]);
    assert_eq!(ended.unprotected().lost[0].reason, SkippedReason::Git);
}

/// A build that only grows or rewrites is a change, and nothing is lost.
#[test]
fn what_grows_or_is_rewritten_or_moved_is_not_lost() {
    type Work = fn(&Lab);
    let cases: [(Work, &[&str]); 5] = [
        (|_| (), &[]),
        (|lab| lab.write("cache/more", "more"), &["cache"]),
        (|lab| lab.write("cache/built", "BUILT again"), &["cache"]),
        (
            |lab| lab.write("film", vec![b'g'; CAP as usize + 9]),
            &["film"],
        ),
        (
            |lab| {
                fs::create_dir(lab.path("deep")).unwrap();
                fs::rename(lab.path("data"), lab.path("deep/data")).unwrap();
            },
            &["data"],
        ),
    ];
    for (n, (work, expected)) in cases.into_iter().enumerate() {
        let lab = lab();
        let ended = run(&lab, None, || work(&lab));
        assert_eq!(lost(&ended), [""; 0], "case {n}");
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(changed(&ended), expected, "case {n}");
    }
}

/// A snapshot depends on what is skipped only by name: a build changes no snapshot.
#[test]
fn how_much_is_in_an_ignored_directory_changes_no_snapshot() {
    let lab = lab();
    let before = lab.keep();
    lab.write("cache/more", vec![b'm'; 5000]);
    fs::remove_dir_all(lab.path("data/a")).unwrap();
    assert_eq!(lab.keep().snapshot_id(), before.snapshot_id());
}

/// A run that only destroyed something unprotected is a step: undo names it, and the next
/// undo goes on to the step before.
#[test]
fn a_run_that_only_destroyed_something_unprotected_is_a_step() {
    let lab = lab();
    run(&lab, None, || lab.write("src/main", "edited\n"));
    let start = run_start(&lab, None);
    fs::remove_file(lab.path("data/two")).unwrap();
    let ended = run_end(&lab, None, &start);
    assert_eq!(start.snapshot_id(), ended.snapshot_id());
    assert_eq!(lab.workspace.steps().unwrap().to_undo.len(), 2);

    let first = done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert!(first.is_partial() && !first.moves_files());
    assert_eq!(first.not_restored[0].path, Path::new("data"));
    let second = done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert!(!second.is_partial());
    assert_eq!(lab.read("src/main"), "fn main\n");
}

/// A rewind over several runs names what each of them destroyed, unless it is back.
#[test]
fn a_rewind_names_what_all_the_undone_runs_destroyed() {
    let lab = lab();
    let point = Point::checkpoint(lab.keep().id());
    run(&lab, None, || fs::remove_dir_all(lab.path("data")).unwrap());
    run(&lab, None, || {
        fs::remove_dir_all(lab.path("cache")).unwrap();
        fs::remove_file(lab.path("film")).unwrap();
    });
    lab.write("cache/built", "built again");
    let outcome = done(lab.workspace.rewind(&point, Rewind::files()).unwrap());
    let named: Vec<&Path> = outcome.not_restored.iter().map(|it| &*it.path).collect();
    assert_eq!(named, [Path::new("data"), Path::new("film")]);
}

/// The handle that makes a checkpoint knows how much is not protected, and a first one which
/// ignored files it holds all the same.
#[test]
fn a_first_checkpoint_says_what_is_not_protected_and_which_small_ignored_files_are_kept() {
    let lab = Lab::with(super::kit::options(1).snapshot_cap(CAP));
    lab.write(".gitignore", "data/\n*.env\n");
    lab.write("a.env", "KEY=1");
    lab.write("sub/b.env", "KEY=2");
    lab.write("data/a/one", vec![b'1'; 1000]);
    let first = lab.keep();
    let protection = first.protection().unwrap();
    assert!(protection.first);
    let [data] = &protection.unprotected[..] else {
        panic!("{protection:?}")
    };
    let amount = data.amount.unwrap();
    assert_eq!(
        (data.path.as_path(), data.kind),
        (Path::new("data"), FileKind::Dir)
    );
    assert_eq!(
        (amount.files, amount.bytes, amount.at_least),
        (1, 1000, false)
    );
    assert_eq!(protection.ignored_files, 2);
    assert_eq!(
        protection.ignored_first,
        [Path::new("a.env"), Path::new("sub/b.env")]
    );
    assert!(!lab.keep().protection().unwrap().first);
}

/// A directory with more names than a survey looks at: what it says is a lower bound, and
/// what is gone from it is noticed all the same.
#[test]
fn a_huge_ignored_directory_is_looked_at_in_part() {
    let lab = lab();
    for n in 0..10_500 {
        lab.write(&format!("cache/{:02}/{n}", n % 30), "x");
    }
    let start = run_start(&lab, None);
    let entries = &start.protection().unwrap().unprotected;
    let cache = entries.iter().find(|it| it.path == Path::new("cache"));
    let amount = cache.unwrap().amount.unwrap();
    assert!(amount.at_least && amount.files < 10_500, "{amount:?}");
    let data = entries.iter().find(|it| it.path == Path::new("data"));
    assert_eq!(
        data.unwrap().amount.unwrap().bytes,
        1500,
        "small ones are whole"
    );
    assert!(changed(&run_end(&lab, None, &start)).is_empty());

    for gone in ["cache/00", "cache/29"] {
        let ended = run(&lab, None, || {
            fs::remove_dir_all(lab.path(gone)).unwrap();
        });
        assert_eq!(ended.unprotected().count, 1, "{gone}");
        assert!(ended.unprotected().lost[0].before.unwrap().at_least);
    }
}

fn include(path: &str) -> CheckpointOptions {
    CheckpointOptions::new().include_ignored(path)
}

/// An ignored directory that is included is protected like any other, also by later
/// processes, until that is taken back.
#[test]
fn an_included_directory_is_captured_and_restored_until_it_is_excluded() {
    let lab = lab();
    lab.workspace.checkpoint(include("data")).unwrap();
    let before = lab.tree();
    // A later process knows only the store.
    let workspace = lab.store.workspace(lab.root()).unwrap();
    let lab = Lab { workspace, ..lab };
    let listed = lab.workspace.included().unwrap();
    assert_eq!(listed[0].path, Path::new("data"));

    let ended = run(&lab, None, || {
        fs::remove_dir_all(lab.path("data/a")).unwrap();
        lab.write("data/new", "made by the run");
        lab.write("data/two", "cut");
    });
    assert_eq!(lost(&ended), [""; 0]);
    let outcome = done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert!(!outcome.is_partial(), "{:?}", outcome.not_restored);
    is_tree(lab.root(), &before, "after the undo");
    // The undo's own checkpoint remembers it as well.
    assert_eq!(lab.workspace.included().unwrap(), listed);

    let options = CheckpointOptions::new().exclude_ignored("data");
    let after = lab.workspace.checkpoint(options).unwrap();
    assert_eq!(lab.workspace.included().unwrap(), []);
    let reason = after.snapshot().unwrap().skipped_reason("data").unwrap();
    assert_eq!(reason, Some(SkippedReason::Ignored));
    let error = lab
        .workspace
        .checkpoint(CheckpointOptions::new().exclude_ignored("data"));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Below an ignored directory only what is included is captured; ignore files inside it do
/// not count, and `.backtrailignore` does.
#[test]
fn only_what_is_included_is_captured_and_all_of_it() {
    let lab = lab();
    lab.write("data/a/.gitignore", "*\n");
    lab.write("data/a/secret", "never");
    lab.write(".backtrailignore", "secret\n");
    let kept = lab.workspace.checkpoint(include("data/a")).unwrap();
    let kept = kept.snapshot().unwrap();
    assert!(kept.read("data/a/one").unwrap().is_some());
    assert!(kept.read("data/a/.gitignore").unwrap().is_some());
    assert_eq!(kept.entry("data/a/secret").unwrap(), None);
    assert_eq!(kept.entry("data/two").unwrap(), None);
    let reason = kept.skipped_reason("data/two").unwrap();
    assert_eq!(reason, Some(SkippedReason::Ignored));
    // A large ignored file can be included as well.
    let kept = lab.workspace.checkpoint(include("large.db")).unwrap();
    let kept = kept.snapshot().unwrap();
    assert!(kept.read("large.db").unwrap().is_some());
    assert!(kept.read("data/a/one").unwrap().is_some());
}

/// A path that cannot be included is refused with the reason, and nothing is recorded.
#[test]
fn what_cannot_be_included_is_refused_and_nothing_is_recorded() {
    let lab = lab();
    lab.write("huge/a", vec![b'h'; CAP as usize]);
    lab.write("huge/b", "more");
    lab.write(".gitignore", "data/\ncache/\nlarge.db\nhuge/\n");
    lab.write(".backtrailignore", "cache/\n");
    lab.write(".git/HEAD", "ref");
    std::os::unix::fs::symlink("data", lab.path("link")).unwrap();
    lab.keep();
    let before = lab.workspace.last_checkpoint().unwrap().unwrap().id();
    let cases = [
        ("nothing", ErrorKind::NotFound, "does not exist"),
        ("../outside", ErrorKind::Invalid, ""),
        ("/etc", ErrorKind::Invalid, ""),
        ("", ErrorKind::Invalid, "as a whole"),
        (".git", ErrorKind::Invalid, "git"),
        (".git/HEAD", ErrorKind::Invalid, "git"),
        ("link", ErrorKind::Invalid, "is a link"),
        ("cache", ErrorKind::Invalid, ".backtrailignore"),
        ("huge", ErrorKind::Invalid, "more than include_cap"),
    ];
    for (path, kind, words) in cases {
        let error = lab.workspace.checkpoint(include(path)).unwrap_err();
        assert_eq!(error.kind(), kind, "{path}: {error}");
        assert!(error.to_string().contains(words), "{path}: {error}");
        let last = lab.workspace.last_checkpoint().unwrap().unwrap().id();
        assert_eq!(last, before, "{path}");
    }
}

/// A directory that grows over the cap is no longer captured, which is said; what a run found
/// captured stays so until it ends.
#[test]
fn an_included_directory_over_the_cap_is_reported_and_not_captured() {
    let lab = lab();
    lab.workspace.checkpoint(include("data")).unwrap();
    let start = run_start(&lab, None);
    lab.write("data/grown", vec![b'g'; CAP as usize]);
    let ended = run_end(&lab, None, &start);
    let over = &ended.protection().unwrap().over_cap;
    assert_eq!(over[0].path, Path::new("data"));
    let kept = ended.snapshot().unwrap();
    assert!(kept.read("data/two").unwrap().is_some());
    assert_eq!(kept.entry("data/grown").unwrap(), None);
    let later = lab.keep();
    assert_eq!(later.protection().unwrap().over_cap.len(), 1);
    let reason = later.snapshot().unwrap().skipped_reason("data").unwrap();
    assert_eq!(reason, Some(SkippedReason::Ignored));
    // Once it is small enough it is protected again.
    fs::remove_file(lab.path("data/grown")).unwrap();
    let kept = lab.keep().snapshot().unwrap();
    assert!(kept.read("data/two").unwrap().is_some());
}

/// The same files give the same snapshot, whether a cache has known them as included or not.
#[test]
fn a_cache_from_before_an_inclusion_or_after_it_changes_nothing() {
    let lab = lab();
    let without = lab.keep().snapshot_id();
    let with = lab.workspace.checkpoint(include("data")).unwrap();
    assert_ne!(with.snapshot_id(), without);
    assert_eq!(lab.keep().snapshot_id(), with.snapshot_id());
    let options = CheckpointOptions::new().exclude_ignored("data");
    let after = lab.workspace.checkpoint(options).unwrap();
    assert_eq!(after.snapshot_id(), without);
}

/// A turn that is interrupted reports what it destroyed as well.
#[test]
fn an_interrupted_turn_says_what_it_destroyed() {
    let lab = lab();
    let session = lab.session();
    let open = begin(&session, "clean up");
    fs::remove_dir_all(lab.path("data")).unwrap();
    drop(open);
    let last = lab.workspace.last_checkpoint().unwrap().unwrap();
    assert_eq!(lost(&last), ["data 1500 -> none"]);
    let turn = begin(&session, "nothing");
    assert_eq!(lost(&end(turn)), [""; 0]);
}

#[test]
fn the_default_cap_of_an_included_directory_is_a_gibibyte() {
    assert_eq!(StoreOptions::DEFAULT_INCLUDE_CAP, 1 << 30);
}
