//! A session that was taken in goes on like any other: it is spoken in, rewound,
//! forked, compacted and rotated, into and before what it was taken in with.

use backtrail::{Compaction, ErrorKind, ForkOptions, Message, Note, Session, Shape};

use super::disk::{Desk, LINES, doors, line, message, meta, object};
use crate::moves::step;

/// Three messages, records 1 to 3, in each form.
fn forms() -> [(&'static str, String); 2] {
    let lines: String = ["a", "b", "c"].map(message).concat();
    let elements: Vec<String> = ["a", "b", "c"]
        .map(|text| {
            format!("{{\"blocks\":[{{\"text\":\"{text}\",\"type\":\"text\"}}],\"role\":\"user\"}}")
        })
        .into();
    [
        // The meta may stand anywhere.
        ("lines.jsonl", lines + &meta("s")),
        (
            "object.json",
            format!("{{\"messages\":[{}]}}", elements.join(",")),
        ),
    ]
}

/// What is done with the session, and the history that it must lead to.
const TABLE: &[(&str, &str)] = &[
    ("", "a b c"),
    ("d e", "a b c d e"),
    ("undo! redo!", "a b c"),
    ("reopen d reopen e", "a b c d e"),
    // Into the old trail, and before it.
    ("<2", "a b"),
    ("<2 d", "a b d"),
    ("<1 d e", "a d e"),
    ("<0", ""),
    ("<0 d", "d"),
    ("d e <4", "a b c d"),
    ("d e <3 f", "a b c f"),
    ("d e <2 f <1 g", "a g"),
    // There and back.
    ("<2 undo", "a b c"),
    ("<2 undo undo!", "a b c"),
    ("<2 d undo", "a b c"),
    ("<2 d undo redo", "a b d"),
    ("<0 undo", "a b c"),
    ("<0 d undo redo", "d"),
    ("d <2 undo e", "a b c d e"),
    ("d <1 <0 undo undo", "a b c d"),
    ("<2 reopen undo reopen redo", "a b"),
    // Forks, and forks of forks.
    ("fork", "a b c"),
    ("fork d", "a b c d"),
    ("fork@2 d", "a b d"),
    ("fork@1 d fork@1 e", "a e"),
    ("fork@2 fork fork d", "a b d"),
    ("fork@2 d fork e <1", "a"),
    ("fork@2 d <1 e undo", "a b d"),
    ("fork@3 d fork <0 undo", "a b c d"),
    ("d e fork@4 f fork@2", "a b"),
    // Compactions.
    ("compact-1 d", "a b c * d"),
    ("compact-0 undo", "a b c"),
    ("compact-0 undo redo d", "a b c * d"),
    ("compact-2 <2 d", "a b d"),
    ("d compact-1 fork e <1", "a"),
    ("note d <2 note e", "a b e"),
];

fn play(desk: &Desk, mut session: Session, script: &str) -> Session {
    for word in script.split_whitespace() {
        session = step(&desk.store, session, word);
        let report = session.reader().verify().unwrap();
        assert!(report.is_ok(), "after {word} in {script}: {report:?}");
    }
    session
}

// A8, A9, A12
#[test]
fn moves_lead_where_the_table_says() {
    for rotation in [u64::MAX, 1, 900] {
        for (name, bytes) in forms() {
            for (script, expected) in TABLE {
                let desk = Desk::new().rotating_at(rotation);
                let id = desk.old_session(name, &bytes);
                let session = desk.store.open_session(&id).unwrap();
                let session = play(&desk, session, script);
                doors(&session.reader());
                let line = line(&session.reader()).replace(" note", "");
                assert_eq!(line, *expected, "{script} ({name}, rotation {rotation})");
                let trail = desk.memory.read(&desk.trail(&id, 0)).unwrap();
                assert_eq!(trail, bytes.as_bytes(), "{script}");
            }
        }
    }
}

#[test]
fn a_message_and_a_note_take_the_numbers_after_the_old_ones() {
    for (bytes, last) in [(LINES.to_owned(), 9), (object(), 6)] {
        let desk = Desk::new();
        let id = desk.old_session("talk", bytes);
        let noted = desk.store.note(&id, &Note::new().title("noted")).unwrap();
        assert_eq!(noted, last + 1);
        let session = desk.store.open_session(&id).unwrap();
        assert_eq!(session.append(Message::user_text("on")).unwrap(), last + 2);
        let (history, _) = doors(&session.reader());
        let new: Vec<_> = history.iter().rev().take(2).collect();
        assert_eq!(new[0], &(last + 2, "on".to_owned()));
        assert_eq!(new[1], &(last + 1, "note".to_owned()));
        let info = session.reader().info().unwrap();
        assert_eq!(info.title.as_deref(), Some("noted"));
        assert_eq!(info.last_seq, last + 2);
    }
}

// A11
#[test]
fn the_count_of_compactions_continues_from_the_old_one() {
    for bytes in [LINES.to_owned(), object()] {
        let desk = Desk::new();
        let id = desk.old_session("talk", bytes);
        let session = desk.store.open_session(&id).unwrap();
        let compacted = session
            .compact(&Compaction::new("all of it").keep(1))
            .unwrap();
        assert_eq!(compacted.count, 3);
        assert_eq!(compacted.removed_message_count, 5);
        assert_eq!(compacted.kept, 1);
        let context = || session.context(Shape::Neutral).unwrap().into_json();
        let after = context();
        assert!(after.contains("all of it") && after.contains("It is done."));
        assert!(!after.contains("they met before") && !after.contains("fix the bug"));
        let again = session.compact(&Compaction::new("once more")).unwrap();
        assert_eq!(again.count, 4);
        // Taken back, the old summary counts again.
        session.undo().unwrap().unwrap();
        session.undo().unwrap().unwrap();
        let before = context();
        assert!(before.contains("they met before") && before.contains("fix the bug"));
        assert!(!before.contains("all of it"), "{before}");
    }
}

/// A9: a summary is not lost with the messages: the object has them apart.
#[test]
fn a_summary_without_any_message_is_still_the_context() {
    let desk = Desk::new();
    let file = "{\"version\":1,\"messages\":[],\"compaction\":\
                {\"count\":4,\"removed_message_count\":9,\"summary\":\"all that was\"}}";
    let id = desk.old_session("talk.json", file);
    let session = desk.store.open_session(&id).unwrap();
    let context = || session.context(Shape::Neutral).unwrap().into_json();
    assert!(context().contains("all that was"), "{}", context());
    session.append(Message::user_text("on")).unwrap();
    assert!(context().contains("all that was"), "{}", context());
    let fork = session.fork(&ForkOptions::new()).unwrap();
    let forked = fork.context(Shape::Neutral).unwrap().into_json();
    assert!(forked.contains("all that was"), "{forked}");
    assert_eq!(session.compact(&Compaction::new("s")).unwrap().count, 5);
}

/// B2: history is cleared, and the old summary with it.
#[test]
fn rewound_to_the_beginning_nothing_of_the_old_talk_is_sent() {
    for bytes in [LINES.to_owned(), object()] {
        let desk = Desk::new();
        let id = desk.old_session("talk", bytes);
        let session = desk.store.open_session(&id).unwrap();
        session.rewind_chat(0).unwrap().unwrap();
        let context = || session.context(Shape::Neutral).unwrap().into_json();
        assert!(!context().contains("they met before"), "{}", context());
        assert_eq!(session.append(Message::user_text("anew")).unwrap(), 1);
        session.undo().unwrap().unwrap();
        assert!(context().contains("they met before"), "{}", context());
        assert!(context().contains("It is done."), "{}", context());
    }
}

#[test]
fn only_what_is_a_record_can_be_rewound_to() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    let session = desk.store.open_session(&id).unwrap();
    // Line 1 is the meta: it says nothing that happened.
    for seq in [1, 10, u64::MAX] {
        let error = session.rewind_chat(seq).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("its last is 9"), "{error}");
        let error = session.fork(&ForkOptions::new().at(seq)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    assert_eq!(session.rewind_chat(9).unwrap(), None);
    assert_eq!(session.reader().info().unwrap().trails, 2);
    assert_eq!(desk.store.sessions().unwrap(), [id]);
}

/// A12: the fork says where it comes from, not where its parent did.
#[test]
fn a_fork_of_an_imported_session_has_it_as_its_parent() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    let options = ForkOptions::new().at(5).branch_name(" other ");
    let fork = desk.store.fork_session(&id, &options).unwrap();
    let info = fork.reader().info().unwrap();
    let origin = info.forked_from.unwrap();
    assert_eq!(origin.parent_session_id, id.as_str());
    assert_eq!(origin.branch_name.as_deref(), Some("other"));
    assert_eq!(origin.seq, Some(5));
    assert_eq!(info.model.as_deref(), Some("m"));
    let context = fork.context(Shape::Neutral).unwrap().into_json();
    assert!(context.contains("they met before") && context.contains("toolu_01"));
    assert!(!context.contains("toolu_02"), "{context}");
    assert_eq!(fork.append(Message::user_text("on")).unwrap(), 6);
}

#[test]
fn a_follower_goes_from_the_old_trail_into_the_new_and_back() {
    let desk = Desk::new();
    let (name, bytes) = &forms()[0];
    let id = desk.old_session(name, bytes);
    let mut follower = desk.reader(&id).follow().unwrap();
    let mut read = || {
        let mut seqs = Vec::new();
        while let Some(record) = follower.poll().unwrap() {
            seqs.push(record.seq());
        }
        let moved = follower.take_moved().map(|moved| moved.seq);
        (seqs, moved)
    };
    assert_eq!(read(), (vec![1, 2, 3], None));
    assert_eq!(read(), (vec![], None));
    let session = desk.store.open_session(&id).unwrap();
    session.append(Message::user_text("d")).unwrap();
    assert_eq!(read(), (vec![4], None));
    session.rewind_chat(2).unwrap().unwrap();
    session.append(Message::user_text("e")).unwrap();
    assert_eq!(read(), (vec![3], Some(2)));
    session.undo().unwrap().unwrap();
    assert_eq!(read(), (vec![3, 4], Some(2)));
}

/// The compaction of a single object is no record of its own, and is there all the
/// same where the session is given as a plain value.
#[test]
fn a_transcript_has_the_summary_that_a_single_object_came_with() {
    let desk = Desk::new();
    let object = r#"{"version":1,"messages":[{"role":"user","blocks":[{"type":"text","text":"a"}]}],"compaction":{"count":3,"removed_message_count":7,"summary":"before"}}"#;
    let id = desk.old_session("talk.json", object);
    let transcript = desk.reader(&id).transcript().unwrap();
    let compaction = transcript.compaction().unwrap();
    assert_eq!((compaction.count, compaction.removed_message_count), (3, 7));
    assert_eq!(compaction.summary, "before");
    assert_eq!(transcript.kept_messages().len(), 1);
}
