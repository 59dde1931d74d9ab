//! `stats`: what was said, done and spent (B1).

use serde_json::json;

use crate::find::{fill, ok};
use crate::kit::{Cli, line, screen, short, snapshot};

#[test]
fn what_was_spent_reads_well_at_every_width() {
    let cli = Cli::new();
    let found = fill(&cli);
    snapshot("stats", &cli, &["stats"], &found.ids());
    snapshot(
        "stats-by-model",
        &cli,
        &["stats", "--by", "model"],
        &found.ids(),
    );
    snapshot(
        "stats-by-family",
        &cli,
        &["stats", "--by", "family"],
        &found.ids(),
    );
}

// F24
#[test]
fn f24_forks_do_not_count_what_they_inherit_and_totals_have_names_that_stay() {
    let cli = Cli::new();
    let found = fill(&cli);
    let before = ok(cli.run(&["stats", "--by", "agent", "--json"])).json();
    assert_eq!(
        before["totals"],
        json!({
            "calls": 4, "input_tokens": 1_047_000, "output_tokens": 1600, "cache_write_tokens": 0,
            "cache_write_1h_tokens": 0, "cache_read_tokens": 2000, "reasoning_tokens": 0,
            "unpriced_calls": 1, "reported_calls": 3, "cost_usd": 2.094,
        })
    );
    assert_eq!(before["sessions"], 4);
    assert_eq!(before["estimated"]["calls"], 1, "apart from the totals");
    assert_eq!(before["by"][0]["key"], "claude-code");
    assert_eq!(before["by"][0]["cost_usd"], 1.84);
    assert_eq!(before["by"][0]["sessions"], 1);
    for _ in 0..2 {
        ok(cli.run(&["fork", &found.rounding]));
    }
    assert_eq!(
        ok(cli.run(&["stats", "--by", "agent", "--json"])).json(),
        before
    );
    let one = ok(cli.run(&["stats", &found.checkout, "--json"])).json();
    assert_eq!(one["totals"]["cost_usd"], 0.004);
    assert_eq!(one["family"]["cost_usd"], 0.254);
    assert_eq!(one["family"]["sessions"], 2);
    let shown = ok(cli.run(&["stats", &found.checkout])).stdout;
    assert!(
        shown.contains("family      $0.25+ in 2 calls of 2 sessions"),
        "{shown}"
    );
    for (args, calls) in [
        (&["--here"][..], 3),
        (&["--agent", "mine"], 1),
        (&["--model", "small"], 2),
        (&["--since", "2020-11-15"], 2),
        (&["--until", "2020-10"], 1),
        (&["--project", "nowhere"], 0),
    ] {
        let shown = ok(cli.run(&[&["stats", "--json"], args].concat())).json();
        assert_eq!(shown["totals"]["calls"], calls, "{args:?}");
    }
}

#[test]
fn own_prices_count_and_a_filter_does_not_go_with_a_session() {
    let cli = Cli::new();
    let found = fill(&cli);
    let own = "[prices.my-local-model]\ninput = 0.5\noutput = 1.5\n";
    std::fs::write(cli.store().join("config.toml"), own).unwrap();
    let shown = ok(cli.run(&["stats", "--agent", "mine", "--json"])).json();
    assert_eq!(shown["totals"]["unpriced_calls"], 0);
    assert_eq!(shown["totals"]["cost_usd"], 0.00985, "{shown}");
    let ran = cli.run(&["stats", &found.keys, "--agent", "mine"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr
            .starts_with("error: --agent mine cannot be used with a session")
    );
    let ran = cli.run(&["stats", "--agent", "nobody"]);
    assert_eq!(
        screen(&ran, &cli, &[]),
        "exit 0\nerr: no usage recorded for --agent nobody\n"
    );
    let ran = cli.run(&["stats", "--by", "decade"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("day, week, month"),
        "{ran:#?}"
    );
}

// B1
#[test]
fn b1_statistics_read_well() {
    let cli = Cli::new();
    let id = cli.talk();
    let ran = cli.run(&["stats", &id]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
out: started     <day> <time>
out: messages    5 in 1 turn: 1 prompt, 2 answers
out: tool calls  1
out: files       0 changed
out: active time 1m 2s
out: tokens      1,540 measured: 1,000 in, 40 out, 500 read from cache, 0 written to it, plus about 5 estimated
out: cost        $0.01+ in 1 call, reported by the providers
out: models      m-1
out: + marks a lower bound: 1 call reports no tokens
"
    );
    assert_eq!(cli.run(&["stats", "latest"]).stdout, ran.stdout);
}

#[test]
fn b1_statistics_are_printed_as_json() {
    let cli = Cli::new();
    let id = cli.talk();
    let ran = cli.run(&["stats", &id, "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let mut stats = ran.json();
    for time in ["started_at", "last_at"] {
        let at = stats[time].take();
        assert!(at.as_str().unwrap().ends_with('Z'), "{time}: {at}");
    }
    let spent = json!({
        "calls": 1, "input_tokens": 1000, "output_tokens": 40, "cache_write_tokens": 0,
        "cache_write_1h_tokens": 0, "cache_read_tokens": 500, "reasoning_tokens": 0,
        "unpriced_calls": 0, "reported_calls": 1, "cost_usd": 0.0125,
    });
    let mut family = spent.clone();
    family["sessions"] = json!(1);
    assert_eq!(
        stats,
        json!({
            "session": id,
            "files_changed": 0,
            "started_at": null,
            "last_at": null,
            "messages": {"total": 5, "system": 1, "user": 1, "assistant": 2, "tool": 1, "other": 0,
                "prompts": 1, "answers": 2},
            "turns": 1,
            "tool_calls": 1,
            "failed_tool_calls": 0,
            "open_tool_calls": 0,
            "time_spent_ms": 62000,
            "time_has_spans": false,
            "usage": {"input_tokens": 1000, "output_tokens": 40,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 500},
            "estimated_tokens": 5,
            "cost_usd": 0.0125,
            "responses": 2,
            "responses_without_cost": 1,
            "compactions": 0,
            "models": ["m-1"],
            "damaged": 0,
            "gone": 0,
            "totals": spent,
            "by": [],
            "estimated": {"calls": 1, "tokens": 5},
            "lower_bound_calls": 0,
            "unpriced": [],
            "family": family,
        })
    );
}

#[test]
fn what_is_not_known_is_not_zero() {
    let cli = Cli::new();
    let call = r#"{"type":"message","message":{"role":"assistant","blocks":[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"b","name":"x","input":{}}]},"at":"2026-11-15T10:00:42Z"}"#;
    let failed = r#"{"type":"message","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"a","output":"no","is_error":true}]},"at":"2026-11-15T13:05:00Z"}"#;
    let prompt = r#"{"role":"user","text":"go","at":"2026-11-15T10:00:00Z"}"#;
    let input = format!("{prompt}\n{call}\n{failed}\n");
    let ran = cli.run_with(&["record"], input.as_bytes());
    let id = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let ran = cli.run(&["stats", &id]);
    assert_eq!(
        screen(&ran, &cli, &[&id]),
        "\
exit 0
out: started     <day> <time>
out: messages    3 in 1 turn: 1 prompt, 0 answers
out: tool calls  2, 1 failed, 1 without a result
out: files       0 changed
out: active time about 3h 5m
out: tokens      about 2 estimated
out: cost        unknown
"
    );
    let stats = cli.run(&["stats", &id, "--json"]).json();
    assert_eq!(stats["cost_usd"], json!(null));
    assert_eq!(stats["usage"]["input_tokens"], 0);
    // "go" and `{}{}`; no call has read the result yet.
    assert_eq!(stats["estimated_tokens"], 2, "estimated, and marked so");
}

// F6
#[test]
fn f6_a_compaction_forgets_no_tokens() {
    let cli = Cli::new();
    let id = cli.talk();
    let before = cli.run(&["stats", &id, "--json"]).json();
    std::fs::write(cli.work().join("summary"), "They looked.").unwrap();
    cli.run(&["compact", &id, "--summary-file", "summary"]);
    let after = cli.run(&["stats", &id, "--json"]).json();
    assert_eq!(after["usage"], before["usage"]);
    assert_eq!(after["messages"], before["messages"]);
    assert_eq!(after["compactions"], 1);
    assert!(cli.run(&["stats", &id]).stdout.contains("compactions 1\n"));
}

#[test]
fn damage_is_not_counted_and_is_reported() {
    let cli = Cli::new();
    let ran = cli.run_with(&["record"], [line("one"), line("two")].concat().as_bytes());
    let id = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let trail = cli.trail(&id, 0);
    let text = std::fs::read_to_string(&trail).unwrap();
    std::fs::write(&trail, text.replace("two", "tow")).unwrap();
    let ran = cli.run(&["stats", &id]);
    assert!(
        ran.stdout.contains("messages    1 in 1 turn"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        ran.stderr.replace(&short(&id), "<id>"),
        "\
warning: 1 place could not be read completely
hint: backtrail verify <id>
"
    );
    let ran = cli.run(&["stats", &id, "--json"]);
    assert_eq!((ran.code, &ran.json()["damaged"]), (0, &json!(1)));
}

/// Records a response with a usage; several records may have its id.
fn respond(cli: &Cli, session: &str, id: &str, tokens: u64) {
    let line = json!({"type": "message", "response_id": id, "model": "my-model", "message": {
        "role": "assistant", "blocks": [{"type": "text", "text": "said"}],
        "usage": {"input_tokens": tokens, "output_tokens": 1}}});
    ok(cli.run_with(
        &["record", "--session", session],
        format!("{line}\n").as_bytes(),
    ));
}

// F24
#[test]
fn f24_show_stats_of_a_session_and_stats_agree() {
    let cli = Cli::new();
    let session = cli.new_session("go");
    let own = "[prices.my-model]\ninput = 1000.0\noutput = 1000.0\n";
    std::fs::write(cli.store().join("config.toml"), own).unwrap();
    // Parts of one response, one of them after the next prompt.
    respond(&cli, &session, "r1", 1_000);
    respond(&cli, &session, "r1", 2_000);
    ok(cli.run(&["record", "--session", &session, "--text", "and on"]));
    respond(&cli, &session, "r2", 10_000);
    respond(&cli, &session, "r1", 3_000);
    // Every verb has the same numbers: what the session itself spent.
    let check = |session: &str, tokens: u64, spent: f64, words: &str| {
        let shown = ok(cli.run(&["show", session])).stdout;
        let head = shown.lines().nth(2).unwrap();
        assert!(head.ends_with(words), "{words:?}: {shown}");
        let page = ok(cli.run(&["export", session, "--to", "html"])).stdout;
        let facts = words.split(" · ").skip(1);
        let facts: String = facts.map(|fact| format!("<span>{fact}</span>")).collect();
        assert!(page.contains(&facts), "{facts}");
        let markdown = ok(cli.run(&["export", session, "--to", "markdown"])).stdout;
        assert!(markdown.contains(words), "{markdown}");
        let cost = words.split(" · ").nth(2).unwrap_or("nothing");
        let text = ok(cli.run(&["stats", session])).stdout;
        assert!(text.contains(&format!("cost        {cost}")), "{text}");
        let stats = ok(cli.run(&["stats", session, "--json"])).json();
        let dollars = |value: &serde_json::Value| value.as_f64().unwrap_or(0.0);
        assert_eq!(dollars(&stats["totals"]["cost_usd"]), spent, "{stats}");
        assert_eq!(dollars(&stats["cost_usd"]), spent, "{stats}");
        let used = &stats["usage"];
        let used = used["input_tokens"].as_u64().unwrap() + used["output_tokens"].as_u64().unwrap();
        assert_eq!(used, tokens);
        let all = ok(cli.run(&["stats", "--by", "session", "--json"])).json();
        let rows = all["by"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == session);
        assert_eq!(
            row.map_or(0.0, |row| dollars(&row["cost_usd"])),
            spent,
            "{all}"
        );
        let list = ok(cli.run(&["list", "--json"])).json();
        let row = list.as_array().unwrap().iter();
        let row = row.clone().find(|row| row["id"] == session).unwrap();
        let json = ok(cli.run(&["show", session, "--json"])).json();
        for shown in [row, &json] {
            let total = shown["tokens"]["total"].as_u64();
            assert_eq!(total.unwrap_or(0), tokens, "{shown:#}");
            assert_eq!(dollars(&shown["cost_usd"]), spent, "{shown:#}");
        }
        // It has what `list` has, and the messages themselves.
        for (name, value) in row.as_object().unwrap() {
            match name.as_str() {
                "messages" => assert!(json[name].is_array()),
                _ => assert_eq!(&json[name], value, "{name}"),
            }
        }
    };
    check(&session, 13_002, 13.002, "2 turns · 13 k tokens · $13.00");
    let fork = ok(cli.run(&["fork", &session, "--json"])).json();
    let fork = fork["session"].as_str().unwrap();
    // Undone turns were paid for.
    ok(cli.run(&["rewind", &format!("{session}:3"), "--chat"]));
    check(&session, 13_002, 13.002, "1 turn · 13 k tokens · $13.00");
    // A fork did not pay for what it inherited.
    check(fork, 0, 0.0, "2 turns");
    let head = ok(cli.run(&["show", fork])).stdout;
    let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = format!("forked from {session} at record 6; tokens and cost until then are counted");
    assert!(head.contains(&from), "{head}");
    respond(&cli, fork, "r3", 4_000);
    check(fork, 4_001, 4.001, "2 turns · 4.0 k tokens · $4.00");
    // A response that both have is the parent's.
    respond(&cli, fork, "r2", 20_000);
    check(fork, 4_001, 4.001, "2 turns · 4.0 k tokens · $4.00");
    check(&session, 13_002, 13.002, "1 turn · 13 k tokens · $13.00");
    // What no provider counted is estimated, and marked so: "go" and "said".
    let other = cli.new_session("go");
    let said = json!({"role": "assistant", "text": "said"}).to_string() + "\n";
    ok(cli.run_with(&["record", "--session", &other], said.as_bytes()));
    let shown = ok(cli.run(&["show", &other])).stdout;
    let head = shown.lines().nth(2).unwrap();
    assert!(head.ends_with("1 turn · ~2 tokens · unpriced"), "{shown}");
    let listed = ok(cli.run(&["list"])).stdout;
    let line = listed
        .lines()
        .find(|line| line.starts_with(&short(&other)))
        .unwrap();
    assert!(line.ends_with("~2  unpriced"), "{listed}");
}

/// Records a call on a day, of a model if it names one.
fn call(cli: &Cli, session: &str, id: &str, day: u32, model: Option<&str>, cost: Option<f64>) {
    let mut line = json!({"type": "message", "response_id": id,
        "at": format!("2025-11-{day:02}T12:00:00Z"), "message": {"role": "assistant",
            "blocks": [{"type": "text", "text": "said"}],
            "usage": {"input_tokens": 1000, "output_tokens": 10, "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 1}}});
    if let Some(model) = model {
        line["model"] = model.into();
    }
    if let Some(cost) = cost {
        line["cost_usd"] = cost.into();
    }
    ok(cli.run_with(
        &["record", "--session", session],
        format!("{line}\n").as_bytes(),
    ));
}

/// Returns how often a text explains the `+`, and how often it has one after an amount.
fn pluses(text: &str) -> (usize, usize) {
    let is_plus = |word: &&str| word.starts_with('$') && word.trim_end_matches(',').ends_with('+');
    let words = text.split_whitespace().filter(is_plus);
    (
        text.matches("+ marks a lower bound: ").count(),
        words.count(),
    )
}

#[test]
fn stats_list_what_stays_unpriced_and_a_plus_is_explained_once_where_it_is() {
    let cli = Cli::new();
    let session = cli.new_session("go");
    call(&cli, &session, "r1", 1, Some("gpt-5"), None);
    let everywhere = || {
        let ran = [
            cli.run(&["stats"]),
            cli.run(&["stats", "--by", "model"]),
            cli.run(&["stats", "--by", "day"]),
            cli.run(&["stats", &session]),
            cli.run(&["list"]),
            cli.run(&["show", &session]),
            cli.run(&["export", &session, "--to", "markdown"]),
        ];
        ran.map(|ran| {
            let ran = ok(ran);
            pluses(&(ran.stdout + &ran.stderr))
        })
    };
    // A dated model has a price, and so does what the provider says.
    call(
        &cli,
        &session,
        "r2",
        2,
        Some("claude-sonnet-4-20250514"),
        None,
    );
    call(&cli, &session, "r3", 3, Some("model-c"), Some(0.5));
    assert!(
        everywhere().iter().all(|found| *found == (0, 0)),
        "{:?}",
        everywhere()
    );
    let stats = |args: &[&str]| {
        let stats = ok(cli.run(&[&["stats", "--json"], args].concat())).json();
        stats["unpriced"].clone()
    };
    assert_eq!(stats(&[]), json!([]));
    call(&cli, &session, "r4", 4, Some("model-a"), None);
    call(&cli, &session, "r5", 5, Some("model-a"), None);
    call(&cli, &session, "r5", 5, Some("model-a"), None);
    call(&cli, &session, "r6", 6, None, None);
    let a = |calls: u64| json!({"model": "model-a", "calls": calls, "tokens": calls * 1111});
    let none = json!({"model": null, "calls": 1, "tokens": 1111});
    assert_eq!(stats(&[]), json!([a(2), none]));
    assert_eq!(stats(&[&session]), json!([a(2), none]));
    assert_eq!(stats(&["--model", "model-a"]), json!([a(2)]));
    assert_eq!(stats(&["--model", "gpt"]), json!([]));
    assert_eq!(stats(&["--since", "2025-11-05"]), json!([none, a(1)]));
    assert_eq!(stats(&["--until", "2025-11-04"]), json!([a(1)]));
    for found in everywhere() {
        assert!(found.0 == 1 && found.1 > 0, "{:?}", everywhere());
    }
    let shown = ok(cli.run(&["stats"])).stdout;
    for line in [
        "+ marks a lower bound: 3 calls have no known price\n",
        "unpriced: model-a, 2 calls, 2.2 k tokens\n",
        "unpriced: no model, 1 call, 1.1 k tokens\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    // Days with a known price have no plus.
    let days = ok(cli.run(&["stats", "--by", "day"])).stdout;
    for (day, has_plus) in [
        ("2025-11-01", false),
        ("2025-11-03", false),
        ("2025-11-04", false),
    ] {
        let line = days.lines().find(|line| line.starts_with(day)).unwrap();
        assert_eq!(pluses(line).1 > 0, has_plus, "{days}");
    }
    // With a price for everything, nothing is left to explain.
    let own = "[prices.model-a]\ninput = 1.0\noutput = 1.0\n";
    std::fs::write(cli.store().join("config.toml"), own).unwrap();
    assert_eq!(stats(&[]), json!([none]));
}

#[test]
fn empty_days_two_dimensions_tools_tags_and_blocks_are_shown() {
    let cli = Cli::new();
    let found = fill(&cli);
    let json = |args: &[&str]| ok(cli.run(&[&["stats", "--json"], args].concat())).json();
    // Calls on 2020-11-14 and 2020-11-15; the days around them are empty.
    let days = ["--since", "2020-11-13", "--until", "2020-11-16"];
    let by_day = json(&[&["--by", "day"], &days[..]].concat());
    let calls = by_day["by"].as_array().unwrap().iter();
    let calls: Vec<(&str, u64)> = calls
        .map(|day| (day["key"].as_str().unwrap(), day["calls"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("2020-11-13", 0),
        ("2020-11-14", 1),
        ("2020-11-15", 2),
        ("2020-11-16", 0),
    ];
    assert_eq!(calls, expected);
    let both = json(&[&["--by", "day,model"], &days[..]].concat());
    assert_eq!(both["by"][0]["keys"], json!(["2020-11-14", "m-large"]));
    assert_eq!(both["by"][1]["keys"], json!(["2020-11-15", "m-small"]));
    assert_eq!(both["by"][1]["calls"], 2);
    // Of times the newest are kept, as in text.
    let last = json(&[&["--by", "day", "-n", "2"], &days[..]].concat());
    let keys = last["by"].as_array().unwrap().iter().map(|day| &day["key"]);
    assert_eq!(keys.collect::<Vec<_>>(), ["2020-11-15", "2020-11-16"]);
    let last = json(&[&["--by", "day,model", "-n", "1"], &days[..]].concat());
    assert_eq!(last["by"], json!(both["by"].as_array().unwrap()[1..]));
    // Four sessions have one edit each, and one starts a sub-agent that never answers.
    let tools = json(&["--by", "tool"]);
    assert_eq!(tools["totals"]["calls"], 5);
    assert_eq!(tools["by"][0]["key"], "edit");
    assert_eq!(
        (&tools["by"][0]["calls"], &tools["by"][0]["failed"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(
        (&tools["by"][1]["key"], &tools["by"][1]["open"]),
        (&json!("task"), &json!(1))
    );
    ok(cli.run(&["tag", &found.rounding, "money", "bug"]));
    let tags = json(&["--by", "tag"]);
    let of = |tag: &str| {
        tags["by"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["key"] == tag)
            .cloned()
    };
    assert_eq!(of("money").unwrap()["cost_usd"], 1.84);
    assert_eq!(of("bug").unwrap()["cost_usd"], 1.84);
    assert_eq!(tags["totals"]["cost_usd"], 2.094, "each call once");
    let text = ok(cli.run(&["stats", "--by", "tag"])).stdout;
    assert!(
        text.contains("counts in each; the total has it once"),
        "{text}"
    );
    // 2020-10-02 11:00, 2020-11-14 14:05, 2020-11-15 10:00 and 10:02.
    let blocks = json(&["--blocks"])["blocks"].as_array().unwrap().clone();
    let starts: Vec<&str> = blocks
        .iter()
        .map(|it| it["start"].as_str().unwrap())
        .collect();
    assert_eq!(
        starts,
        [
            "2020-10-02T11:00:00.000Z",
            "2020-11-14T14:00:00.000Z",
            "2020-11-15T10:00:00.000Z"
        ]
    );
    assert_eq!(blocks[2]["spending"]["calls"], 2);
    assert_eq!(blocks[2]["active"], false);
    let averages = &json(&[])["averages"];
    assert_eq!(
        (
            &averages["per_day"]["count"],
            &averages["per_session"]["count"]
        ),
        (&json!(3), &json!(4))
    );
    // The task of the sub-agent is not a prompt.
    assert_eq!(averages["per_prompt"]["count"], 3);
    assert_eq!(averages["per_prompt"]["cost_usd"], 0.698);
}

#[test]
fn a_picture_is_written_once_and_wrong_groups_are_refused() {
    let cli = Cli::new();
    fill(&cli);
    let file = cli.work().join("spent.svg");
    let path = file.to_str().unwrap();
    ok(cli.run(&["stats", "--by", "model", "--svg", path]));
    let picture = std::fs::read_to_string(&file).unwrap();
    assert!(
        picture.starts_with("<svg ") && picture.contains("m-large"),
        "{picture}"
    );
    assert!(picture.contains("prefers-color-scheme:dark"), "{picture}");
    std::fs::write(&file, "mine").unwrap();
    let nowhere = cli.work().join("none/spent.svg");
    for (args, says) in [
        (&["--by", "model", "--svg", path][..], "already exists"),
        (
            &["--by", "model", "--svg", nowhere.to_str().unwrap()],
            "cannot write the picture",
        ),
        (&["--svg", path, "--force"], "--svg needs groups"),
        (&["--by", "foo"], "invalid value 'foo'"),
        (&["--by", "day,day"], "the same kind of group twice"),
        (&["--by", "day,model,agent"], "at most two"),
        (&["--blocks", "--by", "day"], "cannot be used with"),
        (&["--force"], "--svg"),
    ] {
        let ran = cli.run(&[&["stats"], args].concat());
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{args:?}: {ran:#?}"
        );
        assert!(ran.stderr.contains(says), "{args:?}: {ran:#?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    ok(cli.run(&["stats", "--blocks", "--svg", path, "--force"]));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg "));
}
