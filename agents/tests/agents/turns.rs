//! Three turns of edit tools and shell commands, each under `backtrail run`, with the user's own edits
//! in between.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use backtrail_agent_tests::{Action, Script, Step, Turn};

use crate::agent::{Agent, Start};
use crate::scenario::{Scenario, Under};
use crate::{import, undo};

/// The markers of the three prompts.
pub(crate) const MARKERS: [&str; 3] = ["TURN-1", "TURN-2", "TURN-3"];

/// Undo and redo are exact and spare the user's edits; what is imported is what was said.
pub(crate) fn three_turns(agent: &Agent) -> Option<String> {
    if !agent.can_continue() {
        return Some("it continues a session only on a terminal".to_owned());
    }
    let mut scenario = Scenario::new(agent, script);
    fill(&scenario.place.project);
    run_all(&mut scenario, Under::Run);
    import::is_exact(&scenario);
    undo::is_exact(&scenario);
    undo::spares_the_users_edits(&scenario);
    None
}

/// Gives the agent the three prompts, one after another, with the user's edits in between.
pub(crate) fn run_all(scenario: &mut Scenario<'_>, under: Under) {
    // Without a terminal, some continue nothing.
    let turns = if scenario.agent.can_continue() {
        MARKERS.len()
    } else {
        1
    };
    for turn in 0..turns {
        let start = if turn == 0 {
            Start::New
        } else {
            Start::Continue
        };
        scenario.prompt(under, &start, &prompt(turn));
        if turn + 1 < turns {
            edit_after(scenario, turn);
        }
    }
}

/// Returns a prompt.
pub(crate) fn prompt(turn: usize) -> String {
    format!("{} please change the files", MARKERS[turn])
}

/// Fills a project.
pub(crate) fn fill(project: &Path) {
    let put = |name: &str, content: &[u8]| fs::write(project.join(name), content).unwrap();
    put(
        "keep.txt",
        b"alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\neta\ntheta\n",
    );
    put("notes.txt", b"the user's notes\n");
    put("gone.txt", b"soon gone\n");
    put("old.txt", b"soon moved\n");
    put("run.sh", b"#!/bin/sh\necho ran\n");
    put("data.bin", &[0, 159, 146, 150, 255, 0, 10]);
}

/// Returns the script of the three turns.
pub(crate) fn script(project: &Path) -> Script {
    let at = |name: &str| project.join(name);
    let read = || Step::call("I read the file.", [Action::read(at("keep.txt"))]);
    Script::new([
        Turn::new(
            MARKERS[0],
            [
                read().thinking("Where should I begin?"),
                Step::call(
                    "I edit it.",
                    [Action::edit(at("keep.txt"), "beta", "beta, edited")],
                ),
                Step::call(
                    "I write another.",
                    [Action::write(
                        at("created.txt"),
                        "made by a tool\nin two lines\n",
                    )],
                ),
                Step::call("The shell does the rest.", [Action::shell(FIRST_COMMAND)]),
                Step::say("The first turn is done."),
            ],
        ),
        Turn::new(
            MARKERS[1],
            [
                Step::call(
                    "Two at once.",
                    [
                        Action::shell("ls no-such-file"),
                        Action::shell("echo SHELL-2"),
                    ],
                ),
                read(),
                Step::call(
                    "I edit it again.",
                    [Action::edit(at("keep.txt"), "delta", "delta, edited")],
                ),
                Step::call("And the shell.", [Action::shell(SECOND_COMMAND)]),
                Step::say("The second turn is done.").thinking("Is that all?"),
            ],
        ),
        Turn::new(
            MARKERS[2],
            [
                Step::call(
                    "A new file.",
                    [Action::write(at("made/deep/new.txt"), "new\n")],
                ),
                Step::call("The last command.", [Action::shell(THIRD_COMMAND)]),
                Step::say("The third turn is done."),
            ],
        ),
    ])
}

const FIRST_COMMAND: &str = "mkdir made && mv old.txt made/moved.txt && rm gone.txt && chmod 755 run.sh \
    && ln -s keep.txt link && printf '\\000\\001\\377' > made/blob.bin && echo SHELL-1";

const SECOND_COMMAND: &str = "rm link && ln -s notes.txt link && mkdir -p made/deep/empty \
    && mv made/blob.bin made/deep/blob.bin && chmod 600 keep.txt data.bin && echo SHELL-3";

const THIRD_COMMAND: &str = "printf '\\377\\376' >> made/deep/blob.bin && rmdir made/deep/empty \
    && mv created.txt renamed.txt && chmod 644 keep.txt && echo omega >> keep.txt && echo SHELL-4";

/// Edits files as the user does after the first and the second turn.
pub(crate) fn edit_after(scenario: &Scenario<'_>, turn: usize) {
    match turn {
        0 => {
            fs::write(scenario.at("notes.txt"), "the user's notes\nand more\n").unwrap();
            let mine = scenario.at("mine.txt");
            fs::write(&mine, "mine\n").unwrap();
            fs::set_permissions(mine, PermissionsExt::from_mode(0o640)).unwrap();
        }
        1 => {
            fs::write(scenario.at("notes.txt"), "rewritten by the user\n").unwrap();
            fs::remove_file(scenario.at("mine.txt")).unwrap();
            fs::create_dir(scenario.at("user-dir")).unwrap();
        }
        _ => {}
    }
}
