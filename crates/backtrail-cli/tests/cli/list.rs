//! `list`: a table that fits the terminal, and every session as JSON.

use serde_json::{Value, json};

use crate::find::{fill, ok};
use crate::kit::{Cli, command, finish, screen, snapshot};

fn ids(list: &Value) -> Vec<&str> {
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap()).collect()
}

#[test]
fn a_table_fits_every_terminal() {
    let cli = Cli::new();
    let found = fill(&cli);
    snapshot("list", &cli, &["list"], &found.ids());
    snapshot(
        "list-all",
        &cli,
        &["list", "--all", "--forks"],
        &found.ids(),
    );
}

#[test]
fn the_default_is_this_workspace_and_that_is_reported() {
    let cli = Cli::new();
    let found = fill(&cli);
    let here = ok(cli.run(&["list"]));
    assert!(!here.stdout.contains("rotate the keys"), "{here:#?}");
    assert_eq!(
        here.stderr,
        "+ marks a lower bound: 1 call reports no tokens\n\
         3 of 4 sessions (this workspace; --all for the rest)\n"
    );
    let all = ok(cli.run(&["list", "--all"]));
    assert!(all.stdout.contains("rotate the keys"), "{all:#?}");
    assert_eq!(
        all.stderr,
        "+ marks a lower bound: 1 call reports no tokens\n"
    );
    // Where nothing was done, everything is shown.
    let elsewhere = tempfile::tempdir().unwrap();
    let ran = ok(finish(
        &mut command(&cli.store(), elsewhere.path(), &["list"]),
        b"",
    ));
    assert_eq!((ran.stdout, ran.stderr), (all.stdout, all.stderr));
    let dir = cli.work().join("infra");
    let ran = ok(cli.run(&["list", "--workspace", dir.to_str().unwrap()]));
    assert!(
        ran.stdout.contains(&found.keys[..4]) && ran.stdout.lines().count() == 2,
        "{ran:#?}"
    );
}

#[test]
fn every_session_is_json_with_stable_names() {
    let cli = Cli::new();
    let found = fill(&cli);
    let fork = ok(cli.run(&["fork", &found.rounding, "--name", "try 2", "--json"])).json();
    let ran = ok(cli.run(&["list", "--json"]));
    assert_eq!(ran.stderr, "");
    let list = ran.json();
    assert_eq!(
        list.as_array().unwrap().len(),
        5,
        "forks and sub-agents, every workspace"
    );
    let row = |id: &str| {
        let mut rows = list.as_array().unwrap().iter();
        rows.find(|row| row["id"] == id).unwrap().clone()
    };
    let mut rounding = row(&found.rounding);
    let begins = rounding["begins"].take();
    assert!(
        begins
            .as_str()
            .unwrap()
            .starts_with("fix the currency rounding")
    );
    assert!(
        rounding["created_at"]
            .take()
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let work = cli.work().canonicalize().unwrap();
    assert_eq!(
        rounding,
        json!({
            "id": found.rounding, "title": null, "begins": null, "agent": "claude-code",
            "model": null, "tags": [], "pinned": false, "workspace": work,
            "project": "work", "remote": null, "created_at": null,
            "updated_at": "2020-11-14T14:05:00.000Z", "times_from_file": false, "messages": 3, "turns": 1, "tool_calls": 1,
            "files_changed": 0,
            "tokens": {"input_tokens": 120_000, "output_tokens": 400, "cache_write_tokens": 0,
                "cache_read_tokens": 500, "reasoning_tokens": 0, "total": 120_900},
            "cost_usd": 1.84, "unpriced_calls": 0, "last_seq": 3, "damaged": 0,
            "forked_from": null, "spawned_by": null, "belongs_to": null, "original_id": null,
        })
    );
    let fork = row(fork["session"].as_str().unwrap());
    assert_eq!(
        fork["forked_from"],
        json!({"parent_session_id": found.rounding, "branch_name": "try 2", "seq": 3})
    );
    assert_eq!(
        fork["cost_usd"],
        Value::Null,
        "what it inherits counts for its parent"
    );
    assert_eq!(
        row(&found.keys)["cost_usd"],
        Value::Null,
        "no price is not 0"
    );
    assert_eq!(
        row(&found.sub_agent)["spawned_by"],
        json!({"session_id": found.checkout, "seq": 4, "tool_use_id": "spawn"})
    );
}

#[test]
fn families_fold_and_unfold() {
    let cli = Cli::new();
    let found = fill(&cli);
    ok(cli.run(&["fork", &found.rounding]));
    ok(cli.run(&["fork", &found.rounding]));
    let folded = ok(cli.run(&["list"])).stdout;
    assert_eq!(folded.lines().count(), 3, "{folded}");
    assert!(
        folded.contains("+2 forks") && folded.contains("+1 sub-agent"),
        "{folded}"
    );
    assert!(folded.contains("$0.25"), "of the whole family: {folded}");
    let tree = ok(cli.run(&["list", "--forks"])).stdout;
    assert_eq!(tree.lines().count(), 6, "{tree}");
    assert!(
        tree.contains("└ [sub-agent] look for slow queries"),
        "{tree}"
    );
}

#[test]
fn a_session_must_match_all_filters() {
    let cli = Cli::new();
    let found = fill(&cli);
    ok(cli.run(&["tag", &found.keys, "ops"]));
    let [checkout, sub_agent, rounding, keys] = found.ids();
    for (args, expected) in [
        (&["--agent", "CODEX"][..], &[checkout][..]),
        (&["--agent", "codex", "--agent", "mine"], &[checkout, keys]),
        (&["--project", "infra"], &[keys]),
        (&["--model", "small"], &[checkout, sub_agent]),
        (&["--tag", "ops"], &[keys]),
        (&["--here", "--agent", "mine"], &[]),
        (&["--until", "2020-10-31", "--agent", "codex"], &[]),
        (
            &["--since", "2020-11-14", "--agent", "claude-code"],
            &[rounding],
        ),
        (&["--since", "2020-11-15", "--agent", "claude-code"], &[]),
        // Its tag is of today, but is no activity.
        (&["--since", "today", "--agent", "mine"], &[]),
        (&["--sort", "cost", "-n", "2"], &[rounding, sub_agent]),
        (&["--sort", "tokens", "-n", "1"], &[checkout]),
    ] {
        let args = [&["list", "--json"], args].concat();
        let ran = ok(cli.run(&args));
        assert_eq!(ids(&ran.json()), expected, "{args:?}");
    }
}

#[test]
fn no_match_names_what_exists() {
    let cli = Cli::new();
    let found = fill(&cli);
    let ran = cli.run(&["list", "--agent", "cluade-code", "--all"]);
    assert_eq!(
        screen(&ran, &cli, &found.ids()),
        "\
exit 0
err: no session matches --agent cluade-code; to see all 4 sessions: backtrail list --all
err: no session has the agent \"cluade-code\"; known: claude-code, codex, mine
"
    );
    let ran = cli.run(&["list", "--agent", "mine"]);
    assert!(
        ran.stderr
            .starts_with("no session in this workspace matches"),
        "{ran:#?}"
    );
}

#[test]
fn an_unreadable_session_is_listed_with_the_reason() {
    let cli = Cli::new();
    let found = fill(&cli);
    ok(cli.run(&["list"]));
    let trail = cli.trail(&found.rounding, 0);
    std::fs::remove_file(&trail).unwrap();
    std::fs::create_dir(&trail).unwrap();
    let ran = ok(cli.run(&["list"]));
    assert!(ran.stdout.contains("unreadable: "), "{ran:#?}");
    assert!(
        ran.stderr
            .contains("warning: 1 session cannot be read\nhint: "),
        "{ran:#?}"
    );
    // It is no session of a place where nothing else was done.
    let elsewhere = tempfile::tempdir().unwrap();
    let ran = ok(finish(
        &mut command(&cli.store(), elsewhere.path(), &["list"]),
        b"",
    ));
    assert!(ran.stdout.contains("rotate the keys"), "{ran:#?}");
    let list = ok(cli.run(&["list", "--json"])).json();
    assert_eq!(list.as_array().unwrap().len(), 4);
    let mut rows = list.as_array().unwrap().iter();
    let row = rows
        .find(|row| row["id"] == found.rounding.as_str())
        .unwrap();
    assert!(row["error"].is_string(), "{row}");
}

#[test]
fn wrong_options_are_refused_with_the_right_ones() {
    let cli = Cli::new();
    fill(&cli);
    for (args, told) in [
        (&["--since", "soon"][..], "yesterday, 3d, 2w"),
        (
            &["--until", "2026-13-01"],
            "must be a time such as 2026-11-01",
        ),
        (
            &["--sort", "size"],
            "updated, created, cost, tokens, turns, title",
        ),
        (&["-n", "0"], "1 or more"),
        (&["-n", "many"], "1 or more"),
        (&["--agent", " "], "cannot be blank"),
        (&["--all", "--here"], "cannot be used with"),
        (&["--here", "--workspace", "x"], "cannot be used with"),
        (&["--workspace", ""], "--workspace"),
        (
            &["--since", "today", "--until", "yesterday"],
            "--since today is after --until",
        ),
        (&["--agnet", "x"], "--agent"),
    ] {
        for verb in ["list", "stats"] {
            let args = [&[verb], args].concat();
            if verb == "stats" && args.contains(&"--sort") {
                continue;
            }
            let ran = cli.run(&args);
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (2, ""),
                "{args:?}: {ran:#?}"
            );
            assert!(ran.stderr.contains(told), "{args:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn unknown_tokens_are_not_0() {
    let cli = Cli::new();
    let found = fill(&cli);
    let silent = cli.new_session("nobody answers");
    let list = ok(cli.run(&["list", "--json"])).json();
    let tokens = |id: &str| {
        let mut rows = list.as_array().unwrap().iter();
        rows.find(|row| row["id"] == id).unwrap()["tokens"].clone()
    };
    assert_eq!(tokens(&silent), Value::Null);
    assert_eq!(tokens(&found.rounding)["total"], 120_900);
}
