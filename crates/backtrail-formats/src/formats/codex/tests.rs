//! Rollouts of all generations are told right, whole and bit by bit, and none of them, be
//! it ever so wrong, does harm.

mod counting;
mod hostile;
mod kit;
mod naming;

use backtrail::{Block, Json, Role};
use serde_json::{Value, json};

use super::*;
use crate::collector::EventCollector;
use crate::event::{Event, Origin};
use kit::*;

#[test]
fn duplicate_messages_are_one_event_in_either_order() {
    let mut rollout = Rollout::plain();
    rollout
        .user("one")
        .user_event("one")
        .agent_event("1")
        .agent("1");
    rollout
        .user_event("two")
        .user("two")
        .agent("2")
        .agent_event("2");
    let item =
        json!({"type": "AgentMessage", "id": "m", "content": [{"type": "Text", "text": "2"}]});
    rollout.event(json!({"type": "item_completed", "item": item}));
    let expected = ["user: one", "assistant: 1", "user: two", "assistant: 2"];
    assert_eq!(rollout.read().talk(), expected);
}

#[test]
fn messages_that_are_only_in_events_are_read() {
    let mut rollout = Rollout::plain();
    rollout.user_event("one").agent_event("1");
    rollout.event(json!({"type": "agent_reasoning", "text": "hm"}));
    rollout
        .item(json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}));
    let plan = json!({"type": "Plan", "text": "first this"});
    rollout.event(json!({"type": "item_completed", "item": plan}));
    let expected = [
        "user: one",
        "assistant: 1",
        "assistant: (hm)",
        "assistant: shell{}",
        "assistant: first this",
    ];
    assert_eq!(rollout.read().talk(), expected);
}

#[test]
fn new_rollouts_may_have_only_items_that_are_completed() {
    let mut rollout = Rollout::new(json!({"history_mode": "paginated"}));
    rollout.ordinal = Some(1);
    for item in [
        json!({"type": "UserMessage", "content": [{"type": "text", "text": "one"}]}),
        json!({"type": "Reasoning", "summary_text": ["a", "b"], "raw_content": ["c"]}),
        json!({"type": "CommandExecution", "id": "c", "command": ["ls"]}),
        json!({"type": "AgentMessage", "content": [{"type": "Text", "text": "1"}]}),
    ] {
        rollout.event(json!({"type": "item_completed", "item": item}));
    }
    let read = rollout.read();
    assert_eq!(
        read.talk(),
        ["user: one", "assistant: (a\n\nb\n\nc)", "assistant: 1"]
    );
    let keys: Vec<_> = read.events().iter().map(Event::key).collect();
    assert_eq!(keys, ["000000000001", "000000000002", "000000000004"]);
}

#[test]
fn an_event_that_was_used_is_replaced_by_a_later_item() {
    let mut rollout = Rollout::plain();
    rollout.user_event("one");
    let cut = rollout.text().len();
    rollout.user("one").agent("1");
    let early = read(&rollout.path(), &rollout.text().as_bytes()[..cut]);
    assert_eq!(early.talk(), ["user: one"]);
    let whole = rollout.read();
    assert_eq!(whole.talk(), ["user: one", "assistant: 1"]);
    assert_eq!(rollout.read_in_parts(&[cut]), whole.collected);
}

#[test]
fn the_oldest_rollouts_have_no_envelope() {
    let name = "rollout-2025-07-01T10-00-00-c3c4b301-27c8-4c70-b6e4-46b99fdf0236.jsonl";
    let mut rollout = Rollout {
        path: Some(name.into()),
        ..Rollout::default()
    };
    rollout
        .raw(r#"{"id":"c3c4b301-27c8-4c70-b6e4-46b99fdf0236","timestamp":"2025-07-01T10:00:00.000Z","instructions":null,"git":{}}"#)
        .raw(r#"{"record_type":"state"}"#)
        .raw(r#"{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/old/place</cwd>\n</environment_context>"}]}"#)
        .raw(r#"{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"hello"}]}"#)
        .raw(r#"{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}]}"#)
        .raw(r#"{"type":"local_shell_call","id":"l","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}}"#)
        .raw(r#"{"type":"function_call_output","call_id":"c","output":"a.txt"}"#)
        .raw(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}"#);
    let read = rollout.read();
    assert_eq!(
        read.collected.session,
        "c3c4b301-27c8-4c70-b6e4-46b99fdf0236"
    );
    let details = &read.collected.main().unwrap().details;
    assert_eq!(details.directory.as_deref(), Some(Path::new("/old/place")));
    assert_eq!(
        details.started_at.unwrap().to_string(),
        "2025-07-01T10:00:00.000Z"
    );
    assert_eq!(
        read.talk()[1..],
        [
            "user: hello",
            "assistant: (hm)",
            r#"assistant: local_shell{"type":"exec","command":["ls"]}"#,
            r#"tool: -> "a.txt""#,
            "assistant: hi",
        ]
    );
    assert!(read.messages()[0].message.is_meta() && read.report.unknown.is_empty());
    assert_eq!(read.result().tool_name.as_deref(), Some("local_shell"));
    assert!(Codex.recognises(&Source::from_bytes("x", rollout.text())));
}

#[test]
fn the_very_first_rollouts_are_one_object() {
    let text = r#"{
      "session": {"timestamp": "2025-04-20T10:00:00.000Z", "id": "c3c4b301-27c8-4c70-b6e4-46b99fdf0236", "instructions": ""},
      "items": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "shell", "call_id": "c", "arguments": "{\"command\":[\"ls\"]}"},
        {"type": "odd"}, 7,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
      ]
    }"#;
    let path = Path::new("rollout-2025-04-20-c3c4b301-27c8-4c70-b6e4-46b99fdf0236.json");
    assert!(Codex.recognises(&Source::from_bytes(path, text)) && Codex.is_session_file(path));
    let whole = read(path, text.as_bytes());
    assert_eq!(
        whole.collected.session,
        "c3c4b301-27c8-4c70-b6e4-46b99fdf0236"
    );
    assert_eq!(
        whole.talk(),
        [
            "user: hello",
            r#"assistant: shell{"command":["ls"]}"#,
            "assistant: hi"
        ]
    );
    assert_eq!(whole.report.unknown.values().sum::<u64>(), 2);
    assert!(whole.report.state.is_none());
    let half = read(path, &text.as_bytes()[..text.len() - 20]);
    // Its name tells the session, so that the file is kept; but nothing is read from it.
    assert_eq!(half.collected.session, whole.collected.session);
    assert_eq!((half.report.damage.count, half.events().len()), (1, 0));
}

#[test]
fn tool_calls_have_their_results() {
    let mut rollout = Rollout::plain();
    rollout.item(json!({"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** Begin"}));
    rollout.item(json!({"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "done"}]}));
    rollout.item(
        json!({"type": "web_search_call", "id": "ws", "action": {"query": "q", "type": "search"}}),
    );
    rollout.item(json!({"type": "tool_search_call", "call_id": "t", "arguments": {"query": "x"}}));
    rollout.item(json!({"type": "tool_search_output", "call_id": "t", "tools": [{"name": "n"}]}));
    rollout.item(json!({"type": "image_generation_call", "id": "i", "revised_prompt": "a cat", "result": "QUJD"}));
    rollout.item(json!({"type": "function_call", "call_id": "f", "name": "read", "namespace": "mcp__x", "arguments": "not json"}));
    let read = rollout.read();
    assert_eq!(
        read.talk(),
        [
            r#"assistant: apply_patch"*** Begin""#,
            r#"tool: -> "done""#,
            r#"assistant: web_search{"query":"q","type":"search"}"#,
            r#"assistant: tool_search{"query":"x"}"#,
            r#"tool: -> [{"name":"n"}]"#,
            r#"assistant: image_generation{"prompt":"a cat"} | [image image/png]"#,
            r#"assistant: read"not json""#,
        ]
    );
    let said = read.messages();
    let Block::ToolUse(call) = &said[6].message.blocks[0] else {
        panic!()
    };
    assert_eq!(
        call.extra.get("namespace").map(Json::as_str),
        Some(r#""mcp__x""#)
    );
    assert_eq!(read.result().tool_name.as_deref(), Some("apply_patch"));
}

#[test]
fn outputs_are_readable_and_failures_are_marked() {
    let wrapped = |code: i64| format!(r#"{{"output":"a\nb","metadata":{{"exit_code":{code}}}}}"#);
    let image = json!([
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/webp;base64,QUJD"},
    ]);
    let blocks = r#"[{"type":"text","text":"see"},{"type":"image","media_type":"image/webp","data":"QUJD"}]"#;
    for (output, expected, failed) in [
        (json!(wrapped(0)), r#""a\nb""#, false),
        (json!(wrapped(1)), r#""a\nb""#, true),
        (
            json!("Exit code: 2\nWall time: 1 seconds\nOutput:\nx"),
            r#""Exit code: 2\nWall time: 1 seconds\nOutput:\nx""#,
            true,
        ),
        (
            json!("Chunk ID: 1\nProcess exited with code 0\nOutput:\nExit code: 1"),
            r#""Chunk ID: 1\nProcess exited with code 0\nOutput:\nExit code: 1""#,
            false,
        ),
        (json!({"content": "no", "success": false}), r#""no""#, true),
        (
            json!({"type": "input_text", "text": "a.txt"}),
            r#""a.txt""#,
            false,
        ),
        (image, blocks, false),
        (
            json!("exec_command failed: CreateProcess { rm rejected }"),
            r#""exec_command failed: CreateProcess { rm rejected }""#,
            true,
        ),
        (
            json!("Wall time: 0.8 seconds\naborted by user"),
            r#""Wall time: 0.8 seconds\naborted by user""#,
            true,
        ),
        (
            json!("Wall time: 0.8 seconds\nOutput:\naborted by user"),
            r#""Wall time: 0.8 seconds\nOutput:\naborted by user""#,
            false,
        ),
        (
            json!("patch rejected by user"),
            r#""patch rejected by user""#,
            true,
        ),
        (
            json!([{"type": "input_text", "text": "Exit code: 3\nx"}]),
            r#""Exit code: 3\nx""#,
            true,
        ),
        (json!({"exitCode": 1}), r#"{"exitCode":1}"#, true),
        (
            json!("{\"output\":\"x\"}"),
            r#""{\"output\":\"x\"}""#,
            false,
        ),
    ] {
        let mut rollout = Rollout::plain();
        rollout.item(json!({"type": "function_call_output", "call_id": "c", "output": output}));
        let result = rollout.read().result();
        assert_eq!(
            (result.output.as_str(), result.is_error),
            (expected, failed)
        );
    }
}

#[test]
fn an_event_before_a_result_tells_that_the_call_failed() {
    let ends = [
        (
            json!({"type": "exec_command_end", "call_id": "c", "exit_code": 1}),
            true,
        ),
        (
            json!({"type": "exec_command_end", "call_id": "c", "exit_code": 0, "status": "completed"}),
            false,
        ),
        (
            json!({"type": "exec_command_end", "call_id": "c", "status": "declined"}),
            true,
        ),
        (
            json!({"type": "exec_command_end", "call_id": "other", "exit_code": 1}),
            false,
        ),
        (
            json!({"type": "patch_apply_end", "call_id": "c", "success": false}),
            true,
        ),
        (
            json!({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Err": "no"}}),
            true,
        ),
        (
            json!({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Ok": {"isError": true}}}),
            true,
        ),
        (
            json!({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Ok": {"isError": false}}}),
            false,
        ),
        (
            json!({"type": "item_completed", "item": {"type": "CommandExecution", "id": "c", "status": "failed"}}),
            true,
        ),
        (
            json!({"type": "item_completed", "item": {"type": "FileChange", "id": "c", "status": "completed"}}),
            false,
        ),
    ];
    for (end, failed) in ends {
        let mut rollout = Rollout::plain();
        rollout.item(
            json!({"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}),
        );
        rollout.add("event_msg", end.clone());
        rollout.item(json!({"type": "function_call_output", "call_id": "c", "output": "x"}));
        let read = rollout.read();
        assert_eq!(read.result().is_error, failed, "{end}");
        assert!(read.report.unknown.is_empty(), "{end}");
    }
}

#[test]
fn encrypted_thoughts_are_kept_byte_for_byte() {
    let mut rollout = Rollout::plain();
    rollout.raw(concat!(
        r#"{"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"a\ud83d"}],"#,
        r#""encrypted_content":"gAAA\u003d\/=="}}"#
    ));
    let read = rollout.read();
    let Block::Thinking(thought) = &read.messages()[0].message.blocks[0] else {
        panic!()
    };
    let encrypted = thought.extra.get("encrypted_content").unwrap();
    assert_eq!(encrypted.as_str(), r#""gAAA\u003d\/==""#);
    assert_eq!(
        serde_json::to_string(&thought.thinking).unwrap(),
        r#""a\ud83d""#
    );
}

#[test]
fn messages_of_codex_in_the_users_name_are_not_prompts() {
    let mut rollout = Rollout::plain();
    for text in [
        "<environment_context>x</environment_context>",
        "# AGENTS.md instructions for /work\n\nx",
        "<user_instructions>x</user_instructions>",
        "\n<turn_aborted>x</turn_aborted>",
    ] {
        rollout.user(text);
    }
    let kinds = json!({"content_item_kinds": ["environments.new_thing"]});
    let content = json!([{"type": "input_text", "text": "something new"}]);
    rollout.item(
        json!({"type": "message", "role": "user", "content": content,
        "internal_chat_message_metadata_passthrough": kinds}),
    );
    rollout.item(json!({"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": content}));
    rollout.user("<b>this</b> is mine");
    rollout.item(json!({"type": "message", "role": "developer", "content": content}));
    let read = rollout.read();
    let prompts: Vec<_> = read
        .messages()
        .into_iter()
        .filter(|said| said.message.is_prompt())
        .collect();
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0].message.text(), "<b>this</b> is mine");
    assert_eq!(read.messages()[7].message.role, Role::System);
    let author = read.messages()[5]
        .message
        .extra
        .get("author")
        .unwrap()
        .clone();
    assert_eq!(author.as_str(), r#""/root""#);
}

#[test]
fn spoken_messages_and_messages_between_agents_are_read() {
    let mut rollout = Rollout::plain();
    rollout.add("realtime_item", json!({"type": "realtime_session_started"}));
    for (role, text) in [("user", "look"), ("assistant", "yes"), ("user", " ")] {
        let segment = json!({"type": "transcript_segment", "role": role, "text": text});
        rollout.add("realtime_item", segment);
    }
    rollout.add("realtime_item", json!({"type": "new"}));
    let between = json!({"author": "/root", "content": "do it", "encrypted_content": "gA"});
    rollout.add("inter_agent_communication", between);
    let read = rollout.read();
    let sealed = r#"Other({"type":"encrypted_content","encrypted_content":"gA"})"#;
    let expected = [
        "user: look".to_owned(),
        "assistant: yes".to_owned(),
        format!("user(meta): do it | {sealed}"),
    ];
    assert_eq!(read.talk(), expected);
    assert_eq!(read.report.unknown.len(), 1);
}

#[test]
fn images_of_a_prompt_are_media() {
    let mut rollout = Rollout::plain();
    let content = json!([
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
        {"type": "input_image", "image_url": "https://example.invalid/x.png"},
    ]);
    rollout.item(json!({"type": "message", "role": "user", "content": content}));
    let read = rollout.read();
    let talk = read.talk().remove(0);
    assert!(
        talk.starts_with("user: look | [image image/png] | Other("),
        "{talk}"
    );
    let mut events = Rollout::plain();
    events.event(json!({"type": "user_message", "message": "look", "images": ["data:image/png;base64,QUJD"]}));
    assert_eq!(events.read().talk(), ["user: look | [image image/png]"]);
}

#[test]
fn turns_that_were_rolled_back_are_gone() {
    let mut rollout = Rollout::plain();
    rollout
        .user("<environment_context>")
        .user("one")
        .agent("1")
        .user("two")
        .agent("2");
    rollout
        .user("three")
        .agent("3")
        .event(json!({"type": "thread_rolled_back", "num_turns": 2}));
    rollout.user("four").agent("4");
    let expected = [
        "user(meta): <environment_context>",
        "user: one",
        "assistant: 1",
        "user: four",
        "assistant: 4",
    ];
    assert_eq!(rollout.read().talk(), expected);
    rollout.event(json!({"type": "thread_rolled_back", "num_turns": 9}));
    assert_eq!(rollout.read().talk(), ["user(meta): <environment_context>"]);
    rollout.event(json!({"type": "thread_rolled_back", "num_turns": 1}));
    rollout.user("five");
    assert_eq!(rollout.read().talk().len(), 2);
}

#[test]
fn many_turns_are_rolled_back_although_the_state_is_small() {
    for (turns, starts_over) in [(40, false), (160, true)] {
        let mut rollout = Rollout::plain();
        for n in 0..200 {
            rollout.user(&format!("prompt {n}"));
        }
        let cut = rollout.text().len();
        rollout.event(json!({"type": "thread_rolled_back", "num_turns": turns}));
        let whole = rollout.read();
        assert_eq!(whole.talk().len(), 200 - turns);
        assert_eq!(rollout.read_in_parts(&[cut]), whole.collected);
        let first = read(&rollout.path(), &rollout.text().as_bytes()[..cut]).report;
        let source = Source::from_bytes("x", rollout.text());
        let mut events = EventCollector::default();
        let resumed = crate::testing::resume(&Codex, &source, &first, &mut events).unwrap();
        assert_eq!(resumed.is_none(), starts_over);
    }
}

#[test]
fn compactions_are_summaries_and_embed_nothing() {
    let history = |text: &str| {
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
            {"type": "compaction", "encrypted_content": "AAAA"},
        ])
    };
    let prefix = "Another language model started to solve this problem and produced a summary: so";
    let mut rollout = Rollout::plain();
    rollout.add(
        "compacted",
        json!({"message": "all was well", "replacement_history": history("x")}),
    );
    rollout.add(
        "compacted",
        json!({"message": "", "replacement_history": history(prefix)}),
    );
    rollout.add(
        "compacted",
        json!({"message": "", "window_id": 3, "replacement_history": history("x")}),
    );
    let read = rollout.read();
    let summaries: Vec<_> = read
        .summaries()
        .iter()
        .map(|event| event.summary.clone())
        .collect();
    assert_eq!(summaries[..2], ["all was well", prefix]);
    assert!(summaries[2].contains("encrypted") && !summaries[2].contains("AAAA"));
    assert_eq!(read.events().len(), 3);
}

#[test]
fn a_compressed_rollout_has_the_same_events() {
    let home = tempfile::tempdir().unwrap();
    let name = format!("rollout-2026-09-02T09-10-00-{THREAD}.jsonl");
    let mut rollout = Rollout::plain();
    rollout.user("one").agent("1").count(10, 10);
    rollout.path = Some(home.path().join(&name));
    let packed = home.path().join(name + ".zst");
    let bytes = zstd::stream::encode_all(rollout.text().as_bytes(), 3).unwrap();
    std::fs::write(&packed, bytes).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let unpacked = crate::decompress(&packed, &mut file).unwrap();
    assert_eq!(unpacked.damage, None);
    let source = Source::from_file(&packed, file).unwrap();
    assert!(Codex.recognises(&source) && Codex.is_session_file(&packed));
    let mut collected = EventCollector::default();
    let report = collected.read(Codex.open(&source).unwrap()).unwrap();
    let plain = rollout.read();
    assert_eq!((collected, report), (plain.collected, plain.report));
}
