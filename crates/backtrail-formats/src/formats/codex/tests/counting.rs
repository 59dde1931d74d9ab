//! F24: each call counts once, and what a fork or a sub-agent copied does not count.

use backtrail::Usage;

use super::*;

/// Adds a record of a call.
fn record(rollout: &mut Rollout, thread: &str, id: &str, usage: u64, total: u64) {
    let tokens = |n: u64| json!({"input_tokens": n, "output_tokens": n / 10});
    rollout.add(
        "token_usage_record",
        json!({"thread_id": thread, "response_id": id, "usage": tokens(usage), "thread_token_usage": tokens(total)}),
    );
}

#[test]
fn a_repeated_count_is_not_a_call() {
    let mut rollout = Rollout::plain();
    rollout.event(json!({"type": "token_count", "info": null, "rate_limits": {}}));
    rollout
        .agent("1")
        .count(100, 100)
        .count(100, 100)
        .agent("2")
        .count(250, 150);
    let read = rollout.read();
    assert_eq!(read.inputs(), [100, 150]);
    let ids: Vec<_> = read
        .usage()
        .iter()
        .map(|used| used.response_id.clone())
        .collect();
    assert_eq!(ids, [format!("{THREAD}#1"), format!("{THREAD}#2")]);
    let said: Vec<_> = read
        .messages()
        .iter()
        .map(|said| said.response_id.clone())
        .collect();
    assert_eq!(said, ids.into_iter().map(Some).collect::<Vec<_>>());
}

#[test]
fn totals_alone_are_enough_and_may_restart() {
    let mut rollout = Rollout::plain();
    for total in [100, 250, 250, 40, 90] {
        let total = json!({"input_tokens": total, "output_tokens": total / 10});
        rollout.event(json!({"type": "token_count", "info": {"total_token_usage": total}}));
    }
    assert_eq!(rollout.read().inputs(), [100, 150, 40, 50]);
}

#[test]
fn cached_tokens_are_counted_separately() {
    let usage = |usage: Value| {
        let mut rollout = Rollout::plain();
        rollout.event(json!({"type": "token_count", "info": {"last_token_usage": usage}}));
        let used = rollout.read().usage()[0].usage.clone();
        let Usage {
            input_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
            ..
        } = used;
        assert_eq!(
            (used.output_tokens, used.reasoning_output_tokens),
            (7, Some(3))
        );
        (
            input_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
        )
    };
    let tokens = |input: u64, cached: u64, written: u64| {
        json!({"input_tokens": input, "cached_input_tokens": cached, "cache_write_input_tokens": written,
            "output_tokens": 7, "reasoning_output_tokens": 3, "total_tokens": input + 7})
    };
    assert_eq!(usage(tokens(100, 60, 10)), (30, 60, 10));
    // There cannot be more cached input than input.
    assert_eq!(usage(tokens(100, 160, 10)), (0, 100, 0));
}

/// What a parent said, and used, written again.
fn copy(rollout: &mut Rollout, with_turns: bool) {
    rollout.add("session_meta", json!({"id": PARENT, "cwd": "/work"}));
    for n in 1..=3u8 {
        if with_turns {
            rollout.turn(STARTED - 100_000 + i64::from(n));
        }
        rollout
            .user(&format!("asked {n}"))
            .agent(&format!("said {n}"));
        rollout.count(u64::from(n) * 100, 100).pause(1);
    }
}

/// What a rollout says in its own right.
fn own(rollout: &mut Rollout, with_turns: bool) {
    if with_turns {
        rollout.turn(STARTED + 5);
    }
    rollout
        .user("and now")
        .agent("this")
        .pause(3_000)
        .count(777, 477);
}

#[test]
fn events_that_a_fork_copied_do_not_count() {
    for with_turns in [true, false] {
        let mut rollout = Rollout::new(json!({"forked_from_id": PARENT}));
        copy(&mut rollout, with_turns);
        let empty = rollout.read();
        assert!(
            empty.inputs().is_empty(),
            "a fork in which nothing happened used nothing"
        );
        rollout.pause(5_000);
        own(&mut rollout, with_turns);
        let read = rollout.read();
        assert_eq!(
            read.origin(),
            Origin::Copy {
                session: PARENT.to_owned()
            }
        );
        assert_eq!((read.inputs(), read.talk().len()), (vec![477], 8));
        let ids: Vec<_> = read
            .messages()
            .iter()
            .filter_map(|said| said.response_id.clone())
            .collect();
        assert_eq!(ids, [format!("{THREAD}#1")]);
        let prompts = read
            .messages()
            .iter()
            .filter(|said| said.message.is_prompt())
            .count();
        assert_eq!(prompts, 4);
    }
}

#[test]
fn a_fork_is_recognised_by_the_head_that_it_copied() {
    let mut rollout = Rollout::plain();
    copy(&mut rollout, false);
    rollout.pause(5_000);
    own(&mut rollout, false);
    let read = rollout.read();
    assert_eq!(
        read.origin(),
        Origin::Copy {
            session: PARENT.to_owned()
        }
    );
    assert_eq!(read.inputs(), [477]);
    // A repeated head is not a fork.
    let mut again = Rollout::plain();
    again
        .add("session_meta", json!({"id": THREAD}))
        .agent("1")
        .count(5, 5);
    assert_eq!(
        (again.read().origin(), again.read().inputs()),
        (Origin::Start, vec![5])
    );
}

#[test]
fn a_sub_agent_that_starts_at_once_counts_its_own_usage() {
    // No pause between the copy and the sub-agent's own turn.
    let mut rollout = Rollout::new(json!({"parent_thread_id": PARENT, "forked_from_id": PARENT}));
    copy(&mut rollout, true);
    own(&mut rollout, true);
    let read = rollout.read();
    assert_eq!(read.inputs(), [477]);
    let prompts: Vec<_> = read
        .messages()
        .into_iter()
        .filter(|said| said.message.is_prompt())
        .collect();
    assert_eq!(prompts.len(), 1, "its parent's prompt is not its own");
}

#[test]
fn a_copy_may_keep_its_times() {
    let mut rollout = Rollout::new(json!({"parent_thread_id": PARENT}));
    rollout.millis -= 500_000;
    for n in 1..=3 {
        rollout.agent("old").count(n * 100, 100).pause(60_000);
    }
    rollout.millis = STARTED + 2_000;
    own(&mut rollout, false);
    assert_eq!(rollout.read().inputs(), [477]);
}

#[test]
fn a_sub_agent_that_copied_nothing_counts_all() {
    let mut rollout = Rollout::new(json!({"parent_thread_id": PARENT, "forked_from_id": PARENT}));
    rollout
        .turn(STARTED + 1)
        .user("task")
        .agent("1")
        .count(10, 10)
        .agent("2")
        .count(30, 20);
    assert_eq!(rollout.read().inputs(), [10, 20]);
}

#[test]
fn a_sub_agent_without_any_sign_of_a_copy_counts_all() {
    let source = json!({"subagent": {"other": "guardian"}});
    let mut rollout = Rollout::new(json!({"source": source, "session_id": PARENT}));
    rollout
        .user("task")
        .agent("1")
        .count(10, 10)
        .agent("2")
        .count(30, 20);
    let read = rollout.read();
    assert_eq!(read.inputs(), [10, 20]);
    let parent = Origin::Spawned {
        session: Some(PARENT.to_owned()),
        tool_use_id: None,
    };
    assert_eq!(read.origin(), parent);
    let tags = read.collected.main().unwrap().details.tags.clone();
    assert_eq!(tags, Some(vec!["guardian".to_owned()]));
}

#[test]
fn a_sub_agents_own_part_starts_at_a_number() {
    let mut rollout =
        Rollout::new(json!({"parent_thread_id": PARENT, "subagent_history_start_ordinal": 6}));
    rollout.ordinal = Some(1);
    rollout
        .user("theirs")
        .agent("theirs")
        .count(100, 100)
        .count(300, 200)
        .agent("theirs");
    assert_eq!(rollout.ordinal, Some(6));
    rollout.agent("mine").count(350, 50);
    assert_eq!(rollout.read().inputs(), [50]);
}

#[test]
fn a_total_that_was_copied_is_not_a_call() {
    let base = json!({"thread_id": PARENT, "end_ordinal_exclusive": 15});
    let mut rollout = Rollout::new(json!({"forked_from_id": PARENT, "history_base": base}));
    rollout.ordinal = Some(15);
    rollout
        .count(9_000, 400)
        .user("on")
        .agent("1")
        .count(9_000, 400)
        .count(9_100, 100);
    assert_eq!(rollout.read().inputs(), [100]);
}

#[test]
fn a_remote_compaction_counts_once_and_a_local_one_too() {
    let mut rollout = Rollout::plain();
    rollout.agent("1");
    record(&mut rollout, THREAD, "r1", 100, 100);
    rollout.count(100, 100);
    // A remote one has no count.
    record(&mut rollout, THREAD, "r2", 50, 150);
    rollout.add(
        "compacted",
        json!({"message": "", "compaction_response_id": "r2"}),
    );
    // Local: there is.
    record(&mut rollout, THREAD, "r3", 70, 220);
    rollout.count(170, 70).add(
        "compacted",
        json!({"message": "m", "compaction_response_id": "r3"}),
    );
    // Its record comes later; that of another thread is not ours.
    rollout.add(
        "compacted",
        json!({"message": "m", "compaction_response_id": "r4"}),
    );
    record(&mut rollout, THREAD, "r4", 8, 228);
    record(&mut rollout, PARENT, "r5", 1_000, 1_000);
    rollout.add(
        "compacted",
        json!({"message": "m", "compaction_response_id": "r5"}),
    );
    let read = rollout.read();
    let with_summary: Vec<_> = read
        .summaries()
        .iter()
        .map(|event| event.usage.as_ref().map(|usage| usage.input_tokens))
        .collect();
    assert_eq!(with_summary, [Some(50), None, None, None]);
    assert_eq!(read.inputs(), [100, 70, 8]);
}

#[test]
fn models_are_those_of_their_turns() {
    let mut rollout = Rollout::plain();
    rollout
        .add("turn_context", json!({"model": "a"}))
        .agent("1")
        .count(1, 1);
    rollout
        .add("turn_context", json!({"model": "b"}))
        .agent("2")
        .count(3, 2);
    let read = rollout.read();
    let models: Vec<_> = read
        .usage()
        .iter()
        .map(|used| used.model.clone().unwrap())
        .collect();
    assert_eq!(models, ["a", "b"]);
    let details = &read.collected.main().unwrap().details;
    assert_eq!(details.model.as_deref(), Some("b"));
    assert_eq!(details.directory.as_deref(), Some(Path::new("/work")));
}
