//! How fast files are read:
//! `cargo test --release -p backtrail-formats claude_code_speed -- --ignored --nocapture`.
//!
//! It measures processor time, so that other work does not count. `BACKTRAIL_SPEED_FILE` names
//! a file to read instead of a made one.

use super::ClaudeCode;
use super::entry::scan;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, Thread};
use crate::format::Format;
use crate::json_lines::JsonLines;
use crate::source::Source;

/// A sink that only counts.
#[derive(Default)]
struct Counter(u64);

impl EventSink for Counter {
    fn thread(&mut self, _thread: &Thread) -> Result<()> {
        Ok(())
    }

    fn details(&mut self, _details: Details) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, _event: Event) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn rewind_to(&mut self, _key: Option<&str>) -> Result<()> {
        Ok(())
    }
}

/// Makes a file of about so many bytes: prompts, calls and results.
fn made(bytes: usize) -> String {
    let output = "fn main() {\\n    println!(\\\"hello\\\");\\n}\\n".repeat(60);
    let mut text = String::with_capacity(bytes + 8_192);
    let mut n = 0;
    while text.len() < bytes {
        let up = n * 3;
        let parent = if n == 0 {
            "null".to_owned()
        } else {
            format!("\"u{}\"", up - 1)
        };
        text.push_str(&format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1.0","type":"user","message":{{"role":"user","content":"go on with {n}"}},"uuid":"u{up}","timestamp":"2026-01-02T03:04:05.000Z"}}
{{"parentUuid":"u{up}","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1.0","message":{{"model":"claude-x","id":"m{n}","type":"message","role":"assistant","content":[{{"type":"tool_use","id":"t{n}","name":"Read","input":{{"file_path":"/w/src/main.rs","limit":{n}}}}}],"usage":{{"input_tokens":3,"output_tokens":5,"cache_creation_input_tokens":7,"cache_read_input_tokens":11}}}},"requestId":"r{n}","type":"assistant","uuid":"u{}","timestamp":"2026-01-02T03:04:06.000Z"}}
{{"parentUuid":"u{}","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1.0","type":"user","message":{{"role":"user","content":[{{"tool_use_id":"t{n}","type":"tool_result","content":"{output}"}}]}},"uuid":"u{}","timestamp":"2026-01-02T03:04:07.000Z","toolUseResult":{{"stdout":"{output}","stderr":""}}}}
"#,
            up + 1,
            up + 1,
            up + 2,
        ));
        n += 1;
    }
    text
}

/// Returns this thread's processor time in seconds.
fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: f64 = stat
        .split(' ')
        .next()
        .and_then(|nanos| nanos.parse().ok())
        .unwrap_or(0.0);
    nanos / 1e9
}

#[test]
#[ignore = "measures"]
fn claude_code_speed() {
    let source = match std::env::var_os("BACKTRAIL_SPEED_FILE") {
        Some(path) => Source::open(path.as_ref()).unwrap(),
        None => Source::from_bytes("/p/s.jsonl", made(200 << 20)),
    };
    let mb = source.len() as f64 / 1e6;
    for _ in 0..3 {
        let start = seconds();
        let (mut lines, mut report) = JsonLines::new(&source);
        let scan = |text: &str| scan(text, false);
        while lines.next_parsed(&mut report, scan).unwrap().is_some() {}
        let tree = seconds() - start;
        let start = seconds();
        let mut counter = Counter::default();
        let file = ClaudeCode.open(&source).unwrap();
        file.read(&mut counter).unwrap();
        let all = seconds() - start;
        eprintln!(
            "{mb:.0} MB, {} lines, {} events: tree {:.0} MB/s, both {:.0} MB/s, events {:.0} MB/s",
            report.lines,
            counter.0,
            mb / tree,
            mb / all,
            mb / (all - tree),
        );
    }
}
