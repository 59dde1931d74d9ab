//! `backtrail watch`: with neither `run` nor hooks, the files before each prompt are stored, if the
//! model answers after their checkpoint exists.

use std::time::{Duration, Instant};

use backtrail_agent_tests::{Hold, Kind};

use crate::agent::{Agent, Start};
use crate::scenario::{Scenario, Under};
use crate::stored;
use crate::turns::{self, MARKERS};

/// How long a checkpoint may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The files before each prompt are those of a checkpoint.
pub(crate) fn every_prompt_is_stored(agent: &Agent) -> Option<String> {
    let mut scenario = Scenario::new(agent, |project| {
        let mut script = turns::script(project);
        for turn in &mut script.turns {
            turn.steps[0].hold = Some(Hold::Released(turn.marker.clone()));
        }
        script
    });
    if !scenario.has_verb("watch") {
        return Some("there is no `backtrail watch` yet".to_owned());
    }
    if agent.name == "pi" {
        return Some("pi writes its first prompt only with the answer".to_owned());
    }
    turns::fill(&scenario.place.project);
    let watch = scenario.watch();
    let turns = if agent.can_continue() {
        MARKERS.len()
    } else {
        1
    };
    for (turn, marker) in MARKERS.into_iter().enumerate().take(turns) {
        let start = if turn == 0 {
            Start::New
        } else {
            Start::Continue
        };
        scenario.prompt_while(Under::Watch, &start, &turns::prompt(turn), |scenario| {
            assert!(
                scenario.server.wait_for(marker, 0, PATIENCE),
                "{marker} did not arrive"
            );
            wait_until_stored(scenario);
            scenario.server.release(marker);
        });
        turns::edit_after(&scenario, turn);
    }
    drop(watch);
    let mut prompts = scenario.states();
    prompts.retain(|state| matches!(state.step, Kind::Turn { step: 0, .. }));
    assert_eq!(prompts.len(), turns);
    stored::assert_in_order(&scenario, &prompts);
    None
}

/// Waits until a checkpoint has the files as they are, and prints how long that took.
fn wait_until_stored(scenario: &Scenario<'_>) {
    let asked = Instant::now();
    let now = scenario.tree();
    while !stored::all(scenario).contains(&now) {
        let is_late = asked.elapsed() > PATIENCE;
        assert!(!is_late, "no checkpoint has the files before the prompt");
    }
    let (name, took) = (scenario.agent.name, asked.elapsed().as_secs_f32());
    println!("AGENT {name}: watch: stored {took:.1} s after the model was asked");
}
