//! `search`: hits that lead to the message, and hints if there are none.

use serde_json::{Value, json};

use crate::find::{fill, ok};
use crate::kit::{Cli, screen, snapshot};

#[test]
fn hits_read_well_at_every_width() {
    let cli = Cli::new();
    let found = fill(&cli);
    let args = ["search", "rounding", "--newest", "--here"];
    snapshot("search", &cli, &args, &found.ids());
    snapshot(
        "search-nothing",
        &cli,
        &["search", "bananas", "rounding"],
        &found.ids(),
    );
}

#[test]
fn a_hit_leads_to_its_message() {
    let cli = Cli::new();
    let found = fill(&cli);
    let ran = ok(cli.run(&["search", "currency"]));
    let line = ran.stdout.lines().nth(1).unwrap();
    let reference = line.split_whitespace().next().unwrap();
    let shown = ok(cli.run(&["show", reference]));
    assert!(
        shown.stdout.contains("fix the currency rounding"),
        "{shown:#?}"
    );
    let (id, seq) = reference.split_once(':').unwrap();
    let session = ok(cli.run(&["show", &found.rounding, "--json"])).json();
    assert_eq!(session["short"], id, "{line}");
    assert_eq!(seq, "1", "{line}");
    let command = format!("to read one: backtrail show {reference}\n");
    assert!(ran.stderr.ends_with(&command), "{ran:#?}");
    let json = ok(cli.run(&["search", "currency", "--json"])).json();
    assert_eq!(json["hits"][0]["ref"], reference);
}

#[test]
fn hits_are_json_with_stable_names() {
    let cli = Cli::new();
    let found = fill(&cli);
    let ran = ok(cli.run(&["search", "currency", "--json"]));
    assert_eq!(ran.stderr, "");
    let mut found_json = ran.json();
    assert_eq!(found_json["total"], 1);
    assert_eq!(found_json["suggestions"], json!([]));
    let hits = &mut found_json["hits"];
    let hit = &mut hits[0];
    assert!(hit["score"].take().as_f64().unwrap() > 0.0);
    assert!(hit["id"].take().is_string());
    let snippet = hit["snippet"].take();
    let (from, to) = (&hit["highlights"][0][0], &hit["highlights"][0][1]);
    let (from, to) = (
        from.as_u64().unwrap() as usize,
        to.as_u64().unwrap() as usize,
    );
    let marked = snippet.as_str().unwrap().chars().skip(from).take(to - from);
    assert_eq!(marked.collect::<String>(), "currency");
    hit["highlights"].take();
    assert!(hit["ref"].take().as_str().unwrap().ends_with(":1"));
    let title = hit["title"].take();
    assert!(
        title
            .as_str()
            .unwrap()
            .starts_with("fix the currency rounding")
    );
    assert_eq!(
        *hits,
        json!([{
            "session": found.rounding, "id": null, "trail": 0, "seq": 1, "turn": 1,
            "at": "2020-11-14T14:05:00.000Z", "role": "user", "tools": [], "project": "work",
            "title": null, "score": null, "snippet": null, "highlights": null, "ref": null,
            "agent": "claude-code", "undone": false, "kind": "said",
        }])
    );
}

#[test]
fn hits_match_all_words_and_filters() {
    let cli = Cli::new();
    let found = fill(&cli);
    let [checkout, sub_agent, rounding, keys] = found.ids();
    for (args, expected) in [
        (
            &["rounding"][..],
            &[rounding, checkout, sub_agent, keys][..],
        ),
        (&["rounding", "--role", "user"], &[rounding]),
        (&["half even", "--here"], &[checkout, sub_agent, rounding]),
        (&["--phrase", "currency", "rounding"], &[rounding]),
        (&["\"currency rounding\""], &[rounding]),
        (&["round_half_even", "--agent", "mine"], &[keys]),
        (&["currency", "or", "keys"], &[rounding, keys]),
        (&["slow", "--model", "small"], &[]),
        (&["cent", "--tool", "edit", "--project", "infra"], &[keys]),
        (&["slow", "--since", "2020-11-15"], &[checkout, sub_agent]),
    ] {
        let args = [&["search", "--json", "-n", "100"], args].concat();
        let ran = cli.run(&args);
        let mut sessions: Vec<String> = {
            let hits = ran.json();
            let hits = hits["hits"].as_array().unwrap().iter();
            hits.map(|hit| hit["session"].as_str().unwrap().to_owned())
                .collect()
        };
        sessions.sort();
        sessions.dedup();
        let mut expected: Vec<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        expected.sort();
        assert_eq!(sessions, expected, "{args:?}");
        assert_eq!(ran.code, i32::from(expected.is_empty()), "{args:?}");
    }
}

#[test]
fn no_hits_show_what_a_wider_search_would_find() {
    let cli = Cli::new();
    let found = fill(&cli);
    let ran = cli.run(&["search", "currency", "bananas"]);
    assert_eq!(
        screen(&ran, &cli, &found.ids()),
        "\
exit 1
err: nothing found: currency bananas
err: matches of each word: currency 1, bananas 0
err: did you mean: backtrail search 'currency or bananas' (1 match)
"
    );
    let ran = cli.run(&["search", "currency", "--role", "tool"]);
    assert!(
        ran.stderr.contains("1 match without --role tool\n"),
        "{ran:#?}"
    );
    let ran = cli.run(&[
        "search",
        "currency",
        "--agent",
        "codex",
        "--since",
        "2020-11-14",
    ]);
    assert_eq!(
        ran.stderr,
        "nothing found: currency\n1 match without --agent codex\n"
    );
    let ran = cli.run(&[
        "search", "currency", "--agent", "codex", "--role", "tool", "--json",
    ]);
    let both = json!([{"without": "--role tool --agent codex", "total": 1}]);
    assert_eq!((ran.code, &ran.json()["suggestions"]), (1, &both));
    let ran = cli.run(&["search", "curency", "ruonding"]);
    assert_eq!(
        ran.stderr,
        "nothing found: curency ruonding\n\
         did you mean: backtrail search 'currency rounding' (1 match)\n"
    );
    let ran = cli.run(&["search", "curren"]);
    assert!(
        ran.stderr
            .contains("did you mean: backtrail search 'curren*' (1 match)"),
        "{ran:#?}"
    );
    let ran = cli.run(&["search", "bananas", "--json"]);
    let nothing = json!({"total": 0, "hits": [], "suggestions": []});
    assert_eq!((ran.code, ran.json()), (1, nothing));
}

/// Records messages in a new session; returns its id.
fn record(cli: &Cli, messages: &[Value]) -> String {
    let lines: String = messages.iter().map(|it| format!("{it}\n")).collect();
    let ran = ok(cli.run_with(&["record"], lines.as_bytes()));
    ran.json_lines()[0]["session"].as_str().unwrap().to_owned()
}

/// A call of a tool with its output.
fn call(id: &str, tool: &str, input: &Value, output: &str) -> [Value; 2] {
    let call = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
    let result = json!({"type": "tool_result", "tool_use_id": id, "output": output,
        "is_error": false});
    [
        json!({"type": "message", "message": {"role": "assistant", "blocks": [call]}}),
        json!({"type": "message", "message": {"role": "tool", "blocks": [result]}}),
    ]
}

fn hits(cli: &Cli, args: &[&str]) -> Vec<Value> {
    let ran = cli.run(&[&["search", "--json"], args].concat());
    let found = ran.json();
    found["hits"].as_array().unwrap().clone()
}

#[test]
fn what_was_said_comes_before_output_and_inserted_text_is_last() {
    let cli = Cli::new();
    let output = "walrus ".repeat(50);
    let [called, result] = call("t1", "bash", &json!({"command": "walrus walrus"}), &output);
    let meta = json!({"type": "message", "message": {"role": "user", "meta": true,
        "blocks": [{"type": "text", "text": "walrus walrus walrus"}]}});
    let long = format!("{} walrus", "other words ".repeat(100));
    let id = record(
        &cli,
        &[
            meta,
            json!({"role": "user", "text": "where is it?"}),
            called,
            result,
            json!({"role": "assistant", "text": long}),
        ],
    );
    let other = record(&cli, &[json!({"role": "user", "text": "a walrus"})]);
    let found = hits(&cli, &["walrus"]);
    let order = found.iter().map(|hit| {
        let of_first = hit["session"] == id.as_str();
        (
            hit["kind"].as_str().unwrap(),
            of_first,
            hit["seq"].as_u64().unwrap(),
        )
    });
    assert_eq!(
        order.collect::<Vec<_>>(),
        [
            ("said", false, 1),
            ("said", true, 5),
            ("tool", true, 4),
            ("tool", true, 3),
            ("injected", true, 1),
        ],
        "{found:#?}"
    );
    // In text, all matches of a session are together, and its line comes once.
    let text = ok(cli.run(&["search", "walrus"])).stdout;
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    let short = |hit: &Value| {
        hit["ref"]
            .as_str()
            .unwrap()
            .split(':')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(found[0]["session"], other.as_str());
    assert!(heads[0].starts_with(&short(&found[0])), "{text}");
    assert!(
        heads[2].starts_with(&short(&found[1])) && heads.len() == 3,
        "{text}"
    );
    // By time, nothing else counts.
    let newest = hits(&cli, &["walrus", "--newest", "--role", "tool"]);
    assert_eq!(newest.len(), 1);
}

#[test]
fn one_session_does_not_take_all_the_room() {
    let cli = Cli::new();
    let prompt = |n: usize| json!({"role": "user", "text": format!("walrus walrus walrus {n}")});
    let loud = record(&cli, &(0..40).map(prompt).collect::<Vec<_>>());
    let quiet = json!({"role": "user", "text": format!("a walrus {}", "among many ".repeat(99))});
    let quiet = record(&cli, &[quiet]);
    let found = hits(&cli, &["walrus", "-n", "10"]);
    let of = |id: &str| found.iter().filter(|hit| hit["session"] == id).count();
    assert_eq!((of(&loud), of(&quiet)), (9, 1), "{found:#?}");
}

#[test]
fn a_piece_of_code_keeps_its_lines() {
    let cli = Cli::new();
    let code = "before\n\n    fn walrus() {\n        swim();\n    }\n\n    one\n    two\n    three";
    let [called, result] = call("t1", "read", &json!({"path": "a.rs"}), code);
    record(
        &cli,
        &[json!({"role": "user", "text": "x"}), called, result],
    );
    let found = hits(&cli, &["walrus"]);
    assert_eq!(
        found[0]["snippet"],
        "before\n    fn walrus() {\n        swim();\n    }\n    one …"
    );
    let text = ok(cli.run(&["search", "walrus"])).stdout;
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "    before",
            "        fn walrus() {",
            "            swim();",
            "        }",
            "        one …"
        ]
    );
}

#[test]
fn a_file_filter_keeps_sessions_that_touched_it() {
    let cli = Cli::new();
    let ask = |text: &str| json!({"role": "user", "text": text});
    let [called, result] = call(
        "t1",
        "edit",
        &json!({"file_path": "/w/src/auth.rs"}),
        "done",
    );
    let auth = record(&cli, &[ask("why does login fail"), called, result]);
    let patch = "*** Begin Patch\n*** Update File: src/main.rs\n*** End Patch";
    let [called, result] = call("t1", "apply_patch", &json!({"input": patch}), "done");
    let main = record(&cli, &[ask("login page, see src/auth.rs"), called, result]);
    for (args, expected) in [
        (&["login", "file:src/auth.rs"][..], &[&auth][..]),
        (&["login", "file:AUTH"], &[&auth]),
        (&["file:*.rs login"], &[&auth, &main]),
        (&["login", "file:\"src/main.rs\""], &[&main]),
        (&["login", "file:src", "file:main"], &[&main]),
        (&["login", "file:src/uth.rs"], &[]),
        (&["file:auth"], &[&auth]),
        (&["file:auth", "file:main"], &[]),
        (&["file::auth"], &[]),
    ] {
        let found = hits(&cli, args);
        let mut sessions: Vec<&str> = found
            .iter()
            .map(|it| it["session"].as_str().unwrap())
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        let mut expected: Vec<&str> = expected.iter().map(|id| id.as_str()).collect();
        expected.sort_unstable();
        assert_eq!(sessions, expected, "{args:?}");
    }
    // Alone it finds the calls, and shows the path.
    let found = hits(&cli, &["file:auth"]);
    assert_eq!((found.len(), &found[0]["seq"]), (1, &json!(2)));
    let snippet = found[0]["snippet"].as_str().unwrap();
    assert!(snippet.contains("file_path: /w/src/auth.rs"), "{snippet}");
    let ran = cli.run(&["search", "login", "file:nowhere"]);
    assert!(
        ran.stderr.contains("2 matches without file:nowhere\n"),
        "{ran:#?}"
    );
}

#[test]
fn what_was_undone_is_marked_and_can_be_opened() {
    let cli = Cli::new();
    let ask = |text: &str| json!({"role": "user", "text": text});
    let id = record(&cli, &[ask("a walrus"), ask("another walrus")]);
    ok(cli.run(&["rewind", &format!("{id}:1"), "--chat"]));
    let more = format!("{}\n", ask("a third walrus"));
    ok(cli.run_with(&["record", "--session", &id], more.as_bytes()));
    let mut found = hits(&cli, &["walrus"]);
    found.sort_by_key(|hit| (hit["trail"].as_u64(), hit["seq"].as_u64()));
    let undone = found.iter().map(|hit| hit["undone"].as_bool().unwrap());
    assert_eq!(
        undone.collect::<Vec<_>>(),
        [false, true, false],
        "{found:#?}"
    );
    let text = ok(cli.run(&["search", "another"])).stdout;
    let line = text.lines().nth(1).unwrap();
    assert!(line.ends_with(" · undone"), "{text}");
    let place = line.split("  ").nth(1).unwrap();
    let args: Vec<&str> = ["show"].into_iter().chain(place.split(' ')).collect();
    let shown = ok(cli.run(&args)).stdout;
    assert!(
        shown.contains("another walrus") && !shown.contains("third"),
        "{shown}"
    );
}

#[test]
fn an_invalid_query_is_refused() {
    let cli = Cli::new();
    fill(&cli);
    for args in [
        &["search", ""][..],
        &["search", "\"half"],
        &["search", "or"],
        &["search", "(a"],
        &["search"],
        &["search", "a", "--role", "nobody"],
        &["search", "a", "--sort", "oldest"],
        &["search", "a", "-n", "0"],
        &["search", "a", "--newest", "--sort", "best"],
        &["search", "a", "file:"],
        &["search", "a", "file:\"b"],
        &["search", "a", "not", "file:b"],
        &["search", "(a", "file:b)"],
    ] {
        let ran = cli.run(args);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{args:?}: {ran:#?}"
        );
        assert!(
            ran.stderr.starts_with("error: "),
            "{args:?}: {}",
            ran.stderr
        );
        let ran = cli.run(&[&["--json"], args].concat());
        let error: Value = serde_json::from_str(&ran.stderr).unwrap();
        assert!(error["error"]["message"].is_string(), "{args:?}");
    }
}

#[test]
fn a_damaged_index_is_rebuilt_and_reported_once() {
    let cli = Cli::new();
    fill(&cli);
    let before = ok(cli.run(&["list", "--all"]));
    let found = ok(cli.run(&["search", "rounding"]));
    let mut files = Vec::new();
    all_files(&cli.store().join("derived"), &mut files);
    assert!(!files.is_empty());
    for file in files {
        std::fs::write(&file, "noise").unwrap();
    }
    let ran = ok(cli.run(&["list", "--all"]));
    assert_eq!(ran.stdout, before.stdout);
    assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{ran:#?}");
    let again = ok(cli.run(&["list", "--all"]));
    assert!(!again.stderr.contains("warning: "), "said once: {again:#?}");
    assert_eq!(ok(cli.run(&["search", "rounding"])).stdout, found.stdout);
    let ran = ok(cli.run(&["rebuild"]));
    let told = "rebuilt the catalogue and search index from 4 sessions, ";
    assert!(
        ran.stdout.starts_with(told) && ran.stderr.is_empty(),
        "{ran:#?}"
    );
    assert_eq!(ok(cli.run(&["rebuild", "--json"])).json()["sessions"], 4);
    assert_eq!(ok(cli.run(&["search", "rounding"])).stdout, found.stdout);
}

fn all_files(dir: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all_files(&path, files),
            false => files.push(path),
        }
    }
}
