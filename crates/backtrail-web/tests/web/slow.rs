//! A client that is slow, or that goes away, costs a connection for a bounded time.

use std::io::{Read, Write};
use std::time::Duration;

use backtrail_view::library::Change;

use crate::client::{hasty, wait_for};

#[test]
fn a_head_that_does_not_end_is_not_waited_for() {
    let web = hasty();
    for begin in [
        "",
        "G",
        "GET / HTTP/1.1\nHost: HOST\n",
        "GET / HTTP/1.1\nHost: HOST\nA: ",
    ] {
        let mut client = web.connect();
        client.send(web.text(begin).as_bytes());
        assert!(!client.read_to_end().contains("200"));
    }
    web.assert_answers();
}

#[test]
fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
    let web = hasty();
    let mut client = web.connect();
    client.send(web.text("GET / HTTP/1.1\nHost: HOST\nA: ").as_bytes());
    // A byte whenever nothing came for a moment: never too many for a head.
    let moment = Some(Duration::from_millis(10));
    client.stream.set_read_timeout(moment).unwrap();
    wait_for("the connection is closed", || {
        client.stream.read(&mut [0]).is_ok() || client.stream.write_all(b"x").is_err()
    });
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let web = hasty();
    let request = web.post_text("/api/plan", r#"{"action":{"do":"undo"}}"#);
    let mut client = web.connect();
    client.send(&request.as_bytes()[..request.len() - 3]);
    client.answer().assert_refused(408);
    assert_eq!(client.read_to_end(), "");
}

#[test]
fn a_connection_without_a_request_is_closed() {
    let web = hasty();
    let mut client = web.connect();
    client.send(web.text("GET / HTTP/1.1\nHost: HOST\n\n").as_bytes());
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.read_to_end(), "");
}

#[test]
fn a_reader_that_takes_nothing_is_cut_off() {
    let web = hasty();
    let mut client = web.connect();
    client.send(
        web.text("GET /api/events HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n\n")
            .as_bytes(),
    );
    client.read_to("ready");
    for n in 0..64 {
        let id = format!("{n}{}", "x".repeat(1 << 18));
        web.fake.report(&Change::Session(id));
    }
    wait_for("the connection is closed", || web.connections() == 0);
    web.assert_answers();
}

#[test]
fn a_client_that_goes_away_leaves_nothing_behind() {
    let web = hasty();
    for begin in [
        "",
        "GET",
        "GET /api/events HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n\n",
    ] {
        for _ in 0..50 {
            web.connect().send(web.text(begin).as_bytes());
        }
    }
    wait_for("all are closed", || web.connections() == 0);
    web.assert_answers();
}
