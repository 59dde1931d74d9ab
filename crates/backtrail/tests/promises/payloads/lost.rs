//! A lost or damaged payload affects only itself: it is named, the rest of the history is
//! there, and nothing loops because of it.

use backtrail::conversation::HistoryItem;
use backtrail::{
    Block, Compaction, ErrorKind, Message, Reason, Role, Session, SessionId, SessionReader, Shape,
    ToolResult, ToolUse, Usage,
};
use backtrail_testkit::{Count, Fault, FaultyStorage};

use super::{Lab, image, json, payload_file, picture, said, shown, store_on};
use crate::faults::EIO;

const LEN: usize = 1_000;

/// A session with pictures in records 2 and 4, the second of them in an answer that also
/// calls a tool.
fn begin(lab: &Lab) -> Session {
    let session = lab.begin();
    let call = ToolUse::new("t1", "look", &serde_json::json!({"at": "it"})).unwrap();
    let result = ToolResult::ok("a cat").answers("t1", "look");
    let messages = [
        Message::system_text("be brief"),
        shown("what is this?", &picture(1, LEN)),
        Message::user_text("and this?"),
        Message::assistant([
            Block::text("Let me see."),
            image(&picture(2, LEN)),
            call.into(),
        ])
        .usage(Usage::new(100, 20)),
        Message::tool_result(result),
    ];
    for message in messages {
        session.append(message).unwrap();
    }
    session
}

/// The ways in which the second payload can be lost while the first stays.
fn losses(lab: &Lab, reader: &SessionReader) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let whole = lab.payloads(reader);
    let second = memchr::memmem::find(&whole, &picture(2, LEN)).unwrap();
    let entry = memchr::memmem::rfind(&whole[..second], b"{\"payload\"").unwrap();
    let mut flipped = whole.clone();
    flipped[second + 500] ^= 4;
    let mut zeroed = whole.clone();
    zeroed[second..second + LEN].fill(0);
    vec![
        ("flipped", Some(flipped)),
        ("zeroed", Some(zeroed)),
        ("cut", Some(whole[..second + LEN - 1].to_vec())),
        ("cut before its entry", Some(whole[..entry].to_vec())),
    ]
}

/// Removes the second payload, or with `None` the whole file.
fn lose(lab: &Lab, reader: &SessionReader, left: Option<&[u8]>) {
    let file = payload_file(reader);
    match left {
        Some(bytes) => lab.memory.write(&file, bytes).unwrap(),
        None => backtrail::Storage::remove_file(&lab.memory, &file).unwrap(),
    }
}

/// Checks a session for every way in which its payload can be lost.
fn for_each_loss(check: impl Fn(&str, &Lab, &SessionId)) {
    let lab = Lab::new();
    let session = begin(&lab);
    for (how, left) in losses(&lab, &session.reader()) {
        let lab = Lab::on(lab.memory.kill());
        let reader = lab.store.read_session(session.id()).unwrap();
        lose(&lab, &reader, left.as_deref());
        check(how, &lab, session.id());
    }
}

#[test]
fn verify_names_the_record_and_the_file_of_a_lost_payload() {
    for_each_loss(|how, lab, id| {
        let reader = lab.store.read_session(id).unwrap();
        let report = reader.verify().unwrap();
        assert!(!report.is_ok(), "{how}");
        assert_eq!(report.records, 6, "{how}: all are whole");
        let [damage] = report.damage.first() else {
            panic!("{how}: {:?}", report.damage);
        };
        assert_eq!(damage.file, reader.dir().join("0000.jsonl"), "{how}");
        assert_eq!(damage.line, Some(5), "{how}");
        let Reason::LostPayload(hash) = &damage.reason else {
            panic!("{how}: {damage}");
        };
        assert_eq!(*hash, blake3::hash(&picture(2, LEN)).to_hex().to_string());
    });
}

#[test]
fn a_missing_payload_file_is_named_for_each_record_that_needs_it() {
    let lab = Lab::new();
    let reader = begin(&lab).reader();
    lose(&lab, &reader, None);
    let report = reader.verify().unwrap();
    let lines: Vec<_> = report.damage.first().iter().map(|d| d.line).collect();
    assert_eq!(lines, [Some(3), Some(5)]);
    let error = reader.record(2).unwrap().unwrap().message().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.path(), Some(payload_file(&reader).as_path()));
}

#[test]
fn the_rest_of_the_history_is_there_and_the_rest_of_the_message() {
    for_each_loss(|how, lab, id| {
        let reader = lab.store.read_session(id).unwrap();
        let mut read = Vec::new();
        let mut records = reader.records().unwrap();
        while let Some(record) = records.next().unwrap() {
            let stored = record.stored_message().unwrap().unwrap();
            if record.seq() != 4 {
                read.push(record.message().unwrap().unwrap().text().into_owned());
                continue;
            }
            assert_eq!(stored.text(), "Let me see.", "{how}");
            for error in [
                record.message().unwrap_err(),
                record.message_json().unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{how}");
                assert_eq!(error.path(), Some(payload_file(&reader).as_path()));
                assert!(error.to_string().contains("is lost"), "{how}: {error}");
            }
        }
        assert_eq!(read, ["be brief", "what is this?", "and this?", ""]);
        let first = reader.record(2).unwrap().unwrap();
        assert!(first.message().unwrap().unwrap() == shown("what is this?", &picture(1, LEN)));
    });
}

#[test]
fn the_context_sends_the_rest_and_says_that_something_is_missing() {
    for_each_loss(|how, lab, id| {
        let reader = lab.store.read_session(id).unwrap();
        for shape in Shape::ALL {
            let context = reader.context(shape).unwrap();
            assert_eq!(context.skipped(), 1, "{how}, {shape}");
            let json = context.as_json();
            for text in [
                "be brief",
                "what is this?",
                "and this?",
                "Let me see.",
                "a cat",
            ] {
                assert!(json.contains(text), "{how}, {shape}: no {text} in {json}");
            }
        }
    });
}

/// B2, F6: prompts, answers, calls and usage are not lost with a picture.
#[test]
fn history_and_statistics_lose_no_more_than_the_picture() {
    for_each_loss(|how, lab, id| {
        let reader = lab.store.read_session(id).unwrap();
        let mut history = reader.history().unwrap();
        let mut told = Vec::new();
        for item in history.by_ref() {
            told.push(match item.unwrap() {
                HistoryItem::Prompt(prompt) => prompt.text.to_string(),
                HistoryItem::Answer(answer) => answer.text.to_string(),
                HistoryItem::ToolCall(call) => format!("{} {:?}", call.name, call.success),
                other => panic!("{other:?}"),
            });
        }
        let expected = [
            "what is this?",
            "and this?",
            "Let me see.",
            "look Some(true)",
        ];
        assert_eq!(told, expected, "{how}");
        assert_eq!(history.damaged(), 1, "{how}");
        let stats = reader.stats().unwrap();
        assert_eq!(stats.usage, Usage::new(100, 20), "{how}");
        assert_eq!(stats.messages.total, 5, "{how}");
        assert_eq!((stats.tool_calls, stats.open_tool_calls), (1, 0), "{how}");
        assert_eq!(stats.damaged, 1, "{how}");
    });
}

#[test]
fn a_repair_neither_loses_a_record_for_a_lost_payload_nor_turns_in_circles() {
    for_each_loss(|how, lab, id| {
        let plan = lab.store.repair_plan(id).unwrap();
        assert!(plan.is_empty(), "{how}: {:?}", plan.damage());
        let report = plan.apply().unwrap();
        assert_eq!(report.trail, None, "{how}");
        // Damage of another kind beside it is bypassed as usual.
        let reader = lab.store.read_session(id).unwrap();
        let trail = reader.dir().join("0000.jsonl");
        let mut bytes = lab.memory.read(&trail).unwrap();
        let third = memchr::memmem::find(&bytes, b"and this?").unwrap();
        bytes[third] ^= 1;
        lab.memory.write(&trail, &bytes).unwrap();
        let report = lab.store.repair_plan(id).unwrap().apply().unwrap();
        assert_eq!((report.trail, report.copied), (Some(1), 2), "{how}");
        assert_eq!(report.missing, [3..=3], "{how}");
        assert!(lab.store.repair_plan(id).unwrap().is_empty(), "{how}");
        let seqs = reader.records().unwrap().owned().map(|r| r.unwrap().seq());
        assert!(seqs.eq([1, 2, 4, 5]), "{how}");
        let record = reader.record(4).unwrap().unwrap();
        assert!(record.as_ref().stored_message().is_ok(), "{how}");
    });
}

/// A copy of the file, or recording the same picture again, restores it.
#[test]
fn a_lost_payload_is_back_when_it_is_shown_again() {
    for_each_loss(|how, lab, id| {
        let session = lab.store.open_session(id).unwrap();
        let again = shown("once more", &picture(2, LEN));
        assert_eq!(session.append(again.clone()).unwrap(), 6, "{how}");
        let reader = session.reader();
        assert_eq!(said(&reader)[5], json(&again), "{how}");
        assert!(reader.verify().unwrap().is_ok(), "{how}");
    });
}

/// The instructions always stay in the context; if a part of them is lost, that is
/// reported even when everything around it was compacted.
#[test]
fn a_lost_part_of_the_instructions_is_reported_after_a_compaction_too() {
    let lab = Lab::new();
    let session = lab.begin();
    let text = "You are a painter. ".repeat(70_000);
    let system = Message::new(Role::System, [Block::text("be brief"), Block::text(text)]);
    session.append(system).unwrap();
    session.append(Message::user_text("hello")).unwrap();
    lose(&lab, &session.reader(), Some(b""));
    let before = session.context(Shape::Neutral).unwrap();
    assert_eq!(before.skipped(), 1);
    assert!(before.as_json().contains("be brief"));
    let compacted = session.compact(&Compaction::new("They met.")).unwrap();
    assert_eq!(
        compacted.removed_message_count, 1,
        "it is no less an instruction"
    );
    let after = session.context(Shape::Neutral).unwrap();
    assert!(after.as_json().contains("be brief"), "{}", after.as_json());
    assert_eq!(after.skipped(), 1);
}

/// The same for a damaged line among the instructions; damage at the beginning of the
/// context is counted once.
#[test]
fn a_ruined_line_among_the_instructions_is_reported_after_a_compaction_too() {
    for keep in [0, 1, 2, 9] {
        let lab = Lab::new();
        let session = lab.begin();
        for text in ["be brief", "be kind"] {
            session.append(Message::system_text(text)).unwrap();
        }
        for text in ["hello", "good day"] {
            session.append(Message::user_text(text)).unwrap();
        }
        let trail = session.reader().dir().join("0000.jsonl");
        let mut bytes = lab.memory.read(&trail).unwrap();
        let at = memchr::memmem::find(&bytes, b"be kind").unwrap();
        bytes[at] ^= 1;
        lab.memory.write(&trail, &bytes).unwrap();
        assert_eq!(session.context(Shape::Neutral).unwrap().skipped(), 1);
        let compaction = Compaction::new("They met.").keep(keep);
        session.compact(&compaction).unwrap();
        let context = session.context(Shape::Neutral).unwrap();
        assert_eq!(context.skipped(), 1, "kept {keep}");
        assert!(context.as_json().contains("be brief"));
    }
}

/// A disk that cannot be read is an error, and never mistaken for damage.
#[test]
fn f22_a_payload_file_that_cannot_be_read_is_an_error_of_the_disk() {
    let lab = Lab::new();
    let session = begin(&lab);
    let disk = FaultyStorage::new(lab.memory.clone()).counting(Count::All);
    let store = store_on(disk.clone(), u64::MAX);
    let reader = store.read_session(session.id()).unwrap();
    let attempts: [(&str, &dyn Fn() -> Option<backtrail::Error>); 6] = [
        ("context", &|| reader.context(Shape::Neutral).err()),
        ("stats", &|| reader.stats().err()),
        ("history", &|| {
            reader.history().unwrap().find_map(Result::err)
        }),
        ("verify", &|| reader.verify().err()),
        ("repair", &|| store.repair_plan(session.id()).err()),
        ("message", &|| {
            reader.record(2).unwrap().unwrap().message().err()
        }),
    ];
    for (what, attempt) in attempts {
        disk.arm(u64::MAX, Fault::Error(EIO));
        assert!(attempt().is_none(), "{what}");
        let log = disk.log();
        let touches = |line: &String| line.contains("payloads");
        let places = (0..log.len()).filter(|n| touches(&log[*n]));
        for n in places.clone() {
            disk.arm(n as u64, Fault::Error(EIO));
            let error = attempt().unwrap_or_else(|| panic!("{what}: {}", log[n]));
            assert_eq!(error.kind(), ErrorKind::Io, "{what}: {error:?}");
            assert_eq!(error.path(), Some(payload_file(&reader).as_path()));
        }
        assert!(places.count() > 1, "{what} never looked");
    }
}
