//! B2: prompts, answers and tool calls can be listed separately and together, in order,
//! and a tool call comes with its result.

use backtrail::conversation::{History, HistoryItem, ToolCall};
use backtrail::{
    Block, Draft, Json, Message, Role, Session, SessionReader, StoreOptions, ToolResult, ToolUse,
};
use backtrail_testkit::{Count, Fault, FaultyStorage, MemoryStorage};
use proptest::prelude::*;

use crate::damage::lab::Lab;

fn begin(lab: &Lab) -> Session {
    lab.store.create_session(Default::default()).unwrap()
}

/// Returns a session with these messages.
fn session_of(messages: impl IntoIterator<Item = Message>) -> Session {
    let session = begin(&Lab::new());
    let results = session.append_batch(messages.into_iter().map(Draft::from));
    assert!(results.iter().all(Result::is_ok));
    session
}

fn call(id: &str) -> Block {
    let input = serde_json::json!({"command": "ls"});
    ToolUse::new(id, "bash", &input).unwrap().into()
}

fn ok(id: &str, output: &str) -> Block {
    ToolResult::ok(output).answers(id, "bash").into()
}

fn failed(id: &str, output: &str) -> Block {
    ToolResult::error(output).answers(id, "bash").into()
}

fn user(blocks: impl IntoIterator<Item = Block>) -> Message {
    Message::new(Role::User, blocks)
}

fn tool(blocks: impl IntoIterator<Item = Block>) -> Message {
    Message::new(Role::Tool, blocks)
}

fn assistant(blocks: impl IntoIterator<Item = Block>) -> Message {
    Message::assistant(blocks)
}

/// Formats a history, one short line per item.
fn lines(history: History) -> Vec<String> {
    history.map(|item| line(&item.unwrap())).collect()
}

fn line(item: &HistoryItem) -> String {
    match item {
        HistoryItem::Prompt(prompt) => format!("{} prompt {}", prompt.seq, prompt.text),
        HistoryItem::Answer(answer) => format!("{} answer {}", answer.seq, answer.text),
        HistoryItem::ToolCall(call) => call_line(call),
        other => panic!("{other:?}"),
    }
}

fn call_line(call: &ToolCall) -> String {
    let outcome = call
        .result
        .as_ref()
        .map(|r| format!("{} {}", r.seq, r.text()));
    format!("{} {} {outcome:?} {:?}", call.seq, call.id, call.success)
}

fn calls(messages: impl IntoIterator<Item = Message>) -> Vec<String> {
    let session = session_of(messages);
    let calls = session.reader().tool_calls().unwrap();
    calls.map(|call| call_line(&call.unwrap())).collect()
}

#[test]
fn b2_prompts_answers_and_tool_calls_come_in_order_together_and_apart() {
    let session = session_of([
        Message::system_text("be brief"),
        Message::user_text("what is here?"),
        assistant([call("t1"), Block::text("Let me look."), call("t2")]),
        tool([ok("t2", "two")]),
        user([failed("t1", "one")]),
        assistant([Block::thinking("hm"), call("t3")]),
        user([Block::text("and"), Block::text("there?")]),
        assistant([Block::text("Done.")]),
    ]);
    let reader = session.reader();
    let expected = [
        "2 prompt what is here?",
        "3 answer Let me look.",
        r#"3 t1 Some("5 one") Some(false)"#,
        r#"3 t2 Some("4 two") Some(true)"#,
        "6 t3 None None",
        "7 prompt and\nthere?",
        "8 answer Done.",
    ];
    assert_eq!(lines(reader.history().unwrap()), expected);
    let prompts: Vec<_> = reader.prompts().unwrap().map(Result::unwrap).collect();
    assert_eq!((prompts[0].seq, prompts[1].seq), (2, 7));
    assert_eq!(prompts[0].text, "what is here?");
    let answers: Vec<_> = reader.answers().unwrap().map(Result::unwrap).collect();
    assert_eq!((answers.len(), answers[1].text.as_str()), (2, "Done."));
    let calls: Vec<_> = reader.tool_calls().unwrap().map(Result::unwrap).collect();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0].name, "bash");
    assert_eq!(calls[0].arguments.as_str(), r#"{"command":"ls"}"#);
    assert_eq!(
        calls[2].success, None,
        "a call without a result has none yet"
    );
    let records = reader.last_records(8).unwrap();
    assert_eq!(prompts[0].at, records[1].as_ref().at());
    let outcome = calls[0].result.as_ref().unwrap();
    assert_eq!(outcome.at, records[4].as_ref().at());
    assert!(outcome.at.is_some());
}

#[test]
fn b2_the_first_result_of_a_call_counts_and_others_answer_nothing() {
    let once = calls([
        assistant([call("t1")]),
        tool([ok("t1", "first"), failed("t1", "second")]),
        tool([ok("t1", "third"), ok("t9", "whose?")]),
    ]);
    assert_eq!(once, [r#"1 t1 Some("2 first") Some(true)"#]);
    let same_id = calls([
        assistant([call("t1"), call("t1")]),
        tool([ok("t1", "a")]),
        assistant([call("t1")]),
        tool([ok("t1", "b")]),
    ]);
    let expected = [
        r#"1 t1 Some("2 a") Some(true)"#,
        r#"1 t1 Some("4 b") Some(true)"#,
        "3 t1 None None",
    ];
    assert_eq!(same_id, expected);
}

#[test]
fn b2_a_prompt_ends_the_wait_for_a_result_but_may_bring_it_along() {
    let interrupted = calls([
        assistant([call("t1"), call("t2")]),
        user([Block::text("stop"), failed("t1", "cancelled")]),
        tool([ok("t2", "too late")]),
    ]);
    let expected = [r#"1 t1 Some("2 cancelled") Some(false)"#, "1 t2 None None"];
    assert_eq!(interrupted, expected);
}

#[test]
fn b2_messages_without_text_are_shown_as_what_they_are() {
    let image = Block::image("image/png", "aGk=").unwrap();
    let session = session_of([
        user([image]),
        user([]),
        assistant([Block::text("")]),
        Message::new(Role::from("narrator"), [Block::text("meanwhile")]),
        // A provider's own tools answer within the message.
        assistant([call("t1"), ok("t1", "found")]),
    ]);
    let expected = ["1 prompt ", r#"5 t1 Some("5 found") Some(true)"#];
    assert_eq!(lines(session.reader().history().unwrap()), expected);
}

#[test]
fn b2_output_of_any_shape_has_a_text() {
    let cases = [
        (r#""plain \u00e9 \ud83d""#, "plain é \u{fffd}"),
        (
            r#"[{"type":"text","text":"a"},{"type":"image","data":"aGk="},{"type":"text","text":"b"}]"#,
            "a\nb",
        ),
        (r#"[{"type":"hologram","data":"aGk="}]"#, ""),
        (r#"{"exit":0}"#, r#"{"exit":0}"#),
        (r#"[1,"a"]"#, r#"[1,"a"]"#),
        (r#"[{"text":"a"}]"#, r#"[{"text":"a"}]"#),
        ("null", "null"),
    ];
    for (output, text) in cases {
        let mut result = ToolResult::ok("").answers("t1", "bash");
        result.output = Json::new(output).unwrap();
        let session = session_of([assistant([call("t1")]), Message::tool_result(result)]);
        let call = session
            .reader()
            .tool_calls()
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let outcome = call.result.unwrap();
        assert_eq!(
            (outcome.output.as_str(), outcome.text().as_str()),
            (output, text)
        );
    }
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let mut result = ToolResult::ok("").answers("t1", "bash");
    result.output = Json::new(deep.clone()).unwrap();
    let session = session_of([assistant([call("t1")]), Message::tool_result(result)]);
    let call = session
        .reader()
        .tool_calls()
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(call.result.unwrap().text(), deep);
    assert!(session.reader().stats().unwrap().estimated_tokens > 2_500);
}

/// Returns a reader of a session with damage at its very end, which is only seen after
/// reading that far.
fn damaged_at_the_end(messages: Vec<Message>) -> SessionReader {
    let lab = Lab::new();
    let session = begin(&lab);
    session.append_batch(messages.into_iter().map(Draft::from));
    let id = session.id().clone();
    session.close().unwrap();
    let bytes = [lab.bytes(&id, 0), b"garbage\n".to_vec()].concat();
    lab.put(&id, 0, &bytes);
    lab.reader(&id)
}

#[test]
fn b2_a_history_is_returned_as_it_is_read_and_reports_what_it_skipped() {
    let mut messages = Vec::new();
    for n in 0..1_000 {
        let id = format!("t{n}");
        messages.push(Message::user_text("go"));
        messages.push(assistant([Block::text("going"), call(&id)]));
        messages.push(tool([ok(&id, "gone")]));
    }
    let reader = damaged_at_the_end(messages);
    let mut history = reader.history().unwrap();
    let begun: Vec<_> = history.by_ref().take(2_999).collect();
    assert_eq!((begun.len(), history.damaged()), (2_999, 0));
    assert_eq!(history.by_ref().count(), 1);
    assert_eq!(history.damaged(), 1);
    let mut prompts = reader.prompts().unwrap();
    assert!(prompts.nth(998).is_some() && prompts.damaged() == 0);
    assert_eq!((prompts.by_ref().count(), prompts.damaged()), (1, 1));
    let mut answers = reader.answers().unwrap();
    assert_eq!((answers.by_ref().count(), answers.damaged()), (1_000, 1));
    let mut calls = reader.tool_calls().unwrap();
    assert_eq!((calls.by_ref().count(), calls.damaged()), (1_000, 1));
}

#[test]
fn f25_a_call_that_is_never_answered_does_not_hold_up_a_long_history() {
    let mut messages = vec![assistant([call("lost")])];
    messages.extend((0..3_000).map(|_| assistant([Block::text("on and on")])));
    messages.push(tool([ok("lost", "a thousand messages too late")]));
    let reader = damaged_at_the_end(messages);
    let mut history = reader.history().unwrap();
    let first = history.next().unwrap().unwrap();
    assert_eq!(line(&first), "1 lost None None");
    assert_eq!(history.damaged(), 0, "it did not wait for the end");
    assert_eq!(history.count(), 3_000);
    let calls: Vec<_> = reader.tool_calls().unwrap().map(Result::unwrap).collect();
    assert_eq!(calls[0].success, None);
    let stats = reader.stats().unwrap();
    assert_eq!((stats.tool_calls, stats.open_tool_calls), (1, 1));
}

#[test]
fn b2_a_lost_payload_costs_its_words_and_not_the_message() {
    let lab = Lab::new();
    let session = begin(&lab);
    let long = "a long answer ".repeat(100_000);
    let said = [
        Block::text(long.as_str()),
        Block::text("in short"),
        call("t1"),
    ];
    session.append(assistant(said)).unwrap();
    session.append(tool([ok("t1", &long)])).unwrap();
    let reader = session.reader();
    let whole: Vec<_> = reader.history().unwrap().map(Result::unwrap).collect();
    let HistoryItem::Answer(answer) = &whole[0] else {
        panic!("{whole:?}");
    };
    assert!(answer.text.starts_with(&long));
    let path = reader.dir().join("payloads");
    lab.disk.write(&path, b"nothing of it\n").unwrap();
    let reader = lab.reader(session.id());
    let mut history = reader.history().unwrap();
    let left: Vec<_> = history.by_ref().map(Result::unwrap).collect();
    assert_eq!(line(&left[0]), "1 answer in short");
    assert_eq!((left.len(), history.damaged()), (2, 2));
    let HistoryItem::ToolCall(call) = &left[1] else {
        panic!("{left:?}");
    };
    assert_eq!(call.success, Some(true));
    let stats = reader.stats().unwrap();
    assert_eq!((stats.messages.total, stats.damaged), (2, 2));
}

#[test]
fn b2_nothing_waits_longer_than_it_must() {
    let on_and_on = || (0..100).map(|_| assistant([Block::text("on and on")]));
    // Items before an open call, and an open call before a prompt.
    let mut messages = vec![assistant([Block::text("Let me look."), call("lost")])];
    messages.extend(on_and_on());
    let reader = damaged_at_the_end(messages.clone());
    let mut history = reader.history().unwrap();
    assert_eq!(
        line(&history.next().unwrap().unwrap()),
        "1 answer Let me look."
    );
    assert_eq!(history.damaged(), 0);
    messages.insert(1, Message::user_text("stop"));
    let reader = damaged_at_the_end(messages);
    let mut calls = reader.tool_calls().unwrap();
    assert_eq!(
        call_line(&calls.next().unwrap().unwrap()),
        "1 lost None None"
    );
    assert_eq!(calls.damaged(), 0);
}

#[test]
fn an_error_of_the_disk_is_reported_once_and_ends_the_history() {
    let disk = FaultyStorage::new(MemoryStorage::new()).counting(Count::All);
    let store = StoreOptions::new()
        .storage(disk.clone())
        .open_or_create("/store")
        .unwrap();
    let session = store.create_session(Default::default()).unwrap();
    session.append(assistant([call("t1")])).unwrap();
    let long = "x".repeat(64 << 10);
    for _ in 0..100 {
        let text = Block::text(long.as_str());
        session.append(Message::new(Role::System, [text])).unwrap();
    }
    session.append(tool([ok("t1", "done")])).unwrap();
    let reader = session.reader();
    let mut history = reader.history().unwrap();
    // Far enough to read the call, but not its result.
    disk.arm(5, Fault::ErrorFrom(5));
    assert!(history.next().unwrap().is_err());
    assert!(disk.operations() > 5);
    assert!(
        history.next().is_none(),
        "whether it has a result is not known"
    );
    assert!(reader.stats().is_err());
    disk.disarm();
    assert_eq!(reader.history().unwrap().count(), 1);
}

#[test]
fn no_error_of_the_disk_makes_a_history_or_statistics_incomplete() {
    let memory = MemoryStorage::new();
    let disk = FaultyStorage::new(memory.clone()).counting(Count::All);
    let store = StoreOptions::new()
        .storage(disk.clone())
        .open_or_create("/store")
        .unwrap();
    let session = store.create_session(Default::default()).unwrap();
    let long = "a long answer ".repeat(100_000);
    session
        .append(assistant([Block::text(long), call("t1")]))
        .unwrap();
    session.append(tool([ok("t1", "done")])).unwrap();
    let read = || {
        let reader = store.read_session(session.id())?;
        let history: backtrail::Result<Vec<_>> = reader.history()?.collect();
        Ok::<_, backtrail::Error>((history?, reader.stats()?))
    };
    disk.arm(u64::MAX, Fault::Error(5));
    let whole = read().unwrap();
    let operations = disk.operations();
    assert!(operations > 10, "{operations}");
    for n in 0..operations {
        disk.arm(n, Fault::Error(5));
        if let Ok(found) = read() {
            assert_eq!(found, whole, "operation {n}");
        }
        assert!(disk.fired());
    }
}

/// A4: they implement serde.
#[test]
fn a4_items_of_the_history_come_back_from_their_json() {
    let session = session_of([
        Message::user_text("go"),
        assistant([Block::text("on"), call("t1"), call("t2")]),
        tool([failed("t1", "no")]),
    ]);
    for item in session.reader().history().unwrap() {
        let item = item.unwrap();
        let json = serde_json::to_string(&item).unwrap();
        assert_eq!(serde_json::from_str::<HistoryItem>(&json).unwrap(), item);
    }
}

/// The documented rule, without regard for memory: each result, in order, belongs to the
/// first call of its id that has none and that no prompt came after.
fn expected_calls(messages: &[Message]) -> Vec<String> {
    struct Made<'a>(u64, &'a ToolUse, Option<(u64, &'a ToolResult)>);
    let mut made: Vec<Made<'_>> = Vec::new();
    let mut turn = 0;
    for (seq, message) in (1..).zip(messages) {
        let is_prompt = message.role == Role::User
            && message
                .blocks
                .iter()
                .any(|b| !matches!(b, Block::ToolResult(_)));
        // Calls in a prompt come after its results.
        let mut blocks: Vec<&Block> = message.blocks.iter().collect();
        if is_prompt {
            blocks.sort_by_key(|block| matches!(block, Block::ToolUse(_)));
        }
        let before = made.len();
        for block in blocks {
            match block {
                Block::ToolUse(call) => made.push(Made(seq, call, None)),
                Block::ToolResult(result) => {
                    let waits = |m: &&mut Made<'_>| m.1.id == result.tool_use_id && m.2.is_none();
                    if let Some(call) = made[turn..].iter_mut().find(waits) {
                        call.2 = Some((seq, result));
                    }
                }
                _ => {}
            }
        }
        if is_prompt {
            turn = before;
        }
    }
    let line = |Made(seq, call, result): &Made<'_>| {
        let outcome = result.map(|(seq, r)| format!("{seq} {}", r.output_text().unwrap()));
        let success = result.map(|(_, r)| !r.is_error);
        format!("{seq} {} {outcome:?} {success:?}", call.id)
    };
    made.iter().map(line).collect()
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = prop::sample::select(vec!["t1", "t2", "t3", "t4"]);
    prop_oneof![
        prop::sample::select(vec!["", " ", "word", "another"]).prop_map(Block::text),
        id.clone().prop_map(call),
        (id.clone(), "[a-z]{0,3}").prop_map(|(id, output)| ok(id, &output)),
        (id, "[a-z]{0,3}").prop_map(|(id, output)| failed(id, &output)),
        Just(Block::thinking("hm")),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let roles = vec![
        "user",
        "assistant",
        "assistant",
        "tool",
        "system",
        "narrator",
    ];
    let blocks = prop::collection::vec(any_block(), 0..4);
    (prop::sample::select(roles), blocks)
        .prop_map(|(role, blocks)| Message::new(Role::from(role), blocks))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// B2: separate lists and the combined one agree, and the statistics count them.
    #[test]
    fn b2_the_queries_apart_are_the_history_filtered(
        messages in prop::collection::vec(any_message(), 0..30),
    ) {
        let session = session_of(messages.clone());
        let reader = session.reader();
        let all: Vec<HistoryItem> = reader.history().unwrap().map(Result::unwrap).collect();
        let (mut prompts, mut answers, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for item in &all {
            match item {
                HistoryItem::Prompt(prompt) => prompts.push(prompt.clone()),
                HistoryItem::Answer(answer) => answers.push(answer.clone()),
                HistoryItem::ToolCall(call) => calls.push(call.clone()),
                other => panic!("{other:?}"),
            }
        }
        let apart: Vec<_> = reader.prompts().unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&apart, &prompts);
        let apart: Vec<_> = reader.answers().unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&apart, &answers);
        let apart: Vec<_> = reader.tool_calls().unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&apart, &calls);
        let lines: Vec<_> = calls.iter().map(call_line).collect();
        prop_assert_eq!(lines, expected_calls(&messages));
        let seqs: Vec<u64> = all.iter().map(seq).collect();
        prop_assert!(seqs.is_sorted(), "{:?}", seqs);

        let stats = reader.stats().unwrap();
        let count = |success| calls.iter().filter(|c| c.success == success).count() as u64;
        prop_assert_eq!(stats.messages.total, messages.len() as u64);
        prop_assert_eq!(stats.turns, prompts.len() as u64);
        prop_assert_eq!(stats.messages.answers, answers.len() as u64);
        prop_assert_eq!(stats.tool_calls, calls.len() as u64);
        prop_assert_eq!(stats.failed_tool_calls, count(Some(false)));
        prop_assert_eq!(stats.open_tool_calls, count(None));
    }
}

fn seq(item: &HistoryItem) -> u64 {
    match item {
        HistoryItem::Prompt(prompt) => prompt.seq,
        HistoryItem::Answer(answer) => answer.seq,
        HistoryItem::ToolCall(call) => call.seq,
        other => panic!("{other:?}"),
    }
}
