//! For the tests of targets: conversations made by hand, and what a format reads of the files
//! that are made of them.

use std::path::{Path, PathBuf};

use backtrail::context::{
    HandOver, HandOverCall, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart,
    ReplyPart,
};
use backtrail::{Block, Role, Timestamp};
use serde_json::Value;

use super::{OutgoingSession, target};
use crate::collector::EventCollector;
use crate::environment::Environment;
use crate::format::formats;
use crate::launch::NewSession;
use crate::source::Source;
use crate::testing::read;

pub(super) const ID: &str = "0a1b2c3d-0000-4000-8000-000000000001";
pub(super) const TITLE: &str = "Fix \"it\": the shop's\ttitle";
pub(super) const DIRECTORY: &str = "/w/shop";
pub(super) const PNG: &str = "iVBORw0KGgo=";

pub(super) fn text(text: &str) -> HandOverPart {
    HandOverPart::Text(text.to_owned())
}

pub(super) fn image() -> HandOverPart {
    HandOverPart::Media(HandOverMedia {
        media_type: "image/png".to_owned(),
        data: PNG.to_owned(),
    })
}

pub(super) fn said(text: &str) -> ReplyPart {
    ReplyPart::Text(text.to_owned())
}

pub(super) fn call(id: &str, name: &str, input: &str, output: Vec<HandOverPart>) -> ReplyPart {
    ReplyPart::Call(HandOverCall {
        id: id.to_owned(),
        name: name.to_owned(),
        input: input.to_owned(),
        output,
        is_error: false,
    })
}

pub(super) fn failed(mut call: ReplyPart) -> ReplyPart {
    if let ReplyPart::Call(call) = &mut call {
        call.is_error = true;
    }
    call
}

pub(super) fn user(parts: Vec<HandOverPart>) -> HandOverContent {
    HandOverContent::User(parts)
}

pub(super) fn assistant(parts: Vec<ReplyPart>) -> HandOverContent {
    let model = Some("big-1".to_owned());
    HandOverContent::Assistant { model, parts }
}

pub(super) fn hand_over(contents: Vec<HandOverContent>) -> HandOver {
    let mut hand_over = HandOver::default();
    for (n, content) in contents.into_iter().enumerate() {
        let seq = n as u64;
        hand_over.messages.push(HandOverMessage {
            seq,
            // Some have no time, and some the same.
            at: (n % 3 != 1).then(|| time(1_790_000_000_123 + 500 * n as i64)),
            content,
        });
    }
    hand_over
}

pub(super) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

/// A conversation with everything that is difficult.
pub(super) fn hard() -> HandOver {
    let long = "c".repeat(64);
    hand_over(vec![
        user(vec![text(
            "first \u{1f980} prompt\nwith \"quotes\" \\ and </b>",
        )]),
        assistant(vec![
            said("I look."),
            call(
                "call_1",
                "Bash",
                r#"{"command":"ls -l","n":1.0}"#,
                vec![text("a.rs\nb.rs")],
            ),
            call("call_2", "my_tool", "{}", Vec::new()),
        ]),
        assistant(vec![
            call(
                &long,
                "mcp__srv__x",
                r#"{"deep":{"a":[1,{"b":null}]}}"#,
                vec![text("ünï \u{1} \u{7f} \u{2028}")],
            ),
            said("Between."),
            failed(call(
                "c-4",
                "Read",
                r#"{"file_path":"/w/shop/a.rs"}"#,
                vec![text("no such file")],
            )),
            failed(call("c-5", "Bash", r#"{"command":"false"}"#, Vec::new())),
            said("After."),
        ]),
        user(vec![text("look at this"), image(), text("and this")]),
        assistant(vec![
            call("c-6", "screenshot", "{}", vec![image()]),
            call(
                "c-7",
                "Write",
                r#"{"file_path":"/w/shop/b.rs","content":"x\n"}"#,
                vec![text("done"), image()],
            ),
        ]),
        assistant(vec![said("One."), said("Two.")]),
        user(vec![text("tabs\tand\r\nlines")]),
        assistant(vec![said("Ok.")]),
        user(vec![text("last")]),
    ])
}

/// A conversation whose first message is the assistant's.
pub(super) fn answer_first() -> HandOver {
    hand_over(vec![
        assistant(vec![said("Hello."), call("1", "t", "{}", vec![text("x")])]),
        user(vec![text("go on")]),
    ])
}

/// A session for a target: the text of its file, and the files beside it.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) companions: Vec<(PathBuf, String)>,
    items: Vec<Item>,
}

impl Written {
    /// Returns the lines as JSON.
    pub(super) fn lines(&self) -> Vec<Value> {
        let lines = self.text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the whole file as one JSON value.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// Checks that the format of the target reads the same conversation, and nothing else.
    pub(super) fn assert_read_back(&self, name: &str) -> EventCollector {
        let format = formats().find(|format| format.name() == name).unwrap();
        let path = format!("/data/{ID}");
        assert!(format.recognises(&Source::from_bytes(&path, self.text.as_bytes())));
        let (report, events) = read(format, &path, self.text.as_bytes()).unwrap();
        assert_eq!(report.damage.count, 0, "{:?}", report.damage);
        assert_eq!(
            report.unknown.values().sum::<u64>(),
            0,
            "{:?}",
            report.unknown
        );
        assert!(!report.unfinished);
        assert_eq!(events.session, ID);
        let is_message =
            |event: &crate::event::Event| matches!(event, crate::event::Event::Message(_));
        assert!(events.main().unwrap().events.iter().all(is_message));
        assert_eq!(items_of_events(&events), self.items);
        events
    }
}

/// Writes a session for a target.
pub(super) fn write(name: &str, hand_over: HandOver) -> Written {
    let environment = Environment::new("/home/u");
    let new = NewSession {
        id: ID.to_owned(),
        at: time(1_795_000_000_000),
        directory: PathBuf::from(DIRECTORY),
        environment: &environment,
    };
    let target = target(name).unwrap();
    let (session, _) = target.prepare(hand_over, TITLE, Some(Path::new(DIRECTORY)), &new);
    let mut out = Vec::new();
    target.write(&session, &mut out).unwrap();
    Written {
        text: String::from_utf8(out).unwrap(),
        companions: target.companions(&session, Path::new(&format!("/place/{ID}.jsonl"))),
        items: items_of(&session),
    }
}

/// A step of a conversation. Texts that follow each other are one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Prompt(Output),
    Text(String),
    Call {
        id: String,
        name: String,
        input: Value,
        output: Output,
        is_error: bool,
    },
}

/// Texts, and images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Output {
    text: String,
    images: Vec<(String, String)>,
}

impl Output {
    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn of_parts(parts: &[HandOverPart]) -> Self {
        let mut output = Self::default();
        for part in parts {
            match part {
                HandOverPart::Text(text) => output.add_text(text),
                HandOverPart::Media(media) => {
                    let image = (media.media_type.clone(), media.data.clone());
                    output.images.push(image);
                }
            }
        }
        output
    }

    fn of_blocks(blocks: &[Block]) -> Self {
        let mut output = Self::default();
        for block in blocks {
            match block {
                Block::Text(block) => {
                    assert!(!block.text.is_empty(), "an empty text: {blocks:?}");
                    output.add_text(&block.text);
                }
                Block::Media(media) => {
                    let data: String = media.data.parse().unwrap();
                    output.images.push((media.media_type.to_string(), data));
                }
                other => panic!("{other:?}"),
            }
        }
        output
    }

    fn of_json(json: &backtrail::Json) -> Self {
        match json.parse::<String>() {
            Ok(text) => Self {
                text,
                images: Vec::new(),
            },
            Err(_) => Self::of_blocks(&json.parse::<Vec<Block>>().unwrap()),
        }
    }
}

fn add_text(items: &mut Vec<Item>, text: &str) {
    match items.last_mut() {
        Some(Item::Text(before)) => {
            before.push('\n');
            before.push_str(text);
        }
        _ => items.push(Item::Text(text.to_owned())),
    }
}

fn items_of(session: &OutgoingSession<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    for message in &session.messages {
        match &message.content {
            HandOverContent::User(parts) => items.push(Item::Prompt(Output::of_parts(parts))),
            HandOverContent::Assistant { parts, .. } => {
                for part in parts {
                    match part {
                        ReplyPart::Text(text) => add_text(&mut items, text),
                        ReplyPart::Call(call) => items.push(Item::Call {
                            id: call.id.clone(),
                            name: call.name.clone(),
                            input: serde_json::from_str(&call.input).unwrap(),
                            output: Output::of_parts(&call.output),
                            is_error: call.is_error,
                        }),
                    }
                }
            }
        }
    }
    items
}

fn items_of_events(events: &EventCollector) -> Vec<Item> {
    let mut items = Vec::new();
    for event in events.messages() {
        let message = &event.message;
        assert!(!message.is_meta(), "{message:?}");
        assert!(event.at.is_some());
        if message.role == Role::User {
            items.push(Item::Prompt(Output::of_blocks(&message.blocks)));
            continue;
        }
        for block in &message.blocks {
            match block {
                Block::Text(block) => add_text(&mut items, &block.text),
                Block::ToolUse(call) => items.push(Item::Call {
                    id: call.id.to_string(),
                    name: call.name.to_string(),
                    input: call.input.parse().unwrap(),
                    output: Output::default(),
                    is_error: false,
                }),
                Block::ToolResult(result) => {
                    let of_it = |item: &&mut Item| matches!(item, Item::Call { id, .. } if *id == result.tool_use_id.as_str());
                    match items.iter_mut().find(of_it) {
                        Some(Item::Call {
                            output, is_error, ..
                        }) => {
                            *output = Output::of_json(&result.output);
                            *is_error = result.is_error;
                        }
                        _ => panic!("a result without its call: {result:?}"),
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    items
}
