//! Our reader and an independent one find the same in every sample of Claude Code's files, and
//! every sample is recognised and can be read in parts.
//!
//! The samples are not part of the project: without them the tests are skipped, and say so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are only read"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail::{Block, Usage};
use backtrail_formats::{
    ClaudeCode, Event, EventCollector, Format, ReadReport, Source, ThreadId, testing,
};
use serde::Deserialize;

fn samples() -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    if !shared.is_dir() {
        eprintln!(
            "SKIPPED: needs the samples; there are none in {}",
            shared.display()
        );
        return None;
    }
    Some(shared)
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files_below(&path, found),
            false => found.push(path),
        }
    }
}

/// Returns the samples of Claude Code and those of other agents.
fn sorted_samples() -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
    let root = samples()?;
    let mut all = Vec::new();
    files_below(&root, &mut all);
    let is_session = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("jsonl" | "json")) && !path.ends_with(".meta.json")
    };
    let ours = [
        root.join("claude-code"),
        root.join("matrix-agent-sessions/claude"),
    ];
    let (ours, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|path| ours.iter().any(|ours| path.starts_with(ours)));
    let name = |path: &PathBuf| path.to_string_lossy().into_owned();
    let ours = ours
        .into_iter()
        .filter(|path| is_session(path) && !name(path).ends_with(".meta.json"));
    Some((ours.collect(), others))
}

fn read(path: &Path) -> EventCollector {
    let source = Source::open(path).unwrap();
    let mut collected = EventCollector::default();
    collected.read(ClaudeCode.open(&source).unwrap()).unwrap();
    collected
}

/// What the independent reader finds in a file.
#[derive(Debug, Deserialize)]
struct Counted {
    session: Option<String>,
    messages: usize,
    uuids: BTreeSet<String>,
    calls: usize,
    results: usize,
    tokens: [u64; 4],
    main: Vec<String>,
}

fn counted(files: &[PathBuf]) -> Option<BTreeMap<String, Counted>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/claude_code.py");
    let output = match Command::new("python3").arg(script).args(files).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: needs python3; {error}");
            return None;
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// What our reader finds in a file.
#[derive(Default)]
struct Found {
    keys: BTreeSet<String>,
    calls: BTreeSet<String>,
    results: BTreeSet<String>,
    usage: HashMap<String, Usage>,
}

fn found(collected: &EventCollector) -> Found {
    let mut found = Found::default();
    for event in collected.threads.iter().flat_map(|thread| &thread.events) {
        found.keys.insert(event.key().to_owned());
        let Event::Message(event) = event else {
            continue;
        };
        for block in &event.message.blocks {
            match block {
                Block::ToolUse(call) => found.calls.insert(call.id.to_string()),
                Block::ToolResult(result) => found.results.insert(result.tool_use_id.to_string()),
                _ => false,
            };
        }
        if let Some(usage) = &event.message.usage {
            let response = event.response_id.clone().unwrap_or(event.key.clone());
            found.usage.insert(response, usage.clone());
        }
    }
    found
}

#[test]
fn an_independent_reader_finds_the_same_in_every_sample() {
    let Some((files, _)) = sorted_samples() else {
        return;
    };
    let Some(expected) = counted(&files) else {
        return;
    };
    for path in &files {
        let expected = &expected[&path.to_string_lossy().into_owned()];
        let collected = read(path);
        let found = found(&collected);
        let name = path.display();
        if let Some(session) = &expected.session {
            let ours = collected.session.split("/agent/").next();
            assert_eq!(ours, Some(session.as_str()), "{name}: session");
        }
        let lost: Vec<_> = expected.uuids.difference(&found.keys).collect();
        assert!(lost.is_empty(), "{name}: lost {lost:?}");
        assert_eq!(found.keys.len(), expected.messages, "{name}: messages");
        assert_eq!(found.calls.len(), expected.calls, "{name}: calls");
        assert_eq!(found.results.len(), expected.results, "{name}: results");
        let mut used = Usage::default();
        found.usage.values().for_each(|usage| used.add(usage));
        let tokens = [
            used.input_tokens,
            used.output_tokens,
            used.cache_creation_input_tokens,
            used.cache_read_input_tokens,
        ];
        assert_eq!(tokens, expected.tokens, "{name}: tokens");
        let main = collected.main().map_or(&[][..], |main| &main.events);
        let main: Vec<&str> = main.iter().map(Event::key).collect();
        let mut rest = main.iter();
        for uuid in &expected.main {
            assert!(
                rest.any(|key| key == uuid),
                "{name}: {uuid} is not on the main line"
            );
        }
    }
    eprintln!("{} samples", files.len());
}

#[test]
fn samples_are_recognised_and_those_of_others_are_not() {
    let Some((ours, others)) = sorted_samples() else {
        return;
    };
    let is_recognised =
        |path: &Path| Source::open(path).is_ok_and(|source| ClaudeCode.recognises(&source));
    for path in &ours {
        // The log of another program that contains parts of a session.
        let is_log = path.ends_with("duplicate-assistant-response-2.jsonl");
        assert_eq!(is_recognised(path), !is_log, "{}", path.display());
    }
    for path in &others {
        assert!(!is_recognised(path), "{}", path.display());
    }
}

#[test]
fn linear_samples_have_no_branches() {
    let Some((files, _)) = sorted_samples() else {
        return;
    };
    for path in files.iter().filter(|path| {
        let name = path.to_string_lossy();
        name.contains("entire-") || name.contains("same-session")
    }) {
        let collected = read(path);
        let branches = collected.threads.iter();
        let branches = branches.filter(|branch| matches!(branch.thread.id, ThreadId::Branch(_)));
        assert_eq!(branches.count(), 0, "{}", path.display());
    }
}

#[test]
fn samples_are_read_in_parts() {
    let Some((files, _)) = sorted_samples() else {
        return;
    };
    for path in &files {
        let bytes = std::fs::read(path).unwrap();
        let mut collected = EventCollector::default();
        let mut earlier = ReadReport::default();
        let parts = 7;
        for part in 1..=parts {
            let source = Source::from_bytes(path, &bytes[..bytes.len() * part / parts]);
            let resumed = testing::resume(&ClaudeCode, &source, &earlier, &mut collected).unwrap();
            earlier = resumed.unwrap_or_else(|| {
                collected = EventCollector::default();
                collected.read(ClaudeCode.open(&source).unwrap()).unwrap()
            });
        }
        let mut whole = EventCollector::default();
        let source = Source::from_bytes(path, bytes);
        whole.read(ClaudeCode.open(&source).unwrap()).unwrap();
        assert!(collected.threads == whole.threads, "{}", path.display());
    }
}
