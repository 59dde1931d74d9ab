//! What the tests of samples share: where the samples are, what an independent reader finds in
//! one, and what ours does.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "samples are only read")]

use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail::{Block, Role, Usage};
use backtrail_formats::{Event, EventCollector, Format, ReadReport, Source};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Returns the directory of samples, if it exists.
pub(crate) fn samples() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!(
        "SKIPPED: needs the samples; there are none in {}",
        path.display()
    );
    None
}

/// Returns all files below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            match entry.path() {
                path if path.is_dir() => left.push(path),
                path => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Runs an independent reader on a file. `None` without Python.
pub(crate) fn independent(script: &str, file: &Path) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/independent")
        .join(script);
    let Ok(output) = Command::new("python3").arg(&script).arg(file).output() else {
        eprintln!("SKIPPED: needs python3; the other reader was not asked");
        return None;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", file.display());
    Some(serde_json::from_slice(&output.stdout).expect("it prints JSON"))
}

/// Reads a file with a format.
pub(crate) fn read(format: &dyn Format, file: &Path) -> (ReadReport, EventCollector) {
    let source = Source::open(file).expect("the sample can be read");
    assert!(
        format.recognises(&source),
        "{} is recognised",
        file.display()
    );
    let mut collected = EventCollector::default();
    let file = format.open(&source).expect("it can be read");
    let report = collected.read(file).expect("it can be read");
    (report, collected)
}

/// The totals of the file's own conversation.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) messages: u64,
    pub(crate) prompts: u64,
    pub(crate) calls: u64,
    pub(crate) results: u64,
    pub(crate) compactions: u64,
    pub(crate) usage: Usage,
    pub(crate) cost: f64,
}

/// Adds up the file's own conversation.
pub(crate) fn totals(collected: &EventCollector) -> Totals {
    let mut totals = Totals::default();
    for event in collected.main().map_or(&[][..], |main| &main.events) {
        match event {
            Event::Message(event) => {
                totals.messages += 1;
                totals.prompts += u64::from(event.message.is_prompt());
                totals.cost += event.cost_usd.unwrap_or(0.0);
                if let Some(usage) = &event.message.usage {
                    totals.usage.add(usage);
                }
                for block in &event.message.blocks {
                    totals.calls += u64::from(matches!(block, Block::ToolUse(_)));
                    totals.results += u64::from(matches!(block, Block::ToolResult(_)));
                }
            }
            Event::Summary(_) => totals.compactions += 1,
            Event::Usage(event) => {
                totals.usage.add(&event.usage);
                totals.cost += event.cost_usd.unwrap_or(0.0);
            }
        }
    }
    totals
}

/// Compares ours with the output of an independent reader.
pub(crate) fn assert_agrees(file: &Path, collected: &EventCollector, expected: &Value) {
    let totals = totals(collected);
    let usage = &totals.usage;
    let ours = serde_json::json!({
        "session": collected.session,
        "messages": totals.messages,
        "prompts": totals.prompts,
        "calls": totals.calls,
        "results": totals.results,
        "compactions": totals.compactions,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_input_tokens,
        "cache_write": usage.cache_creation_input_tokens,
        "cost": (totals.cost * 1e6).round() / 1e6,
    });
    for (name, value) in expected.as_object().expect("an object") {
        let (ours, value) = (&ours[name], value);
        let equal = match (ours.as_f64(), value.as_f64()) {
            (Some(ours), Some(value)) => (ours - value).abs() < 1e-6,
            _ => ours == value,
        };
        assert!(equal, "{}: {name}: {ours}, not {value}", file.display());
    }
}

/// Returns what a session says, in the form of the tables in `expected`: numbers, and hashes of
/// texts.
pub(crate) fn table_row(collected: &EventCollector) -> Map<String, Value> {
    let totals = totals(collected);
    let (mut prompts, mut answers, mut failed) = (Vec::new(), Vec::new(), 0_u64);
    let main = collected.main();
    let events = main.map_or(&[][..], |main| &main.events);
    for event in events {
        let Event::Message(event) = event else {
            continue;
        };
        for block in &event.message.blocks {
            match block {
                Block::Text(block) if event.message.is_prompt() => {
                    prompts.push(block.text.as_str());
                }
                Block::Text(block) if event.message.role == Role::Assistant => {
                    answers.push(block.text.as_str());
                }
                Block::ToolResult(result) => failed += u64::from(result.is_error),
                _ => {}
            }
        }
    }
    answers.retain(|text| !text.trim().is_empty());
    let times = || events.iter().filter_map(Event::at);
    let details = main.map(|main| main.details.clone()).unwrap_or_default();
    let directory = details.directory.as_deref().and_then(Path::to_str);
    let row = json!({
        "session": hashed(Some(&collected.session)),
        "messages": totals.messages,
        "prompts": totals.prompts,
        "prompt_text": hashed(Some(&prompts.join("\0"))),
        "answers": answers.len(),
        "answer_text": hashed(Some(&answers.join("\0"))),
        "calls": totals.calls,
        "results": totals.results,
        "failed": failed,
        "compactions": totals.compactions,
        "input": totals.usage.input_tokens,
        "output": totals.usage.output_tokens,
        "cache_read": totals.usage.cache_read_input_tokens,
        "cache_write": totals.usage.cache_creation_input_tokens,
        "cost": (totals.cost * 1e6).round() / 1e6,
        "model": hashed(details.model.as_deref()),
        "cwd": hashed(directory),
        "title": hashed(details.title.as_deref()),
        "first_at": times().next().map(backtrail::Timestamp::as_millis),
        "last_at": times().next_back().map(backtrail::Timestamp::as_millis),
        "threads": collected.threads.len(),
    });
    match row {
        Value::Object(row) => row,
        _ => Map::new(),
    }
}

/// Returns the first 16 digits of a text's SHA-256.
fn hashed(text: Option<&str>) -> Value {
    let hash = |text: &str| {
        let bytes = Sha256::digest(text.as_bytes());
        bytes
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    text.map_or(Value::Null, |text| Value::String(hash(text)))
}
