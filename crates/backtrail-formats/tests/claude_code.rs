//! Every sample of Claude Code's files says what an independent reader finds in it, is
//! recognised, and can be read in parts.
//!
//! The samples are not part of the project: without them the tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot read its files has failed"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail::{Block, Usage};
use backtrail_formats::{ClaudeCode, Format, Gathered, Item, ReadError, Resume, Source, Which};
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

/// Returns the samples of Claude Code, and those of everybody else.
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

fn read(path: &Path) -> Gathered {
    let source = Source::open(path).unwrap();
    let mut gathered = Gathered::default();
    ClaudeCode.read(&source, None, &mut gathered).unwrap();
    gathered
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

/// What was told, counted.
#[derive(Default)]
struct Told {
    keys: BTreeSet<String>,
    calls: BTreeSet<String>,
    results: BTreeSet<String>,
    used: HashMap<String, Usage>,
}

fn told(gathered: &Gathered) -> Told {
    let mut told = Told::default();
    for item in gathered.threads.iter().flat_map(|thread| &thread.items) {
        told.keys.insert(item.key().to_owned());
        let Item::Said(said) = item else {
            continue;
        };
        for block in &said.message.blocks {
            match block {
                Block::ToolUse(call) => told.calls.insert(call.id.to_string()),
                Block::ToolResult(result) => told.results.insert(result.tool_use_id.to_string()),
                _ => false,
            };
        }
        if let Some(usage) = &said.message.usage {
            let response = said.response_id.clone().unwrap_or(said.key.clone());
            told.used.insert(response, usage.clone());
        }
    }
    told
}

#[test]
fn every_sample_says_what_an_independent_reader_finds() {
    let Some((files, _)) = sorted_samples() else {
        return;
    };
    let Some(expected) = counted(&files) else {
        return;
    };
    for path in &files {
        let expected = &expected[&path.to_string_lossy().into_owned()];
        let gathered = read(path);
        let told = told(&gathered);
        let name = path.display();
        if let Some(session) = &expected.session {
            let ours = gathered.session.split("/agent/").next();
            assert_eq!(ours, Some(session.as_str()), "{name}: session");
        }
        let lost: Vec<_> = expected.uuids.difference(&told.keys).collect();
        assert!(lost.is_empty(), "{name}: lost {lost:?}");
        assert_eq!(told.keys.len(), expected.messages, "{name}: messages");
        assert_eq!(told.calls.len(), expected.calls, "{name}: calls");
        assert_eq!(told.results.len(), expected.results, "{name}: results");
        let mut used = Usage::default();
        told.used.values().for_each(|usage| used.add(usage));
        let tokens = [
            used.input_tokens,
            used.output_tokens,
            used.cache_creation_input_tokens,
            used.cache_read_input_tokens,
        ];
        assert_eq!(tokens, expected.tokens, "{name}: tokens");
        let main = gathered.main().map_or(&[][..], |main| &main.items);
        let main: Vec<&str> = main.iter().map(Item::key).collect();
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
    let recognised =
        |path: &Path| Source::open(path).is_ok_and(|source| ClaudeCode.recognises(&source));
    for path in &ours {
        // The log of another program that has pieces of one in it.
        let is_log = path.ends_with("duplicate-assistant-response-2.jsonl");
        assert_eq!(recognised(path), !is_log, "{}", path.display());
    }
    for path in &others {
        assert!(!recognised(path), "{}", path.display());
    }
}

#[test]
fn samples_have_no_branch_that_nobody_took() {
    let Some((files, _)) = sorted_samples() else {
        return;
    };
    for path in files.iter().filter(|path| {
        let name = path.to_string_lossy();
        name.contains("entire-") || name.contains("same-session")
    }) {
        let gathered = read(path);
        let branches = gathered.threads.iter();
        let branches = branches.filter(|told| matches!(told.thread.which, Which::Branch(_)));
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
        let mut gathered = Gathered::default();
        let mut resume: Option<Resume> = None;
        let parts = 7;
        for part in 1..=parts {
            if resume.is_none() {
                gathered = Gathered::default();
            }
            let upto = &bytes[..bytes.len() * part / parts];
            let source = Source::from_bytes(path, upto);
            let told = match ClaudeCode.read(&source, resume.as_ref(), &mut gathered) {
                Err(ReadError::StartOver) => {
                    gathered = Gathered::default();
                    ClaudeCode.read(&source, None, &mut gathered)
                }
                told => told,
            };
            let told = told.unwrap();
            resume = told.state.map(|state| Resume {
                read_to: told.read_to,
                state,
            });
        }
        let mut whole = Gathered::default();
        let source = Source::from_bytes(path, bytes);
        ClaudeCode.read(&source, None, &mut whole).unwrap();
        assert!(gathered.threads == whole.threads, "{}", path.display());
    }
}
