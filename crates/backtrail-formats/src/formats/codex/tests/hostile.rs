//! Nothing that a file says does harm, and reading on tells the same as reading whole.

use proptest::prelude::*;

use super::*;

/// Makes a rollout with a record of every kind.
fn all_kinds() -> Rollout {
    let mut rollout =
        Rollout::new(json!({"forked_from_id": PARENT, "timestamp": "2026-01-01T00:00:00Z"}));
    rollout.add("session_meta", json!({"id": PARENT}));
    rollout
        .turn(STARTED - 5)
        .user("theirs")
        .agent("theirs")
        .count(100, 100);
    rollout.turn(STARTED + 5).user("one").user_event("one");
    rollout.event(json!({"type": "agent_reasoning", "text": "hm"}));
    rollout.item(
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}],
        "content": [{"type": "reasoning_text", "text": "raw"}], "encrypted_content": "AA"}),
    );
    rollout.item(
        json!({"type": "function_call", "name": "shell", "arguments": "{\"a\":1}", "call_id": "c"}),
    );
    rollout.item(json!({"type": "function_call_output", "call_id": "c",
        "output": "{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}"}));
    rollout.item(json!({"type": "custom_tool_call_output", "call_id": "c",
        "output": [{"type": "input_image", "image_url": "data:image/png;base64,QQ=="}]}));
    rollout.item(json!({"type": "image_generation_call", "id": "i", "revised_prompt": "p", "result": "QQ=="}));
    rollout.item(
        json!({"type": "agent_message", "author": "a", "recipient": "b",
        "content": [{"type": "encrypted_content", "encrypted_content": "x"}]}),
    );
    let item = json!({"type": "AgentMessage", "content": [{"type": "Text", "text": "1"}]});
    rollout.event(json!({"type": "item_completed", "turn_id": "t", "item": item}));
    rollout.agent("1").count(300, 200);
    rollout.add(
        "token_usage_record",
        json!({"thread_id": THREAD, "response_id": "r",
        "usage": {"input_tokens": 5}, "thread_token_usage": {"input_tokens": 305}}),
    );
    rollout.add(
        "compacted",
        json!({"message": "", "compaction_response_id": "r",
        "replacement_history": [{"type": "message", "role": "user", "content": []}]}),
    );
    rollout
        .user("two")
        .event(json!({"type": "thread_rolled_back", "num_turns": 1}));
    rollout.event(json!({"type": "thread_name_updated", "thread_name": "n"}));
    rollout.add("world_state", json!({"full": true}));
    rollout
}

/// Returns the value with each of its parts replaced by something wrong.
fn spoiled(value: &Value) -> Vec<Value> {
    let deep =
        serde_json::from_str::<Value>(&format!("{}1{}", "[".repeat(90), "]".repeat(90))).unwrap();
    let wrong = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!("x"),
        json!([[]]),
        json!({"type": {}}),
        deep,
    ];
    let mut all = wrong.to_vec();
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                for new in spoiled(inner) {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), new);
                    all.push(Value::Object(fields));
                }
                let mut fields = fields.clone();
                fields.remove(name);
                all.push(Value::Object(fields));
            }
        }
        Value::Array(list) => {
            for (at, inner) in list.iter().enumerate() {
                for new in spoiled(inner) {
                    let mut list = list.clone();
                    list[at] = new;
                    all.push(Value::Array(list));
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn a_wrong_type_anywhere_costs_no_more_than_its_record() {
    let rollout = all_kinds();
    let mut tried = 0;
    for at in 0..rollout.lines.len() {
        let line: Value = serde_json::from_str(&rollout.lines[at]).unwrap();
        for wrong in spoiled(&line) {
            let mut spoiled = Rollout {
                lines: rollout.lines.clone(),
                ..Rollout::default()
            };
            spoiled.lines[at] = wrong.to_string();
            spoiled.user("the last");
            let read = spoiled.read();
            let last = read.talk().pop().unwrap();
            assert!(
                last == "user: the last" || last == "user(meta): the last",
                "{wrong}"
            );
            tried += 1;
        }
    }
    assert!(tried > 1_500, "{tried}");
}

#[test]
fn deep_nesting_lone_surrogates_and_huge_numbers_do_no_harm() {
    let mut rollout = Rollout::plain();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for value in [
        deep.as_str(),
        objects.as_str(),
        "\"\\ud800\"",
        "1e999999",
        "123456789012345678901234567890",
    ] {
        for kind in [
            "session_meta",
            "response_item",
            "event_msg",
            "compacted",
            "turn_context",
        ] {
            rollout.raw(format!(r#"{{"type":"{kind}","payload":{value}}}"#));
            for name in [
                "content",
                "output",
                "arguments",
                "summary",
                "info",
                "item",
                "message",
                "turn_id",
                "replacement_history",
            ] {
                for of in [
                    "message",
                    "function_call",
                    "function_call_output",
                    "reasoning",
                    "token_count",
                    "item_completed",
                ] {
                    rollout.raw(format!(r#"{{"ordinal":{value},"type":"{kind}","payload":{{"type":"{of}","role":"user","{name}":{value}}}}}"#));
                }
            }
        }
    }
    rollout.raw("{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"caf\u{fffd}\"}}");
    rollout.user("the last");
    assert_eq!(rollout.read().talk().pop().unwrap(), "user: the last");
}

#[test]
fn invalid_bytes_and_nul_blocks_cost_only_their_line() {
    let mut bytes = Rollout::plain().user("one").text().into_bytes();
    bytes.extend_from_slice(&[0; 4_096]);
    bytes.extend_from_slice(b"{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"tw\xff\"}}\n");
    bytes.extend_from_slice(b"{\"type\":\"respo\n");
    bytes.extend_from_slice(Rollout::plain().user("three").text().as_bytes());
    let read = read(Path::new("x"), &bytes);
    assert_eq!(
        read.talk(),
        ["user: one", "user: tw\u{fffd}", "user: three"]
    );
    assert_eq!(read.report.damage.count, 2);
}

#[test]
fn keys_are_unique_whatever_the_numbers_are() {
    let mut rollout = Rollout::plain();
    let ordinals = [5, 5, 4, 6, u64::MAX - 1, 7, 7, 1_000_000_000_000, 0, 8];
    for ordinal in ordinals {
        rollout.ordinal = Some(ordinal);
        rollout.user("same");
    }
    let read = rollout.read();
    let keys: std::collections::BTreeSet<_> = read.events().iter().map(Event::key).collect();
    assert_eq!(keys.len(), 10);
    assert!(keys.contains("000000000005") && keys.contains("000000000008"));
}

#[test]
fn unknown_types_are_counted() {
    let mut rollout = Rollout::plain();
    rollout
        .add("new_thing", json!({}))
        .event(json!({"type": "new_event"}));
    rollout
        .item(json!({"type": "new_item"}))
        .raw("{}")
        .raw("{\"a\":1}");
    let report = rollout.read().report;
    let kinds: Vec<_> = report
        .unknown
        .iter()
        .map(|(kind, n)| (kind.as_str(), *n))
        .collect();
    let expected = [
        ("(no type)", 2),
        ("event_msg/new_event", 1),
        ("new_thing", 1),
        ("response_item/new_item", 1),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn an_empty_file_has_no_events() {
    for text in ["", "\n", "{\"timest"] {
        let read = read(Path::new("x"), text.as_bytes());
        assert!(
            read.collected.threads.is_empty() && read.report.damage.count == 0,
            "{text:?}"
        );
    }
}

#[test]
fn resuming_is_the_same_at_every_byte() {
    let rollout = all_kinds();
    let whole = rollout.read();
    assert!(whole.events().len() > 10);
    for cut in 0..rollout.text().len() {
        assert!(
            rollout.read_in_parts(&[cut]) == whole.collected,
            "cut at {cut}"
        );
    }
}

/// Adds something to a rollout.
type Step = (u8, u8);

fn build(kind: u8, steps: &[Step]) -> Rollout {
    let head = match kind % 5 {
        0 => json!({}),
        1 => json!({"forked_from_id": PARENT}),
        2 => json!({"parent_thread_id": PARENT, "subagent_history_start_ordinal": 9}),
        3 => json!({"history_base": {"thread_id": PARENT, "end_ordinal_exclusive": 3}}),
        _ => json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}}}),
    };
    let mut rollout = Rollout::new(head);
    if kind.is_multiple_of(3) {
        rollout.ordinal = Some(1);
    }
    let mut total = 0;
    for (step, n) in steps {
        let text = format!("{}", n % 4);
        match step % 16 {
            0 | 1 => rollout.user(&text),
            2 => rollout.agent(&text),
            3 => rollout.user_event(&text),
            4 => rollout.agent_event(&text),
            5 => rollout.event(json!({"type": "agent_reasoning", "text": text})),
            6 if *n < 40 => rollout.item(json!({"type": "reasoning", "summary": [text]})),
            6 => rollout.pause(1_500),
            7 | 8 => {
                total += u64::from(*n);
                rollout.count(total, u64::from(*n))
            }
            9 => rollout.event(json!({"type": "thread_rolled_back", "num_turns": n % 4})),
            10 => rollout.turn(STARTED + i64::from(*n) - 128),
            11 => rollout.item(
                json!({"type": "function_call", "name": text, "arguments": "{}", "call_id": text}),
            ),
            12 => rollout
                .item(json!({"type": "function_call_output", "call_id": text, "output": text})),
            13 => rollout.add(
                "compacted",
                json!({"message": text, "compaction_response_id": text}),
            ),
            14 => rollout.add(
                "token_usage_record",
                json!({"response_id": text, "usage": {"input_tokens": n}}),
            ),
            _ => rollout.raw(if n % 2 == 0 { "{\"half" } else { "" }),
        };
    }
    rollout
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn resuming_gives_the_same_events_as_reading_from_the_beginning(
        kind in any::<u8>(),
        steps in prop::collection::vec(any::<Step>(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let rollout = build(kind, &steps);
        let len = rollout.text().len();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(len + 1)).collect();
        cuts.sort_unstable();
        let whole = rollout.read();
        prop_assert_eq!(rollout.read_in_parts(&cuts), whole.collected);
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut text = Rollout::plain().text().into_bytes();
        text.extend_from_slice(&bytes);
        read(Path::new("x"), &text);
        read(Path::new("x"), &bytes);
        Codex.recognises(&Source::from_bytes("x", bytes));
    }
}
