use backtrail::{Block, Role};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::collector::{CollectedThread, EventCollector};
use crate::event::{Event, ThreadId};
use crate::testing::{check, read};

const PATH: &str = "/c/session-state/s-1/events.jsonl";

fn event(id: &str, kind: &str, data: Value) -> Value {
    json!({"type": kind, "data": data, "id": id, "timestamp": "2026-02-03T04:05:06Z", "parentId": null})
}

fn start() -> Value {
    let context = json!({"cwd": "/home/me/shop", "branch": "main"});
    let data = json!({"sessionId": "s-1", "version": 1, "producer": "copilot-agent",
        "startTime": "2026-02-03T04:05:00Z", "selectedModel": "m-1", "context": context});
    event("e0", "session.start", data)
}

fn user(id: &str, text: &str) -> Value {
    let data = json!({"content": text, "transformedContent": format!("<now/>{text}")});
    event(id, "user.message", data)
}

fn reply(id: &str, text: &str, rest: Value) -> Value {
    let mut data = json!({"content": text, "toolRequests": [], "model": "m-1"});
    data.as_object_mut()
        .unwrap()
        .extend(rest.as_object().cloned().unwrap());
    event(id, "assistant.message", data)
}

fn call(id: &str) -> Value {
    json!({"toolRequests": [{"toolCallId": id, "name": "bash", "arguments": "{\"command\":\"ls\"}"}]})
}

fn result(id: &str, call: &str, rest: Value) -> Value {
    let mut data = json!({"toolCallId": call, "success": true, "result": {"content": "out"}});
    data.as_object_mut()
        .unwrap()
        .extend(rest.as_object().cloned().unwrap());
    event(id, "tool.execution_complete", data)
}

fn usage(id: &str, call: &str) -> Value {
    let usage = json!({"model": "m-1", "inputTokens": 100, "outputTokens": 9, "cacheReadTokens": 60,
        "cacheWriteTokens": 10, "reasoningTokens": 4, "cost": 1, "duration": 12, "apiCallId": call});
    event(id, "session.usage_record", json!({ "usage": usage }))
}

fn metrics(input: u64, output: u64) -> Value {
    json!({"m-1": {"requests": {"count": 1}, "usage": {"inputTokens": input, "outputTokens": output, "cacheReadTokens": 0, "cacheWriteTokens": 0}}})
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

fn collected(events: &[Value]) -> EventCollector {
    let (report, collected) = read(&CopilotCli, PATH, lines(events).as_bytes()).unwrap();
    assert_eq!(
        (report.damage.count, report.unknown.len()),
        (0, 0),
        "{report:?}"
    );
    collected
}

fn texts(thread: &CollectedThread) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Message(said) => said.message.text().into_owned(),
        Event::Summary(summary) => format!("[{}|{}]", summary.summary, summary.keep),
        Event::Usage(used) => {
            let usage = &used.usage;
            format!("({} {})", usage.input_tokens, usage.output_tokens)
        }
    };
    thread.events.iter().map(text).collect()
}

fn main_texts(events: &[Value]) -> Vec<String> {
    texts(collected(events).main().unwrap())
}

#[test]
fn a_session_has_its_messages_model_directory_and_times() {
    let found = collected(&[
        start(),
        event(
            "s",
            "system.message",
            json!({"role": "system", "content": "be kind"}),
        ),
        user("e1", "list"),
        event("e2", "assistant.turn_start", json!({"turnId": "0"})),
        reply(
            "e3",
            "look",
            json!({"reasoningText": "hm", "reasoningOpaque": "sig"}),
        ),
        reply("e4", "", call("c")),
        event(
            "e5",
            "tool.execution_start",
            json!({"toolCallId": "c", "toolName": "bash"}),
        ),
        result("e6", "c", json!({})),
        event("e7", "abort", json!({"reason": "user"})),
        event("e8", "session.model_change", json!({"newModel": "m-2"})),
    ]);
    assert_eq!(found.session, "s-1");
    let details = &found.main().unwrap().details;
    assert_eq!(details.model.as_deref(), Some("m-2"));
    assert_eq!(details.directory.as_deref(), Some("/home/me/shop".as_ref()));
    assert!(details.started_at.is_some());
    let messages: Vec<_> = found.messages().collect();
    let roles: Vec<_> = messages
        .iter()
        .map(|said| said.message.role.clone())
        .collect();
    assert_eq!(
        roles,
        [
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Assistant,
            Role::Tool
        ]
    );
    assert_eq!(messages[1].message.text(), "list");
    assert!(
        matches!(&messages[2].message.blocks[0], Block::Thinking(thinking) if thinking.signature.is_some())
    );
    assert!(
        matches!(&messages[3].message.blocks[..], [Block::ToolUse(call)] if call.input.as_str() == r#"{"command":"ls"}"#)
    );
    assert!(
        matches!(&messages[4].message.blocks[..], [Block::ToolResult(result)]
        if result.tool_name.as_deref() == Some("bash") && !result.is_error)
    );
}

#[test]
fn a_failed_call_is_failed_whatever_success_says() {
    let failed = |rest: Value| {
        let found = collected(&[start(), result("e", "c", rest)]);
        let last = found.messages().last().unwrap();
        matches!(&last.message.blocks[..], [Block::ToolResult(result)] if result.is_error)
    };
    assert!(!failed(json!({})));
    assert!(!failed(json!({"shellExecution": {"exitCode": 0}})));
    assert!(!failed(
        json!({"result": {"content": "x\n<shellId: 0 completed with exit code 0>"}})
    ));
    assert!(!failed(
        json!({"result": {"content": "exit code 2>\nfine"}})
    ));
    assert!(failed(json!({"shellExecution": {"exitCode": 2}})));
    assert!(failed(json!({"success": false})));
    assert!(failed(
        json!({"success": false, "result": null, "error": {"message": "gone"}})
    ));
    assert!(failed(
        json!({"result": {"content": "x\n<shellId: 0 completed with exit code 2>"}})
    ));
    assert!(failed(
        json!({"result": {"content": "x\n<exited with exit code 127>\n"}})
    ));
}

#[test]
fn usage_counts_once_whichever_event_has_it() {
    // Each call has a note of its own.
    let noted = [
        start(),
        usage("u", "call-1"),
        reply(
            "e",
            "done",
            json!({"apiCallId": "call-1", "outputTokens": 9}),
        ),
        usage("u2", "call-1"),
    ];
    let found = collected(&noted);
    assert_eq!(texts(found.main().unwrap()), ["(30 9)", "done"]);
    let events = &found.main().unwrap().events;
    let ids: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Message(said) => said.response_id.clone(),
            Event::Usage(used) => Some(used.response_id.clone()),
            Event::Summary(_) => None,
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
    assert!(found.messages().all(|said| said.message.usage.is_none()));
    // The sum at the end has nothing more.
    let mut ended = noted.to_vec();
    let snapshot = json!({"accountingSnapshot": {"modelMetrics": metrics(100, 9)}});
    ended.push(event("x", "session.shutdown", snapshot));
    assert_eq!(main_texts(&ended), ["(30 9)", "done"]);
    // Only the output of each message is known, and at the end the sum.
    let older = [
        start(),
        reply("e", "one", json!({"outputTokens": 4})),
        reply("f", "two", json!({"outputTokens": 5})),
        event(
            "x",
            "session.shutdown",
            json!({"modelMetrics": metrics(100, 12)}),
        ),
        event("r", "session.resume", json!({})),
        reply("g", "three", json!({"outputTokens": 2})),
        event(
            "y",
            "session.shutdown",
            json!({"modelMetrics": metrics(50, 2)}),
        ),
    ];
    assert_eq!(
        main_texts(&older),
        ["one", "two", "(100 3)", "three", "(50 0)"]
    );
    let found = collected(&older);
    let outputs = found
        .messages()
        .filter_map(|said| said.message.usage.as_ref());
    assert_eq!(outputs.map(|usage| usage.output_tokens).sum::<u64>(), 11);
}

#[test]
fn a_sub_agent_is_a_session_of_its_own() {
    let mut by_name = reply("f", "found it", json!({}));
    by_name["agentId"] = "agent-7".into();
    let mut started = event(
        "s",
        "subagent.started",
        json!({"toolCallId": "c", "agentName": "explore", "agentDisplayName": "Explore"}),
    );
    started["agentId"] = "agent-7".into();
    let found = collected(&[
        start(),
        user("a", "dig"),
        reply("b", "", call("c")),
        started,
        reply(
            "d",
            "digging",
            json!({"parentToolCallId": "c", "model": "m-9"}),
        ),
        result("e", "c2", json!({"parentToolCallId": "c"})),
        by_name,
        event("g", "subagent.completed", json!({"toolCallId": "c"})),
        result("h", "c", json!({})),
        user("i", "thanks"),
    ]);
    assert_eq!(found.threads.len(), 2);
    assert_eq!(texts(found.main().unwrap()), ["dig", "", "", "thanks"]);
    assert_eq!(found.main().unwrap().details.model.as_deref(), Some("m-1"));
    let agent = &found.threads[1];
    assert_eq!(agent.thread.id, ThreadId::SubAgent("c".to_owned()));
    let origin = Origin::Spawned {
        session: None,
        tool_use_id: Some("c".to_owned()),
    };
    assert_eq!(agent.thread.origin, origin);
    assert_eq!(agent.details.title.as_deref(), Some("Explore"));
    assert_eq!(texts(agent), ["digging", "", "found it"]);
}

#[test]
fn a_compaction_is_a_summary_unless_it_failed() {
    let complete = |data: Value| {
        main_texts(&[
            start(),
            user("a", "one"),
            reply("b", "two", json!({})),
            event("s", "session.compaction_start", json!({})),
            event("c", "session.compaction_complete", data),
            user("d", "on"),
        ])
    };
    let kept = json!({"success": true, "summaryContent": "in short", "preCompactionMessagesLength": 9, "messagesRemoved": 8});
    assert_eq!(complete(kept), ["one", "two", "[in short|1]", "on"]);
    let all = json!({"success": true, "summaryContent": "in short"});
    assert_eq!(complete(all), ["one", "two", "[in short|0]", "on"]);
    assert_eq!(
        complete(json!({"success": false, "error": "no"})),
        ["one", "two", "on"]
    );
}

#[test]
fn only_what_the_user_wrote_is_a_prompt_and_attachments_are_kept() {
    let mut skill = user("b", "how to read a PDF");
    skill["data"]["source"] = "skill-pdf".into();
    let mut seen = user("c", "see");
    seen["data"]["attachments"] = json!([
        {"type": "blob", "data": "aGk=", "mimeType": "image/png"},
        {"type": "file", "path": "/a.txt", "displayName": "a.txt"},
    ]);
    let note = event(
        "d",
        "system.notification",
        json!({"content": "a task has ended", "kind": {}}),
    );
    let found = collected(&[start(), user("a", "go"), skill, seen, note]);
    let prompts: Vec<_> = found
        .messages()
        .filter(|said| said.message.is_prompt())
        .collect();
    assert_eq!(prompts.len(), 2);
    assert_eq!(found.messages().count(), 4);
    assert!(matches!(
        &prompts[1].message.blocks[..],
        [Block::Text(_), Block::Media(_), Block::Other(_)]
    ));
}

#[test]
fn reasoning_that_a_message_repeats_is_sent_once() {
    let reasoning = event(
        "a",
        "assistant.reasoning",
        json!({"reasoningId": "r", "content": "hm"}),
    );
    let count = |text: &str| {
        let message = reply("b", "done", json!({ "reasoningText": text }));
        let found = collected(&[start(), reasoning.clone(), message]);
        let blocks = found
            .messages()
            .flat_map(|said| said.message.blocks.clone());
        blocks
            .filter(|block| matches!(block, Block::Thinking(_)))
            .count()
    };
    assert_eq!((count("hm"), count("other")), (1, 2));
}

#[test]
fn the_file_beside_the_events_has_the_name_and_the_directory() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("session-state/s-9");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("events.jsonl");
    std::fs::write(&path, lines(&[user("a", "go")])).unwrap();
    let details = |yaml: &str| {
        std::fs::write(directory.join("workspace.yaml"), yaml).unwrap();
        let source = Source::open(&path).unwrap();
        let mut found = EventCollector::default();
        found.read(CopilotCli.open(&source).unwrap()).unwrap();
        assert_eq!(found.session, "s-9");
        let details = found.main().unwrap().details.clone();
        (details.title, details.directory)
    };
    let both = (
        Some("It's: shop".to_owned()),
        Some(PathBuf::from("/home/me/shop")),
    );
    assert_eq!(
        details("id: s-9\ncwd: /home/me/shop\nname: It's: shop\n"),
        both
    );
    assert_eq!(details("cwd: '/home/me/shop'\nname: 'It''s: shop'\n"), both);
    assert_eq!(
        details("cwd: \"/home/me/shop\"\nsummary: \"It's: \\u0073hop\"\n"),
        both
    );
    assert_eq!(
        details("name: |\n  two\n  lines\ncwd: null\n"),
        (None, None)
    );
    assert_eq!(details("name: \"torn\n"), (None, None));
}

#[test]
fn what_is_damaged_or_unknown_is_counted_and_an_id_is_used_once() {
    let text = lines(&[
        start(),
        user("a", "one"),
        user("a", "two"),
        event("b", "session.new_kind", json!({})),
        event("c", "other.kind", json!({})),
        json!({"id": "d"}),
    ]) + "{torn\n[]\n";
    let (report, found) = read(&CopilotCli, PATH, text.as_bytes()).unwrap();
    assert_eq!(report.damage.count, 3, "{report:?}");
    assert_eq!(report.unknown.len(), 2, "{report:?}");
    let keys: Vec<_> = found.messages().map(|said| said.key.as_str()).collect();
    assert_eq!(keys, ["a", "a~3"]);
}

#[test]
fn other_files_are_not_recognised() {
    let is = |text: &str| CopilotCli.recognises(&Source::from_bytes(PATH, text));
    assert!(is(&lines(&[start()])) && is(&lines(&[user("a", "go")])));
    assert!(!is(
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"x","message":{}}"#
    ));
    assert!(!is(
        r#"{"type":"session_meta","timestamp":"x","payload":{}}"#
    ));
    let session = |path: &str| CopilotCli.is_session_file(path.as_ref());
    assert!(session(PATH) && session("/c/session-state/s-1.jsonl"));
    assert!(
        !session("/c/session-state/s-1/workspace.yaml")
            && !session("/c/session-state/s-1/x/y.jsonl")
    );
    let home = Environment::new("/home/me");
    assert_eq!(
        CopilotCli.directories(&home),
        [PathBuf::from("/home/me/.copilot/session-state")]
    );
    let elsewhere = home.with("COPILOT_HOME", "/cp");
    assert_eq!(
        CopilotCli.directories(&elsewhere),
        [PathBuf::from("/cp/session-state")]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn resuming_equals_reading_from_the_beginning(
        steps in prop::collection::vec((0usize..4, 0u8..14), 0..16),
        cuts in prop::collection::vec(0usize..6_000, 8),
    ) {
        let mut text = lines(&[start()]);
        for (n, (of, step)) in steps.iter().enumerate() {
            let id = format!("m{n}");
            let old = format!("m{of}");
            let one = match step {
                0 => user(&old, "again"),
                1 => reply(&id, "", call(&old)),
                2 => result(&id, &old, json!({})),
                3 => result(&id, &old, json!({"parentToolCallId": old})),
                4 => usage(&id, &old),
                5 => reply(&id, "done", json!({"apiCallId": old, "outputTokens": n})),
                6 => event(&id, "session.shutdown", json!({"modelMetrics": metrics(*of as u64 * 50, n as u64)})),
                7 => event(&id, "assistant.reasoning", json!({"content": "hm"})),
                8 => reply(&id, "x", json!({"reasoningText": "hm", "model": old})),
                9 => event(&id, "session.compaction_complete", json!({"summaryContent": "s", "preCompactionMessagesLength": 9, "messagesRemoved": of})),
                10 => event(&id, "subagent.started", json!({"toolCallId": old, "agentName": "a"})),
                11 => event(&id, "what.ever", json!({})),
                _ => user(&id, "text"),
            };
            text.push_str(&format!("{one}\n"));
        }
        for cut in cuts {
            check(&CopilotCli, PATH, text.as_bytes(), cut % (text.len() + 1));
        }
    }
}
