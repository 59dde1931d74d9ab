//! A session that is written for a target is read back, by the reader of the target's own
//! sessions, to the same conversation. Every registered target is tried.

use std::path::Path;

use backtrail::context::{
    HandOver, HandOverCall, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart,
    ReplyPart,
};
use backtrail::{Block, Message, Role, Timestamp, ToolResult, Usage};
use proptest::prelude::*;

use super::{OutgoingSession, Target, target};
use crate::collector::EventCollector;
use crate::environment::Environment;
use crate::event::{Event, ReadReport};
use crate::format::formats;
use crate::launch::NewSession;
use crate::source::Source;

const ID: &str = "01a1e322-c9cd-7641-8b1f-3880d81bfa63";
const DIRECTORY: &str = "/work/shop";
const TITLE: &str = "Fix the \"shop\" (from elsewhere) 🛒";
const PNG: &str = "iVBORw0KGgo=";

fn targets() -> impl Iterator<Item = Target> {
    formats().filter_map(|format| target(format.name()))
}

/// A part of a conversation. Texts that follow one another are one text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Prompt(Vec<HandOverPart>),
    Text(String),
    Call {
        id: String,
        name: String,
        input: String,
        /// The text and the media of the result, and whether it is an error.
        result: Option<(String, Vec<HandOverMedia>, bool)>,
    },
    Other(String),
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
fn given(session: &OutgoingSession<'_>) -> Vec<Said> {
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
fn read(events: &EventCollector) -> Vec<Said> {
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
fn image_in(block: &serde_json::Value) -> Option<HandOverPart> {
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

/// Prepares a conversation for a target and does something with it.
pub(super) fn with_session<T>(
    target: &Target,
    messages: &[HandOverMessage],
    then: impl FnOnce(&OutgoingSession<'_>) -> T,
) -> T {
    let environment = Environment::default();
    let new = NewSession {
        id: ID.to_owned(),
        at: time(99),
        directory: DIRECTORY.into(),
        environment: &environment,
    };
    let mut hand_over = HandOver::default();
    hand_over.messages = messages.to_vec();
    let (session, _) = target.prepare(hand_over, TITLE, None, &new);
    then(&session)
}

/// Returns the lines that are written for a target: a prompt, and a response with a call.
pub(super) fn lines_for(agent: &str, prompt: &str) -> Vec<serde_json::Value> {
    let target = target(agent).expect("the target exists");
    let one = call("c1", "Bash", r#"{"command":"ls"}"#, vec![text("a")]);
    let messages = messages([user(vec![text(prompt)]), model(vec![says("yes"), one])]);
    let mut bytes = Vec::new();
    with_session(&target, &messages, |session| {
        target
            .write(session, &mut bytes)
            .expect("memory takes everything");
    });
    let lines = serde_json::Deserializer::from_slice(&bytes).into_iter();
    lines.map(|line| line.expect("each line is JSON")).collect()
}

/// Writes a conversation for a target and reads it back. Returns what was wrong.
fn check(target: &Target, messages: &[HandOverMessage]) -> Result<(), String> {
    with_session(target, messages, |session| check_session(target, session))
}

fn check_session(target: &Target, session: &OutgoingSession<'_>) -> Result<(), String> {
    let mut bytes = Vec::new();
    target
        .write(session, &mut bytes)
        .expect("memory takes everything");
    let fail = |what: String| Err(format!("{}: {what}", target.name()));
    if !is_json(&bytes) {
        return fail(format!("not JSON: {}", String::from_utf8_lossy(&bytes)));
    }
    let (report, events) = read_back(target, &bytes);
    let unclear = !report.unknown.is_empty() || report.damage.count > 0 || report.unfinished;
    if unclear {
        return fail(format!("{report:?}"));
    }
    let (given, read) = (given(session), read(&events));
    if given != read {
        return fail(format!("wrote {given:#?}\nread {read:#?}"));
    }
    match facts(&events, session) {
        Some(wrong) => fail(wrong),
        None => Ok(()),
    }
}

fn read_back(target: &Target, bytes: &[u8]) -> (ReadReport, EventCollector) {
    let source = Source::from_bytes(format!("chats/{ID}.jsonl"), bytes);
    let format = formats().find(|format| format.name() == target.name());
    let format = format.expect("a target that is read back has a format");
    assert!(format.recognises(&source), "{target:?}");
    let mut events = EventCollector::default();
    let opened = format.open(&source).expect("memory can be read");
    let report = events.read(opened).expect("memory can be read");
    (report, events)
}

/// Returns whether a file is one JSON value, or each line is.
fn is_json(bytes: &[u8]) -> bool {
    let is_value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    is_value(bytes) || lines.split(|byte| *byte == b'\n').all(is_value)
}

/// Compares what is known about the session besides its messages. Returns what differs.
fn facts(events: &EventCollector, session: &OutgoingSession<'_>) -> Option<String> {
    if events.threads.len() > 1 || events.session != ID {
        return Some(format!("{:?} in {:?}", events.session, events.threads));
    }
    let main = events.main()?;
    let title = main.details.title.as_deref();
    // Some agents keep it in another file.
    if title.is_some_and(|title| title != TITLE) {
        return Some(format!("title {title:?}"));
    }
    let directory = main.details.directory.as_deref();
    if directory.is_some_and(|directory| directory != Path::new(DIRECTORY)) {
        return Some(format!("directory {directory:?}"));
    }
    // Nothing is counted twice.
    let is_used = |usage: &Usage| usage.input_tokens > 0 || usage.output_tokens > 0;
    let used = main.events.iter().find(|event| match event {
        Event::Message(said) => said.message.usage.as_ref().is_some_and(is_used),
        Event::Usage(_) => true,
        _ => false,
    });
    let known = session.messages.iter().filter_map(|message| message.at);
    let known: Vec<Timestamp> = known.collect();
    let times = events.messages().map(|event| event.at);
    let odd = times
        .filter(|at| at.is_none_or(|at| !known.contains(&at)))
        .last();
    match (used, odd) {
        (None, None) => None,
        wrong => Some(format!("usage or time {wrong:?}")),
    }
}

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_millis((1_794_000_000 + seconds) * 1_000 + 7).expect("a time of this century")
}

fn text(text: &str) -> HandOverPart {
    HandOverPart::Text(text.to_owned())
}

fn image() -> HandOverPart {
    HandOverPart::Media(HandOverMedia {
        media_type: "image/png".to_owned(),
        data: PNG.to_owned(),
    })
}

fn user(parts: Vec<HandOverPart>) -> HandOverContent {
    HandOverContent::User(parts)
}

fn model(parts: Vec<ReplyPart>) -> HandOverContent {
    let model = Some("claude-sonnet-4-5".to_owned());
    HandOverContent::Assistant { model, parts }
}

fn says(text: &str) -> ReplyPart {
    ReplyPart::Text(text.to_owned())
}

fn call(id: &str, name: &str, input: &str, output: Vec<HandOverPart>) -> ReplyPart {
    ReplyPart::Call(HandOverCall {
        id: id.to_owned(),
        name: name.to_owned(),
        input: input.to_owned(),
        output,
        is_error: false,
    })
}

fn failed(call: ReplyPart) -> ReplyPart {
    match call {
        ReplyPart::Call(call) => ReplyPart::Call(HandOverCall {
            is_error: true,
            ..call
        }),
        text @ ReplyPart::Text(_) => text,
    }
}

/// Gives contents records and times.
fn messages(contents: impl IntoIterator<Item = HandOverContent>) -> Vec<HandOverMessage> {
    let message = |(seq, content): (u64, HandOverContent)| HandOverMessage {
        seq,
        at: Some(time(i64::try_from(seq).expect("few messages") / 2)),
        content,
    };
    (1..).zip(contents).map(message).collect()
}

fn check_all(contents: impl IntoIterator<Item = HandOverContent>) {
    let messages = messages(contents);
    for target in targets() {
        if let Err(wrong) = check(&target, &messages) {
            panic!("{wrong}");
        }
    }
}

#[test]
fn every_target_has_a_reader() {
    let names: Vec<_> = targets().map(|target| target.name()).collect();
    for name in ["claude-code", "codex", "gemini-cli", "pi", "qwen-code"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
}

#[test]
fn prompts_answers_and_calls_come_back() {
    check_all([
        user(vec![text("Fix the shop"), text("and the till")]),
        model(vec![
            says("I look first."),
            says("At two files."),
            call(
                "call_1",
                "Read",
                r#"{"file_path":"/work/shop/a.rs"}"#,
                vec![text("fn a() {}\n")],
            ),
            call(
                "call_2",
                "Bash",
                r#"{"command":"ls"}"#,
                vec![text("a.rs"), text("b.rs")],
            ),
            says("One more."),
            call("call_3", "Bash", r#"{"command":"true"}"#, vec![]),
        ]),
        model(vec![failed(call(
            "call_4",
            "Edit",
            r#"{"file_path":"a.rs","old_string":"a","new_string":"b"}"#,
            vec![text("no such text")],
        ))]),
        model(vec![says("Done.")]),
        user(vec![text("Thanks")]),
        user(vec![text("One thing more")]),
    ]);
}

#[test]
fn images_come_back_from_prompts_and_results() {
    check_all([
        user(vec![image(), text("What is this?"), image()]),
        model(vec![
            call("c1", "Read", r#"{"file_path":"a.png"}"#, vec![image()]),
            call(
                "c2",
                "Read",
                r#"{"file_path":"b.png"}"#,
                vec![text("two:"), image(), image()],
            ),
        ]),
        user(vec![image()]),
        model(vec![says("A picture.")]),
    ]);
}

#[test]
fn a_conversation_may_start_with_an_answer_and_end_anywhere() {
    let one = || call("c1", "Bash", r#"{"command":"ls"}"#, vec![text("a")]);
    check_all([model(vec![one()])]);
    check_all([model(vec![one(), says("and")]), user(vec![text("go on")])]);
    check_all([user(vec![text("hello")])]);
    check_all([user(vec![text("hello")]), model(vec![says("a"), one()])]);
}

#[test]
fn odd_texts_ids_and_inputs_come_back() {
    let long = "x".repeat(64);
    let odd = "\u{0}\u{1}\u{7f}\u{85}\u{2028}\u{feff}\u{fffd} \r\n\t\"\\ é 漢字 🛒";
    let output = "line\n".repeat(100_000);
    check_all([
        user(vec![text(odd)]),
        model(vec![
            says(odd),
            call(
                &long,
                &long,
                "{ \"a\" : 1.0,\n\"b\":[1e5,null,{\"c\":\"\\u00e9\"}] }",
                vec![text(odd)],
            ),
            failed(call("no-text", "my_tool", "{}", vec![])),
            call("big", "my-tool", r#"{"":""}"#, vec![text(&output)]),
        ]),
        model(vec![says(&output)]),
    ]);
}

#[test]
fn texts_that_an_agent_could_misread_come_back() {
    for prompt in [
        "/src/a.rs is broken",
        "? what is this",
        "  /help",
        "{\"a\":1}",
        "[1]",
        "<b>mine</b>",
        "$set",
    ] {
        check_all([user(vec![text(prompt)]), model(vec![says(prompt)])]);
    }
    for output in [
        r#"{"output":"x","metadata":{"exit_code":1}}"#,
        "aborted",
        "Exit code: 1\nWall time: 1",
        "null",
        "[]",
    ] {
        let one = || call("c1", "my_tool", "{}", vec![text(output)]);
        check_all([model(vec![one()]), user(vec![text("and?")])]);
        check_all([model(vec![failed(one())])]);
    }
}

/// Texts with at least one visible character, as all texts of messages have.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "\\PC{1,40}",
        2 => any::<String>(),
        1 => "[\\x00-\\x20\u{fffd}\u{2028}\"\\\\]{0,8}x[\\n\\r\\t ]{0,4}",
        1 => (1..2_000_usize).prop_map(|n| "long text ".repeat(n)),
    ]
    .prop_filter("a text is not blank", |text| !text.trim().is_empty())
}

fn any_part() -> impl Strategy<Value = HandOverPart> {
    prop_oneof![
        4 => any_text().prop_map(HandOverPart::Text),
        1 => Just(image()),
    ]
}

fn any_input() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::json!([{"content": "a", "status": "pending"}])),
    ];
    let name = prop_oneof![
        "command",
        "path",
        "file_path",
        "todos",
        "pattern",
        "\\PC{0,9}"
    ];
    let object = prop::collection::btree_map(name, value, 0..5);
    object.prop_map(|fields| serde_json::to_string(&fields).expect("a map is JSON"))
}

fn any_call() -> impl Strategy<Value = ReplyPart> {
    let name = prop_oneof![
        2 => "[a-zA-Z0-9_-]{1,64}",
        3 => prop::sample::select(vec!["Bash", "Read", "TodoWrite", "Grep", "exec_command"])
            .prop_map(str::to_owned),
    ];
    let output = prop::collection::vec(any_part(), 0..3);
    let made = (
        "[a-zA-Z0-9_-]{0,56}",
        name,
        any_input(),
        output,
        any::<bool>(),
    );
    made.prop_map(|(id, name, input, output, is_error)| {
        ReplyPart::Call(HandOverCall {
            id,
            name,
            input,
            output,
            is_error,
        })
    })
}

fn any_content() -> impl Strategy<Value = HandOverContent> {
    let reply = prop_oneof![any_text().prop_map(ReplyPart::Text), any_call()];
    let name = prop::option::of("[a-z0-9.-]{1,20}");
    prop_oneof![
        prop::collection::vec(any_part(), 1..4).prop_map(HandOverContent::User),
        (name, prop::collection::vec(reply, 1..6))
            .prop_map(|(model, parts)| HandOverContent::Assistant { model, parts }),
    ]
}

/// Makes the ids of calls unique.
fn with_ids(mut messages: Vec<HandOverMessage>) -> Vec<HandOverMessage> {
    let mut n = 0;
    for message in &mut messages {
        if let HandOverContent::Assistant { parts, .. } = &mut message.content {
            for part in parts {
                if let ReplyPart::Call(call) = part {
                    n += 1;
                    call.id = format!("{}{n:08}", call.id);
                }
            }
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_conversation_comes_back(
        contents in prop::collection::vec(any_content(), 1..8),
    ) {
        let messages = with_ids(messages(contents));
        for target in targets() {
            prop_assert_eq!(check(&target, &messages), Ok(()));
        }
    }
}
