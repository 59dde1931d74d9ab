//! Agents are told what was undone: the line is in what the model is sent.

use std::time::Duration;

use backtrail_agent_tests::{Action, Exchange, Hold, Script, Step, Turn};

use crate::agent::{Agent, Start};
use crate::scenario::{Scenario, Under};
use crate::turns::{self, MARKERS};

const LINE: &str = "The user undid this since your last turn";
const PATIENCE: Duration = Duration::from_secs(60);

/// The request of the next prompt has the line, and no request before it has.
pub(crate) fn what_was_undone(agent: &Agent) -> Option<String> {
    if !agent.has_hooks() {
        return Some("it has no hooks".to_owned());
    }
    let mut scenario = Scenario::new(agent, script);
    turns::fill(&scenario.place.project);
    scenario
        .backtrail(&["setup", agent.name, "--yes"])
        .succeeded();
    match agent.can_continue() {
        true => in_the_next_prompt(&mut scenario),
        false => in_the_next_call(&mut scenario),
    }
    None
}

fn in_the_next_prompt(scenario: &mut Scenario<'_>) {
    scenario.server.release(MARKERS[0]);
    scenario.prompt(Under::Hooks, &Start::New, &first_prompt());
    scenario.backtrail(&["undo"]).succeeded();
    let second = format!("{} and now?", MARKERS[1]);
    scenario.prompt(Under::Hooks, &Start::Continue, &second);
    let requests = scenario.server.exchanges();
    let of = |marker| requests.iter().filter(move |it| it.is_of(marker));
    assert!(of(MARKERS[0]).all(|it| !is_told(it)), "told too early");
    let first = of(MARKERS[1]).next().expect("the model was asked");
    assert!(is_told(first), "{:#}", first.body);
}

/// The agent waits for no hook of a prompt, but for that of a call.
fn in_the_next_call(scenario: &mut Scenario<'_>) {
    let first = first_prompt();
    scenario.prompt_while(Under::Hooks, &Start::New, &first, |scenario| {
        assert!(scenario.server.wait_for(MARKERS[0], 1, PATIENCE));
        scenario.backtrail(&["undo", "--tool"]).succeeded();
        scenario.server.release(MARKERS[0]);
    });
    let requests = scenario.server.exchanges();
    let told: Vec<bool> = requests
        .iter()
        .filter(|it| it.is_of(MARKERS[0]))
        .map(is_told)
        .collect();
    assert_eq!(told, [false, false, true]);
}

/// The marker is too far behind to be in the line, where it would choose the turn again.
fn first_prompt() -> String {
    format!("please change the files{} {}", " ".repeat(200), MARKERS[0])
}

fn is_told(exchange: &Exchange) -> bool {
    exchange.body.to_string().contains(LINE)
}

fn script(_project: &std::path::Path) -> Script {
    let first = Turn::new(
        MARKERS[0],
        [
            Step::call("I do it.", [Action::shell("echo made > made.txt")]),
            Step::call("And more.", [Action::shell("echo more > more.txt")])
                .after(Hold::Released(MARKERS[0].to_owned())),
            Step::say("Done."),
        ],
    );
    let second = Turn::new(MARKERS[1], [Step::say("I see.")]);
    Script::new([first, second])
}
