//! Only a server that was started to write changes anything: one action after another, each to
//! its end.

use std::thread;
use std::time::Duration;

use backtrail_web::{Limits, Options};

use crate::client::{reading, wait_for, with, writing};

const PLAN: &str = r#"{"action":{"do":"undo"}}"#;

#[test]
fn a_server_that_only_reads_plans_and_does_nothing() {
    let web = reading();
    for path in ["/api/plan", "/api/apply"] {
        let answer = web.post(path, PLAN);
        answer.assert_refused(403);
        assert!(answer.body.contains("backtrail web --write"), "{answer:?}");
    }
    assert_eq!(web.get("/api/hello").json()["can_write"], false);
    let answer = web.post("/api/apply", r#"{"token":"1","on_conflict":"overwrite"}"#);
    answer.assert_refused(403);
    assert_eq!(web.fake.actions(), (0, 0));
}

#[test]
fn what_was_planned_is_done_and_can_be_reversed() {
    let web = writing();
    assert_eq!(web.get("/api/hello").json()["can_write"], true);
    let plan = web.post("/api/plan", PLAN).json();
    assert_eq!(plan["possible"], true);
    assert_eq!(plan["lines"][0][0]["class"], "a1");
    assert_eq!(plan["choices"][1]["on_conflict"], "merge");
    let token = plan["token"].as_str().unwrap();
    let stop = web.post("/api/apply", &format!(r#"{{"token":"{token}"}}"#));
    assert_eq!(stop.status, 422);
    assert!(stop.body.contains("nothing was touched"), "{stop:?}");
    let merge = format!(r#"{{"w":"w1","token":"{token}","on_conflict":"merge"}}"#);
    let report = web.post("/api/apply", &merge).json();
    assert_eq!(report["reverse"]["do"], "redo");
    let again = format!(r#"{{"action":{}}}"#, report["reverse"]);
    assert_eq!(web.post("/api/plan", &again).json()["possible"], false);
}

#[test]
fn an_action_that_makes_no_sense_is_refused() {
    let web = writing();
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("\u{0}", 400),
        ("[]", 422),
        ("{}", 422),
        (r#"{"action":{"do":"everything"}}"#, 422),
        (
            r#"{"action":{"do":"export","session":"x","format":"md","file":"/etc/x"}}"#,
            422,
        ),
        (r#"{"action":{"do":"undo","more":1}}"#, 422),
        (r#"{"action":{"do":"undo"},"w":7}"#, 422),
        (r#"{"action":{"do":"undo"},"w":"w9"}"#, 422),
        (
            r#"{"action":{"do":"rewind","workspace":"w1","to":"then"}}"#,
            422,
        ),
        (
            r#"{"action":{"do":"fork","session":"x","seq":-1,"directory":"/x"}}"#,
            422,
        ),
        (
            r#"{"action":{"do":"fork","session":"x","seq":1e400,"directory":"/x"}}"#,
            400,
        ),
        (
            r#"{"action":{"do":"fork","session":"x","seq":18446744073709551616,"directory":"/x"}}"#,
            422,
        ),
    ] {
        assert_eq!(web.post("/api/plan", body).status, status, "{body}");
    }
    for token in [
        r#""""#,
        r#""x""#,
        r#""-1""#,
        r#""18446744073709551616""#,
        "1",
        "null",
    ] {
        let answer = web.post("/api/apply", &format!(r#"{{"token":{token}}}"#));
        assert_eq!(answer.status, 422, "{token}");
    }
    let deep = "[".repeat(60_000);
    assert_eq!(web.post("/api/plan", &deep).status, 400);
    assert_eq!(web.fake.actions(), (0, 0));
    web.assert_answers();
}

#[test]
fn a_panic_is_an_error_and_not_the_end() {
    let web = writing();
    for _ in 0..20 {
        let answer = web.post("/api/plan", r#"{"w":"broken","action":{"do":"undo"}}"#);
        assert_eq!(
            (answer.status, &*answer.body),
            (500, r#"{"error":"internal error","hints":[]}"#)
        );
    }
    assert_eq!(web.post("/api/plan", PLAN).status, 200);
}

#[test]
fn actions_are_done_one_after_another() {
    let web = writing();
    web.post("/api/plan", r#"{"action":{"do":"redo"}}"#);
    let apply = web.post_text("/api/apply", r#"{"token":"1"}"#);
    let held = web.fake.hold();
    let mut clients = [(); 4].map(|()| web.connect());
    for client in &mut clients {
        client.send(apply.as_bytes());
    }
    wait_for("one has begun", || web.fake.actions().0 == 1);
    // A plan waits for the action before it; what is only read does not.
    let mut planner = web.connect();
    planner.send(web.post_text("/api/plan", PLAN).as_bytes());
    web.assert_answers();
    assert_eq!(web.fake.actions(), (1, 0));
    drop(held);
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(planner.answer().status, 200);
    assert_eq!(web.fake.actions(), (4, 4));
}

#[test]
fn an_action_whose_page_is_closed_is_done_to_its_end() {
    let web = writing();
    web.post("/api/plan", r#"{"action":{"do":"redo"}}"#);
    let held = web.fake.hold();
    let mut page = web.connect();
    page.send(web.post_text("/api/apply", r#"{"token":"1"}"#).as_bytes());
    wait_for("it has begun", || web.fake.actions().0 == 1);
    drop(page);
    wait_for("the connection is closed", || web.connections() == 0);
    drop(held);
    wait_for("it is done", || web.fake.actions().1 == 1);
}

#[test]
fn the_server_waits_for_an_action_before_it_stops() {
    let web = with(Options {
        write: true,
        limits: Limits {
            farewell_time: Duration::ZERO,
            ..Limits::default()
        },
        ..Options::default()
    });
    web.post("/api/plan", r#"{"action":{"do":"redo"}}"#);
    let apply = web.post_text("/api/apply", r#"{"token":"1"}"#);
    let (mut page, mut late) = (web.connect(), web.connect());
    let held = web.fake.hold();
    page.send(apply.as_bytes());
    wait_for("it has begun", || web.fake.actions().0 == 1);
    late.send(apply.as_bytes());
    let (host, fake) = (web.host(), web.fake.clone());
    let server = web.server;
    let stopping = thread::spawn(move || {
        server.stop();
        fake.actions()
    });
    wait_for("nobody is let in", || {
        std::net::TcpStream::connect(&host).is_err()
    });
    drop(held);
    // The one that had begun was done when the server stopped, and the other never begun.
    assert_eq!(stopping.join().unwrap(), (1, 1));
    drop(late);
}
