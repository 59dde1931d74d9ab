//! The promise: whatever version 1 wrote can be loaded, and its readers accept what is
//! written for them. Both through `Transcript`; the reader itself has tests beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backtrail::version1::LossKind;
use backtrail::{
    Block, ErrorKind, Json, Media, Message, Reason, Role, ToolResult, ToolUse, Transcript, Usage,
};
use backtrail_testkit::MemoryStorage;
use proptest::prelude::*;

use super::strict;

const META: &str = r#"{"created_at_ms":1794726326111,"fork":{"branch_name":"try-2","parent_session_id":"session-1794726326110-0"},"model":"m","session_id":"session-1794726326112-1","type":"session_meta","updated_at_ms":1794726326113,"version":1,"workspace_root":"/home/u/proj"}"#;
const COMPACTION: &str =
    r#"{"count":1,"removed_message_count":12,"summary":"…","type":"compaction"}"#;
const PROMPT: &str =
    r#"{"text":"fix the bug","timestamp_ms":1794726326114,"type":"prompt_history"}"#;
const ASK: &str = r#"{"message":{"blocks":[{"text":"fix the bug","type":"text"}],"role":"user"},"type":"message"}"#;
const CALL: &str = r#"{"message":{"blocks":[{"signature":"EqoB","thinking":"Let me look.","type":"thinking"},{"id":"toolu_01","input":"{\"command\":\"ls\"}","name":"bash","type":"tool_use"}],"role":"assistant","usage":{"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"input_tokens":10,"output_tokens":4}},"type":"message"}"#;
const RESULT: &str = r#"{"message":{"blocks":[{"is_error":false,"output":"src\n","tool_name":"bash","tool_use_id":"toolu_01","type":"tool_result"}],"role":"tool"},"type":"message"}"#;
const OBJECT: &str =
    r#"{"messages":[{"blocks":[{"text":"hello","type":"text"}],"role":"user"}],"version":1}"#;

fn tried(name: &str, content: impl AsRef<[u8]>) -> backtrail::Result<Transcript> {
    let disk = MemoryStorage::new();
    let path = Path::new("/").join(name);
    disk.write(&path, content.as_ref()).unwrap();
    Transcript::load_from_place(path, Arc::new(disk))
}

fn load(name: &str, content: impl AsRef<[u8]>) -> Transcript {
    tried(name, content).unwrap()
}

fn lines(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

fn export(talk: &Transcript) -> (String, backtrail::version1::Losses) {
    let mut out = Vec::new();
    let losses = talk.write_v1(&mut out).unwrap();
    (String::from_utf8(out).unwrap(), losses)
}

fn kinds(losses: &backtrail::version1::Losses) -> Vec<LossKind> {
    losses.iter().map(|loss| loss.kind).collect()
}

// A8
#[test]
fn the_literal_lines_load() {
    let talk = load(
        "s.jsonl",
        lines(&[META, COMPACTION, PROMPT, ASK, CALL, RESULT]),
    );
    assert_eq!(talk.session_id().as_str(), "session-1794726326112-1");
    assert_eq!(talk.created_at_ms(), 1_794_726_326_111);
    assert_eq!(talk.updated_at_ms(), 1_794_726_326_113);
    let fork = talk.fork_origin().unwrap();
    assert_eq!(fork.parent_session_id, "session-1794726326110-0");
    assert_eq!(fork.branch_name.as_deref(), Some("try-2"));
    let compaction = talk.compaction().unwrap();
    assert_eq!(compaction.count, 1);
    assert_eq!(compaction.removed_message_count, 12);
    assert_eq!(compaction.summary.as_str(), "…");
    assert_eq!(talk.messages().len(), 3);
    assert_eq!(talk.messages()[0], Message::user_text("fix the bug"));
    assert!(matches!(talk.messages()[1].blocks[0], Block::Thinking(_)));
    assert!(talk.skipped().is_empty());
}

// A8: its context is the summary and every message there.
#[test]
fn a_version_1_compaction_covers_no_message_of_its_file() {
    let talk = load("s", lines(&[ASK, CALL, RESULT, COMPACTION]));
    assert_eq!(talk.kept_messages().len(), 3);
}

// A8
#[test]
fn the_meta_may_be_anywhere_and_the_last_of_each_counts() {
    let first = META.replace("112-1", "000-1");
    let other = COMPACTION.replace("…", "earlier");
    let talk = load(
        "s",
        lines(&[&other, ASK, &first, "", "  ", COMPACTION, RESULT, META]),
    );
    assert_eq!(talk.session_id().as_str(), "session-1794726326112-1");
    assert_eq!(talk.compaction().unwrap().summary.as_str(), "…");
    assert_eq!(talk.messages().len(), 2);
    assert!(talk.skipped().is_empty());
}

// A8, A9
#[test]
fn without_a_meta_the_id_comes_from_the_file_and_stays() {
    for content in [ASK, OBJECT] {
        let id = |name| load(name, content).session_id().to_string();
        assert_eq!(id("my talk.jsonl"), "my-talk");
        assert_eq!(id("…"), id("–"));
        assert!(id("…").parse::<uuid_like::Uuid>().is_ok());
        let talk = load("session-1775008161929.json", content);
        assert_eq!(talk.created_at_ms(), 1_775_008_161_929);
        assert_eq!(talk.updated_at_ms(), 1_775_008_161_929);
    }
}

/// The shape of an id that was made of content.
mod uuid_like {
    pub(crate) struct Uuid;

    impl std::str::FromStr for Uuid {
        type Err = String;

        fn from_str(text: &str) -> Result<Self, String> {
            let lens: Vec<usize> = text.split('-').map(str::len).collect();
            let hex = text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
            match (hex, lens.as_slice()) {
                (true, [8, 4, 4, 4, 12]) => Ok(Self),
                _ => Err(text.to_owned()),
            }
        }
    }
}

// A8
#[test]
fn a_missing_created_time_is_that_of_the_first_prompt() {
    let meta = r#"{"session_id":"s","type":"session_meta","version":1}"#;
    let talk = load("s", lines(&[meta, ASK, PROMPT]));
    assert_eq!(talk.created_at_ms(), 1_794_726_326_114);
}

// A8
#[test]
fn tool_input_that_is_not_json_is_kept_as_a_string() {
    let call = CALL.replace(r#"{\"command\":\"ls\"}"#, "echo hi");
    let talk = load("s", call);
    let Block::ToolUse(call) = &talk.messages()[0].blocks[1] else {
        panic!("{talk:?}");
    };
    assert_eq!(call.input.parse::<String>().unwrap(), "echo hi");
}

// A8
#[test]
fn an_older_copy_is_read_only_where_the_file_is_missing() {
    let disk = MemoryStorage::new();
    let at = |name: &str| PathBuf::from("/").join(name);
    disk.write(&at("s.rot-9.jsonl"), ASK.as_bytes()).unwrap();
    disk.write(&at("s.rot-100.jsonl"), lines(&[ASK, RESULT]).as_bytes())
        .unwrap();
    disk.write(&at("s.jsonl.tmp-999"), b"garbage").unwrap();
    let load = || Transcript::load_from_place(at("s.jsonl"), Arc::new(disk.clone()));
    let copy = load().unwrap();
    assert_eq!(copy.messages().len(), 2);
    assert_eq!(copy.session_id().as_str(), "s");
    disk.write(&at("s.jsonl"), lines(&[ASK, CALL, RESULT]).as_bytes())
        .unwrap();
    assert_eq!(load().unwrap().messages().len(), 3);
    let missing = Transcript::load_from_place(at("t.jsonl"), Arc::new(disk.clone()));
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
}

// A9
#[test]
fn the_older_form_loads() {
    let talk = load("old.json", OBJECT);
    assert_eq!(talk.messages(), [Message::user_text("hello")]);
    assert_eq!(talk.session_id().as_str(), "old");
    assert_eq!(load("e", r#"{"messages":[],"version":1}"#).messages(), []);
    let parsed: Transcript = serde_json::from_str(OBJECT).unwrap();
    assert_eq!(parsed.messages(), talk.messages());
    let again: Transcript = serde_json::from_str(OBJECT).unwrap();
    assert_eq!(again, parsed);
}

// F8
#[test]
fn one_odd_thing_costs_at_most_its_line() {
    let odd = [
        "{\"type\":\"hologram\"}".to_owned(),
        ASK.replace("fix", r"\ud83d\ude00"),
        ASK.replace("fix", r"\ud83d"),
        CALL.replace("\"input_tokens\":10", "\"input_tokens\":99999999999999999999"),
        CALL.replace(
            r#"{"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"input_tokens":10,"output_tokens":4}"#,
            "null",
        ),
        ASK.replace("{\"text\"", &format!("{}{},{{\"text\"", "[".repeat(5000), "]".repeat(5000))),
    ];
    for line in odd {
        let talk = load("s", lines(&[META, ASK, &line, RESULT]));
        let is_reported = line.contains("hologram") || line.contains("9999");
        assert_eq!(talk.skipped().count(), u64::from(is_reported), "{line}");
        let expected = 2 + usize::from(line.contains("message"));
        assert_eq!(talk.messages().len(), expected, "{line}");
    }
    let mut bytes = lines(&[META, ASK, "?", RESULT]).into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[at] = 0xff;
    let talk = load("s", bytes);
    assert_eq!(talk.messages().len(), 2);
    assert_eq!(talk.skipped().count(), 1);
    let damage = &talk.skipped().first()[0];
    assert_eq!((damage.line, damage.byte), (Some(3), at as u64));
    assert_eq!(damage.reason, Reason::NotUtf8(0));
}

// F1
#[test]
fn a_torn_last_line_costs_itself() {
    let whole = lines(&[META, ASK, RESULT]);
    for cut in 1..RESULT.len() {
        let talk = load("s", &whole[..whole.len() - 1 - cut]);
        assert_eq!(talk.messages().len(), 1);
        assert_eq!(talk.skipped().first()[0].reason, Reason::Unfinished);
    }
}

// A14
#[test]
fn a_file_that_is_not_a_session_is_refused_with_file_line_and_reason() {
    let error = tried("notes.txt", "\nhello\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.path(), Some(Path::new("/notes.txt")));
    assert_eq!(error.line(), Some(2));
    assert!(matches!(error.reason(), Some(Reason::Syntax(_))));
    assert!(tried("empty", "").is_err());
}

// A10
#[test]
fn what_version_1_wrote_is_written_back_byte_for_byte() {
    let plain = [ASK, RESULT];
    let meta = META
        .replace("\"model\":\"m\",", "")
        .replace(",\"workspace_root\":\"/home/u/proj\"", "");
    let text = lines(&[&meta, COMPACTION, plain[0], plain[1]]);
    let (written, losses) = export(&load("s", &text));
    assert_eq!(written, text);
    assert!(losses.is_empty());
}

// A10
#[test]
fn what_version_1_cannot_hold_becomes_text_or_is_dropped_and_is_listed() {
    let mut talk = Transcript::new();
    let other = |json: &str| Block::Other(Json::new(json).unwrap());
    let input = Json::new(r#"{"n":1.5,"e":"😀"}"#).unwrap();
    let call = ToolUse::new("t1", "bash", &input).unwrap();
    let big = Usage::new(1 << 40, 1).reasoning(1);
    let mut answer = ToolResult::ok("x");
    answer.tool_use_id = "t1".into();
    answer.output = Json::new(r#"[{"type":"text"}]"#).unwrap();
    let messages = [
        Message::assistant([
            Block::thinking("hm"),
            Block::text("a\u{1}\"\\\n😀"),
            call.into(),
        ])
        .usage(big),
        Message::tool_result(answer),
        Message::new(
            Role::Other("developer".to_owned()),
            [
                Block::image("image/png", "AAAA").unwrap(),
                other(r#"{"type":"hologram"}"#),
            ],
        ),
        serde_json::from_str(r#"{"role":"user","blocks":[{"type":"text","text":"\ud83d"}],"x":1}"#)
            .unwrap(),
    ];
    for message in messages {
        talk.push(message).unwrap();
    }
    let (written, losses) = export(&talk);
    let read = strict::read(&written).unwrap();
    assert_eq!(read.id, talk.session_id().as_str());
    let roles: Vec<&str> = read
        .messages
        .iter()
        .map(|(role, _)| role.as_str())
        .collect();
    assert_eq!(roles, ["assistant", "tool", "system", "user"]);
    let expected = [
        vec![
            strict::Block::Text("a\u{1}\"\\\n😀".to_owned()),
            strict::Block::Use(
                "t1".to_owned(),
                "bash".to_owned(),
                r#"{"n":1.5,"e":"😀"}"#.to_owned(),
            ),
        ],
        vec![strict::Block::Result(
            "t1".to_owned(),
            "bash".to_owned(),
            r#"[{"type":"text"}]"#.to_owned(),
            false,
        )],
        vec![
            strict::Block::Text("[image image/png: 4 characters of Base64, dropped]".to_owned()),
            strict::Block::Text(r#"{"type":"hologram"}"#.to_owned()),
        ],
        vec![strict::Block::Text("\u{fffd}".to_owned())],
    ];
    for ((_, blocks), expected) in read.messages.iter().zip(expected) {
        assert_eq!(*blocks, expected);
    }
    assert!(written.contains("\"input_tokens\":4294967295,"));
    let mut found = kinds(&losses);
    found.sort();
    let all = [
        LossKind::Thinking,
        LossKind::Media,
        LossKind::UnknownBlock,
        LossKind::Output,
        LossKind::Role,
        LossKind::Number,
        LossKind::Fields,
        LossKind::LoneSurrogate,
    ];
    assert_eq!(found, all);
    let fields = losses.iter().find(|loss| loss.kind == LossKind::Fields);
    assert_eq!(fields.unwrap().first, [1, 4]);
    assert_eq!(
        fields.unwrap().to_string(),
        "fields that version 1 does not have were dropped in 2 messages (1, 4)"
    );
}

// A10, A11
#[test]
fn with_a_compaction_only_what_it_keeps_is_written_and_the_rest_is_listed() {
    let mut talk = Transcript::new();
    for n in 0..8 {
        talk.push_user_text(format!("{n}")).unwrap();
    }
    talk.record_compaction("so far", 7).unwrap();
    let (written, losses) = export(&talk);
    let read = strict::read(&written).unwrap();
    assert_eq!(read.summary.as_deref(), Some("so far"));
    assert_eq!(read.messages.len(), 1);
    let loss = losses.iter().next().unwrap();
    assert_eq!((loss.kind, loss.count), (LossKind::Summarised, 7));
    assert_eq!(loss.first, [1, 2, 3, 4, 5]);
    assert_eq!(
        loss.to_string(),
        "7 messages replaced by the summary (1, 2, 3, 4, 5, …)"
    );
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,12}",
        Just("\u{0}\u{1f}\"\\/\u{7f}\u{2028}😀\n".to_owned()),
        "[ -~]{0,12}",
    ]
}

fn json() -> impl Strategy<Value = Json> {
    prop_oneof![
        text().prop_map(|text| Json::from_value(&text).unwrap()),
        Just(Json::new(r#"{"a":[1.5e9,"\ud83d"]}"#).unwrap()),
        Just(Json::new(r#""\ud83d\ude00 \ud83d""#).unwrap()),
        Just(Json::new("null").unwrap()),
        Just(Json::new("-1.0").unwrap()),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        text().prop_map(Block::text),
        text().prop_map(|text| Block::signed_thinking(text, "sig")),
        (text(), text(), json()).prop_map(|(id, name, input)| {
            Block::from(ToolUse {
                id: id.into(),
                name: name.into(),
                input,
                extra: Default::default(),
            })
        }),
        (text(), proptest::option::of(text()), json(), any::<bool>()).prop_map(
            |(id, name, output, is_error)| {
                Block::from(ToolResult {
                    tool_use_id: id.into(),
                    tool_name: name.map(Into::into),
                    output,
                    is_error,
                    extra: Default::default(),
                })
            }
        ),
        (text(), json()).prop_map(|(media_type, data)| {
            Block::from(Media {
                kind: "image".to_owned(),
                media_type: media_type.into(),
                data,
                extra: Default::default(),
            })
        }),
        json().prop_map(Block::Other),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Role::System),
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Tool),
        text().prop_map(|name| Role::from(name.as_str())),
    ];
    let usage = (any::<u64>(), any::<u64>(), 0..9_u64)
        .prop_map(|(input, output, read)| Usage::new(input, output).cache_read(read));
    let blocks = proptest::collection::vec(block(), 0..4);
    (role, blocks, proptest::option::of(usage)).prop_map(|(role, blocks, usage)| {
        let message = Message::new(role, blocks);
        match usage {
            Some(usage) => message.usage(usage),
            None => message,
        }
    })
}

pub(crate) fn talk() -> impl Strategy<Value = Transcript> {
    let messages = proptest::collection::vec(message(), 0..6);
    let compactions = proptest::collection::vec((0..7_usize, text(), 0..9_u64), 0..3);
    (messages, compactions, any::<bool>(), text()).prop_map(
        |(messages, compactions, fork, name)| {
            let mut talk = Transcript::new();
            let count = messages.len();
            let mut messages = messages.into_iter();
            for n in 0..=count {
                for (_, summary, removed) in compactions.iter().filter(|(at, ..)| *at == n) {
                    talk.record_compaction(summary.as_str(), *removed).unwrap();
                }
                if let Some(message) = messages.next() {
                    talk.push(message).unwrap();
                }
            }
            if fork { talk.fork_as(&name) } else { talk }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // A10
    #[test]
    fn whatever_we_write_the_strict_reader_accepts(talk in talk()) {
        let (written, losses) = export(&talk);
        let read = strict::read(&written).map_err(TestCaseError::fail)?;
        prop_assert_eq!(read.messages.len(), talk.kept_messages().len());
        prop_assert_eq!(read.created_at_ms, talk.created_at_ms() as u64);
        prop_assert_eq!(read.updated_at_ms, talk.updated_at_ms() as u64);
        prop_assert_eq!(read.parent.is_some(), talk.fork_origin().is_some());
        prop_assert_eq!(read.summary.is_some(), talk.compaction().is_some());
        let left_out = losses.iter().find(|loss| loss.kind == LossKind::Summarised);
        let kept = talk.messages().len() - talk.kept_messages().len();
        prop_assert_eq!(left_out.map_or(0, |loss| loss.count), kept as u64);
        // Read and written again, nothing more is lost.
        let back = tried("back.jsonl", &written).unwrap();
        prop_assert!(back.skipped().is_empty());
        let (again, losses) = export(&back);
        prop_assert_eq!(again, written);
        prop_assert!(losses.is_empty());
    }

    // F8
    #[test]
    fn random_bytes_never_panic(
        at in 0..800_usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..9),
        object in any::<bool>(),
    ) {
        let text = if object { OBJECT.to_owned() } else { lines(&[META, ASK, CALL, RESULT]) };
        let mut content = text.into_bytes();
        let at = at.min(content.len());
        let end = (at + bytes.len()).min(content.len());
        content.splice(at..end, bytes);
        if let Ok(talk) = tried("s", content) {
            prop_assert!(talk.messages().len() <= 4);
        }
    }
}

fn samples() -> Option<Vec<PathBuf>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/claw-code");
    #[expect(clippy::disallowed_methods, reason = "a test looks for its samples")]
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!(
            "SKIPPED: needs the samples; there are none in {}",
            dir.display()
        );
        return None;
    };
    Some(entries.map(|entry| entry.unwrap().path()).collect())
}

// A9, A10
#[test]
fn real_files_load_and_are_written_again_without_a_loss() {
    let Some(samples) = samples() else {
        return;
    };
    assert!(samples.len() > 10);
    for path in samples {
        let talk = Transcript::load_from_path(&path).unwrap();
        assert!(talk.skipped().is_empty(), "{}", path.display());
        assert!(talk.created_at_ms() > 1_700_000_000_000);
        assert_eq!(talk.messages().len(), count_messages(&path));
        let (written, losses) = export(&talk);
        assert!(losses.is_empty());
        let read = strict::read(&written).unwrap();
        assert_eq!(read.messages.len(), talk.messages().len());
        let back = load("back.jsonl", written);
        assert_eq!(back, talk);
    }
}

/// Counts the messages of a single-object file with the strict parser.
fn count_messages(path: &Path) -> usize {
    #[expect(clippy::disallowed_methods, reason = "a test reads its samples")]
    let text = std::fs::read_to_string(path).unwrap();
    match strict::parse(&text) {
        Ok(strict::Value::Object(fields)) => match &fields["messages"] {
            strict::Value::Array(messages) => messages.len(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}
