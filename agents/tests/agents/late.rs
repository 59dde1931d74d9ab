//! What was seen too late: the model answered before there was a checkpoint, so the point is marked
//! and is not offered as the state that it is not.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::{Agent, Start};
use crate::import;
use crate::scenario::{Scenario, Under};
use crate::tree::Tree;
use crate::turns::{self, MARKERS};

const PATIENCE: Duration = Duration::from_secs(60);

/// `watch` is stopped while the agent works, so that everything it sees is late.
pub(crate) fn is_not_offered_as_the_state(agent: &Agent) -> Option<String> {
    let mut scenario = Scenario::new(agent, turns::script);
    turns::fill(&scenario.place.project);
    let watch = scenario.watch();
    watch.signal("STOP");
    scenario.prompt(Under::Watch, &Start::New, &turns::prompt(0));
    watch.signal("CONT");
    let is_end = |it: &Value| it["reason"] == "turn-end" && it["seq"].is_u64();
    wait_for(&scenario, |log| log.iter().any(is_end));
    drop(watch);
    let turn = &scenario.turns[0];
    let log = log(&scenario);
    let start = log.iter().find(|it| it["reason"] == "turn-start");
    let start = start.expect("the turn has a beginning");
    assert_eq!(start["late"], true, "{start:#}");
    let shown = scenario.backtrail(&["log"]).succeeded().stdout;
    assert!(shown.contains("[NOT PROTECTED]"), "{shown}");
    let session = import::session(&scenario);
    for seq in records_before_the_end(&scenario, &session) {
        if let Some(offered) = offered(&scenario, &session, seq) {
            offered.assert_is(&turn.before, &format!("record {seq} was offered"));
        }
    }
    None
}

/// Returns the records from the prompt to the last call: the files were still changing.
fn records_before_the_end(scenario: &Scenario<'_>, session: &str) -> Vec<u64> {
    let shown = scenario
        .backtrail(&["show", session, "--json"])
        .succeeded()
        .json();
    let messages = shown["messages"].as_array().expect("show prints messages");
    let seq = |message: &Value| message["seq"].as_u64().expect("a message has a number");
    let has = |message: &Value, text: &str| message["blocks"].to_string().contains(text);
    let first = messages.iter().find(|message| has(message, MARKERS[0]));
    let last = messages
        .iter()
        .rfind(|message| has(message, "tool_use") && message["role"] == "assistant");
    let (first, last) = (first.expect("a prompt"), last.expect("a call"));
    (seq(first)..=seq(last)).collect()
}

/// Returns the files that are offered as those of a record; none if it is refused.
fn offered(scenario: &Scenario<'_>, session: &str, seq: u64) -> Option<Tree> {
    let dir = scenario.beside(&format!("offered-{seq}"));
    let point = format!("{session}:{seq}");
    let ran = scenario.backtrail(&["fork", &point, "--into", &dir.to_string_lossy()]);
    (ran.code == 0).then(|| Tree::read(&dir))
}

/// Returns the checkpoints, newest first.
fn log(scenario: &Scenario<'_>) -> Vec<Value> {
    let log = scenario.backtrail(&["log", "--all", "--json"]);
    let log = if log.code == 0 {
        log.json()
    } else {
        Value::Null
    };
    log.as_array().cloned().unwrap_or_default()
}

fn wait_for(scenario: &Scenario<'_>, is_there: impl Fn(&[Value]) -> bool) {
    let asked = Instant::now();
    while !is_there(&log(scenario)) {
        assert!(asked.elapsed() < PATIENCE, "{:#?}", log(scenario));
    }
}
