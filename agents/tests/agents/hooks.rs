//! Hooks: with those that `backtrail setup` installs, and without `run`, the files before every
//! prompt and every call can be had again.

use backtrail_agent_tests::Kind;

use crate::agent::Agent;
use crate::scenario::{Scenario, State, Under};
use crate::tree::Tree;
use crate::turns;

/// Each state that the model saw is a checkpoint, in the same order; so is the last one.
pub(crate) fn every_state_is_stored(agent: &Agent) -> Option<String> {
    if agent.name == "goose" {
        return Some("goose has no hooks".to_owned());
    }
    let mut scenario = Scenario::new(agent, turns::script);
    if !scenario.has_verb("setup") {
        return Some("there is no `backtrail setup` yet".to_owned());
    }
    turns::fill(&scenario.place.project);
    scenario
        .backtrail(&["setup", agent.name, "--yes"])
        .succeeded();
    turns::run_all(&mut scenario, Under::Hooks);
    let mut states = scenario.states();
    states.push(State {
        step: Kind::Other,
        tree: scenario.tree(),
    });
    assert_stored_in_order(&scenario, &states);
    None
}

fn assert_stored_in_order(scenario: &Scenario<'_>, states: &[State]) {
    let stored = stored(scenario);
    let mut next = 0;
    for state in states {
        // Several states may be one checkpoint, if nothing changed in between.
        let found = stored[next..].iter().position(|tree| *tree == state.tree);
        let found =
            found.unwrap_or_else(|| panic!("no checkpoint has the files before {:?}", state.step));
        next += found;
    }
}

/// Returns the files of every checkpoint, the oldest first.
fn stored(scenario: &Scenario<'_>) -> Vec<Tree> {
    let log = scenario
        .backtrail(&["log", "--all", "--json"])
        .succeeded()
        .json();
    let checkpoints = log.as_array().expect("log prints a list").iter().rev();
    let ids = checkpoints.filter_map(|checkpoint| checkpoint["id"].as_str());
    ids.map(|id| {
        let dir = scenario.beside(&format!("checkpoint-{id}"));
        scenario
            .backtrail(&["fork", id, "--into", &dir.to_string_lossy()])
            .succeeded();
        Tree::read(&dir)
    })
    .collect()
}
