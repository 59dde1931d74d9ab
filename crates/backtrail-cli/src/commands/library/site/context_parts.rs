//! What fills the context of a session: what a model would be sent now, by what it is.

use std::collections::HashMap;

use backtrail::{Block, Message, RecordKind, Role, SessionReader, Shape};
use backtrail_web::library::ContextPart;
use serde::Deserialize;

use super::super::costs::thousandths;
use super::super::{Answer, StoreLibrary, failure, session_id};
use crate::error::{CommandError, Result};
use crate::text::{one_line, short_number};

pub(super) fn context_parts(library: &StoreLibrary, session: &str) -> Answer<Vec<ContextPart>> {
    let id = session_id(session)?;
    let read = || -> Result<Vec<ContextPart>> {
        let reader = library.store.read_session(&id)?;
        let context = reader.context(Shape::Neutral)?;
        let summary = summary(&reader)?;
        let sent: Sent = serde_json::from_str(context.as_json()).map_err(unreadable)?;
        let mut parts = Parts::default();
        sent.messages
            .iter()
            .for_each(|message| parts.add(message, summary.as_deref()));
        Ok(parts.finish())
    };
    read().map_err(failure)
}

fn unreadable(error: serde_json::Error) -> CommandError {
    CommandError::invalid(format!("cannot read the context: {error}"))
}

/// What is sent.
#[derive(Deserialize)]
struct Sent {
    messages: Vec<Message>,
}

/// Returns the summary that stands for earlier messages, if there is one.
fn summary(reader: &SessionReader) -> Result<Option<String>> {
    let mut records = reader.records_back()?;
    while let Some(record) = records.next()? {
        if record.kind() == RecordKind::Compaction
            && let Ok(Some(stored)) = record.compaction()
        {
            return Ok(Some(stored.summary.to_string()));
        }
    }
    Ok(None)
}

/// The tokens of each part.
#[derive(Default)]
struct Parts {
    tokens: HashMap<String, u64>,
    /// The tools of the calls, by the id of the call.
    tools: HashMap<String, String>,
}

impl Parts {
    fn add(&mut self, message: &Message, summary: Option<&str>) {
        for block in &message.blocks {
            let name = self.name(message, block, summary);
            let alone = Message::new(message.role.clone(), [block.clone()]);
            self.count(name, alone.estimated_tokens());
        }
    }

    fn count(&mut self, name: String, tokens: u64) {
        *self.tokens.entry(name).or_default() += tokens;
    }

    fn name(&mut self, message: &Message, block: &Block, summary: Option<&str>) -> String {
        match block {
            Block::ToolUse(call) => {
                let tool = one_line(&call.name, 40);
                self.tools.insert(call.id.to_string(), tool.clone());
                format!("calls of {tool}")
            }
            Block::ToolResult(result) => match self.tools.get(result.tool_use_id.as_str()) {
                Some(tool) => format!("output of {tool}"),
                None => "output of tools".to_owned(),
            },
            Block::Thinking(_) => "thinking".to_owned(),
            Block::Text(text) => text_name(&message.role, &text.text, summary).to_owned(),
            _ => "images and files".to_owned(),
        }
    }

    fn finish(self) -> Vec<ContextPart> {
        let all = self.tokens.values().sum::<u64>().max(1);
        let part = |(name, tokens): (String, u64)| ContextPart {
            name,
            tokens,
            shown: short_number(tokens),
            share: thousandths(tokens, all),
        };
        let filled = self.tokens.into_iter().filter(|(_, tokens)| *tokens > 0);
        let mut parts: Vec<ContextPart> = filled.map(part).collect();
        parts.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.name.cmp(&b.name)));
        parts
    }
}

fn text_name(role: &Role, text: &str, summary: Option<&str>) -> &'static str {
    match role {
        Role::Assistant => "answers",
        Role::User if summary.is_some_and(|summary| text.ends_with(summary)) => "summary",
        Role::User if is_added(text) => "added by the agent",
        Role::User => "prompts",
        _ => "instructions",
    }
}

/// Returns whether an agent added all of a text in the user's name.
fn is_added(text: &str) -> bool {
    let message = Message::user_text(text);
    let said = message.said();
    said.text.trim().is_empty() && !said.injected.is_empty()
}
