//! Sessions that were continued in two places are never merged: the caller is told, and can
//! push what is only here as a fork.

use backtrail::replica::{PullOptions, PushOptions, Refusal, Replica, Request};
use backtrail::{ErrorKind, Note};

use super::kit::{Side, Story, assert_same, key, named, picture, replica};

/// Two stores with a session that both continued; the second one's is there.
fn diverged() -> (Side, Side, backtrail_testkit::replica::MemoryReplica, Story) {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    b.say(&story.main, "there");
    b.push(&story.main, &there);
    (a, b, there, story)
}

fn last_seq(side: &Side, story: &Story) -> u64 {
    let reader = side.store.read_session(&story.main).unwrap();
    reader.info().unwrap().last_seq
}

#[test]
fn a_session_that_is_ahead_there_is_pulled_first() {
    let (a, _, there, story) = diverged();
    let error = a.push_error(&story.main, &there);
    assert_eq!(error.refusal(), Some(&Refusal::Ahead));
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("pull it first"), "{error}");
    a.pull(&story.main, &there);
    a.say(&story.main, "here");
    a.push(&story.main, &there);
}

#[test]
fn a_session_that_diverged_is_refused_either_way_and_says_since_when() {
    let (a, b, there, story) = diverged();
    let common = last_seq(&a, &story);
    a.say(&story.main, "here");
    let before = a.files();
    for error in [
        a.push_error(&story.main, &there),
        a.pull_error(&story.main, &there),
    ] {
        let Some(Refusal::Diverged { common: Some(it) }) = error.refusal() else {
            panic!("{error}");
        };
        assert_eq!(it.seq, common, "{error}");
    }
    assert_same(&before, &a.files());
    assert!(b.pull(&story.main, &there).is_nothing());
}

#[test]
fn two_rewinds_that_made_the_same_trail_diverged() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    let common = last_seq(&a, &story);
    for side in [&a, &b] {
        let session = side.store.open_session(&story.main).unwrap();
        session.rewind_chat(2).unwrap();
        session.close().unwrap();
    }
    a.say(&story.main, "mine");
    b.say(&story.main, "theirs");
    b.push(&story.main, &there);
    let error = a.push_error(&story.main, &there);
    let Some(Refusal::Diverged { common: Some(it) }) = error.refusal() else {
        panic!("{error}");
    };
    assert_eq!(it.seq, common);
}

#[test]
fn what_is_only_here_is_pushed_as_a_fork_once() {
    let (a, b, there, story) = diverged();
    a.say(&story.main, "here");
    let session = a.store.open_session(&story.main).unwrap();
    session.append(picture(9)).unwrap();
    session.close().unwrap();
    let options = PushOptions::new("a");
    let push = || {
        a.store
            .push_as_fork(&story.main, &there, &options, &mut |_| {})
    };
    let pushed = push().unwrap();
    pushed.transfer.check().unwrap();
    let again = push().unwrap();
    assert_eq!(again.fork, pushed.fork);
    assert!(
        again
            .transfer
            .of(&again.fork)
            .unwrap()
            .as_ref()
            .unwrap()
            .is_nothing()
    );
    assert_eq!(a.texts(&pushed.fork), a.texts(&story.main));
    b.pull(&pushed.fork, &there);
    assert_eq!(b.texts(&pushed.fork), a.texts(&story.main));
    assert_eq!(b.texts(&story.main).last().unwrap(), "there");
    a.verify();
    b.verify();
    // What did not diverge is no fork.
    let error = b
        .store
        .push_as_fork(&story.main, &there, &options, &mut |_| {});
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_fork_as_push_keeps_rewinds_of_what_both_have() {
    let (a, b, there, story) = diverged();
    let session = a.store.open_session(&story.main).unwrap();
    session.rewind_chat(2).unwrap();
    session.close().unwrap();
    a.say(&story.main, "another way");
    let options = PushOptions::new("a");
    let pushed = a
        .store
        .push_as_fork(&story.main, &there, &options, &mut |_| {});
    let fork = pushed.unwrap().fork;
    assert_eq!(a.texts(&fork), a.texts(&story.main));
    b.pull(&fork, &there);
    assert_eq!(b.texts(&fork), a.texts(&story.main));
    b.verify();
}

#[test]
fn a_fork_is_pushed_although_its_parent_diverged_later() {
    let (a, b, there, story) = diverged();
    a.say(&story.main, "here");
    let pushed = a.try_push(&story.fork_of_fork, &there);
    assert!(pushed.of(&story.main).unwrap().is_err());
    pushed.check().unwrap();
    b.pull(&story.fork_of_fork, &there);
    assert_eq!(b.texts(&story.fork_of_fork), a.texts(&story.fork_of_fork));
}

#[test]
fn a_fork_of_a_record_that_only_the_diverged_parent_has_is_refused() {
    let (a, _, there, story) = diverged();
    a.say(&story.main, "here");
    let fork = a
        .store
        .fork_session(&story.main, &backtrail::ForkOptions::new())
        .unwrap();
    let id = fork.id().clone();
    fork.close().unwrap();
    let error = a.push_error(&id, &there);
    assert!(
        matches!(error.refusal(), Some(Refusal::Diverged { .. })),
        "{error}"
    );
}

#[test]
fn a_session_that_another_machine_writes_to_is_refused_with_its_name() {
    let (a, _, there, story) = diverged();
    a.pull(&story.main, &there);
    a.say(&story.main, "more");
    let lease = Request::Lease {
        log: key(&story.main),
        holder: "laptop, backtrail run".to_owned(),
        ttl_ms: 9_500,
        wrapped_key: Vec::new(),
    };
    there.ask(&lease).unwrap();
    let error = a.push_error(&story.main, &there);
    assert_eq!(error.kind(), ErrorKind::Locked);
    let text = error.to_string();
    assert!(
        text.contains("laptop, backtrail run") && text.contains("10 s"),
        "{text}"
    );
}

#[test]
fn a_note_that_comes_while_a_pull_writes_stops_it() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    story.go_on(&a.store);
    a.push(&story.main, &there);
    let ids = [story.main.clone()];
    let mut noted = false;
    let pulled = b.store.pull(&ids, &there, &PullOptions::new(), &mut |_| {
        if !std::mem::replace(&mut noted, true) {
            b.store
                .note(&story.main, &Note::new().title("now"))
                .unwrap();
        }
    });
    let error = named(pulled.unwrap(), &story.main).unwrap_err();
    assert!(noted);
    assert_eq!(error.kind(), ErrorKind::Conflict);
    b.verify();
    let error = b.pull_error(&story.main, &there);
    assert!(
        matches!(error.refusal(), Some(Refusal::Diverged { .. })),
        "{error}"
    );
}
