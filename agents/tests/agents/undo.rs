//! Undo, redo and every stored state, against the files as they were around each prompt.

use std::fs;
use std::path::Path;

use crate::scenario::Scenario;
use crate::stored;
use crate::tree::{Node, Tree};

/// Each state around a prompt can be had again, exactly; undo takes back each turn, newest first,
/// without the user's edits in between; redo gives the last state again.
pub(crate) fn is_exact(scenario: &Scenario<'_>) {
    every_state_is_stored(scenario);
    let last = scenario.tree();
    let mut expected = vec![last.clone()];
    for turn in scenario.turns.iter().rev() {
        let before = expected.last().expect("it has the last state");
        expected.push(before.with_changes(&turn.after, &turn.before));
        scenario.backtrail(&["undo"]).succeeded();
        let what = format!("after undoing {:?}", turn.prompt);
        scenario
            .tree()
            .assert_is(expected.last().expect("just added"), &what);
    }
    assert_eq!(
        scenario.backtrail(&["undo"]).code,
        1,
        "there is nothing left to undo"
    );
    for state in expected.iter().rev().skip(1) {
        scenario.backtrail(&["redo"]).succeeded();
        scenario.tree().assert_is(state, "after a redo");
    }
}

/// An edit of the same lines stops undo before anything is touched; one of other lines survives a
/// merge.
pub(crate) fn spares_the_users_edits(scenario: &Scenario<'_>) {
    let last = scenario.turns.last().expect("there was a turn");
    let keep = scenario.at("keep.txt");
    let text = fs::read_to_string(&keep).unwrap();

    fs::write(&keep, text.replace("omega", "omega, mine")).unwrap();
    let edited = scenario.tree();
    for words in [&["undo"][..], &["undo", "--merge"]] {
        assert_eq!(scenario.backtrail(words).code, 1, "{words:?}");
        scenario
            .tree()
            .assert_is(&edited, "after an undo that stopped");
    }

    fs::write(&keep, format!("mine\n{text}")).unwrap();
    let edited = scenario.tree();
    assert_eq!(scenario.backtrail(&["undo"]).code, 1);
    scenario
        .tree()
        .assert_is(&edited, "after an undo that stopped");
    scenario.backtrail(&["undo", "--merge"]).succeeded();
    let mut expected = last.before.clone();
    prepend(&mut expected, "keep.txt", b"mine\n");
    scenario
        .tree()
        .assert_is(&expected, "after an undo that merged");
    scenario.backtrail(&["redo"]).succeeded();
    scenario
        .tree()
        .assert_is(&edited, "after the redo of an undo that merged");
    fs::write(&keep, text).unwrap();
}

fn prepend(tree: &mut Tree, name: &str, text: &[u8]) {
    let Some(Node::File { content, .. }) = tree.nodes.get_mut(Path::new(name)) else {
        panic!("{name} is not a file");
    };
    content.splice(..0, text.iter().copied());
}

/// Each checkpoint of a run is what was there.
fn every_state_is_stored(scenario: &Scenario<'_>) {
    for turn in &scenario.turns {
        for (side, tree) in [("before", &turn.before), ("after", &turn.after)] {
            let checkpoint = turn.report[side]["id"].as_str();
            let checkpoint =
                checkpoint.unwrap_or_else(|| panic!("no checkpoint in {}", turn.report));
            let stored = stored::at(scenario, checkpoint);
            stored.assert_is(tree, &format!("{side} {:?}", turn.prompt));
        }
    }
}
