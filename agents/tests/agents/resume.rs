//! `backtrail resume REF:SEQ`: the agent continues from there, and the model is sent exactly what
//! was said until then.

use std::collections::BTreeSet;

use backtrail_agent_tests::{Exchange, Step, Turn};
use serde_json::Value;

use crate::agent::{Agent, Start};
use crate::import;
use crate::scenario::{Scenario, Under};
use crate::turns::{self, MARKERS};

/// The agents whose own session can be cut at a record.
const CAN: [&str; 6] = [
    "claude-code",
    "codex",
    "copilot-cli",
    "gemini-cli",
    "pi",
    "qwen-code",
];

const LATER: &str = "TURN-4";

/// Resumed at the end of the first turn, the next request has that turn and the new prompt, and
/// nothing of the others.
pub(crate) fn at_the_first_turn(agent: &Agent) -> Option<String> {
    if !CAN.contains(&agent.name) {
        return Some("its session cannot be cut".to_owned());
    }
    let mut scenario = Scenario::new(agent, |project| {
        let mut script = turns::script(project);
        script
            .turns
            .push(Turn::new(LATER, [Step::say("Back again.")]));
        script
    });
    if !scenario.has_verb("resume") {
        return Some("there is no `backtrail resume` yet".to_owned());
    }
    turns::fill(&scenario.place.project);
    turns::run_all(&mut scenario, Under::Run);
    scenario.backtrail(&["import"]).succeeded();
    let cut = cut_after_the_first_turn(&scenario);
    let id = cut["new_id"]
        .as_str()
        .expect("the cut copy has an id")
        .to_owned();
    assert!(cut["command"].to_string().contains(&id), "{cut:#}");
    scenario.prompt(Under::Run, &Start::Resume(id), &format!("{LATER} go on"));
    sent_is_the_first_turn(&scenario.server.exchanges());
    None
}

/// Makes the copy and returns what `resume --print --json` says of it.
fn cut_after_the_first_turn(scenario: &Scenario<'_>) -> Value {
    let session = import::session(scenario);
    let shown = scenario
        .backtrail(&["show", &session, "--json"])
        .succeeded()
        .json();
    let messages = shown["messages"].as_array().expect("show prints messages");
    let second = messages.iter().find(|message| {
        message["role"] == "user" && message["blocks"].to_string().contains(MARKERS[1])
    });
    let second = second.expect("the second prompt was imported")["seq"].as_u64();
    let last = second.expect("a message has a number") - 1;
    let point = format!("{session}:{last}");
    scenario
        .backtrail(&["resume", &point, "--print", "--json"])
        .succeeded()
        .json()
}

fn sent_is_the_first_turn(log: &[Exchange]) {
    let resumed = log.iter().find(|exchange| exchange.is_of(LATER));
    let sent = &resumed.expect("the agent asked the model").request;
    let all = [&MARKERS[..], &[LATER]].concat();
    let prompts = sent.prompts(&all);
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    assert!(
        prompts[0].contains(MARKERS[0]) && prompts[1].contains(LATER),
        "{prompts:?}"
    );
    let first = log.iter().filter(|exchange| exchange.is_of(MARKERS[0]));
    let answers: Vec<_> = first
        .filter_map(|exchange| exchange.answer.as_ref())
        .collect();
    let texts: Vec<_> = answers.iter().map(|answer| answer.text.as_str()).collect();
    assert_eq!(sent.answers(), texts);
    let calls = answers.iter().flat_map(|answer| &answer.calls);
    let made: Vec<_> = calls.map(|call| (&call.name, &call.arguments)).collect();
    let again: Vec<_> = sent
        .calls()
        .into_iter()
        .map(|call| (&call.name, &call.arguments))
        .collect();
    assert_eq!(again, made);
    // Gemini CLI sends each of them twice.
    let results: BTreeSet<_> = sent.results().into_iter().collect();
    assert_eq!(results.len(), made.len(), "{results:#?}");
}
