//! Resuming reads the same as reading from the beginning, wherever a file was cut.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::ClaudeCode;
use crate::collector::{CollectedThread, EventCollector};
use crate::event::{Event, ReadReport};
use crate::format::Format;
use crate::source::Source;
use crate::testing::resume;

const FILE: &str = "/p/session.jsonl";

/// One line, made of what came before it.
#[derive(Debug, Clone)]
struct Step {
    kind: u8,
    /// How far back its parent is, or another choice.
    back: u8,
    chance: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        0u8..20,
        prop_oneof![8 => Just(0u8), 3 => 1u8..4, 1 => 0u8..30],
        0u8..100,
    );
    let step = step.prop_map(|(kind, back, chance)| Step { kind, back, chance });
    prop::collection::vec(step, 1..40)
}

/// What a file is written from.
#[derive(Default)]
struct Writer {
    text: String,
    chain: Vec<String>,
    sides: Vec<String>,
    nested: Vec<String>,
    responses: u32,
    calls: Vec<String>,
}

impl Writer {
    fn parent(&self, back: u8) -> String {
        match self.chain.len().checked_sub(1 + usize::from(back)) {
            Some(at) => format!("\"{}\"", self.chain[at]),
            None if back == 29 => "\"nowhere\"".to_owned(),
            None => "null".to_owned(),
        }
    }

    fn line(&mut self, n: usize, step: &Step, rest: &str) {
        let parent = match step.chance {
            0 => "null".to_owned(),
            1 => "\"nowhere\"".to_owned(),
            2 => format!("\"u{n}\""),
            _ => self.parent(step.back),
        };
        let uuid = match step.chance {
            3 if !self.chain.is_empty() => self.chain[n % self.chain.len()].clone(),
            _ => format!("u{n}"),
        };
        let session = if step.chance < 50 {
            r#""sessionId":"s","#
        } else {
            ""
        };
        writeln!(self.text,
            r#"{{"parentUuid":{parent},"isSidechain":false,{session}"uuid":"{uuid}","timestamp":"2026-01-02T03:04:{:02}.000Z",{rest}}}"#,
            n % 60
        ).unwrap();
        self.chain.push(uuid);
    }

    fn assistant(&mut self, n: usize, step: &Step, fresh: bool) {
        self.responses += u32::from(fresh);
        let call = format!("t{n}");
        let name = if step.chance.is_multiple_of(2) {
            "Task"
        } else {
            "Bash"
        };
        let rest = format!(
            r#""type":"assistant","message":{{"id":"r{}","role":"assistant","model":"m{}","content":[{{"type":"tool_use","id":"{call}","name":"{name}","input":{{"prompt":"p{n}"}}}}],"usage":{{"input_tokens":1,"output_tokens":{n}}}}}"#,
            self.responses,
            step.chance / 90,
        );
        self.calls.push(call);
        self.line(n, step, &rest);
    }

    fn result(&mut self, n: usize, step: &Step) {
        let call = self.calls.len().checked_sub(1 + usize::from(step.back));
        let call = call.map_or("none", |at| &self.calls[at]).to_owned();
        let rest = format!(
            r#""type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"ok"}}]}}"#
        );
        self.line(n, step, &rest);
    }

    fn side(&mut self, n: usize, step: &Step) {
        let parent = match self.sides.len().checked_sub(1 + usize::from(step.back)) {
            Some(at) if step.chance > 20 => format!("\"{}\"", self.sides[at]),
            _ => "null".to_owned(),
        };
        let agent = match step.chance % 3 {
            0 => format!(r#""agentId":"g{}","#, step.chance % 2),
            _ => String::new(),
        };
        writeln!(self.text,
            r#"{{"parentUuid":{parent},"isSidechain":true,{agent}"uuid":"u{n}","type":"user","message":{{"role":"user","content":"p{}"}}}}"#,
            n.saturating_sub(2)
        ).unwrap();
        self.sides.push(format!("u{n}"));
    }

    fn progress(&mut self, n: usize, step: &Step) {
        let message = format!(
            r#"{{"type":"assistant","uuid":"n{n}","message":{{"id":"rn{n}","role":"assistant","model":"mm","content":"x"}}}}"#
        );
        self.nested.push(message.clone());
        let all = if step.chance < 50 {
            self.nested.join(",")
        } else {
            String::new()
        };
        let rest = format!(
            r#""type":"progress","parentToolUseID":"t1","data":{{"type":"agent_progress","agentId":"h","message":{message},"normalizedMessages":[{all}]}}"#
        );
        self.line(n, step, &rest);
    }

    fn write(&mut self, n: usize, step: &Step) {
        let plain = |kind: &str| format!(r#""type":"{kind}""#);
        let user = |more: &str| {
            format!(
                r#""type":"user"{more},"cwd":"/w{n}","message":{{"role":"user","content":"text {n}"}}"#
            )
        };
        match step.kind {
            0..3 => self.line(n, step, &user("")),
            3..6 => self.assistant(n, step, true),
            6..8 => self.assistant(n, step, false),
            8..11 => self.result(n, step),
            11 => self.line(n, step, &user(r#","isMeta":true"#)),
            12 => self.line(n, step, &plain("system")),
            13 => self.progress(n, step),
            14 => self.side(n, step),
            15 => {
                let head = self.parent(step.back.saturating_add(2));
                let kept =
                    format!(r#""compactMetadata":{{"preservedSegment":{{"headUuid":{head}}}}}"#);
                self.line(
                    n,
                    step,
                    &format!(r#""type":"system","subtype":"compact_boundary",{kept}"#),
                );
            }
            16 => self.line(n, step, &user(r#","isCompactSummary":true"#)),
            17 => {
                let rest =
                    r#""type":"attachment","attachment":{"type":"queued_command","prompt":"q"}"#;
                self.line(n, step, rest);
            }
            18 => {
                let kind = ["custom-title", "ai-title", "summary"][usize::from(step.chance % 3)];
                // Perhaps of an earlier line, a later one, or none.
                let leaf = match step.chance % 4 {
                    0 => String::new(),
                    _ => format!(
                        r#","leafUuid":"u{}""#,
                        (n + 3).saturating_sub(usize::from(step.back % 6))
                    ),
                };
                writeln!(
                    self.text,
                    r#"{{"type":"{kind}","customTitle":"a{n}","aiTitle":"b{n}","summary":"c{n}"{leaf}}}"#
                )
                .unwrap();
            }
            _ => {
                let odd = [
                    "{\"type\":",
                    "{\"type\":\"strange\"}",
                    "",
                    "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"no uuid\"}}",
                ];
                writeln!(self.text, "{}", odd[usize::from(step.chance % 4)]).unwrap();
            }
        }
    }
}

fn file(steps: &[Step]) -> String {
    let mut writer = Writer::default();
    for (n, step) in steps.iter().enumerate() {
        writer.write(n, step);
    }
    writer.text
}

fn whole(text: &[u8]) -> (EventCollector, ReadReport) {
    let mut collected = EventCollector::default();
    let source = Source::from_bytes(FILE, text);
    let report = collected.read(ClaudeCode.open(&source).unwrap()).unwrap();
    (collected, report)
}

/// Returns the conversations, sorted by id.
fn sorted(collected: &EventCollector) -> Vec<CollectedThread> {
    let mut threads = collected.threads.clone();
    threads.sort_by(|a, b| a.thread.id.cmp(&b.thread.id));
    threads
}

/// Returns the keys of each conversation.
fn outline(threads: &[CollectedThread]) -> Vec<String> {
    let keys = |thread: &CollectedThread| {
        let keys: Vec<&str> = thread.events.iter().map(Event::key).collect();
        format!("{:?}: {}", thread.thread, keys.join(" "))
    };
    threads.iter().map(keys).collect()
}

/// Reads up to each cut in turn; returns how often it could resume.
fn read_in_parts(text: &[u8], cuts: &[usize]) -> u32 {
    let (mut collected, mut report) = whole(&text[..cuts[0]]);
    let mut resumed_times = 0;
    for cut in &cuts[1..] {
        let source = Source::from_bytes(FILE, &text[..*cut]);
        let before = collected.clone();
        let resumed = resume(&ClaudeCode, &source, &report, &mut collected).unwrap();
        match resumed {
            Some(next) => {
                resumed_times += 1;
                report = next;
            }
            None => {
                assert_eq!(collected, before, "events were sent");
                (collected, report) = whole(&text[..*cut]);
            }
        }
        let (expected, expected_report) = whole(&text[..*cut]);
        let (threads, expected_threads) = (sorted(&collected), sorted(&expected));
        assert_eq!(
            outline(&threads),
            outline(&expected_threads),
            "cut at {cut}"
        );
        assert!(
            threads == expected_threads,
            "cut at {cut}: the same keys have other contents"
        );
        assert_eq!(collected.session, expected.session);
        assert_eq!(report.lines, expected_report.lines);
        assert_eq!(report.read_to, expected_report.read_to);
        let state = report.state.as_ref();
        let len = state.map_or(0, |state| state.as_str().len());
        assert!(len < 12_000, "a state of {len} bytes");
    }
    resumed_times
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn resuming_reads_the_same_as_reading_from_the_beginning(
        steps in steps(),
        cuts in prop::collection::vec(0.0..1.0f64, 1..6),
    ) {
        let text = file(&steps);
        let mut cuts: Vec<usize> = cuts.iter().map(|at| (at * text.len() as f64) as usize).collect();
        cuts.push(text.len());
        cuts.sort_unstable();
        read_in_parts(text.as_bytes(), &cuts);
    }

    #[test]
    fn no_message_is_lost_and_no_key_is_used_twice(steps in steps()) {
        let text = file(&steps);
        let (collected, _) = whole(text.as_bytes());
        let mut sent = std::collections::HashSet::new();
        for thread in &collected.threads {
            let mut keys = std::collections::HashSet::new();
            for event in &thread.events {
                prop_assert!(keys.insert(event.key().to_owned()), "{} twice", event.key());
                sent.insert(event.key().split('~').next().unwrap_or_default().to_owned());
            }
        }
        for line in text.lines().filter(|line| line.contains("tool_result") || line.contains("\"assistant\",\"message\":{\"id\":\"r")) {
            let uuid = line.split("\"uuid\":\"").nth(1).and_then(|rest| rest.split('"').next());
            prop_assert!(uuid.is_none_or(|uuid| sent.contains(uuid)), "lost: {line}");
        }
    }
}

/// A conversation that only continues, with everything beside the main line, is never read
/// from its beginning again.
#[test]
fn a_conversation_that_continues_is_not_read_again() {
    let text: String = (0..30)
        .map(|n| {
            let up = if n == 0 { "null".to_owned() } else { format!("\"d{}\"", n - 1) };
            format!(
                r#"{{"type":"user","parentUuid":{up},"sessionId":"s","uuid":"a{n}","message":{{"role":"user","content":"go"}}}}
{{"type":"progress","parentUuid":"a{n}","uuid":"h{n}","data":{{"type":"hook_progress"}}}}
{{"type":"assistant","parentUuid":"h{n}","uuid":"b{n}","message":{{"id":"r{n}","content":[{{"type":"tool_use","id":"t{n}","name":"X","input":{{}}}}]}}}}
{{"type":"assistant","parentUuid":"b{n}","uuid":"c{n}","message":{{"id":"r{n}","content":[{{"type":"tool_use","id":"v{n}","name":"Y","input":{{}}}}]}}}}
{{"type":"user","parentUuid":"c{n}","uuid":"e{n}","message":{{"content":[{{"type":"tool_result","tool_use_id":"v{n}"}}]}}}}
{{"type":"user","parentUuid":"b{n}","uuid":"f{n}","message":{{"content":[{{"type":"tool_result","tool_use_id":"t{n}"}}]}}}}
{{"type":"system","subtype":"compact_boundary","parentUuid":null,"uuid":"g{n}"}}
{{"type":"user","isCompactSummary":true,"parentUuid":"g{n}","uuid":"i{n}","message":{{"content":"so far"}}}}
{{"type":"assistant","parentUuid":"e{n}","uuid":"d{n}","message":{{"id":"q{n}","content":"done"}}}}
"#
            )
        })
        .collect();
    let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    // The first line names the session; the others are resumed.
    let resumed = read_in_parts(text.as_bytes(), &lines);
    let made_room = 3;
    assert!(
        resumed + made_room >= lines.len() as u32 - 1,
        "{resumed} of {}",
        lines.len()
    );
}
