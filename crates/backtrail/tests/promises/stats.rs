//! B1: statistics count messages, tool calls, time, tokens and cost, each thing once, and
//! estimates apart.

use std::time::Duration;

use backtrail::conversation::{Stats, format_duration};
use backtrail::{
    Block, Draft, ForkOptions, Message, Note, Role, Session, SessionId, Timestamp, ToolResult,
    ToolUse, Usage,
};

use crate::damage::lab::{Lab, forge, lines};

const NOON: i64 = 1_794_744_000_000;

/// Returns the moment that many milliseconds after noon.
fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(NOON + ms).unwrap()
}

fn begin(lab: &Lab) -> Session {
    lab.store.create_session(Default::default()).unwrap()
}

fn say(session: &Session, drafts: impl IntoIterator<Item = Draft>) {
    for draft in drafts {
        session.append(draft).unwrap();
    }
}

/// Returns the statistics of a session with these messages.
fn stats_of(drafts: impl IntoIterator<Item = Draft>) -> Stats {
    let session = begin(&Lab::new());
    say(&session, drafts);
    session.reader().stats().unwrap()
}

fn prompt(text: &str) -> Draft {
    Message::user_text(text).into()
}

fn answer(text: &str) -> Draft {
    Message::assistant([Block::text(text)]).into()
}

fn measured(text: &str, usage: Usage) -> Draft {
    Message::assistant_with_usage([Block::text(text)], usage).into()
}

fn call(id: &str, input: &serde_json::Value) -> Block {
    ToolUse::new(id, "bash", input).unwrap().into()
}

fn result(id: &str, output: &str) -> Draft {
    Message::tool_result(ToolResult::ok(output).answers(id, "bash")).into()
}

/// Puts a session in place whose records have these fronts.
fn planted(fronts: &[&str]) -> (Lab, SessionId) {
    let lab = Lab::new();
    let id: SessionId = "planted".parse().unwrap();
    let mut trail = forge::trail(&id, 0, "start", None, 0);
    for front in fronts {
        let prev = forge::sum(lines(&trail).last().unwrap());
        trail.extend_from_slice(&forge::line(front.as_bytes(), &prev));
    }
    lab.plant(&id, &[&trail]);
    (lab, id)
}

#[test]
fn b1_statistics_count_what_was_said_and_done() {
    let session = begin(&Lab::new());
    let ls = serde_json::json!({"command": "ls"});
    let both = [
        Block::text("Let me look."),
        call("t1", &ls),
        call("t2", &ls),
    ];
    let failed = ToolResult::error("no such file").answers("t2", "bash");
    let stranger = Role::from("narrator");
    say(
        &session,
        [
            Draft::from(Message::system_text("be brief")).at(at(0)),
            prompt("what is here?").at(at(1_000)),
            Draft::from(Message::assistant(both)).model("m-2"),
            result("t1", "src"),
            Message::new(Role::User, [Block::from(failed)]).into(),
            Draft::from(Message::assistant([call("t3", &ls)])).model("m-1"),
            Message::new(stranger, [Block::text("meanwhile")]).into(),
            prompt("never mind").at(at(9_000)),
            Draft::from(Message::assistant([Block::text(" \n")])).model("m-1"),
            answer("Done.").at(at(10_000)),
        ],
    );
    let stats = session.reader().stats().unwrap();
    assert_eq!(stats.started_at, Some(at(0)));
    assert_eq!(stats.last_at, Some(at(10_000)));
    let counts = &stats.messages;
    assert_eq!(counts.total, 10);
    let by_role = [
        counts.system,
        counts.user,
        counts.assistant,
        counts.tool,
        counts.other,
    ];
    assert_eq!(by_role, [1, 3, 4, 1, 1]);
    assert_eq!((counts.prompts, counts.answers, stats.turns), (2, 2, 2));
    assert_eq!(stats.tool_calls, 3);
    assert_eq!((stats.failed_tool_calls, stats.open_tool_calls), (1, 1));
    assert_eq!(stats.responses, 4);
    assert_eq!(stats.models, ["m-1", "m-2"]);
    assert_eq!((stats.compactions, stats.damaged), (0, 0));
}

#[test]
fn b1_a_session_in_which_nothing_was_said_has_a_start() {
    let session = begin(&Lab::new());
    let stats = session.reader().stats().unwrap();
    let created_at = session.reader().info().unwrap().created_at;
    assert!(created_at.is_some());
    let expected = Stats::default();
    assert_eq!(stats.started_at, created_at);
    assert_eq!(stats.last_at, None);
    assert_eq!(stats.cost_usd, None);
    assert_eq!(stats.messages, expected.messages);
}

#[test]
fn b1_time_spent_is_the_durations_given_else_the_span_of_each_turn() {
    let timed = [
        prompt("a").at(at(0)),
        answer("b").duration_ms(1_200).at(at(5_000)),
        result("t", "c").duration_ms(300).at(at(6_000)),
    ];
    let stats = stats_of(timed.clone());
    assert_eq!(stats.time_spent_ms, 1_500);
    assert!(!stats.time_has_spans, "every turn has a duration");
    let untimed = [
        prompt("d").at(at(100_000)),
        answer("e").at(at(104_000)),
        answer("f").at(at(107_000)),
    ];
    let stats = stats_of(timed.into_iter().chain(untimed));
    assert_eq!(stats.time_spent_ms, 1_500 + 7_000, "not the pause between");
    assert!(stats.time_has_spans);
    assert_eq!(stats.time_spent(), Duration::from_millis(8_500));
}

#[test]
fn b1_no_clock_makes_time_run_backwards_and_no_pause_counts_as_work() {
    let stats = stats_of([
        answer("a greeting").at(at(-60_000)),
        prompt("a").at(at(9_000)),
        answer("the clock was set back").at(at(2_000)),
        prompt("a lonely prompt").at(at(50_000)),
    ]);
    assert_eq!((stats.time_spent_ms, stats.time_has_spans), (0, false));
    let session = begin(&Lab::new());
    say(&session, [prompt("a").at(at(0)), answer("b").at(at(40))]);
    session.note(&Note::new().title("days later")).unwrap();
    let stats = session.reader().stats().unwrap();
    assert_eq!(stats.time_spent_ms, 40, "a note answers nothing");
}

#[test]
fn b1_durations_read_as_people_say_them() {
    let cases = [
        (0, "0s"),
        (999, "0s"),
        (1_000, "1s"),
        (42_999, "42s"),
        (59_999, "59s"),
        (60_000, "1m 0s"),
        (187_000, "3m 7s"),
        (3_599_999, "59m 59s"),
        (3_600_000, "1h 0m"),
        (7_500_000, "2h 5m"),
        (93_600_000, "26h 0m"),
    ];
    for (ms, expected) in cases {
        assert_eq!(format_duration(Duration::from_millis(ms)), expected);
    }
    assert_eq!(format_duration(Duration::MAX), "5124095576030431h 0m");
}

#[test]
fn b1_tokens_are_measured_where_usage_is_known_and_never_mixed_with_estimates() {
    let usage = Usage::new(10, 4).cache_read(2).reasoning(3);
    let stats = stats_of([prompt("12345678"), measured("1234", usage.clone())]);
    assert_eq!((stats.usage.total(), stats.estimated_tokens), (16, 0));
    assert_eq!(stats.usage, usage);

    // 2 for the prompt, and 2 for the answer: five bytes are rounded up.
    let stats = stats_of([prompt("12345678"), answer("12345")]);
    assert_eq!((stats.usage.total(), stats.estimated_tokens), (0, 4));

    let stats = stats_of([
        prompt("12345678"),
        measured("1234", usage.clone()),
        prompt("1234"),
        answer("1234"),
        prompt("123"),
    ]);
    assert_eq!(stats.usage, usage);
    assert_eq!(stats.estimated_tokens, 1 + 1 + 1, "the last has no answer");
}

#[test]
fn b1_an_estimate_counts_text_and_no_media() {
    let image = Block::image("image/png", "aGk=".repeat(1_000)).unwrap();
    let asked = [Block::text("1234"), image];
    let input = serde_json::json!({"a": 1});
    let said = [
        Block::signed_thinking("12345678", "a long signature"),
        Block::text("1234"),
        call("t1", &input),
    ];
    let output = r#"[{"type":"text","text":"1234"},{"type":"image","source":{"data":"aGk="}},{"type":"text","text":"567"}]"#;
    let parts = format!(
        r#"{{"type":"message","message":{{"role":"tool","blocks":[{{"type":"tool_result","tool_use_id":"t1","output":{output}}}]}}}}"#
    );
    let json = r#"{"type":"message","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t1","output":[1,{"a":2}]}]}}"#;
    let stats = stats_of([
        Message::new(Role::User, asked).into(),
        Message::assistant(said).into(),
        Draft::from_json(&parts).unwrap(),
        Draft::from_json(json).unwrap(),
        result("t1", "12345\n78"),
    ]);
    // `{"a":1}` has 7 bytes, the two texts with a line break 8, `[1,{"a":2}]` 11.
    let answered = (8 + 4 + 7_u64).div_ceil(4);
    assert_eq!(stats.estimated_tokens, 1 + answered + 2 + 3 + 2);
}

#[test]
fn f24_a_response_in_several_records_counts_once_with_its_last_usage() {
    let part = |draft: Draft| draft.response_id("r1").duration_ms(700).cost_usd(0.5);
    let ls = serde_json::json!({});
    let asks = Message::assistant_with_usage([call("t1", &ls)], Usage::new(10, 1));
    let stats = stats_of([
        prompt("go").at(at(0)),
        answer("thinking aloud").response_id("r1"),
        part(asks.into()),
        result("t1", "12345678"),
        part(measured("more", Usage::new(10, 7))),
        answer("the end of it").response_id("r1"),
        measured("Done.", Usage::new(20, 5)).response_id("r2"),
    ]);
    assert_eq!(stats.usage, Usage::new(30, 12));
    assert_eq!(stats.estimated_tokens, 0, "r1 and r2 were measured");
    assert_eq!(stats.time_spent_ms, 700);
    assert_eq!(stats.cost_usd, Some(0.5));
    assert_eq!((stats.responses, stats.responses_without_cost), (2, 1));
    assert_eq!(stats.messages.assistant, 5);
}

#[test]
fn b1_what_comes_in_the_midst_of_a_response_is_read_by_the_next() {
    let stats = stats_of([
        measured("a", Usage::new(1, 1)).response_id("r1"),
        result("t1", "12345678"),
        answer("b").response_id("r1"),
        answer("1234").response_id("r2"),
    ]);
    assert_eq!(stats.estimated_tokens, 2 + 1);
}

#[test]
fn f24_a_response_that_is_repeated_much_later_is_not_counted_again() {
    let session = begin(&Lab::new());
    let one = |n: u64| measured("x", Usage::new(1, 0)).response_id(format!("r{n}"));
    session.append_batch((0..3_000).map(one));
    session.append_batch((0..3_000).map(one));
    let stats = session.reader().stats().unwrap();
    assert_eq!((stats.usage.total(), stats.responses), (3_000, 3_000));
}

#[test]
fn b1_cost_is_what_providers_report_and_unknown_cost_is_reported() {
    assert_eq!(stats_of([prompt("a"), answer("b")]).cost_usd, None);
    let stats = stats_of([
        prompt("a"),
        answer("b").cost_usd(0.25),
        answer("c").cost_usd(0.0),
        answer("d"),
        result("t", "a search that costs").cost_usd(0.5),
    ]);
    assert_eq!(stats.cost_usd, Some(0.75));
    assert_eq!((stats.responses, stats.responses_without_cost), (4, 1));
    let stats = stats_of([answer("b").cost_usd(f64::MAX), answer("c").cost_usd(1e308)]);
    assert_eq!(stats.cost_usd, Some(f64::MAX));
}

const SAID: [&str; 3] = [
    r#"{"type":"message","seq":1,"at":"2026-11-15T08:00:00.000Z","id":"a","message":{"role":"user","blocks":[{"type":"text","text":"fix it"}]}"#,
    r#"{"type":"message","seq":2,"at":"2026-11-15T08:00:02.000Z","id":"b","model":"m-1","response_id":"r1","cost_usd":0.5,"message":{"role":"assistant","blocks":[{"type":"tool_use","id":"t1","name":"bash","input":{}}],"usage":{"input_tokens":100,"output_tokens":20}}"#,
    r#"{"type":"message","seq":3,"at":"2026-11-15T08:00:03.000Z","id":"c","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t1","output":"ok"}]}"#,
];
const SUMMARISED: &str = r#"{"type":"compaction","seq":4,"at":"2026-11-15T09:00:00.000Z","count":1,"removed_message_count":3,"summary":"It was fixed.","keeps_from":4,"model":"m-2","response_id":"r2","duration_ms":900,"cost_usd":0.25,"usage":{"input_tokens":120,"output_tokens":8,"cache_read_input_tokens":3}"#;

#[test]
fn f6_a_compaction_forgets_neither_tokens_nor_cost_and_adds_its_own() {
    let (lab, id) = planted(&SAID);
    let before = lab.reader(&id).stats().unwrap();
    assert_eq!(before.usage, Usage::new(100, 20));
    let (lab, id) = planted(&[&SAID[..], &[SUMMARISED]].concat());
    let after = lab.reader(&id).stats().unwrap();
    assert_eq!(after.compactions, 1);
    assert_eq!(after.usage, Usage::new(220, 28).cache_read(3));
    assert_eq!(after.estimated_tokens, before.estimated_tokens);
    assert_eq!(after.cost_usd, Some(0.75));
    assert_eq!((after.responses, after.responses_without_cost), (2, 0));
    assert_eq!(after.models, ["m-1", "m-2"]);
    assert_eq!(after.messages, before.messages);
    assert_eq!(after.tool_calls, 1);
    assert_eq!(before.time_spent_ms, 3_000);
    assert_eq!(after.time_spent_ms, 3_900, "it is in no turn");
}

#[test]
fn f6_what_was_compacted_stays_in_the_statistics_and_in_the_history() {
    let session = begin(&Lab::new());
    let usage = Usage::new(100, 20);
    for n in 0..5 {
        let said = measured("yes", usage.clone())
            .cost_usd(0.5)
            .at(at(n * 10 + 5));
        say(&session, [prompt("again").at(at(n * 10)), said]);
    }
    let before = session.reader().stats().unwrap();
    let compaction = backtrail::Compaction::new("Five times yes.");
    session
        .compact(&compaction.usage(Usage::new(7, 3)).model("m-2"))
        .unwrap();
    let after = session.reader().stats().unwrap();
    assert_eq!(after.usage, Usage::new(507, 103));
    assert_eq!(
        (after.cost_usd, after.responses_without_cost),
        (Some(2.5), 1)
    );
    assert_eq!((after.compactions, after.turns), (1, 5));
    assert_eq!(after.messages, before.messages);
    assert_eq!(after.time_spent_ms, before.time_spent_ms);
    assert_eq!(session.reader().history().unwrap().count(), 10);
}

#[test]
fn f6_a_summary_of_which_nothing_is_known_is_text_that_the_next_call_reads() {
    let bare = r#"{"type":"compaction","seq":4,"at":"2026-11-15T09:00:00.000Z","count":1,"removed_message_count":3,"summary":"It was fixed.","keeps_from":4"#;
    let (lab, id) = planted(&[&SAID[..], &[bare]].concat());
    let stats = lab.reader(&id).stats().unwrap();
    assert_eq!((stats.compactions, stats.responses), (1, 1));
    assert_eq!(stats.estimated_tokens, 1 + 4, "`ok`, and 13 bytes");
    let measured = format!(r#"{bare},"usage":{{"output_tokens":5}}"#);
    let (lab, id) = planted(&[&SAID[..], &[&measured]].concat());
    let stats = lab.reader(&id).stats().unwrap();
    assert_eq!((stats.usage.output_tokens, stats.responses), (25, 2));
    assert_eq!(stats.estimated_tokens, 1);
    let odd = SUMMARISED
        .replace(r#""usage":{"#, r#""usage":7,"was":{"#)
        .replace("0.25", "-0.25");
    let (lab, id) = planted(&[&SAID[..], &[&odd]].concat());
    let stats = lab.reader(&id).stats().unwrap();
    assert_eq!(stats.usage, Usage::new(100, 20));
    assert_eq!(stats.estimated_tokens, 1 + 4, "a model wrote it");
    assert_eq!((stats.cost_usd, stats.responses), (Some(0.5), 2));
    assert_eq!(stats.responses_without_cost, 1);
}

#[test]
fn what_cannot_be_read_is_counted_and_what_stands_beside_it_still_counts() {
    let shapeless = r#"{"type":"message","seq":4,"at":"2026-11-15T08:00:04.000Z","id":"d","cost_usd":2,"message":{"role":"assistant"}"#;
    let (lab, id) = planted(&[&SAID[..], &[shapeless]].concat());
    let stats = lab.reader(&id).stats().unwrap();
    assert_eq!((stats.damaged, stats.messages.total), (1, 3));
    assert_eq!(stats.cost_usd, Some(2.5));
    let mut history = lab.reader(&id).history().unwrap();
    assert_eq!((history.by_ref().count(), history.damaged()), (2, 1));
    let mut bytes = lab.bytes(&id, 0);
    let flipped = bytes.len() / 2;
    bytes[flipped] ^= 1;
    bytes.extend_from_slice(b"garbage\n");
    lab.put(&id, 0, &bytes);
    let stats = lab.reader(&id).stats().unwrap();
    assert_eq!((stats.damaged, stats.messages.total), (3, 2));
}

#[test]
fn odd_details_are_as_good_as_none_and_cost_nothing_else() {
    let odd = r#"{"type":"message","seq":1,"at":"2026-11-15T08:00:00.000Z","id":"a","duration_ms":"1s","cost_usd":1e999,"model":7,"response_id":null,"more":{"model":"x"},"message":{"role":"assistant","blocks":[],"model":"y"}"#;
    let late = r#"{"type":"message","seq":2,"message":{"role":"assistant","blocks":[]},"model":"m\u002d1","cost_usd":1,"response_id":"r","duration_ms":18446744073709551615"#;
    let huge = r#"{"type":"message","seq":3,"duration_ms":18446744073709551616,"cost_usd":-0.5,"message":{"role":"user","blocks":[]}"#;
    let (lab, id) = planted(&[odd, late, huge]);
    let records = lab.reader(&id).last_records(3).unwrap();
    let details: Vec<_> = records.iter().map(|r| r.as_ref().details()).collect();
    assert_eq!(details[0], backtrail::conversation::Details::default());
    assert_eq!(details[2], backtrail::conversation::Details::default());
    assert_eq!(details[1].model.as_deref(), Some("m-1"));
    assert_eq!(details[1].response_id.as_deref(), Some("r"));
    assert_eq!(details[1].cost_usd, Some(1.0));
    assert_eq!(details[1].duration_ms, Some(u64::MAX));
    let stats = lab.reader(&id).stats().unwrap();
    assert_eq!((stats.messages.total, stats.damaged), (3, 0));
    assert_eq!(stats.time_spent_ms, u64::MAX);
}

#[test]
fn b1_statistics_are_the_same_over_many_trails() {
    let of = |rotation| {
        let lab = Lab::on(backtrail_testkit::MemoryStorage::new(), rotation);
        let session = begin(&lab);
        for n in 0..30_i64 {
            let usage = Usage::new(5, 2);
            say(
                &session,
                [
                    prompt("again").at(at(n * 10)),
                    measured("yes", usage).at(at(n * 10 + 5)),
                ],
            );
        }
        (
            session.reader().stats().unwrap(),
            session.reader().info().unwrap().trails,
        )
    };
    let (one, many) = (of(u64::MAX), of(1_000));
    assert!(one.1 == 1 && many.1 > 5, "{} {}", one.1, many.1);
    assert_eq!(one.0, many.0);
    assert_eq!(one.0.time_spent_ms, 150);
}

/// Says something that costs 10 + `n` tokens, `n` dollars and `n` seconds.
fn spend(session: &Session, n: u32) {
    let usage = Usage::new(10, u64::from(n));
    let said = measured("yes", usage).cost_usd(f64::from(n));
    say(
        session,
        [prompt("go"), said.duration_ms(u64::from(n) * 1_000)],
    );
}

/// Returns the tokens, dollars, seconds and responses that a session spent, and its turns.
fn spent(session: &Session) -> (u64, Option<f64>, u64, u64, u64) {
    let mut tokens = 0;
    let mut responses = 0;
    let reader = session.reader();
    let survey = reader.survey(|response| {
        tokens += response.usage.map_or(0, |usage| usage.total());
        responses += 1;
    });
    let stats = survey.unwrap().stats;
    assert_eq!(stats, reader.stats().unwrap());
    assert_eq!((stats.usage.total(), stats.responses), (tokens, responses));
    let seconds = stats.time_spent_ms / 1_000;
    (tokens, stats.cost_usd, seconds, responses, stats.turns)
}

#[test]
fn f24_a_fork_has_the_turns_of_its_parent_and_not_what_those_cost() {
    let lab = Lab::new();
    let parent = begin(&lab);
    for n in [1, 2, 4] {
        spend(&parent, n);
    }
    let all = (37, Some(7.0), 7, 3, 3);
    assert_eq!(spent(&parent), all);
    for seq in 0..=parent.last_seq() {
        let fork = parent.fork(&ForkOptions::new().at(seq)).unwrap();
        let turns = seq.div_ceil(2);
        assert_eq!(spent(&fork), (0, None, 0, 0, turns), "at {seq}");
        spend(&fork, 8);
        assert_eq!(spent(&fork), (18, Some(8.0), 8, 1, turns + 1), "at {seq}");
        let next = fork.fork(&ForkOptions::new()).unwrap();
        spend(&next, 16);
        assert_eq!(spent(&next), (26, Some(16.0), 16, 1, turns + 2), "at {seq}");
        // Back to before the fork: everything there is the parent's.
        if seq > 0 {
            fork.rewind_chat(seq - 1).unwrap();
            spend(&fork, 32);
            let turns = (seq - 1).div_ceil(2) + 1;
            assert_eq!(spent(&fork), (42, Some(32.0), 32, 1, turns), "before {seq}");
        }
    }
    assert_eq!(spent(&parent), all, "forks cost it nothing");
}

#[test]
fn f24_a_response_that_the_parent_began_is_the_parents_and_a_turn_counts_from_the_fork_on() {
    let lab = Lab::new();
    let parent = begin(&lab);
    say(
        &parent,
        [
            prompt("go").at(at(0)),
            measured("so", Usage::new(10, 1))
                .response_id("r1")
                .at(at(60_000)),
        ],
    );
    let fork = parent.fork(&ForkOptions::new()).unwrap();
    say(
        &fork,
        [
            measured("far", Usage::new(10, 9))
                .response_id("r1")
                .at(at(61_000)),
            measured("good", Usage::new(20, 2))
                .response_id("r2")
                .at(at(64_000)),
        ],
    );
    let stats = fork.reader().stats().unwrap();
    assert_eq!(stats.usage, Usage::new(20, 2));
    assert_eq!((stats.time_spent_ms, stats.time_has_spans), (3_000, true));
    assert_eq!((stats.messages.total, stats.turns), (4, 1));
}

/// A4: they have serde.
#[test]
fn a4_statistics_come_back_from_their_json() {
    let stats = stats_of([
        prompt("a").at(at(0)),
        measured("b", Usage::new(1, 2)).model("m").cost_usd(0.5),
    ]);
    let json = serde_json::to_string(&stats).unwrap();
    assert_eq!(serde_json::from_str::<Stats>(&json).unwrap(), stats);
    assert!(json.contains(r#""cost_usd":0.5"#), "{json}");
}
