//! The bytes of format version 2 are fixed: everything written once stays readable, and
//! the same bytes are written today.

use backtrail::{
    Block, Draft, Message, Note, Randomness, RecordKind, SessionOptions, StoreOptions, Timestamp,
    ToolResult, ToolUse, Usage,
};
use backtrail_testkit::{ManualClock, MemoryStorage};

use crate::damage::lab::{Lab, forge, lines, trail_path, trim_newline};

/// Version 2 as the first engine with it wrote it, in two trails.
const VERSION_2: [&str; 2] = [
    include_str!("fixtures/version-2/0000.jsonl"),
    include_str!("fixtures/version-2/0001.jsonl"),
];

/// Randomness that is the same however it is used.
#[derive(Debug)]
struct SameBytes;

impl Randomness for SameBytes {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        bytes.fill(0x2a);
        Ok(())
    }
}

/// Repeats the script of the fixture and returns the bytes of both trails.
fn write_it_today() -> [String; 2] {
    let disk = MemoryStorage::new();
    let clock = ManualClock::new(1_794_729_600_000);
    // How often the engine reads the clock does not matter.
    clock.set_step(0);
    let open = |rotation| {
        StoreOptions::new()
            .storage(disk.clone())
            .clock(clock.clone())
            .randomness(SameBytes)
            .rotation(rotation)
            .open_or_create("/store")
            .unwrap()
    };
    let store = open(u64::MAX);
    let options = SessionOptions::new()
        .title("fix the \"bug\"")
        .agent("tester")
        .model("m-1")
        .workspace_root(std::path::Path::new("/home/u/proj"));
    let session = store.create_session(options).unwrap();
    let id = session.id().clone();
    clock.advance(1_000);
    session.append(Message::system_text("Be brief.")).unwrap();
    clock.advance(1_234);
    session
        .append(Message::user_text("fix the bug \u{1f980}\n"))
        .unwrap();
    let call = ToolUse::new("t1", "bash", &serde_json::json!({"command": "ls"})).unwrap();
    let usage = Usage::new(10, 4)
        .cache_creation(1)
        .cache_read(2)
        .reasoning(3)
        .cache_creation_1h(1);
    let answer = Message::assistant([
        Block::signed_thinking("Let me look.", "EqoB"),
        Block::text("I look."),
        Block::from(call),
    ]);
    let draft = Draft::from(answer.usage(usage))
        .model("m-2")
        .response_id("msg_01")
        .duration_ms(1200)
        .cost_usd(0.0001);
    session.append(draft).unwrap();
    let result = ToolResult::ok("src\n").answers("t1", "bash");
    session.append(Message::tool_result(result)).unwrap();
    session
        .note(&Note::new().title("bug fixed").tags(["urgent", "ü"]))
        .unwrap();
    clock.advance(1_000);
    session
        .append(Message::assistant([Block::text("Done.")]))
        .unwrap();
    session.close().unwrap();

    let session = open(1).open_session(&id).unwrap();
    let line = r#"{"type":"message","id":"own-id","at":"2026-11-15T09:00:00.5+01:00","kept":1.50,"message":{"role":"critic","blocks":[{"type":"hologram","x":1e400}]}}"#;
    session.append(Draft::from_json(line).unwrap()).unwrap();
    session.close().unwrap();
    let session = store.open_session(&id).unwrap();
    session
        .append(Message::assistant([
            Block::image("image/png", "iVBORw==").unwrap()
        ]))
        .unwrap();
    session.close().unwrap();
    [0, 1].map(|trail| String::from_utf8(disk.read(&trail_path(&id, trail)).unwrap()).unwrap())
}

#[test]
fn the_same_script_writes_the_same_bytes_as_before() {
    let today = write_it_today();
    for (trail, (today, then)) in today.iter().zip(VERSION_2).enumerate() {
        let lines = today.lines().zip(then.lines()).enumerate();
        for (n, (today, then)) in lines.filter(|(_, (_, then))| !then.contains("image/png")) {
            assert_eq!(today, then, "trail {trail}, line {}", n + 1);
        }
        assert_eq!(today.lines().count(), then.lines().count());
    }
    // The first engine left images in their lines.
    let image = today[1].lines().last().unwrap();
    assert!(image.contains(r#""data":{"payload":""#), "{image}");
}

#[test]
fn a_session_of_version_2_is_read_and_continues() {
    let lab = Lab::new();
    let opener = VERSION_2[0].lines().next().unwrap();
    let (_, rest) = opener.split_once("\"session_id\":\"").unwrap();
    let id = rest[..36].parse().unwrap();
    lab.plant(&id, &VERSION_2.map(str::as_bytes));
    let reader = lab.reader(&id);
    let report = reader.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.damage.first());
    assert_eq!(report.records, 10);
    let info = reader.info().unwrap();
    assert_eq!(info.title.as_deref(), Some("bug fixed"));
    assert_eq!(info.tags, ["urgent", "ü"]);
    assert_eq!(
        (info.agent.as_deref(), info.model.as_deref()),
        (Some("tester"), Some("m-1"))
    );
    assert_eq!(
        info.workspace_root.as_deref(),
        Some(std::path::Path::new("/home/u/proj"))
    );
    assert_eq!(info.created_at, Timestamp::from_millis(1_794_729_600_000));
    assert_eq!((info.last_seq, info.trails, info.version), (8, 2, Some(2)));

    let records: Vec<_> = reader
        .records()
        .unwrap()
        .owned()
        .map(Result::unwrap)
        .collect();
    let kinds: Vec<&str> = records
        .iter()
        .map(|record| record.as_ref().kind().as_str())
        .collect();
    let message = RecordKind::Message.as_str();
    assert_eq!(
        kinds,
        [
            message, message, message, message, "note", message, message, message
        ]
    );
    let messages: Vec<Message> = records
        .iter()
        .filter_map(|record| record.message().unwrap())
        .collect();
    assert_eq!(messages[1], Message::user_text("fix the bug 🦀\n"));
    assert_eq!(messages[2].usage.as_ref().map(Usage::total), Some(17));
    assert!(
        matches!(&messages[2].blocks[2], Block::ToolUse(call) if call.input.as_str() == r#"{"command":"ls"}"#)
    );
    assert!(matches!(&messages[3].blocks[0], Block::ToolResult(result) if !result.is_error));
    let record = records[6].as_ref();
    assert_eq!(record.id().as_deref(), Some("own-id"));
    assert_eq!(record.at().unwrap().to_string(), "2026-11-15T08:00:00.500Z");

    let session = lab.store.open_session(&id).unwrap();
    assert_eq!(session.append(Message::user_text("on")).unwrap(), 9);
    assert!(reader.verify().unwrap().is_ok());
}

/// What makes a line readable from both ends, and by other programs.
#[test]
fn every_line_is_json_with_small_fields_first_and_sums_that_link() {
    let mut prev = forge::NOTHING.to_owned();
    for (trail, content) in VERSION_2.iter().enumerate() {
        let all = lines(content.as_bytes());
        for (n, line) in all.iter().enumerate() {
            let what = format!("trail {trail}, line {}", n + 1);
            assert!(line.ends_with(b"\"}\n"), "{what}");
            let text = std::str::from_utf8(trim_newline(line)).unwrap();
            // Numbers that no `f64` holds are still JSON.
            serde_json::from_str::<Box<serde_json::value::RawValue>>(text).unwrap();
            let keys = keys(text);
            let front: &[&str] = match keys[1].as_str() {
                "version" => &[
                    "type",
                    "version",
                    "seq",
                    "at",
                    "session_id",
                    "trail",
                    "because",
                ],
                _ if keys.contains(&"noted".to_owned()) => &["type", "seq", "noted", "at", "id"],
                _ => &["type", "seq", "at", "id"],
            };
            assert_eq!(keys[..front.len()], *front, "{what}");
            assert_eq!(keys[keys.len() - 2..], ["prev", "sum"], "{what}");
            if text.contains("\"message\":{") {
                assert_eq!(keys[keys.len() - 3], "message", "{what}");
            }
            let end = format!(r#","prev":"{prev}","sum":"{}"}}"#, forge::sum(line));
            assert!(text.ends_with(&end), "{what}: {text}");
            let (front, _) = text.rsplit_once(",\"prev\":\"").unwrap();
            assert_eq!(
                forge::line(front.as_bytes(), &prev),
                *line,
                "{what}: the sum"
            );
            prev = forge::sum(line);
        }
    }
}

fn keys(line: &str) -> Vec<String> {
    let fields: backtrail::Fields = serde_json::from_str(line).unwrap();
    fields.iter().map(|(name, _)| name.to_owned()).collect()
}

/// Rewrites the fixture. Only for a new format version: the old files stay.
#[test]
#[ignore = "fixtures are written once"]
fn write_the_fixture() {
    for (trail, content) in write_it_today().iter().enumerate() {
        print!("==> {trail}\n{content}");
    }
}

/// Moves, compactions, payloads, forks, sub-agents and imports, as the first engine with
/// them wrote them: every file of the store, one after the other.
const MOVES: &str = include_str!("fixtures/version-2-moves.txt");

/// Ids that are all different, and the same every time.
#[derive(Debug, Default)]
struct Counted(std::sync::atomic::AtomicU8);

impl Randomness for Counted {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        for chunk in bytes.chunks_mut(16) {
            chunk.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        }
        Ok(())
    }
}

fn move_about_today() -> String {
    let disk = MemoryStorage::new();
    let clock = ManualClock::new(1_794_729_600_000);
    clock.set_step(0);
    let store = StoreOptions::new()
        .storage(disk.clone())
        .clock(clock)
        .randomness(Counted::default())
        .open_or_create("/store")
        .unwrap();
    let session = store.create_session(SessionOptions::new()).unwrap();
    let call = ToolUse::new("t1", "task", &serde_json::json!({})).unwrap();
    session.append(Message::user_text("look")).unwrap();
    session
        .append(Message::assistant([
            Block::image("image/png", "iVBORw==").unwrap(),
            call.into(),
        ]))
        .unwrap();
    session
        .spawn("t1", SessionOptions::new().agent("helper"))
        .unwrap();
    session
        .compact(&backtrail::Compaction::new("They looked.").keep(1))
        .unwrap();
    session.append(Message::user_text("and now?")).unwrap();
    session.rewind_chat(2).unwrap();
    session.undo().unwrap();
    session.redo().unwrap();
    session.note(&Note::new().pinned(true)).unwrap();
    session
        .fork(&backtrail::ForkOptions::new().at(1).branch_name("try-2"))
        .unwrap();
    let old =
        r#"{"message":{"blocks":[{"text":"hello","type":"text"}],"role":"user"},"type":"message"}"#;
    // As an earlier version imported a file of version 1: the next writer continues it.
    let dir = std::path::Path::new("/store/sessions/session-1775008161929");
    backtrail::Storage::create_dir(&disk, dir).unwrap();
    disk.write(&dir.join("0000.jsonl"), format!("{old}\n").as_bytes())
        .unwrap();
    let id = "session-1775008161929".parse().unwrap();
    store.open_session(&id).unwrap().close().unwrap();
    let mut all = String::new();
    for path in disk.files() {
        let name = path.to_string_lossy();
        if name.starts_with("/store/sessions") && !name.ends_with(".lock") {
            let bytes = disk.read(&path).unwrap();
            all += &format!("== {name}\n{}", String::from_utf8_lossy(&bytes));
        }
    }
    all
}

#[test]
fn the_same_moves_write_the_same_bytes_as_before() {
    let today = move_about_today();
    for (n, (today, then)) in today.lines().zip(MOVES.lines()).enumerate() {
        assert_eq!(today, then, "line {}", n + 1);
    }
    assert_eq!(today, MOVES);
}
