//! What a request says, whatever its protocol.

use serde_json::Value;

/// A request to a model.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Whether the answer is wanted as server-sent events.
    pub stream: bool,
    /// The name of the model.
    pub model: String,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
    /// What was said so far.
    pub entries: Vec<Entry>,
}

/// A tool that a request offers.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
}

/// A part of the conversation so far.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Instructions.
    System(String),
    /// A text of the user, or one that the agent adds in the user's name.
    User(String),
    /// A text of the model.
    Assistant(String),
    /// A thought of the model.
    Thinking(String),
    /// A call of the model.
    Call(Call),
    /// The result of a call.
    Result {
        /// The id of the call.
        id: String,
        /// What the tool returned.
        text: String,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments, an object.
    pub arguments: Value,
}

impl Conversation {
    /// Returns the texts of the user that contain one of these markers: the prompts, without what
    /// the agent adds.
    #[must_use]
    pub fn prompts(&self, markers: &[&str]) -> Vec<&str> {
        let texts = self.entries.iter().filter_map(|entry| match entry {
            Entry::User(text) => Some(text.as_str()),
            _ => None,
        });
        texts
            .filter(|text| markers.iter().any(|marker| text.contains(marker)))
            .collect()
    }

    /// Returns the texts of the model, the empty ones aside.
    #[must_use]
    pub fn answers(&self) -> Vec<&str> {
        let texts = self.entries.iter().filter_map(|entry| match entry {
            Entry::Assistant(text) => Some(text.as_str()),
            _ => None,
        });
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// Returns the calls of the model.
    #[must_use]
    pub fn calls(&self) -> Vec<&Call> {
        let calls = self.entries.iter();
        calls
            .filter_map(|entry| match entry {
                Entry::Call(call) => Some(call),
                _ => None,
            })
            .collect()
    }

    /// Returns the results, each with the id of its call.
    #[must_use]
    pub fn results(&self) -> Vec<(&str, &str)> {
        let results = self.entries.iter();
        results
            .filter_map(|entry| match entry {
                Entry::Result { id, text } => Some((id.as_str(), text.as_str())),
                _ => None,
            })
            .collect()
    }
}
