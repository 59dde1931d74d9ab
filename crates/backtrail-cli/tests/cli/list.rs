//! `list`: a table that fits the terminal, and every session as JSON.

use serde_json::{Value, json};

use crate::find::{fill, ok};
use crate::kit::{Cli, command, finish, screen, short, snapshot};

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
        ran.stdout.contains(&short(&found.keys)) && ran.stdout.lines().count() == 2,
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
    let title = rounding["title"].take();
    let title = title.as_str().unwrap();
    assert!(title.starts_with("fix the currency rounding"), "{title}");
    let work = cli.work().canonicalize().unwrap();
    assert_eq!(
        rounding,
        json!({
            "id": found.rounding, "short": short(&found.rounding), "title": null, "begins": null, "agent": "claude-code",
            "model": null, "tags": [], "pinned": false, "workspace": work,
            "project": "work", "remote": null, "created_at": null,
            "updated_at": "2020-11-14T14:05:00.000Z", "times_from_file": false, "messages": 3, "turns": 1, "tool_calls": 1,
            "run_count": 0, "files_changed": 1,
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

#[test]
fn runs_without_a_conversation_are_one_line_unless_there_is_nothing_else() {
    let cli = Cli::new();
    for script in ["echo 1 > a", "echo 2 > a"] {
        ok(cli.run(&["run", "--", "sh", "-c", script]));
    }
    let alone = ok(cli.run(&["list"]));
    assert_eq!(alone.stdout.lines().count(), 3, "{alone:#?}");
    assert!(!alone.stdout.contains("+2 runs"), "{alone:#?}");
    let talk = cli.new_session("why is it slow");
    let folded = ok(cli.run(&["list", "--all"])).stdout;
    let lines: Vec<&str> = folded.lines().collect();
    assert_eq!(lines.len(), 3, "{folded}");
    assert!(lines[1].starts_with(&short(&talk)), "{folded}");
    assert!(lines[2].ends_with("+2 runs"), "{folded}");
    let unfolded = ok(cli.run(&["list", "--all", "--runs"])).stdout;
    assert_eq!(unfolded.lines().count(), 4, "{unfolded}");
    assert!(unfolded.contains("echo 2 > a"), "{unfolded}");
    let json = ok(cli.run(&["list", "--json"])).json();
    let runs = |row: &Value| row["run_count"].as_u64().unwrap();
    let counts: Vec<u64> = json.as_array().unwrap().iter().map(runs).collect();
    assert_eq!(counts.iter().sum::<u64>(), 2, "{json}");
}

#[test]
fn sessions_without_a_prompt_are_counted_and_listed_on_request() {
    let cli = Cli::new();
    let talk = cli.new_session("why is it slow");
    let store = backtrail::Store::open(cli.store()).unwrap();
    let empty = |title: &str| {
        let options = backtrail::SessionOptions::new().title(title);
        store.create_session(options).unwrap().id().to_string()
    };
    let (hidden, pinned) = (empty("nothing yet"), empty("kept"));
    ok(cli.run(&["pin", &pinned]));
    let ran = ok(cli.run(&["list", "--all"]));
    assert!(!ran.stdout.contains(&short(&hidden)), "{ran:#?}");
    assert!(ran.stdout.contains(&short(&pinned)), "{ran:#?}");
    assert!(ran.stdout.contains(&short(&talk)), "{ran:#?}");
    assert_eq!(
        ran.stderr,
        "1 session without a prompt hidden; --empty for all\n"
    );
    let ran = ok(cli.run(&["list", "--all", "--empty"]));
    assert!(ran.stdout.contains("nothing yet"), "{ran:#?}");
    assert_eq!(ran.stderr, "");
    // Without a title too it is called what `show` calls it.
    let options = backtrail::SessionOptions::new();
    let bare = store.create_session(options).unwrap().id().to_string();
    for args in [&["list", "--all", "--empty"][..], &["show", &bare]] {
        let ran = ok(cli.run(args));
        assert!(ran.stdout.contains("(nothing was said)"), "{ran:#?}");
    }
    let json = ok(cli.run(&["list", "--json"])).json();
    assert_eq!(ids(&json).len(), 4);
}

#[test]
fn files_are_different_ones_and_calls_that_failed_changed_none() {
    let cli = Cli::new();
    let work = cli.work().canonicalize().unwrap();
    let call = |n: u32, path: &str, failed: bool| {
        let id = format!("t{n}");
        let blocks = json!([{"type": "tool_use", "id": id, "name": "Edit",
            "input": {"file_path": path, "old_string": "a", "new_string": "b"}}]);
        let call = json!({"type": "message", "message": {"role": "assistant", "blocks": blocks}});
        let blocks = json!([{"type": "tool_result", "tool_use_id": id, "tool_name": "Edit",
            "output": "", "is_error": failed}]);
        let result = json!({"type": "message", "message": {"role": "tool", "blocks": blocks}});
        format!("{call}\n{result}\n")
    };
    let a = work.join("src/a.rs");
    let lines = [
        "{\"role\":\"user\",\"text\":\"edit\"}\n".to_owned(),
        call(1, a.to_str().unwrap(), false),
        call(2, "src/a.rs", false),
        call(3, "./src/a.rs", false),
        call(4, "src/b.rs", false),
        call(5, "src/c.rs", true),
        call(6, "/elsewhere/d.rs", false),
    ]
    .concat();
    let ran = ok(cli.run_with(&["record"], lines.as_bytes()));
    let session = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let files = || {
        let list = ok(cli.run(&["list", "--json"])).json();
        let mut rows = list.as_array().unwrap().iter();
        rows.find(|row| row["id"] == session.as_str()).unwrap()["files_changed"].clone()
    };
    assert_eq!(files(), 3, "a once, b, and d");
    // What a run in the session changes is the same file.
    let script = "mkdir -p src; echo 1 > src/a.rs; echo 2 > src/e.rs";
    ok(cli.run(&["run", "--session", &session, "--", "sh", "-c", script]));
    assert_eq!(files(), 4, "and e");
    // A fork changed nothing yet, and its family not more than its parent.
    ok(cli.run(&["fork", &session]));
    let fork = ["run", "--session", "latest", "--", "sh", "-c"];
    ok(cli.run(&[&fork[..], &["echo 3 > src/a.rs"]].concat()));
    let table = ok(cli.run(&["list", "--all"])).stdout;
    let head = table.lines().next().unwrap();
    let column = head.find("FILES").unwrap() + 4;
    let line = table.lines().nth(1).unwrap();
    assert_eq!(line.chars().nth(column), Some('4'), "{table}");
}
