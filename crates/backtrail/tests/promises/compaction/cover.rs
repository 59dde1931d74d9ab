//! What a compaction covers, and what it leaves (A11, F25).

use backtrail::context::MendRule;
use backtrail::{Compacted, Compaction, ErrorKind, RecordKind, Session, Shape, Usage};
use proptest::prelude::*;

use super::{begin, contexts, message, play, store};

/// A script, and what its last compaction did: how many messages it covers, how many it
/// keeps, and where those begin.
const TABLE: &[(&str, u64, u64, u64)] = &[
    // As many as requested, as far as there are any.
    ("u a u a *0", 4, 0, 5),
    ("u a u a *1", 3, 1, 4),
    ("u a u a *2", 2, 2, 3),
    ("u a u a *4", 0, 4, 1),
    ("u a u a *99", 0, 4, 1),
    ("*0", 0, 0, 1),
    ("*3", 0, 0, 1),
    ("u n a n u *1", 2, 1, 5),
    ("u n *0", 1, 0, 3),
    // A call stays with its result.
    ("u cA rA a *1", 3, 1, 4),
    ("u cA rA a *2", 1, 3, 2),
    ("u cA rA a *3", 1, 3, 2),
    ("u cA rA *0", 3, 0, 4),
    ("u cA rA *1", 1, 2, 2),
    ("u cA mA a *1", 3, 1, 4),
    ("u cA mA a *2", 1, 3, 2),
    ("u cA u rA a *1", 4, 1, 5),
    ("u cA u rA a *2", 1, 4, 2),
    // Parallel calls.
    ("u cA+B rA+B a *2", 1, 3, 2),
    ("u cA+B rA rB a *2", 1, 4, 2),
    ("u cA+B rB rA a *3", 1, 4, 2),
    ("u cA+B rA rB *0", 4, 0, 5),
    ("u cA cB rA rB a *2", 1, 5, 2),
    ("u cA cB rB rA a *2", 1, 5, 2),
    // A message that must stay may require others to stay.
    ("u cA u rA cB u rB *1", 4, 3, 5),
    ("u cA u rA+B cB u rB *1", 4, 3, 5),
    ("u cA u cB rA u rB *1", 1, 6, 2),
    // A call at the end that may still get its result.
    ("u cA *0", 1, 1, 2),
    ("u a cA *1", 2, 1, 3),
    ("u cA+B rA *0", 1, 2, 2),
    ("u cA+B rB *1", 1, 2, 2),
    ("u cA rA cB *0", 3, 1, 4),
    ("u cA cB *0", 1, 2, 2),
    ("u cA a cB *0", 1, 3, 2),
    ("u cA cB rB *0", 1, 3, 2),
    ("u cA cB rA *0", 1, 3, 2),
    ("u cA+B n rA n *0", 1, 2, 2),
    // An interrupted call never will.
    ("u cA u *0", 3, 0, 4),
    ("u cA u a u *1", 4, 1, 5),
    ("u cA+B rA u a *1", 4, 1, 5),
    ("u cA cB rB cC rC *0", 6, 0, 7),
    ("u cA cB rB u *0", 5, 0, 6),
    // Results without a call, and second results, require nothing.
    ("u a rX u a *3", 2, 3, 3),
    ("u a u rX *1", 3, 1, 4),
    ("rX *1", 0, 1, 1),
    ("u cA rA a u rA a *2", 5, 2, 6),
    ("u cA rA rA a *2", 3, 2, 4),
    ("u cA rA rA a *3", 1, 4, 2),
    ("u cA rA+A a *2", 1, 3, 2),
    // A reused id means the newest call.
    ("u cA rA u cA rA a *2", 4, 3, 5),
    ("u cA rA u cA *0", 4, 1, 5),
    ("u cA u cA rA *1", 3, 2, 4),
    // Instructions at the beginning are not part of it.
    ("s *0", 0, 0, 2),
    ("s s u a u *1", 2, 1, 5),
    ("s u a *99", 0, 2, 2),
    ("s n s u *0", 1, 0, 5),
    ("u s a *0", 3, 0, 4),
    ("u s a *2", 1, 2, 2),
    // Later compactions continue where the last one ended.
    ("u a u a *1 u a *1", 2, 1, 7),
    ("u a u a *1 u a *1 *0", 1, 0, 9),
    ("u a u a *1 u a *1 *0 *0", 0, 0, 10),
    ("u a u a *1 u a *9", 0, 3, 4),
    ("s u a *2 u *1", 2, 1, 5),
    ("u cA *0 rA a *1", 2, 1, 5),
    ("u cA *0 rA a *2", 0, 3, 2),
    ("u a *0 u cA *0 rA *0", 2, 0, 8),
];

#[test]
fn a11_f25_a_compaction_covers_what_the_table_says() {
    // In one trail, and with one trail for every record.
    for rotation in [u64::MAX, 1] {
        for (script, removed, kept, keeps_from) in TABLE {
            let session = begin(&store(rotation));
            let done = play(&session, script).unwrap();
            let found = (done.removed_message_count, done.kept, done.keeps_from);
            assert_eq!(found, (*removed, *kept, *keeps_from), "{script}");
            assert_eq!(done.count, script.matches('*').count() as u64, "{script}");
            check_record(&session, &done);
        }
    }
}

/// Checks that the record matches what the caller got.
fn check_record(session: &Session, done: &Compacted) {
    assert_eq!(session.last_seq(), done.seq);
    let record = session.reader().record(done.seq).unwrap().unwrap();
    let record = record.as_ref();
    assert_eq!(record.kind(), RecordKind::Compaction);
    let fields: serde_json::Value = serde_json::from_slice(record.bytes()).unwrap();
    assert_eq!(fields["count"], done.count);
    assert_eq!(fields["removed_message_count"], done.removed_message_count);
    assert_eq!(fields["keeps_from"], done.keeps_from);
    let summary = fields["summary"].as_str().unwrap();
    assert!(summary.starts_with("what was said up to "), "{summary}");
    let context = session.context(Shape::Neutral).unwrap();
    assert!(context.as_json().contains(summary));
}

#[test]
fn leading_system_messages_stay_in_the_context() {
    let session = begin(&store(u64::MAX));
    play(&session, "s s u a s u *1 *0 u");
    for context in contexts(&session) {
        for text in [
            "s after 0",
            "s after 1",
            "what was said up to 7",
            "u after 8",
        ] {
            assert!(context.contains(text), "no {text} in {context}");
        }
        for text in ["u after 2", "s after 4", "u after 5", "up to 6"] {
            assert!(!context.contains(text), "{text} in {context}");
        }
    }
}

#[test]
fn a_blank_summary_is_refused_and_nothing_is_written() {
    let session = begin(&store(u64::MAX));
    play(&session, "u a");
    let before = contexts(&session);
    for blank in ["", " ", "\n\t\u{a0} "] {
        let error = session.compact(&Compaction::new(blank)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("compaction"), "{error}");
    }
    assert_eq!(session.last_seq(), 2);
    assert_eq!(contexts(&session), before);
    assert_eq!(session.reader().steps().unwrap().to_undo.len(), 0);
}

/// F9: a summary that does not fit into a line is refused as a whole, and the session
/// continues.
#[test]
fn f9_a_summary_that_is_too_long_is_refused_and_never_cut() {
    let session = begin(&store(u64::MAX));
    play(&session, "u a");
    let long = Compaction::new("x".repeat(17 << 20));
    let error = session.compact(&long).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert_eq!(play(&session, "u *1").unwrap().seq, 4);
    assert!(session.reader().verify().unwrap().is_ok());
}

#[test]
fn a_compaction_that_expects_another_end_is_refused_with_the_head() {
    let session = begin(&store(u64::MAX));
    play(&session, "u a u");
    for wrong in [0, 2, 4, 99] {
        let compaction = Compaction::new("sum").expect(wrong);
        let error = session.compact(&compaction).unwrap_err();
        assert_eq!((error.kind(), error.head()), (ErrorKind::Conflict, Some(3)));
    }
    // A note in between does not count as a message.
    play(&session, "n");
    let compaction = Compaction::new("sum").expect(3);
    assert_eq!(session.compact(&compaction).unwrap().seq, 5);
    // A second attempt learns that the first one succeeded.
    let error = session.compact(&compaction).unwrap_err();
    assert_eq!((error.kind(), error.head()), (ErrorKind::Conflict, Some(5)));
    assert_eq!(session.last_seq(), 5);
}

/// F6: earlier messages still count, and the summary's own call as well.
#[test]
fn f6_statistics_count_all_that_was_before_and_the_compaction_itself() {
    let session = begin(&store(u64::MAX));
    play(&session, "s u cA rA a u");
    let answer = message(&session, "a", "").usage(Usage::new(1_000, 50));
    session.append(answer).unwrap();
    let before = session.reader().stats().unwrap();
    let compaction = Compaction::new("sum")
        .usage(Usage::new(700, 30).cache_read(5))
        .model("small-1");
    session.compact(&compaction).unwrap();
    let record = session.reader().record(8).unwrap().unwrap();
    assert_eq!(record.as_ref().details().model.as_deref(), Some("small-1"));
    let after = session.reader().stats().unwrap();
    assert_eq!(after.messages, before.messages);
    assert_eq!(after.messages.total, 7);
    assert_eq!((after.turns, after.tool_calls), (2, 1));
    assert_eq!(after.usage, Usage::new(1_700, 80).cache_read(5));
    assert_eq!(after.models, ["small-1"]);
    assert_eq!(after.compactions, 1);
    // The history has all of them, too.
    let prompts = session.reader().prompts().unwrap();
    assert_eq!(
        prompts
            .map(|prompt| prompt.unwrap().seq)
            .collect::<Vec<_>>(),
        [2, 6]
    );
}

/// A part of a conversation: the assistant's response, with one message for each call or
/// one for all, and which results follow.
#[derive(Debug, Clone)]
struct Turn {
    calls: usize,
    apart: bool,
    answered: Vec<usize>,
    prompt: bool,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn =
        (0..4_usize, any::<bool>(), any::<bool>()).prop_flat_map(|(calls, apart, prompt)| {
            let order = Just((0..calls).collect::<Vec<_>>()).prop_shuffle();
            (order, 0..=calls, 0..3_u8).prop_map(move |(mut answered, some, all)| {
                if all == 0 {
                    answered.truncate(some);
                }
                Turn {
                    calls,
                    apart,
                    answered,
                    prompt,
                }
            })
        });
    prop::collection::vec(turn, 0..6)
}

/// Appends a turn and returns the calls without a result.
fn say(session: &Session, number: usize, turn: &Turn) -> Vec<String> {
    let id = |n: usize| format!("t{number}-{n}");
    if turn.prompt {
        play(session, "u");
    }
    let ids: Vec<String> = (0..turn.calls).map(id).collect();
    let joined = ids.join(if turn.apart { " c" } else { "+" });
    play(session, if ids.is_empty() { "a" } else { "" });
    if !ids.is_empty() {
        play(session, &format!("c{joined}"));
    }
    for n in &turn.answered {
        play(session, &format!("r{}", id(*n)));
    }
    let open = |id: &String| !turn.answered.iter().any(|n| ids[*n] == *id);
    ids.iter().filter(|id| open(id)).cloned().collect()
}

/// Returns how often a rule was applied.
fn mends(session: &Session, rule: MendRule) -> usize {
    let context = session.context(Shape::Anthropic).unwrap();
    context
        .mends()
        .iter()
        .filter(|mend| mend.rule == rule)
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// F25: wherever a conversation is compacted, even while tools run, no result is left
    /// without its call, and the counts add up.
    #[test]
    fn f25_no_result_loses_its_call_whatever_is_kept(
        turns in turns(),
        keeps in prop::collection::vec(0..8_u64, 1..4),
    ) {
        let session = begin(&store(u64::MAX));
        let mut open = Vec::new();
        let mut removed = 0;
        for (number, turn) in turns.iter().enumerate() {
            open = say(&session, number, turn);
            if number % 2 == 1 {
                let keep = keeps[number % keeps.len()];
                removed += play(&session, &format!("*{keep}")).unwrap().removed_message_count;
            }
        }
        let done = play(&session, &format!("*{}", keeps[0])).unwrap();
        removed += done.removed_message_count;
        let total = session.reader().stats().unwrap().messages.total;
        prop_assert_eq!(removed + done.kept, total);
        prop_assert_eq!(mends(&session, MendRule::OrphanResult), 0);
        // The last turn's calls may still be running: here are their results.
        for id in &open {
            play(&session, &format!("r{id}"));
        }
        prop_assert_eq!(mends(&session, MendRule::OrphanResult), 0);
        prop_assert!(session.reader().verify().unwrap().is_ok());
    }
}
