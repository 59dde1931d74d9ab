//! Malicious files end in a result, and soon.

use std::collections::HashSet;

use super::ClaudeCode;
use super::tests::user;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, Thread, ThreadId};
use crate::format::Format;
use crate::source::Source;

/// A sink that only keeps which conversations there are.
#[derive(Default)]
struct Threads(HashSet<ThreadId>);

impl EventSink for Threads {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        self.0.insert(thread.id.clone());
        Ok(())
    }

    fn details(&mut self, _details: Details) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<()> {
        let key = event.key();
        let is_name = (1..=256).contains(&key.len()) && !key.chars().any(char::is_control);
        assert!(is_name, "{key:?}");
        Ok(())
    }

    fn rewind_to(&mut self, _key: Option<&str>) -> Result<()> {
        Ok(())
    }
}

/// Returns how many conversations a file has.
fn threads(text: &str) -> usize {
    let source = Source::from_bytes("/p/s.jsonl", text);
    let mut sink = Threads::default();
    let file = ClaudeCode.open(&source).unwrap();
    file.read(&mut sink).unwrap();
    sink.0.len()
}

#[test]
fn keys_are_valid_whatever_the_uuids_are() {
    let odd = format!("{}\\u0007", "x".repeat(300));
    let text = user(&odd, None, "go") + &user("b\\n", Some(&odd), "on");
    assert_eq!(threads(&text), 1);
}

#[test]
fn hostile_files_end_in_a_result() {
    let deep = format!(
        "{{\"type\":\"user\",\"uuid\":\"d\",\"message\":{{\"role\":\"user\",\"content\":{}1{}}}}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let mut text = [
        user("self", Some("self"), "a"),
        user("x", Some("y"), "b"),
        user("y", Some("x"), "c"),
        deep,
    ]
    .concat();
    let wrong = r#"{"type":"assistant","uuid":[],"parentUuid":{},"sessionId":3,"isMeta":"x","timestamp":{},"message":{"id":1,"model":[],"content":{"a":1},"usage":[1]},"forkedFrom":4}
{"type":"progress","uuid":"pp","data":{"type":"agent_progress","message":7,"normalizedMessages":[1,{}],"agentId":[]},"parentToolUseID":{}}
{"type":"system","subtype":"compact_boundary","uuid":"bb","compactMetadata":[]}
{"type":7}
"#;
    text.push_str(wrong);
    for n in 0..4_000 {
        text.push_str(
            &user(&format!("k{n}"), Some("self"), "left")
                .replace("false", if n % 2 == 0 { "true" } else { "false" }),
        );
    }
    assert!(threads(&text) > 1_900);
}

/// Each of these would take hours if a line cost more the more there are.
#[test]
fn many_branches_take_linear_time() {
    let many = 30_000;
    let mut stale = user("u0", None, "go") + &user("u1", Some("u0"), "on");
    let mut comb = user("u0", None, "go");
    let mut same = String::new();
    for n in 0..many {
        let up = if n == 0 {
            "u0".to_owned()
        } else {
            format!("p{}", n - 1)
        };
        stale.push_str(&format!(
            "{{\"type\":\"system\",\"parentUuid\":\"{up}\",\"uuid\":\"p{n}\"}}\n"
        ));
        let up = if n == 0 {
            "u0".to_owned()
        } else {
            format!("c{}", n - 1)
        };
        comb.push_str(&user(&format!("c{n}"), Some(&up), "down"));
        same.push_str(&user("same", None, &format!("{n}")));
    }
    for n in 0..many {
        stale.push_str(&user(
            &format!("b{n}"),
            Some(&format!("p{}", many - 1)),
            "left",
        ));
        comb.push_str(&user(&format!("t{n}"), Some(&format!("c{n}")), "tooth"));
    }
    stale.push_str(&user("end", Some("u1"), "end"));
    comb.push_str(&user("end", Some("u0"), "end"));
    for (text, expected) in [(stale, many + 1), (comb, many + 1), (same, many)] {
        assert_eq!(threads(&text), expected);
    }
}
