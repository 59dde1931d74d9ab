use backtrail::SessionId;
use serde_json::{Value, json};

use super::super::outcome::ToldStep;
use super::*;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn left(names: &[(&str, &str)]) -> Vec<Left> {
    let left = names.iter().map(|(path, why)| Left {
        path: PathBuf::from(path),
        why: (*why).to_owned(),
    });
    left.collect()
}

fn session() -> SessionId {
    "c81f0000-0000-4000-8000-000000000000".parse().unwrap()
}

/// A day that is written the same whenever and wherever the test runs.
fn then() -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000).unwrap()
}

fn target(words: &str) -> Target {
    Target {
        id: "77ab0000-0000-4000-8000-000000000000".parse().unwrap(),
        at: then(),
        words: words.to_owned(),
        place: Some((session(), 8)),
    }
}

fn chat(prompt: Option<&str>) -> Chat {
    Chat {
        session: session(),
        from: 20,
        to: Some(8),
        prompt: prompt.map(ToOwned::to_owned),
    }
}

fn rewind(stage: Stage) -> Outcome {
    Outcome {
        to: Some(target("before the turn \"add tests\"")),
        session: Some(session()),
        restored: paths(&["src/cart.rs", "src/money.rs"]),
        deleted: paths(&["tests/cart.rs"]),
        unchanged: 1212,
        chat: Some(chat(Some("add tests\n"))),
        ..Outcome::nothing(Verb::Rewind, stage)
    }
}

fn told(outcome: &Outcome) -> Vec<String> {
    outcome.lines(Manner {
        program: "backtrail",
        ..Manner::default()
    })
}

#[test]
fn a_rewind_is_told_as_it_went() {
    assert_eq!(
        told(&rewind(Stage::Done)),
        [
            "Back to before the turn \"add tests\" (2001-09-09):",
            "  restored   src/cart.rs, src/money.rs",
            "  deleted    tests/cart.rs",
            "  unchanged  1,212 files",
            "The conversation ends before: \"add tests\"",
        ]
    );
}

#[test]
fn what_would_be_done_is_not_told_as_if_it_were() {
    let mut planned = rewind(Stage::Planned);
    planned.kept = left(&[("a", "changed by someone else")]);
    planned.not_restored = left(&[("b", "no room"), ("c", "no room"), ("d", "why not")]);
    planned.skipped = Some("target (ignored)".to_owned());
    assert_eq!(
        told(&planned),
        [
            "Would go back to before the turn \"add tests\" (2001-09-09):",
            "  would restore   src/cart.rs, src/money.rs",
            "  would delete    tests/cart.rs",
            "  would keep      a (changed by someone else)",
            "  cannot restore  b, c (no room)",
            "  cannot restore  d (why not)",
            "  unchanged       1,212 files",
            "  not captured    target (ignored)",
            "The conversation would end before: \"add tests\"",
        ]
    );
}

#[test]
fn a_prompt_of_several_lines_is_given_whole_ready_to_copy() {
    let mut outcome = rewind(Stage::Done);
    outcome.chat = Some(chat(Some("add tests:\n  - cart\u{1b}[31m\n\n  - money\n")));
    let lines = told(&outcome);
    assert_eq!(
        lines[4..],
        [
            "The conversation ends before this prompt:",
            RULE,
            "add tests:",
            "  - cart",
            "",
            "  - money",
            RULE,
        ]
    );
}

#[test]
fn a_conversation_without_a_prompt_says_where_it_ends() {
    let end = |stage, to| {
        let mut outcome = Outcome::nothing(Verb::Rewind, stage);
        outcome.chat = Some(Chat { to, ..chat(None) });
        told(&outcome)
    };
    let planned = Stage::Planned;
    assert_eq!(
        end(Stage::Done, Some(8)),
        ["The conversation of c81f0000 ends at record 8 now"]
    );
    assert_eq!(
        end(Stage::Done, Some(0)),
        ["The conversation of c81f0000 is empty now"]
    );
    assert_eq!(
        end(planned, Some(8)),
        ["The conversation of c81f0000 would end at record 8"]
    );
    assert_eq!(
        end(planned, Some(0)),
        ["The conversation of c81f0000 would be empty"]
    );
    assert_eq!(end(planned, None), [""; 0]);
}

#[test]
fn a_step_is_called_by_its_name_and_elsewhere_by_its_place() {
    let step = |verb, stage| Outcome {
        step: Some(ToldStep {
            words: "the run `make`".to_owned(),
            at: Some(then()),
            json: Value::Null,
        }),
        ..Outcome::nothing(verb, stage)
    };
    let words = |verb, stage| told(&step(verb, stage)).concat();
    assert_eq!(
        words(Verb::Undo, Stage::Done),
        "Took back the run `make` (2001-09-09)"
    );
    assert_eq!(
        words(Verb::Redo, Stage::Done),
        "Brought back the run `make` (2001-09-09)"
    );
    assert_eq!(
        words(Verb::Undo, Stage::Planned),
        "Would take back the run `make` (2001-09-09)"
    );
    let manner = Manner {
        program: "backtrail",
        place: Some("~/shop"),
        width: None,
    };
    let lines = step(Verb::Redo, Stage::Planned).lines(manner);
    assert_eq!(
        lines,
        ["Would bring back the run `make` (2001-09-09) in ~/shop"]
    );
}

#[test]
fn single_files_are_told_as_they_were_and_not_as_a_way_back() {
    let mut outcome = rewind(Stage::Done);
    outcome.verb = Verb::Restore;
    outcome.to = Some(target("checkpoint \"good\""));
    assert_eq!(
        told(&outcome)[0],
        "As it was at checkpoint \"good\" (2001-09-09):"
    );
    outcome.stage = Stage::Planned;
    assert_eq!(
        told(&outcome)[0],
        "Would be as it was at checkpoint \"good\" (2001-09-09):"
    );
    assert_eq!(
        outcome.already(),
        "already as it was at checkpoint \"good\" (2001-09-09)"
    );
}

#[test]
fn tool_calls_that_stay_done_and_a_conversation_that_stays_are_named() {
    let mut outcome = rewind(Stage::Done);
    outcome.tool_calls = ["bash", "edit", "bash"].map(ToOwned::to_owned).to_vec();
    outcome.chat = None;
    outcome.belongs_to = Some("claude-code".to_owned());
    assert_eq!(
        told(&outcome)[4..],
        [
            "not taken back: 3 tool calls after the checkpoint (bash, edit)",
            "The conversation stays: it belongs to claude-code",
            "go on from there with: backtrail fork c81f0000:8",
        ]
    );
}

#[test]
fn data_has_the_paths_and_what_was_stopped_touched_none() {
    let mut outcome = rewind(Stage::Done);
    outcome.kept = left(&[("k", "why")]);
    let value = outcome.to_json();
    assert_eq!(value["restored"], json!(["src/cart.rs", "src/money.rs"]));
    assert_eq!(value["deleted"], json!(["tests/cart.rs"]));
    assert_eq!(value["kept"], json!(["k"]));
    assert_eq!(value["reasons"], json!([{"path": "k", "why": "why"}]));
    assert_eq!(value["moved"], true);
    assert_eq!(value["to"], "77ab0000-0000-4000-8000-000000000000");
    assert_eq!(
        value["chat"],
        json!({"session": session(), "from": 20, "to": 8, "prompt": "add tests\n"})
    );
    outcome.stage = Stage::Planned;
    let value = outcome.to_json();
    assert_eq!(
        (&value["dry_run"], &value["moved"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(value["deleted"], json!(["tests/cart.rs"]));
    outcome.stage = Stage::InConflict;
    let value = outcome.to_json();
    assert_eq!(
        (&value["dry_run"], &value["moved"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(value["chat"], Value::Null, "it did not move");
    assert_eq!(
        (&value["restored"], &value["deleted"]),
        (&json!([]), &json!([]))
    );
}
