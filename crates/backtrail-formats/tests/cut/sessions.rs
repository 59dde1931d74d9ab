//! Sessions of two turns, as each agent that can be resumed writes them: thoughts with a
//! signature, one call, two calls at once, what is written at the end of a turn and at the next
//! start. Their texts mention the session's id and directory, which a copy must not touch.

use serde_json::{Value, json};

/// A session as an agent writes it.
pub(crate) struct Sample {
    pub(crate) agent: &'static str,
    pub(crate) id: &'static str,
    /// Where its file is, below the home directory.
    pub(crate) file: String,
    pub(crate) text: String,
    /// How many lines of it are the first turn, without what belongs to the next start.
    pub(crate) first_turn: usize,
    /// How many messages the first turn has.
    pub(crate) first_messages: usize,
}

/// Returns a session of each agent, in a directory.
pub(crate) fn all(directory: &str) -> Vec<Sample> {
    vec![
        claude_code(directory),
        codex(directory),
        gemini_cli(directory),
        copilot_cli(directory),
        pi(directory),
        qwen_code(directory),
    ]
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// Returns the folder of a directory.
fn folder(directory: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    let name = directory.chars();
    name.map(|c| if is_plain(c) { c } else { '-' }).collect()
}

fn time(second: u32) -> String {
    format!("2026-10-03T09:15:{second:02}.250Z")
}

/// Returns a text that contains what must stay.
fn prompt(id: &str, directory: &str) -> String {
    format!("why is {directory}/log of \"sessionId\":\"{id}\" so long? {id}")
}

pub(crate) fn claude_code(directory: &str) -> Sample {
    let id = "5b1d6a52-7f3e-4c1f-9d51-0b6c2f9f4a10";
    let mut parent = Value::Null;
    let mut second = 0;
    let mut line = |kind: &str, more: Value| {
        second += 1;
        let uuid = format!("{second:08x}-0000-4000-8000-00000000c0de");
        let mut line = json!({"parentUuid": parent, "isSidechain": false, "type": kind,
            "uuid": uuid, "timestamp": time(second), "userType": "external", "cwd": directory,
            "sessionId": id, "version": "2.1.325"});
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        parent = json!(uuid);
        line
    };
    let reply = |message: &str, block: Value| {
        json!({"message": {"id": message, "type": "message", "role": "assistant", "model":
            "claude-sonnet-4-5", "content": [block], "usage": {"input_tokens": 20,
            "output_tokens": 7, "cache_read_input_tokens": 100}}})
    };
    let result = |call: &str, text: &str| {
        json!({"message": {"role": "user", "content": [{"tool_use_id": call, "type":
            "tool_result", "content": text}]}, "toolUseResult": {"stdout": text}})
    };
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}});
    let note = |kind: &str| json!({"type": kind, "operation": "enqueue", "sessionId": id});
    let text = lines(&[
        note("queue-operation"),
        line(
            "user",
            json!({"message": {"role": "user", "content": prompt(id, directory)}}),
        ),
        line(
            "attachment",
            json!({"attachment": {"type": "date", "date": "2026-10-03"}}),
        ),
        line(
            "assistant",
            reply(
                "msg_1",
                json!({"type": "thinking", "thinking": "Let me look.", "signature": "c2lnMQ=="}),
            ),
        ),
        line(
            "assistant",
            reply("msg_1", json!({"type": "text", "text": "I look."})),
        ),
        line("assistant", reply("msg_1", call("toolu_1"))),
        line("user", result("toolu_1", "log: 2 MB")),
        line(
            "assistant",
            reply("msg_2", json!({"type": "text", "text": "It has 2 MB."})),
        ),
        json!({"type": "last-prompt", "lastPrompt": "why", "sessionId": id}),
        note("queue-operation"),
        line(
            "user",
            json!({"message": {"role": "user", "content": "shorten it"}}),
        ),
        line("assistant", reply("msg_3", call("toolu_2"))),
        line("assistant", reply("msg_3", call("toolu_3"))),
        line("user", result("toolu_2", "a")),
        line("user", result("toolu_3", "b")),
        line(
            "assistant",
            reply("msg_4", json!({"type": "text", "text": "Done."})),
        ),
        json!({"type": "mode", "mode": "normal", "sessionId": id}),
    ]);
    Sample {
        agent: "claude-code",
        id,
        file: format!(".claude/projects/{}/{id}.jsonl", folder(directory)),
        text,
        first_turn: 9,
        first_messages: 6,
    }
}

pub(crate) fn codex(directory: &str) -> Sample {
    let id = "01a0fc11-9a00-7000-8000-00000000c0de";
    let turn = |n: u32| format!("01a0fc11-9b0{n}-7000-8000-00000000c0de");
    let mut second = 0;
    let mut line = |kind: &str, payload: Value| {
        second += 1;
        json!({"timestamp": time(second), "ordinal": second - 1, "type": kind, "payload": payload})
    };
    let own = |n: u32, item: Value| {
        let mut item = item;
        item["internal_chat_message_metadata_passthrough"] = json!({"turn_id": turn(n)});
        item
    };
    let said = |n: u32, role: &str, text: &str| {
        let kind = if role == "user" {
            "input_text"
        } else {
            "output_text"
        };
        own(
            n,
            json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
        )
    };
    let call = |n: u32, id: &str| {
        own(
            n,
            json!({"type": "function_call", "name": "exec_command",
        "arguments": "{\"cmd\":\"ls\"}", "call_id": id}),
        )
    };
    let output = |n: u32, id: &str| {
        own(
            n,
            json!({"type": "function_call_output", "call_id": id,
        "output": "log"}),
        )
    };
    let used = |n: u32, response: &str| {
        json!({"thread_id": id, "turn_id": turn(n), "session_id": id,
        "response_id": response, "usage": {"input_tokens": 120, "cached_input_tokens": 100,
        "output_tokens": 7, "reasoning_output_tokens": 2, "total_tokens": 127}})
    };
    let count = |n: u32| {
        let used = |n: u32| {
            json!({"input_tokens": 120 * n, "cached_input_tokens": 100 * n,
            "output_tokens": 7 * n, "reasoning_output_tokens": 2 * n, "total_tokens": 127 * n})
        };
        json!({"type": "token_count", "info": {"total_token_usage": used(n),
            "last_token_usage": used(1), "model_context_window": 258_400}})
    };
    let start = |n: u32| json!({"type": "task_started", "turn_id": turn(n)});
    let context = |n: u32| json!({"turn_id": turn(n), "cwd": directory, "model": "gpt-5.1-codex"});
    let end = |n: u32| json!({"type": "task_complete", "turn_id": turn(n)});
    let text = lines(&[
        line(
            "session_meta",
            json!({"session_id": id, "id": id, "timestamp": time(0), "cwd": directory,
            "originator": "codex_exec", "cli_version": "0.166.0", "source": "exec",
            "history_mode": "paginated"}),
        ),
        line("event_msg", start(1)),
        line(
            "response_item",
            said(1, "user", "<environment_context>\n</environment_context>"),
        ),
        line("turn_context", context(1)),
        line("response_item", said(1, "user", &prompt(id, directory))),
        line(
            "response_item",
            own(
                1,
                json!({"type": "reasoning", "id": "rs_1", "summary": [{"type":
            "summary_text", "text": "Let me look."}], "content": null, "encrypted_content": "RU5D"}),
            ),
        ),
        line("response_item", said(1, "assistant", "I look.")),
        line("response_item", call(1, "call_1")),
        line("token_usage_record", used(1, "resp_1")),
        line("response_item", output(1, "call_1")),
        line("event_msg", count(1)),
        line("response_item", said(1, "assistant", "It has 2 MB.")),
        line("token_usage_record", used(1, "resp_2")),
        line("event_msg", count(2)),
        line("event_msg", end(1)),
        line(
            "event_msg",
            json!({"type": "thread_settings_applied", "thread_id": id,
            "thread_settings": {"cwd": directory}}),
        ),
        line("event_msg", start(2)),
        line("turn_context", context(2)),
        line("response_item", said(2, "user", "shorten it")),
        line("response_item", call(2, "call_2")),
        line("response_item", call(2, "call_3")),
        line("token_usage_record", used(2, "resp_3")),
        line("response_item", output(2, "call_2")),
        line("response_item", output(2, "call_3")),
        line("event_msg", count(3)),
        line("response_item", said(2, "assistant", "Done.")),
        line("token_usage_record", used(2, "resp_4")),
        line("event_msg", count(4)),
        line("event_msg", end(2)),
    ]);
    Sample {
        agent: "codex",
        id,
        file: format!(".codex/sessions/2026/10/03/rollout-2026-10-03T09-15-00-{id}.jsonl"),
        text,
        first_turn: 15,
        first_messages: 7,
    }
}

pub(crate) fn gemini_cli(directory: &str) -> Sample {
    let id = "8e0d4f5a-33aa-4b0e-8a8c-6d1b2c3d4e5f";
    let user = |n: u32, text: &str| {
        json!({"id": format!("u{n}"), "timestamp": time(n), "type": "user",
        "content": [{"text": text}]})
    };
    let tokens =
        json!({"input": 120, "output": 7, "cached": 100, "thoughts": 2, "tool": 0, "total": 129});
    let reply = |n: u32, text: &str| {
        json!({"id": format!("g{n}"), "timestamp": time(n), "type": "gemini",
        "content": text, "thoughts": [{"subject": "Look", "description": "Let me look."}],
        "tokens": tokens, "model": "gemini-2.5-pro"})
    };
    let response = |id: &str| {
        json!({"functionResponse": {"id": id, "name": "read_file",
        "response": {"output": "log"}}})
    };
    let calls = |mut reply: Value, ids: &[&str]| {
        let call = |id: &&str| {
            json!({"id": id, "name": "read_file", "args": {"path": "log"},
            "result": [response(id)], "status": "success", "timestamp": time(9)})
        };
        reply["toolCalls"] = ids.iter().map(call).collect();
        reply
    };
    let answer = |n: u32, ids: &[&str]| {
        json!({"id": format!("r{n}"), "timestamp": time(n),
        "type": "user", "content": ids.iter().map(|id| response(id)).collect::<Vec<_>>()})
    };
    let updated = |n: u32| json!({"$set": {"lastUpdated": time(n)}});
    let context = user(1, "<session_context>\nToday.");
    let (first, second) = (reply(3, "I look."), reply(6, "It has 2 MB."));
    let (called, third) = (calls(first.clone(), &["c1"]), reply(12, "I shorten it."));
    let text = lines(&[
        json!({"sessionId": id, "projectHash": "ab12", "startTime": time(0), "lastUpdated": time(0),
            "kind": "main"}),
        json!({"$set": {"messages": [context], "lastUpdated": time(1)}}),
        user(2, &prompt(id, directory)),
        updated(2),
        first,
        called.clone(),
        answer(4, &["c1"]),
        updated(4),
        second.clone(),
        updated(6),
        // A resume in the same minute repeats the header as well.
        json!({"sessionId": id, "projectHash": "ab12", "startTime": time(0), "lastUpdated": time(6),
            "kind": "main"}),
        json!({"$set": {"sessionId": id}}),
        json!({"$set": {"messages": [context, user(2, &prompt(id, directory)), called, second]}}),
        user(11, "shorten it"),
        third.clone(),
        calls(third, &["c2", "c3"]),
        answer(13, &["c2", "c3"]),
        reply(14, "Done."),
        updated(14),
    ]);
    Sample {
        agent: "gemini-cli",
        id,
        file: ".gemini/tmp/proj/chats/session-2026-10-03T09-15-8e0d4f5a.jsonl".to_owned(),
        text,
        first_turn: 10,
        first_messages: 5,
    }
}

pub(crate) fn copilot_cli(directory: &str) -> Sample {
    let id = "3c9f0a71-22bb-4d55-9e11-a1b2c3d4e5f6";
    let mut second = 0;
    let mut parent = Value::Null;
    let mut line = |kind: &str, data: Value| {
        second += 1;
        let own = format!("{second:08x}-1111-4111-8111-00000000c0de");
        let line = json!({"type": kind, "data": data, "id": own, "timestamp": time(second),
            "parentId": parent});
        parent = json!(own);
        line
    };
    let request =
        |id: &str| json!({"toolCallId": id, "name": "bash", "arguments": {"command": "ls"}});
    let reply = |call: &str, text: &str, requests: Vec<Value>| {
        json!({"messageId": call, "model": "m-1",
        "content": text, "toolRequests": requests, "reasoningText": "Let me look.", "apiCallId": call})
    };
    let used = || {
        json!({"usage": {"model": "m-1", "inputTokens": 120, "outputTokens": 7,
        "cacheReadTokens": 100, "cacheWriteTokens": 0, "reasoningTokens": 2}})
    };
    let done = |id: &str| json!({"toolCallId": id, "success": true, "result": {"content": "log"}});
    let place = json!({"cwd": directory, "gitRoot": directory, "branch": "main"});
    let text = lines(&[
        line(
            "session.start",
            json!({"sessionId": id, "version": 1, "producer": "copilot-agent",
            "copilotVersion": "1.0.102", "startTime": time(0), "context": place}),
        ),
        line("user.message", json!({"content": prompt(id, directory)})),
        line("assistant.turn_start", json!({"turnId": "0"})),
        line("session.usage_record", used()),
        line(
            "assistant.message",
            reply("chatcmpl-1", "I look.", vec![request("call_1")]),
        ),
        line(
            "tool.execution_start",
            json!({"toolCallId": "call_1", "toolName": "bash"}),
        ),
        line("tool.execution_complete", done("call_1")),
        line("assistant.turn_end", json!({"turnId": "0"})),
        line("session.usage_record", used()),
        line(
            "assistant.message",
            reply("chatcmpl-2", "It has 2 MB.", vec![]),
        ),
        line("assistant.turn_end", json!({"turnId": "1"})),
        line("session.shutdown", json!({"shutdownType": "routine"})),
        line(
            "session.resume",
            json!({"resumeTime": time(30), "context": place}),
        ),
        line("user.message", json!({"content": "shorten it"})),
        line("session.usage_record", used()),
        line(
            "assistant.message",
            reply(
                "chatcmpl-3",
                "I shorten it.",
                vec![request("call_2"), request("call_3")],
            ),
        ),
        line("tool.execution_complete", done("call_2")),
        line("tool.execution_complete", done("call_3")),
        line("session.usage_record", used()),
        line("assistant.message", reply("chatcmpl-4", "Done.", vec![])),
        line("assistant.turn_end", json!({"turnId": "2"})),
    ]);
    Sample {
        agent: "copilot-cli",
        id,
        file: format!(".copilot/session-state/{id}/events.jsonl"),
        text,
        first_turn: 12,
        first_messages: 4,
    }
}

pub(crate) fn pi(directory: &str) -> Sample {
    let id = "01a0fc11-9c00-7000-8000-00000000c0de";
    let mut second = 0;
    let mut parent = Value::Null;
    let mut line = |message: Value| {
        second += 1;
        let own = format!("{second:08x}");
        let line = json!({"type": "message", "id": own, "parentId": parent, "timestamp": time(second),
            "message": message});
        parent = json!(own);
        line
    };
    let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1});
    let reply = |time: u32, blocks: Vec<Value>| {
        json!({"role": "assistant", "content": blocks, "api": "a",
        "provider": "p", "model": "m-1", "usage": {"input": 20, "output": 7, "cacheRead": 100,
        "cacheWrite": 0, "totalTokens": 127}, "stopReason": "stop", "timestamp": time})
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}});
    let result = |id: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "bash",
        "content": [{"type": "text", "text": "log"}], "isError": false, "timestamp": 3})
    };
    let think =
        json!({"type": "thinking", "thinking": "Let me look.", "thinkingSignature": "c2ln"});
    let text = lines(&[
        json!({"type": "session", "version": 3, "id": id, "timestamp": time(0), "cwd": directory}),
        line(user(&prompt(id, directory))),
        line(reply(11, vec![think, text("I look."), call("call_1")])),
        line(result("call_1")),
        line(reply(12, vec![text("It has 2 MB.")])),
        line(user("shorten it")),
        line(reply(13, vec![call("call_2"), call("call_3")])),
        line(result("call_2")),
        line(result("call_3")),
        line(reply(14, vec![text("Done.")])),
    ]);
    let folder = directory.trim_start_matches('/').replace('/', "-");
    Sample {
        agent: "pi",
        id,
        file: format!(".pi/agent/sessions/--{folder}--/2026-10-03T09-15-00-250Z_{id}.jsonl"),
        text,
        first_turn: 5,
        first_messages: 4,
    }
}

pub(crate) fn qwen_code(directory: &str) -> Sample {
    let id = "6f2a9b10-44cc-4e66-8f22-b1c2d3e4f5a6";
    let mut second = 0;
    let mut parent = Value::Null;
    let mut line = |kind: &str, more: Value| {
        second += 1;
        let uuid = format!("{second:08x}-2222-4222-8222-00000000c0de");
        let mut line = json!({"uuid": uuid, "parentUuid": parent, "sessionId": id,
            "timestamp": time(second), "type": kind, "cwd": directory, "version": "0.24.4"});
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        parent = json!(uuid);
        line
    };
    let user = |text: &str| json!({"message": {"role": "user", "parts": [{"text": text}]}});
    let reply = |parts: Vec<Value>| {
        json!({"model": "m-1", "message": {"role": "model", "parts": parts},
        "usageMetadata": {"promptTokenCount": 120, "candidatesTokenCount": 7,
        "cachedContentTokenCount": 100, "totalTokenCount": 127}})
    };
    let call =
        |id: &str| json!({"functionCall": {"id": id, "name": "shell", "args": {"command": "ls"}}});
    let result = |id: &str| {
        json!({"message": {"role": "user", "parts": [{"functionResponse": {"id": id,
        "name": "shell", "response": {"output": "log"}}}]}, "toolCallResult": {"callId": id,
        "status": "success"}})
    };
    let snapshot = || json!({"subtype": "attribution_snapshot", "systemPayload": {}});
    let text = lines(&[
        line("user", user(&prompt(id, directory))),
        line("system", snapshot()),
        line(
            "assistant",
            reply(vec![
                json!({"text": "Let me look.", "thought": true}),
                json!({"text": "I look."}),
                call("call_1"),
            ]),
        ),
        line("tool_result", result("call_1")),
        line("assistant", reply(vec![json!({"text": "It has 2 MB."})])),
        line("user", user("shorten it")),
        line("assistant", reply(vec![call("call_2"), call("call_3")])),
        line("tool_result", result("call_2")),
        line("tool_result", result("call_3")),
        line("assistant", reply(vec![json!({"text": "Done."})])),
    ]);
    Sample {
        agent: "qwen-code",
        id,
        file: format!(".qwen/projects/{}/chats/{id}.jsonl", folder(directory)),
        text,
        first_turn: 5,
        first_messages: 4,
    }
}
