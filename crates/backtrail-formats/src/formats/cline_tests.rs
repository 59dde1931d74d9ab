use std::fs;

use backtrail::{Block, Role, Text};

use super::content::{UserText, answer, text_has_failed, user_text};
use super::*;
use crate::collector::EventCollector;
use crate::event::{Event, Origin, ReadReport};
use crate::testing::read;

const SESSION: &str = "/home/me/.cline/data/sessions/1790000000000_abcde";

fn session(messages: &str) -> String {
    format!(
        r#"{{"version":1,"updated_at":"2026-09-21T10:00:00Z","agent":"lead","sessionId":"1790000000000_abcde","messages":[{messages}],"system_prompt":"Be brief."}}"#
    )
}

fn prompt(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","role":"user","content":[{{"type":"text","text":"{text}"}}],"ts":1790000001000}}"#
    )
}

const ANSWER: &str = r#"{"id":"a1","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Looking."},{"type":"tool_use","id":"c1","name":"run_commands","input":{"commands":["ls"]}},{"type":"tool_use","id":"c2","name":"editor","input":{"path":"a"}}],"ts":1790000002000,"modelInfo":{"id":"big","provider":"p"},"metrics":{"inputTokens":120,"outputTokens":7,"cacheReadTokens":90,"cacheWriteTokens":10,"cost":0.5}}"#;
const RESULTS: &str = r#"{"id":"r","role":"user","content":[{"type":"tool_result","tool_use_id":"c1","name":"run_commands","content":[{"query":"ls","result":"","error":"exit 2","success":false}]},{"type":"tool_result","tool_use_id":"c2","content":"{\"query\":\"edit\",\"result\":\"done\",\"success\":true}"}],"ts":1790000003000}"#;

fn collected(text: &str) -> (ReadReport, EventCollector) {
    read(&Cline, &format!("{SESSION}.messages.json"), text.as_bytes()).unwrap()
}

/// Reads a file with those beside it.
fn read_file(format: &dyn Format, path: &Path) -> EventCollector {
    let source = Source::open(path).unwrap();
    assert!(format.recognises(&source), "{}", path.display());
    let mut events = EventCollector::default();
    events.read(format.open(&source).unwrap()).unwrap();
    events
}

fn roles(events: &EventCollector) -> Vec<Role> {
    let roles = events.messages().map(|event| event.message.role.clone());
    roles.collect()
}

fn prompts(events: &EventCollector) -> Vec<String> {
    let prompts = events
        .messages()
        .filter(|event| event.message.is_prompt())
        .map(|event| event.message.text().into_owned());
    prompts.collect()
}

#[test]
fn a_session_is_its_messages() {
    let wrapped = r#"<user_input mode=\"act\">list it</user_input>"#;
    let all = [&prompt("p1", wrapped), ANSWER, RESULTS].join(",");
    let (report, events) = collected(&session(&all));
    assert_eq!(events.session, "1790000000000_abcde");
    assert_eq!((report.damage.count, report.unknown.len()), (0, 0));
    let expected = [
        Role::System,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Tool,
    ];
    assert_eq!(roles(&events), expected);
    assert_eq!(prompts(&events), ["list it"]);
    let answer = events.messages().nth(2).unwrap();
    assert_eq!(answer.model.as_deref(), Some("big"));
    assert_eq!(answer.cost_usd, Some(0.5));
    assert_eq!(answer.at.unwrap().as_millis(), 1_790_000_002_000);
    let usage = answer.message.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (20, 7));
    assert_eq!(usage.cache_read_input_tokens, 90);
    assert_eq!(usage.cache_creation_input_tokens, 10);
    let failed: Vec<bool> = events
        .messages()
        .flat_map(|event| &event.message.blocks)
        .filter_map(|block| match block {
            Block::ToolResult(result) => Some(result.is_error),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [true, false]);
    let last = events.messages().last().unwrap();
    assert!(matches!(&last.message.blocks[0],
        Block::ToolResult(result) if result.tool_name == Some(Text::from("editor"))));
}

#[test]
fn a_file_that_was_rewritten_has_the_same_keys() {
    let keys = |text: &str| {
        let (_, events) = collected(text);
        let keys = events.messages().map(|event| event.key.clone());
        keys.collect::<Vec<_>>()
    };
    let first = [&prompt("p1", "go"), ANSWER, RESULTS].join(",");
    // A resumed session has results with other ids, and one message for each.
    let (one, two) = RESULTS.split_once("},{\"type\":\"tool_result\"").unwrap();
    let split = format!(
        "{one}}}],\"ts\":1}},{{\"id\":\"r_tool_c2\",\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\"{two}"
    );
    let later = [&prompt("p1", "go"), ANSWER, &split, &prompt("p2", "on")].join(",");
    let (before, after) = (keys(&session(&first)), keys(&session(&later)));
    assert!(after.starts_with(&before), "{before:?} {after:?}");
    assert_eq!(after.len(), before.len() + 1);
}

#[test]
fn the_manifest_tells_what_the_session_is_about() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("7_a.messages.json");
    fs::write(&path, session(&prompt("p1", "go"))).unwrap();
    let manifest = r#"{"cwd":"/home/me/shop","model":"big","started_at":"2026-09-21T09:59:00Z","metadata":{"title":" A title ","fork":{"forkedFromSessionId":"6_b"}}}"#;
    fs::write(dir.path().join("7_a.json"), manifest).unwrap();
    let events = read_file(&Cline, &path);
    let main = events.main().unwrap();
    assert_eq!(main.details.title.as_deref(), Some("A title"));
    assert_eq!(main.details.model.as_deref(), Some("big"));
    let shop = Path::new("/home/me/shop");
    assert_eq!(main.details.directory.as_deref(), Some(shop));
    let copy = Origin::Copy {
        session: "6_b".to_owned(),
    };
    assert_eq!(main.thread.origin, copy);
}

#[test]
fn a_sub_agent_names_the_call_that_started_it() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("1790000000000_abcde");
    fs::create_dir(&directory).unwrap();
    let spawn = ANSWER.replace("{\"path\":\"a\"}", "{\"task\":\"count lines\"}");
    let main = directory.join("1790000000000_abcde.messages.json");
    fs::write(&main, session(&spawn)).unwrap();
    let path = directory.join("agent-7.messages.json");
    let own = session(&prompt("p1", "count lines")).replace("\"lead\"", "\"subagent\"");
    fs::write(&path, own).unwrap();
    assert!(Cline.is_sub_agent_file(&path) && !Cline.is_sub_agent_file(&main));
    let events = read_file(&Cline, &path);
    assert_eq!(events.session, "1790000000000_abcde/agent/agent-7");
    let spawned = Origin::Spawned {
        session: Some("1790000000000_abcde".to_owned()),
        tool_use_id: Some("c2".to_owned()),
    };
    assert_eq!(events.main().unwrap().thread.origin, spawned);
}

#[test]
fn a_compaction_is_a_summary_at_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("7_a.messages.json");
    let all = [
        &prompt("p1", "go"),
        ANSWER,
        RESULTS,
        &prompt("p2", "more"),
        &prompt("p3", "after"),
    ];
    fs::write(&path, session(&all.join(","))).unwrap();
    let beside = format!(
        r#"{{"version":1,"updated_at":"2026-09-21T10:00:00Z","source_message_count":4,"messages":[{{"role":"user","content":[],"metadata":{{"kind":"compaction_summary","summary":"so far"}}}},{},{}]}}"#,
        RESULTS,
        prompt("p2", "more")
    );
    let compaction = dir.path().join("7_a.compaction.json");
    fs::write(&compaction, beside).unwrap();
    assert!(!Cline.recognises(&Source::open(&compaction).unwrap()));
    let events = read_file(&Cline, &path);
    let events = &events.main().unwrap().events;
    let at = events
        .iter()
        .position(|event| matches!(event, Event::Summary(_)));
    assert_eq!(at, Some(6));
    assert!(matches!(&events[6], Event::Summary(summary)
        if summary.summary == "so far" && summary.keep == 3));
    // Older versions put it in the list itself.
    let within = r#"{"id":"s","role":"user","content":"Context summary: x","metadata":{"kind":"compaction_summary"}}"#;
    let (_, events) = collected(&session(&[within, &prompt("p", "on")].join(",")));
    assert!(
        matches!(&events.main().unwrap().events[1], Event::Summary(summary)
        if summary.summary == "Context summary: x")
    );
    assert_eq!(prompts(&events), ["on"]);
}

#[test]
fn what_the_agent_added_is_not_a_prompt() {
    let taken = |text: &str| user_text(Text::from(text));
    let both = |prompt: &str, rest: &str| UserText {
        prompt: Some(Text::from(prompt)),
        rest: (!rest.is_empty()).then(|| rest.to_owned()),
    };
    assert_eq!(taken("plain"), both("plain", ""));
    assert_eq!(taken("<task>\nmend it\n</task>"), both("mend it", ""));
    let noticed =
        "<user_input mode=\"plan\"><mode_notice>now plan</mode_notice>\nhow?</user_input>";
    let notice = "<mode_notice>now plan</mode_notice>";
    assert_eq!(taken(noticed), both("how?", notice));
    let command =
        "<user_input mode=\"act\"><user_command slash=\"team\">x y</user_command></user_input>";
    assert_eq!(taken(command), both("/team x y", ""));
    let together = "<task>go</task>\n<environment_details>\nTime\n</environment_details>";
    let details = "<environment_details>\nTime\n</environment_details>";
    assert_eq!(taken(together), both("go", details));
    for own in [
        "<environment_details>x",
        "<SYSTEM_NOTICE>x",
        "[ERROR] You did not",
    ] {
        assert_eq!(taken(own).prompt, None);
    }
    assert_eq!(taken("see <taskbar> now"), both("see <taskbar> now", ""));
    let refused = "The user denied this operation and provided the following feedback:\n<feedback>\nnot so\n</feedback>";
    assert_eq!(answer(refused), Some(Text::from("not so")));
    assert_eq!(answer("1 | <feedback>x</feedback>"), None);
}

#[test]
fn a_failed_call_is_told_by_its_output() {
    for failed in [
        "The tool execution failed with the following error:\n<error>",
        "{\"status\":\"error\",\"message\":\"x\"}",
        "{\"success\":false}",
        "Command executed in terminal. Exit code: 2\nOutput:",
        "Command execution was not successful\nExit code: 1",
        "Command failed with exit code 127",
    ] {
        assert!(text_has_failed(failed), "{failed}");
    }
    for fine in [
        "Command executed in terminal. Exit code: 0\nOutput:",
        "1 | exit code 2",
        "{\"success\":true}",
        "",
    ] {
        assert!(!text_has_failed(fine), "{fine}");
    }
}

const DETAILS: &str = r#"{"type":"text","text":"<environment_details>\n# Current Working Directory (/home/me/my shop (old)) Files\na.rs\n</environment_details>"}"#;

fn write_task(extension: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let task = dir
        .path()
        .join(format!("globalStorage/{extension}/tasks/1790000000000"));
    fs::create_dir_all(&task).unwrap();
    let messages = format!(
        r#"[{{"role":"user","content":[{{"type":"text","text":"<task>\nread a\n</task>"}},{DETAILS}]}},
{{"role":"assistant","content":[{{"type":"text","text":"I look.\n<read_file>\n<path>a.rs</path>\n</read_file>"}}]}},
{{"role":"user","content":[{{"type":"text","text":"[read_file for 'a.rs'] Result:"}},{{"type":"text","text":"The tool execution failed with the following error:\n<error>none</error>"}},{DETAILS}]}},
{{"role":"assistant","content":"Gone."}},
{{"role":"user","content":[{{"type":"text","text":"[ask_followup_question] Result:\n<answer>\nthen stop\n</answer>"}}]}}]"#
    );
    let path = task.join("api_conversation_history.json");
    fs::write(&path, messages).unwrap();
    let shown = r#"[{"ts":1790000000001,"type":"say","say":"task","text":"read a"},
{"ts":1790000000002,"type":"say","say":"api_req_started","text":"{\"request\":\"x\",\"tokensIn\":10,\"tokensOut\":5,\"cacheWrites\":3,\"cacheReads\":2,\"cost\":0.25}"},
{"ts":1790000000003,"type":"say","say":"api_req_started","text":"{\"tokensIn\":1,\"tokensOut\":1}"},
{"ts":1790000000004,"type":"say","say":"api_req_started","text":"{\"tokensIn\":100,\"tokensOut\":0,\"cancelReason\":\"user_cancelled\"}"},
{"ts":1790000000005,"type":"say","say":"api_req_started","text":"{\"request\":\"y\"}"}]"#;
    fs::write(task.join("ui_messages.json"), shown).unwrap();
    let metadata = r#"{"files_in_context":[],"model_usage":[{"ts":1790000000002,"model_id":"big","model_provider_id":"p","mode":"act"}]}"#;
    fs::write(task.join("task_metadata.json"), metadata).unwrap();
    (dir, path)
}

#[test]
fn a_task_has_the_calls_and_results_in_its_texts() {
    let (_dir, path) = write_task("saoudrizwan.claude-dev");
    assert!(!RooCode.recognises(&Source::open(&path).unwrap()));
    let events = read_file(&Cline, &path);
    assert_eq!(events.session, "1790000000000");
    let details = &events.main().unwrap().details;
    assert_eq!(details.model.as_deref(), Some("big"));
    let shop = Path::new("/home/me/my shop (old)");
    assert_eq!(details.directory.as_deref(), Some(shop));
    assert_eq!(prompts(&events), ["read a", "then stop"]);
    let blocks: Vec<&Block> = events
        .messages()
        .flat_map(|event| &event.message.blocks)
        .collect();
    let call = blocks.iter().find_map(|block| match block {
        Block::ToolUse(call) => Some(call),
        _ => None,
    });
    let call = call.unwrap();
    assert_eq!(call.name.as_str(), "read_file");
    assert_eq!(call.input.as_str(), r#"{"path":"a.rs"}"#);
    let result = blocks.iter().find_map(|block| match block {
        Block::ToolResult(result) => Some(result),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!(result.tool_use_id, call.id);
    assert!(result.is_error);
    let texts: Vec<_> = events
        .messages()
        .filter(|event| event.message.role == Role::Assistant)
        .map(|event| event.message.text().into_owned())
        .collect();
    assert_eq!(texts, ["I look.", "Gone."]);
}

#[test]
fn the_usage_of_a_task_is_that_of_its_requests() {
    let used = |extension: &str, format: &dyn Format| {
        let (_dir, path) = write_task(extension);
        let events = read_file(format, &path);
        let mut used = Vec::new();
        for event in &events.main().unwrap().events {
            let usage = match event {
                Event::Message(event) => event.message.usage.clone(),
                Event::Usage(event) => Some(event.usage.clone()),
                Event::Summary(_) => None,
            };
            used.extend(usage.map(|usage| (usage.input_tokens, usage.total())));
        }
        used
    };
    // The last request has no answer yet, and says nothing.
    let expected = [(10, 20), (1, 2), (100, 100)];
    assert_eq!(used("saoudrizwan.claude-dev", &Cline), expected);
    // Input that is not less than what came from the cache includes it.
    let expected = [(5, 15), (1, 2), (100, 100)];
    assert_eq!(used("rooveterinaryinc.roo-cline", &RooCode), expected);
    assert_eq!(used("kilocode.kilo-code", &KiloCode), expected);
}

#[test]
fn a_request_belongs_to_the_first_answer_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api_conversation_history.json");
    let messages = r#"[{"role":"user","content":"go","ts":10},{"role":"assistant","content":"one","ts":25},{"role":"assistant","content":"two","ts":45}]"#;
    fs::write(&path, messages).unwrap();
    let shown = r#"[{"ts":11,"say":"api_req_started","text":"{\"tokensIn\":1}"},{"ts":20,"say":"api_req_started","text":"{\"tokensIn\":2}"},{"ts":30,"say":"api_req_started","text":"{\"tokensIn\":3}"}]"#;
    fs::write(dir.path().join("ui_messages.json"), shown).unwrap();
    let events = read_file(&Cline, &path);
    let used = events.messages().map(|event| {
        let usage = event.message.usage.as_ref();
        usage.map(|usage| usage.input_tokens)
    });
    assert_eq!(used.collect::<Vec<_>>(), [None, Some(2), Some(3)]);
    assert_eq!(events.main().unwrap().events.len(), 4);
}

#[test]
fn roo_code_keeps_what_a_summary_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let task = dir.path().join("rooveterinaryinc.roo-cline/tasks/0199");
    fs::create_dir_all(&task).unwrap();
    let path = task.join("api_conversation_history.json");
    let messages = r#"[{"role":"user","content":"<user_message>\none\n</user_message>","ts":1,"condenseParent":"k"},
{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"read_file","input":{}}],"ts":2,"condenseParent":"k"},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}],"ts":3},
{"role":"user","content":[{"type":"text","text":"All of it."}],"ts":4,"isSummary":true,"condenseId":"k"},
{"role":"assistant","type":"reasoning","content":[],"encrypted_content":"e","ts":5},
{"role":"nobody","content":"x"},7]"#;
    fs::write(&path, messages).unwrap();
    let item = r#"{"id":"0199","parentTaskId":"0198","workspace":"/home/me/shop","task":"one"}"#;
    fs::write(task.join("history_item.json"), item).unwrap();
    let source = Source::open(&path).unwrap();
    let mut events = EventCollector::default();
    let report = events.read(RooCode.open(&source).unwrap()).unwrap();
    assert_eq!(report.unknown.get("message: nobody"), Some(&1));
    assert_eq!(report.damage.count, 1);
    let main = events.main().unwrap();
    assert!(matches!(&main.events[3], Event::Summary(summary)
        if summary.summary == "All of it." && summary.keep == 1));
    assert_eq!(prompts(&events), ["one"]);
    let spawned = Origin::Spawned {
        session: Some("0198".to_owned()),
        tool_use_id: None,
    };
    assert_eq!(main.thread.origin, spawned);
}

#[test]
fn hostile_texts_take_linear_time() {
    let texts = [
        "<".repeat(1 << 20),
        "<read_file>".repeat(1 << 17),
        "<mode_notice></mode_notice>".repeat(1 << 16),
        "<user_input mode=''>".repeat(1 << 16),
        format!("<task>{}", "<mode_notice>".repeat(1 << 17)),
        "[read_file] Result:".repeat(1 << 16),
    ];
    for text in texts {
        for role in ["user", "assistant"] {
            let text = format!(r#"[{{"role":"{role}","content":"<task>{text}</task>"}}]"#);
            read(
                &Cline,
                "/t/1/api_conversation_history.json",
                text.as_bytes(),
            )
            .unwrap();
            let text = text.replace("<task>", "").replace("</task>", "");
            read(
                &Cline,
                "/t/1/api_conversation_history.json",
                text.as_bytes(),
            )
            .unwrap();
        }
    }
    // The same ids again and again.
    let many = vec![prompt("p", "x"); 20_000].join(",");
    let (_, events) = collected(&session(&many));
    assert_eq!(events.messages().count(), 20_001);
}

#[test]
fn a_file_that_is_half_written_has_no_events_yet() {
    let whole = session(&[&prompt("p1", "go"), ANSWER].join(","));
    let (report, events) = collected(&whole[..whole.len() - 20]);
    assert!(report.unfinished);
    assert_eq!((events.session.as_str(), events.threads.len()), ("", 0));
}
