//! The figures of `stats` are those of the agents' raw files: tokens by day and model, calls by
//! tool and blocks of five hours, compared with a reader in Python that knows nothing of Backtrail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::find::ok;
use crate::kit::Cli;

/// Sessions with several days, models and tools; the last three are 4 and 5 hours apart.
const SAMPLES: [&str; 12] = [
    "claude-code/entire-51_a265047d72_3_full.jsonl",
    "claude-code/entire-bd_7375936c5c_0_full.jsonl",
    "claude-code/entire-ec_38b74f08e3_0_full.jsonl",
    "claude-code/agentcmd/full/full-session-two.jsonl",
    "claude-code/agentcmd/full/full-session-three.jsonl",
    "claude-code/agentcmd/full/full-session-four.jsonl",
    "codex/agentcmd/full/rollout-2025-09-24T19-22-20-01997e76-d124-7592-9cac-2ec05abbca08.jsonl",
    "codex/agentcmd/full/rollout-2025-09-24T20-12-23-01997ea4-a70d-7da3-8c20-c736db82a7c5.jsonl",
    "codex/agentcmd/full/rollout-2025-09-25T15-12-14-019982b8-3422-79e0-8b3b-05abaf4f3c3e.jsonl",
    "codex/claude-history-crate/sessions/2026/09/02/rollout-2026-09-02T08-00-00-01a00000-0000-7000-8000-000000000003.jsonl",
    "codex/claude-history-crate/sessions/2026/09/02/rollout-2026-09-02T12-00-00-01a00000-0000-7000-8000-000000000007.jsonl",
    "codex/claude-history-crate/archived_sessions/rollout-2026-09-02T13-00-00-01a00000-0000-7000-8000-000000000008.jsonl",
];

fn samples() -> Option<Vec<String>> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let paths: Vec<PathBuf> = SAMPLES.iter().map(|name| shared.join(name)).collect();
    if !paths.iter().all(|path| path.is_file()) {
        eprintln!("SKIPPED: needs the samples; some are not in {shared:?}");
        return None;
    }
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    Some(paths.iter().map(text).collect())
}

/// Returns what the script in Python reads from the files.
fn read_raw(paths: &[String]) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/usage.py");
    let Ok(read) = Command::new("python3").arg(script).args(paths).output() else {
        eprintln!("SKIPPED: needs python3; figures were not compared");
        return None;
    };
    assert!(read.status.success(), "{read:?}");
    Some(serde_json::from_slice(&read.stdout).unwrap())
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap()
}

/// Returns the tokens of a group: input, output, cache read and cache write.
fn tokens(row: &Value) -> [u64; 4] {
    let names = ["input", "output", "cache_read", "cache_write"];
    names.map(|name| number(row, &format!("{name}_tokens")))
}

#[test]
fn figures_are_those_of_the_raw_files() {
    let Some(paths) = samples() else { return };
    let Some(expected) = read_raw(&paths) else {
        return;
    };
    let cli = Cli::new();
    let import: Vec<&str> = ["import"]
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .collect();
    ok(cli.run(&import));

    let stats = |args: &[&str]| ok(cli.run(&[&["stats", "--json"], args].concat())).json();
    let by_day = stats(&["--by", "day,model"]);
    let mut days = BTreeMap::new();
    for row in by_day["by"].as_array().unwrap() {
        let [day, model] = [0, 1].map(|n| row["keys"][n].as_str().unwrap());
        days.insert(format!("{day} {model}"), tokens(row));
    }
    assert!(days.len() > 6, "{days:?}");
    assert_eq!(json!(days), expected["days"]);

    let by_tool = stats(&["--by", "tool"]);
    let mut tools = BTreeMap::new();
    for row in by_tool["by"].as_array().unwrap() {
        tools.insert(
            row["key"].as_str().unwrap().to_owned(),
            number(row, "calls"),
        );
    }
    assert!(tools.len() > 10, "{tools:?}");
    assert_eq!(json!(tools), expected["tools"]);

    let blocks = stats(&["--blocks"]);
    let blocks = blocks["blocks"].as_array().unwrap().iter().map(|block| {
        let start: jiff::Timestamp = block["start"].as_str().unwrap().parse().unwrap();
        json!({
            "start": start.as_millisecond(),
            "calls": number(&block["spending"], "calls"),
            "tokens": tokens(&block["spending"]).iter().sum::<u64>(),
        })
    });
    let blocks: Vec<Value> = blocks.collect();
    assert!(blocks.len() > 6, "{blocks:?}");
    assert_eq!(json!(blocks), expected["blocks"]);
}
