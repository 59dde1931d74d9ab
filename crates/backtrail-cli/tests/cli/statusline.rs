//! `statusline` prints one line at once, whatever it is given: figures that are right and say
//! where they come from, and whether undo is ready.

mod input;
mod installed;
mod undo;

use serde_json::{Value, json};

use crate::find::ok;
use crate::kit::{Cli, Ran, finish};

const SESSION: &str = "0b1c2d3e-2222-4000-8000-000000000001";

/// A call of Claude Code's, some hours ago. Tokens: input, output.
fn call(n: u32, hours_ago: i64, tokens: (u64, u64)) -> Value {
    let at = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours_ago);
    json!({
        "type": "assistant", "uuid": format!("line-{n}"), "sessionId": SESSION,
        "parentUuid": n.checked_sub(1).map(|n| format!("line-{n}")),
        "cwd": "/w/shop", "version": "2.1.300", "timestamp": at.to_string(),
        "message": {
            "id": format!("msg-{n}"), "role": "assistant", "model": "model-1", "type": "message",
            "content": [{"type": "text", "text": "done"}],
            "usage": {"input_tokens": tokens.0, "output_tokens": tokens.1},
        },
    })
}

/// A store with a session: $12 were spent 72 hours ago, and $5.01 just now.
fn with_history() -> Cli {
    let cli = Cli::new();
    std::fs::create_dir_all(cli.store()).unwrap();
    let prices = "auto_import = false\n[prices.model-1]\ninput = 1\noutput = 10\n";
    std::fs::write(cli.store().join("config.toml"), prices).unwrap();
    let lines = [
        call(0, 72, (2_000_000, 1_000_000)),
        call(1, 0, (10_000, 500_000)),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = cli.work().join(format!("{SESSION}.jsonl"));
    std::fs::write(&file, text).unwrap();
    ok(cli.run(&["import", file.to_str().unwrap()]));
    std::fs::remove_file(&file).unwrap();
    ok(cli.run(&["rebuild"]));
    cli
}

/// Runs the verb with a payload, without colours.
fn status(cli: &Cli, payload: &Value, args: &[&str]) -> Ran {
    let mut command = cli.command(&[&["statusline"], args].concat());
    command.env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
    let ran = finish(&mut command, payload.to_string().as_bytes());
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
    ran
}

fn line(cli: &Cli, payload: &Value) -> String {
    let ran = status(cli, payload, &[]);
    let line = ran.stdout.strip_suffix('\n').unwrap_or_default().to_owned();
    assert!(!line.contains('\n'), "{ran:#?}");
    line
}

/// What Claude Code reports, as a whole.
fn whole(cli: &Cli) -> Value {
    json!({
        "hook_event_name": "Status", "session_id": SESSION, "cwd": cli.work(),
        "transcript_path": "/nowhere/x.jsonl", "version": "2.1.300",
        "workspace": {"current_dir": cli.work(), "project_dir": cli.work()},
        "model": {"id": "claude-opus-4-1", "display_name": "Opus"},
        "cost": {"total_cost_usd": 0.4249, "total_duration_ms": 45000, "total_api_duration_ms": 0},
        "context_window": {"context_window_size": 200000, "used_percentage": 34,
            "current_usage": {"input_tokens": 8, "output_tokens": 1}},
        "rate_limits": {"five_hour": {"used_percentage": 23.5, "resets_at": 1_794_873_600},
            "seven_day": {"used_percentage": 41.2, "resets_at": 1_794_873_600}},
    })
}

/// Asks until a day has not ended meanwhile.
fn within_a_day<T>(ask: impl Fn() -> T) -> T {
    loop {
        let day = || jiff::Timestamp::now().as_second().div_euclid(3600);
        let before = day();
        let answer = ask();
        if day() == before {
            return answer;
        }
    }
}

#[test]
fn figures_are_those_worked_out_by_hand_and_say_where_they_come_from() {
    let (cli, shown) = within_a_day(|| {
        let cli = with_history();
        let shown = line(&cli, &json!({"session_id": SESSION}));
        (cli, shown)
    });
    // $12 and $5.01. Claude Code logs partial output counts, so that all are lower bounds.
    let expected = "$17.01+ · today $5.01+ · block $5.01+ · NOT PROTECTED (no checkpoint yet)";
    assert_eq!(shown, expected);
    let json = status(&cli, &json!({"session_id": SESSION}), &["--json"]).json();
    assert_eq!(json["line"], expected);
    assert_eq!(
        json["session_cost"],
        json!({"usd": 17.01, "lower_bound": true, "source": "computed"})
    );
    assert_eq!(json["block"]["usd"], 5.01);
    for missing in ["model", "context", "quota"] {
        assert_eq!(json[missing], Value::Null, "{json}");
    }
}

#[test]
fn computed_costs_are_those_of_stats_to_the_cent() {
    let (known, day, blocks, one) = within_a_day(|| {
        let cli = with_history();
        let known = status(&cli, &json!({"session_id": SESSION}), &["--json"]).json();
        let stats = |args: &[&str]| ok(cli.run(&[&["stats", "--json"], args].concat())).json();
        let today = jiff::Zoned::now().in_tz("UTC").unwrap().date().to_string();
        let by_day = stats(&["--by", "day"])["by"].as_array().unwrap().clone();
        let day = by_day.into_iter().find(|row| row["key"] == *today);
        (known, day.unwrap(), stats(&["--blocks"]), stats(&[SESSION]))
    });
    assert_eq!(known["today"]["usd"], day["cost_usd"], "{day}");
    assert_eq!(known["session_cost"]["usd"], one["cost_usd"], "{one}");
    let block = blocks["blocks"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(block["active"], true, "{block}");
    assert_eq!(known["block"]["start"], block["start"], "{block}");
    assert_eq!(
        known["block"]["usd"], block["spending"]["cost_usd"],
        "{block}"
    );
}

#[test]
fn what_the_agent_reports_wins_and_has_no_mark() {
    let (cli, shown) = within_a_day(|| {
        let cli = with_history();
        let shown = line(&cli, &whole(&cli));
        (cli, shown)
    });
    let rest = "· 34% context · 5h 24%, 7d 41% · NOT PROTECTED (no checkpoint in this session)";
    let rest = rest.replace("in this session", "yet");
    assert_eq!(
        shown,
        format!("Opus · $0.42 · today $5.01+ · block $5.01+ {rest}")
    );
    let json = status(&cli, &whole(&cli), &["--json"]).json();
    for name in ["model", "session_cost", "context", "quota"] {
        assert_eq!(json[name]["source"], "official", "{json}");
    }
    assert_eq!(json["session_cost"]["usd"], 0.4249);
    assert_eq!(
        json["quota"]["limits"][0]["resets_at"],
        "2026-11-17T00:00:00.000Z"
    );
}

#[test]
fn a_call_that_needs_no_guess_is_computed_and_the_context_of_a_transcript_estimated() {
    let cli = Cli::new();
    let transcript = cli.work().join("t.jsonl");
    let text = format!("{}\n{}\n", call(0, 1, (10, 1)), call(1, 0, (50_000, 9)));
    std::fs::write(&transcript, text).unwrap();
    let payload = json!({"transcript_path": transcript});
    let json = status(&cli, &payload, &["--json"]).json();
    assert_eq!(json["context"]["source"], "estimated");
    assert_eq!(json["context"]["tokens"], 50_000);
    assert!(line(&cli, &payload).starts_with("~25% context · "));
    // Nothing else than a file is opened.
    let payload = json!({"transcript_path": "/dev/zero"});
    assert!(line(&cli, &payload).starts_with("NOT PROTECTED"));

    // A session of our own reports its tokens whole.
    let store = cli.store();
    std::fs::create_dir_all(&store).unwrap();
    std::fs::write(
        store.join("config.toml"),
        "prices.m = {input = 1, output = 1}",
    )
    .unwrap();
    let message = json!({"type": "message", "message": {"role": "assistant", "blocks": [{"type": "text", "text": "a"}],
        "usage": {"input_tokens": 2_000_000, "output_tokens": 0}}, "model": "m"});
    let recorded = cli.run_with(&["record", "--json"], format!("{message}\n").as_bytes());
    assert_eq!(recorded.code, 0, "{recorded:#?}");
    ok(cli.run(&["rebuild"]));
    let shown = within_a_day(|| line(&cli, &json!({})));
    assert!(
        shown.starts_with("today $2.00* · block $2.00* · "),
        "{shown}"
    );
}

#[test]
fn a_template_has_its_parts_and_those_without_a_value_vanish() {
    let cli = Cli::new();
    let set = |template: &str| cli.run(&["config", "set", "statusline.template", template]);
    let payload = json!({"model": "m-1", "cost": {"total_cost_usd": 2}});
    ok(set(
        "<{model}> | spent {session_cost}! | {quota} of {context} | here",
    ));
    assert_eq!(line(&cli, &payload), "<m-1> | spent $2.00! | here");
    let wrong = set("{model} · {cost}");
    assert_eq!(wrong.code, 2, "{wrong:#?}");
    assert!(wrong.stderr.contains("there is no {cost}"), "{wrong:#?}");
    assert!(wrong.stderr.contains("{session_cost}"), "{wrong:#?}");

    // Whatever is in the file, the line is there.
    let file = cli.store().join("config.toml");
    for text in ["statusline.template = \"{cost}\"", "statusline = 5", "= ["] {
        std::fs::write(&file, text).unwrap();
        let shown = line(&cli, &payload);
        assert!(shown.starts_with("m-1 · $2.00 · NOT"), "{text}: {shown}");
    }
}

#[test]
fn a_narrow_line_keeps_whether_undo_is_ready() {
    let cli = Cli::new();
    let payload = whole(&cli);
    let at = |columns: &str, locale: &str| {
        let mut command = cli.command(&["statusline"]);
        command.env("NO_COLOR", "1").env("LC_ALL", locale);
        command.env("COLUMNS", columns);
        finish(&mut command, payload.to_string().as_bytes()).stdout
    };
    let undo = "NOT PROTECTED (no checkpoint yet)";
    assert_eq!(
        at("70", "C.UTF-8"),
        format!("Opus · $0.42 · 34% context · {undo}\n")
    );
    assert_eq!(at("40", "C.UTF-8"), format!("Opus · {undo}\n"));
    assert_eq!(at("20", "C.UTF-8"), "NOT PROTECTED (no c…\n");
    assert_eq!(at("20", "C"), "NOT PROTECTED (no c.\n");
    assert_eq!(
        at("200", "C"),
        format!("Opus | $0.42 | 34% context | 5h 24%, 7d 41% | {undo}\n")
    );
}

#[test]
fn without_a_catalogue_or_a_store_the_rest_is_there_and_nothing_is_created() {
    let cli = Cli::new();
    let shown = line(&cli, &whole(&cli));
    assert!(shown.starts_with("Opus · $0.42 · 34% context"), "{shown}");
    assert!(!cli.store().exists(), "looking creates nothing");

    let cli = with_history();
    let derived = cli.store().join("derived");
    std::fs::remove_dir_all(&derived).unwrap();
    let shown = line(&cli, &json!({"session_id": SESSION, "model": "m-1"}));
    assert_eq!(shown, "m-1 · NOT PROTECTED (no checkpoint yet)");
    assert!(!derived.exists(), "it does not catch up");
}

/// Each statement by itself would ask for its locks: hundreds of system calls.
#[test]
fn the_catalogue_is_not_locked_for_each_statement() {
    if !crate::traced::is_there("how often the catalogue is locked") {
        return;
    }
    let cli = with_history();
    let log = cli.work().join("locks");
    let payload = json!({"session_id": SESSION, "cwd": cli.work()});
    let options = ["-e", "trace=fcntl", "-o", log.to_str().unwrap()];
    let mut command = crate::traced::under(&options, &cli.command(&["statusline"]));
    let ran = finish(&mut command, payload.to_string().as_bytes());
    assert!(ran.stdout.contains('$'), "{ran:#?}");
    let calls = std::fs::read_to_string(&log).unwrap();
    let locks = calls.lines().filter(|call| call.contains("F_RDLCK"));
    assert!((1..=4).contains(&locks.count()), "{calls}");
}
