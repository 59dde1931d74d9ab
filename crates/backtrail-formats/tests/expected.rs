//! Every sample says what independent readers found in it.
//!
//! `independent/record.py` writes their tables to `expected`: counts and hashes, no text.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and it only reads"
)]

mod counted;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use backtrail_formats::{EventCollector, formats, testing};
use serde_json::{Map, Value};

type Table = BTreeMap<String, Map<String, Value>>;

/// Returns the table of an agent, if there is one.
fn table(agent: &str) -> Option<Table> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let path = tests.join(format!("expected/{}.json", agent.replace('-', "_")));
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn every_sample_says_what_an_independent_reader_found() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let shared = samples.join("..");
    let mut wrong = Vec::new();
    for format in formats() {
        // A file may have many sessions.
        let mut files = BTreeMap::new();
        for (name, expected) in table(format.name()).unwrap_or_default() {
            let (file, session) = match name.split_once('#') {
                Some((file, session)) => (file, Some(session)),
                None => (&*name, None),
            };
            let sessions = files
                .entry(file.to_owned())
                .or_insert_with(|| testing::read_sessions(format, &shared.join(file)).unwrap());
            let is_it = |events: &&EventCollector| session.is_none_or(|it| events.session == it);
            let Some(events) = sessions.iter().map(|(_, events)| events).find(is_it) else {
                wrong.push(format!("{name}: not found"));
                continue;
            };
            let ours = counted::table_row(events);
            for (field, value) in expected {
                let found = ours.get(&field).unwrap_or(&Value::Null);
                let is_equal = match (found.as_f64(), value.as_f64()) {
                    (Some(found), Some(value)) => (found - value).abs() < 1e-6,
                    _ => *found == value,
                };
                if !is_equal {
                    wrong.push(format!("{name}: {field}: {found}, not {value}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_tables_are_what_the_independent_readers_find() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/record.py");
    let shared = samples.join("..");
    let record = Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg(shared)
        .arg("--check")
        .output();
    match record {
        Err(error) => eprintln!("SKIPPED: needs python3; {error}"),
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{error}");
        }
    }
}
