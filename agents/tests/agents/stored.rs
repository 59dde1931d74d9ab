//! The files that checkpoints have, read from a directory of their own.

use crate::scenario::{Scenario, State};
use crate::tree::Tree;

/// Returns the files of a checkpoint.
pub(crate) fn at(scenario: &Scenario<'_>, checkpoint: &str) -> Tree {
    let dir = scenario.beside(&format!("checkpoint-{checkpoint}"));
    if !dir.exists() {
        let into = dir.to_string_lossy();
        scenario
            .backtrail(&["fork", checkpoint, "--into", &into])
            .succeeded();
    }
    Tree::read(&dir)
}

/// Returns the files of every checkpoint, the oldest first.
pub(crate) fn all(scenario: &Scenario<'_>) -> Vec<Tree> {
    let log = scenario
        .backtrail(&["log", "--all", "--json"])
        .succeeded()
        .json();
    let checkpoints = log.as_array().expect("log prints a list").iter().rev();
    let ids = checkpoints.filter_map(|checkpoint| checkpoint["id"].as_str());
    ids.map(|id| at(scenario, id)).collect()
}

/// Fails unless each state is that of a checkpoint, in the same order.
pub(crate) fn assert_in_order(scenario: &Scenario<'_>, states: &[State]) {
    let stored = all(scenario);
    let mut next = 0;
    for state in states {
        // Several states may be one checkpoint, if nothing changed in between.
        let found = stored[next..].iter().position(|tree| *tree == state.tree);
        let found =
            found.unwrap_or_else(|| panic!("no checkpoint has the files at {:?}", state.step));
        next += found;
    }
}
