//! The events of files of Claude Code.

use std::path::PathBuf;

use backtrail::{Block, Role};

use super::ClaudeCode;
use crate::collector::EventCollector;
use crate::environment::Environment;
use crate::event::{Event, ForkPoint, Origin, ReadReport, ThreadId};
use crate::format::Format;
use crate::source::Source;
use crate::testing::resume;

/// The name of the file that the tests read.
const FILE: &str = "/p/0b1c2d3e-0000-4000-8000-000000000001.jsonl";

fn read(text: &str) -> (EventCollector, ReadReport) {
    read_as(FILE, text)
}

fn read_as(path: &str, text: &str) -> (EventCollector, ReadReport) {
    let source = Source::from_bytes(path, text);
    let mut collected = EventCollector::default();
    let report = collected.read(ClaudeCode.open(&source).unwrap()).unwrap();
    (collected, report)
}

/// A line of the user's.
pub(super) fn user(uuid: &str, parent: Option<&str>, text: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/w","sessionId":"s","type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"{uuid}","timestamp":"2026-01-02T03:04:05.000Z"}}
"#
    )
}

/// A line of a response with one block.
fn assistant(uuid: &str, parent: &str, response: &str, block: &str) -> String {
    format!(
        r#"{{"parentUuid":"{parent}","isSidechain":false,"sessionId":"s","type":"assistant","message":{{"id":"{response}","role":"assistant","model":"claude-x","content":[{block}],"usage":{{"input_tokens":3,"output_tokens":5,"cache_creation_input_tokens":7,"cache_read_input_tokens":11,"cache_creation":{{"ephemeral_1h_input_tokens":2}},"output_tokens_details":{{"thinking_tokens":4}}}}}},"uuid":"{uuid}","timestamp":"2026-01-02T03:04:06.000Z"}}
"#
    )
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"n":1.0}}}}"#)
}

fn result(uuid: &str, parent: &str, id: &str) -> String {
    format!(
        r#"{{"parentUuid":"{parent}","isSidechain":false,"sessionId":"s","type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"done"}}]}},"uuid":"{uuid}","sourceToolAssistantUUID":"{parent}"}}
"#
    )
}

fn keys(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::key).collect()
}

fn main_keys(collected: &EventCollector) -> Vec<&str> {
    keys(&collected.main().unwrap().events)
}

const TEXT: &str = r#"{"type":"text","text":"hello"}"#;

#[test]
fn results_of_parallel_calls_stay_on_the_main_line() {
    let text = [
        user("u1", None, "go"),
        assistant("a1", "u1", "r1", &call("t1")),
        assistant("a2", "a1", "r1", &call("t2")),
        result("x1", "a1", "t1"),
        result("x2", "a2", "t2"),
        // The response continues the other branch.
        assistant("a3", "x1", "r2", TEXT),
    ]
    .concat();
    let (collected, _) = read(&text);
    assert_eq!(main_keys(&collected), ["u1", "a1", "a2", "x1", "x2", "a3"]);
    assert_eq!(collected.threads.len(), 1);
    let answer = collected.messages().nth(4).unwrap();
    assert_eq!(answer.message.role, Role::Tool);
    let Block::ToolResult(result) = &answer.message.blocks[0] else {
        panic!("{answer:?}");
    };
    assert_eq!(result.tool_name.as_deref(), Some("Bash"));
    assert_eq!(result.output.as_str(), "\"done\"");
}

#[test]
fn old_progress_between_a_call_and_its_result_loses_nothing() {
    let progress = r#"{"parentUuid":"a1","isSidechain":false,"sessionId":"s","type":"progress","data":{"type":"hook_progress"},"uuid":"p1"}
"#;
    let text = [
        user("u1", None, "go"),
        assistant("a1", "u1", "r1", &call("t1")),
        progress.to_owned(),
        result("x1", "a1", "t1"),
        assistant("a2", "p1", "r2", TEXT),
    ]
    .concat();
    let (collected, report) = read(&text);
    assert_eq!(main_keys(&collected), ["u1", "a1", "x1", "a2"]);
    assert_eq!(collected.threads.len(), 1);
    assert!(report.unknown.is_empty());
}

#[test]
fn an_abandoned_path_is_a_branch() {
    let text = [
        user("u1", None, "go"),
        assistant("a1", "u1", "r1", TEXT),
        user("u2", Some("a1"), "left"),
        assistant("a2", "u2", "r2", TEXT),
        user("u3", Some("a1"), "taken"),
        assistant("a3", "u3", "r3", TEXT),
        // Another way within the first one.
        user("u4", Some("u2"), "left too"),
        user("u5", Some("a3"), "last"),
    ]
    .concat();
    let (collected, _) = read(&text);
    assert_eq!(main_keys(&collected), ["u1", "a1", "u3", "a3", "u5"]);
    let branches = &collected.threads[1..];
    assert_eq!(branches.len(), 2);
    assert_eq!(branches[0].thread.id, ThreadId::Branch("u2".to_owned()));
    assert_eq!(keys(&branches[0].events), ["u2", "a2"]);
    let after_a1 = Origin::Continues {
        session: None,
        point: ForkPoint::After("a1".to_owned()),
    };
    assert_eq!(branches[0].thread.origin, after_a1);
    assert_eq!(branches[1].thread.id, ThreadId::Branch("u4".to_owned()));
    assert_eq!(keys(&branches[1].events), ["u2", "u4"]);
    assert_eq!(branches[1].thread.origin, after_a1);
}

#[test]
fn an_interruption_is_a_message_of_the_agent_and_no_prompt() {
    let text = [
        user("u1", None, "go"),
        assistant("a1", "u1", "r1", TEXT),
        user("u2", Some("a1"), "[Request interrupted by user]"),
        user(
            "u3",
            Some("u2"),
            "[Request interrupted by user for tool use]",
        ),
        user("u4", Some("u3"), "[Request interrupted by user], why?"),
    ]
    .concat();
    let (collected, _) = read(&text);
    assert_eq!(main_keys(&collected), ["u1", "a1", "u2", "u3", "u4"]);
    let prompts = collected
        .messages()
        .filter(|event| event.message.is_prompt());
    let prompts: Vec<&str> = prompts.map(|event| event.key.as_str()).collect();
    assert_eq!(prompts, ["u1", "u4"]);
}

#[test]
fn a_branch_from_the_beginning_shares_nothing() {
    let text = [
        user("u1", None, "first"),
        assistant("a1", "u1", "r1", TEXT),
        user("u2", None, "second"),
    ]
    .concat();
    let (collected, _) = read(&text);
    assert_eq!(main_keys(&collected), ["u2"]);
    assert_eq!(keys(&collected.threads[1].events), ["u1", "a1"]);
    let origin = Origin::Continues {
        session: None,
        point: ForkPoint::Start,
    };
    assert_eq!(collected.threads[1].thread.origin, origin);
}

#[test]
fn a_hook_at_the_beginning_of_a_resumed_session_cuts_nothing_off() {
    let hook = r#"{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"attachment","attachment":{"type":"hook_success"},"uuid":"h1"}
"#;
    let text = [
        user("u1", None, "first"),
        assistant("a1", "u1", "r1", TEXT),
        hook.to_owned(),
        user("u2", Some("h1"), "second"),
        // Its parent is not in the file.
        user("u3", Some("elsewhere"), "third"),
    ]
    .concat();
    let (collected, _) = read(&text);
    assert_eq!(main_keys(&collected), ["u1", "a1", "u2", "u3"]);
    assert_eq!(collected.threads.len(), 1);
}

#[test]
fn a_compact_boundary_keeps_earlier_messages() {
    let boundary = r#"{"parentUuid":null,"logicalParentUuid":"a1","isSidechain":false,"type":"system","subtype":"compact_boundary","uuid":"b","compactMetadata":{"preservedSegment":{"headUuid":"u1","tailUuid":"a1"}}}
{"parentUuid":"b","isSidechain":false,"type":"user","isCompactSummary":true,"message":{"role":"user","content":"So far."},"uuid":"c"}
"#;
    let text = [
        user("u0", None, "go"),
        user("u1", Some("u0"), "on"),
        assistant("a1", "u1", "r1", TEXT),
        boundary.to_owned(),
        user("u2", Some("c"), "further"),
    ]
    .concat();
    let (collected, _) = read(&text);
    assert_eq!(main_keys(&collected), ["u0", "u1", "a1", "c", "u2"]);
    assert_eq!(collected.threads.len(), 1);
    let Event::Summary(summary) = &collected.threads[0].events[3] else {
        panic!("no summary");
    };
    assert_eq!((summary.summary.as_str(), summary.keep), ("So far.", 2));
    // If it continues after the preserved messages, the summary is on the main line too.
    let (collected, _) = read(&text.replace(r#""parentUuid":"c""#, r#""parentUuid":"a1""#));
    assert_eq!(main_keys(&collected), ["u0", "u1", "a1", "c", "u2"]);
    assert_eq!(collected.threads.len(), 1);
}

#[test]
fn a_response_on_several_lines_is_one_call() {
    let text = [
        user("u1", None, "go"),
        assistant(
            "a1",
            "u1",
            "r1",
            r#"{"type":"thinking","thinking":"","signature":"c2ln"}"#,
        ),
        assistant("a2", "a1", "r1", TEXT),
    ]
    .concat();
    let (collected, _) = read(&text);
    let said: Vec<_> = collected.messages().skip(1).collect();
    assert!(
        said.iter()
            .all(|said| said.response_id.as_deref() == Some("r1"))
    );
    let usage = said[1].message.usage.clone().unwrap();
    assert_eq!(usage.total(), 26);
    assert_eq!(usage.cache_creation_1h_input_tokens, Some(2));
    assert_eq!(usage.reasoning_output_tokens, Some(4));
    let Block::Thinking(thought) = &said[0].message.blocks[0] else {
        panic!("no thought");
    };
    assert_eq!(thought.signature.as_deref(), Some("c2ln"));
    let details = &collected.main().unwrap().details;
    assert_eq!(details.model.as_deref(), Some("claude-x"));
    assert_eq!(details.directory.as_deref(), Some("/w".as_ref()));
    assert!(details.started_at.is_some());
}

#[test]
fn a_message_that_no_model_wrote_has_no_usage() {
    let text = assistant("a1", "u0", "r1", TEXT).replace("claude-x", "<synthetic>");
    let (collected, _) = read(&text);
    let said = collected.messages().next().unwrap();
    assert!(said.model.is_none() && said.message.usage.is_none() && said.response_id.is_none());
}

#[test]
fn a_summary_is_a_title_if_its_last_message_is_here() {
    let title = |lines: &[&str]| {
        let (collected, report) = read(&lines.concat());
        assert!(report.unknown.is_empty());
        collected.main().unwrap().details.title.clone()
    };
    let prompt = user("u1", None, "go");
    let summary = |leaf: &str| {
        format!("{{\"type\":\"summary\",\"summary\":\"of {leaf}\",\"leafUuid\":\"{leaf}\"}}\n")
    };
    let (own, other) = (summary("u1"), summary("x"));
    assert_eq!(title(&[&other, &prompt]), None);
    assert_eq!(title(&[&own, &prompt]).as_deref(), Some("of u1"));
    assert_eq!(title(&[&prompt, &own, &other]).as_deref(), Some("of u1"));
}

#[test]
fn a_title_by_the_user_wins() {
    let text = r#"{"type":"summary","summary":"one"}
{"type":"custom-title","customTitle":"mine","sessionId":"s"}
{"type":"ai-title","aiTitle":"two","sessionId":"s"}
"#;
    let (collected, report) = read(text);
    let details = &collected.main().unwrap().details;
    assert_eq!(details.title.as_deref(), Some("mine"));
    assert!(report.unknown.is_empty());
}

#[test]
fn a_sidechain_is_the_session_of_the_call_that_started_it() {
    let task = r#"{"type":"tool_use","id":"t9","name":"Task","input":{"prompt":"look there"}}"#;
    let side = |line: String| line.replace(r#""isSidechain":false"#, r#""isSidechain":true"#);
    let text = [
        user("u1", None, "go"),
        assistant("a1", "u1", "r1", task),
        side(user("s1", None, "look there")),
        side(assistant("s2", "s1", "r8", TEXT)),
        result("x1", "a1", "t9"),
    ]
    .concat();
    let (collected, _) = read(&text);
    assert_eq!(main_keys(&collected), ["u1", "a1", "x1"]);
    let agent = &collected.threads[1];
    assert_eq!(agent.thread.id, ThreadId::SubAgent("s1".to_owned()));
    let origin = Origin::Spawned {
        session: None,
        tool_use_id: Some("t9".to_owned()),
    };
    assert_eq!(agent.thread.origin, origin);
    assert_eq!(keys(&agent.events), ["s1", "s2"]);
}

#[test]
fn progress_contains_each_message_of_a_sub_agent_once() {
    let said = |uuid: &str, kind: &str| {
        format!(
            r#"{{"type":"{kind}","message":{{"id":"m-{uuid}","role":"{kind}","model":"claude-y","content":"hi","usage":{{"input_tokens":1,"output_tokens":1}}}},"uuid":"{uuid}","timestamp":"2026-01-02T03:04:07.000Z"}}"#
        )
    };
    let progress = |uuid: &str, parent: &str, last: &str, all: &[String]| {
        format!(
            r#"{{"parentUuid":"{parent}","isSidechain":false,"cwd":"/w","sessionId":"s","type":"progress","data":{{"message":{last},"normalizedMessages":[{}],"type":"agent_progress","prompt":"p","agentId":"ag"}},"parentToolUseID":"t1","uuid":"{uuid}"}}
"#,
            all.join(",")
        )
    };
    let (one, two, three) = (
        said("n1", "user"),
        said("n2", "assistant"),
        said("n3", "assistant"),
    );
    let text = [
        user("u1", None, "go"),
        assistant("a1", "u1", "r1", &call("t1")),
        progress("p1", "a1", &one, std::slice::from_ref(&one)),
        progress("p2", "p1", &three, &[one.clone(), two, three.clone()]),
        result("x1", "a1", "t1"),
    ]
    .concat();
    let (collected, _) = read(&text);
    let agent = &collected.threads[1];
    assert_eq!(agent.thread.id, ThreadId::SubAgent("ag".to_owned()));
    assert_eq!(keys(&agent.events), ["n1", "n2", "n3"]);
    assert_eq!(agent.details.model.as_deref(), Some("claude-y"));
    assert_eq!(main_keys(&collected), ["u1", "a1", "x1"]);
}

#[test]
fn a_queued_prompt_is_a_prompt() {
    let queued = r#"{"parentUuid":"u1","isSidechain":false,"type":"attachment","attachment":{"type":"queued_command","prompt":"and this","commandMode":"prompt"},"uuid":"q1"}
"#;
    let text = [user("u1", None, "go"), queued.to_owned()].concat();
    let (collected, _) = read(&text);
    let said = collected.messages().nth(1).unwrap();
    assert!(said.message.is_prompt());
    assert_eq!(said.message.text(), "and this");
}

#[test]
fn messages_of_the_agent_in_the_users_name_are_not_prompts() {
    let text = [
        user(
            "u1",
            None,
            "<local-command-caveat>Caveat</local-command-caveat>",
        ),
        user("u2", Some("u1"), "<command-name>/model</command-name>"),
        user(
            "u3",
            Some("u2"),
            "<local-command-stdout>set</local-command-stdout>",
        ),
        user("u4", Some("u3"), "hi").replace(r#""cwd""#, r#""isMeta":true,"cwd""#),
    ]
    .concat();
    let (collected, _) = read(&text);
    let prompts: Vec<_> = collected
        .messages()
        .map(|said| said.message.is_prompt())
        .collect();
    assert_eq!(prompts, [false, true, false, false]);
}

#[test]
fn images_are_media_and_unknown_blocks_keep_their_bytes() {
    let content = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}},{"type":"hologram","n":1e2}"#;
    let (collected, _) = read(&assistant("a1", "u0", "r1", content));
    let blocks = &collected.messages().next().unwrap().message.blocks;
    let Block::Media(image) = &blocks[0] else {
        panic!("{blocks:?}");
    };
    assert_eq!(
        (image.media_type.as_str(), image.data.as_str()),
        ("image/png", "\"iVBO\"")
    );
    let Block::Other(other) = &blocks[1] else {
        panic!("{blocks:?}");
    };
    assert_eq!(other.as_str(), r#"{"type":"hologram","n":1e2}"#);
}

#[test]
fn sub_agents_have_files_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let parent = "0b1c2d3e-0000-4000-8000-000000000001";
    let agents = directory.path().join(parent).join("subagents/deep");
    std::fs::create_dir_all(&agents).unwrap();
    let line = user("s1", None, "look").replace("\"isSidechain\":false", "\"isSidechain\":true");
    std::fs::write(agents.join("agent-ag.jsonl"), &line).unwrap();
    let meta = r#"{"agentType":"explorer","toolUseId":"t1","description":"Look"}"#;
    std::fs::write(agents.join("agent-ag.meta.json"), meta).unwrap();
    let source = Source::open(&agents.join("agent-ag.jsonl")).unwrap();
    let mut collected = EventCollector::default();
    collected.read(ClaudeCode.open(&source).unwrap()).unwrap();
    assert_eq!(collected.session, format!("{parent}/agent/ag"));
    let origin = Origin::Spawned {
        session: Some(parent.to_owned()),
        tool_use_id: Some("t1".to_owned()),
    };
    let main = collected.main().unwrap();
    assert_eq!(main.thread.origin, origin);
    assert_eq!(keys(&main.events), ["s1"]);
    assert_eq!(
        main.details.tags.as_deref(),
        Some(&["explorer".to_owned()][..])
    );
    // Older ones are beside the sessions, and their lines name the caller's.
    let (collected, _) = read_as("/p/agent-old.jsonl", &line);
    assert_eq!(collected.session, "s/agent/old");
}

#[test]
fn sessions_are_distinguished_from_the_files_beside_them() {
    let is_session = |path: &str| ClaudeCode.is_session_file(path.as_ref());
    assert!(is_session("/h/.claude/projects/-w/0b1c.jsonl"));
    assert!(is_session(
        "/h/.claude/projects/-w/0b1c/subagents/x/agent-1.jsonl"
    ));
    assert!(!is_session(
        "/h/.claude/projects/-w/0b1c/subagents/x/journal.jsonl"
    ));
    assert!(!is_session(
        "/h/.claude/projects/-w/0b1c/tool-results/t1.jsonl"
    ));
    assert!(!is_session("/h/.claude/projects/-w/sessions-index.json"));
    let places = |environment: Environment| ClaudeCode.directories(&environment);
    let home = Environment::new("/h");
    let usual = ["/h/.claude/projects", "/h/.config/claude/projects"];
    assert_eq!(places(home.clone()), usual.map(PathBuf::from));
    let set = home.with("CLAUDE_CONFIG_DIR", "/a, /b,");
    assert_eq!(
        places(set),
        ["/a/projects", "/b/projects"].map(PathBuf::from)
    );
}

#[test]
fn a_copy_names_what_it_was_copied_from() {
    let text = user("u1", None, "go").replace(
        r#""cwd""#,
        r#""forkedFrom":{"sessionId":"other","messageUuid":"m"},"cwd""#,
    );
    let (collected, _) = read(&text);
    let origin = Origin::Copy {
        session: "other".to_owned(),
    };
    assert_eq!(collected.main().unwrap().thread.origin, origin);
}

#[test]
fn an_output_in_a_file_is_read_in_full() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory
        .path()
        .join("0b1c2d3e-0000-4000-8000-000000000001.jsonl");
    let outputs = file.with_extension("").join("tool-results");
    std::fs::create_dir_all(&outputs).unwrap();
    std::fs::write(outputs.join("t1.txt"), b"all of it \xff").unwrap();
    let said = r"<persisted-output>\nFull output saved to: /h/tool-results/t1.txt\n\nPreview";
    let line = result("x1", "a1", "t1").replace("done", said);
    std::fs::write(&file, line).unwrap();
    let mut collected = EventCollector::default();
    let source = Source::open(&file).unwrap();
    collected.read(ClaudeCode.open(&source).unwrap()).unwrap();
    let Block::ToolResult(result) = &collected.messages().next().unwrap().message.blocks[0] else {
        panic!("no result");
    };
    let full = result.extra.get("full_output").unwrap();
    assert_eq!(full.as_str(), "\"all of it \u{fffd}\"");
}

#[test]
fn sessions_are_named_by_their_file_then_by_their_lines() {
    let line = user("u1", None, "go");
    assert_eq!(
        read(&line).0.session,
        "0b1c2d3e-0000-4000-8000-000000000001"
    );
    assert_eq!(read_as("/p/copy.jsonl", &line).0.session, "s");
    let nameless = line.replace("sessionId", "other");
    let name = read_as("/p/copy.jsonl", &nameless).0.session;
    assert!(name.starts_with("unnamed-"), "{name}");
    assert_eq!(
        name,
        read_as("/p/copy2.jsonl", &(nameless + "{}\n")).0.session
    );
}

#[test]
fn a_repeated_line_is_one_event_and_another_with_its_uuid_is_a_second() {
    let text = [
        user("u1", None, "go"),
        user("u2", Some("u1"), "on"),
        user("u2", Some("u1"), "on"),
        user("u2", Some("u1"), "something else"),
    ]
    .concat();
    let (collected, _) = read(&text);
    let mut all: Vec<&str> = collected
        .threads
        .iter()
        .flat_map(|thread| keys(&thread.events))
        .collect();
    all.sort_unstable();
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all[2].starts_with("u2~"), "{all:?}");
}

#[test]
fn exports_and_single_objects_are_read() {
    let web = r#"{"loglines":[
      {"type":"user","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"a"}},
      {"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"b"}]}}
    ]}"#;
    let (collected, report) = read(web);
    assert_eq!(collected.messages().count(), 2);
    assert_eq!((report.read_to, report.state), (web.len() as u64, None));
    let pretty = "{\n \"type\": \"user\",\n \"uuid\": \"u1\",\n \"message\": {\"role\": \"user\",\n \"content\": \"a\"}\n}";
    let (collected, report) = read(pretty);
    assert_eq!(main_keys(&collected), ["u1"]);
    assert!(report.state.is_none() && report.damage.count == 0);
}

#[test]
fn damaged_and_unknown_lines_are_counted() {
    let text = [
        "{\"type\":\"user\",\"message\":\n".to_owned(),
        user("u1", None, "go"),
        "{\"type\":\"user\",\"message\":\"text\",\"uuid\":\"x\"}\n".to_owned(),
        "{\"type\":\"telepathy\"}\n".to_owned(),
        "\0\0\0\n".to_owned(),
        user("u2", Some("u1"), r"lone \ud83d"),
        "{\"type\":\"us".to_owned(),
    ]
    .concat();
    let (collected, report) = read(&text);
    assert_eq!(main_keys(&collected), ["u1", "u2"]);
    assert_eq!(report.damage.count, 3);
    assert_eq!(report.unknown.get("telepathy"), Some(&1));
    assert!(report.unfinished);
}

#[test]
fn resuming_reads_only_what_was_appended() {
    let first = [
        user("u1", None, "go"),
        assistant("a1", "u1", "r1", &call("t1")),
    ]
    .concat();
    let (mut collected, earlier) = read(&first);
    let whole = first.clone() + &result("x1", "a1", "t1") + &assistant("a2", "x1", "r2", TEXT);
    // What was read must not be needed again.
    let blank = " ".repeat(first.len() - 1) + "\n";
    let source = Source::from_bytes(FILE, whole.replacen(&first, &blank, 1));
    let report = resume(&ClaudeCode, &source, &earlier, &mut collected);
    let report = report.unwrap().unwrap();
    let (expected, expected_report) = read(&whole);
    assert_eq!(collected.threads, expected.threads);
    assert_eq!(report.lines, expected_report.lines);
    assert!(report.state.unwrap().as_str().len() < 4_000);
}
