//! A follower sees every record once, as soon as its line is whole, wherever the
//! session goes on; and it learns when the conversation moved.

use backtrail::TrailReason;
use backtrail::conversation::Moved;
use backtrail::{Follower, Message, SessionId};

use crate::damage::lab::forge::{self, From};
use crate::damage::lab::{Lab, Story, forwards, lines};

/// Takes all that is there now.
fn drain(follower: &mut Follower) -> Vec<u64> {
    let mut seqs = Vec::new();
    while let Some(record) = follower.poll().unwrap() {
        seqs.push(record.seq());
    }
    seqs
}

#[test]
fn a_follower_sees_what_is_appended_after_it_reached_the_end() {
    let lab = Lab::new();
    let session = lab.store.create_session(Default::default()).unwrap();
    let mut follower = session.reader().follow().unwrap();
    assert!(drain(&mut follower).is_empty());
    for n in 1..=5 {
        session.append(Message::user_text(format!("{n}"))).unwrap();
        let record = follower.poll().unwrap().unwrap();
        assert_eq!(record.seq(), n);
        assert_eq!(record.message().unwrap().unwrap().text(), format!("{n}"));
        assert!(drain(&mut follower).is_empty());
    }
    session
        .note(&backtrail::Note::new().title("noted"))
        .unwrap();
    session.append(Message::user_text("7")).unwrap();
    assert_eq!(drain(&mut follower), [6, 7]);
    assert!(follower.take_moved().is_none());
    assert!(follower.damage().is_empty());
}

/// A13.
#[test]
fn a_follower_continues_across_rotation() {
    let lab = Lab::on(Default::default(), 1_000);
    let session = lab.store.create_session(Default::default()).unwrap();
    let mut early = session.reader().follow().unwrap();
    let mut seen = Vec::new();
    for n in 1..=40 {
        session
            .append(Message::user_text(format!("message {n}")))
            .unwrap();
        if n % 3 == 0 {
            seen.extend(drain(&mut early));
        }
    }
    assert!(session.reader().info().unwrap().trails > 5);
    seen.extend(drain(&mut early));
    let all: Vec<u64> = (1..=40).collect();
    assert_eq!(seen, all);
    assert_eq!(drain(&mut session.reader().follow().unwrap()), all);
    assert!(early.take_moved().is_none());
}

/// A record that was written to the old trail just before the new one came.
#[test]
fn a_follower_misses_nothing_between_two_trails() {
    let lab = Lab::new();
    let a: SessionId = "handover".parse().unwrap();
    let t0 = forge::trail(&a, 0, "start", None, 2);
    let mut all = lines(&t0);
    let last = all.pop().unwrap();
    lab.plant(&a, &[&all.concat()]);
    let mut follower = lab.reader(&a).follow().unwrap();
    assert_eq!(drain(&mut follower), [1]);
    let t1 = forge::trail(&a, 1, "rotation", Some(From::new(&a, 0, 2, &t0)), 2);
    lab.put(&a, 0, &[&all.concat(), last].concat());
    lab.put(&a, 1, &t1);
    assert_eq!(drain(&mut follower), [2, 3, 4]);
}

#[test]
fn a_follower_never_shows_a_line_that_is_not_whole() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let last = lines(&bytes).pop().unwrap();
    let whole = bytes.len() - last.len();
    let lab = story.with(0, &bytes[..whole]);
    let mut follower = lab.reader(&story.id).follow().unwrap();
    assert_eq!(drain(&mut follower).len(), story.shown.len() - 1);
    for at in whole..bytes.len() {
        lab.put(&story.id, 0, &bytes[..at]);
        assert!(follower.poll().unwrap().is_none(), "at byte {at}");
    }
    lab.put(&story.id, 0, &bytes);
    let record = follower.poll().unwrap().unwrap();
    assert_eq!(record.bytes(), story.shown.last().unwrap().1);
    assert!(follower.damage().is_empty());
}

/// A writer whose disk was full takes its half line back, and writes another.
#[test]
fn a_follower_forgets_half_a_line_that_was_cut_off() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let lab = story.lab.copy();
    let mut follower = lab.reader(&story.id).follow().unwrap();
    drain(&mut follower);
    lab.put(
        &story.id,
        0,
        &[&bytes[..], b"{\"type\":\"message\",\"seq\":7,\"at\""].concat(),
    );
    assert!(follower.poll().unwrap().is_none());
    lab.put(&story.id, 0, &bytes);
    assert!(follower.poll().unwrap().is_none());
    let session = lab.store.open_session(&story.id).unwrap();
    let seq = session.append(Message::user_text("another")).unwrap();
    assert_eq!(drain(&mut follower), [seq]);
    assert!(follower.damage().is_empty());
}

#[test]
fn a_follower_passes_over_damage_and_counts_it() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let mut all = lines(&bytes);
    let lost = all[2];
    all[2] = b"garbage\n";
    all.insert(4, &[0; 700]);
    let lab = story.with(0, &all.concat());
    let mut follower = lab.reader(&story.id).follow().unwrap();
    let expected: Vec<u64> = story.without([lost]).iter().map(|(seq, _)| *seq).collect();
    assert_eq!(drain(&mut follower), expected);
    assert_eq!(follower.damage().count(), 2);
}

/// Follows a session whose trails come one after the other, and keeps what a
/// screen would show: at a move it takes back what does not stay.
fn screen_after_each(id: &SessionId, trails: &[Vec<u8>]) -> Vec<(Vec<String>, Vec<Moved>)> {
    let lab = Lab::new();
    lab.plant(id, &[&trails[0]]);
    let mut follower = lab.reader(id).follow().unwrap();
    let mut screen: Vec<(u64, String)> = Vec::new();
    let mut states = Vec::new();
    for (n, trail) in trails.iter().enumerate() {
        lab.put(id, u32::try_from(n).unwrap(), trail);
        let mut moves = Vec::new();
        loop {
            let said = follower.poll().unwrap().map(|record| {
                let text = record.message().unwrap().unwrap().text().into_owned();
                (record.seq(), text)
            });
            if let Some(moved) = follower.take_moved() {
                screen.retain(|(seq, _)| *seq <= moved.seq);
                assert!(follower.take_moved().is_none(), "it is told once");
                moves.push(moved);
            }
            let Some(said) = said else { break };
            screen.push(said);
        }
        let texts = |shown: &[(u64, String)]| shown.iter().map(|(_, text)| text.clone()).collect();
        let on_screen: Vec<String> = texts(&screen);
        // Whoever comes now sees the same.
        let shown = forwards(&lab.reader(id)).0.len();
        assert_eq!(on_screen.len(), shown, "after trail {n}: {on_screen:?}");
        states.push((on_screen, moves));
    }
    states
}

#[test]
fn a_follower_learns_that_the_conversation_was_rewound() {
    let a: SessionId = "a".parse().unwrap();
    let t0 = forge::trail(&a, 0, "start", None, 5);
    let t1 = forge::trail(&a, 1, "rewind", Some(From::new(&a, 0, 2, &t0)), 2);
    let mut from = From::new(&a, 0, 1, &t0);
    from.trail = 1;
    let t2 = forge::trail(&a, 2, "undo", Some(from), 1);
    let states = screen_after_each(&a, &[t0, t1, t2]);
    assert_eq!(states[0].1, []);
    assert_eq!(states[1].0, ["a/0/1", "a/0/2", "a/1/3", "a/1/4"]);
    assert_eq!(
        states[1].1,
        [Moved {
            reason: TrailReason::Rewind,
            seq: 2
        }]
    );
    assert_eq!(states[2].0, ["a/0/1", "a/2/2"]);
    assert_eq!(
        states[2].1,
        [Moved {
            reason: TrailReason::Undo,
            seq: 1
        }]
    );
}

/// The new trail has nothing of its own yet: that it moved is news all the same.
#[test]
fn a_follower_learns_of_a_move_before_anything_is_said_after_it() {
    let a: SessionId = "a".parse().unwrap();
    let t0 = forge::trail(&a, 0, "start", None, 5);
    let t1 = forge::trail(&a, 1, "rewind", Some(From::new(&a, 0, 2, &t0)), 0);
    let states = screen_after_each(&a, &[t0, t1]);
    assert_eq!(states[1].0, ["a/0/1", "a/0/2"]);
}

/// Redo: the conversation comes forward again, onto a branch that was left.
#[test]
fn a_follower_shows_what_a_redo_brings_back() {
    let a: SessionId = "a".parse().unwrap();
    let t0 = forge::trail(&a, 0, "start", None, 5);
    for own in 0..=3 {
        let t1 = forge::trail(&a, 1, "undo", Some(From::new(&a, 0, 2, &t0)), own);
        let t2 = forge::trail(&a, 2, "redo", Some(From::new(&a, 0, 5, &t0)), 1);
        let states = screen_after_each(&a, &[t0.clone(), t1, t2]);
        let all = ["a/0/1", "a/0/2", "a/0/3", "a/0/4", "a/0/5", "a/2/6"];
        assert_eq!(states[2].0, all, "with {own} records in between");
    }
}

/// A fork's follower begins with what the fork inherited.
#[test]
fn a_follower_of_a_fork_begins_with_its_parents_records() {
    let lab = Lab::new();
    let (parent, child): (SessionId, SessionId) = ("p".parse().unwrap(), "c".parse().unwrap());
    let p0 = forge::trail(&parent, 0, "start", None, 4);
    let c0 = forge::trail(&child, 0, "fork", Some(From::new(&parent, 0, 2, &p0)), 1);
    lab.plant(&parent, &[&p0]);
    lab.plant(&child, &[&c0]);
    let mut follower = lab.reader(&child).follow().unwrap();
    assert_eq!(drain(&mut follower), [1, 2, 3]);
    let session = lab.store.open_session(&child).unwrap();
    session.append(Message::user_text("on")).unwrap();
    assert_eq!(drain(&mut follower), [4]);
    assert!(follower.take_moved().is_none());
}
