use backtrail::rewind::{Merge, Stage, TargetPoint, Unmerged};
use backtrail::{Outcome, SessionId, Step, StepKind, Timestamp};
use serde_json::json;

use super::*;

/// A day that is written the same whenever and wherever the test runs.
fn then() -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000).unwrap()
}

fn session() -> SessionId {
    "77ab0000-0000-4000-8000-000000000000".parse().unwrap()
}

fn yours(path: &str) -> Conflict {
    Conflict::new(path, ChangedBy::Person, then())
}

fn theirs(path: &str) -> Conflict {
    Conflict::new(path, ChangedBy::Session(session()), then())
}

fn stopped(conflicts: Vec<Conflict>) -> Outcome {
    let id = "c81f0000-0000-4000-8000-000000000000".parse().unwrap();
    let mut outcome = Outcome::new(Verb::Rewind, Stage::Stopped);
    outcome.conflicts = conflicts;
    outcome.to = Some(TargetPoint::new(id, then(), "before a turn"));
    outcome
}

fn text(outcome: &Outcome) -> OutcomeText<'_> {
    OutcomeText {
        outcome,
        program: "backtrail",
        place: None,
        width: None,
    }
}

#[test]
fn one_conflict_is_shown_with_who_changed_it_and_the_options() {
    let mut one = yours("src/money.rs");
    one.also = Some("turn 7".to_owned());
    let mut outcome = stopped(vec![one]);
    outcome.can_merge = true;
    assert_eq!(
        text(&outcome).refusal(),
        "1 file has your changes since that point; nothing was touched"
    );
    assert_eq!(
        text(&outcome).conflicts(None),
        [
            "",
            "  src/money.rs  you, 2001-09-09  also changed by turn 7",
            "",
            "  --keep       leave src/money.rs as it is, rewind the rest",
            "  --merge      remove the agent's lines, keep yours",
            "  --overwrite  discard your version too (undo restores it)",
        ]
    );
}

/// Who changed it and when, whether it overlapped, and whether a merge can work: the
/// refusal says "you", and `--merge` is offered only where it can work.
#[test]
fn the_refusal_says_who_it_was_and_offers_a_merge_only_where_it_works() {
    let overlap = Overlap::new(3, "mine\n", "agent\n", "two\n");
    let clash = || {
        Some(Merge::Stopped(Unmerged::new(
            "you changed the same lines",
            vec![overlap.clone()],
        )))
    };
    let since = |one: &str| format!("{one}; nothing was touched");
    for (conflict, merge, overlapped, refusal, row) in [
        (
            yours("a"),
            None,
            false,
            since("1 file has your changes since this run"),
            "  a  you, 2001-09-09",
        ),
        (
            yours("a"),
            clash(),
            false,
            since("1 file has your changes since this run"),
            "  a  you, 2001-09-09",
        ),
        (
            theirs("a"),
            None,
            false,
            since("1 file has later changes that are not part of this run"),
            "  a  session pxrw, 2001-09-09",
        ),
        (
            theirs("a"),
            None,
            true,
            since("1 file changed while this run and others overlapped"),
            "  a  session pxrw, 2001-09-09  overlapped with the run `x`",
        ),
        (
            yours("a"),
            None,
            true,
            since("1 file changed after this run was cut off, by you or the run"),
            "  a  you or the run, 2001-09-09  after the run `x` was cut off",
        ),
    ] {
        let mut conflict = conflict;
        conflict.overlapped = overlapped;
        conflict.also = overlapped.then(|| "the run `x`".to_owned());
        conflict.merge = merge.clone();
        let mut outcome = stopped(vec![conflict]);
        outcome.verb = Verb::Undo;
        outcome.step = Some(Step::new(StepKind::Run { about: None }, None));
        assert_eq!(text(&outcome).refusal(), refusal);
        let lines = text(&outcome).conflicts(None);
        assert!(lines.contains(&row.to_owned()), "{lines:#?}");
        assert!(
            !lines.iter().any(|line| line.starts_with("  --merge  ")),
            "{lines:#?}"
        );
        let named = lines.contains(&"  a: you changed the same lines (line 3)".to_owned());
        assert_eq!(named, merge.is_some(), "{lines:#?}");
        outcome.can_merge = true;
        let lines = text(&outcome).conflicts(None);
        assert!(
            lines.iter().any(|line| line.starts_with("  --merge  ")),
            "{lines:#?}"
        );
    }
}

#[test]
fn several_conflicts_are_in_columns() {
    let mut unsaved = yours("a\u{1b}[31m");
    unsaved.unsaved = true;
    let mut outcome = stopped(vec![unsaved, theirs("lib/longer.rs")]);
    outcome.verb = Verb::Undo;
    outcome.can_merge = true;
    outcome.step = Some(Step::new(StepKind::Run { about: None }, None));
    assert_eq!(
        text(&outcome).refusal(),
        "2 files have later changes that are not part of this run; nothing was touched"
    );
    assert_eq!(
        text(&outcome).conflicts(None),
        [
            "",
            "  a^[[31m        you, since the last checkpoint",
            "  lib/longer.rs  session pxrw, 2001-09-09",
            "",
            "  --keep       leave these files as they are, undo the rest",
            "  --merge      remove the run's lines, keep everyone else's",
            "  --overwrite  discard these versions too (redo restores them)",
        ]
    );
}

#[test]
fn a_narrow_terminal_gets_lines_that_fit_and_many_rows_end_in_a_number() {
    let mut rows: Vec<Conflict> = (0..23)
        .map(|n| yours(&format!("src/some/where/file-{n}.rs")))
        .collect();
    rows[0].also = Some("the turn \"fix the rounding of money\"".to_owned());
    let outcome = stopped(rows);
    let lines = text(&outcome).conflicts(Some(50));
    assert_eq!(
        lines[..4],
        [
            "",
            "  src/some/where/file-0.rs",
            "      you, 2001-09-09",
            "      also changed by the turn \"fix the rounding…\"",
        ]
    );
    assert!(lines.contains(&"  and 3 more".to_owned()), "{lines:#?}");
    assert!(lines.iter().all(|line| line.width() <= 50), "{lines:#?}");
    assert!(!lines.concat().contains("file-20"), "{lines:#?}");
}

#[test]
fn json_names_the_user_or_the_session() {
    let outcome = stopped(vec![yours("a"), theirs("b")]);
    let conflicts = serde_json::to_value(&outcome).unwrap()["conflicts"].clone();
    assert_eq!(
        conflicts[0],
        json!({
            "path": "a", "changed_by": "person", "at": then(), "unsaved": false, "also": null,
            "overlapped": false, "named": false,
            "merge": null,
        })
    );
    assert_eq!(conflicts[1]["changed_by"], session().as_str());
}
