//! What `backtrail import` makes of an agent's home, against the script and the server's log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backtrail_agent_tests::{Call, Exchange, Kind, Usage};
use serde_json::Value;

use crate::scenario::Scenario;
use crate::turns::MARKERS;

/// The texts of results, by the id of the call.
type Results = BTreeMap<String, Vec<String>>;

/// A conversation, without what the agent adds to it.
#[derive(Debug, Default)]
struct Told {
    prompts: Vec<String>,
    thoughts: Vec<String>,
    answers: Vec<String>,
    calls: Vec<Call>,
    results: Results,
}

/// The agent's home has one session, with exactly the prompts, thoughts, answers, calls, results and
/// usage of the script and the log; it can be exported again, and importing it again adds nothing.
pub(crate) fn is_exact(scenario: &Scenario<'_>) {
    let imported = import(scenario);
    // Beside a session that it resumes in another minute, Gemini CLI leaves a file without one.
    let number = |field: &str| imported[field].as_u64().unwrap_or_default();
    let sessions = number("found") - number("without_conversation");
    // `run` has imported it already.
    let added = number("new") + number("updated");
    assert_eq!((sessions, added), (1, 0), "{imported:#}");
    assert_eq!(imported["errors"], Value::Array(Vec::new()), "{imported:#}");
    for field in ["damaged_lines", "unknown_records", "unfinished_files"] {
        assert_eq!(imported[field], 0, "{field}: {imported:#}");
    }
    let session = session(scenario);
    let shown = scenario
        .backtrail(&["show", &session, "--json"])
        .succeeded()
        .json();
    let log = scenario.server.exchanges();
    let (is, should_be) = (shown_as(&shown), logged(&log, scenario));
    assert_eq!(is.prompts, should_be.prompts);
    assert_eq!(is.thoughts, should_be.thoughts);
    assert_eq!(is.answers, should_be.answers);
    assert_eq!(is.calls, should_be.calls);
    let results =
        [is.results, should_be.results].map(|results| without_reminders(scenario, results));
    assert_eq!(results[0], results[1]);
    usage_is_that_of_the_log(scenario, &session, &log);
    export_is_the_file(scenario, &session);
    importing_again_adds_nothing(scenario, &shown);
}

/// Imports, and returns what is reported about this agent.
fn import(scenario: &Scenario<'_>) -> Value {
    let imported = scenario.backtrail(&["import", "--json"]).succeeded().json();
    imported["agents"][scenario.agent.name].clone()
}

/// Returns the id of the one session of the agent.
pub(crate) fn session(scenario: &Scenario<'_>) -> String {
    let words = ["list", "--all", "--json", "--agent", scenario.agent.name];
    let listed = scenario.backtrail(&words).succeeded().json();
    let sessions = listed.as_array().expect("list prints a list");
    assert_eq!(sessions.len(), 1, "{listed:#}");
    sessions[0]["id"]
        .as_str()
        .expect("a session has an id")
        .to_owned()
}

/// Returns what `show --json` has of the conversation.
fn shown_as(shown: &Value) -> Told {
    let mut told = Told::default();
    for message in shown["messages"].as_array().expect("show prints messages") {
        let is_user = message["role"] == "user";
        for block in message["blocks"].as_array().expect("a message has blocks") {
            let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str().unwrap_or_default() {
                "text" if is_user && MARKERS.iter().any(|marker| text("text").contains(marker)) => {
                    told.prompts.push(text("text"));
                }
                "text" if message["role"] == "assistant" => told.answers.push(text("text")),
                "thinking" => told.thoughts.push(text("thinking")),
                "tool_use" => told.calls.push(Call {
                    id: text("id"),
                    name: text("name"),
                    arguments: block["input"].clone(),
                }),
                "tool_result" => {
                    let results = told.results.entry(text("tool_use_id")).or_default();
                    results.push(text("output"));
                }
                _ => {}
            }
        }
    }
    told
}

/// Returns what the server saw of the conversation: its own answers, and the results in the
/// requests.
fn logged(log: &[Exchange], scenario: &Scenario<'_>) -> Told {
    let mut told = Told::default();
    for turn in &scenario.turns {
        told.prompts.push(as_sent(scenario, &turn.prompt));
    }
    let turns = || {
        log.iter()
            .filter(|exchange| matches!(exchange.kind, Kind::Turn { .. }))
    };
    for answer in turns().filter_map(|exchange| exchange.answer.as_ref()) {
        told.thoughts.extend(answer.thinking.clone());
        told.answers.push(answer.text.clone());
        told.calls.extend(answer.calls.iter().cloned());
    }
    for exchange in turns() {
        for (id, text) in exchange.request.results() {
            let call = told.calls.iter().find(|call| call.id == id);
            let id = as_kept(scenario, call.expect("a result is that of a call"));
            // Later requests repeat it, and those of Gemini CLI after a resume do so twice.
            let first = || vec![text.to_owned()];
            told.results.entry(id).or_insert_with(first);
        }
    }
    for call in &mut told.calls {
        call.id = as_kept(scenario, call);
    }
    told
}

/// Claude Code adds reminders to the results that it sends, and keeps them elsewhere.
fn without_reminders(scenario: &Scenario<'_>, mut results: Results) -> Results {
    if scenario.agent.name == "claude-code" {
        for text in results.values_mut().flatten() {
            let end = text.find("<system-reminder>").unwrap_or(text.len());
            *text = text[..end].trim_end().to_owned();
        }
    }
    results
}

/// opencode quotes a prompt from the command line.
fn as_sent(scenario: &Scenario<'_>, prompt: &str) -> String {
    match scenario.agent.name {
        "opencode" => format!("\"{prompt}\""),
        _ => prompt.to_owned(),
    }
}

/// Gemini CLI puts the tool's name before the id of a call.
fn as_kept(scenario: &Scenario<'_>, call: &Call) -> String {
    match scenario.agent.name {
        "gemini-cli" => format!("{}__{}", call.name, call.id),
        _ => call.id.clone(),
    }
}

/// goose knows only how much was read, not how much of it the cache had, and no reasoning.
fn usage_is_that_of_the_log(scenario: &Scenario<'_>, session: &str, log: &[Exchange]) {
    let turns = log
        .iter()
        .filter(|exchange| matches!(exchange.kind, Kind::Turn { .. }));
    let answers = turns.filter_map(|exchange| exchange.answer.as_ref());
    let mut expected: Usage = answers.map(|answer| answer.usage).sum();
    if scenario.agent.name == "goose" {
        expected.input += std::mem::take(&mut expected.cache_read);
        expected.reasoning = 0;
    }
    let stats = scenario
        .backtrail(&["stats", session, "--json"])
        .succeeded()
        .json();
    let totals = &stats["totals"];
    let number = |field: &str| totals[field].as_u64().unwrap_or_default();
    let is = Usage {
        input: number("input_tokens"),
        output: number("output_tokens"),
        cache_read: number("cache_read_tokens"),
        cache_write: number("cache_write_tokens"),
        reasoning: number("reasoning_tokens"),
    };
    assert_eq!(is, expected, "{totals:#}");
    let counts = ["turns", "failed_tool_calls", "open_tool_calls"].map(|field| &stats[field]);
    assert_eq!(counts, [3, 1, 0], "{stats:#}");
    assert_eq!(stats["messages"]["prompts"], 3, "{stats:#}");
}

/// An exported session is the agent's file, byte for byte. One that is in a database is written as
/// lines; imported elsewhere, they are the same session.
fn export_is_the_file(scenario: &Scenario<'_>, session: &str) {
    let exported = scenario.beside("exported");
    let file = exported.to_string_lossy();
    let name = scenario.agent.name;
    scenario
        .backtrail(&["export", session, "--to", name, "--output", &file])
        .succeeded();
    let bytes = std::fs::read(&exported).unwrap();
    if matches!(name, "opencode" | "goose") {
        return same_session_elsewhere(scenario, session, &exported);
    }
    let mut files = Vec::new();
    files_below(&scenario.place.home, &mut files);
    let is_same = |path: &&PathBuf| std::fs::read(path).is_ok_and(|content| content == bytes);
    let same: Vec<_> = files.iter().filter(is_same).collect();
    assert_eq!(
        same.len(),
        1,
        "{same:?} have the {} exported bytes",
        bytes.len()
    );
}

fn same_session_elsewhere(scenario: &Scenario<'_>, session: &str, exported: &Path) {
    let store = scenario.beside("another-store");
    let store = store.to_string_lossy();
    let there = |words: &[&str]| {
        scenario
            .backtrail(&[words, &["--store", &store]].concat())
            .succeeded()
    };
    there(&["import", &exported.to_string_lossy()]);
    let copy = there(&["show", session, "--json"]).json();
    let original = scenario.backtrail(&["show", session, "--json"]).json();
    assert_eq!(without_numbers(&copy), without_numbers(&original));
}

/// Returns the messages without their numbers: a session that grew has other records in between.
fn without_numbers(shown: &Value) -> Value {
    let mut messages = shown["messages"].clone();
    for message in messages.as_array_mut().expect("show prints messages") {
        message["seq"] = Value::Null;
    }
    messages
}

fn files_below(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            files_below(&path, files);
        } else if kind.is_file() {
            files.push(path);
        }
    }
}

fn importing_again_adds_nothing(scenario: &Scenario<'_>, shown: &Value) {
    let again = import(scenario);
    let counts = ["new", "updated", "messages"].map(|field| &again[field]);
    assert_eq!(counts, [0, 0, 0], "{again:#}");
    assert_eq!(again["unchanged"], again["found"], "{again:#}");
    let session = session(scenario);
    let now = scenario
        .backtrail(&["show", &session, "--json"])
        .succeeded()
        .json();
    assert_eq!(now["messages"], shown["messages"]);
}
