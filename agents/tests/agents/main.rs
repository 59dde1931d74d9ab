//! What Backtrail makes of the work of real agents.
//!
//! `.ci/agents` installs the agents and runs these tests in a network namespace that has nothing but
//! loopback. Each agent has a test, which is ignored elsewhere; it runs every scenario of
//! [`scenarios`] that the program can do today and says which ones it skips.

#![allow(
    clippy::disallowed_methods,
    reason = "tests write files the way programs without an engine do"
)]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod agent;
mod hand_over;
mod hooks;
mod import;
mod late;
mod program;
mod resume;
mod scenario;
mod settings;
mod stored;
mod told;
mod tree;
mod turns;
mod undo;
mod watch;

use agent::Agent;

/// Each scenario, by its name. It returns why it was skipped, if it was.
type Scenario = (&'static str, fn(&Agent) -> Option<String>);

fn scenarios() -> Vec<Scenario> {
    vec![
        ("three turns", turns::three_turns),
        ("hooks", hooks::every_state_is_stored),
        ("told", told::what_was_undone),
        ("watch", watch::every_prompt_is_stored),
        ("late", late::is_not_offered_as_the_state),
        ("resume", resume::at_the_first_turn),
        ("hand over", hand_over::sessions_of_other_agents),
    ]
}

/// Runs the scenarios with an agent, all of them before it fails.
fn run(name: &str) {
    program::assert_that_only_loopback_is_there();
    if name == "claude-code" && std::env::var_os("BACKTRAIL_TEST_CLAUDE").is_none() {
        println!("SKIPPED {name}: it is started only with BACKTRAIL_TEST_CLAUDE=1");
        return;
    }
    let agent = Agent::named(name);
    let only = std::env::var("BACKTRAIL_TEST_SCENARIO").ok();
    let mut failed = Vec::new();
    for (scenario, run) in scenarios() {
        if only.as_deref().is_some_and(|only| only != scenario) {
            continue;
        }
        let start = std::time::Instant::now();
        let result = std::panic::catch_unwind(|| run(&agent));
        let took = start.elapsed().as_secs_f32();
        match result {
            Ok(None) => println!("AGENT {name}: {scenario}: ok, {took:.1} s"),
            Ok(Some(reason)) => println!("SKIPPED {name}: {scenario}: {reason}"),
            Err(_) => {
                println!("AGENT {name}: {scenario}: FAILED, {took:.1} s");
                failed.push(scenario);
            }
        }
    }
    assert!(failed.is_empty(), "{name}: {failed:?}");
}

macro_rules! agents {
    ($($test:ident = $name:literal),* $(,)?) => {
        const NAMES: &[&str] = &[$($name),*];
        $(
            #[test]
            #[ignore = "run by .ci/agents"]
            fn $test() {
                run($name);
            }
        )*
    };
}

agents! {
    codex = "codex",
    gemini_cli = "gemini-cli",
    pi = "pi",
    opencode = "opencode",
    qwen_code = "qwen-code",
    copilot_cli = "copilot-cli",
    cline = "cline",
    goose = "goose",
    claude_code = "claude-code",
}

/// `.ci/agents` runs a test for each agent that it installs.
#[test]
fn every_installed_agent_has_a_test() {
    let mut installed = agent::names();
    installed.retain(|name| *name != "node");
    assert_eq!(installed, NAMES);
}
