//! Unreferenced objects are removed, referenced ones stay, and a plan shows it before.

use std::time::Duration;

use backtrail::gc::GcOptions;
use backtrail::workspace::{CheckpointReason, DropReason};
use backtrail::{CheckpointOptions, ErrorKind, Point};

use super::kit::{Bench, DAY, noise, packs};

const OLD: Duration = Duration::from_secs(30 * 86_400);

/// Makes ten states, forty days before the last one, some with a large file of several
/// chunks.
fn ten_states() -> Bench {
    let mut bench = Bench::new();
    bench.write("same", noise(1, 5000));
    for n in 0..10 {
        if n % 3 == 0 {
            bench.write("large", noise(100 + n / 6, 3 << 20));
        }
        bench.write(&format!("dir-{n}/deep/file"), noise(200 + n, 700));
        bench.state(300 + n, CheckpointReason::Manual);
    }
    bench.clock.advance(40 * DAY);
    bench.state(400, CheckpointReason::Manual);
    bench
}

#[test]
fn nothing_is_touched_where_there_is_nothing_to_do() {
    let bench = ten_states();
    let before = packs(&bench.objects_dir());
    let report = bench.gc();
    assert!(report.is_empty(), "{report:#?}");
    assert_eq!(report.kept.states, 11);
    assert_eq!(packs(&bench.objects_dir()), before);
    assert!(!bench.check().contains(&true));
}

#[test]
fn dropped_files_are_gone_and_all_others_are_whole() {
    let bench = ten_states();
    let before: u64 = packs(&bench.objects_dir()).values().sum();
    let options = GcOptions::new().older_than(OLD);
    let plan = bench.store.gc_plan(&options).unwrap();
    let dry = plan.report().clone();
    assert!(dry.dry_run);
    assert_eq!(packs(&bench.objects_dir()).values().sum::<u64>(), before);
    assert!(!bench.check().contains(&true), "a plan changes nothing");

    let report = plan.apply().unwrap();
    let after: u64 = packs(&bench.objects_dir()).values().sum();
    assert_eq!(report.freed, before - after);
    assert_eq!(dry.freed, report.freed, "a plan is exact");
    assert_eq!(dry.objects, report.objects);
    assert_eq!(
        (dry.packs_removed, dry.packs_rewritten),
        (report.packs_removed, report.packs_rewritten)
    );
    assert!(report.freed > 3 << 20, "{report:#?}");
    let [told] = &report.dropped[..] else {
        panic!("{report:#?}")
    };
    assert_eq!((told.states, told.checkpoints), (10, 10));
    assert_eq!(told.reason, DropReason::Age);
    assert_eq!(told.oldest, bench.kept[0].0.at());
    let gone = bench.check();
    assert_eq!(gone, [vec![true; 10], vec![false]].concat());
    // Once more: there is nothing left.
    assert!(bench.store.gc(&options).unwrap().is_empty());
    assert!(bench.gc().is_empty());
}

#[test]
fn the_error_for_dropped_files_names_the_nearest_that_are_kept() {
    let mut bench = ten_states();
    bench.clock.advance(40 * DAY);
    bench.write("file", "labelled");
    bench.keep_with(CheckpointOptions::new().label("safe"));
    bench.store.gc(&GcOptions::new().older_than(OLD)).unwrap();
    let gone = &bench.kept[5].0;
    let error = gone.snapshot().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Dropped);
    assert!(
        error.points().contains(&"safe".to_owned()),
        "{:?}",
        error.points()
    );
    let error = bench
        .workspace
        .snapshot(&Point::checkpoint(gone.id()))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Dropped);
    // The checkpoints themselves are all there.
    assert_eq!(bench.workspace.checkpoints().unwrap().count(), 12);
}

#[test]
fn a_second_clean_up_fails_with_the_process_of_the_first() {
    use backtrail::{LocalStorage, Storage};
    let bench = ten_states();
    bench.gc();
    let lock = LocalStorage
        .open_append(&bench.objects_dir().join("gc.lock"))
        .unwrap();
    assert!(lock.try_lock().unwrap());
    let error = bench.store.gc(&GcOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(
        error
            .to_string()
            .contains("another gc is running in process"),
        "{error}"
    );
    // A plan needs no lock.
    bench.store.gc_plan(&GcOptions::new()).unwrap();
}
