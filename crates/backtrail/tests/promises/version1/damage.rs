//! Damage after a session was taken in: it is noticed, gone around, and never
//! hides what is whole.

use backtrail::verify::VerifyReport;
use backtrail::{ErrorKind, ForkOptions, Message, Note, Reason, SessionId, Shape, Storage};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::disk::{Desk, LINES, both_ends, doors, line, message, object};

fn flip(desk: &Desk, id: &SessionId, trail: u32, at: usize) {
    let path = desk.trail(id, trail);
    let mut bytes = desk.memory.read(&path).unwrap();
    bytes[at] ^= 1;
    desk.memory.write(&path, &bytes).unwrap();
}

fn verify(desk: &Desk, id: &SessionId) -> VerifyReport {
    desk.reader(id).verify().unwrap()
}

// A8
#[test]
fn a_changed_byte_of_the_old_trail_is_noticed_wherever_it_is() {
    for bytes in [LINES.to_owned(), object()] {
        let desk = Desk::new();
        let id = desk.old_session("talk", &bytes);
        assert!(verify(&desk, &id).is_ok());
        for at in 0..bytes.len() {
            flip(&desk, &id, 0, at);
            let report = verify(&desk, &id);
            let noticed =
                report.damage.first().iter().any(|damage| {
                    damage.file == desk.trail(&id, 0) && damage.reason == Reason::BadSum
                });
            assert!(noticed, "byte {at}: {report:?}");
            flip(&desk, &id, 0, at);
        }
        assert!(verify(&desk, &id).is_ok());
    }
}

/// A byte that changes later costs its record at most; the session goes on.
#[test]
fn a_changed_byte_of_the_old_trail_costs_no_more_than_its_record() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    let session = desk.store.open_session(&id).unwrap();
    session.append(Message::user_text("on")).unwrap();
    session.close().unwrap();
    let (whole, _) = doors(&desk.reader(&id));
    // Where no newline comes or goes: else the lines behind it would move.
    let newlines = [b'\n', b'\n' ^ 1];
    for at in (0..LINES.len()).filter(|at| !newlines.contains(&LINES.as_bytes()[*at])) {
        flip(&desk, &id, 0, at);
        let (history, _) = both_ends(&desk.reader(&id));
        let of = LINES[..at].matches('\n').count() as u64 + 1;
        for (seq, word) in &whole {
            let there = history.iter().any(|(n, w)| n == seq && w == word);
            assert!(there || *seq == of, "byte {at}: {seq} {word}");
        }
        assert!(history.iter().any(|(_, word)| word == "on"), "byte {at}");
        flip(&desk, &id, 0, at);
    }
}

#[test]
fn damage_in_a_later_trail_is_repaired() {
    for rotation in [u64::MAX, 1] {
        for (bytes, last) in [(LINES.to_owned(), 9), (object(), 6)] {
            let desk = Desk::new().rotating_at(rotation);
            let id = desk.old_session("talk", &bytes);
            let before = line(&desk.reader(&id));
            let session = desk.store.open_session(&id).unwrap();
            for text in ["x", "y", "z"] {
                session.append(Message::user_text(text)).unwrap();
            }
            session.close().unwrap();
            // The record of y.
            let (trail, at) = place_of(&desk, &id, "\"y\"");
            flip(&desk, &id, trail, at + 1);
            let (history, damaged) = doors(&desk.reader(&id));
            assert_eq!(damaged, 1 + u64::from(rotation == 1), "{history:?}");
            assert!(!verify(&desk, &id).is_ok());
            let report = desk.store.repair_plan(&id).unwrap().apply().unwrap();
            assert_eq!(report.missing, [last + 2..=last + 2]);
            let repaired = verify(&desk, &id);
            assert!(repaired.is_ok(), "{repaired:?}");
            assert_eq!(line(&desk.reader(&id)), format!("{before} x z"));
            let session = desk.store.open_session(&id).unwrap();
            assert_eq!(session.append(Message::user_text("on")).unwrap(), last + 4);
            let context = session.context(Shape::Neutral).unwrap().into_json();
            assert!(context.contains("they met before"), "{context}");
            assert_eq!(
                desk.memory.read(&desk.trail(&id, 0)).unwrap(),
                bytes.as_bytes()
            );
        }
    }
}

fn place_of(desk: &Desk, id: &SessionId, what: &str) -> (u32, usize) {
    for trail in 1..20 {
        let Ok(bytes) = desk.memory.read(&desk.trail(id, trail)) else {
            break;
        };
        if let Some(at) = String::from_utf8(bytes).unwrap().find(what) {
            return (trail, at);
        }
    }
    panic!("{what} is in no trail");
}

/// What is damaged in the file was so when it was taken in: a repair has nothing
/// to do about it, and what is said to be wrong later is only what changed since.
#[test]
fn what_was_damaged_before_needs_no_repair() {
    let desk = Desk::new();
    let file = message("a") + "garbage\n" + &message("b");
    let id = desk.old_session("talk.jsonl", file);
    assert!(verify(&desk, &id).is_ok());
    let plan = desk.store.repair_plan(&id).unwrap();
    assert!(plan.is_empty(), "{plan:?}");
    let report = plan.apply().unwrap();
    assert_eq!(report.trail, None);
    assert_eq!(desk.reader(&id).info().unwrap().trails, 2);
}

/// A changed old trail cannot be mended: a repair does not make it look as if it
/// were.
#[test]
fn a_changed_old_trail_is_still_reported_after_a_repair() {
    for at in [LINES.len() - 30, LINES.len() / 2] {
        let desk = Desk::new();
        let id = desk.old_session("talk.jsonl", LINES);
        let session = desk.store.open_session(&id).unwrap();
        session.append(Message::user_text("on")).unwrap();
        session.close().unwrap();
        flip(&desk, &id, 0, at);
        let (before, _) = doors(&desk.reader(&id));
        desk.store.repair_plan(&id).unwrap().apply().unwrap();
        let report = verify(&desk, &id);
        let reasons: Vec<_> = report.damage.first().iter().map(|d| &d.reason).collect();
        assert_eq!(reasons, [&Reason::BadSum], "{at}: {report:?}");
        assert_eq!(doors(&desk.reader(&id)).0, before, "{at}");
        assert!(desk.store.repair_plan(&id).unwrap().is_empty(), "{at}");
    }
}

/// F23: the old trail is there whatever happens to what says so.
#[test]
fn a_damaged_second_opener_hides_nothing_and_can_be_repaired() {
    for bytes in [LINES.to_owned(), object()] {
        let desk = Desk::new();
        let id = desk.old_session("talk", &bytes);
        let session = desk.store.open_session(&id).unwrap();
        session.append(Message::user_text("on")).unwrap();
        session.close().unwrap();
        let whole = line(&desk.reader(&id));
        let second = desk.memory.read(&desk.trail(&id, 1)).unwrap();
        let opener = second.iter().position(|byte| *byte == b'\n').unwrap();
        for at in 0..opener {
            flip(&desk, &id, 1, at);
            let words: Vec<String> = both_ends(&desk.reader(&id))
                .0
                .into_iter()
                .map(|(_, w)| w)
                .collect();
            assert_eq!(words.join(" "), whole, "byte {at}");
            flip(&desk, &id, 1, at);
        }
        flip(&desk, &id, 1, 70);
        desk.store.repair_plan(&id).unwrap().apply().unwrap();
        assert!(verify(&desk, &id).is_ok());
        assert_eq!(line(&desk.reader(&id)), whole);
        let fork = desk.store.fork_session(&id, &ForkOptions::new()).unwrap();
        assert_eq!(line(&fork.reader()), whole);
    }
}

/// A first trail of ours whose opener is lost is not taken for version 1.
#[test]
fn a_damaged_trail_of_ours_is_never_read_as_version_1() {
    let desk = Desk::new();
    let options = backtrail::SessionOptions::new();
    let session = desk.store.create_session(options).unwrap();
    let id = session.id().clone();
    session.append(Message::user_text("a")).unwrap();
    session.note(&Note::new().title("t")).unwrap();
    session.append(Message::user_text("b")).unwrap();
    session.close().unwrap();
    let whole = desk.memory.read(&desk.trail(&id, 0)).unwrap();
    let opener = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for at in 0..=opener {
        flip(&desk, &id, 0, at);
        let (history, damaged) = both_ends(&desk.reader(&id));
        let seqs: Vec<u64> = history.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, [1, 2, 3], "byte {at}");
        assert!(damaged > 0, "byte {at}");
        flip(&desk, &id, 0, at);
    }
}

/// A file that is cut while it is read ends there, and nothing else happens.
#[test]
fn an_old_trail_that_is_cut_while_it_is_read_ends_there() {
    let last = message("c").trim_end().to_owned() + "    \n";
    let whole = message("a") + &message("b") + &last;
    for cut in 0..whole.len() {
        let desk = Desk::new();
        let id = desk.old_session("talk.jsonl", &whole);
        let mut records = desk.reader(&id).records().unwrap();
        assert_eq!(records.next().unwrap().unwrap().seq(), 1);
        let path = desk.trail(&id, 0);
        desk.memory.write(&path, &whole.as_bytes()[..cut]).unwrap();
        let mut seqs = Vec::new();
        while let Some(record) = records.next().unwrap() {
            seqs.push(record.seq());
            assert!(record.message().unwrap().is_some());
        }
        let ends = [whole.len() - last.len() - 1, whole.len() - 5];
        let expected = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(seqs, [2, 3][..expected], "cut at {cut}");
    }
}

#[derive(Debug, Clone)]
enum Harm {
    Flip(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = 0..10_000_usize;
    let bits = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..20),
        Just(b"\n".to_vec()),
        Just(vec![0; 600]),
        Just(b"{\"type\":\"".to_vec()),
        Just(b",\"sum\":\"0123456789abcdef\"}\n".to_vec()),
        Just(b"]}".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
    ];
    prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(at, with)| Harm::Flip(at, with)),
        at.clone().prop_map(Harm::Cut),
        (at.clone(), 0..400_usize).prop_map(|(at, len)| Harm::Remove(at, len)),
        (at.clone(), bits).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (at, 0..900_usize).prop_map(|(at, len)| Harm::Repeat(at, len)),
    ]
}

fn suffer(bytes: &mut Vec<u8>, harm: &Harm) {
    let within = |at: usize| at % (bytes.len() + 1);
    match harm {
        Harm::Flip(at, with) => {
            let at = within(*at);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = *with;
            }
        }
        Harm::Cut(at) => bytes.truncate(within(*at)),
        Harm::Remove(at, len) => {
            let at = within(*at);
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        Harm::Insert(at, more) => {
            let at = within(*at);
            bytes.splice(at..at, more.iter().copied());
        }
        Harm::Repeat(at, len) => {
            let at = within(*at);
            let again = bytes[at..(at + len).min(bytes.len())].to_vec();
            bytes.splice(at..at, again);
        }
    }
}

fn check_any(bytes: &[u8], pick: u64) {
    let desk = Desk::new();
    let loaded = match desk.try_load("talk", bytes) {
        Err(error) => {
            // A file that ends in its first record may be a trail or a file of version 1.
            let is_cut = error.reason() == Some(&Reason::Unfinished);
            let is_refused = error.kind() == ErrorKind::Invalid
                || (is_cut && error.kind() == ErrorKind::Corrupt);
            assert!(is_refused, "{error:?}");
            assert!(
                error.path().is_some() && error.reason().is_some(),
                "{error:?}"
            );
            assert!(desk.store.sessions().unwrap().is_empty());
            return;
        }
        Ok(loaded) => loaded,
    };
    let id = desk.old_session("talk", bytes);
    let reader = desk.reader(&id);
    let whole = doors(&reader);
    let messages = reader.stats().unwrap().messages.total;
    let loaded = loaded.messages().len() as u64;
    assert!(messages == loaded || messages < loaded && has_object_line(bytes));
    let verified = reader.verify().unwrap();
    assert!(
        verified.is_ok(),
        "{verified:?} {:?}",
        String::from_utf8_lossy(bytes)
    );
    for shape in Shape::ALL {
        let context = reader.context(shape).unwrap();
        serde_json::from_str::<serde::de::IgnoredAny>(context.as_json()).unwrap();
    }
    check_moves(&desk, &id, &whole.0, pick);
    // As a crash leaves it.
    let desk = Desk::new();
    let id = desk.old_session("talk", bytes);
    desk.memory.remove_file(&desk.trail(&id, 1)).unwrap();
    assert_eq!(both_ends(&desk.reader(&id)).0, whole.0);
    desk.store.open_session(&id).unwrap().close().unwrap();
    assert_eq!(both_ends(&desk.reader(&id)), whole);
}

/// Returns whether a line is an object of the older form: its messages have no numbers of
/// their own, so that only a transcript has them.
fn has_object_line(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| {
        let value = serde_json::from_slice::<serde_json::Value>(line.trim_ascii());
        value.is_ok_and(|value| value["messages"].is_array() && value["type"].is_null())
    })
}

fn check_moves(desk: &Desk, id: &SessionId, whole: &[(u64, String)], pick: u64) {
    let session = desk.store.open_session(id).unwrap();
    if let Some((seq, _)) = whole.get(pick as usize % whole.len().max(1)) {
        session.rewind_chat(*seq).unwrap();
        let kept = whole.iter().take_while(|(n, _)| n <= seq);
        assert!(both_ends(&session.reader()).0.iter().eq(kept));
    }
    session.rewind_chat(0).unwrap();
    assert_eq!(both_ends(&session.reader()).0, []);
    while session.undo().unwrap().is_some() {}
    assert_eq!(both_ends(&session.reader()).0, whole);
}

proptest! {
    #![proptest_config(Config { cases: 400, failure_persistence: None, ..Config::default() })]

    // F8
    #[test]
    fn no_damage_of_a_file_makes_anything_panic_or_disagree(
        lines in any::<bool>(),
        harms in prop::collection::vec(harm(), 0..6),
        pick in any::<u64>(),
    ) {
        let mut bytes = if lines { LINES.to_owned() } else { object() }.into_bytes();
        for harm in &harms {
            suffer(&mut bytes, harm);
        }
        check_any(&bytes, pick);
    }
}
