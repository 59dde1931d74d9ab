//! A session has the same title, turns, files, tokens and cost wherever they are shown: in
//! `list`, `show`, `stats` and exports, for people and as JSON, whether it was imported, recorded
//! or ran.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agents;
use crate::find::{fill, ok};
use crate::kit::{Cli, finish};

fn dollars(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn tokens(value: &Value) -> u64 {
    let parts = [
        "input_tokens",
        "output_tokens",
        "cache_write_tokens",
        "cache_read_tokens",
    ];
    parts
        .iter()
        .map(|name| value[*name].as_u64().unwrap())
        .sum()
}

/// Compares everything that is shown of every session of a store; returns how many those are.
fn compare(cli: &Cli) -> usize {
    let list = ok(cli.run(&["list", "--json"])).json();
    let list = list.as_array().unwrap();
    let by = ok(cli.run(&["stats", "--by", "session", "--json"])).json();
    let table = {
        let args = ["list", "--all", "--forks", "--runs", "--empty"];
        let mut command = cli.command(&args);
        ok(finish(command.env("COLUMNS", "300"), b"")).stdout
    };
    for row in list {
        let id = row["id"].as_str().unwrap();
        let shown = ok(cli.run(&["show", id, "--json"])).json();
        for name in [
            "title",
            "begins",
            "short",
            "turns",
            "files_changed",
            "tokens",
            "cost_usd",
        ] {
            assert_eq!(shown[name], row[name], "{name} of {id}");
        }
        let stats = ok(cli.run(&["stats", id, "--json"])).json();
        assert_eq!(stats["turns"], row["turns"], "turns of {id}");
        let files = &stats["files_changed"];
        assert_eq!(files, &row["files_changed"], "files of {id}");
        let total = row["tokens"]["total"].as_u64().unwrap_or(0);
        assert_eq!(tokens(&stats["totals"]), total, "tokens of {id}");
        assert_eq!(stats["totals"]["cost_usd"], row["cost_usd"], "cost of {id}");
        let mut rows = by["by"].as_array().unwrap().iter();
        let spent = rows.find(|spent| spent["key"] == id);
        assert_eq!(spent.map_or(0, tokens), total, "tokens of {id}");
        let cost = spent.map_or(0.0, |spent| dollars(&spent["cost_usd"]));
        assert_eq!(cost, dollars(&row["cost_usd"]), "cost of {id}");
        compare_text(cli, row, &table);
    }
    list.len()
}

/// Compares the line of a session in the table with the head that `show` prints.
fn compare_text(cli: &Cli, row: &Value, table: &str) {
    let short = row["short"].as_str().unwrap();
    let line = table.lines().find(|line| line.starts_with(short));
    let line = line.unwrap_or_else(|| panic!("{short}: {table}"));
    let columns: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    let last = columns[columns.len() - 4..].to_vec();
    assert_eq!(last, ["TURNS", "FILES", "TOKENS", "COST"]);
    let mut command = cli.command(&["show", row["id"].as_str().unwrap()]);
    let page = ok(finish(command.env("COLUMNS", "300"), b"")).stdout;
    // A long title takes several lines.
    let head: Vec<&str> = page.lines().take_while(|line| !line.is_empty()).collect();
    let turns = row["turns"].as_u64().unwrap();
    let words = match turns {
        1 => "1 turn".to_owned(),
        n => format!("{n} turns"),
    };
    let facts = head.join(" · ");
    if turns > 0 {
        assert!(
            facts.split(" · ").any(|fact| fact == words),
            "{words}: {facts}"
        );
    }
    // From the right: the cost, the tokens, the files, the turns.
    let start = table.lines().next().unwrap().find("TURNS").unwrap();
    let numbers: String = line.chars().skip(start).collect();
    let numbers: Vec<&str> = numbers.split("  ").map(str::trim).collect();
    let numbers: Vec<&str> = numbers.into_iter().filter(|it| !it.is_empty()).collect();
    assert_eq!(numbers[0], turns.to_string(), "{line}");
    assert_eq!(numbers[1], row["files_changed"].to_string(), "{line}");
    for number in &numbers[2..] {
        assert!(facts.contains(number), "{number}: {facts}");
    }
    let files = match row["files_changed"].as_u64().unwrap() {
        0 => return,
        1 => "1 file changed".to_owned(),
        n => format!("{n} files changed"),
    };
    assert!(facts.contains(&format!(" · {files}")), "{files}: {facts}");
    for to in ["html", "markdown"] {
        let id = row["id"].as_str().unwrap();
        let page = ok(cli.run(&["export", id, "--to", to])).stdout;
        assert!(page.contains(&files), "{files}: {to} of {id}");
    }
}

#[test]
fn sessions_of_every_origin_have_the_same_numbers_everywhere() {
    let cli = Cli::new();
    fill(&cli);
    agents::fill(&cli);
    let ran = agents::run(&cli, &["import"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let work = cli.work();
    for script in ["echo 1 > a; echo 2 > b", "echo 3 > a", "true"] {
        ok(cli.run(&["run", "--", "sh", "-c", script]));
    }
    let session = cli.new_session("run in here");
    for script in ["echo 4 > a", "echo 5 > a; echo 6 > c"] {
        ok(cli.run(&["run", "--session", &session, "--", "sh", "-c", script]));
    }
    assert!(compare(&cli) >= 12, "{}", work.display());
    let list = ok(cli.run(&["list", "--json"])).json();
    let mut rows = list.as_array().unwrap().iter();
    let row = rows.find(|row| row["id"] == session.as_str()).unwrap();
    assert_eq!(row["files_changed"], 2, "a twice, and c: {row}");
    // A rebuild has the same answers.
    ok(cli.run(&["rebuild"]));
    let again = ok(cli.run(&["list", "--json"])).json();
    assert_eq!(again, list);
    compare(&cli);
}

/// Returns the sessions that people shared, if they are there.
fn samples() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    dir.is_dir().then_some(dir)
}

#[test]
fn real_sessions_have_the_same_numbers_everywhere() {
    let Some(samples) = samples() else {
        eprintln!("SKIPPED: needs the samples; no real session is compared");
        return;
    };
    let cli = Cli::new();
    for agent in ["claude-code/agentcmd", "codex", "opencode", "pi", "goose"] {
        let ran = cli.run(&["import", samples.join(agent).to_str().unwrap()]);
        assert_ne!(ran.code, 2, "{ran:#?}");
    }
    assert!(compare(&cli) > 20);
}
