//! A conversation for another program, which continues it: values instead of JSON.
//!
//! It is mended as a context is, by the strictest rules: ids and names of calls that every
//! provider accepts, every call with its result, the first message by the user, and no two
//! responses in a row. What only the program that wrote it
//! understands stays behind, and is counted: instructions, texts that it added in the user's
//! name, and reasoning, which is signed or encrypted for one provider.

use std::borrow::Cow;
use std::collections::HashMap;

use super::mend::{Mend, MendRule};
use super::mender;
use super::parts::{Author, ContextItem, ContextTurn, Medium, SentResult, TurnPart};
use super::shape::Shape;
use super::{ContextInput, ContextMessage};
use crate::message::{Block, Injected, InjectedKind, Message, Role};
use crate::time::Timestamp;

/// Its rules are the strictest,
const RULES: Shape = Shape::Anthropic;
/// but not for the names of tools.
const NAMES: Shape = Shape::OpenAi;

/// Which part of a conversation is handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandOverOptions {
    /// How far back it goes.
    pub extent: HandOverExtent,
    /// The last record, if not all of it is handed over.
    pub up_to: Option<u64>,
}

/// How far back a conversation is handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HandOverExtent {
    /// What a model would be sent: the last summary and the messages since.
    #[default]
    Context,
    /// All messages.
    Whole,
}

impl HandOverOptions {
    /// Creates options.
    pub fn new(extent: HandOverExtent, up_to: Option<u64>) -> Self {
        Self { extent, up_to }
    }
}

/// What becomes of texts that look as if an agent had added them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddedTexts {
    StayBehind,
    AreKept,
}

/// A conversation that another program can continue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandOver {
    /// The summary of what came before the messages.
    pub summary: Option<String>,
    /// The messages, in order. The first is the user's, unless there is a summary.
    pub messages: Vec<HandOverMessage>,
    /// The last record of the conversation; 0 if there is none.
    pub last_seq: u64,
    /// What stays behind.
    pub left: LeftBehind,
    /// Where the messages differ from what was recorded.
    pub mends: Vec<Mend>,
    /// How many places of the history could not be read.
    pub skipped: u64,
}

/// How much of a conversation has no place in another program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftBehind {
    /// Instructions of the program to the model.
    pub instructions: u64,
    /// Texts that the program added in the user's name.
    pub injected: u64,
    /// Parts of the model's reasoning.
    pub thoughts: u64,
}

/// A message of a [`HandOver`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOverMessage {
    /// The record of the message, or of its first part.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// What it says.
    pub content: HandOverContent,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandOverContent {
    /// The user's texts and images. There is at least one.
    User(Vec<HandOverPart>),
    /// A response of the model. There is at least one part.
    Assistant {
        /// The model, if known.
        model: Option<String>,
        /// Its texts and calls, in order.
        parts: Vec<ReplyPart>,
    },
}

/// A text or an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandOverPart {
    /// A text.
    Text(String),
    /// An image or a document.
    Media(HandOverMedia),
}

/// An image or a document that every provider accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOverMedia {
    /// The media type: a PNG, JPEG, GIF or WebP image, or a PDF.
    pub media_type: String,
    /// The bytes in Base64.
    pub data: String,
}

/// A part of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyPart {
    /// A text.
    Text(String),
    /// A tool call with its result.
    Call(HandOverCall),
}

/// A tool call. Its id is unique in the conversation, and has 1 to 64 letters, digits, `_`
/// and `-`, as has the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOverCall {
    /// The id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: the JSON text of an object.
    pub input: String,
    /// The texts and images of the result; none if it is empty.
    pub output: Vec<HandOverPart>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl HandOver {
    /// Makes it of the messages of a conversation.
    pub(crate) fn new(input: ContextInput, added: AddedTexts) -> Self {
        let mut left = LeftBehind {
            instructions: input.instructions.len() as u64,
            ..LeftBehind::default()
        };
        let summary = input.summary.filter(|text| !text.trim().is_empty());
        let messages = input.messages.into_iter();
        let messages = messages.filter_map(|said| without_added(said, added, &mut left));
        let input = ContextInput {
            messages: messages.collect(),
            summary,
            ..ContextInput::default()
        };
        let facts: HashMap<u64, &ContextMessage> =
            input.messages.iter().map(|said| (said.seq, said)).collect();
        let mended = mender::mend(RULES, &input);
        let mut messages: Vec<HandOverMessage> = Vec::new();
        let mut mends = mended.mends;
        // The first turn is the summary, if there is one.
        let skipped = usize::from(input.summary.is_some());
        for item in mended.items.into_iter().skip(skipped) {
            match item {
                ContextItem::Turn(turn) => {
                    if let Some(message) = message(turn, &facts, &mut left, &mut mends) {
                        add(&mut messages, message);
                    }
                }
                ContextItem::Results(results) => answer(messages.last_mut(), results),
            }
        }
        let is_thought =
            |mend: &Mend| matches!(mend.rule, MendRule::Thinking | MendRule::UnfinishedThinking);
        let (thoughts, mut mends): (Vec<_>, Vec<_>) = mends.into_iter().partition(is_thought);
        left.thoughts += thoughts.len() as u64;
        mends.sort_by_key(|mend| mend.seq);
        Self {
            summary: input.summary,
            messages,
            last_seq: 0,
            left,
            mends,
            skipped: 0,
        }
    }
}

/// Removes what the program added. `None` if nothing else is left.
fn without_added(
    mut said: ContextMessage,
    added: AddedTexts,
    left: &mut LeftBehind,
) -> Option<ContextMessage> {
    let message = &mut said.message;
    let is_system = |role: &Role| match role {
        Role::System => true,
        Role::Other(name) => name == "developer",
        _ => false,
    };
    if is_system(&message.role) {
        left.instructions += 1;
        return None;
    }
    let taken_apart = message.said();
    if taken_apart.injected.is_empty() || added == AddedTexts::AreKept {
        return Some(said);
    }
    let injected = taken_apart.injected.iter();
    let (kept, dropped): (Vec<&Injected<'_>>, Vec<_>) =
        injected.partition(|injected| is_content(injected.kind));
    left.injected += dropped.len() as u64;
    let own = (!taken_apart.text.trim().is_empty()).then_some(taken_apart.text.as_ref());
    let texts = kept.iter().map(|injected| injected.text);
    let text = own.into_iter().chain(texts).collect::<Vec<_>>();
    let text = (!text.is_empty()).then(|| Block::text(text.join("\n\n")));
    replace_texts(message, text);
    (!message.blocks.is_empty()).then_some(said)
}

/// Returns whether a text that a program added is of use to any other.
fn is_content(kind: InjectedKind) -> bool {
    matches!(
        kind,
        InjectedKind::CommandOutput | InjectedKind::Files | InjectedKind::Summary
    )
}

/// Puts one text in the place of all texts of a message.
fn replace_texts(message: &mut Message, text: Option<Block>) {
    let mut text = text;
    let blocks = std::mem::take(&mut message.blocks).into_iter();
    let blocks = blocks.filter_map(|block| match block {
        Block::Text(_) => text.take(),
        other => Some(other),
    });
    message.blocks = blocks.collect();
}

/// Adds a message. A response after one that ends in a text belongs to it.
fn add(messages: &mut Vec<HandOverMessage>, message: HandOverMessage) {
    let before = messages.last_mut().map(|last| &mut last.content);
    match (before, message) {
        (
            Some(HandOverContent::Assistant { parts, .. }),
            HandOverMessage {
                content: HandOverContent::Assistant { parts: more, .. },
                ..
            },
        ) if matches!(parts.last(), Some(ReplyPart::Text(_))) => parts.extend(more),
        (_, message) => messages.push(message),
    }
}

fn message(
    turn: ContextTurn<'_>,
    facts: &HashMap<u64, &ContextMessage>,
    left: &mut LeftBehind,
    mends: &mut Vec<Mend>,
) -> Option<HandOverMessage> {
    let fact = facts.get(&turn.seq);
    let content = match turn.author {
        Author::Assistant => {
            let parts = turn.parts.into_iter();
            let parts = parts.filter_map(|part| reply_part(turn.seq, part, left, mends));
            let parts: Vec<_> = parts.collect();
            let model = fact.and_then(|said| said.model.clone());
            (!parts.is_empty()).then_some(HandOverContent::Assistant { model, parts })
        }
        Author::User | Author::System => {
            let parts: Vec<_> = turn.parts.into_iter().filter_map(part).collect();
            (!parts.is_empty()).then_some(HandOverContent::User(parts))
        }
    };
    Some(HandOverMessage {
        seq: turn.seq,
        at: fact.and_then(|said| said.at),
        content: content?,
    })
}

fn reply_part(
    seq: u64,
    part: TurnPart<'_>,
    left: &mut LeftBehind,
    mends: &mut Vec<Mend>,
) -> Option<ReplyPart> {
    match part {
        TurnPart::Text(text) => Some(ReplyPart::Text(text.into_owned())),
        TurnPart::Call(call) => {
            let own = call.block.name.as_str();
            let name = NAMES.name(own).into_owned();
            // A name that the rules refuse too is noted.
            if name != own && call.name == own {
                let rule = MendRule::RefusedName;
                mends.push(Mend { seq, rule });
            }
            Some(ReplyPart::Call(HandOverCall {
                id: call.id.into_owned(),
                name,
                input: call.input.into_owned(),
                output: Vec::new(),
                is_error: false,
            }))
        }
        TurnPart::Thought { .. } | TurnPart::Redacted(_) => {
            left.thoughts += 1;
            None
        }
        // In these rules, media of a model are texts.
        TurnPart::Medium(_) | TurnPart::Own(_) => None,
    }
}

fn part(part: TurnPart<'_>) -> Option<HandOverPart> {
    match part {
        TurnPart::Text(text) => Some(HandOverPart::Text(text.into_owned())),
        TurnPart::Medium(medium) => media(medium).map(HandOverPart::Media),
        _ => None,
    }
}

fn media(medium: Medium<'_>) -> Option<HandOverMedia> {
    let data = medium.data.map(Cow::into_owned)?;
    let media_type = medium.media_type.into_owned();
    Some(HandOverMedia { media_type, data })
}

/// Adds results to the calls of the message before them.
fn answer(message: Option<&mut HandOverMessage>, results: Vec<SentResult<'_>>) {
    let Some(HandOverContent::Assistant { parts, .. }) = message.map(|it| &mut it.content) else {
        return;
    };
    for result in results {
        // The message may have earlier calls, with results of their own.
        let calls = parts.iter_mut().filter_map(|part| match part {
            ReplyPart::Call(call) => Some(call),
            ReplyPart::Text(_) => None,
        });
        if let Some(call) = calls.into_iter().find(|call| call.id == result.id) {
            call.is_error = result.is_error;
            call.output = result.parts.into_iter().filter_map(part).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ToolResult, ToolUse};

    fn of(messages: Vec<Message>) -> HandOver {
        let numbered = (1..).zip(messages);
        let messages = numbered.map(|(seq, message)| ContextMessage::new(seq, None, message));
        let input = ContextInput {
            messages: messages.collect(),
            ..ContextInput::default()
        };
        HandOver::new(input, AddedTexts::StayBehind)
    }

    fn call(id: &str) -> Block {
        ToolUse::new(id, "bash", &serde_json::json!({}))
            .unwrap()
            .into()
    }

    fn result(id: &str, output: &str) -> Message {
        Message::tool_result(ToolResult::ok(output).answers(id, "bash"))
    }

    /// Returns the calls with the texts of their results, message by message.
    fn calls(hand_over: &HandOver) -> Vec<Vec<(String, String)>> {
        let of_part = |part: &ReplyPart| match part {
            ReplyPart::Call(call) => {
                let texts = call.output.iter().map(|part| match part {
                    HandOverPart::Text(text) => text.as_str(),
                    HandOverPart::Media(_) => "media",
                });
                Some((call.id.clone(), texts.collect()))
            }
            ReplyPart::Text(_) => None,
        };
        let of_message = |message: &HandOverMessage| match &message.content {
            HandOverContent::Assistant { parts, .. } => parts.iter().filter_map(of_part).collect(),
            HandOverContent::User(_) => Vec::new(),
        };
        hand_over.messages.iter().map(of_message).collect()
    }

    #[test]
    fn each_call_has_its_own_result_also_in_responses_that_become_one() {
        let hand_over = of(vec![
            Message::user_text("go"),
            Message::assistant([call("a"), Block::text("first")]),
            result("a", "of a"),
            Message::assistant([call("b"), call("c")]),
            result("c", "of c"),
            result("b", "of b"),
            Message::assistant([call("d")]),
        ]);
        let found: Vec<_> = calls(&hand_over).into_iter().flatten().collect();
        let expected = [("a", "of a"), ("b", "of b"), ("c", "of c")];
        let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
        assert_eq!(found[..3], expected);
        assert!(found[3].1.contains("interrupted"), "{found:?}");
    }

    #[test]
    fn what_the_agent_added_stays_behind_and_what_commands_printed_does_not() {
        let reminder = "<system-reminder>be brief</system-reminder>";
        let hand_over = of(vec![
            Message::system_text("You are an agent."),
            Message::user_text(format!("fix it\n{reminder}")),
            Message::assistant([Block::thinking("hm"), Block::text("Done.")]),
        ]);
        let HandOverContent::User(parts) = &hand_over.messages[0].content else {
            panic!("{hand_over:#?}");
        };
        assert_eq!(parts[..], [HandOverPart::Text("fix it".to_owned())]);
        let left = hand_over.left;
        let counts = (left.instructions, left.injected, left.thoughts);
        assert_eq!(counts, (1, 1, 1), "{hand_over:#?}");
    }
}
