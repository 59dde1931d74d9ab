use std::path::PathBuf;

use backtrail::rewind::{Conflict, Kept, NotRestored};
use backtrail::{SessionId, Step, StepKind};
use serde_json::json;

use super::*;

fn session() -> SessionId {
    "c81f0000-0000-4000-8000-000000000000".parse().unwrap()
}

/// A day that is written the same whenever and wherever the test runs.
fn then() -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000).unwrap()
}

fn target(text: &str) -> TargetPoint {
    let id = "77ab0000-0000-4000-8000-000000000000".parse().unwrap();
    TargetPoint::new(id, then(), text)
}

fn chat(to: u64, prompt: Option<&str>) -> ChatMove {
    let mut chat = ChatMove::new(&session(), 20, to);
    chat.prompt = prompt.map(ToOwned::to_owned);
    chat
}

fn rewind(stage: Stage) -> Outcome {
    let mut outcome = Outcome::new(Verb::Rewind, stage);
    outcome.to = Some(target("before the turn \"add tests\""));
    outcome.session = Some(session());
    outcome.changes = vec![
        PathOutcome::new("src/cart.rs", PathOutcomeKind::Restore),
        PathOutcome::new("src/money.rs", PathOutcomeKind::Create),
        PathOutcome::new("tests/cart.rs", PathOutcomeKind::Delete),
    ];
    outcome.unchanged = 1212;
    outcome.chat = Some(chat(8, Some("add tests\n")));
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
fn a_rewind_is_reported_with_its_files_and_its_prompt() {
    assert_eq!(
        text(&rewind(Stage::Done)).lines(),
        [
            "Back to before the turn \"add tests\" (2001-09-09):",
            "  restored   src/cart.rs, src/money.rs",
            "  deleted    tests/cart.rs",
            "  unchanged  1,212 files",
            "The conversation now ends before: \"add tests\"",
        ]
    );
}

#[test]
fn a_plan_is_not_reported_as_done() {
    let mut planned = rewind(Stage::Planned);
    planned.kept = vec![Kept::new("a", KeptReason::Conflict)];
    planned.conflicts = vec![Conflict::new("a", ChangedBy::Person, then())];
    planned.not_restored = vec![
        NotRestored::new("b", "no room"),
        NotRestored::new("c", "no room"),
        NotRestored::new("d", "not a file"),
    ];
    assert_eq!(
        text(&planned).lines(),
        [
            "Would go back to before the turn \"add tests\" (2001-09-09):",
            "  would restore   src/cart.rs, src/money.rs",
            "  would delete    tests/cart.rs",
            "  would keep      a (has your changes)",
            "  cannot restore  b, c (no room)",
            "  cannot restore  d (not a file)",
            "  unchanged       1,212 files",
            "The conversation would end before: \"add tests\"",
        ]
    );
}

#[test]
fn a_prompt_of_several_lines_is_given_whole_ready_to_copy() {
    let mut outcome = rewind(Stage::Done);
    let prompt = "add tests:\n  - cart\u{1b}[31m\n\n  - money\n";
    outcome.chat = Some(chat(8, Some(prompt)));
    assert_eq!(
        text(&outcome).lines()[4..],
        [
            "The conversation now ends before this prompt:",
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
fn a_conversation_without_a_prompt_is_reported_with_its_last_record() {
    let end = |stage, to| {
        let mut outcome = Outcome::new(Verb::Rewind, stage);
        outcome.chat = Some(chat(to, None));
        text(&outcome).lines().concat()
    };
    assert_eq!(end(Stage::Done, 8), "zkpx now ends at record 8");
    assert_eq!(end(Stage::Done, 0), "zkpx is now empty");
    assert_eq!(end(Stage::Planned, 8), "zkpx would end at record 8");
    assert_eq!(end(Stage::Planned, 0), "zkpx would be empty");
}

#[test]
fn a_step_is_reported_by_its_name_and_its_place() {
    let outcome = |verb, stage| {
        let about = Some("make".to_owned());
        let mut outcome = Outcome::new(verb, stage);
        outcome.step = Some(Step::new(StepKind::Run { about }, Some(then())));
        outcome
    };
    let heading = |verb, stage| text(&outcome(verb, stage)).lines().concat();
    assert_eq!(
        heading(Verb::Undo, Stage::Done),
        "Undid the run `make` (2001-09-09)"
    );
    assert_eq!(
        heading(Verb::Redo, Stage::Done),
        "Redid the run `make` (2001-09-09)"
    );
    assert_eq!(
        heading(Verb::Undo, Stage::Planned),
        "Would undo the run `make` (2001-09-09)"
    );
    let planned = outcome(Verb::Redo, Stage::Planned);
    let elsewhere = OutcomeText {
        place: Some("~/shop"),
        ..text(&planned)
    };
    assert_eq!(
        elsewhere.lines(),
        ["Would redo the run `make` (2001-09-09) in ~/shop"]
    );
}

#[test]
fn single_files_are_reported_as_restored() {
    let mut outcome = rewind(Stage::Done);
    outcome.verb = Verb::Restore;
    outcome.to = Some(target("checkpoint \"good\""));
    assert_eq!(
        text(&outcome).lines()[0],
        "Restored to checkpoint \"good\" (2001-09-09):"
    );
    outcome.stage = Stage::Planned;
    assert_eq!(
        text(&outcome).lines()[0],
        "Would restore to checkpoint \"good\" (2001-09-09):"
    );
    assert_eq!(
        text(&outcome).already(),
        "already as it was at checkpoint \"good\" (2001-09-09)"
    );
    outcome.to = Some(target("before the run `make`"));
    assert_eq!(
        text(&outcome).already(),
        "already as it was before the run `make` (2001-09-09)"
    );
}

#[test]
fn tool_calls_that_are_not_undone_and_a_conversation_that_stays_are_named() {
    let mut outcome = rewind(Stage::Done);
    outcome.tool_calls = ["bash", "edit", "bash"].map(ToOwned::to_owned).to_vec();
    outcome.chat = None;
    outcome.belongs_to = Some("claude-code".to_owned());
    assert_eq!(
        text(&outcome).lines()[4..],
        [
            "not undone: 3 tool calls after the checkpoint (bash, edit)",
            "The conversation stays: it belongs to Claude Code",
        ]
    );
}

#[test]
fn json_has_the_stage_the_paths_and_the_reasons() {
    let mut outcome = rewind(Stage::Done);
    outcome.kept = vec![Kept::new("k", KeptReason::BornIgnored)];
    outcome.changes.push(PathOutcome::new(
        PathBuf::from("m"),
        PathOutcomeKind::Merge {
            removed: 1,
            returned: 2,
        },
    ));
    let value = serde_json::to_value(&outcome).unwrap();
    assert_eq!(
        value["changes"][2],
        json!({"path": "tests/cart.rs", "kind": "delete", "is_dir": false})
    );
    assert_eq!(
        value["changes"][3],
        json!({"path": "m", "kind": "merge", "removed": 1, "returned": 2, "is_dir": false})
    );
    assert_eq!(
        value["kept"],
        json!([{"path": "k", "reason": "born_ignored"}])
    );
    assert_eq!(value["stage"], "done");
    assert_eq!(
        value["to"],
        json!({
            "checkpoint": "77ab0000-0000-4000-8000-000000000000", "at": then(), "session": null,
            "text": "before the turn \"add tests\"",
        })
    );
    assert_eq!(
        value["chat"],
        json!({
            "session": session(), "from": 20, "to": 8, "trail": null, "prompt": "add tests\n",
        })
    );
    outcome.stage = Stage::Stopped;
    let value = serde_json::to_value(&outcome).unwrap();
    assert_eq!(value["stage"], "stopped");
}
