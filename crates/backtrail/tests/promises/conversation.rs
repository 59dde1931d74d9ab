//! The reader of conversations: turns, calls with their results, and spending, from the
//! beginning, from the middle, from an undone turn and while the session grows.

use backtrail::conversation::{Conversation, Item};
use backtrail::{
    Block, Compaction, Draft, ForkOptions, Message, Note, Role, Session, SessionReader, ToolResult,
    ToolUse, Usage,
};
use proptest::prelude::*;

use crate::damage::lab::Lab;

fn begin(lab: &Lab) -> Session {
    lab.store.create_session(Default::default()).unwrap()
}

fn session_of<D: Into<Draft>>(lab: &Lab, drafts: impl IntoIterator<Item = D>) -> Session {
    let session = begin(lab);
    let results = session.append_batch(drafts.into_iter().map(Into::into));
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

fn user(blocks: impl IntoIterator<Item = Block>) -> Message {
    Message::new(Role::User, blocks)
}

fn tool(blocks: impl IntoIterator<Item = Block>) -> Message {
    Message::new(Role::Tool, blocks)
}

fn answer(text: &str) -> Message {
    Message::assistant([Block::text(text)])
}

fn items(conversation: Conversation) -> Vec<Item> {
    conversation.map(Result::unwrap).collect()
}

fn lines(conversation: Conversation) -> Vec<String> {
    items(conversation).iter().map(line).collect()
}

/// Writes an item as one short line.
fn line(item: &Item) -> String {
    let seq = item.seq();
    match item {
        Item::Prompt(prompt) => format!("{seq} prompt {}", prompt.text),
        Item::Injected(message) => format!("{seq} {} {}", message.role, message.text),
        Item::Reply(_) => format!("{seq} reply"),
        Item::Answer(answer) => format!("{seq} answer {}", answer.text),
        Item::Thinking(thinking) => format!("{seq} thinking {}", thinking.text),
        Item::ToolCall(call) => match &call.result {
            Some(result) => format!("{seq} {} -> {} {}", call.id, result.seq, result.text()),
            None => format!("{seq} {} unanswered", call.id),
        },
        Item::ToolResult(result) => {
            let call = result
                .call
                .map_or("no call".to_owned(), |seq| seq.to_string());
            format!("{seq} result of {} ({call})", result.id)
        }
        Item::Attachment(_) => format!("{seq} attachment"),
        Item::Spending(spending) => {
            let tokens = |response: &backtrail::conversation::Response| {
                response.usage.as_ref().map_or(0, Usage::total)
            };
            let already = spending.already.as_deref().map_or(0, tokens);
            format!("{seq} used {} - {already}", tokens(&spending.response))
        }
        Item::TurnEnd(turn) => format!("turn {} to {}", turn.first, turn.last),
        Item::Compaction(_) => format!("{seq} compaction"),
        Item::Note(note) => format!("{seq} note {:?}", note.changes),
        Item::Fork(_) => format!("{seq} fork"),
        Item::Moved(_) => format!("{seq} moved"),
        Item::Damage(damage) => format!("{seq} damage {} {}", damage.places, damage.is_at_end),
        other => format!("{seq} {other:?}"),
    }
}

#[test]
fn items_come_in_order_and_calls_with_their_results() {
    let lab = Lab::new();
    let meta = r#"{"role":"user","meta":true,"blocks":[{"type":"text","text":"a reminder"}]}"#;
    let session = session_of(
        &lab,
        [
            Message::system_text("be brief"),
            Message::user_text("what is here?"),
            Message::assistant([
                Block::thinking("hm"),
                call("t1"),
                Block::text("Let me look."),
                call("t2"),
            ])
            .usage(Usage::new(5, 1)),
            tool([ok("t2", "two"), ok("t9", "whose?")]),
            serde_json::from_str(meta).unwrap(),
            answer("Nearly."),
            user([Block::text("stop"), ok("t1", "cancelled")]),
            answer("Done."),
        ],
    );
    session.note(&Note::new().title("a look")).unwrap();
    session.compact(&Compaction::new("They looked.")).unwrap();
    session.append(answer("And on.")).unwrap();
    let expected = [
        "1 system be brief",
        "2 prompt what is here?",
        "3 reply",
        "3 thinking hm",
        "3 t1 -> 7 cancelled",
        "3 answer Let me look.",
        "3 t2 -> 4 two",
        "3 used 6 - 0",
        "4 result of t9 (no call)",
        "5 user a reminder",
        "6 answer Nearly.",
        "6 used 0 - 0",
        "turn 2 to 6",
        "7 prompt stop",
        "8 reply",
        "8 answer Done.",
        "8 used 0 - 0",
        r#"9 note [Title(Some("a look"))]"#,
        "turn 7 to 9",
        "10 compaction",
        "11 reply",
        "11 answer And on.",
        "11 used 0 - 0",
        "turn 10 to 11",
    ];
    assert_eq!(lines(session.reader().conversation().unwrap()), expected);
    let only_first = session.reader().turns(2, 6).unwrap();
    assert_eq!(lines(only_first), expected[1..13]);
    let last = session.reader().last_turns(1).unwrap();
    assert_eq!(lines(last), expected[13..]);
    assert_eq!(lines(session.reader().turns(0, 1).unwrap()), expected[..1]);
    for item in session.reader().conversation().unwrap() {
        let json = serde_json::to_value(item.unwrap()).unwrap();
        assert!(json["type"].is_string(), "{json}");
    }
}

#[test]
fn a_response_is_mentioned_once_and_again_only_if_it_grew() {
    let lab = Lab::new();
    let part = |id: &str, tokens: u64| {
        Draft::from(answer("part").usage(Usage::new(tokens, 0))).response_id(id)
    };
    let session = session_of(
        &lab,
        [
            Message::user_text("go").into(),
            part("r1", 1),
            part("r1", 4),
            part("r2", 10),
            Message::user_text("and on").into(),
            part("r1", 7),
            part("r2", 10),
        ],
    );
    let spending: Vec<String> = lines(session.reader().conversation().unwrap())
        .into_iter()
        .filter(|line| line.contains("used"))
        .collect();
    assert_eq!(
        spending,
        [
            "3 used 4 - 0",
            "4 used 10 - 0",
            "6 used 7 - 4",
            "7 used 10 - 10"
        ]
    );
    assert_eq!(session.reader().stats().unwrap().usage.total(), 17);
}

#[test]
fn a_fork_shows_where_it_begins_and_an_undone_turn_can_be_read() {
    let lab = Lab::new();
    let session = session_of(
        &lab,
        [
            Message::user_text("one"),
            answer("first"),
            Message::user_text("two"),
            answer("second"),
        ],
    );
    let fork = session.fork(&ForkOptions::new().at(2)).unwrap();
    fork.append(Message::user_text("another way")).unwrap();
    let found = lines(fork.reader().conversation().unwrap());
    assert_eq!(
        found[4..],
        [
            "turn 1 to 2",
            "2 fork",
            "3 prompt another way",
            "turn 3 to 3"
        ]
    );
    session.rewind_chat(2).unwrap();
    let undone = session.reader().turn_in_trail(0, 4).unwrap();
    assert_eq!(
        lines(undone),
        [
            "3 prompt two",
            "4 reply",
            "4 answer second",
            "4 used 0 - 0",
            "turn 3 to 4"
        ]
    );
}

#[test]
fn a_conversation_is_followed_without_waiting() {
    let lab = Lab::new();
    let session = session_of(
        &lab,
        [
            Message::user_text("go"),
            Message::assistant([call("t1")]),
            tool([ok("t1", "done")]),
        ],
    );
    let mut live = session.reader().follow_conversation().unwrap();
    let mut poll = || {
        let mut found = Vec::new();
        while let Some(item) = live.poll().unwrap() {
            found.push(line(&item));
        }
        found
    };
    let expected = [
        "1 prompt go",
        "2 reply",
        "2 t1 unanswered",
        "2 used 0 - 0",
        "3 result of t1 (2)",
    ];
    assert_eq!(poll(), expected);
    assert!(poll().is_empty());
    session.append(answer("more")).unwrap();
    assert_eq!(poll(), ["4 answer more", "4 used 0 - 0"]);
    session.rewind_chat(1).unwrap();
    session.append(answer("otherwise")).unwrap();
    let expected = [
        "turn 1 to 4",
        "1 moved",
        "2 reply",
        "2 answer otherwise",
        "2 used 0 - 0",
    ];
    assert_eq!(poll(), expected);
}

#[test]
fn damage_is_mentioned_where_it_is_and_at_the_end() {
    let lab = Lab::new();
    let session = session_of(&lab, (0..4).map(|n| answer(&format!("answer {n}"))));
    let id = session.id().clone();
    session.close().unwrap();
    let bytes = lab.bytes(&id, 0);
    let text = String::from_utf8(bytes)
        .unwrap()
        .replace("answer 1", "ANSWER 1");
    lab.put(&id, 0, format!("{text}garbage\n").as_bytes());
    let mut conversation = lab.reader(&id).conversation().unwrap();
    let found: Vec<String> = conversation
        .by_ref()
        .map(|item| line(&item.unwrap()))
        .filter(|line| line.contains("damage"))
        .collect();
    assert_eq!(found, ["3 damage 1 false", "4 damage 1 true"]);
    assert_eq!(conversation.damaged(), 2);
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = prop::sample::select(vec!["t1", "t2", "t3", "t4"]);
    prop_oneof![
        prop::sample::select(vec!["", "word", "another"]).prop_map(Block::text),
        id.clone().prop_map(call),
        (id, "[a-z]{0,3}").prop_map(|(id, output)| ok(id, &output)),
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

/// Returns items without estimates: what was said before the first record that is read
/// is not known.
fn without_estimates(mut items: Vec<Item>) -> Vec<Item> {
    for item in &mut items {
        if let Item::Spending(spending) = item {
            spending.response.estimated_tokens = 0;
        }
    }
    items
}

/// Returns where in a list each turn begins, with the record of its prompt.
fn turn_starts(items: &[Item]) -> Vec<(usize, u64)> {
    let prompts = items.iter().enumerate();
    prompts
        .filter(|(_, item)| matches!(item, Item::Prompt(_)))
        .map(|(at, item)| (at, item.seq()))
        .collect()
}

/// Counts the results that items have, with their calls and apart.
fn results(items: &[Item]) -> usize {
    let has_result = |item: &&Item| match item {
        Item::ToolCall(call) => call.result.is_some(),
        item => matches!(item, Item::ToolResult(_)),
    };
    items.iter().filter(has_result).count()
}

fn reads_alike(reader: &SessionReader, notes: u64) -> Result<(), TestCaseError> {
    let all = without_estimates(items(reader.conversation().unwrap()));
    let starts = turn_starts(&all);
    for (n, (at, seq)) in starts.iter().enumerate() {
        let tail = without_estimates(items(reader.turns(*seq, u64::MAX).unwrap()));
        prop_assert_eq!(&tail, &all[*at..], "from {}", seq);
        let last = without_estimates(items(reader.last_turns(starts.len() - n).unwrap()));
        prop_assert_eq!(&last, &tail);
        if let Some((end, next)) = starts.get(n + 1) {
            let turn = without_estimates(items(reader.turns(*seq, next - 1).unwrap()));
            prop_assert_eq!(&turn, &all[*at..*end], "{} to {}", seq, next);
        }
    }
    let survey = reader.survey(|_| {}).unwrap();
    let seqs: Vec<u64> = starts.iter().map(|(_, seq)| *seq).collect();
    prop_assert_eq!(survey.turns, seqs);
    let noted = all.iter().filter(|item| matches!(item, Item::Note(_)));
    prop_assert_eq!(noted.count() as u64, notes);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 96,
        ..ProptestConfig::default()
    })]

    #[test]
    fn reading_from_any_turn_is_the_tail_of_reading_from_the_start(
        messages in prop::collection::vec(any_message(), 0..30),
        noted in prop::collection::vec(0_usize..30, 0..4),
    ) {
        let lab = Lab::new();
        let session = begin(&lab);
        let mut notes = 0;
        for (n, message) in messages.into_iter().enumerate() {
            session.append(message).unwrap();
            if noted.contains(&n) {
                notes += 1;
                session.note(&Note::new().title(format!("title {n}"))).unwrap();
            }
        }
        reads_alike(&session.reader(), notes)?;
    }

    #[test]
    fn every_result_comes_once_with_its_call_or_apart(
        messages in prop::collection::vec(any_message(), 0..30),
    ) {
        let lab = Lab::new();
        let session = session_of(&lab, messages.clone());
        let found = items(session.reader().conversation().unwrap());
        let is_result = |block: &&Block| matches!(block, Block::ToolResult(_));
        let blocks = messages.iter().flat_map(|message| &message.blocks);
        prop_assert_eq!(results(&found), blocks.filter(is_result).count());
        // What waits is the same for all readers.
        let calls: Vec<_> = found.iter().filter_map(|item| match item {
            Item::ToolCall(call) => Some(call.clone()),
            _ => None,
        }).collect();
        let history: Vec<_> = session.reader().tool_calls().unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&calls, &history);
        let stats = session.reader().stats().unwrap();
        let open = calls.iter().filter(|call| call.result.is_none()).count() as u64;
        prop_assert_eq!((stats.tool_calls, stats.open_tool_calls), (calls.len() as u64, open));
    }

    #[test]
    fn results_meet_their_calls_in_every_order(
        order in Just(vec!["a", "b", "c", "d", "e"]).prop_shuffle(),
        together in prop::collection::vec(any::<bool>(), 5),
        last_with_prompt in any::<bool>(),
    ) {
        let lab = Lab::new();
        let calls = ["a", "b", "c", "d", "e"].map(call);
        let mut messages = vec![Message::user_text("go"), Message::assistant(calls)];
        for (id, together) in order.iter().zip(together) {
            let result = ok(id, id);
            match messages.last_mut() {
                Some(last) if together && last.role == Role::Tool => last.blocks.push(result),
                _ => messages.push(tool([result])),
            }
        }
        if last_with_prompt {
            let last = messages.pop().unwrap();
            messages.push(user(last.blocks.into_iter().chain([Block::text("next")])));
        }
        let session = session_of(&lab, messages);
        let found = lines(session.reader().conversation().unwrap());
        for id in ["a", "b", "c", "d", "e"] {
            let answered = found.iter().filter(|line| {
                line.starts_with(&format!("2 {id} -> ")) && line.ends_with(&format!(" {id}"))
            });
            prop_assert_eq!(answered.count(), 1, "{}: {:?}", id, &found);
        }
    }

    #[test]
    fn the_spending_of_items_adds_up_to_the_statistics(
        responses in prop::collection::vec((0_u64..6, 0_u64..50, any::<bool>()), 0..40),
    ) {
        let lab = Lab::new();
        let session = begin(&lab);
        for (id, tokens, prompts) in responses {
            if prompts {
                session.append(Message::user_text("go")).unwrap();
            }
            let message = answer("said").usage(Usage::new(tokens, 1));
            let draft = match id {
                0 => Draft::from(message),
                id => Draft::from(message).response_id(format!("r{id}")),
            };
            session.append(draft).unwrap();
        }
        let reader = session.reader();
        let (mut sum, mut mentioned) = (0_i64, 0_i64);
        for item in items(reader.conversation().unwrap()) {
            if let Item::Spending(spending) = item {
                let total = |response: &backtrail::conversation::Response| {
                    response.usage.as_ref().map_or(0, Usage::total) as i64
                };
                sum += total(&spending.response);
                sum -= spending.already.as_deref().map_or(0, total);
                mentioned += if spending.already.is_some() { 0 } else { 1 };
            }
        }
        let mut counted = 0;
        let survey = reader.survey(|_| counted += 1).unwrap();
        prop_assert_eq!(sum, survey.stats.usage.total() as i64);
        prop_assert_eq!(mentioned, counted);
        prop_assert_eq!(survey.stats.responses as i64, counted);
    }
}
