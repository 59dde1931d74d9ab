//! Promises that hold for arbitrary histories.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::mender::INTERRUPTED;
use super::valid_tests::check;
use super::{
    AddedTexts, ContextInput, ContextMessage, HandOver, HandOverContent, MendRule, ReplyPart,
    Shape, render,
};
use crate::json::Json;
use crate::message::{Block, Message, Role, ToolResult, ToolUse};

/// Few ids, so that they collide; some are refused, one is derived from `t1`.
const IDS: [&str; 8] = [
    r#""t1""#,
    r#""t2""#,
    r#""""#,
    r#""functions.bash:0""#,
    r#""\ud83d""#,
    r#""0123456789012345678901234567890123456789x""#,
    r#""012345678901234567890123456789012345678901234567890123456789012345678901""#,
    r#""call_0ba7e0b85bef684fa91928fddd94e488""#,
];

const TEXTS: [&str; 6] = [
    r#""hi""#,
    r#""""#,
    r#"" \n""#,
    r#""half \ud83d""#,
    r#""\"quoted\" \\ \u0000""#,
    r#""\u2028é😀""#,
];

const NAMES: [&str; 4] = [r#""bash""#, r#""""#, r#""git diff""#, r#""é\ude00""#];

const INPUTS: [&str; 9] = [
    r#"{"command": "ls", "n":1.0}"#,
    r#"{}"#,
    r#""{\"a\":1}""#,
    r#""{\"a\":""#,
    r#""echo hi""#,
    r#"null"#,
    r#"[1]"#,
    r#"{"a":"\ud83d"}"#,
    r#""{\"\\ud83d\":\"\ude00\"}""#,
];

const OUTPUTS: [&str; 10] = [
    r#""src\n""#,
    r#""""#,
    r#"" ""#,
    r#""\ud83d""#,
    r#"{"ok":true}"#,
    r#"[]"#,
    r#"[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"x"}]"#,
    r#"[{"type":"image","media_type":"image/png","data":"QUJD"}]"#,
    r#"[{"type":"text","text":"a"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}]"#,
    r#"[{"type":"audio","media_type":"audio/wav","data":"QUJD"}]"#,
];

const MEDIA: [&str; 6] = [
    r#"{"type":"image","media_type":"image/png","data":"QUJD"}"#,
    r#"{"type":"image","media_type":"image/tiff","data":"QUJD"}"#,
    r#"{"type":"image","media_type":"image/png","data":"?"}"#,
    r#"{"type":"document","media_type":"application/pdf","data":{"payload":"x","bytes":9}}"#,
    r#"{"type":"file","media_type":"application/pdf","data":"QUJD"}"#,
    r#"{"type":"image","source":{"type":"base64","media_type":"image/jpg","data":"QUJD"}}"#,
];

const OTHERS: [&str; 5] = [
    r#"{"type":"redacted_thinking","data":"cmVk"}"#,
    r#"{"type":"hologram"}"#,
    r#"{"type":"text"}"#,
    r#"{"type":"tool_use","id":"t1"}"#,
    r#"{"type":"tool_result","tool_use_id":"t1"}"#,
];

const ROLES: [&str; 9] = [
    "user",
    "user",
    "assistant",
    "assistant",
    "assistant",
    "tool",
    "system",
    "developer",
    "reviewer",
];

const MODELS: [Option<&str>; 4] = [None, Some("claude-x"), Some("gpt-5"), Some("gemini-3")];

fn one(of: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(of)
}

fn block() -> impl Strategy<Value = String> {
    let text = one(&TEXTS).prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#));
    let signature = one(&["", r#","signature":"c2ln""#, r#","signature":"""#]);
    let thinking = (one(&TEXTS), signature)
        .prop_map(|(text, rest)| format!(r#"{{"type":"thinking","thinking":{text}{rest}}}"#));
    let call = (one(&IDS), one(&NAMES), one(&INPUTS)).prop_map(|(id, name, input)| {
        format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
    });
    let result = (one(&IDS), one(&OUTPUTS), any::<bool>()).prop_map(|(id, output, is_error)| {
        format!(
            r#"{{"type":"tool_result","tool_use_id":{id},"output":{output},"is_error":{is_error}}}"#
        )
    });
    prop_oneof![
        3 => text,
        2 => thinking,
        4 => call,
        4 => result,
        1 => one(&MEDIA).prop_map(str::to_owned),
        1 => one(&OTHERS).prop_map(str::to_owned),
    ]
}

fn message() -> impl Strategy<Value = (Option<&'static str>, Message)> {
    let blocks = prop::collection::vec(block(), 0..5);
    (one(&ROLES), prop::sample::select(&MODELS), blocks).prop_map(|(role, model, blocks)| {
        let json = format!(r#"{{"role":"{role}","blocks":[{}]}}"#, blocks.join(","));
        (model, serde_json::from_str(&json).unwrap())
    })
}

fn history() -> impl Strategy<Value = ContextInput> {
    let instructions = prop::collection::vec(block(), 0..3);
    let summary = prop::sample::select(vec![None, Some(" "), Some("It went well.")]);
    let messages = prop::collection::vec(message(), 0..12);
    (instructions, summary, messages).prop_map(|(instructions, summary, messages)| {
        let json = format!(
            r#"{{"role":"system","blocks":[{}]}}"#,
            instructions.join(",")
        );
        let first = (None, serde_json::from_str(&json).unwrap());
        let mut all = std::iter::once(first).chain(messages).zip(0..);
        let mut next = || {
            all.next().map(|((model, message), seq)| {
                ContextMessage::new(seq, model.map(str::to_owned), message)
            })
        };
        ContextInput {
            instructions: next().into_iter().collect(),
            summary: summary.map(str::to_owned),
            messages: std::iter::from_fn(next).collect(),
        }
    })
}

/// The derived id among [`IDS`] is correct.
#[test]
fn the_derived_id_of_t1_is_among_the_ids() {
    let call = || Block::from(ToolUse::new("t1", "bash", &()).unwrap());
    let input = ContextInput {
        messages: vec![said(Role::Assistant, [call(), call()])],
        ..ContextInput::default()
    };
    let json = render(Shape::Neutral, &input).into_json();
    let found = IDS.iter().find(|id| id.starts_with("\"call_"));
    assert!(found.is_some_and(|id| json.contains(id)), "{json}");
}

/// Returns the messages or input items, each with its bytes.
fn elements(shape: Shape, input: &ContextInput) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Elements<'a> {
        #[serde(borrow, alias = "input")]
        messages: Vec<&'a RawValue>,
    }
    let context = render(shape, input);
    let elements: Elements<'_> = serde_json::from_str(context.as_json()).unwrap();
    let bytes = elements.messages.iter().map(|raw| raw.get().to_owned());
    bytes.collect()
}

fn said(role: Role, blocks: impl IntoIterator<Item = Block>) -> ContextMessage {
    ContextMessage::new(1, None, Message::new(role, blocks))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_history_renders_to_what_a_provider_refuses(input in history()) {
        for shape in Shape::ALL {
            let context = render(shape, &input);
            prop_assert_eq!(check(shape, context.as_json()), Ok(()), "{}: {}", shape, context.as_json());
        }
    }

    #[test]
    fn a_conversation_for_another_program_starts_with_the_user_and_has_no_two_responses_in_a_row(
        input in history(),
    ) {
        let summary = input.summary.clone().filter(|summary| !summary.trim().is_empty());
        let handed = HandOver::new(input, AddedTexts::StayBehind);
        prop_assert_eq!(&handed.summary, &summary);
        let mut was_answer = summary.is_none();
        for message in &handed.messages {
            let is_answer = matches!(message.content, HandOverContent::Assistant { .. });
            prop_assert!(!(is_answer && was_answer), "{:?}", handed.messages);
            // Results are between a response that ends in a call and the next.
            was_answer = match &message.content {
                HandOverContent::User(_) => false,
                HandOverContent::Assistant { parts, .. } => {
                    matches!(parts.last(), Some(ReplyPart::Text(_)))
                }
            };
        }
    }

    #[test]
    fn a_shorter_history_is_a_prefix_of_a_longer_one(input in history()) {
        for shape in Shape::ALL {
            let long = elements(shape, &input);
            let mut shorter = input.clone();
            while shorter.messages.pop().is_some() {
                let short = elements(shape, &shorter);
                prop_assert!(short.len() <= long.len(), "{}", shape);
                for (short, long) in short.iter().zip(&long) {
                    // The one exception: a mended call that later got its result.
                    let is_exception = short.contains(INTERRUPTED);
                    prop_assert!(short == long || is_exception, "{}:\n{}\n{}", shape, short, long);
                }
            }
        }
    }

    #[test]
    fn the_same_history_gives_the_same_bytes_and_mends_in_the_order_of_records(input in history()) {
        for shape in Shape::ALL {
            let context = render(shape, &input);
            prop_assert_eq!(&context, &render(shape, &input.clone()));
            prop_assert!(context.mends().is_sorted_by_key(|mend| mend.seq));
        }
    }

    /// A history rendered in the neutral shape and rendered again needs no mends.
    #[test]
    fn a_mended_history_is_whole(input in history()) {
        #[derive(serde::Deserialize)]
        struct Neutral {
            messages: Vec<Message>,
        }
        let context = render(Shape::Neutral, &input);
        let again: Neutral = serde_json::from_str(context.as_json()).unwrap();
        let messages = again.messages.into_iter().map(|message| ContextMessage::new(0, None, message));
        let again = ContextInput { messages: messages.collect(), ..ContextInput::default() };
        let again = render(Shape::Neutral, &again);
        prop_assert_eq!(again.as_json(), context.as_json());
        prop_assert_eq!(again.mends(), []);
    }
}

/// Every call has the same id, and half of the derived ids are in use. Searching for a free
/// one from the start each time would take forever.
#[test]
fn a_hundred_thousand_calls_with_one_id_get_an_id_and_a_result_each() {
    const MANY: usize = 100_000;
    let call = |id: &str| Block::from(ToolUse::new(id, "bash", &()).unwrap());
    let calls = vec![said(Role::Assistant, (0..MANY).map(|_| call("t1")))];
    let input = ContextInput {
        messages: calls,
        ..ContextInput::default()
    };
    let context = render(Shape::Neutral, &input);
    let json: serde_json::Value = serde_json::from_str(context.as_json()).unwrap();
    let derived = json["messages"][0]["blocks"].as_array().unwrap().iter();
    let derived: Vec<_> = derived.map(|call| call["id"].as_str().unwrap()).collect();

    let taken = derived.iter().take(MANY / 2).map(|id| call(id));
    let result = |id: &str| Block::from(ToolResult::ok("x").answers(id, "bash"));
    let results = derived.iter().take(MANY / 2).map(|id| result(id));
    let input = ContextInput {
        messages: vec![
            said(Role::Assistant, taken),
            said(Role::Assistant, (0..MANY).map(|_| call("t1"))),
            said(Role::Tool, results),
            said(Role::Tool, (0..MANY).map(|_| result("t1"))),
        ],
        ..ContextInput::default()
    };
    for shape in [Shape::Neutral, Shape::Anthropic, Shape::OpenAi] {
        let context = render(shape, &input);
        check(shape, context.as_json()).unwrap();
        assert!(!context.as_json().contains(INTERRUPTED));
    }
}

#[test]
fn nesting_without_end_is_rendered_in_every_shape() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let object = format!("{{\"type\":\"image\",\"a\":{deep}}}");
    let input = |json: &str| Json::new(json).unwrap();
    let call = |id: &str, json: &str| {
        Block::from(ToolUse {
            input: input(json),
            ..ToolUse::new(id, "n", &()).unwrap()
        })
    };
    let result = |id: &str, json: &str| {
        Block::from(ToolResult {
            output: input(json),
            ..ToolResult::ok("").answers(id, "n")
        })
    };
    let messages = vec![
        said(
            Role::User,
            [Block::Other(input(&deep)), Block::Other(input(&object))],
        ),
        said(Role::Assistant, [call("a", &deep), call("b", &object)]),
        said(Role::Tool, [result("a", &deep), result("b", &object)]),
        said(Role::User, [call("c", &deep), result("d", &object)]),
    ];
    let input = ContextInput {
        messages,
        ..ContextInput::default()
    };
    for shape in Shape::ALL {
        let context = render(shape, &input);
        let parsed = serde_json::from_str::<&RawValue>(context.as_json());
        assert!(parsed.is_ok(), "{shape}");
        if shape == Shape::Anthropic {
            check(shape, context.as_json()).unwrap();
        }
    }
}

#[test]
fn an_image_past_what_anthropic_takes_becomes_a_text_there() {
    let image = Block::image("image/png", "A".repeat(5 * 1024 * 1024 + 4)).unwrap();
    let input = ContextInput {
        messages: vec![said(Role::User, [image])],
        ..ContextInput::default()
    };
    let context = render(Shape::Anthropic, &input);
    assert_eq!(context.mends()[0].rule, MendRule::MediaPlaceholder);
    assert!(context.as_json().contains("about 4 MiB"));
    assert_eq!(render(Shape::OpenAi, &input).mends(), []);
}

/// For an agent that restarts its numbering in each turn, a result belongs to the newest
/// call, and the older one was interrupted (F25).
#[test]
fn a_result_answers_the_newest_open_call_of_its_id() {
    let call = || Block::from(ToolUse::new("0", "bash", &()).unwrap());
    let input = ContextInput {
        messages: vec![
            said(Role::Assistant, [call()]),
            said(Role::User, [Block::text("again")]),
            said(Role::Assistant, [call()]),
            said(
                Role::Tool,
                [Block::from(ToolResult::ok("new").answers("0", "bash"))],
            ),
        ],
        ..ContextInput::default()
    };
    let elements = elements(Shape::Neutral, &input);
    assert!(elements[1].contains(INTERRUPTED), "{}", elements[1]);
    assert!(elements[4].contains("\"new\""), "{}", elements[4]);
}
