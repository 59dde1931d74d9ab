//! JSON from callers: accepted with its bytes, or refused with a reason (A14).

use backtrail::{Draft, ErrorKind, Message, Reason, Record, Role};

use crate::damage::lab::Lab;

/// Records one line of JSON, and returns its record.
fn recorded(line: &str) -> Record {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    let draft = Draft::from_json(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let seq = session.append(draft).unwrap();
    session.reader().record(seq).unwrap().unwrap()
}

fn contains(record: &Record, part: &str) -> bool {
    String::from_utf8_lossy(record.as_ref().bytes()).contains(part)
}

fn refusal(line: &str) -> Reason {
    let error = Draft::from_json(line).expect_err(line);
    assert_eq!(error.kind(), ErrorKind::Invalid, "{line}");
    error
        .reason()
        .unwrap_or_else(|| panic!("{line}: {error}"))
        .clone()
}

#[test]
fn the_short_form_is_a_message_of_one_text() {
    let record = recorded(r#"{"role":"user","text":"fix the bug"}"#);
    assert_eq!(
        record.message().unwrap().unwrap(),
        Message::user_text("fix the bug")
    );
    let record = recorded(
        r#" {"text":"a\u00e9\/\ud83d","role":"critic","model":"m","id":"x 1","at":"2026-11-15T09:00:00+01:00","response_id":"r","duration_ms":12,"cost_usd":0.5} "#,
    );
    let message = record.message().unwrap().unwrap();
    assert_eq!(message.role, Role::Other("critic".to_owned()));
    assert!(
        contains(&record, r#""text":"a\u00e9\/\ud83d""#),
        "{record:?}"
    );
    assert_eq!(record.as_ref().id().as_deref(), Some("x 1"));
    assert_eq!(
        record.as_ref().at().unwrap().to_string(),
        "2026-11-15T08:00:00.000Z"
    );
    let known =
        r#""id":"x 1","model":"m","response_id":"r","duration_ms":12,"cost_usd":0.5,"message""#;
    assert!(contains(&record, known), "{record:?}");
}

/// F9: the bytes on disk are the bytes that were passed in.
#[test]
fn a_native_records_content_goes_to_disk_with_its_bytes() {
    for message in [
        r#"{"role":"user","blocks":[]}"#,
        r#"{"blocks":[{"text":"t","type":"text"}],"role":"user"}"#,
        r#"{ "role" : "assistant" , "blocks" : [ { "type" : "tool_use" , "id":"a","name":"b","input":{"n":1e400,"n":1.0,"s":"\u0041\/\ud83d"} } ] , "usage" : null }"#,
        r#"{"role":"tool","blocks":[{"type":"hologram","x":[ ]}],"new":{"a":1,"a":2}}"#,
    ] {
        let record = recorded(&format!(
            r#"{{"type":"message","message":{message},"kept":1.50}}"#
        ));
        assert!(
            contains(&record, &format!(r#""message":{message}"#)),
            "{record:?}"
        );
        assert!(contains(&record, r#""kept":1.50,"message""#), "{record:?}");
    }
}

#[test]
fn json_over_several_lines_becomes_one_line() {
    let record = recorded(
        "{\n\"type\": \"message\",\r\n\"message\": {\n  \"role\": \"user\",\n  \"blocks\": []\n}\n}\n",
    );
    assert!(
        contains(&record, r#""message":{   "role": "user",   "blocks": [] }"#),
        "{record:?}"
    );
}

/// A14, each reason.
#[test]
fn what_cannot_be_recorded_is_refused_for_a_reason() {
    let message = r#"{"role":"user","blocks":[]}"#;
    for line in ["5", "null", "[]", r#""{}""#, " true"] {
        assert_eq!(refusal(line), Reason::NotAnObject, "{line}");
    }
    for line in [
        "",
        "{",
        r#"{"a":}"#,
        "nonsense",
        r#"{"role":"user","text":"x"} more"#,
    ] {
        assert!(
            matches!(refusal(line), Reason::Syntax(_)),
            "{line}: {:?}",
            refusal(line)
        );
    }
    assert_eq!(
        refusal(&format!(r#"{{"message":{message}}}"#)),
        Reason::MissingType
    );
    assert_eq!(
        refusal(r#"{"type":"message","message":{"role":"user","blocks":[{"text":"x"}]}}"#),
        Reason::MissingType
    );
    for kind in ["note", "session_meta", "compaction", "Message", ""] {
        let line = format!(r#"{{"type":"{kind}","message":{message}}}"#);
        assert_eq!(
            refusal(&line),
            Reason::UnsupportedType(kind.to_owned()),
            "{line}"
        );
    }
    for (line, field) in [
        (r#"{"type":"message"}"#, "message"),
        (r#"{"type":"message","message":{"blocks":[]}}"#, "role"),
        (r#"{"type":"message","message":{"role":"user"}}"#, "blocks"),
        (r#"{"text":"x"}"#, "role"),
        (r#"{"role":"user"}"#, "text"),
        ("{}", "role"),
    ] {
        assert_eq!(refusal(line), Reason::MissingField(field), "{line}");
    }
    for (field, value) in [
        ("duration_ms", "18446744073709551616"),
        ("expect", "99999999999999999999"),
        ("cost_usd", "1e400"),
    ] {
        let line = format!(r#"{{"role":"user","text":"x","{field}":{value}}}"#);
        assert_eq!(refusal(&line), Reason::OutOfRange(field), "{line}");
    }
    for (field, value) in [
        ("id", "7"),
        ("at", r#""yesterday""#),
        ("at", "true"),
        ("model", "[]"),
        ("duration_ms", r#""long""#),
        ("text", "7"),
        ("role", "null"),
    ] {
        let text = if field == "text" {
            ""
        } else {
            r#""text":"x","#
        };
        let role = if field == "role" {
            ""
        } else {
            r#""role":"user","#
        };
        let line = format!(r#"{{{text}{role}"{field}":{value}}}"#);
        assert!(
            matches!(refusal(&line), Reason::WrongField(name, _) if name == field),
            "{line}: {:?}",
            refusal(&line)
        );
    }
}

#[test]
fn fields_that_only_the_engine_sets_are_refused() {
    let message = r#""message":{"role":"user","blocks":[]}"#;
    for field in ["seq", "prev", "sum", "noted", "version"] {
        let line = format!(r#"{{"type":"message","{field}":1,{message}}}"#);
        assert_eq!(refusal(&line), Reason::UnexpectedField(field.to_owned()));
    }
    assert_eq!(
        refusal(r#"{"role":"user","text":"x","mood":"good"}"#),
        Reason::UnexpectedField("mood".to_owned()),
        "the short form has no other fields"
    );
    assert_eq!(
        refusal(r#"{"role":"user","text":"x","text":"y"}"#),
        Reason::RepeatedField("text".to_owned())
    );
}

#[test]
fn names_and_costs_are_checked_before_anything_is_written() {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    let before = lab.bytes(session.id(), 0);
    let draft = || Draft::from(Message::user_text("x"));
    let long = "x".repeat(257);
    let refused = [
        (draft().id(""), Reason::WrongField("id", "")),
        (draft().id("a\nb"), Reason::WrongField("id", "")),
        (draft().id("\u{0}"), Reason::WrongField("id", "")),
        (draft().model(&long), Reason::WrongField("model", "")),
        (
            draft().response_id("\u{7f}"),
            Reason::WrongField("response_id", ""),
        ),
        (draft().cost_usd(f64::NAN), Reason::OutOfRange("cost_usd")),
        (
            draft().cost_usd(f64::INFINITY),
            Reason::OutOfRange("cost_usd"),
        ),
        (draft().cost_usd(-0.5), Reason::OutOfRange("cost_usd")),
    ];
    for (draft, expected) in refused {
        let error = session.append(draft).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let same = match (error.reason().unwrap(), &expected) {
            (Reason::WrongField(name, _), Reason::WrongField(expected, _)) => name == expected,
            (reason, expected) => reason == expected,
        };
        assert!(same, "{error:?}, not {expected:?}");
    }
    assert_eq!(lab.bytes(session.id(), 0), before);
    session
        .append(draft().id("i \"quoted\" 🦀").cost_usd(0.0))
        .unwrap();
    let record = session.reader().record(1).unwrap().unwrap();
    assert_eq!(record.as_ref().id().as_deref(), Some("i \"quoted\" 🦀"));
}

/// One bad message of a batch affects no other.
#[test]
fn a_batch_takes_what_can_be_taken() {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    let results = session.append_batch([
        Draft::from(Message::user_text("1")),
        Draft::from(Message::user_text("bad")).id(""),
        Draft::from(Message::user_text("2")),
    ]);
    let seqs: Vec<Option<u64>> = results.into_iter().map(Result::ok).collect();
    assert_eq!(seqs, [Some(1), None, Some(2)]);
}
