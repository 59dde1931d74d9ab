//! Reads single lines of version 1, intact and flawed.

use super::*;
use crate::message::{Block, Message, Role};

fn content(bytes: &[u8]) -> Result<Option<V1Record<'_>>, Reason> {
    V1Line::read(bytes, Ending::Newline).content
}

fn record(text: &str) -> V1Record<'_> {
    match content(text.as_bytes()) {
        Ok(Some(record)) => record,
        other => panic!("{other:?}"),
    }
}

fn reason(bytes: &[u8]) -> Reason {
    match content(bytes) {
        Err(reason) => reason,
        other => panic!("{other:?}"),
    }
}

fn message(text: &str) -> Message {
    match record(text) {
        V1Record::Message(json) => serde_json::from_str(json).unwrap(),
        other => panic!("{other:?}"),
    }
}

// A8
#[test]
fn the_literal_lines_are_read() {
    let meta = record(
        r#"{"created_at_ms":1794726326111,"fork":{"branch_name":"try-2","parent_session_id":"session-1794726326110-0"},"model":"m","session_id":"session-1794726326112-1","type":"session_meta","updated_at_ms":1794726326113,"version":1,"workspace_root":"/home/u/proj"}"#,
    );
    let expected = V1Meta {
        version: Some(1),
        session_id: Some("session-1794726326112-1".to_owned()),
        created_at_ms: Some(1_794_726_326_111),
        updated_at_ms: Some(1_794_726_326_113),
        fork: Some(ForkOrigin::new(
            "session-1794726326110-0",
            Some("try-2"),
            None,
        )),
        model: Some("m".to_owned()),
        workspace_root: Some("/home/u/proj".to_owned()),
        ..V1Meta::default()
    };
    assert_eq!(meta, V1Record::Meta(expected));
    assert_eq!(
        record(r#"{"count":1,"removed_message_count":12,"summary":"…","type":"compaction"}"#),
        V1Record::Compaction(CompactionSummary {
            count: 1,
            removed_message_count: 12,
            summary: "…".into(),
            covered: 0,
        })
    );
    assert_eq!(
        record(r#"{"text":"fix the bug","timestamp_ms":1794726326114,"type":"prompt_history"}"#),
        V1Record::Prompt {
            at_ms: Some(1_794_726_326_114),
        }
    );
    let prompt = message(
        r#"{"message":{"blocks":[{"text":"fix the bug","type":"text"}],"role":"user"},"type":"message"}"#,
    );
    assert_eq!(prompt, Message::user_text("fix the bug"));
    let reply = message(
        r#"{"message":{"blocks":[{"signature":"EqoB","thinking":"Let me look.","type":"thinking"},{"id":"toolu_01","input":"{\"command\":\"ls\"}","name":"bash","type":"tool_use"}],"role":"assistant","usage":{"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"input_tokens":10,"output_tokens":4}},"type":"message"}"#,
    );
    assert_eq!(reply.usage.as_ref().map(|usage| usage.total()), Some(17));
    let Block::ToolUse(call) = &reply.blocks[1] else {
        panic!("{reply:?}");
    };
    assert_eq!(call.input.as_str(), r#""{\"command\":\"ls\"}""#);
    let result = message(
        r#"{"message":{"blocks":[{"is_error":false,"output":"src\n","tool_name":"bash","tool_use_id":"toolu_01","type":"tool_result"}],"role":"tool"},"type":"message"}"#,
    );
    assert_eq!(result.role, Role::Tool);
}

// A8: input is any text.
#[test]
fn tool_input_stays_the_string_that_it_is() {
    let call = message(
        r#"{"message":{"blocks":[{"id":"t","input":"echo hi","name":"bash","type":"tool_use"}],"role":"assistant"},"type":"message"}"#,
    );
    let Block::ToolUse(call) = &call.blocks[0] else {
        panic!("{call:?}");
    };
    assert_eq!(call.input.parse::<String>().unwrap(), "echo hi");
}

#[test]
fn a_line_in_any_order_and_spacing_is_the_same_record() {
    let spaced = "\u{feff}  { \"type\" : \"message\", \"x\":1, \"message\" : {\"role\":\"user\",\"blocks\":[]} }\r";
    assert_eq!(message(spaced), Message::new(Role::User, []));
    assert_eq!(content(b" \t\r"), Ok(None));
    assert_eq!(content(b""), Ok(None));
}

// F8
#[test]
fn odd_values_never_make_a_message_unreadable() {
    for blocks in [
        r#"[{"text":"\ud83d\ude00","type":"text"}]"#,
        r#"[{"text":"\ud83d","type":"text"}]"#,
        r#"[{"type":"hologram"},{"no":"type"},7,null]"#,
        r#"[{"input":{"n":1e400},"id":"t","name":"n","type":"tool_use"}]"#,
    ] {
        for usage in [
            "null",
            "7",
            "\"none\"",
            r#"{"input_tokens":99999999999}"#,
            r#"{"input_tokens":-1}"#,
            r#"{"input_tokens":1e30,"output_tokens":null}"#,
        ] {
            let line = format!(
                r#"{{"message":{{"blocks":{blocks},"role":"odd","usage":{usage}}},"type":"message"}}"#
            );
            assert_eq!(message(&line).role, Role::Other("odd".to_owned()));
        }
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let line = format!(r#"{{"message":{{"blocks":[{deep}],"role":"user"}},"type":"message"}}"#);
    assert_eq!(message(&line).blocks.len(), 1);
}

// F8
#[test]
fn an_unknown_type_is_kept_and_is_not_damage() {
    let other = V1Record::Other("hologram".to_owned());
    assert_eq!(record(r#"{"type":"hologram","a":1}"#), other);
}

// A14
#[test]
fn damage_has_a_reason() {
    let syntax = |bytes: &[u8]| matches!(reason(bytes), Reason::Syntax(_));
    assert_eq!(reason(b"{\"type\":\"\xff\"}"), Reason::NotUtf8(9));
    assert!(syntax(b"hello"));
    assert!(syntax(b"{\"type\":"));
    assert_eq!(reason(b"7"), Reason::NotAnObject);
    assert_eq!(reason(b"[]"), Reason::NotAnObject);
    assert_eq!(reason(b"{}"), Reason::MissingType);
    assert_eq!(reason(b"\0\0\0"), Reason::NulBlock);
    assert_eq!(
        reason(b"{\"type\":7}"),
        Reason::UnsupportedType("7".to_owned())
    );
    for (message, expected) in [
        ("", Reason::MissingField("message")),
        (
            r#","message":7"#,
            Reason::WrongField("message", "an object"),
        ),
        (r#","message":{"blocks":[]}"#, Reason::MissingField("role")),
        (
            r#","message":{"role":"user"}"#,
            Reason::MissingField("blocks"),
        ),
        (
            r#","message":{"role":7,"blocks":[]}"#,
            Reason::WrongField("role", "a string"),
        ),
        (
            r#","message":{"role":"user","blocks":{}}"#,
            Reason::WrongField("blocks", "an array"),
        ),
    ] {
        let line = format!(r#"{{"type":"message"{message}}}"#);
        assert_eq!(reason(line.as_bytes()), expected, "{line}");
    }
    assert_eq!(
        reason(br#"{"type":"compaction","count":1}"#),
        Reason::MissingField("summary")
    );
    assert_eq!(
        reason(br#"{"type":"prompt_history"}"#),
        Reason::MissingField("text")
    );
}

#[test]
fn a_last_line_that_breaks_off_is_unfinished() {
    let whole =
        r#"{"message":{"blocks":[{"text":"é","type":"text"}],"role":"user"},"type":"message"}"#;
    for len in 1..whole.len() {
        let torn = V1Line::read(&whole.as_bytes()[..len], Ending::Missing);
        let unfinished = Err(Reason::Unfinished);
        assert_eq!(torn.content, unfinished, "{len}");
    }
}

// F1, F19
#[test]
fn a_record_after_a_torn_line_or_nuls_is_found() {
    let whole = r#"{"message":{"blocks":[],"role":"user"},"type":"message"}"#;
    for lost in ["\0\0\0", r#"{"message":{"blocks":[{"text":"ha"#, "x"] {
        let glued = format!("{lost}{whole}");
        let line = V1Line::read(glued.as_bytes(), Ending::Newline);
        let found = Ok(Some(V1Record::Message(&whole[11..38])));
        assert_eq!(line.content, found);
        assert_eq!(line.lost.unwrap().0, lost.len());
    }
}

/// Anything accepted as a message must parse as one: callers rely on that.
#[test]
fn every_message_that_is_found_can_be_parsed() {
    let line = br#"{"message":{"blocks":[{"id":"t","input":"\ud83d","name":"b","type":"tool_use"}],"role":"assistant","usage":{"input_tokens":1}},"type":"message"}"#;
    for at in 0..line.len() {
        for flip in 1..=255_u8 {
            let mut bytes = line.to_vec();
            bytes[at] ^= flip;
            if let Ok(Some(V1Record::Message(json))) = content(&bytes) {
                serde_json::from_str::<Message>(json).unwrap();
            }
        }
    }
}

/// A repeated name must not turn unparseable JSON into a message.
#[test]
fn a_repeated_field_counts_only_where_each_one_is_right() {
    let wrong = br#"{"type":"message","message":{"role":7,"role":"user","blocks":[]}}"#;
    assert_eq!(reason(wrong), Reason::WrongField("role", "a string"));
    let right = r#"{"type":"message","message":{"role":"tool","role":"user","blocks":[]}}"#;
    assert_eq!(message(right).role, Role::User);
}

// F2
#[test]
fn an_object_of_the_older_form_on_one_line_has_its_messages() {
    let line = r#"{"messages":[{"role":"user","blocks":[]}, 7],"version":1}"#;
    let messages = vec![r#"{"role":"user","blocks":[]}"#, "7"];
    assert_eq!(record(line), V1Record::Object(messages));
}
