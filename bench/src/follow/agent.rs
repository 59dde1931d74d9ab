//! An agent that writes a session as Claude Code does.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::SystemTime;

use backtrail::Timestamp;
use serde_json::{Value, json};

use crate::Result;

/// What everybody says, again and again.
pub(crate) const TEXT: &str = "Some words about what was found, and what is to be done about it. ";

/// An agent, and the file of its session.
pub(crate) struct Agent {
    session: String,
    file: File,
    lines: u32,
}

impl Agent {
    /// Creates an agent with an empty file.
    pub(crate) fn create(home: &Path, n: u32) -> Result<Self> {
        let project = home.join(format!(".claude/projects/-home-me-project{}", n % 50));
        fs::create_dir_all(&project)?;
        let session = format!("0b1c2d3e-0000-4000-8000-{n:012}");
        let path = project.join(format!("{session}.jsonl"));
        Ok(Self {
            session,
            file: File::options().append(true).create_new(true).open(path)?,
            lines: 0,
        })
    }

    /// Writes the next line.
    pub(crate) fn write(&mut self) -> Result<()> {
        let line = self.line();
        Ok(self.file.write_all(line.as_bytes())?)
    }

    /// Returns the id of the session.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Writes a prompt with some words.
    pub(crate) fn say(&mut self, words: &str) -> Result<()> {
        let message = json!({"role": "user", "content": words});
        let line = self.line_of("user", &message);
        Ok(self.file.write_all(line.as_bytes())?)
    }

    /// Writes about so many bytes at once.
    pub(crate) fn fill(&mut self, bytes: u64) -> Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, self.file.try_clone()?);
        let mut written = 0;
        while written < bytes {
            let line = self.line();
            out.write_all(line.as_bytes())?;
            written += line.len() as u64;
        }
        Ok(out.flush()?)
    }

    /// Prompts, calls with their results, and answers in turns.
    fn line(&mut self) -> String {
        let (kind, message) = message(self.lines);
        self.line_of(kind, &message)
    }

    fn line_of(&mut self, kind: &str, message: &Value) -> String {
        let n = self.lines;
        self.lines += 1;
        let uuid = |n: u32| format!("{n:08x}-0000-4000-8000-{}", &self.session[24..]);
        let at: Timestamp = SystemTime::now().into();
        let line = json!({
            "parentUuid": n.checked_sub(1).map(uuid),
            "sessionId": self.session,
            "type": kind,
            "cwd": "/home/me/project",
            "message": message,
            "uuid": uuid(n),
            "timestamp": at,
        });
        format!("{line}\n")
    }
}

fn message(n: u32) -> (&'static str, Value) {
    let text = TEXT.repeat(20);
    let call = format!("toolu_{}", n / 4);
    let response = |reason: &str, block: Value| {
        json!({
            "id": format!("msg_{n}"), "role": "assistant", "model": "claude-x", "content": [block],
            "stop_reason": reason, "usage": {"input_tokens": 300, "output_tokens": 50},
        })
    };
    match n % 4 {
        0 => ("user", json!({"role": "user", "content": text})),
        1 => {
            let input = json!({"command": "ls"});
            let call = json!({"type": "tool_use", "id": call, "name": "Bash", "input": input});
            ("assistant", response("tool_use", call))
        }
        2 => {
            let result = json!({"type": "tool_result", "tool_use_id": call, "content": text});
            ("user", json!({"role": "user", "content": [result]}))
        }
        _ => (
            "assistant",
            response("end_turn", json!({"type": "text", "text": text})),
        ),
    }
}
