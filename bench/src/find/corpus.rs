//! Generates sessions like those of agents: prompts, answers, tool calls with output. The
//! same numbers give the same words.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backtrail::{
    Block, Clock, Draft, Durability, Message, SessionOptions, StoreOptions, Timestamp, ToolResult,
    ToolUse, Usage,
};
use serde_json::json;

use crate::Result;

/// A word in only one message.
pub(crate) const RARE: &str = "quicksilverfish";
/// A word in about every fourth message.
pub(crate) const COMMON: &str = "session";
/// Two words that are adjacent in some messages, and apart in many.
pub(crate) const PHRASE: &str = "\"checkout rounding\"";

/// The size of the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) sessions: u64,
    pub(crate) messages_each: u64,
    /// The average bytes of text in a message.
    pub(crate) bytes_each: usize,
}

/// A clock that is set by hand.
#[derive(Debug, Clone)]
struct SettableClock(Arc<AtomicI64>);

impl Clock for SettableClock {
    fn now(&self) -> Timestamp {
        let millis = self.0.fetch_add(700, Ordering::Relaxed);
        Timestamp::from_millis(millis).unwrap_or_else(|| backtrail::SystemClock.now())
    }
}

/// When the first session began; the last one is some months later.
const BEGAN: i64 = 1_767_225_600_000;

/// Creates the store and returns the bytes of text in it.
pub(crate) fn make(dir: &Path, size: Size) -> Result<u64> {
    let hands = SettableClock(Arc::new(AtomicI64::new(BEGAN)));
    let options = StoreOptions::new().durability(Durability::Os);
    let store = options.clock(hands.clone()).open_or_create(dir)?;
    let mut words = Words::new();
    let mut bytes = 0;
    for n in 0..size.sessions {
        let began = BEGAN + i64::try_from(n)? * 1_500_000;
        hands.0.store(began, Ordering::Relaxed);
        let root = format!("/home/me/src/project-{:03}", n % 200);
        let agent = ["claude-code", "codex", "mine"][(n % 3) as usize];
        let options = SessionOptions::new()
            .agent(agent)
            .workspace_root(Path::new(&root));
        let session = store.create_session(options)?;
        let model = MODELS[(n % MODELS.len() as u64) as usize];
        for m in 0..size.messages_each {
            let rare = n == size.sessions / 2 && m == size.messages_each / 2;
            let (draft, said) = words.message((n, m), model, size.bytes_each, rare)?;
            session.append(draft)?;
            bytes += said as u64;
        }
        session.close()?;
    }
    Ok(bytes)
}

const MODELS: [&str; 4] = [
    "claude-sonnet-4-5",
    "gpt-5",
    "gemini-2.5-pro",
    "a-local-model",
];

/// Generates words: common ones often, rare ones rarely.
pub(crate) struct Words {
    state: u64,
    known: Vec<String>,
}

impl Words {
    /// The number of words to choose from.
    const KNOWN: u64 = 40_000;

    pub(crate) fn new() -> Self {
        let mut words = Self {
            state: 0x9e37_79b9_7f4a_7c15,
            known: Vec::new(),
        };
        for _ in 0..Self::KNOWN {
            let word = words.made_up();
            words.known.push(word);
        }
        // The first words are as frequent as articles.
        for (rank, word) in [(10, COMMON), (200, "checkout"), (300, "rounding")] {
            word.clone_into(&mut words.known[rank]);
        }
        words
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn made_up(&mut self) -> String {
        const PARTS: [&str; 24] = [
            "ra", "lo", "mi", "ten", "sor", "ka", "vel", "du", "pri", "an", "est", "or", "ing",
            "ber", "qua", "ly", "chi", "mo", "res", "tra", "fi", "gen", "hu", "ti",
        ];
        let parts = 2 + self.next() % 3;
        (0..parts)
            .map(|_| PARTS[(self.next() % PARTS.len() as u64) as usize])
            .collect()
    }

    /// Returns a word, the first ones most often.
    fn word(&mut self) -> &str {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (unit.powi(4) * self.known.len() as f64) as usize;
        &self.known[rank.min(self.known.len() - 1)]
    }

    pub(crate) fn prose(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            let word = self.word().to_owned();
            text.push_str(&word);
            if self.next().is_multiple_of(12) {
                text.push('.');
            }
        }
        text
    }

    pub(crate) fn path(&mut self) -> String {
        let (dir, file) = (self.word().to_owned(), self.word().to_owned());
        format!("src/{dir}/{file}.rs")
    }

    /// Generates program output: paths, numbers, identifiers, hashes.
    pub(crate) fn output(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 80);
        while text.len() < bytes {
            let (path, number) = (self.path(), self.next() % 900);
            let (a, b) = (self.word().to_owned(), self.word().to_owned());
            let line = match self.next() % 4 {
                0 => format!("{path}:{number}: let {a}_{b} = self.{b}.{a}({number})?;\n"),
                1 => format!("test {a}::{b} ... ok ({number} ms)\n"),
                2 => format!("commit {:016x} {a} {b}\n", self.next()),
                _ => format!("    pub(crate) fn {a}_{b}(&self) -> Result<{a}> {{\n"),
            };
            text.push_str(&line);
        }
        text
    }

    /// Generates message `m` of session `n` and returns the bytes of text in it.
    fn message(
        &mut self,
        (n, m): (u64, u64),
        model: &str,
        bytes: usize,
        rare: bool,
    ) -> Result<(Draft, usize)> {
        let call = format!("toolu_{n:06}_{:04}", m & !1);
        let usage = || {
            Usage::new(20 + m, 300)
                .cache_read(9_000 + 100 * m)
                .cache_creation(400)
        };
        let answer = |message: Message| {
            let id = format!("msg_{n:06}_{m:04}");
            Draft::from(message.usage(usage()))
                .model(model)
                .response_id(id)
        };
        let mut text = match m % 10 {
            0 => self.prose(bytes / 3),
            1 | 3 | 5 | 7 => self.prose(bytes / 4),
            9 => self.prose(bytes),
            _ => self.output(bytes * 9 / 5),
        };
        if (n + m).is_multiple_of(500) {
            text.push_str(" checkout rounding");
        }
        if rare {
            text.push(' ');
            text.push_str(RARE);
        }
        let said = text.len();
        Ok(match m % 10 {
            0 => (Message::user_text(text).into(), said),
            9 => (answer(Message::assistant([Block::text(text)])), said),
            1 | 3 | 5 | 7 => {
                let path = self.path();
                let command = format!("grep -rn {} {path}", self.word());
                let input = json!({"command": command, "path": path});
                let said = said + command.len() + path.len();
                let id = format!("toolu_{n:06}_{:04}", (m + 1) & !1);
                let call = ToolUse::new(id, "bash", &input)?;
                (
                    answer(Message::assistant([Block::text(text), call.into()])),
                    said,
                )
            }
            _ => {
                let result = ToolResult::ok(text).answers(call, "bash");
                (Message::tool_result(result).into(), said)
            }
        })
    }
}
