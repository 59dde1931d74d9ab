//! Every sample of Claude Code's files is recognised, read whole, and can be read in parts. What
//! independent readers found in them is in `expected`.
//!
//! The samples are not part of the project: without them the tests are skipped, and say so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are only read"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backtrail_formats::{
    ClaudeCode, EventCollector, Format, ReadReport, Source, ThreadId, testing,
};
use serde_json::Value;

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

/// Returns the uuids of the messages in the lines of a file.
fn uuids(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let is_message = |line: &Value| {
        matches!(line["type"].as_str(), Some("user" | "assistant")) && line["message"].is_object()
    };
    let messages = lines.filter(is_message);
    let uuids = messages.filter_map(|line| line["uuid"].as_str().map(str::to_owned));
    uuids.collect()
}

#[test]
fn no_message_is_lost_whatever_branch_it_is_on() {
    let Some((files, _)) = sorted_samples() else {
        return;
    };
    for path in files.iter().filter(|path| !is_log(path)) {
        let collected = read(path);
        let events = collected.threads.iter().flat_map(|thread| &thread.events);
        let keys: BTreeSet<String> = events.map(|event| event.key().to_owned()).collect();
        let lost: Vec<String> = uuids(path).difference(&keys).cloned().collect();
        assert!(lost.is_empty(), "{}: lost {lost:?}", path.display());
    }
    eprintln!("{} samples", files.len());
}

/// Returns whether a sample is the log of another program that contains parts of a session.
fn is_log(path: &Path) -> bool {
    path.ends_with("duplicate-assistant-response-2.jsonl")
}

#[test]
fn samples_are_recognised_and_those_of_others_are_not() {
    let Some((ours, others)) = sorted_samples() else {
        return;
    };
    let is_recognised =
        |path: &Path| Source::open(path).is_ok_and(|source| ClaudeCode.recognises(&source));
    for path in &ours {
        assert_eq!(is_recognised(path), !is_log(path), "{}", path.display());
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
