//! A session that is written for a target is read back, by the reader of the target's own
//! sessions, to the same conversation. Every target whose sessions can be read is tried.

use backtrail::context::{HandOver, HandOverCall, HandOverContent, HandOverPart, ReplyPart};
use proptest::prelude::*;

use super::read_back::{
    answer_first, assistant, call, failed, hand_over, hard, image, readable_targets, said, text,
    user, write,
};

/// Returns what is wrong with any target.
fn check(hand_over: &HandOver) -> Result<(), String> {
    let check =
        |(target, _): (super::Target, _)| write(target.name(), hand_over.clone()).read_back().err();
    let wrong: Vec<_> = readable_targets().filter_map(check).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

fn check_all(contents: impl IntoIterator<Item = HandOverContent>) {
    check(&hand_over(contents)).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn every_target_but_one_has_a_reader() {
    let names: Vec<_> = readable_targets()
        .map(|(target, _)| target.name())
        .collect();
    let others = super::targets().filter(|target| !names.contains(&target.name()));
    let others: Vec<_> = others.map(|target| target.name()).collect();
    assert_eq!(others, ["openai-chat"]);
}

#[test]
fn a_hard_conversation_comes_back() {
    assert_eq!(check(&hard()), Ok(()));
    assert_eq!(check(&answer_first()), Ok(()));
}

#[test]
fn prompts_answers_and_calls_come_back() {
    check_all([
        user(vec![text("Fix the shop"), text("and the till")]),
        assistant(vec![
            said("I look first."),
            said("At two files."),
            call(
                "call_1",
                "Read",
                r#"{"file_path":"/work/shop/a.rs"}"#,
                vec![text("fn a() {}\n")],
            ),
            call(
                "call_2",
                "Bash",
                r#"{"command":"ls"}"#,
                vec![text("a.rs"), text("b.rs")],
            ),
            said("One more."),
            call("call_3", "Bash", r#"{"command":"true"}"#, vec![]),
        ]),
        assistant(vec![failed(call(
            "call_4",
            "Edit",
            r#"{"file_path":"a.rs","old_string":"a","new_string":"b"}"#,
            vec![text("no such text")],
        ))]),
        assistant(vec![said("Done.")]),
        user(vec![text("Thanks")]),
        user(vec![text("One thing more")]),
    ]);
}

#[test]
fn images_come_back_from_prompts_and_results() {
    check_all([
        user(vec![image(), text("What is this?"), image()]),
        assistant(vec![
            call("c1", "Read", r#"{"file_path":"a.png"}"#, vec![image()]),
            call(
                "c2",
                "Read",
                r#"{"file_path":"b.png"}"#,
                vec![text("two:"), image(), image()],
            ),
        ]),
        user(vec![image()]),
        assistant(vec![said("A picture.")]),
    ]);
}

#[test]
fn a_conversation_may_start_with_an_answer_and_end_anywhere() {
    let one = || call("c1", "Bash", r#"{"command":"ls"}"#, vec![text("a")]);
    check_all([assistant(vec![one()])]);
    check_all([
        assistant(vec![one(), said("and")]),
        user(vec![text("go on")]),
    ]);
    check_all([user(vec![text("hello")])]);
    check_all([user(vec![text("hello")]), assistant(vec![said("a"), one()])]);
}

#[test]
fn odd_texts_ids_and_inputs_come_back() {
    let long = "x".repeat(64);
    let odd = "\u{0}\u{1}\u{7f}\u{85}\u{2028}\u{feff}\u{fffd} \r\n\t\"\\ é 漢字 🛒";
    let output = "line\n".repeat(100_000);
    check_all([
        user(vec![text(odd)]),
        assistant(vec![
            said(odd),
            call(
                &long,
                &long,
                "{ \"a\" : 1.0,\n\"b\":[1e5,null,{\"c\":\"\\u00e9\"}] }",
                vec![text(odd)],
            ),
            failed(call("no-text", "my_tool", "{}", vec![])),
            call("big", "my-tool", r#"{"":""}"#, vec![text(&output)]),
        ]),
        assistant(vec![said(&output)]),
    ]);
}

#[test]
fn texts_that_an_agent_could_misread_come_back() {
    for prompt in [
        "/src/a.rs is broken",
        "? what is this",
        "  /help",
        "{\"a\":1}",
        "[1]",
        "<b>mine</b>",
        "$set",
    ] {
        check_all([user(vec![text(prompt)]), assistant(vec![said(prompt)])]);
    }
    for output in [
        r#"{"output":"x","metadata":{"exit_code":1}}"#,
        "aborted",
        "Exit code: 1\nWall time: 1",
        "null",
        "[]",
    ] {
        let one = || call("c1", "my_tool", "{}", vec![text(output)]);
        check_all([assistant(vec![one()]), user(vec![text("and?")])]);
        check_all([assistant(vec![failed(one())])]);
    }
}

/// Texts with at least one visible character, as all texts of messages have.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "\\PC{1,40}",
        2 => any::<String>(),
        1 => "[\\x00-\\x20\u{fffd}\u{2028}\"\\\\]{0,8}x[\\n\\r\\t ]{0,4}",
        1 => (1..2_000_usize).prop_map(|n| "long text ".repeat(n)),
    ]
    .prop_filter("a text is not blank", |text| !text.trim().is_empty())
}

fn any_part() -> impl Strategy<Value = HandOverPart> {
    prop_oneof![
        4 => any_text().prop_map(HandOverPart::Text),
        1 => Just(image()),
    ]
}

fn any_input() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::json!([{"content": "a", "status": "pending"}])),
    ];
    let name = prop_oneof![
        "command",
        "path",
        "file_path",
        "todos",
        "pattern",
        "\\PC{0,9}"
    ];
    let object = prop::collection::btree_map(name, value, 0..5);
    object.prop_map(|fields| serde_json::to_string(&fields).expect("a map is JSON"))
}

fn any_call() -> impl Strategy<Value = ReplyPart> {
    let name = prop_oneof![
        2 => "[a-zA-Z0-9_-]{1,64}",
        3 => prop::sample::select(vec!["Bash", "Read", "TodoWrite", "Grep", "exec_command"])
            .prop_map(str::to_owned),
    ];
    let output = prop::collection::vec(any_part(), 0..3);
    let made = (
        "[a-zA-Z0-9_-]{0,56}",
        name,
        any_input(),
        output,
        any::<bool>(),
    );
    made.prop_map(|(id, name, input, output, is_error)| {
        ReplyPart::Call(HandOverCall {
            id,
            name,
            input,
            output,
            is_error,
        })
    })
}

fn any_content() -> impl Strategy<Value = HandOverContent> {
    let reply = prop_oneof![any_text().prop_map(ReplyPart::Text), any_call()];
    let name = prop::option::of("[a-z0-9.-]{1,20}");
    prop_oneof![
        prop::collection::vec(any_part(), 1..4).prop_map(HandOverContent::User),
        (name, prop::collection::vec(reply, 1..6))
            .prop_map(|(model, parts)| HandOverContent::Assistant { model, parts }),
    ]
}

/// Makes the ids of calls unique.
fn with_ids(mut hand_over: HandOver) -> HandOver {
    let mut n = 0;
    for message in &mut hand_over.messages {
        if let HandOverContent::Assistant { parts, .. } = &mut message.content {
            for part in parts {
                if let ReplyPart::Call(call) = part {
                    n += 1;
                    call.id = format!("{}{n:08}", call.id);
                }
            }
        }
    }
    hand_over
}

/// Any conversation that can be handed over.
pub(super) fn any_hand_over() -> impl Strategy<Value = HandOver> {
    prop::collection::vec(any_content(), 1..8).prop_map(|contents| with_ids(hand_over(contents)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_conversation_comes_back(given in any_hand_over()) {
        prop_assert_eq!(check(&given), Ok(()));
    }
}
