//! Files of JSON lines that are read once, in their order, and only grow.
//!
//! Several agents write such files. Each has a [`LineReader`], which knows what a line says and
//! remembers what later lines need; the rest is here: where the file was left, the keys of
//! events, and what is reported.

use std::borrow::Cow;
use std::ops::Range;

use backtrail::{Block, Message, Role, Timestamp, Usage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::blocks::meta;
use super::content::content_blocks;
use super::keys::{hash_json, save_state};
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, MessageEvent, Origin, ReadReport, SummaryEvent, UsageEvent,
};
use crate::format::{OpenFile, Resume};
use crate::json::Object;
use crate::json_lines::JsonLines;
use crate::source::Source;

/// Reads the lines of one agent.
pub(super) trait LineReader: Default + Serialize + DeserializeOwned {
    /// Sends the events of a line.
    fn read(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()>;

    /// Sends what follows the last line: what a file beside the session says of all of it.
    fn finish(&mut self, source: &Source, session: &str, sink: &mut dyn EventSink) -> Result<()> {
        let _ = (source, session, sink);
        Ok(())
    }
}

/// What is known of a session before its lines are read.
#[derive(Debug, Default)]
pub(super) struct SessionStart {
    /// The session, by its agent's name for it.
    pub(super) session: String,
    /// The session that started this one, for a sub-agent.
    pub(super) parent: Option<String>,
    /// The call that started it.
    pub(super) call: Option<String>,
    /// What describes it.
    pub(super) details: Details,
    /// Whether a line that comes later may still name the session.
    pub(super) is_unnamed: bool,
}

/// The state from which a file is resumed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LogState<R> {
    session: String,
    parent: Option<String>,
    call: Option<String>,
    lines: u64,
    events: u64,
    messages: u64,
    last: Option<String>,
    model: Option<String>,
    reader: R,
}

/// Opens a file to read it from the beginning.
pub(super) fn open_log<'s, R: LineReader + 's>(
    source: &'s Source,
    start: SessionStart,
) -> OpenFile<'s> {
    let state = LogState::<R> {
        session: start.session,
        parent: start.parent,
        call: start.call,
        ..LogState::default()
    };
    open_at(source, 0, state, start.details, start.is_unnamed)
}

/// Opens a file where an earlier reading ended. `details` are those that the file itself does
/// not have.
pub(super) fn resume_log<'s, R: LineReader + 's>(
    source: &'s Source,
    resume: &Resume,
    details: Details,
) -> Option<OpenFile<'s>> {
    let state: LogState<R> = resume.state.parse().ok()?;
    Some(open_at(source, resume.read_to, state, details, false))
}

fn open_at<'s, R: LineReader + 's>(
    source: &'s Source,
    from: u64,
    mut state: LogState<R>,
    details: Details,
    is_unnamed: bool,
) -> OpenFile<'s> {
    let origin = match &state.parent {
        Some(parent) => Origin::Spawned {
            session: Some(parent.clone()),
            tool_use_id: state.call.clone(),
        },
        None => Origin::Start,
    };
    OpenFile::new(state.session.clone(), origin, move |sink| {
        sink.details(details)?;
        let (mut lines, mut report) = JsonLines::resume(source, from, state.lines);
        while let Some(line) = lines.next(&mut report)? {
            let mut log = Log {
                sink: &mut *sink,
                report: &mut report,
                session: &state.session,
                json: line.text(),
                number: line.number,
                range: line.range.clone(),
                at: None,
                events: &mut state.events,
                messages: &mut state.messages,
                last: &mut state.last,
                model: &mut state.model,
            };
            state.reader.read(&line.object(), &mut log)?;
        }
        if state.messages > 0 {
            state.reader.finish(source, &state.session, sink)?;
        }
        state.lines = report.lines;
        if report.read_to > 0 && !is_unnamed {
            report.state = save_state(&state);
        }
        Ok(report)
    })
}

/// The line that is being read, and where its events go.
pub(super) struct Log<'a> {
    sink: &'a mut dyn EventSink,
    report: &'a mut ReadReport,
    session: &'a str,
    json: &'a str,
    number: u64,
    range: Range<u64>,
    /// The time of the line, which its events have.
    pub(super) at: Option<Timestamp>,
    events: &'a mut u64,
    messages: &'a mut u64,
    last: &'a mut Option<String>,
    model: &'a mut Option<String>,
}

impl<'a> Log<'a> {
    /// Returns the key of the next event: its number, and what it was made of.
    fn next_key(&mut self) -> String {
        *self.events += 1;
        let key = format!("n{}-{}", *self.events - 1, hash_json(self.json, 8));
        *self.last = Some(key.clone());
        key
    }

    /// Returns the key of the last event.
    pub(super) fn last_key(&self) -> Option<String> {
        self.last.clone()
    }

    /// Returns how many messages there were.
    pub(super) fn messages(&self) -> u64 {
        *self.messages
    }

    /// Returns the session's name.
    pub(super) fn session(&self) -> &'a str {
        self.session
    }

    /// Counts an unknown record.
    pub(super) fn unknown(&mut self, kind: &str) {
        self.report.add_unknown(kind);
    }

    /// Counts the line as damaged.
    pub(super) fn damaged(&mut self, reason: &str) {
        self.report.add_damage(self.number, &self.range, reason);
    }

    /// Reads a content. Blocks of unknown types are kept and counted.
    pub(super) fn content(&mut self, json: Option<&str>) -> Vec<Block> {
        let report = &mut *self.report;
        content_blocks(json, &mut |kind| {
            report.add_unknown(&format!("block: {kind}"));
        })
    }

    /// Sends what describes the session.
    pub(super) fn details(&mut self, details: Details) -> Result<()> {
        self.sink.details(details)
    }

    /// Sets the model of the replies that follow.
    pub(super) fn set_model(&mut self, model: Option<Cow<'_, str>>) -> Result<()> {
        match model {
            Some(model) if !model.trim().is_empty() && self.model.as_deref() != Some(&*model) => {
                *self.model = Some(model.into_owned());
                self.sink.details(Details {
                    model: self.model.clone(),
                    ..Details::default()
                })
            }
            _ => Ok(()),
        }
    }

    /// Sends a message. A reply has the model that was set last.
    pub(super) fn message(&mut self, message: Message) -> Result<()> {
        self.reply(message, None)
    }

    /// Sends a message of a response.
    pub(super) fn reply(&mut self, message: Message, response_id: Option<String>) -> Result<()> {
        *self.messages += 1;
        let key = self.next_key();
        let is_reply = message.role == Role::Assistant;
        self.sink.event(Event::Message(MessageEvent {
            model: self.model.clone().filter(|_| is_reply),
            response_id,
            ..MessageEvent::new(key, message).at(self.at)
        }))
    }

    /// Sends what the user said: `split` separates a prompt from what the agent wrote around
    /// it, which is sent before it.
    pub(super) fn prompt(
        &mut self,
        blocks: Vec<Block>,
        split: impl Fn(&str) -> Option<(String, String)>,
    ) -> Result<()> {
        let (mut around, mut prompt) = (Vec::new(), Vec::new());
        for block in blocks {
            match &block {
                Block::Text(text) if !text.text.is_lossy() => match split(&text.text) {
                    Some((others, own)) => {
                        let filled = |text: &String| !text.is_empty();
                        around.extend(Some(others).filter(filled).map(Block::text));
                        prompt.extend(Some(own).filter(filled).map(Block::text));
                    }
                    None => prompt.push(block),
                },
                _ => prompt.push(block),
            }
        }
        if around.is_empty() && prompt.is_empty() {
            self.damaged("message without content");
        }
        if !around.is_empty() {
            self.message(meta(Message::new(Role::User, around)))?;
        }
        if !prompt.is_empty() {
            self.message(Message::new(role_of_user(&prompt), prompt))?;
        }
        Ok(())
    }

    /// Sends a summary that replaces all messages but the last ones.
    pub(super) fn summary(&mut self, summary: &str, keep: u64) -> Result<()> {
        let key = self.next_key();
        self.sink.event(Event::Summary(SummaryEvent {
            at: self.at,
            keep,
            ..SummaryEvent::new(key, summary)
        }))
    }

    /// Sends the usage of a model call. Without an id, it is a call of its own.
    pub(super) fn usage(
        &mut self,
        usage: Usage,
        response_id: Option<String>,
        duration_ms: Option<u64>,
    ) -> Result<()> {
        let key = self.next_key();
        let own_id = format!("{}#{key}", self.session);
        self.sink.event(Event::Usage(UsageEvent {
            key,
            at: self.at,
            response_id: response_id.unwrap_or(own_id),
            model: self.model.clone(),
            usage,
            duration_ms,
            cost_usd: None,
        }))
    }

    /// Rewinds the conversation to after an event, or to its beginning.
    pub(super) fn rewind_to(&mut self, key: Option<&str>) -> Result<()> {
        *self.last = key.map(str::to_owned);
        self.sink.rewind_to(key)
    }
}

/// Returns the role of a message in the user's name: results alone are a tool's.
fn role_of_user(blocks: &[Block]) -> Role {
    match blocks
        .iter()
        .all(|block| matches!(block, Block::ToolResult(_)))
    {
        true => Role::Tool,
        false => Role::User,
    }
}

/// Reads the messages of a file that is one value, each as a line of a log.
pub(super) fn read_messages<R: LineReader>(
    messages: &[&str],
    session: &str,
    model: Option<String>,
    report: &mut ReadReport,
    sink: &mut dyn EventSink,
) -> Result<()> {
    let (mut reader, mut model) = (R::default(), model);
    let (mut events, mut said, mut last) = (0, 0, None);
    for json in messages {
        let mut log = Log {
            sink: &mut *sink,
            report: &mut *report,
            session,
            json,
            number: 1,
            range: 0..json.len() as u64,
            at: None,
            events: &mut events,
            messages: &mut said,
            last: &mut last,
            model: &mut model,
        };
        match Object::from_json(json) {
            Some(message) => reader.read(&message, &mut log)?,
            None => log.damaged("message that is not an object"),
        }
    }
    Ok(())
}
