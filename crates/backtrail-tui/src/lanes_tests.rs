//! Lanes keep out of each other's way, drop what nobody needs, and never an action.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::*;
use crate::fake_tests::{Fake, gate};
use backtrail_view::library::{Action, OnConflict, Scope};

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lanes over a library whose every call with `slow` in its name waits for the gate.
struct Rig {
    lanes: Lanes,
    open: Sender<()>,
    replies: Receiver<(Request, Reply)>,
    begun: Receiver<String>,
    asked: Arc<Mutex<Vec<String>>>,
}

fn rig() -> Rig {
    let (open, gate_messages) = channel();
    let (told, replies) = channel();
    let (begins, begun) = channel();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, wait) = (Arc::clone(&asked), gate(gate_messages));
    let fake = Fake::new(move |name| {
        log.lock().unwrap().push(name.to_owned());
        begins.send(name.to_owned()).ok();
        if name.contains("slow") {
            wait();
        }
        assert!(!name.contains("broken"), "it broke");
    });
    let lanes = Lanes::new(Arc::new(fake), move |request, reply| {
        told.send((request, reply)).ok();
    });
    Rig {
        lanes,
        open,
        replies,
        begun,
        asked,
    }
}

impl Rig {
    fn ask(&mut self, request: Request) {
        self.lanes.ask(request, Look::default()).unwrap();
    }

    fn next(&self) -> Request {
        self.replies.recv_timeout(PATIENCE).unwrap().0
    }

    /// Waits until the library is asked something.
    fn wait_for(&self, name: &str) {
        while self.begun.recv_timeout(PATIENCE).unwrap() != name {}
    }
}

fn search(words: &str) -> Request {
    Request::Search(words.to_owned(), Scope::Everything)
}

#[test]
fn a_slow_search_does_not_keep_a_list_waiting() {
    let mut rig = rig();
    rig.ask(search("slow"));
    rig.wait_for("search slow");
    let list = Request::Sessions(Scope::Everything, Freshness::Known);
    rig.ask(list.clone());
    assert_eq!(rig.next(), list);
    rig.open.send(()).unwrap();
    assert_eq!(rig.next(), search("slow"));
}

#[test]
fn of_waiting_searches_only_the_newest_is_asked() {
    let mut rig = rig();
    rig.ask(search("slow"));
    rig.wait_for("search slow");
    for words in ["a", "ab", "abc"] {
        rig.ask(search(words));
    }
    rig.open.send(()).unwrap();
    assert_eq!([rig.next(), rig.next()], [search("slow"), search("abc")]);
    assert_eq!(*rig.asked.lock().unwrap(), ["search slow", "search abc"]);
}

#[test]
fn requests_that_are_not_replaced_are_all_answered_in_order() {
    let mut rig = rig();
    for limit in 1..=5 {
        rig.ask(Request::Timeline(limit));
    }
    let answered: Vec<Request> = (0..5).map(|_| rig.next()).collect();
    let asked: Vec<Request> = (1..=5).map(Request::Timeline).collect();
    assert_eq!(answered, asked);
}

#[test]
fn a_panic_of_the_library_is_a_failure_and_the_lane_goes_on() {
    let mut rig = rig();
    rig.ask(search("broken"));
    let (_, reply) = rig.replies.recv_timeout(PATIENCE).unwrap();
    let Reply::Search(Err(failure)) = reply else {
        panic!("{reply:?}");
    };
    assert!(failure.message.contains("it broke"), "{failure:?}");
    rig.ask(search("whole"));
    assert_eq!(rig.next(), search("whole"));
}

#[test]
fn ending_waits_for_the_action_that_is_being_done_and_for_those_that_were_asked() {
    let mut rig = rig();
    rig.ask(Request::Do(Action::Title(
        "slow".to_owned(),
        "x".to_owned(),
    )));
    rig.ask(Request::Apply(3, OnConflict::Stop));
    rig.open.send(()).unwrap();
    rig.lanes.end(Waiting::Done);
    let asked = rig.asked.lock().unwrap().join("\n");
    assert!(asked.starts_with("plan Title(\"slow\""), "{asked}");
    assert!(asked.ends_with("apply 7\napply 3"), "{asked}");
}

#[test]
fn a_signal_lets_the_action_end_and_drops_those_that_wait() {
    let mut rig = rig();
    rig.ask(Request::Do(Action::Title(
        "slow".to_owned(),
        "x".to_owned(),
    )));
    rig.wait_for("plan Title(\"slow\", \"x\")");
    rig.ask(Request::Apply(3, OnConflict::Stop));
    // As `end` does, before the action may end.
    rig.lanes.lanes[&Lane::Actions].0.close(Waiting::Dropped);
    rig.open.send(()).unwrap();
    rig.lanes.end(Waiting::Dropped);
    assert_eq!(rig.asked.lock().unwrap().last().unwrap(), "apply 7");
}

#[test]
fn an_action_that_is_not_possible_is_not_done() {
    let mut rig = rig();
    rig.ask(Request::Do(Action::Delete("x".to_owned())));
    let (_, reply) = rig.replies.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(reply, Reply::Applied(Err(_))), "{reply:?}");
    assert_eq!(rig.asked.lock().unwrap().len(), 1);
}
