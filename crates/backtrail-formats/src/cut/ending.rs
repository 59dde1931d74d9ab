//! Where a conversation may end so that its agent, and the model's provider, accept it.

use std::collections::HashSet;

use backtrail::{Block, Message, Role};

/// Follows a conversation, and knows whether it could end here: not before its first prompt, not
/// between a call and its result, and not within a response of which there are only thoughts yet.
#[derive(Debug, Default)]
pub struct CompleteEnd {
    /// The calls of the last response that have no result yet.
    open: HashSet<String>,
    response: Option<String>,
    has_begun: bool,
    follows_reply: bool,
    has_only_thoughts: bool,
}

impl CompleteEnd {
    /// Adds the next message, with the provider's id of its response.
    pub fn add(&mut self, message: &Message, response_id: Option<&str>) {
        for block in &message.blocks {
            if let Block::ToolResult(result) = block {
                self.open.remove(result.tool_use_id.as_str());
            }
        }
        match message.role {
            Role::Assistant => self.add_reply(message, response_id),
            _ if message.is_prompt() => self.begin(),
            _ => {
                self.follows_reply = false;
                self.has_only_thoughts = false;
            }
        }
    }

    /// Adds a prompt or a summary: the agent continued without what was missing before.
    pub fn begin(&mut self) {
        *self = Self {
            has_begun: true,
            ..Self::default()
        };
    }

    /// Returns whether the conversation could end here.
    pub fn is_complete(&self) -> bool {
        self.has_begun && self.open.is_empty() && !self.has_only_thoughts
    }

    fn add_reply(&mut self, message: &Message, response_id: Option<&str>) {
        let is_same = response_id.is_some() && response_id == self.response.as_deref();
        let continues = is_same || self.follows_reply;
        if !continues {
            self.open.clear();
        }
        self.has_only_thoughts = message.blocks.iter().all(is_thought);
        let calls = message.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call.id.as_str().to_owned()),
            _ => None,
        });
        self.open.extend(calls);
        self.response = response_id.map(str::to_owned);
        self.follows_reply = true;
    }
}

/// Returns whether a block is a part of the model's reasoning.
fn is_thought(block: &Block) -> bool {
    match block {
        Block::Thinking(_) => true,
        Block::Other(json) => ["\"redacted_thinking\"", "\"encrypted_content\""]
            .iter()
            .any(|name| json.as_str().contains(name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use backtrail::{ToolResult, ToolUse};

    use super::*;

    fn call(id: &str) -> Message {
        let call = ToolUse::new(id, "bash", &serde_json::json!({})).unwrap();
        Message::assistant([call.into()])
    }

    fn result(id: &str) -> Message {
        Message::tool_result(ToolResult::ok("done").answers(id, "bash"))
    }

    /// Returns after which messages a conversation could end.
    fn complete(messages: &[(Message, Option<&str>)]) -> Vec<bool> {
        let mut end = CompleteEnd::default();
        let mut add = |(message, response): &(Message, Option<&str>)| {
            end.add(message, *response);
            end.is_complete()
        };
        messages.iter().map(&mut add).collect()
    }

    // F25
    #[test]
    fn a_conversation_does_not_end_between_calls_and_their_results() {
        let talk = [
            (Message::user_text("go"), None),
            (Message::assistant([Block::thinking("hm")]), Some("r1")),
            (Message::assistant([Block::text("I look.")]), Some("r1")),
            (call("a"), Some("r1")),
            (call("b"), Some("r1")),
            (result("b"), None),
            (result("a"), None),
            (Message::assistant([Block::text("Done.")]), Some("r2")),
        ];
        let expected = [true, false, true, false, false, false, true, true];
        assert_eq!(complete(&talk), expected);
        let without_ids = talk.map(|(message, _)| (message, None));
        assert_eq!(complete(&without_ids), expected);
    }

    #[test]
    fn a_call_that_was_interrupted_is_over_with_the_next_prompt_or_response() {
        let talk = [
            (Message::user_text("go"), None),
            (call("a"), None),
            (Message::user_text("no, wait"), None),
            (call("b"), Some("r2")),
            (call("c"), Some("r2")),
            (result("c"), None),
            (Message::assistant([Block::text("Done.")]), Some("r3")),
        ];
        let expected = [true, false, true, false, false, false, true];
        assert_eq!(complete(&talk), expected);
    }
}
