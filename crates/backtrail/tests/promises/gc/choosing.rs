//! Which states are dropped, in which order, and which never.

use std::time::Duration;

use backtrail::gc::GcOptions;
use backtrail::rewind::Stage;
use backtrail::workspace::{CheckpointReason, DropReason};
use backtrail::{CheckpointOptions, ErrorKind, Message, Point, Rewind, SessionOptions};

use super::kit::{Bench, DAY, START, noise, packs};

fn days(n: u64) -> Duration {
    Duration::from_secs(n * 86_400)
}

#[test]
fn the_store_shrinks_below_a_size_tool_calls_first_then_oldest_first() {
    let mut limit = None;
    let mut fewest_gone = usize::MAX;
    // The order in which they are dropped: tool calls, then the others.
    let order = [1, 2, 5, 6, 0, 3, 4, 7];
    loop {
        let mut bench = Bench::new();
        let reasons = [
            CheckpointReason::TurnStart,
            CheckpointReason::ToolEnd,
            CheckpointReason::ToolEnd,
            CheckpointReason::TurnEnd,
            CheckpointReason::Manual,
            CheckpointReason::ToolEnd,
            CheckpointReason::ToolEnd,
            CheckpointReason::RunEnd,
            CheckpointReason::TurnEnd,
        ];
        for (n, why) in (0..).zip(reasons) {
            bench.state(n, why);
            bench.clock.advance(DAY);
        }
        let all = bench.store.bytes();
        // The clean-up writes to its lock file.
        let bytes = limit.unwrap_or(all + 1000);
        let report = bench.store.gc(&GcOptions::new().max_size(bytes)).unwrap();
        let gone = bench.check();
        let count = gone.iter().filter(|gone| **gone).count();
        let expected: Vec<usize> = order[..count].to_vec();
        let told: Vec<usize> = order.into_iter().filter(|n| gone[*n]).collect();
        assert_eq!(told, expected, "{gone:?} at {bytes} of {all}");
        assert!(!gone[8], "the newest stays");
        let told: u64 = report.dropped.iter().map(|told| told.states).sum();
        assert_eq!(told, count as u64);
        assert!(
            report
                .dropped
                .iter()
                .all(|told| told.reason == DropReason::Size)
        );
        if count < order.len() {
            assert_eq!(report.over, 0, "{report:#?}");
            assert!(bench.store.bytes() <= bytes);
        }
        assert_eq!(limit.is_none(), count == 0, "what fits stays");
        fewest_gone = fewest_gone.min(count);
        if bytes < 1000 {
            assert_eq!(count, order.len());
            assert!(report.over > 0, "and it says that this is all");
            assert_eq!(report.store_bytes - bytes, report.over);
            break;
        }
        limit = Some(bytes.saturating_sub(3500).min(all - 100));
    }
    assert_eq!(fewest_gone, 0);
}

#[test]
fn labelled_newest_and_running_checkpoints_keep_their_files() {
    let mut bench = Bench::new();
    let sessions = [0, 1, 2].map(|_| {
        let options = SessionOptions::new().workspace(&bench.workspace);
        let session = bench.store.create_session(options).unwrap();
        session.append(Message::user_text("hello")).unwrap();
        let id = session.id().clone();
        session.close().unwrap();
        id
    });
    let of = |n: usize| {
        CheckpointOptions::new()
            .reason(CheckpointReason::TurnEnd)
            .session(&sessions[n])
    };
    let mut expected = Vec::new();
    let mut next = |bench: &mut Bench, options, goes| {
        bench.write("file", noise(expected.len() as u64, 2000));
        expected.push(goes);
        bench.keep_with(options)
    };
    next(&mut bench, CheckpointOptions::new(), true);
    next(&mut bench, CheckpointOptions::new().label("mine"), false);
    next(&mut bench, of(0), true);
    next(&mut bench, of(1), false);
    next(&mut bench, of(0), false);
    // The session of this one is gone for good.
    next(&mut bench, of(2), true);
    let begun = CheckpointOptions::new().reason(CheckpointReason::TurnStart);
    let begun = next(&mut bench, begun, false);
    next(&mut bench, CheckpointOptions::new(), true);
    // The same files as in a labelled one.
    bench.write("file", noise(1, 2000));
    expected.push(false);
    bench.keep(CheckpointReason::ToolEnd);
    bench.state(99, CheckpointReason::Manual);
    expected.push(true);
    bench.state(100, CheckpointReason::Manual);
    expected.push(false);
    std::fs::remove_dir_all(
        bench
            .store
            .root()
            .join("sessions")
            .join(sessions[2].as_str()),
    )
    .unwrap();
    let active = bench.workspace.activate(&begun).unwrap();
    bench.clock.advance(100 * DAY);
    let report = bench
        .store
        .gc(&GcOptions::new().older_than(days(30)))
        .unwrap();
    assert_eq!(bench.check(), expected, "{report:#?}");
    assert_eq!(report.kept.labelled, 1);
    assert_eq!(report.kept.newest, 3);
    assert_eq!(report.kept.in_use, 1);
    drop(active);
    bench
        .store
        .gc(&GcOptions::new().older_than(days(30)))
        .unwrap();
    expected[6] = true;
    assert_eq!(bench.check(), expected, "the turn is over");
}

#[test]
fn a_clock_that_jumps_lets_nothing_go_that_is_not_old() {
    let mut bench = Bench::new();
    bench.state(0, CheckpointReason::Manual);
    bench.clock.set(0);
    bench.state(1, CheckpointReason::Manual);
    bench.clock.set(START + DAY);
    bench.state(2, CheckpointReason::Manual);
    bench.clock.set(START + 10 * DAY);
    let options = GcOptions::new().older_than(days(30));
    assert!(
        bench.store.gc(&options).unwrap().is_empty(),
        "dated 1970, and not old"
    );
    assert_eq!(bench.check(), [false; 3]);
    // The clock was ahead, and is back: later checkpoints are not older.
    bench.clock.set(START + 70 * 365 * DAY);
    bench.state(3, CheckpointReason::Manual);
    bench.clock.set(START + 11 * DAY);
    bench.state(4, CheckpointReason::Manual);
    bench.state(5, CheckpointReason::Manual);
    bench.clock.set(START + 50 * DAY);
    bench.store.gc(&options).unwrap();
    assert_eq!(bench.check(), [true, true, true, false, false, false]);
}

#[test]
fn nothing_expires_unasked() {
    let mut bench = Bench::new();
    for n in 0..5 {
        bench.state(n, CheckpointReason::ToolEnd);
        bench.clock.advance(1000 * DAY);
    }
    let before = packs(&bench.objects_dir());
    assert!(bench.gc().is_empty());
    assert_eq!(packs(&bench.objects_dir()), before);
    assert_eq!(bench.check(), [false; 5]);
}

/// A session's point, then your work, then the session's; the states between are dropped.
#[test]
fn a_change_without_a_known_author_is_a_conflict_and_never_overwritten() {
    let mut bench = Bench::new();
    let options = SessionOptions::new().workspace(&bench.workspace);
    let session = bench.store.create_session(options).unwrap();
    let id = session.id().clone();
    session.close().unwrap();
    let of_session = || CheckpointOptions::new().session(&id);
    bench.write("agents", "before");
    bench.write("persons", "before");
    bench.keep_with(of_session().label("base"));
    bench.write("persons", "by hand");
    bench.keep(CheckpointReason::Manual);
    let start = bench.keep_with(of_session().reason(CheckpointReason::TurnStart));
    bench.write("agents", "after");
    bench.keep_with(
        of_session()
            .reason(CheckpointReason::TurnEnd)
            .begun_by(start.id()),
    );
    bench.clock.advance(100 * DAY);
    let report = bench
        .store
        .gc(&GcOptions::new().older_than(days(30)))
        .unwrap();
    assert_eq!(report.dropped[0].checkpoints, 2);
    assert_eq!(bench.check(), [false, true, true, false]);
    let attempt = bench
        .workspace
        .rewind(&Point::label("base"), Rewind::files())
        .unwrap();
    assert_eq!(attempt.stage, Stage::Stopped, "{attempt:#?}");
    let paths: Vec<String> = attempt
        .conflicts
        .iter()
        .map(|conflict| conflict.path.display().to_string())
        .collect();
    assert!(paths.contains(&"persons".to_owned()), "{paths:?}");
    let file = bench.workspace.root().join("persons");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "by hand");
    // Dropped files cannot be restored, and an undo that needs them says so.
    let gone = Point::checkpoint(start.id());
    for error in [
        bench
            .workspace
            .rewind(&gone, Rewind::files().overwrite())
            .unwrap_err(),
        bench
            .workspace
            .rewind_plan(&gone, Rewind::files())
            .unwrap_err(),
        bench.workspace.undo(Rewind::files()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Dropped, "{error:?}");
        assert!(error.points().contains(&"base".to_owned()), "{error:?}");
    }
}
