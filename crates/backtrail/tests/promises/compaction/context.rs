//! The context has the same bytes wherever it is read, grows only at its end, and is as
//! before when a compaction is undone (A11, A12).

use backtrail::{Block, ForkOptions, Message, Role, Session, Shape, Store};
use serde_json::value::RawValue;

use super::{begin, contexts, play, store};

/// Conversations with everything a context must handle, some with a compaction in the
/// middle.
const SCRIPTS: &[&str] = &[
    "u a u a",
    "s s u cA rA a s u",
    "u cA+B rB rA cC rC a u",
    "u cA u a rA u",
    "s u a u a *2 u a",
    "s u cA+B rA *0 rB a u *1 cC *0 rC a *99 u",
    "u a *0 *0 u",
];

/// Plays a script, with a picture after each prompt.
fn play_with_pictures(session: &Session, script: &str) {
    for word in script.split_whitespace() {
        play(session, word);
        if word == "u" {
            let data = ["aGVsbG8=", "d29ybGQ="][session.last_seq() as usize % 2];
            let picture = Block::image("image/png", data).unwrap();
            session.append(Message::new(Role::User, [picture])).unwrap();
        }
    }
}

fn reopened(store: &Store, session: Session) -> Session {
    let id = session.id().clone();
    session.close().unwrap();
    store.open_session(&id).unwrap()
}

#[test]
fn the_context_is_the_same_bytes_over_trails_forks_and_reopenings_and_to_readers() {
    for script in SCRIPTS {
        let plain = begin(&store(u64::MAX));
        play_with_pictures(&plain, script);
        let expected = contexts(&plain);
        for rotation in [u64::MAX, 1, 600] {
            let store = store(rotation);
            let session = begin(&store);
            play_with_pictures(&session, script);
            assert_eq!(contexts(&session), expected, "{script}");
            let reader = store.read_session(session.id()).unwrap();
            let read = Shape::ALL.map(|shape| reader.context(shape).unwrap().into_json());
            assert_eq!(read, expected, "{script}");
            let fork = session.fork(&ForkOptions::new()).unwrap();
            assert_eq!(contexts(&fork), expected, "{script}");
            let fork = fork.fork(&ForkOptions::new()).unwrap();
            assert_eq!(contexts(&reopened(&store, fork)), expected, "{script}");
            let session = reopened(&store, session);
            assert_eq!(contexts(&session), expected, "{script}");
            play(&session, "n");
            assert_eq!(contexts(&session), expected, "a note says nothing");
        }
    }
}

/// A12: a fork continues with the context its parent had there.
#[test]
fn the_context_of_a_fork_is_its_parents_at_that_record_and_so_is_that_of_a_rewind() {
    for script in SCRIPTS {
        for rotation in [u64::MAX, 1] {
            let store = store(rotation);
            let session = begin(&store);
            let mut then = vec![contexts(&session)];
            for word in script.split_whitespace() {
                play(&session, word);
                then.push(contexts(&session));
            }
            for (seq, expected) in then.iter().enumerate() {
                let options = ForkOptions::new().at(seq as u64);
                let fork = session.fork(&options).unwrap();
                assert_eq!(contexts(&fork), *expected, "{script} at {seq}");
            }
            for (seq, expected) in then.iter().enumerate().rev().skip(1) {
                session.rewind_chat(seq as u64).unwrap().unwrap();
                assert_eq!(contexts(&session), *expected, "{script} to {seq}");
            }
        }
    }
}

/// F6: nothing that a compaction covers is lost.
#[test]
fn f6_undo_gives_the_context_from_before_a_compaction_and_redo_that_after_it() {
    for script in SCRIPTS {
        for (rotation, keep) in [(u64::MAX, 0), (u64::MAX, 2), (1, 1), (600, 99)] {
            let store = store(rotation);
            let session = begin(&store);
            play_with_pictures(&session, script);
            let before = contexts(&session);
            play(&session, &format!("*{keep}"));
            let after = contexts(&session);
            assert_ne!(before, after);
            for _ in 0..2 {
                session.undo().unwrap().unwrap();
                assert_eq!(contexts(&session), before, "{script}");
                session.redo().unwrap().unwrap();
                assert_eq!(contexts(&session), after, "{script}");
            }
            // Later messages are undone and redone with it.
            play_with_pictures(&session, "u a");
            let later = contexts(&session);
            session.undo().unwrap().unwrap();
            assert_eq!(contexts(&session), before, "{script}");
            let session = reopened(&store, session);
            session.redo().unwrap().unwrap();
            assert_eq!(contexts(&session), later, "{script}");
        }
    }
}

/// Returns the messages of a context, each as its bytes.
fn messages(shape: Shape, json: &str) -> Vec<String> {
    let name = match shape {
        Shape::OpenAi => "input",
        _ => "messages",
    };
    let fields: std::collections::HashMap<String, Box<RawValue>> =
        serde_json::from_str(json).unwrap();
    let messages: Vec<Box<RawValue>> = serde_json::from_str(fields[name].get()).unwrap();
    messages.iter().map(|one| one.get().to_owned()).collect()
}

/// A provider's prompt cache stays warm from one call to the next.
#[test]
fn the_messages_of_a_shorter_history_are_the_first_of_a_longer_one() {
    for rotation in [u64::MAX, 1] {
        let store = store(rotation);
        let mut session = begin(&store);
        let mut shorter: [Vec<String>; 4] = Default::default();
        // Histories are compared where a model is called, except after a compaction.
        let steps = "s+u|a+u|cA+rA|cB+C+rC+rB|a+u|*3|u|cD+E+rD+rE|a|*0|u|a+u|s+u";
        for step in steps.split('|') {
            let script = step.replace("B+C", "B&C").replace("D+E", "D&E");
            let script = script.replace('+', " ").replace('&', "+");
            play(&session, &script);
            session = reopened(&store, session);
            let is_compaction = step.starts_with('*');
            for (shape, shorter) in Shape::ALL.into_iter().zip(&mut shorter) {
                let json = session.context(shape).unwrap().into_json();
                let longer = messages(shape, &json);
                if !is_compaction {
                    assert!(longer.starts_with(shorter), "{shape} after {step}");
                    assert!(longer.len() > shorter.len() || shorter.is_empty());
                }
                *shorter = longer;
            }
        }
    }
}
