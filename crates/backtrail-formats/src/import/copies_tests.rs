//! Which changes of a file are copies, and which are the session's own.

use backtrail::{Message, Usage};

use super::*;
use crate::event::{MessageEvent, UsageEvent};

fn message(key: &str, text: &str) -> Event {
    Event::Message(MessageEvent::new(key, Message::user_text(text)))
}

fn usage(key: &str) -> Event {
    Event::Usage(UsageEvent {
        key: key.to_owned(),
        at: None,
        response_id: "r".to_owned(),
        model: None,
        usage: Usage::new(10, 1),
        duration_ms: None,
        cost_usd: None,
    })
}

/// Copies of three events, in a file that is read from its beginning.
fn copies() -> Copies {
    let mut events = CopiedEvents::default();
    for event in [message("a", "one"), usage("u~usage"), message("b", "two")] {
        events.add(&event);
    }
    Copies::new(&events, 7).at_beginning()
}

/// Returns the keys of the events that are the session's own.
fn own(copies: &mut Copies, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let mut own = Vec::new();
    for event in events {
        match copies.own(Change::Add(event)) {
            Some(Change::Add(event)) => own.push(event.key().to_owned()),
            Some(Change::RewindTo(_)) => panic!("an event became a rewind"),
            None => {}
        }
    }
    own
}

#[test]
fn copies_are_skipped_wherever_the_file_has_them() {
    let mut copies = copies();
    assert_eq!(copies.seen_to(), None);
    let file = [
        message("system", "be brief"),
        message("a", "one"),
        message("b", "two"),
        message("c", "three"),
        usage("u~usage"),
        usage("v~usage"),
    ];
    assert_eq!(own(&mut copies, file), ["system", "c", "v~usage"]);
    assert_eq!(copies.seen_to(), Some(7));
}

#[test]
fn copies_under_other_keys_are_recognised_by_their_content_and_place() {
    let mut whole = copies();
    let file = [
        message("a2", " one\n"),
        usage("u2"),
        message("b2", "two"),
        message("c", "two"),
    ];
    assert_eq!(own(&mut whole, file), ["c"]);
    // Their new keys are known from then on.
    let back = whole.own(Change::RewindTo(Some("b2".to_owned())));
    assert_eq!(back, Some(Change::RewindTo(None)));
    // The same text elsewhere is new.
    let mut moved = copies();
    let file = [
        message("x", "two"),
        message("a", "one"),
        message("y", "one"),
    ];
    assert_eq!(own(&mut moved, file), ["x", "y"]);
    // So is everything in a part of the file that was appended.
    let mut appended = copies();
    appended.next = None;
    assert_eq!(own(&mut appended, [message("x", "one")]), ["x"]);
}

#[test]
fn a_rewind_to_a_copy_is_one_to_the_beginning_and_others_stay() {
    let mut copies = copies();
    let mut rewind = |key: Option<&str>| copies.own(Change::RewindTo(key.map(str::to_owned)));
    let to = |key: Option<&str>| Some(Change::RewindTo(key.map(str::to_owned)));
    assert_eq!(rewind(Some("a")), to(None));
    assert_eq!(rewind(None), to(None));
    assert_eq!(rewind(Some("c")), to(Some("c")));
    // Places are not known any more.
    assert_eq!(own(&mut copies, [message("x", "one")]), ["x"]);
}

#[test]
fn a_note_that_was_damaged_has_fewer_copies() {
    let mut events = CopiedEvents::default();
    events.add(&message("a", "one"));
    events.0.push_str("0123ü");
    assert_eq!(Copies::new(&events, 1).keys.len(), 1);
    let mixed = CopiedEvents("ü".repeat(40));
    assert!(Copies::new(&mixed, 1).keys.len() <= 4);
}
