//! Generates session files of version 1.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::Result;
use crate::trail::fixture::text;

/// The form of a file of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Lines,
    Object,
}

impl Form {
    pub(crate) const ALL: [Self; 2] = [Self::Lines, Self::Object];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lines => "JSON lines",
            Self::Object => "one object",
        }
    }
}

/// Writes a file of about `bytes` and returns its number of messages.
pub(crate) fn write(path: &Path, form: Form, bytes: u64) -> Result<u64> {
    let mut out = Counting {
        out: BufWriter::new(File::create_new(path)?),
        written: 0,
    };
    let messages: Vec<String> = messages().iter().map(Value::to_string).collect();
    let mut count = 0;
    match form {
        Form::Lines => out.write(
            "{\"created_at_ms\":1794726326111,\"session_id\":\"session-1794726326112-1\",\
             \"type\":\"session_meta\",\"updated_at_ms\":1794726326113,\"version\":1}\n",
        )?,
        Form::Object => out.write("{\"messages\":[")?,
    }
    for message in messages.iter().cycle() {
        if out.written >= bytes {
            break;
        }
        match form {
            Form::Lines => {
                out.write(&format!("{{\"message\":{message},\"type\":\"message\"}}\n"))?
            }
            Form::Object if count == 0 => out.write(message)?,
            Form::Object => out.write(&format!(",{message}"))?,
        }
        count += 1;
    }
    if form == Form::Object {
        out.write("],\"version\":1}")?;
    }
    out.out.flush()?;
    Ok(count)
}

struct Counting {
    out: BufWriter<File>,
    written: u64,
}

impl Counting {
    fn write(&mut self, text: &str) -> Result<()> {
        self.written += text.len() as u64;
        Ok(self.out.write_all(text.as_bytes())?)
    }
}

/// Returns a few turns in the form of version 1.
fn messages() -> Vec<Value> {
    let turn = |n: usize| {
        let call = format!("toolu_{n:024}");
        let input = json!({"command": text(500, n)}).to_string();
        let usage = json!({
            "cache_creation_input_tokens": 1, "cache_read_input_tokens": 2,
            "input_tokens": 10, "output_tokens": 4,
        });
        [
            json!({"blocks": [{"text": text(400, n), "type": "text"}], "role": "user"}),
            json!({"blocks": [
                {"text": text(300, n + 1), "type": "text"},
                {"id": call, "input": input, "name": "bash", "type": "tool_use"},
            ], "role": "assistant", "usage": usage}),
            json!({"blocks": [{
                "is_error": false, "output": text(2400, n + 2), "tool_name": "bash",
                "tool_use_id": call, "type": "tool_result",
            }], "role": "tool"}),
            json!({"blocks": [{"text": text(1200, n + 3), "type": "text"}],
                   "role": "assistant", "usage": usage}),
        ]
    };
    (0..16).flat_map(turn).collect()
}
