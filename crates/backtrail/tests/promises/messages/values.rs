//! Messages as values: roles, blocks, usage, and their JSON.

use backtrail::{
    Block, Fields, Json, Media, Message, Role, SessionId, Text, TextBlock, Thinking, Timestamp,
    ToolResult, ToolUse, Usage,
};
use proptest::prelude::*;

fn parse(json: &str) -> Message {
    serde_json::from_str(json).unwrap()
}

fn json(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

/// A2.
#[test]
fn roles_are_four_and_any_other_is_kept_as_it_is() {
    let known = [
        ("system", Role::System),
        ("user", Role::User),
        ("assistant", Role::Assistant),
        ("tool", Role::Tool),
    ];
    for (name, role) in known {
        assert_eq!(Role::from(name), role);
        assert_eq!(role.as_str(), name);
        assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{name}\""));
    }
    for name in ["", "User", "developer", "ärztin 🦀", "a\"b\n"] {
        let role = Role::Other(name.to_owned());
        let json = serde_json::to_string(&role).unwrap();
        assert_eq!(serde_json::from_str::<Role>(&json).unwrap(), role);
        assert_eq!(role.to_string(), name);
    }
}

/// A3.
#[test]
fn blocks_have_the_shapes_of_version_1() {
    let message = Message::assistant([
        Block::text("hello"),
        Block::signed_thinking("Let me look.", "EqoB"),
        Block::from(ToolUse::new("t1", "bash", &serde_json::json!({"command": "ls"})).unwrap()),
        Block::from(ToolResult::error("no").answers("t1", "bash")),
        Block::image("image/png", "iVBORw==").unwrap(),
    ]);
    assert_eq!(
        json(&message),
        concat!(
            r#"{"role":"assistant","blocks":["#,
            r#"{"type":"text","text":"hello"},"#,
            r#"{"type":"thinking","thinking":"Let me look.","signature":"EqoB"},"#,
            r#"{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}},"#,
            r#"{"type":"tool_result","tool_use_id":"t1","tool_name":"bash","output":"no","is_error":true},"#,
            r#"{"type":"image","media_type":"image/png","data":"iVBORw=="}"#,
            r#"]}"#
        )
    );
    assert_eq!(parse(&json(&message)), message);
}

/// A4.
#[test]
fn a_total_sums_all_four_counters_without_overflow() {
    let usage = Usage::new(10, 4).cache_creation(1).cache_read(2);
    assert_eq!(usage.total(), 17);
    // Parts of output and of cache creation are not added on top.
    assert_eq!(usage.clone().reasoning(3).cache_creation_1h(1).total(), 17);
    let full = Usage::new(u64::MAX, u64::MAX)
        .cache_creation(u64::MAX)
        .cache_read(u64::MAX);
    assert_eq!(full.total(), u64::MAX);
    let pairs = [
        Usage::new(u64::MAX, 1),
        Usage::new(0, u64::MAX).cache_creation(1),
        Usage::new(0, 0).cache_creation(u64::MAX).cache_read(1),
    ];
    assert!(pairs.iter().all(|usage| usage.total() == u64::MAX));
    let mut sum = full.clone().reasoning(u64::MAX);
    sum.add(&usage.reasoning(5));
    assert_eq!(sum.total(), u64::MAX);
    assert_eq!(sum.reasoning_output_tokens, Some(u64::MAX));
    assert_eq!(sum.cache_creation_1h_input_tokens, None);
}

/// A4: data types work with any serde format.
#[test]
fn public_data_types_implement_serde() {
    fn is_serde<T: serde::Serialize + serde::de::DeserializeOwned>() {}
    is_serde::<Message>();
    is_serde::<Role>();
    is_serde::<Block>();
    is_serde::<Usage>();
    is_serde::<Text>();
    is_serde::<Json>();
    is_serde::<Fields>();
    is_serde::<SessionId>();
    is_serde::<Timestamp>();
    is_serde::<backtrail::Holder>();
}

/// A5.
#[test]
fn each_kind_of_message_has_its_constructor() {
    let text = |message: &Message| message.text().into_owned();
    let system = Message::system_text("be kind");
    assert_eq!(
        (&system.role, text(&system)),
        (&Role::System, "be kind".to_owned())
    );
    let user = Message::user_text("hello");
    assert_eq!((&user.role, text(&user)), (&Role::User, "hello".to_owned()));
    let plain = Message::assistant([Block::text("a"), Block::text("b")]);
    assert_eq!(
        (&plain.role, text(&plain)),
        (&Role::Assistant, "a\nb".to_owned())
    );
    assert_eq!(plain.usage, None);
    let used = Message::assistant_with_usage([Block::text("a")], Usage::new(1, 2));
    assert_eq!(used.usage.as_ref().map(Usage::total), Some(3));
    assert_eq!(
        used,
        Message::assistant([Block::text("a")]).usage(Usage::new(1, 2))
    );
    let result = Message::tool_result(ToolResult::ok("done").answers("t1", "bash"));
    assert_eq!(result.role, Role::Tool);
    let [Block::ToolResult(result)] = &result.blocks[..] else {
        panic!("{:?}", result.blocks)
    };
    assert_eq!(result.output_text().unwrap(), "done");
    assert_eq!(
        (result.tool_use_id.as_str(), result.is_error),
        ("t1", false)
    );
    assert_eq!(result.tool_name.as_ref().map(Text::as_str), Some("bash"));
}

/// F9: tool input keeps its bytes; signatures and provider caches rely on it.
#[test]
fn tool_input_keeps_its_bytes() {
    for input in [
        "1e400",
        "1.0",
        "-0",
        "1E+2",
        "340282366920938463463374607431768211456",
        r#"{"a":1,"a":2}"#,
        r#"{ "b" : 1 , "a":[ ] }"#,
        r#""\u00e9\/\ud83e\udd80""#,
        r#"{"lone":"\ud83d","\ud83d":0}"#,
        "null",
        "\"plain text, not JSON inside\"",
    ] {
        let line = format!(
            r#"{{"role":"assistant","blocks":[{{"type":"tool_use","id":"t","name":"n","input":{input}}}]}}"#
        );
        let message = parse(&line);
        let Block::ToolUse(call) = &message.blocks[0] else {
            panic!("{input}: {:?}", message.blocks)
        };
        assert_eq!(call.input.as_str(), input);
        assert_eq!(json(&message), line);
    }
}

/// Only line breaks between tokens are replaced.
#[test]
fn line_breaks_between_tokens_become_spaces_and_those_in_strings_stay() {
    let json = Json::new("{\n  \"a\": \"b\\n\",\r\n\t\"c\": []\n}").unwrap();
    assert_eq!(json.as_str(), "{   \"a\": \"b\\n\",  \t\"c\": [] }");
    assert!(
        Json::new("{\"a\":\"b\n\"}").is_err(),
        "a raw newline in a string is no JSON"
    );
}

#[test]
fn unknown_fields_are_kept_in_their_order() {
    let line = concat!(
        r#"{"role":"user","blocks":[{"type":"text","text":"t","z":1,"a":{"y":1.0}}],"#,
        r#""usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":0,"#,
        r#""cache_read_input_tokens":0,"zz":true,"aa":1e400},"z":[ 1 ],"b":null,"a":"\u0041"}"#
    );
    let message = parse(line);
    let names: Vec<&str> = message.extra.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["z", "b", "a"]);
    assert_eq!(json(&message), line);
}

/// F8.
#[test]
fn a_lone_surrogate_keeps_its_bytes_and_shows_as_a_replacement_character() {
    for (literal, shown) in [
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\udc00x""#, "\u{fffd}x"),
        (
            r#""a\ud83d\n\"\\\/\b\f\r\t""#,
            "a\u{fffd}\n\"\\/\u{8}\u{c}\r\t",
        ),
        (r#""\ud83d\ud83e\udd80""#, "\u{fffd}🦀"),
        (r#""\ud83dé\u00e9""#, "\u{fffd}éé"),
        (r#""\uD83D\u0041""#, "\u{fffd}A"),
        (r#""\ud83d\\udc00""#, "\u{fffd}\\udc00"),
    ] {
        let text: Text = serde_json::from_str(literal).unwrap();
        assert_eq!(text.as_str(), shown, "{literal}");
        assert!(text.is_lossy(), "{literal}");
        assert_eq!(serde_json::to_string(&text).unwrap(), literal);
        assert_ne!(
            text,
            Text::from(shown),
            "{literal}: it is not what it shows"
        );
    }
    let pair: Text = serde_json::from_str(r#""\ud83e\udd80""#).unwrap();
    assert!(!pair.is_lossy());
    assert_eq!(pair, "🦀");
}

/// F8: unknown content is kept, and reading it again gives the same.
#[test]
fn what_was_read_and_written_is_read_again_as_the_same() {
    for block in [
        r#"{"type":"tool_result","tool_use_id":"t","output":"x","is_error":null}"#,
        r#"{"type":"tool_result","tool_use_id":"t","output":"x","is_error":"yes"}"#,
        r#"{"type":"tool_result","tool_use_id":"t","tool_name":null,"output":[1]}"#,
        r#"{"type":"tool_result","tool_use_id":7,"output":"x"}"#,
        r#"{"type":"thinking","thinking":"","signature":null}"#,
        r#"{"type":"text","text":null}"#,
        r#"{"type":"text","text":"a","text":"b"}"#,
        r#"{"type":"image","media_type":"image/png","data":{"payload":"x","bytes":1}}"#,
        r#"{"type":"hologram"}"#,
        r#"{"type":7}"#,
        r#"{}"#,
        r#""text""#,
        r#"[]"#,
        "null",
    ] {
        for usage in [
            "null",
            "7",
            "{}",
            r#"{"input_tokens":null,"output_tokens":-1}"#,
            r#"{"input_tokens":1,"input_tokens":2,"reasoning_output_tokens":"x"}"#,
            r#"{"input_tokens":99999999999999999999}"#,
        ] {
            let line = format!(r#"{{"role":"user","blocks":[{block}],"usage":{usage}}}"#);
            let message = parse(&line);
            let again = parse(&json(&message));
            assert_eq!(again, message, "{line}");
            assert_eq!(json(&again), json(&message), "{line}");
        }
    }
}

/// Other parsers must find each name once.
#[test]
fn no_name_is_written_twice() {
    let line = concat!(
        r#"{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t","output":"x","is_error":null}],"#,
        r#""usage":{"input_tokens":null,"output_tokens":"many"}}"#
    );
    let written = json(&parse(line));
    for name in ["is_error", "input_tokens\"", "output_tokens\""] {
        let count = written.matches(&format!("\"{name}")).count();
        let alike = written.matches(&format!("_{name}")).count();
        assert!(
            count.saturating_sub(alike) <= 1,
            "{name} stands {count} times: {written}"
        );
    }
}

fn any_text() -> impl Strategy<Value = Text> {
    prop_oneof![
        4 => any::<String>().prop_map(Text::from),
        1 => "[a-z]{0,3}\\\\ud8[0-9a-f]{2}[ -!#-Z]{0,3}".prop_map(|inside| {
            serde_json::from_str(&format!("\"{inside}\"")).unwrap()
        }),
    ]
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1e400".to_owned()),
        Just("-0.0".to_owned()),
        Just(r#"{"a":1,"a":2}"#.to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\ud83d""#.to_owned()),
    ];
    let tree = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,"))),
            ("[a-z\"]{0,4}", inner).prop_map(|(key, value)| {
                format!("{{ {}:{value}}}", serde_json::to_string(&key).unwrap())
            }),
        ]
    });
    tree.prop_map(|text| Json::new(text).unwrap())
}

/// Fields with unknown names.
fn any_fields() -> impl Strategy<Value = Fields> {
    prop::collection::vec(("[a-z \"\n]{0,6}", any_json()), 0..3).prop_map(|fields| {
        let mut all = Fields::default();
        for (n, (name, value)) in fields.into_iter().enumerate() {
            all.push(format!("x-{n}-{name}"), value);
        }
        all
    })
}

fn any_block() -> impl Strategy<Value = Block> {
    let text =
        (any_text(), any_fields()).prop_map(|(text, extra)| Block::from(TextBlock { text, extra }));
    let thinking = (any_text(), prop::option::of(any_text()), any_fields()).prop_map(
        |(thinking, signature, extra)| {
            Block::from(Thinking {
                thinking,
                signature,
                extra,
            })
        },
    );
    let call =
        (any_text(), any_text(), any_json(), any_fields()).prop_map(|(id, name, input, extra)| {
            Block::from(ToolUse {
                id,
                name,
                input,
                extra,
            })
        });
    let result = (
        any_text(),
        prop::option::of(any_text()),
        any_json(),
        any::<bool>(),
        any_fields(),
    )
        .prop_map(|(tool_use_id, tool_name, output, is_error, extra)| {
            Block::from(ToolResult {
                tool_use_id,
                tool_name,
                output,
                is_error,
                extra,
            })
        });
    let kind = prop::sample::select(vec!["image", "audio", "video", "document", "file"]);
    let media =
        (kind, any_text(), any_json(), any_fields()).prop_map(|(kind, media_type, data, extra)| {
            Block::from(Media {
                kind: kind.to_owned(),
                media_type,
                data,
                extra,
            })
        });
    let other = any_json().prop_map(|value| {
        Block::Other(Json::new(format!(r#"{{"type":"x","value":{value}}}"#)).unwrap())
    });
    prop_oneof![text, thinking, call, result, media, other]
}

fn any_usage() -> impl Strategy<Value = Usage> {
    (
        any::<[u64; 4]>(),
        any::<Option<u64>>(),
        any::<Option<u64>>(),
        any_fields(),
    )
        .prop_map(
            |([input, output, creation, read], reasoning, hour, extra)| Usage {
                input_tokens: input,
                output_tokens: output,
                cache_creation_input_tokens: creation,
                cache_read_input_tokens: read,
                reasoning_output_tokens: reasoning,
                cache_creation_1h_input_tokens: hour,
                extra,
            },
        )
}

fn any_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        prop::sample::select(vec!["system", "user", "assistant", "tool"]).prop_map(Role::from),
        any::<String>().prop_map(|name| Role::from(name.as_str())),
    ];
    let blocks = prop::collection::vec(any_block(), 0..4);
    (role, blocks, prop::option::of(any_usage()), any_fields()).prop_map(
        |(role, blocks, usage, extra)| Message {
            role,
            blocks,
            usage,
            extra,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_message_comes_back_from_its_json(message in any_message()) {
        let text = json(&message);
        prop_assert!(!text.contains('\n'), "a record is one line");
        prop_assert_eq!(&parse(&text), &message);
        prop_assert_eq!(json(&parse(&text)), text);
    }

    #[test]
    fn any_message_comes_back_from_disk(messages in prop::collection::vec(any_message(), 1..4)) {
        let lab = crate::damage::lab::Lab::new();
        let session = lab.store.create_session(Default::default()).unwrap();
        for message in &messages {
            session.append(message.clone()).unwrap();
        }
        let reader = session.reader();
        let read: Vec<Message> = reader
            .records()
            .unwrap()
            .owned()
            .map(|record| record.unwrap().message().unwrap().unwrap())
            .collect();
        prop_assert_eq!(read, messages);
        prop_assert!(reader.verify().unwrap().is_ok());
    }
}

/// A4: each kind of block is read and written by itself, too.
#[test]
fn a4_every_kind_of_block_has_serde_of_its_own() {
    fn round_trip<T>(block: &T, kind: &str)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let json = serde_json::to_string(block).unwrap();
        assert!(
            json.starts_with(&format!("{{\"type\":\"{kind}\"")),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *block);
    }
    let blocks = [
        Block::text("t"),
        Block::signed_thinking("hm", "sig"),
        Block::from(ToolUse::new("t1", "bash", "echo hi").unwrap()),
        Block::from(ToolResult::error("no").answers("t1", "bash")),
        Block::image("image/png", "aGk=").unwrap(),
    ];
    for block in blocks {
        match block {
            Block::Text(block) => round_trip(&block, "text"),
            Block::Thinking(block) => round_trip(&block, "thinking"),
            Block::ToolUse(block) => round_trip(&block, "tool_use"),
            Block::ToolResult(block) => round_trip(&block, "tool_result"),
            Block::Media(block) => round_trip(&block, "image"),
            other => panic!("{other:?}"),
        }
    }
    let text = serde_json::to_string(&Block::text("t")).unwrap();
    assert!(serde_json::from_str::<ToolUse>(&text).is_err());
}
