use std::path::PathBuf;

use backtrail::{SessionId, Timestamp};
use serde_json::json;

use super::super::outcome::{Stage, Target};
use super::*;

/// A day that is written the same whenever and wherever the test runs.
fn then() -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000).unwrap()
}

fn session() -> SessionId {
    "77ab0000-0000-4000-8000-000000000000".parse().unwrap()
}

fn contested(path: &str, by: Option<SessionId>) -> Contested {
    Contested {
        path: PathBuf::from(path),
        by,
        at: then(),
        unsaved: false,
        also: None,
        merge: None,
    }
}

fn stopped(conflicts: Vec<Contested>) -> Outcome {
    Outcome {
        conflicts,
        to: Some(Target {
            id: "c81f0000-0000-4000-8000-000000000000".parse().unwrap(),
            at: then(),
            words: "before a turn".to_owned(),
            place: None,
        }),
        ..Outcome::nothing(Verb::Rewind, Stage::InConflict)
    }
}

#[test]
fn one_file_in_conflict_is_told_with_who_and_the_ways_on_that_exist() {
    let mut one = contested("src/money.rs", None);
    one.also = Some("turn 7".to_owned());
    let outcome = stopped(vec![one]);
    assert_eq!(
        outcome.refusal(),
        "1 file was changed by someone else after that point; nothing was touched"
    );
    assert_eq!(
        outcome.contested(None),
        [
            "",
            "  src/money.rs   you, 2001-09-09   also changed by turn 7",
            "",
            "  --keep       leave src/money.rs as it is, rewind the rest",
            "  --merge      take back the agent's lines, keep yours",
            "  --overwrite  take the file as it was at 2001-09-09 (undo brings yours back)",
        ]
    );
}

#[test]
fn who_changed_what_stands_in_columns() {
    let mut unsaved = contested("a\u{1b}[31m", None);
    unsaved.unsaved = true;
    let mut outcome = stopped(vec![unsaved, contested("lib/longer.rs", Some(session()))]);
    outcome.verb = Verb::Undo;
    assert_eq!(
        outcome.refusal(),
        "2 files were changed by someone else since; nothing was touched"
    );
    assert_eq!(
        outcome.contested(None),
        [
            "",
            "  a^[[31m         you, not saved yet",
            "  lib/longer.rs   session 77ab0000, 2001-09-09",
            "",
            "  --keep       leave these files as they are, undo the rest",
            "  --merge      take back the agent's lines, keep the others'",
            "  --overwrite  take the files as they were before (redo brings these back)",
        ]
    );
}

#[test]
fn a_narrow_terminal_gets_lines_that_fit_and_many_rows_end_in_a_number() {
    let mut rows: Vec<Contested> = (0..23)
        .map(|n| contested(&format!("src/some/where/file-{n}.rs"), None))
        .collect();
    rows[0].also = Some("the turn \"fix the rounding of money\"".to_owned());
    let lines = stopped(rows).contested(Some(50));
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
fn data_names_the_person_or_the_session() {
    let outcome = stopped(vec![contested("a", None), contested("b", Some(session()))]);
    let conflicts = outcome.to_json()["conflicts"].clone();
    assert_eq!(
        conflicts[0],
        json!({
            "path": "a", "changed_by": "person", "at": then(), "unsaved": false, "also": null,
            "merge": null,
        })
    );
    assert_eq!(conflicts[1]["changed_by"], session().as_str());
}
