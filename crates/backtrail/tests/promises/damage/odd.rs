//! Intact lines with unexpected content (F8): the rest is still read, and the bytes stay
//! unchanged.

use backtrail::{Block, Draft, Message, RecordKind, Role, SessionId};

use super::lab::{
    Lab, assert_goes_on, assert_shows, forge, forwards, lines, trail_path, trim_newline,
};

/// Records one odd message between two ordinary ones and returns it as read back, after
/// checking its bytes in every direction.
fn record_between(odd: &str) -> Message {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    session.append(Message::user_text("before")).unwrap();
    let draft = format!(r#"{{"type":"message","message":{odd}}}"#);
    let seq = session.append(Draft::from_json(&draft).unwrap()).unwrap();
    session.append(Message::user_text("after")).unwrap();
    let id = session.id().clone();
    session.close().unwrap();
    let shown = forwards(&lab.reader(&id)).0;
    assert_eq!(shown.len(), 3);
    assert_shows(&lab, &id, &shown, "an odd message");
    let report = lab.reader(&id).verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.damage.first());
    assert_goes_on(&lab, &id, &shown, "an odd message");
    let record = lab.reader(&id).record(seq).unwrap().unwrap();
    let bytes = record.as_ref().bytes();
    let found = bytes
        .windows(odd.len())
        .any(|window| window == odd.as_bytes());
    assert!(found, "the message has other bytes on disk");
    record.message().unwrap().unwrap()
}

#[test]
fn a_lone_surrogate_is_kept_and_shown_as_a_replacement_character() {
    let message = record_between(
        r#"{"role":"user","blocks":[{"type":"text","text":"a\ud83d b\udc00\ud83d\ude00"}]}"#,
    );
    assert_eq!(message.text(), "a\u{fffd} b\u{fffd}😀");
    let json = serde_json::to_string(&message).unwrap();
    assert!(json.contains(r"a\ud83d b\udc00\ud83d\ude00"), "{json}");
}

#[test]
fn an_emoji_written_as_a_surrogate_pair_is_an_emoji() {
    let message =
        record_between(r#"{"role":"user","blocks":[{"type":"text","text":"\ud83e\udd80"}]}"#);
    assert_eq!(message.text(), "🦀");
}

#[test]
fn a_hundred_thousand_nested_brackets_do_not_kill_the_process() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}0{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    for input in [deep, objects] {
        let message = record_between(&format!(
            r#"{{"role":"assistant","blocks":[{{"type":"tool_use","id":"t","name":"x","input":{input}}},{{"type":"new","deep":{input}}}],"usage":{{"deep":{input}}},"more":{input}}}"#
        ));
        let Block::ToolUse(call) = &message.blocks[0] else {
            panic!("{:?}", message.role)
        };
        assert_eq!(call.input.as_str(), input);
        // Parsing it to a tree is an error.
        assert!(call.input.parse::<serde_json::Value>().is_err());
        assert_eq!(message.extra.get("more").unwrap().as_str(), input);
    }
}

#[test]
fn a_deeply_nested_line_is_refused_or_taken_but_never_kills_the_process() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for line in [
        deep.clone(),
        format!(r#"{{"role":"user","text":{deep}}}"#),
        format!(r#"{{"role":{deep},"text":"x"}}"#),
        format!(r#"{{"type":"message","message":{deep}}}"#),
        format!(r#"{{"type":"message","message":{{"role":{deep},"blocks":[]}}}}"#),
        format!(r#"{{"type":"message","message":{{"role":"user","blocks":{deep}}}}}"#),
        format!(r#"{{"type":{deep}}}"#),
        format!(r#"{{"role":"user","text":"x","cost_usd":{deep}}}"#),
    ] {
        let error = Draft::from_json(&line).unwrap_err();
        assert_eq!(error.kind(), backtrail::ErrorKind::Invalid);
    }
}

#[test]
fn numbers_beyond_64_bits_are_kept_and_counters_saturate() {
    let big = "340282366920938463463374607431768211456";
    let message = record_between(&format!(
        r#"{{"role":"assistant","blocks":[{{"type":"tool_use","id":"t","name":"x","input":{{"n":{big},"e":1e400}}}}],"usage":{{"input_tokens":{big},"output_tokens":4294967296,"cache_read_input_tokens":1}},"big":{big}}}"#
    ));
    let usage = message.usage.as_ref().unwrap();
    assert_eq!(usage.input_tokens, u64::MAX);
    assert_eq!(usage.output_tokens, 1 << 32);
    assert_eq!(usage.total(), u64::MAX);
    assert_eq!(message.extra.get("big").unwrap().as_str(), big);
}

#[test]
fn unknown_roles_blocks_fields_and_a_null_usage_are_kept() {
    let message = record_between(
        r#"{"new":[1.0],"role":"critic","blocks":[{"type":"hologram","x":1e9},{"type":"text","text":"t","new":null},{"type":"text"}],"usage":null}"#,
    );
    assert_eq!(message.role, Role::Other("critic".to_owned()));
    assert!(
        matches!(&message.blocks[0], Block::Other(json) if json.as_str() == r#"{"type":"hologram","x":1e9}"#)
    );
    assert!(matches!(&message.blocks[1], Block::Text(block) if block.extra.get("new").is_some()));
    assert!(
        matches!(&message.blocks[2], Block::Other(json) if json.as_str() == r#"{"type":"text"}"#)
    );
    assert_eq!(message.usage, None);
    assert_eq!(message.extra.get("new").unwrap().as_str(), "[1.0]");
}

/// Writes a session with an opener, these lines, and a message.
fn forged(fronts: &[&[u8]]) -> (Lab, SessionId) {
    let lab = Lab::new();
    let id: SessionId = "forged".parse().unwrap();
    let mut bytes = forge::trail(&id, 0, "start", None, 1);
    let mut prev = forge::sum(&bytes);
    for front in fronts {
        let line = forge::line(front, &prev);
        prev = forge::sum(&line);
        bytes.extend_from_slice(&line);
    }
    let seq = fronts.len() as u64 + 2;
    bytes.extend_from_slice(&forge::message(seq, "after", &prev));
    lab.plant(&id, &[&bytes]);
    (lab, id)
}

#[test]
fn record_types_and_fields_of_a_newer_version_are_shown_as_they_are() {
    let fronts: [&[u8]; 3] = [
        br#"{"type":"hologram","seq":2,"x":{"y":1e400,"z":"\ud83d"}"#,
        br#"{"new":{"type":"message","seq":77},"type":"message","seq":3,"id":"\u0041","at":"2026-11-15T08:00:00.000Z","message":{"role":"user","blocks":[]}"#,
        br#"{"type":"message","seq":4,"new":1,"message":{"role":"user","blocks":[]},"id":"m4"}"#,
    ];
    let (lab, id) = forged(&[fronts[0], fronts[1], &fronts[2][..fronts[2].len() - 1]]);
    let shown = forwards(&lab.reader(&id)).0;
    assert_eq!(
        shown.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    let damage = assert_shows(&lab, &id, &shown, "new records");
    assert!(damage.is_empty(), "{damage:?}");
    assert!(lab.reader(&id).verify().unwrap().is_ok());
    let record = lab.reader(&id).record(2).unwrap().unwrap();
    assert_eq!(record.as_ref().kind(), RecordKind::Other("hologram"));
    let record = lab.reader(&id).record(3).unwrap().unwrap();
    assert_eq!(record.as_ref().id().as_deref(), Some("A"));
    assert!(record.as_ref().at().is_some());
    let record = lab.reader(&id).record(4).unwrap().unwrap();
    assert_eq!(record.as_ref().id().as_deref(), Some("m4"));
    assert_goes_on(&lab, &id, &shown, "new records");
}

/// The sum is correct, so the record is shown; that it cannot be parsed affects no other.
#[test]
fn a_whole_record_that_cannot_be_parsed_hides_no_other() {
    let fronts: [&[u8]; 4] = [
        b"{\"type\":\"message\",\"seq\":2,\"message\":{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}",
        br#"{"type":"message","seq":3,"message":"words""#,
        br#"{"type":"message","seq":4"#,
        br#"{"type":"message","seq":5,"message":{"role":"user"}"#,
    ];
    let (lab, id) = forged(&fronts);
    let shown = forwards(&lab.reader(&id)).0;
    assert_eq!(
        shown.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    assert_shows(&lab, &id, &shown, "records that cannot be parsed");
    for seq in 2..=5 {
        let record = lab.reader(&id).record(seq).unwrap().unwrap();
        let error = record.message().unwrap_err();
        assert_eq!(error.kind(), backtrail::ErrorKind::Corrupt);
        assert!(error.reason().is_some(), "{error:?}");
    }
    let report = lab.reader(&id).verify().unwrap();
    let lines: Vec<_> = report
        .damage
        .first()
        .iter()
        .map(|damage| damage.line)
        .collect();
    assert_eq!(lines, [Some(3), Some(4), Some(5), Some(6)]);
    assert_goes_on(&lab, &id, &shown, "records that cannot be parsed");
}

#[test]
fn whole_lines_without_a_type_or_a_usable_seq_cost_only_themselves() {
    for front in [
        &br#"{"seq":2,"message":{}"#[..],
        br#"{"type":"message","message":{}"#,
        br#"{"type":"message","seq":-2,"message":{}"#,
        br#"{"type":"message","seq":2.5,"message":{}"#,
        br#"{"type":"message","seq":18446744073709551616,"message":{}"#,
        br#"{"type":7,"seq":2"#,
        br#"{"type":"mess\u0061ge","seq":2"#,
        br#"["type","seq""#,
        b"{\"type\":\"\xff\",\"seq\":2",
    ] {
        let what = String::from_utf8_lossy(front).into_owned();
        let (lab, id) = forged(&[front]);
        let bytes = lab.bytes(&id, 0);
        let all = lines(&bytes);
        let expected = [
            (1, trim_newline(all[1]).to_vec()),
            (3, trim_newline(all[3]).to_vec()),
        ];
        let damage = assert_shows(&lab, &id, &expected, &what);
        assert_eq!(damage.len(), 1, "{what}: {damage:?}");
        assert_eq!(damage[0].file, trail_path(&id, 0), "{what}");
        assert_eq!(damage[0].line, Some(3), "{what}");
        assert_goes_on(&lab, &id, &expected, &what);
    }
}

/// The last possible number: the session can be read, and refuses to continue instead of
/// starting again from 0.
#[test]
fn a_session_whose_numbers_are_used_up_reports_it() {
    let front = format!(
        r#"{{"type":"message","seq":{},"message":{{"role":"user","blocks":[]}}"#,
        u64::MAX
    );
    let lab = Lab::new();
    let id: SessionId = "forged".parse().unwrap();
    let bytes = forge::trail(&id, 0, "start", None, 1);
    let line = forge::line(front.as_bytes(), &forge::sum(&bytes));
    lab.plant(&id, &[&[bytes, line].concat()]);
    let (shown, _) = forwards(&lab.reader(&id));
    assert_eq!(shown.len(), 2);
    let session = lab.store.open_session(&id).unwrap();
    let error = session.append(Message::user_text("more")).unwrap_err();
    assert_eq!(error.kind(), backtrail::ErrorKind::Corrupt);
}

/// Fields that a newer version adds to an opener must not hide its title, its workspace
/// or its place in the line.
#[test]
fn an_opener_with_unknown_fields_of_any_shape_is_read() {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    for new in [
        "1e400",
        r#""\ud83d""#,
        r#"{"a":null}"#,
        "18446744073709551616",
        &deep,
    ] {
        let what = format!("an opener with {new:.20}");
        let lab = Lab::new();
        let id: SessionId = "forged".parse().unwrap();
        let bytes = forge::trail(&id, 0, "start", None, 0);
        let fields = format!(r#""because":"start","title":"kept","new":{new}"#);
        let opener = forge::change(&bytes, r#""because":"start""#, &fields);
        let message = forge::message(1, "hello", &forge::sum(&opener));
        lab.plant(&id, &[&[opener, message].concat()]);
        let report = lab.reader(&id).verify().unwrap();
        assert!(report.is_ok(), "{what}: {:?}", report.damage.first());
        let info = lab.reader(&id).info().unwrap();
        assert_eq!(info.title.as_deref(), Some("kept"), "{what}");
        assert_eq!(info.version, Some(2), "{what}");
    }
}

/// The same for a note: unknown fields are ignored, known ones count.
#[test]
fn a_note_with_unknown_fields_of_any_shape_is_read() {
    for new in ["1e400", r#""\ud83d""#, "18446744073709551616"] {
        let front = format!(
            r#"{{"type":"note","seq":2,"at":"2026-11-15T08:00:00.000Z","id":"n","new":{new},"title":"noted""#
        );
        let (lab, id) = forged(&[front.as_bytes()]);
        let bytes = lab.bytes(&id, 0);
        let all = lines(&bytes);
        let last = forge::change(all[3], "\"seq\":3,", "\"seq\":3,\"noted\":2,");
        lab.put(&id, 0, &[all[0], all[1], all[2], &last].concat());
        let info = lab.reader(&id).info().unwrap();
        assert_eq!(info.title.as_deref(), Some("noted"), "{new}");
    }
}
