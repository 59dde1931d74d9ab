//! For the tests of targets: conversations made by hand, the files that are written of them, and
//! what the target's own format reads of those.

use std::path::{Path, PathBuf};

use backtrail::context::{
    HandOver, HandOverCall, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart,
    ReplyPart,
};
use backtrail::{Block, Message, Role, Timestamp, ToolResult, Usage};
use serde_json::Value;

use super::{Losses, OutgoingSession, Target, target};
use crate::collector::EventCollector;
use crate::environment::Environment;
use crate::event::Event;
use crate::format::{Format, formats};
use crate::launch::NewSession;
use crate::source::Source;

pub(super) const ID: &str = "01a1e322-c9cd-7641-8b1f-3880d81bfa63";
pub(super) const TITLE: &str = "Fix \"it\": the shop's\ttitle (from elsewhere) \u{1f6d2}";
pub(super) const DIRECTORY: &str = "/work/shop";
pub(super) const PNG: &str = "iVBORw0KGgo=";

/// How what is read of a file differs from what was written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Except {
    /// Times are not exact to the millisecond.
    RoughTimes,
    /// The images of a prompt are beside its text.
    ImagesAfterText,
    /// The arguments of calls are read without the spaces between them.
    CompactInputs,
    /// A call whose text says that it failed is an error.
    FailuresInText,
    /// Responses that follow one another, with results between them, are read as one, so that
    /// calls of several become calls of one. This is a fault of the readers, not of the formats:
    /// they give such responses one id, to count what they used.
    OneResponse,
    /// The models are not written.
    NoModels,
    /// The title is in a file beside it, or nowhere.
    NoTitle,
    /// The directory is in a file beside it, or nowhere.
    NoDirectory,
}

const EXCEPT: &[(&str, Except)] = &[
    ("codex", Except::OneResponse),
    ("codex", Except::NoModels),
    ("goose", Except::OneResponse),
    ("goose", Except::NoModels),
    ("goose", Except::RoughTimes),
    ("opencode", Except::RoughTimes),
    ("copilot-cli", Except::ImagesAfterText),
    ("copilot-cli", Except::NoTitle),
    ("cline", Except::FailuresInText),
    ("cline", Except::NoTitle),
    ("cline", Except::NoDirectory),
    ("gemini-cli", Except::NoDirectory),
    ("goose", Except::CompactInputs),
    ("opencode", Except::CompactInputs),
];

pub(super) fn is_except(name: &str, except: Except) -> bool {
    EXCEPT.contains(&(name, except))
}

/// Returns the targets whose sessions can be read, too.
pub(super) fn readable_targets() -> impl Iterator<Item = (Target, &'static dyn Format)> {
    formats().filter_map(|format| Some((target(format.name())?, format)))
}

pub(super) fn text(text: &str) -> HandOverPart {
    HandOverPart::Text(text.to_owned())
}

pub(super) fn image() -> HandOverPart {
    HandOverPart::Media(HandOverMedia {
        media_type: "image/png".to_owned(),
        data: PNG.to_owned(),
    })
}

pub(super) fn user(parts: Vec<HandOverPart>) -> HandOverContent {
    HandOverContent::User(parts)
}

pub(super) fn assistant(parts: Vec<ReplyPart>) -> HandOverContent {
    let model = Some("claude-sonnet-4-5".to_owned());
    HandOverContent::Assistant { model, parts }
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

/// Gives contents records and times.
pub(super) fn hand_over(contents: impl IntoIterator<Item = HandOverContent>) -> HandOver {
    let mut hand_over = HandOver::default();
    for (n, content) in (0..).zip(contents) {
        hand_over.messages.push(HandOverMessage {
            seq: n,
            // Some have no time, and some the same.
            at: (n % 3 != 1).then(|| time(1_794_000_000_123 + 500 * n.cast_signed())),
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
                r#"{"file_path":"/work/shop/a.rs"}"#,
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
                r#"{"file_path":"/work/shop/b.rs","content":"x\n"}"#,
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

/// A prompt, and a response with a call.
pub(super) fn short(prompt: &str) -> HandOver {
    let one = call("c1", "Bash", r#"{"command":"ls"}"#, vec![text("a")]);
    hand_over([user(vec![text(prompt)]), assistant(vec![said("yes"), one])])
}

/// Returns a new session.
pub(super) fn new_session(environment: &Environment) -> NewSession<'_> {
    NewSession {
        id: ID.to_owned(),
        at: time(1_795_000_000_000),
        directory: PathBuf::from(DIRECTORY),
        environment,
    }
}

/// A session for a target: the text of its file, and the files beside it.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) companions: Vec<(PathBuf, String)>,
    pub(super) said: Vec<Said>,
    pub(super) losses: Losses,
    /// The time of each message.
    pub(super) times: Vec<Timestamp>,
    /// The ids of the calls of each response.
    pub(super) calls: Vec<Vec<String>>,
    /// The models that are known, without those that follow themselves.
    pub(super) models: Vec<String>,
    target: Target,
}

/// Writes a session for a target.
pub(super) fn write(name: &str, hand_over: HandOver) -> Written {
    let environment = Environment::new("/home/u");
    let new = new_session(&environment);
    let main = PathBuf::from(format!("/place/chats/{ID}.jsonl"));
    write_new(target(name).unwrap(), hand_over, &new, &main)
}

/// Writes a new session for a target, whose file will be `main`.
pub(super) fn write_new(
    target: Target,
    hand_over: HandOver,
    new: &NewSession<'_>,
    main: &Path,
) -> Written {
    let (session, losses) = target.prepare(hand_over, TITLE, Some(Path::new(DIRECTORY)), new);
    let mut out = Vec::new();
    target.write(&session, &mut out).unwrap();
    Written {
        text: String::from_utf8(out).unwrap(),
        companions: target.companions(&session, main),
        said: said_in(&session),
        losses,
        times: session.messages.iter().filter_map(|it| it.at).collect(),
        calls: calls_in(&session),
        models: models_in(&session),
        target,
    }
}

fn calls_in(session: &OutgoingSession<'_>) -> Vec<Vec<String>> {
    let calls = session.messages.iter().map(|it| match &it.content {
        HandOverContent::Assistant { parts, .. } => {
            let ids = parts.iter().filter_map(|part| match part {
                ReplyPart::Call(call) => Some(call.id.clone()),
                ReplyPart::Text(_) => None,
            });
            ids.collect()
        }
        HandOverContent::User(_) => Vec::new(),
    });
    calls.collect()
}

fn models_in(session: &OutgoingSession<'_>) -> Vec<String> {
    let models = session.messages.iter().filter_map(|it| match &it.content {
        HandOverContent::Assistant { model, .. } => model.clone(),
        HandOverContent::User(_) => None,
    });
    // What is written where a name is needed.
    let is_known = |model: &String| !["unknown", "<synthetic>"].contains(&model.as_str());
    let mut models: Vec<_> = models.filter(is_known).collect();
    models.dedup();
    models
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
    /// Returns what is wrong.
    pub(super) fn read_back(&self) -> Result<(), String> {
        let name = self.target.name();
        let fail = |what: String| Err(format!("{name}: {what}"));
        if !self.is_json() {
            return fail(format!("not JSON: {}", self.text));
        }
        let source = Source::from_bytes(format!("chats/{ID}.jsonl"), self.text.as_bytes());
        let (_, format) = readable_targets()
            .find(|(target, _)| target.name() == name)
            .expect("a target that is read back has a format");
        assert!(format.recognises(&source), "{name}");
        let mut events = EventCollector::default();
        let report = events.read(format.open(&source).unwrap()).unwrap();
        if !report.unknown.is_empty() || report.damage.count > 0 || report.unfinished {
            return fail(format!("{report:?}"));
        }
        let written = as_read(name, self.said.clone());
        let read = said_in_events(&events);
        if written != read {
            return fail(format!("wrote {written:#?}\nread {read:#?}"));
        }
        self.facts(&events).map_or(Ok(()), fail)
    }

    /// Returns whether the file is one JSON value, or each line is.
    fn is_json(&self) -> bool {
        let is_value = |text: &str| serde_json::from_str::<Value>(text).is_ok();
        let lines = self.text.strip_suffix('\n').unwrap_or(&self.text);
        is_value(&self.text) || lines.split('\n').all(is_value)
    }

    /// Compares what is known about the session besides its messages. Returns what differs.
    fn facts(&self, events: &EventCollector) -> Option<String> {
        let name = self.target.name();
        if events.threads.len() > 1 || events.session != ID {
            return Some(format!("{:?} in {:?}", events.session, events.threads));
        }
        let main = events.main()?;
        let title = main.details.title.as_deref();
        let expected = (!is_except(name, Except::NoTitle)).then_some(TITLE);
        if title != expected {
            return Some(format!("title {title:?}"));
        }
        let directory = main.details.directory.as_deref();
        let expected = (!is_except(name, Except::NoDirectory)).then_some(Path::new(DIRECTORY));
        if directory != expected {
            return Some(format!("directory {directory:?}"));
        }
        // Nothing is counted twice.
        let is_used = |usage: &Usage| usage.input_tokens > 0 || usage.output_tokens > 0;
        let used = main.events.iter().find(|event| match event {
            Event::Message(said) => said.message.usage.as_ref().is_some_and(is_used),
            Event::Usage(_) => true,
            _ => false,
        });
        let precision = match is_except(name, Except::RoughTimes) {
            true => 1_000,
            false => 1,
        };
        let known = |at: Timestamp| {
            let is_same =
                |other: &Timestamp| at.as_millis() / precision == other.as_millis() / precision;
            self.times.iter().any(is_same)
        };
        let mut times = events.messages().map(|event| event.at);
        let odd = times.find(|at| !at.is_some_and(known));
        match (used, odd) {
            (None, None) => None,
            wrong => Some(format!("usage or time {wrong:?}")),
        }
    }
}

/// A part of a conversation. Texts that follow one another are one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    Prompt(Vec<HandOverPart>),
    Text(String),
    Call {
        id: String,
        name: String,
        input: String,
        /// The text and the media of the result, and whether it is an error.
        result: Option<(String, Vec<HandOverMedia>, bool)>,
    },
    /// What must not be there.
    Other(String),
}

/// Returns what was said as a target's format reads it.
pub(super) fn as_read(name: &str, mut all: Vec<Said>) -> Vec<Said> {
    for said in &mut all {
        match said {
            Said::Prompt(parts) if is_except(name, Except::ImagesAfterText) => {
                let joined = super::joined_text(parts);
                let media = std::mem::take(parts).into_iter();
                let media = media.filter(|part| matches!(part, HandOverPart::Media(_)));
                let text = (!joined.is_empty()).then_some(HandOverPart::Text(joined));
                *parts = text.into_iter().chain(media).collect();
            }
            Said::Call { input, result, .. } => {
                if is_except(name, Except::CompactInputs) {
                    *input = compact(input);
                }
                if let Some((text, _, is_error)) = result
                    && is_except(name, Except::FailuresInText)
                {
                    *is_error |= text.starts_with("Exit code: 1");
                }
            }
            _ => {}
        }
    }
    all
}

/// Returns JSON without the spaces between its values.
fn compact(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let keep = |c: &char| {
        match c {
            '"' if !is_escaped => is_text = !is_text,
            _ => {}
        }
        is_escaped = *c == '\\' && !is_escaped;
        is_text || !c.is_ascii_whitespace()
    };
    json.chars().filter(keep).collect()
}

fn add_text(said: &mut Vec<Said>, text: &str) {
    match said.last_mut() {
        Some(Said::Text(before)) => *before = format!("{before}\n{text}"),
        _ => said.push(Said::Text(text.to_owned())),
    }
}

fn add_prompt(said: &mut Vec<Said>, parts: impl IntoIterator<Item = HandOverPart>) {
    let mut joined: Vec<HandOverPart> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(HandOverPart::Text(before)), HandOverPart::Text(text)) => {
                *before = format!("{before}\n{text}");
            }
            (_, part) => joined.push(part),
        }
    }
    if !joined.is_empty() {
        said.push(Said::Prompt(joined));
    }
}

fn result_of(parts: &[HandOverPart], is_error: bool) -> Option<(String, Vec<HandOverMedia>, bool)> {
    let media = parts.iter().filter_map(|part| match part {
        HandOverPart::Media(media) => Some(media.clone()),
        HandOverPart::Text(_) => None,
    });
    Some((super::joined_text(parts), media.collect(), is_error))
}

/// Returns what is to be written.
fn said_in(session: &OutgoingSession<'_>) -> Vec<Said> {
    let mut said = Vec::new();
    for message in &session.messages {
        match &message.content {
            HandOverContent::User(parts) => add_prompt(&mut said, parts.iter().cloned()),
            HandOverContent::Assistant { parts, .. } => {
                for part in parts {
                    match part {
                        ReplyPart::Text(text) => add_text(&mut said, text),
                        ReplyPart::Call(call) => said.push(Said::Call {
                            id: call.id.clone(),
                            name: call.name.clone(),
                            input: super::raw(&call.input).as_str().to_owned(),
                            result: result_of(&call.output, call.is_error),
                        }),
                    }
                }
            }
        }
    }
    said
}

/// Returns what was read.
fn said_in_events(events: &EventCollector) -> Vec<Said> {
    let mut said = Vec::new();
    for event in events.messages() {
        add_message(&mut said, &event.message);
    }
    said
}

fn add_message(said: &mut Vec<Said>, message: &Message) {
    let mut prompt = Vec::new();
    for block in &message.blocks {
        match (block, &message.role) {
            (Block::ToolResult(result), _) => answer(said, result),
            (Block::ToolUse(call), Role::Assistant) => said.push(Said::Call {
                id: call.id.to_string(),
                name: call.name.to_string(),
                input: call.input.as_str().to_owned(),
                result: None,
            }),
            (Block::Text(block), Role::Assistant) => add_text(said, &block.text),
            (block, Role::User) if !message.is_meta() => match part(block) {
                Some(part) => prompt.push(part),
                None => said.push(Said::Other(format!("{block:?}"))),
            },
            (block, role) => said.push(Said::Other(format!("{role:?}: {block:?}"))),
        }
    }
    add_prompt(said, prompt);
}

fn part(block: &Block) -> Option<HandOverPart> {
    match block {
        Block::Text(block) => Some(HandOverPart::Text(block.text.to_string())),
        Block::Media(media) => Some(HandOverPart::Media(HandOverMedia {
            media_type: media.media_type.to_string(),
            data: media.data.parse().ok()?,
        })),
        Block::Other(json) => image_in(&json.parse().ok()?),
        _ => None,
    }
}

/// Returns an image in the form of Anthropic's API, which results may keep.
fn image_in(block: &Value) -> Option<HandOverPart> {
    let field = |name: &str| Some(block["source"][name].as_str()?.to_owned());
    Some(HandOverPart::Media(HandOverMedia {
        media_type: field("media_type")?,
        data: field("data")?,
    }))
}

/// Adds a result to its call, which must be before it in the same turn.
fn answer(said: &mut Vec<Said>, given: &ToolResult) {
    let turn = said
        .iter()
        .rposition(|said| matches!(said, Said::Prompt(_)));
    let turn = &mut said[turn.map_or(0, |prompt| prompt + 1)..];
    let call = turn.iter_mut().find_map(|said| match said {
        Said::Call { id, result, .. } if *id == *given.tool_use_id => Some(result),
        _ => None,
    });
    let parts: Option<Vec<HandOverPart>> = match given.output.parse::<String>() {
        Ok(text) => Some(vec![HandOverPart::Text(text)]),
        Err(_) => match given.output.parse::<Vec<Block>>() {
            Ok(blocks) => blocks.iter().map(part).collect(),
            Err(_) => None,
        },
    };
    match (call, parts) {
        (Some(result @ None), Some(parts)) => *result = result_of(&parts, given.is_error),
        _ => said.push(Said::Other(format!("{given:?}"))),
    }
}
