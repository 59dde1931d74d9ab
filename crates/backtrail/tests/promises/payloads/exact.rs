//! Parts that move out of a line come back byte for byte, and content that only looks
//! like a reference is never mistaken for one (F9).

use std::path::Path;

use backtrail::{
    Block, Draft, Message, Role, Session, SessionId, SessionReader, Shape, Storage, ToolUse,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Lab, assert_whole, json, payload_file, picture, said, shown};

const MEBIBYTE: usize = 1 << 20;
/// The longest line that contains only references.
const SHORT: usize = 4_000;

/// Appends a message as JSON, and checks that it comes back unchanged.
fn round_trip(session: &Session, message: &str) -> u64 {
    let line = format!("{{\"type\":\"message\", \"message\":{message} }}");
    let seq = session.append(Draft::from_json(&line).unwrap()).unwrap();
    let record = session.reader().record(seq).unwrap().unwrap();
    let back = record.as_ref().message_json().unwrap().unwrap();
    assert!(back == message, "{}", start(message));
    let expected: Message = serde_json::from_str(message).unwrap();
    assert!(record.message().unwrap().unwrap() == expected);
    assert_whole(&session.reader());
    seq
}

fn start(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Returns a record's line on disk.
fn line(reader: &SessionReader, seq: u64) -> String {
    let record = reader.record(seq).unwrap().unwrap();
    String::from_utf8(record.as_ref().bytes().to_vec()).unwrap()
}

#[test]
fn f9_media_of_any_size_leave_the_line_and_come_back_byte_for_byte() {
    let lab = Lab::new();
    let session = lab.begin();
    let reader = session.reader();
    let kinds = ["image", "audio", "video", "document", "file"];
    for (n, len) in [1, 2, 3, 700, 70_000, 3 << 20].into_iter().enumerate() {
        for (m, kind) in kinds.into_iter().enumerate() {
            let bytes = picture((n * 10 + m) as u64, len);
            let data = STANDARD.encode(&bytes);
            // Odd spacing, odd order, a nested source, and one in a result.
            let message = format!(
                "{{ \"blocks\" :[ {{\"data\":  \"{data}\" , \"media_type\":\"x/y\",\"type\":\"{kind}\"}},\
                 {{\"type\":\"{kind}\",\"source\":{{\"type\":\"base64\",\"data\":\"{data}\"}}}} ,\
                 {{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"output\":[{{\"type\":\"{kind}\",\
                 \"media_type\":\"x/y\",\"data\":\"{data}\"}}]}}],\t\"role\":\"user\"}}"
            );
            let seq = round_trip(&session, &message);
            let line = line(&reader, seq);
            assert!(line.len() < SHORT, "{} bytes", line.len());
            assert!(lab.is_stored(&reader, &bytes), "as the bytes they are");
        }
    }
}

#[test]
fn f9_a_part_past_a_mebibyte_leaves_the_line_and_one_of_a_mebibyte_stays() {
    let long = "x\\\"é, \\u00e9\\ud83d ".repeat(MEBIBYTE / 15);
    let input = format!(
        "{{\"a\" :[1.0, 1e400,{}{{}}]}}",
        "[ 2 ], ".repeat(MEBIBYTE / 7)
    );
    let messages = [
        format!(r#"{{"role":"user","blocks":[{{"type":"text","text":"{long}"}}]}}"#),
        format!(
            r#"{{"role":"assistant","blocks":[{{"type":"thinking","thinking":"{long}","signature":"{long}"}}]}}"#
        ),
        format!(
            r#"{{"role":"assistant","blocks":[{{"type":"tool_use","id":"t","name":"n","input":{input}}}]}}"#
        ),
        format!(
            r#"{{"role":"tool","blocks":[{{"type":"tool_result","tool_use_id":"t","output":"{long}"}}]}}"#
        ),
        format!(
            r#"{{"role":"tool","blocks":[{{"type":"tool_result","tool_use_id":"t","output":[{{"type":"text","text":"{long}"}},7]}}]}}"#
        ),
        format!(
            r#"{{"role":"user","blocks":[{{"type":"hologram","a":1,"deep":{{"er":"{long}"}}}}]}}"#
        ),
        format!(r#"{{"role":"user","blocks":[],"more":["{long}"]}}"#),
        format!(r#"{{"role":"user","blocks":[],"usage":"{long}"}}"#),
    ];
    let lab = Lab::new();
    let session = lab.begin();
    for message in messages {
        let seq = round_trip(&session, &message);
        let line = line(&session.reader(), seq);
        assert!(line.len() < SHORT, "{} bytes: {}", line.len(), start(&line));
    }
}

#[test]
fn f9_the_limit_is_a_mebibyte_of_json_to_the_byte() {
    let lab = Lab::new();
    let session = lab.begin();
    let of = |len: usize| {
        let text = "x".repeat(len - 2);
        format!(r#"{{"role":"user","blocks":[{{"type":"text","text":"{text}"}}]}}"#)
    };
    let seq = round_trip(&session, &of(MEBIBYTE));
    assert!(line(&session.reader(), seq).len() > MEBIBYTE);
    let file = payload_file(&session.reader());
    assert!(lab.memory.read(&file).is_err(), "nothing moved out");
    let seq = round_trip(&session, &of(MEBIBYTE + 1));
    assert!(line(&session.reader(), seq).len() < SHORT);
}

#[test]
fn a_line_says_how_a_part_that_left_it_begins() {
    let lab = Lab::new();
    let session = lab.begin();
    let text = format!("\"Grüße\"\n\u{1}🦀{}", "z".repeat(MEBIBYTE));
    let message = Message::new(
        Role::User,
        [Block::text(text.as_str()), super::image(&picture(1, 9))],
    );
    let seq = session.append(message.clone()).unwrap();
    let line = line(&session.reader(), seq);
    let fields: serde_json::Value = serde_json::from_str(&line).unwrap();
    let part = &fields["message"]["blocks"][0]["text"];
    let preview: String = text.chars().take(200).collect();
    assert_eq!(part["preview"], preview);
    assert_eq!(part["payload"].as_str().unwrap().len(), 64);
    assert!(part["bytes"].as_u64().unwrap() > MEBIBYTE as u64);
    let part = &fields["message"]["blocks"][1]["data"];
    assert_eq!(
        (&part["preview"], &part["as"]),
        (&"".into(), &"base64".into())
    );
    assert_eq!(part["bytes"], 9);
    assert_eq!(said(&session.reader()), [json(&message)]);
}

/// Data fields may contain things that are not canonical Base64.
#[test]
fn data_of_any_spelling_come_back_as_they_were_spelled() {
    let lab = Lab::new();
    let session = lab.begin();
    for data in [
        "aGk",
        "aGl=",
        "aGk==",
        "_-8=",
        "aG k=",
        "aGk=\\n",
        "\\/+8=",
        "\\u0061Gk=",
        "",
        "=",
        "\\ud83d",
        "data:image/png;base64,aGk=",
    ] {
        let message = format!(
            r#"{{"role":"user","blocks":[{{"type":"image","media_type":"image/png","data":"{data}"}}]}}"#
        );
        round_trip(&session, &message);
    }
    for data in ["null", "7", "[\"aGk=\"]", "{\"data\":\"aGk=\"}"] {
        let message = format!(
            r#"{{"role":"user","blocks":[{{"type":"image","media_type":"image/png","data":{data}}}]}}"#
        );
        round_trip(&session, &message);
    }
}

/// Returns objects that look like references: some to stored payloads, some to missing
/// ones, and one that equals a real one byte for byte.
fn lookalikes(session: &Session) -> Vec<String> {
    let seq = session.append(shown("", &picture(1, 100))).unwrap();
    let fields: serde_json::Value = serde_json::from_str(&line(&session.reader(), seq)).unwrap();
    let own = &fields["message"]["blocks"][1]["data"];
    let hash = own["payload"].as_str().unwrap();
    let line = line(&session.reader(), seq);
    let from = line.find("{\"payload\"").unwrap();
    let to = from + line[from..].find('}').unwrap() + 1;
    let other = "0123456789abcdef".repeat(4);
    vec![
        line[from..to].to_owned(),
        line[from..to].replace(hash, &other),
        format!(r#"{{"payload":"{hash}","bytes":100,"at":0,"preview":""}}"#),
        format!(r#"{{"payload":"{hash}","bytes":100,"preview":""}}"#),
        format!(r#"{{"p\u0061yload":"{hash}","bytes":100,"at":0,"preview":""}}"#),
        format!(r#"{{"a":1, "payload":"{other}"}}"#),
        r#"{"payload":{"payload":{"payload":[]}}}"#.to_owned(),
    ]
}

#[test]
fn f9_text_that_looks_like_a_reference_is_what_the_user_said() {
    let lab = Lab::new();
    let session = lab.begin();
    for like in lookalikes(&session) {
        let blocks = [
            format!(r#"{{"type":"tool_use","id":"t","name":"n","input":{like}}}"#),
            format!(r#"{{"type":"tool_use","id":"t","name":"n","input":{{"x":[{like}]}}}}"#),
            format!(r#"{{"type":"tool_result","tool_use_id":"t","output":{like}}}"#),
            format!(
                r#"{{"type":"tool_result","tool_use_id":"t","output":[{{"type":"text","text":{like}}},{like}]}}"#
            ),
            format!(r#"{{"type":"text","text":{like}}}"#),
            format!(r#"{{"type":"hologram","x":{like},"y":[{like}]}}"#),
            format!(r#"{{"type":"image","media_type":"image/png","data":{like}}}"#),
            format!(r#"{{"type":"image","source":{{"data":{like}}}}}"#),
            format!(r#"{{"type":"image","source":{like}}}"#),
        ];
        for block in blocks {
            let message = format!(r#"{{"role":"assistant","blocks":[{block}]}}"#);
            round_trip(&session, &message);
        }
        let message = format!(r#"{{"role":"user","blocks":[],"usage":{like},"more":{like}}}"#);
        round_trip(&session, &message);
    }
}

#[test]
fn f9_a_lookalike_reaches_the_model_as_it_was_said() {
    let lab = Lab::new();
    let session = lab.begin();
    for like in lookalikes(&session) {
        let input: serde_json::Value = serde_json::from_str(&like).unwrap();
        let call = ToolUse::new("t", "n", &input).unwrap();
        let sent = call.input.as_str().to_owned();
        session.append(Message::assistant([call.into()])).unwrap();
        let context = session.context(Shape::Neutral).unwrap();
        assert!(context.as_json().contains(&sent), "{sent}");
        assert_eq!(context.skipped(), 0);
        let calls = session.reader().tool_calls().unwrap();
        let last = calls.last().unwrap().unwrap();
        assert_eq!(last.arguments.as_str(), sent);
    }
}

/// Fields beside the message are never references.
#[test]
fn f9_a_lookalike_beside_the_message_stays_where_it_is() {
    let lab = Lab::new();
    let session = lab.begin();
    for like in lookalikes(&session) {
        let message = json(&shown("hello", &picture(2, 50)));
        let given = format!(r#"{{"type":"message","mine":{like},"message":{message}}}"#);
        let seq = session.append(Draft::from_json(&given).unwrap()).unwrap();
        let line = line(&session.reader(), seq);
        assert!(line.contains(&format!("\"mine\":{like},")), "{line}");
        let record = session.reader().record(seq).unwrap().unwrap();
        assert_eq!(record.as_ref().message_json().unwrap().unwrap(), message);
        assert_whole(&session.reader());
    }
}

/// A8: a file of version 1 has no payloads, whatever it contains.
#[test]
fn a8_a_lookalike_in_a_file_of_version_1_is_what_the_user_said() {
    let lab = Lab::new();
    let likes = lookalikes(&lab.begin());
    let message = |like: &String| {
        format!(
            r#"{{"blocks":[{{"type":"text","text":"x","mine":{like}}},{{"type":"odd","x":{like}}}],"role":"user"}}"#
        )
    };
    let messages: Vec<String> = likes.iter().map(message).collect();
    let mut file = String::from(
        "{\"type\":\"session_meta\",\"version\":1,\"session_id\":\"old\",\"created_at_ms\":1,\"updated_at_ms\":1}\n",
    );
    for message in &messages {
        file.push_str(&format!("{{\"type\":\"message\",\"message\":{message}}}\n"));
    }
    // As an earlier version imported it.
    let id: SessionId = "old".parse().unwrap();
    let dir = Path::new("/store/sessions/old");
    lab.memory.create_dir(dir).unwrap();
    lab.memory
        .write(&dir.join("0000.jsonl"), file.as_bytes())
        .unwrap();
    let session = lab.store.open_session(&id).unwrap();
    assert_eq!(said(&session.reader()), messages);
    session.append(shown("new", &picture(3, 40))).unwrap();
    let fork = session.fork(&Default::default()).unwrap();
    assert_eq!(said(&fork.reader())[..messages.len()], messages);
    assert_whole(&session.reader());
}
