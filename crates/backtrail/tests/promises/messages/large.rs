//! Nothing is truncated (F9): large content comes back unchanged, and content that is too
//! large is refused as a whole.

use backtrail::{Block, Draft, ErrorKind, Json, Message, Reason, ToolUse};

use crate::damage::lab::{Lab, lines};

fn round_trip(message: Message) {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    session.append(message.clone()).unwrap();
    session.append(Message::user_text("after")).unwrap();
    let reader = session.reader();
    let record = reader.record(1).unwrap().unwrap();
    assert!(record.message().unwrap().unwrap() == message);
    assert_eq!(reader.last_records(2).unwrap()[0].seq(), 1);
    assert!(reader.verify().unwrap().is_ok());
}

#[test]
fn five_megabytes_of_text_come_back_identical() {
    let text: String = "Grüße, \"世界\" 🦀\n\t\u{0}\u{7f}"
        .chars()
        .cycle()
        .take(3_500_000)
        .collect();
    assert!(text.len() > 5_000_000);
    round_trip(Message::user_text(text));
}

#[test]
fn five_megabytes_of_base64_come_back_identical() {
    let data: String = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .cycle()
        .take(5 << 20)
        .collect();
    round_trip(Message::assistant([
        Block::image("image/png", data).unwrap()
    ]));
}

#[test]
fn five_megabytes_of_tool_input_keep_their_bytes() {
    let input = format!("[{}1.0]", "1e400 ,".repeat(750_000));
    let mut call = ToolUse::new("t", "n", &()).unwrap();
    call.input = Json::new(input.clone()).unwrap();
    assert_eq!(call.input.as_str(), input);
    round_trip(Message::assistant([Block::from(call)]));
}

const LIMIT: usize = 16 << 20;

/// A line is never longer, but a message may be: large parts are in the payload file, and
/// smaller ones too if there are very many.
#[test]
fn f9_a_message_over_16_mib_is_taken_and_comes_back_whole() {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    let text = "x".repeat(LIMIT);
    let line = format!(r#"{{"role":"user","text":"{text}"}}"#);
    let many = Message::assistant((0..40).map(|n| Block::text(format!("{n}{}", &text[..900_000]))));
    let drafts = [
        Draft::from(Message::user_text(text.clone())),
        Draft::from_json(&line).unwrap(),
        Draft::from(many.clone()),
    ];
    for draft in drafts {
        session.append(draft).unwrap();
    }
    let message = |seq| {
        let record = session.reader().record(seq).unwrap().unwrap();
        record.message().unwrap().unwrap()
    };
    assert!(message(1).text() == text);
    assert!(message(2).text() == text);
    assert!(message(3) == many);
    let bytes = lab.bytes(session.id(), 0);
    assert!(lines(&bytes).iter().all(|line| line.len() <= LIMIT));
    assert!(session.reader().verify().unwrap().is_ok());
}

#[test]
fn a_message_of_more_small_parts_than_a_line_holds_is_refused_and_the_session_continues() {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    session.append(Message::user_text("before")).unwrap();
    let before = lab.bytes(session.id(), 0);
    let text = "x".repeat(10_000);
    let many = Message::assistant((0..2_000).map(|_| Block::text(text.clone())));
    let error = session.append(many).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let limit = LIMIT as u64;
    let reason = error.reason().unwrap();
    assert!(
        matches!(reason, Reason::TooLong { bytes, limit: l } if *bytes > limit && *l == limit),
        "{reason:?}"
    );
    assert_eq!(lab.bytes(session.id(), 0), before);
    assert_eq!(session.append(Message::user_text("after")).unwrap(), 2);
    assert!(session.reader().verify().unwrap().is_ok());
}
