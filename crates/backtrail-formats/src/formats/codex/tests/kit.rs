//! Rollouts made for the tests.

use backtrail::{Block, Message, ToolResult};
use serde_json::{Value, json};

use super::super::*;
use crate::collector::EventCollector;
use crate::event::{Event, MessageEvent, Origin, SummaryEvent, UsageEvent};
use crate::testing;

pub(super) const THREAD: &str = "01a00000-0000-7000-8000-000000000001";
pub(super) const PARENT: &str = "019f0000-0000-7000-8000-000000000009";

/// A rollout that is being written.
#[derive(Default)]
pub(super) struct Rollout {
    pub(super) lines: Vec<String>,
    pub(super) path: Option<PathBuf>,
    /// The time of the next line.
    pub(super) millis: i64,
    pub(super) ordinal: Option<u64>,
}

/// When [`THREAD`] started: the time in its id.
pub(super) const STARTED: i64 = 0x01a0_0000_0000;

impl Rollout {
    /// Creates one with a head.
    pub(super) fn new(head: Value) -> Self {
        let mut rollout = Self {
            millis: STARTED,
            ..Self::default()
        };
        let mut payload = json!({"id": THREAD, "cwd": "/work", "source": "cli"});
        merge(&mut payload, head);
        rollout.add("session_meta", payload);
        rollout
    }

    pub(super) fn plain() -> Self {
        Self::new(json!({}))
    }

    /// Lets time pass.
    pub(super) fn pause(&mut self, millis: i64) -> &mut Self {
        self.millis += millis;
        self
    }

    pub(super) fn raw(&mut self, line: impl Into<String>) -> &mut Self {
        self.lines.push(line.into());
        self
    }

    pub(super) fn add(&mut self, kind: &str, payload: Value) -> &mut Self {
        let at = backtrail::Timestamp::from_millis(self.millis).unwrap();
        let mut line = json!({"timestamp": at, "type": kind, "payload": payload});
        if let Some(ordinal) = &mut self.ordinal {
            line["ordinal"] = json!(*ordinal);
            *ordinal += 1;
        }
        self.raw(line.to_string())
    }

    pub(super) fn item(&mut self, payload: Value) -> &mut Self {
        self.add("response_item", payload)
    }

    pub(super) fn event(&mut self, payload: Value) -> &mut Self {
        self.add("event_msg", payload)
    }

    pub(super) fn user(&mut self, text: &str) -> &mut Self {
        let content = json!([{"type": "input_text", "text": text}]);
        self.item(json!({"type": "message", "role": "user", "content": content}))
    }

    pub(super) fn agent(&mut self, text: &str) -> &mut Self {
        let content = json!([{"type": "output_text", "text": text}]);
        self.item(json!({"type": "message", "role": "assistant", "content": content}))
    }

    pub(super) fn user_event(&mut self, text: &str) -> &mut Self {
        self.event(json!({"type": "user_message", "message": text, "images": []}))
    }

    pub(super) fn agent_event(&mut self, text: &str) -> &mut Self {
        self.event(json!({"type": "agent_message", "message": text}))
    }

    /// Adds a count: the total input, and that of the last call. Output is a tenth.
    pub(super) fn count(&mut self, total: u64, last: u64) -> &mut Self {
        let tokens = |n: u64| json!({"input_tokens": n, "output_tokens": n / 10});
        let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last)});
        self.event(json!({"type": "token_count", "info": info}))
    }

    /// Starts a turn at a time.
    pub(super) fn turn(&mut self, millis: i64) -> &mut Self {
        let id = turn_id(millis);
        self.event(json!({"type": "task_started", "turn_id": id}))
            .add("turn_context", json!({"turn_id": id, "model": "gpt-x"}))
    }

    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone().unwrap_or("rollout.jsonl".into())
    }

    pub(super) fn read(&self) -> Read {
        read(&self.path(), self.text().as_bytes())
    }

    /// Reads it in parts that end at these bytes.
    pub(super) fn read_in_parts(&self, cuts: &[usize]) -> EventCollector {
        read_in_parts(&self.path(), self.text().as_bytes(), cuts)
    }
}

/// Returns the id of a turn that starts then.
pub(super) fn turn_id(millis: i64) -> String {
    let millis = u128::try_from(millis).unwrap();
    uuid::Uuid::from_u128(millis << 80 | 0x7000_8000_0000_0000_0001).to_string()
}

pub(super) fn merge(into: &mut Value, other: Value) {
    for (name, value) in other.as_object().unwrap() {
        into[name] = value.clone();
    }
}

/// A rollout that was read.
pub(super) struct Read {
    pub(super) collected: EventCollector,
    pub(super) report: ReadReport,
}

pub(super) fn read(path: &Path, bytes: &[u8]) -> Read {
    let mut collected = EventCollector::default();
    let source = Source::from_bytes(path, bytes);
    let report = collected.read(Codex.open(&source).unwrap()).unwrap();
    Read { collected, report }
}

pub(super) fn read_in_parts(path: &Path, bytes: &[u8], cuts: &[usize]) -> EventCollector {
    let mut collected = EventCollector::default();
    let mut earlier = ReadReport::default();
    for cut in cuts.iter().chain([&bytes.len()]) {
        let source = Source::from_bytes(path, &bytes[..*cut]);
        let resumed = testing::resume(&Codex, &source, &earlier, &mut collected).unwrap();
        earlier = resumed.unwrap_or_else(|| {
            collected = EventCollector::default();
            collected.read(Codex.open(&source).unwrap()).unwrap()
        });
        let state = earlier.state.as_ref();
        let len = state.map_or(0, |state| state.as_str().len());
        assert!(len < 16 << 10, "a state must stay small");
    }
    collected
}

impl Read {
    pub(super) fn events(&self) -> &[Event] {
        &self.collected.main().unwrap().events
    }

    pub(super) fn messages(&self) -> Vec<&MessageEvent> {
        self.collected.messages().collect()
    }

    /// Returns the messages in short.
    pub(super) fn talk(&self) -> Vec<String> {
        talk(&self.collected)
    }

    pub(super) fn usage(&self) -> Vec<&UsageEvent> {
        fn usage(event: &Event) -> Option<&UsageEvent> {
            match event {
                Event::Usage(usage) => Some(usage),
                _ => None,
            }
        }
        self.events().iter().filter_map(usage).collect()
    }

    pub(super) fn inputs(&self) -> Vec<u64> {
        self.usage()
            .iter()
            .map(|event| event.usage.input_tokens)
            .collect()
    }

    pub(super) fn summaries(&self) -> Vec<&SummaryEvent> {
        fn summary(event: &Event) -> Option<&SummaryEvent> {
            match event {
                Event::Summary(summary) => Some(summary),
                _ => None,
            }
        }
        self.events().iter().filter_map(summary).collect()
    }

    pub(super) fn origin(&self) -> Origin {
        self.collected.main().unwrap().thread.origin.clone()
    }

    pub(super) fn result(&self) -> ToolResult {
        let results =
            self.messages()
                .into_iter()
                .find_map(|event| match &event.message.blocks[..] {
                    [Block::ToolResult(result)] => Some(result.clone()),
                    _ => None,
                });
        results.unwrap()
    }
}

pub(super) fn talk(collected: &EventCollector) -> Vec<String> {
    let short = |message: &Message| {
        let meta = if message.is_meta() { "(meta)" } else { "" };
        let block = |block: &Block| match block {
            Block::Text(block) => block.text.to_string(),
            Block::Thinking(block) => format!("({})", block.thinking),
            Block::ToolUse(call) => format!("{}{}", call.name, call.input),
            Block::ToolResult(result) => format!("-> {}", result.output),
            Block::Media(media) => format!("[{} {}]", media.kind, media.media_type),
            other => format!("{other:?}"),
        };
        let blocks: Vec<_> = message.blocks.iter().map(block).collect();
        format!("{}{meta}: {}", message.role, blocks.join(" | "))
    };
    collected
        .messages()
        .map(|event| short(&event.message))
        .collect()
}
