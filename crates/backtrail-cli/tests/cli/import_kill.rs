//! `kill -9` in the middle of an import: whatever was there by then, the next import makes
//! whole, and nothing is there twice (F1).

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::agents::{self, at_home, claude_says, claude_user, home, lines, run, text};
use crate::kit::{Cli, Dice};

const FILES: u64 = 240;
const ROUNDS: u64 = 4;
const KILLS: u64 = 3;

/// Writes many sessions of Claude Code, some with a way that was left.
fn fill(cli: &Cli, more: bool) {
    for n in 0..FILES {
        let id = format!("0b1c2d3e-0000-4000-8000-{n:012}");
        let response = |of: &str| format!("{of}-{n}");
        let mut said = vec![
            claude_user("u1", None, &format!("question {n}")),
            claude_says("a1", "u1", &response("r1"), text("Let me see."), n),
            claude_says("a2", "a1", &response("r1"), text(&"x".repeat(2_000)), n + 1),
        ];
        if n % 5 == 0 {
            said.push(claude_user("u2", Some("a2"), &format!("left {n}")));
        }
        said.push(claude_user("u3", Some("a2"), &format!("taken {n}")));
        said.push(claude_says("a3", "u3", &response("r2"), text("Done."), 7));
        if more && n % 3 == 0 {
            said.push(claude_user("u4", Some("a3"), &format!("later {n}")));
        }
        for line in &mut said {
            line["sessionId"] = id.as_str().into();
        }
        let name = format!(".claude/projects/-w-{}/{id}.jsonl", n % 7);
        agents::write(&home(cli).join(name), lines(&said));
    }
}

fn entries(dir: &Path) -> u64 {
    std::fs::read_dir(dir).map_or(0, |entries| entries.count() as u64)
}

/// Begins an import and kills it when it has made so many sessions, aside or in place.
/// Returns whether it was still running.
fn import_and_kill(cli: &Cli, at: u64) -> bool {
    let mut child = at_home(cli, &["import"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let places = ["sessions", "derived/import/sessions"].map(|place| cli.store().join(place));
    let before = entries(&places[0]);
    let made = || places.iter().map(|place| entries(place)).sum::<u64>() - before;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return false;
        }
        if made() >= at {
            child.kill().unwrap();
            child.wait().unwrap();
            return true;
        }
        std::thread::yield_now();
    }
}

/// Returns what is known of all sessions.
fn all(cli: &Cli) -> Vec<Value> {
    let ran = run(cli, &["list", "--all", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let mut all = ran.json().as_array().unwrap().clone();
    all.sort_by_key(|session| session["id"].to_string());
    all
}

fn totals(cli: &Cli) -> Value {
    run(cli, &["stats", "--json"]).json()["totals"].clone()
}

// F1
#[test]
fn f1_kill_9_in_the_middle_of_an_import_loses_nothing_and_doubles_nothing() {
    let undisturbed = Cli::new();
    fill(&undisturbed, false);
    assert_eq!(run(&undisturbed, &["import"]).code, 0);
    fill(&undisturbed, true);
    assert_eq!(run(&undisturbed, &["import"]).code, 0);
    let expected = all(&undisturbed);
    assert_eq!(expected.len() as u64, FILES + FILES / 5);
    let mut dice = Dice(7);
    let mut killed = 0;
    for _ in 0..ROUNDS {
        let cli = Cli::new();
        fill(&cli, false);
        for kill in 0..KILLS {
            killed += u64::from(import_and_kill(&cli, dice.below(FILES)));
            if kill == KILLS / 2 {
                fill(&cli, true);
            }
        }
        // What is in place by now is whole.
        let ran = run(&cli, &["verify"]);
        assert!(
            ran.code == 0 || !cli.store().join("sessions").exists(),
            "{ran:#?}"
        );
        let ran = run(&cli, &["import", "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert_eq!(run(&cli, &["verify"]).code, 0);
        let seen = all(&cli);
        assert_eq!(seen.len(), expected.len());
        for (seen, expected) in seen.iter().zip(&expected) {
            for field in [
                "id",
                "begins",
                "messages",
                "turns",
                "tokens",
                "forked_from",
                "damaged",
            ] {
                assert_eq!(
                    seen[field], expected[field],
                    "{field} of {}",
                    expected["id"]
                );
            }
        }
        assert_eq!(totals(&cli), totals(&undisturbed));
        for session in seen
            .iter()
            .filter(|session| session["forked_from"].is_null())
            .take(20)
        {
            let id = session["id"].as_str().unwrap();
            let out = run(&cli, &["export", id, "--to", "claude-code"]).stdout;
            let same = run(&undisturbed, &["export", id, "--to", "claude-code"]).stdout;
            assert_eq!(out, same);
        }
        let again = run(&cli, &["import", "--json"]).json();
        assert_eq!(again["agents"]["claude-code"]["unchanged"], FILES);
    }
    assert!(killed > ROUNDS, "the kills came too late to prove anything");
}
