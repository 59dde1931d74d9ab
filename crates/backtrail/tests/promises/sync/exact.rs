//! A pulled session has the same bytes, with those that it continues and its sub-agents.

use std::path::PathBuf;

use backtrail::replica::Role;
use backtrail::{Draft, ErrorKind, Message, SessionId};

use super::kit::{Side, Story, assert_same, picture, replica};

#[test]
fn what_was_pushed_is_pulled_byte_for_byte_payloads_included() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    story.go_on(&a.store);
    let pushed = a.try_push(&story.fork_of_fork, &there).check().unwrap();
    let roles: Vec<(&SessionId, Role)> = pushed.sessions.iter().map(|s| (&s.id, s.role)).collect();
    assert_eq!(
        roles,
        [
            (&story.main, Role::Ancestor),
            (&story.fork, Role::Ancestor),
            (&story.fork_of_fork, Role::Named),
        ]
    );
    a.push(&story.main, &there);
    for id in [&story.main, &story.fork_of_fork] {
        assert!(b.pull(id, &there).is_new);
    }
    assert_same(&a.files(), &b.files());
    b.verify();
    // It is a session like others: it can be continued, searched and forked.
    b.say(&story.main, "from the other machine");
    assert!(b.texts(&story.main).contains(&"picture 6".to_owned()));
}

#[test]
fn a_second_push_and_pull_carry_only_what_is_new() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    assert!(a.push(&story.main, &there).is_nothing());
    assert!(b.pull(&story.main, &there).is_nothing());
    a.say(&story.main, "one more");
    let sent = a.push(&story.main, &there);
    assert_eq!((sent.lines, sent.payloads, sent.is_new), (1, 0, false));
    let got = b.pull(&story.main, &there);
    assert_eq!((got.lines, got.payloads, got.is_new), (1, 0, false));
    story.go_on(&a.store);
    assert_eq!(a.push(&story.main, &there).payloads, 2);
    assert_eq!(b.pull(&story.main, &there).payloads, 2);
    let agent = b.texts(&story.agent);
    assert_eq!(agent.last().map(String::as_str), Some("found it"));
    let own = |side: &Side| {
        let mut files = side.files();
        files.retain(|path, _| {
            path.starts_with(format!("/store/sessions/{}", story.main))
                || path.starts_with(format!("/store/sessions/{}", story.agent))
        });
        files
    };
    assert_same(&own(&a), &own(&b));
}

#[test]
fn two_machines_take_turns_and_stay_equal() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    for turn in 0..6 {
        let (here, other) = if turn % 2 == 0 { (&a, &b) } else { (&b, &a) };
        here.say(&story.main, &format!("turn {turn}"));
        story.go_on(&here.store);
        here.push(&story.main, &there);
        other.pull(&story.main, &there);
        assert_eq!(a.texts(&story.main), b.texts(&story.main));
    }
    let main = format!("/store/sessions/{}", story.main);
    let own = |side: &Side| {
        let mut files = side.trails();
        files.retain(|path, _| path.starts_with(&main));
        files
    };
    assert_same(&own(&a), &own(&b));
    b.verify();
}

#[test]
fn a_payload_that_no_line_names_moves_no_other() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    let session = a.store.open_session(&story.main).unwrap();
    // Its payload is stored, and then it is refused.
    let refused = session.append(Draft::from(picture(7)).expect(1));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    session.append(picture(8)).unwrap();
    session.close().unwrap();
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    let payloads = PathBuf::from(format!("/store/sessions/{}/payloads", story.main));
    let (here, pulled) = (&a.files()[&payloads], &b.files()[&payloads]);
    assert_eq!(here.len(), pulled.len());
    assert!(
        here != pulled,
        "the payload that no line names is not there"
    );
    b.verify();
}

#[test]
fn a_push_while_a_writer_works_takes_what_was_acknowledged() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    let session = a.store.open_session(&story.main).unwrap();
    session.append(Message::user_text("being written")).unwrap();
    a.push(&story.main, &there);
    session.append(Message::user_text("later")).unwrap();
    b.pull(&story.main, &there);
    let texts = b.texts(&story.main);
    assert_eq!(texts.last().map(String::as_str), Some("being written"));
    // While somebody writes here, nothing is pulled over it.
    let writer = b.store.open_session(&story.main).unwrap();
    a.push(&story.main, &there);
    assert_eq!(b.pull_error(&story.main, &there).kind(), ErrorKind::Locked);
    writer.close().unwrap();
    assert_eq!(b.pull(&story.main, &there).lines, 1);
}
