//! An old store's session may have only its first trail, because the import died then.
//! It reads, and opening it to write completes it, whatever interrupts that (F5).

use backtrail::{Message, Note, SessionId, Shape};
use backtrail_testkit::{Fault, FaultyStorage, Loss, When};

use super::disk::{Desk, LINES, ROOT, both_ends, line, object, options};
use crate::kit::End;

fn ends(n: u64) -> [End; 5] {
    [
        End::Kill,
        End::Power(Loss::Unsynced),
        End::Power(Loss::Nothing),
        End::Power(Loss::Tail { keep_bytes: 17 }),
        End::Power(Loss::Shuffled { seed: n }),
    ]
}

/// Both forms, each with the history that it must lead to.
fn both() -> [(&'static str, String, String); 2] {
    [("talk.jsonl", LINES.to_owned()), ("talk.json", object())].map(|(name, bytes)| {
        let desk = Desk::new();
        let id = desk.old_session(name, &bytes);
        let expected = line(&desk.reader(&id));
        (name, bytes, expected)
    })
}

// F5
#[test]
fn half_a_session_reads_and_is_completed_by_the_next_note_or_message() {
    for (name, bytes, expected) in both() {
        let desk = Desk::new();
        let id = desk.half_session(name, &bytes);
        for (id, info) in desk.store.infos().unwrap() {
            info.unwrap();
            assert_eq!(line(&desk.reader(&id)), expected);
            assert!(desk.reader(&id).verify().unwrap().is_ok());
        }
        desk.store.note(&id, &Note::new().title("noted")).unwrap();
        let session = desk.store.open_session(&id).unwrap();
        session.append(Message::user_text("on")).unwrap();
        drop(session);
        let after = Desk::on(desk.memory.crash(Loss::Unsynced));
        let reader = after.reader(&id);
        assert_eq!(line(&reader), format!("{expected} note on"));
        assert!(reader.verify().unwrap().is_ok());
        assert_eq!(reader.info().unwrap().trails, 2);
        let context = reader.context(Shape::Neutral).unwrap();
        assert!(context.as_json().contains("they met before"));
    }
}

/// A session that a crash left half is completed when it is opened, and that can be
/// interrupted as well.
#[test]
fn f5_a_crash_while_it_is_completed_loses_nothing() {
    for (name, bytes, expected) in both() {
        let desk = Desk::new();
        let id = desk.half_session(name, &bytes);
        let half = desk.memory.crash(Loss::Nothing);
        for n in 0.. {
            let memory = half.crash(Loss::Nothing);
            let disk = FaultyStorage::new(memory.clone());
            let store = options(disk.clone()).open(ROOT).unwrap();
            disk.arm(n, Fault::Crash { when: When::After });
            let said = store
                .open_session(&id)
                .and_then(|session| session.append(Message::user_text("on")));
            for end in ends(n) {
                let at = format!("{name} at {n}, {end:?}");
                let next = Desk::on(end.of(&memory));
                let line = words_of(&next, &id);
                let whole = format!("{expected} on");
                assert!(
                    line == whole || said.is_err() && line == expected,
                    "{at}: {line}"
                );
                // Opening it makes durable what is there.
                let again = Desk::on(end.of(&memory));
                again.store.open_session(&id).unwrap().close().unwrap();
                let after = Desk::on(again.memory.crash(Loss::Unsynced));
                let line = words_of(&after, &id);
                assert!(
                    line == whole || said.is_err() && line == expected,
                    "{at}: {line}"
                );
                assert_eq!(after.reader(&id).info().unwrap().trails, 2, "{at}");
            }
            if !disk.fired() {
                said.unwrap();
                break;
            }
        }
    }
}

/// Reads a session in which a line may be unfinished.
fn words_of(desk: &Desk, id: &SessionId) -> String {
    let words = both_ends(&desk.reader(id))
        .0
        .into_iter()
        .map(|(_, word)| word);
    words.collect::<Vec<_>>().join(" ")
}
