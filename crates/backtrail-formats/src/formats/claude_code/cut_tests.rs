//! Reading on tells what reading the whole tells, wherever a file was cut.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::ClaudeCode;
use crate::format::{Format, ReadError, Resume};
use crate::gathered::{Gathered, GatheredThread};
use crate::source::Source;
use crate::told::Told;

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
                writeln!(
                    self.text,
                    r#"{{"type":"{kind}","customTitle":"a{n}","aiTitle":"b{n}","summary":"c{n}"}}"#
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

fn whole(text: &[u8]) -> (Gathered, Told) {
    let mut gathered = Gathered::default();
    let source = Source::from_bytes(FILE, text);
    let told = ClaudeCode.read(&source, None, &mut gathered).unwrap();
    (gathered, told)
}

/// Returns the conversations in an order that does not depend on when they were named.
fn sorted(gathered: &Gathered) -> Vec<GatheredThread> {
    let mut threads = gathered.threads.clone();
    threads.sort_by(|a, b| a.thread.which.cmp(&b.thread.which));
    threads
}

/// Returns the keys of each conversation.
fn outline(threads: &[GatheredThread]) -> Vec<String> {
    let keys = |told: &GatheredThread| {
        let keys: Vec<&str> = told.items.iter().map(|item| item.key()).collect();
        format!("{:?}: {}", told.thread, keys.join(" "))
    };
    threads.iter().map(keys).collect()
}

/// Reads up to each cut in turn; returns how often it could go on.
fn read_in_parts(text: &[u8], cuts: &[usize]) -> u32 {
    let (mut gathered, mut told) = whole(&text[..cuts[0]]);
    let mut went_on = 0;
    for cut in &cuts[1..] {
        let source = Source::from_bytes(FILE, &text[..*cut]);
        let resume = told.state.clone().map(|state| Resume {
            read_to: told.read_to,
            state,
        });
        if resume.is_none() {
            gathered = Gathered::default();
        }
        let before = gathered.clone();
        match ClaudeCode.read(&source, resume.as_ref(), &mut gathered) {
            Ok(next) => {
                went_on += 1;
                told = next;
            }
            Err(ReadError::StartOver) => {
                assert_eq!(
                    gathered, before,
                    "something was told before it started over"
                );
                (gathered, told) = whole(&text[..*cut]);
            }
            Err(ReadError::Failed(error)) => panic!("{error}"),
        }
        let (expected, expected_told) = whole(&text[..*cut]);
        let (told_now, told_whole) = (sorted(&gathered), sorted(&expected));
        assert_eq!(outline(&told_now), outline(&told_whole), "cut at {cut}");
        assert!(
            told_now == told_whole,
            "cut at {cut}: the same keys say something else"
        );
        assert_eq!(gathered.session, expected.session);
        assert_eq!(told.lines, expected_told.lines);
        assert_eq!(told.read_to, expected_told.read_to);
        let len = told.state.as_ref().map_or(0, |state| state.as_str().len());
        assert!(len < 12_000, "a state of {len} bytes");
    }
    went_on
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_on_tells_what_reading_whole_tells(
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
    fn no_message_is_lost_and_no_key_stands_twice(steps in steps()) {
        let text = file(&steps);
        let (gathered, _) = whole(text.as_bytes());
        let mut told = std::collections::HashSet::new();
        for thread in &gathered.threads {
            let mut keys = std::collections::HashSet::new();
            for item in &thread.items {
                prop_assert!(keys.insert(item.key().to_owned()), "{} twice", item.key());
                told.insert(item.key().split('~').next().unwrap_or_default().to_owned());
            }
        }
        for line in text.lines().filter(|line| line.contains("tool_result") || line.contains("\"assistant\",\"message\":{\"id\":\"r")) {
            let uuid = line.split("\"uuid\":\"").nth(1).and_then(|rest| rest.split('"').next());
            prop_assert!(uuid.is_none_or(|uuid| told.contains(uuid)), "lost: {line}");
        }
    }
}

/// A conversation that only goes on, with all that hangs beside the line, is never read
/// from its beginning again.
#[test]
fn a_conversation_that_goes_on_is_not_read_again() {
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
    // The first line names the session; the others go on.
    let went_on = read_in_parts(text.as_bytes(), &lines);
    let room_is_made = 3;
    assert!(
        went_on + room_is_made >= lines.len() as u32 - 1,
        "{went_on} of {}",
        lines.len()
    );
}
