//! Hooks: with those that `backtrail setup` installs, and without `run`, the files before every
//! prompt and every call can be had again.

use backtrail_agent_tests::Kind;

use crate::agent::Agent;
use crate::scenario::{Scenario, State, Under};
use crate::{stored, turns};

/// Each state that the model saw is a checkpoint, in the same order; so is the last one.
pub(crate) fn every_state_is_stored(agent: &Agent) -> Option<String> {
    if !agent.has_hooks() {
        return Some("it has no hooks".to_owned());
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
    stored::assert_in_order(&scenario, &states);
    None
}
