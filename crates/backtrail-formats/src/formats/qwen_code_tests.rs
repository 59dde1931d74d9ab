use backtrail::Role;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::collector::EventCollector;
use crate::event::{Event, ForkPoint, ThreadId};
use crate::testing::{check, read};

const PATH: &str = "/q/projects/-shop/chats/11111111-2222-4333-8444-555555555555.jsonl";

/// Returns a record that continues another one.
fn record(id: &str, parent: Option<&str>, kind: &str, rest: Value) -> Value {
    let mut record = json!({
        "uuid": id, "parentUuid": parent, "sessionId": "s-1", "type": kind,
        "timestamp": "2026-02-03T04:05:06.000Z", "cwd": "/home/me/shop", "version": "0.24.4",
    });
    let fields = record.as_object_mut().unwrap();
    fields.extend(rest.as_object().cloned().unwrap());
    record
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    let message = json!({"role": "user", "parts": [{"text": text}]});
    record(id, parent, "user", json!({ "message": message }))
}

fn reply(id: &str, parent: &str, text: &str) -> Value {
    let message = json!({"role": "model", "parts": [{"text": text}]});
    let rest = json!({"model": "coder-1", "message": message, "usageMetadata": {
        "promptTokenCount": 100, "candidatesTokenCount": 7, "cachedContentTokenCount": 60,
        "thoughtsTokenCount": 3, "totalTokenCount": 107,
    }});
    record(id, Some(parent), "assistant", rest)
}

fn system(id: &str, parent: &str, subtype: &str, payload: Value) -> Value {
    let rest = json!({"subtype": subtype, "systemPayload": payload});
    record(id, Some(parent), "system", rest)
}

fn api_response(id: &str, parent: &str, rest: Value) -> Value {
    let mut event = json!({
        "event.name": "qwen-code.api_response", "response_id": "same", "model": "coder-1",
        "duration_ms": 12, "input_token_count": 100, "output_token_count": 7,
        "cached_content_token_count": 60, "thoughts_token_count": 3, "total_token_count": 107,
        "prompt_id": "s-1########0",
    });
    event
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().cloned().unwrap());
    system(id, parent, "ui_telemetry", json!({ "uiEvent": event }))
}

fn result(id: &str, parent: &str, response: Value, call: Value) -> Value {
    let part =
        json!({"functionResponse": {"id": "c", "name": "run_shell_command", "response": response}});
    let message = json!({"role": "user", "parts": [part]});
    let rest = json!({"message": message, "toolCallResult": call});
    record(id, Some(parent), "tool_result", rest)
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn collected(records: &[Value]) -> EventCollector {
    let (report, collected) = read(&QwenCode, PATH, lines(records).as_bytes()).unwrap();
    assert_eq!(
        (report.damage.count, report.unknown.len()),
        (0, 0),
        "{report:?}"
    );
    collected
}

fn texts(events: &[Event]) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Message(said) => said.message.text().into_owned(),
        Event::Summary(summary) => format!("[{}|{}]", summary.summary, summary.keep),
        Event::Usage(used) => format!("({})", used.usage.total()),
    };
    events.iter().map(text).collect()
}

fn main_texts(collected: &EventCollector) -> Vec<String> {
    texts(&collected.main().unwrap().events)
}

#[test]
fn a_session_has_its_messages_model_directory_title_and_times() {
    let call = json!({"functionCall": {"id": "c", "name": "ls", "args": {"dir": "."}}});
    let thought = json!({"text": "hm", "thought": true});
    let message = json!({"role": "model", "parts": [thought, call]});
    let found = collected(&[
        user("a", None, "list"),
        system("x", "a", "attribution_snapshot", json!({"snapshot": {}})),
        record(
            "b",
            Some("x"),
            "assistant",
            json!({"model": "coder-1", "message": message}),
        ),
        result(
            "c",
            "b",
            json!({"output": "a.txt"}),
            json!({"callId": "c", "status": "success"}),
        ),
        system("y", "c", "custom_title", json!({"customTitle": " Files "})),
    ]);
    assert_eq!(found.session, "s-1");
    let main = found.main().unwrap();
    let details = &main.details;
    assert_eq!(details.title.as_deref(), Some("Files"));
    assert_eq!(details.model.as_deref(), Some("coder-1"));
    assert_eq!(details.directory.as_deref(), Some("/home/me/shop".as_ref()));
    assert!(details.started_at.is_some());
    let roles: Vec<_> = found
        .messages()
        .map(|said| said.message.role.clone())
        .collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert!(found.messages().all(|said| said.at.is_some()));
}

#[test]
fn usage_counts_once_whether_a_note_or_a_message_has_it() {
    let total = |collected: &EventCollector| {
        let mut total = backtrail::Usage::default();
        for event in &collected.main().unwrap().events {
            match event {
                Event::Message(said) => {
                    said.message.usage.iter().for_each(|usage| total.add(usage))
                }
                Event::Usage(used) => total.add(&used.usage),
                Event::Summary(_) => {}
            }
        }
        (
            total.input_tokens,
            total.output_tokens,
            total.cache_read_input_tokens,
        )
    };
    let only_message = collected(&[user("a", None, "go"), reply("b", "a", "done")]);
    assert_eq!(total(&only_message), (40, 7, 60));
    let both = [
        user("a", None, "go"),
        api_response("t", "a", json!({})),
        reply("b", "t", "done"),
    ];
    let with_note = collected(&both);
    assert_eq!(total(&with_note), (40, 7, 60));
    let ids: Vec<_> = with_note
        .main()
        .unwrap()
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Message(said) => said.response_id.clone(),
            Event::Usage(used) => Some(used.response_id.clone()),
            Event::Summary(_) => None,
        })
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1], "they are of one response");
    // A sub-agent's call has no message here, and is no call of the message that follows.
    let agent = json!({"subagent_name": "dig", "prompt_id": "s-1#dig-1#0", "input_token_count": 61, "output_token_count": 1});
    let mut with_agent = both.to_vec();
    with_agent.push(api_response("u", "b", agent));
    with_agent.push(reply("c", "u", "again"));
    assert_eq!(
        total(&collected(&with_agent)),
        (40 + 1 + 40, 7 + 1 + 7, 180)
    );
}

#[test]
fn thoughts_are_part_of_the_output_unless_the_total_says_otherwise() {
    let output = |total: u64| {
        let mut reply = reply("b", "a", "done");
        reply["usageMetadata"]["totalTokenCount"] = total.into();
        let found = collected(&[user("a", None, "go"), reply]);
        let usage = found
            .messages()
            .nth(1)
            .unwrap()
            .message
            .usage
            .clone()
            .unwrap();
        assert_eq!(usage.reasoning_output_tokens, Some(3));
        usage.output_tokens
    };
    assert_eq!((output(107), output(110)), (7, 10));
}

#[test]
fn a_failed_call_is_failed() {
    let failed = |response: Value, call: Value| {
        let found = collected(&[user("a", None, "go"), result("b", "a", response, call)]);
        let last = found.messages().last().unwrap();
        matches!(&last.message.blocks[..], [backtrail::Block::ToolResult(result)] if result.is_error)
    };
    let fine = || json!({"output": "fine"});
    let shell = |code: Value| json!({"resultDisplay": {"type": "shell_result", "exitCode": code, "signal": null}});
    assert!(!failed(fine(), json!({"status": "success"})));
    assert!(!failed(fine(), json!({})));
    assert!(!failed(fine(), shell(0.into())));
    assert!(!failed(fine(), shell(Value::Null)));
    assert!(failed(fine(), json!({"status": "error"})));
    assert!(failed(fine(), json!({"status": "cancelled"})));
    assert!(failed(fine(), shell(2.into())));
    assert!(failed(json!({"error": "gone"}), json!({})));
    assert!(failed(
        json!({"output": "Output: x\nExit Code: 2\nSignal: (none)"}),
        json!({})
    ));
}

#[test]
fn what_was_rewound_is_a_branch_and_notes_beside_the_conversation_are_not() {
    let found = collected(&[
        user("a", None, "one"),
        reply("b", "a", "two"),
        user("c", Some("b"), "three"),
        reply("d", "c", "four"),
        system("r", "b", "rewind", json!({"truncatedCount": 2})),
        user("e", Some("r"), "other"),
        // The agent writes its title again, and continues without it.
        system("t", "e", "custom_title", json!({"customTitle": "T"})),
        system("z", "e", "session_artifact_snapshot", json!({})),
        reply("f", "e", "fine"),
        system("y", "d", "session_artifact_event", json!({})),
    ]);
    assert_eq!(main_texts(&found), ["one", "two", "other", "fine"]);
    assert_eq!(found.threads.len(), 2);
    let branch = &found.threads[1];
    assert_eq!(branch.thread.id, ThreadId::Branch("c".to_owned()));
    let origin = Origin::Continues {
        session: None,
        point: ForkPoint::After("b".to_owned()),
    };
    assert_eq!(branch.thread.origin, origin);
    assert_eq!(texts(&branch.events), ["three", "four"]);
}

#[test]
fn a_conversation_with_a_lost_part_continues_what_is_left() {
    let found = collected(&[
        user("a", None, "one"),
        reply("c", "lost", "two"),
        user("d", Some("c"), "three"),
    ]);
    assert_eq!(main_texts(&found), ["one", "two", "three"]);
}

#[test]
fn records_with_one_id_are_parts_of_one_message() {
    let found = collected(&[
        user("a", None, "go"),
        reply("b", "a", "first"),
        reply("b", "a", "second"),
        user("c", Some("b"), "on"),
    ]);
    assert_eq!(main_texts(&found), ["go", "first", "second", "on"]);
    let keys: Vec<_> = found.messages().map(|said| said.key.as_str()).collect();
    assert_eq!(keys, ["a", "b", "b~2", "c"]);
}

#[test]
fn a_summary_keeps_the_messages_at_the_end_of_its_list() {
    let content = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let list = json!([
        content(
            "user",
            "This is the Qwen Code. We are setting up the context for our chat."
        ),
        content("user", "in short"),
        content("model", "Got it."),
        content("user", "three"),
        content("model", "four"),
    ]);
    let payload = json!({"info": {"originalTokenCount": 9}, "compressedHistory": list});
    let found = collected(&[
        user("a", None, "one"),
        reply("b", "a", "two"),
        user("c", Some("b"), "three"),
        api_response("t", "c", json!({})),
        reply("d", "t", "four"),
        system("s", "d", "chat_compression", payload),
        user("e", Some("s"), "five"),
    ]);
    assert_eq!(
        main_texts(&found),
        [
            "one",
            "two",
            "three",
            "(107)",
            "four",
            "[in short|2]",
            "five"
        ]
    );
}

#[test]
fn only_what_the_user_wrote_is_a_prompt() {
    let mut prompt = user("a", None, "go");
    let hook = "<qwen:user-prompt-submit-context>\nx\n</qwen:user-prompt-submit-context>";
    prompt["message"]["parts"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "text": hook }));
    let mut note = user("b", Some("a"), "a task has ended");
    note["subtype"] = "notification".into();
    let mut goal = user("c", Some("b"), "continue");
    goal["provenance"] = "goal_control".into();
    let mut more = user("d", Some("c"), "faster");
    more["subtype"] = "mid_turn_user_message".into();
    let found = collected(&[prompt, note, goal, more]);
    let prompts = found.messages().filter(|said| said.message.is_prompt());
    let prompts: Vec<_> = prompts
        .map(|said| said.message.text().into_owned())
        .collect();
    assert_eq!(prompts, ["go", "faster"]);
    assert_eq!(found.messages().count(), 5);
}

#[test]
fn a_copy_a_started_session_and_a_sub_agent_know_where_they_come_from() {
    let origin = |records: &[Value]| collected(records).main().unwrap().thread.origin.clone();
    let mut copied = user("a", None, "go");
    copied["forkedFrom"] = json!({"sessionId": "s-0", "messageUuid": "a"});
    let copy = Origin::Copy {
        session: "s-0".to_owned(),
    };
    assert_eq!(origin(&[copied]), copy);
    let started = system(
        "p",
        "a",
        "parent_session",
        json!({"parentSessionId": "s-9"}),
    );
    let spawned = Origin::Spawned {
        session: Some("s-9".to_owned()),
        tool_use_id: None,
    };
    assert_eq!(origin(&[user("a", None, "go"), started]), spawned);

    let root = tempfile::tempdir().unwrap();
    let agents = root.path().join("projects/-shop/subagents/s-1");
    std::fs::create_dir_all(&agents).unwrap();
    let mut first = user("a", None, "dig");
    first["isSidechain"] = true.into();
    first["agentId"] = "dig-1".into();
    let path = agents.join("agent-dig-1.jsonl");
    std::fs::write(&path, lines(&[first])).unwrap();
    let meta = json!({"agentType": "Explore", "description": "Dig", "toolUseId": "c7", "parentAgentId": null});
    std::fs::write(agents.join("agent-dig-1.meta.json"), meta.to_string()).unwrap();
    assert!(QwenCode.is_sub_agent_file(&path) && QwenCode.is_session_file(&path));
    let source = Source::open(&path).unwrap();
    assert!(QwenCode.recognises(&source));
    let mut found = EventCollector::default();
    found.read(QwenCode.open(&source).unwrap()).unwrap();
    assert_eq!(found.session, sub_agent_name("s-1", "dig-1"));
    let main = found.main().unwrap();
    let called = Origin::Spawned {
        session: Some("s-1".to_owned()),
        tool_use_id: Some("c7".to_owned()),
    };
    assert_eq!(main.thread.origin, called);
    assert_eq!(main.details.title.as_deref(), Some("Dig"));
    assert_eq!(main.details.tags, Some(vec!["Explore".to_owned()]));

    // What its own file counts is not counted in the session that called it.
    let chats = root.path().join("projects/-shop/chats");
    std::fs::create_dir_all(&chats).unwrap();
    let path = chats.join("s-1.jsonl");
    let used = |agent: &str| {
        let prompt = format!("s-1#{agent}#0");
        let rest = json!({"subagent_name": "dig", "prompt_id": prompt});
        let records = [user("a", None, "go"), api_response("t", "a", rest)];
        std::fs::write(&path, lines(&records)).unwrap();
        let source = Source::open(&path).unwrap();
        let mut found = EventCollector::default();
        found.read(QwenCode.open(&source).unwrap()).unwrap();
        found.main().unwrap().events.len() - 1
    };
    assert_eq!((used("dig-1"), used("other"), used("../../x")), (0, 1, 1));
}

#[test]
fn records_without_a_line_break_between_them_are_read() {
    let (a, b) = (user("a", None, "one"), reply("b", "a", "two"));
    let c = user("c", Some("b"), "three");
    let text = format!("{a}{b}\n{c}\n");
    let (report, found) = read(&QwenCode, PATH, text.as_bytes()).unwrap();
    assert_eq!((report.damage.count, report.lines), (0, 2));
    assert_eq!(main_texts(&found), ["one", "two", "three"]);
    let torn = format!("{a}{{\"uuid\":\n{c}\n");
    let (report, found) = read(&QwenCode, PATH, torn.as_bytes()).unwrap();
    assert_eq!(report.damage.count, 1);
    assert_eq!(main_texts(&found), ["three"]);
}

#[test]
fn what_is_damaged_or_unknown_is_counted() {
    let text = lines(&[
        user("a", None, "one"),
        record("b", Some("a"), "user", json!({})),
        record("c", Some("a"), "dream", json!({})),
        system("d", "c", "new_kind", json!({})),
        json!({"type": "user", "message": {"parts": []}}),
        json!({"uuid": "x"}),
    ]) + "{torn\n[]\n";
    let (report, found) = read(&QwenCode, PATH, text.as_bytes()).unwrap();
    assert_eq!(report.damage.count, 5, "{report:?}");
    assert_eq!(
        report.unknown.keys().collect::<Vec<_>>(),
        ["dream", "system: new_kind"]
    );
    assert_eq!(main_texts(&found), ["one"]);
}

#[test]
fn a_record_that_is_continued_thousands_of_times_takes_linear_time() {
    let mut records = vec![user("a", None, &"x".repeat(20_000))];
    for n in 0..20_000 {
        records.push(user(&format!("n{n}"), Some("a"), "again"));
    }
    assert_eq!(collected(&records).threads.len(), 20_000);
    let mut records = vec![user("a", None, "one")];
    for n in 0..20_000 {
        let parent = if n == 0 {
            "a".to_owned()
        } else {
            format!("n{}", n - 1)
        };
        records.push(user(&format!("n{n}"), Some(&parent), "again"));
    }
    // It is its own parent, and two are each other's.
    records.push(user("m", Some("m"), "self"));
    records.push(user("x", Some("y"), "cycle"));
    records.push(user("y", Some("x"), "cycle"));
    assert_eq!(collected(&records).messages().count(), 20_004);
}

#[test]
fn files_of_other_agents_and_other_files_are_not_recognised() {
    let is = |text: &str| QwenCode.recognises(&Source::from_bytes(PATH, text));
    assert!(is(&lines(&[user("a", None, "one")])));
    assert!(is(&lines(&[system("a", "b", "ui_telemetry", json!({}))])));
    let claude = r#"{"uuid":"a","parentUuid":null,"isSidechain":false,"sessionId":"s","timestamp":"x","type":"user","message":{"role":"user","content":"hi"}}"#;
    assert!(!is(claude));
    assert!(!is(
        r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text"}}"#
    ));
    assert!(!is(r#"{"version":1,"sessionId":"s","timestamp":1}"#));
    let first = system("a", "b", "agent_bootstrap", json!({"kind": "fork"}));
    let mut first = first;
    first["isSidechain"] = true.into();
    let source = Source::from_bytes(PATH, lines(&[first]));
    let claimed: Vec<_> = crate::formats()
        .filter(|format| format.recognises(&source))
        .collect();
    assert_eq!(
        claimed
            .iter()
            .map(|format| format.name())
            .collect::<Vec<_>>(),
        ["qwen-code"]
    );
    let session = |path: &str| QwenCode.is_session_file(path.as_ref());
    assert!(session(PATH) && session("/q/tmp/ab/chats/session-1.json"));
    assert!(!session("/q/projects/-shop/usage_record.jsonl") && !session("/q/tmp/ab/logs.json"));
    assert!(!session("/q/projects/-shop/meta.json"));
}

#[test]
fn a_file_of_an_older_version_is_read_as_gemini_cli_wrote_it() {
    let text = r#"{"sessionId":"s-1","projectHash":"ff","startTime":"2026-02-03T04:05:06Z","messages":[{"id":"a","type":"user","content":"go"}]}"#;
    let (_, found) = read(&QwenCode, "/q/tmp/ab/chats/session-1.json", text.as_bytes()).unwrap();
    assert_eq!(main_texts(&found), ["go"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn resuming_equals_reading_from_the_beginning(
        steps in prop::collection::vec((0usize..6, 0u8..16), 0..16),
        cuts in prop::collection::vec(0usize..6_000, 8),
    ) {
        let mut text = String::new();
        let mut last: Option<String> = None;
        for (n, (of, step)) in steps.iter().enumerate() {
            let id = format!("m{n}");
            let parent = last.clone().unwrap_or_else(|| "none".to_owned());
            let old = format!("m{of}");
            let record = match step {
                0 => user(&id, Some(&old), "branch"),
                1 => reply(&old, &parent, "part"),
                2 => system(&id, &parent, "ui_telemetry", json!({})),
                3 => system(&id, &parent, "custom_title", json!({"customTitle": format!("t{n}")})),
                4 => api_response(&id, &parent, json!({"output_token_count": of})),
                5 => system(&id, &parent, "session_artifact_event", json!({})),
                6 => system(&id, &old, "rewind", json!({})),
                7 => system(&id, &parent, "chat_compression", json!({"compressedHistory": [{"role": "user", "parts": [{"text": "text"}]}]})),
                8 => record(&id, Some(&parent), "what", json!({})),
                9 => user(&id, None, "root"),
                10 => reply(&id, &parent, "done"),
                _ => user(&id, Some(&parent), "text"),
            };
            text.push_str(&record.to_string());
            if *step != 11 || *of > 2 {
                text.push('\n');
            }
            if *step != 3 && *step != 5 {
                last = Some(record["uuid"].as_str().unwrap().to_owned());
            }
        }
        for cut in cuts {
            check(&QwenCode, PATH, text.as_bytes(), cut % (text.len() + 1));
        }
    }
}
