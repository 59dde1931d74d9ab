//! A small agent that records everything it says and does, and survives being killed.
//!
//! ```text
//! agent STORE [REF]              continue this session [default: the latest, or a
//!                                new one if there is none]
//!       --die-in-tool            die in the middle of a tool call
//!       --die-after N            die after recording N things
//! ```
//!
//! It prints the session's id on its first line and `done: N messages` on its
//! last. However often it is killed, the next run continues from the log, repeats
//! nothing, and ends with the same conversation.
//!
//! The trick is that there is no trick. The agent keeps no state of its own; in
//! each round it asks the log what comes next, so resuming is nothing special.

#![expect(
    clippy::disallowed_methods,
    reason = "an agent's tools touch the user's files, not the store's"
)]

use std::error::Error;
use std::path::PathBuf;

use backtrail::{
    Block, Compaction, Draft, ErrorKind, Message, Role, Session, SessionOptions, Shape, Store,
    ToolResult, ToolUse, Usage,
};
use serde_json::{Value, json};

const PROMPT: &str = "Write each line of the poem to a file.";
const POEM: [&str; 4] = ["to be", "or not to be", "that is", "the question"];

/// A longer context is summarised. A real agent uses the token counts that its
/// provider reports.
const LONGEST_CONTEXT: usize = 700;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let after = |name| args.iter().skip_while(move |arg| *arg != name).nth(1);
    let home = PathBuf::from(args.first().ok_or("usage: agent STORE [REF]")?);
    let reference = args.get(1).filter(|arg| !arg.starts_with("--"));

    // The store is a directory, created if it does not exist.
    let store = Store::open_or_create(&home)?;
    let session = open_or_create(&store, reference.map_or("latest", String::as_str))?;
    println!("{}", session.id());

    let mut agent = Agent {
        // The next message is recorded right after this one, or not at all.
        last: session.last_seq(),
        session,
        files: home.with_file_name("poem"),
        die_in_tool: args.iter().any(|arg| arg == "--die-in-tool"),
        die_after: after("--die-after").map(|n| n.parse()).transpose()?,
    };
    agent.work()?;

    let messages = agent.session.reader().stats()?.messages.total;
    // Dropping the session also releases it, but cannot report a failure.
    agent.session.close()?;
    println!("done: {messages} messages");
    Ok(())
}

/// Opens a session for writing, or creates the first one.
fn open_or_create(store: &Store, reference: &str) -> backtrail::Result<Session> {
    match store.resolve(reference) {
        // While we write to it, other processes get `ErrorKind::Locked`.
        Ok(id) => store.open_session(&id),
        Err(error) if error.kind() == ErrorKind::NotFound && reference == "latest" => {
            store.create_session(SessionOptions::new().title("a poem").agent("example"))
        }
        Err(error) => Err(error),
    }
}

struct Agent {
    session: Session,
    /// The last record that we know of.
    last: u64,
    /// Where the tool writes.
    files: PathBuf,
    die_in_tool: bool,
    die_after: Option<u64>,
}

impl Agent {
    /// Works until it is the user's turn again.
    fn work(&mut self) -> Result<(), Box<dyn Error>> {
        if self.last == 0 {
            self.say(Message::user_text(PROMPT))?;
        }
        loop {
            // Run the calls that have no result yet: those that the model has just made,
            // and those in which an earlier run was killed. This tool may run twice.
            // If yours must not, skip it in the second case: the context then shows
            // the model that the call was interrupted.
            for call in open_calls(&self.session)? {
                // A failure is a result too: the model sees it.
                let result = match self.write(&call) {
                    Ok(output) => ToolResult::ok(output),
                    Err(error) => ToolResult::error(error.to_string()),
                };
                self.say(Message::tool_result(result.answers(call.id, call.name)))?;
            }

            // The request in the provider's own form. Up to the new messages it has the
            // same bytes as last time, so the prompt cache stays warm.
            let context = self.session.context(Shape::Anthropic)?;
            let request: Value = serde_json::from_str(context.as_json())?;
            let last = request["messages"].as_array().and_then(|all| all.last());
            if last.is_none_or(|message| message["role"] != "user") {
                return Ok(());
            }
            if context.as_json().len() > LONGEST_CONTEXT {
                self.compact(&request)?;
                continue;
            }

            // The reply is recorded before anything is done about it.
            self.say(Draft::from(model(&request)?).model("scripted"))?;
        }
    }

    /// Records a message, and returns once it is on disk.
    fn say(&mut self, message: impl Into<Draft>) -> backtrail::Result<()> {
        // `expect` makes a retry safe: if the record already exists, or another process
        // appended one, this is `ErrorKind::Conflict` and nothing is recorded twice.
        self.last = self.session.append(message.into().expect(self.last))?;
        self.count_down();
        Ok(())
    }

    /// Replaces the messages with a summary in the context. They stay in the history,
    /// and `undo` restores them to the context.
    fn compact(&mut self, request: &Value) -> backtrail::Result<()> {
        let summary = format!("{PROMPT} {} lines are written.", lines_written(request));
        let compaction = Compaction::new(summary).expect(self.last);
        self.last = self.session.compact(&compaction)?.seq;
        self.count_down();
        Ok(())
    }

    /// The tool: writes a line of the poem to a file.
    fn write(&self, call: &ToolUse) -> Result<String, Box<dyn Error>> {
        let line = call.input.parse::<Value>()?["line"].as_u64();
        let line = usize::try_from(line.ok_or("which line?")?)?;
        let text = POEM.get(line).ok_or("there is no such line")?;
        std::fs::create_dir_all(&self.files)?;
        let file = self.files.join(format!("line-{line}.txt"));
        if self.die_in_tool {
            std::fs::write(&file, &text[..text.len() / 2])?;
            std::process::abort();
        }
        std::fs::write(&file, text)?;
        Ok(format!("wrote {} bytes", text.len()))
    }

    /// Counts down the records, and dies at the requested one.
    fn count_down(&mut self) {
        self.die_after = self.die_after.map(|n| n.saturating_sub(1));
        if self.die_after == Some(0) {
            std::process::abort();
        }
    }
}

/// Returns the calls of the last message that have no result yet.
fn open_calls(session: &Session) -> backtrail::Result<Vec<ToolUse>> {
    let mut answered = Vec::new();
    // Backwards from the end: it costs the same however long the session is.
    let mut records = session.reader().records_back()?;
    while let Some(record) = records.next()? {
        let Some(message) = record.message()? else {
            continue; // A note, or a compaction.
        };
        let mut calls = Vec::new();
        for block in message.blocks {
            match block {
                Block::ToolResult(result) => answered.push(result.tool_use_id),
                Block::ToolUse(call) => calls.push(call),
                _ => {}
            }
        }
        if message.role != Role::Tool {
            calls.retain(|call| !answered.contains(&call.id));
            return Ok(calls);
        }
    }
    Ok(Vec::new())
}

/// A stand-in for a provider: it follows a script, and knows only what it is sent.
fn model(request: &Value) -> backtrail::Result<Message> {
    let line = lines_written(request);
    let usage = Usage::new(request.to_string().len() as u64 / 4, 20);
    if line == POEM.len() {
        let words = Block::text("The poem is written.");
        return Ok(Message::assistant([words]).usage(usage));
    }
    let call = ToolUse::new(format!("call_{line}"), "write", &json!({ "line": line }))?;
    Ok(Message::assistant([call.into()]).usage(usage))
}

/// Returns how many lines are written, by the context alone: the number in the summary
/// plus the results since.
fn lines_written(request: &Value) -> usize {
    let messages = request["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    let written = blocks.map(|block| {
        let text = block["text"].as_str().unwrap_or_default();
        let summary = text.strip_suffix(" lines are written.");
        let number = summary.and_then(|text| text.rsplit(' ').next()?.parse().ok());
        number.unwrap_or(usize::from(block["type"] == "tool_result"))
    });
    written.sum()
}
