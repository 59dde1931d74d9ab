use backtrail::{Block, Transcript};
use proptest::prelude::*;

use super::*;
use crate::collector::EventCollector;
use crate::testing::{check, read};

const PATH: &str = "/p/.claw/sessions/session-1794726326112-1.jsonl";

const META: &str = r#"{"created_at_ms":1794726326111,"fork":{"branch_name":"two","parent_session_id":"session-1-0"},"model":"m-1","session_id":"session-9-9","type":"session_meta","updated_at_ms":1794726326113,"version":1,"workspace_root":"/home/me/shop"}"#;
const ASK: &str =
    r#"{"message":{"blocks":[{"text":"look","type":"text"}],"role":"user"},"type":"message"}"#;
const CALL: &str = r#"{"message":{"blocks":[{"thinking":"hm","type":"thinking"},{"id":"t","input":"echo hi","name":"bash","type":"tool_use"}],"role":"assistant","usage":{"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"input_tokens":3,"output_tokens":4}},"type":"message"}"#;
const RESULT: &str = r#"{"message":{"blocks":[{"is_error":false,"output":"hi","tool_name":"bash","tool_use_id":"t","type":"tool_result"}],"role":"tool"},"type":"message"}"#;
const SUMMARY: &str =
    r#"{"count":1,"removed_message_count":4,"summary":"so far","type":"compaction"}"#;
const PROMPT: &str = r#"{"text":"look","timestamp_ms":1794726326112,"type":"prompt_history"}"#;

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn keys(collected: &EventCollector) -> Vec<String> {
    collected
        .main()
        .unwrap()
        .events
        .iter()
        .map(|event| event.key().to_owned())
        .collect()
}

#[test]
fn a8_lines_are_read_wherever_the_meta_line_is() {
    let other = META.replace("session-9-9", "session-8-8");
    let text = lines(&[
        &other,
        SUMMARY,
        ASK,
        "",
        CALL,
        PROMPT,
        RESULT,
        META,
        r#"{"type":"what"}"#,
    ]);
    let (report, collected) = read(&ClawCode, PATH, text.as_bytes()).unwrap();
    assert_eq!(collected.session, "session-9-9");
    assert_eq!(report.unknown.get("what"), Some(&1));
    assert_eq!(report.damage.count, 0);
    let main = collected.main().unwrap();
    let parent = Origin::Copy {
        session: "session-1-0".to_owned(),
    };
    assert_eq!(main.thread.origin, parent);
    assert_eq!(
        main.details.directory.as_deref(),
        Some("/home/me/shop".as_ref())
    );
    assert_eq!(main.details.model.as_deref(), Some("m-1"));
    assert!(matches!(&main.events[0], Event::Summary(s) if s.summary == "so far" && s.keep == 0));
    let said: Vec<_> = collected.messages().collect();
    assert_eq!(said.len(), 3);
    assert_eq!(said[1].message.usage.as_ref().unwrap().total(), 10);
    assert_eq!(said[1].model.as_deref(), Some("m-1"));
    // Tool input is any text in a JSON string, and stays that.
    assert!(
        matches!(&said[1].message.blocks[1], Block::ToolUse(call) if call.input.as_str() == "\"echo hi\"")
    );
}

#[test]
fn a9_one_object_is_read_and_keeps_its_keys_when_it_is_rewritten_as_lines() {
    let message = |line: &str| line[11..line.len() - 18].to_owned();
    let object = format!(
        r#"{{"messages":[{},{}],"version":1}}"#,
        message(ASK),
        message(CALL)
    );
    let path = "/p/.claude/sessions/session-1774998936453.json";
    let (report, one) = read(&ClawCode, path, object.as_bytes()).unwrap();
    assert_eq!(one.session, "session-1774998936453");
    assert_eq!(report.state, None);
    let (_, grown) = read(&ClawCode, PATH, lines(&[ASK, CALL, RESULT]).as_bytes()).unwrap();
    assert!(keys(&grown).starts_with(&keys(&one)));
    let spaced = object.replace("\":", "\" : ").replace(",\"", ",\n\"");
    let (_, spaced) = read(&ClawCode, path, spaced.as_bytes()).unwrap();
    assert_eq!(keys(&spaced), keys(&one));
    // Lines that were appended to such a file are read too.
    let both = format!("{object}\n{RESULT}\n");
    let (_, both) = read(&ClawCode, path, both.as_bytes()).unwrap();
    assert_eq!(keys(&both), keys(&grown));
}

#[test]
fn the_engines_reader_of_version_1_agrees() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "session-1.jsonl",
            lines(&[META, ASK, CALL, "{torn", RESULT, SUMMARY]),
        ),
        ("session-2.jsonl", lines(&[ASK, "\0\0\0", CALL])),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, &text).unwrap();
        let engine = Transcript::load_from_path(&path).unwrap();
        let (_, ours) = read(&ClawCode, &path.to_string_lossy(), text.as_bytes()).unwrap();
        let ours: Vec<_> = ours.messages().map(|said| said.message.clone()).collect();
        assert_eq!(engine.messages(), ours);
    }
}

#[test]
fn a_copy_of_a_response_counts_once() {
    let response = |text: &str| {
        let (_, collected) = read(&ClawCode, PATH, text.as_bytes()).unwrap();
        collected
            .messages()
            .find_map(|said| said.response_id.clone())
            .unwrap()
    };
    let original = lines(&[&META.replace("session-9-9", "session-1-0"), ASK, CALL]);
    assert_eq!(
        response(&original),
        response(&lines(&[META, ASK, CALL, RESULT]))
    );
    assert_ne!(
        response(&original),
        response(&lines(&[META, ASK, RESULT, CALL]))
    );
}

#[test]
fn older_copies_are_sessions_only_where_the_file_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let make = |name: &str| std::fs::write(path(name), "").unwrap();
    let is = |name: &str| ClawCode.is_session_file(&path(name));
    make("s.rot-100.jsonl");
    make("s.rot-99.jsonl");
    assert!(is("s.jsonl") && is("s.json") && !is("s.tmp-1.jsonl") && !is("s.txt"));
    assert!(is("s.rot-100.jsonl") && !is("s.rot-99.jsonl"));
    make("s.jsonl");
    assert!(!is("s.rot-100.jsonl"));
    let source = Source::from_bytes(path("s.rot-100.jsonl"), "");
    assert_eq!(name_of(&source), "s");
}

#[test]
fn files_of_others_are_not_recognised() {
    let is = |text: &str| ClawCode.recognises(&Source::from_bytes("/x", text));
    assert!(is(META) && is(ASK) && is(r#"{"messages":[],"version":1}"#));
    assert!(!is(
        r#"{"type":"session_meta","version":2,"session_id":"a","seq":0}"#
    ));
    assert!(!is(
        r#"{"type":"session_meta","timestamp":"t","payload":{"id":"a"}}"#
    ));
    assert!(!is(
        r#"{"type":"message","id":"a","message":{"role":"user","content":"x"}}"#
    ));
    assert!(!is(r#"{"sessionId":"x","messages":[{"blocks":1}]}"#));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn resuming_equals_reading_from_the_beginning(
        records in prop::collection::vec(0usize..10, 0..12),
        cuts in prop::collection::vec(0usize..4_000, 8),
    ) {
        let all = [META, ASK, CALL, RESULT, SUMMARY, PROMPT, "{torn", "\0\0", "", r#"{"type":"x"}"#];
        let text: Vec<&str> = records.iter().map(|n| all[*n]).collect();
        let text = lines(&text);
        for cut in cuts {
            check(&ClawCode, PATH, text.as_bytes(), cut % (text.len() + 1));
        }
    }
}

#[test]
fn backtrails_own_files_are_not_recognised() {
    let said = r#""messages":[{"role":"user","blocks":[{"type":"text","text":"hi"}]}]"#;
    let is_known = |text: String| ClawCode.recognises(&Source::from_bytes("s.json", text));
    assert!(is_known(format!(r#"{{"version" : 1,{said}}}"#)));
    assert!(is_known(format!(r#"{{{said},"version":1}}"#)));
    assert!(!is_known(format!(
        r#"{{"version":2,"session_id":"x",{said}}}"#
    )));
    assert!(!is_known(format!(r#"{{"version":12,{said}}}"#)));
}
