//! Rollouts made for the tests, and what is read of them.

use backtrail::{Block, Message, ToolResult};
use serde_json::{Value, json};

use super::super::*;
use crate::gathered::Gathered;
use crate::told::{Item, Origin, Said, Summarised, Used};

pub(super) const THREAD: &str = "01a00000-0000-7000-8000-000000000001";
pub(super) const PARENT: &str = "019f0000-0000-7000-8000-000000000009";

/// A rollout on its way.
#[derive(Default)]
pub(super) struct Rollout {
    pub(super) lines: Vec<String>,
    pub(super) path: Option<PathBuf>,
    /// The time of the next line.
    pub(super) millis: i64,
    pub(super) ordinal: Option<u64>,
}

/// When [`THREAD`] began: the time in its id.
pub(super) const BEGAN: i64 = 0x01a0_0000_0000;

impl Rollout {
    /// Makes one that begins with a head.
    pub(super) fn new(head: Value) -> Self {
        let mut rollout = Self {
            millis: BEGAN,
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

    /// Begins a turn at a time.
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
    pub(super) fn read_in_parts(&self, cuts: &[usize]) -> Gathered {
        read_in_parts(&self.path(), self.text().as_bytes(), cuts)
    }
}

/// Returns the id of a turn that begins then.
pub(super) fn turn_id(millis: i64) -> String {
    let millis = u128::try_from(millis).unwrap();
    uuid::Uuid::from_u128(millis << 80 | 0x7000_8000_0000_0000_0001).to_string()
}

pub(super) fn merge(into: &mut Value, other: Value) {
    for (name, value) in other.as_object().unwrap() {
        into[name] = value.clone();
    }
}

/// What was read.
pub(super) struct Read {
    pub(super) gathered: Gathered,
    pub(super) told: Told,
}

pub(super) fn read(path: &Path, bytes: &[u8]) -> Read {
    let mut gathered = Gathered::default();
    let source = Source::from_bytes(path, bytes);
    let told = Codex.read(&source, None, &mut gathered).unwrap();
    Read { gathered, told }
}

pub(super) fn read_in_parts(path: &Path, bytes: &[u8], cuts: &[usize]) -> Gathered {
    let mut gathered = Gathered::default();
    let mut resume: Option<Resume> = None;
    for cut in cuts.iter().chain([&bytes.len()]) {
        let source = Source::from_bytes(path, &bytes[..*cut]);
        let told = match Codex.read(&source, resume.as_ref(), &mut gathered) {
            Err(ReadError::StartOver) => {
                gathered = Gathered::default();
                Codex.read(&source, None, &mut gathered).unwrap()
            }
            told => told.unwrap(),
        };
        let state = told.state.unwrap();
        assert!(state.as_str().len() < 16 << 10, "a state must stay small");
        resume = Some(Resume {
            read_to: told.read_to,
            state,
        });
    }
    gathered
}

impl Read {
    pub(super) fn items(&self) -> &[Item] {
        &self.gathered.main().unwrap().items
    }

    pub(super) fn said(&self) -> Vec<&Said> {
        self.gathered.messages().collect()
    }

    /// Returns who said what, in short.
    pub(super) fn talk(&self) -> Vec<String> {
        talk(&self.gathered)
    }

    pub(super) fn used(&self) -> Vec<&Used> {
        fn used(item: &Item) -> Option<&Used> {
            match item {
                Item::Used(used) => Some(used),
                _ => None,
            }
        }
        self.items().iter().filter_map(used).collect()
    }

    pub(super) fn inputs(&self) -> Vec<u64> {
        self.used()
            .iter()
            .map(|used| used.usage.input_tokens)
            .collect()
    }

    pub(super) fn summaries(&self) -> Vec<&Summarised> {
        fn summary(item: &Item) -> Option<&Summarised> {
            match item {
                Item::Summarised(summarised) => Some(summarised),
                _ => None,
            }
        }
        self.items().iter().filter_map(summary).collect()
    }

    pub(super) fn origin(&self) -> Origin {
        self.gathered.main().unwrap().thread.origin.clone()
    }

    pub(super) fn result(&self) -> ToolResult {
        let results = self
            .said()
            .into_iter()
            .find_map(|said| match &said.message.blocks[..] {
                [Block::ToolResult(result)] => Some(result.clone()),
                _ => None,
            });
        results.unwrap()
    }
}

pub(super) fn talk(gathered: &Gathered) -> Vec<String> {
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
    gathered
        .messages()
        .map(|said| short(&said.message))
        .collect()
}
