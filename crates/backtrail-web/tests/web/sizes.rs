//! What a client sends is bounded, and so is what it can make the server keep.

use std::time::Duration;

use backtrail_web::{Limits, Options};

use crate::client::{wait_for, with, writing};

#[test]
fn a_head_that_is_too_large_is_refused() {
    let web = writing();
    let head = |size: usize| {
        let filler = "x".repeat(size);
        format!(
            "GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\nFiller: {filler}\n\n"
        )
    };
    assert_eq!(web.ask(&head(15 << 10)).status, 200);
    web.ask(&head(17 << 10)).assert_refused(431);
    web.ask(&head(4 << 20)).assert_refused(431);
    let path = format!(
        "GET /api/hello?q={} HTTP/1.1\nHost: HOST\n\n",
        "x".repeat(1 << 20)
    );
    assert!([414, 431].contains(&web.ask(&path).status));
    let many = "A: b\n".repeat(65);
    web.ask(&format!("GET / HTTP/1.1\nHost: HOST\n{many}\n"))
        .assert_refused(431);
    web.assert_answers();
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    let web = writing();
    let body = |size: usize| format!("{{\"action\":{{\"do\":\"undo\"}}}}{}", " ".repeat(size));
    assert_eq!(web.post("/api/plan", &body(60 << 10)).status, 200);
    web.post("/api/plan", &body(64 << 10)).assert_refused(413);
    web.post("/api/plan", &body(4 << 20)).assert_refused(413);
    let head = "POST /api/plan HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\nContent-Type: application/json\n";
    web.ask(&format!("{head}Content-Length: 99999999999\n\n{{"))
        .assert_refused(413);
    let chunk = format!("10000\n{}\n", "x".repeat(0x10000));
    let chunks = chunk.repeat(3);
    web.ask(&format!(
        "{head}Transfer-Encoding: chunked\n\n{chunks}0\n\n"
    ))
    .assert_refused(413);
    web.assert_answers();
}

#[test]
fn a_body_where_none_is_expected_is_refused() {
    let web = writing();
    for header in ["Content-Length: 2", "Transfer-Encoding: chunked"] {
        for path in ["/", "/api/hello"] {
            let head =
                format!("GET {path} HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n{header}\n\n");
            web.ask(&format!("{head}{{}}")).assert_refused(400);
        }
    }
}

#[test]
fn lengths_that_are_no_lengths_are_refused() {
    let web = writing();
    for header in [
        "Content-Length: 99999999999999999999999999",
        "Content-Length: -1",
        "Content-Length: 0x10",
        "Content-Length: 2\nContent-Length: 3",
        "Content-Length: 2, 3",
        "Transfer-Encoding: gzip, chunked, identity",
        "Transfer-Encoding: chunked\n\nFFFFFFFFFFFFFFFFFF",
    ] {
        let head = "POST /api/plan HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\nContent-Type: application/json";
        let answer = web.ask(&format!("{head}\n{header}\n\n{{}}"));
        assert!((400..=413).contains(&answer.status), "{header}: {answer:?}");
    }
    web.assert_answers();
}

#[test]
fn three_hundred_idle_connections_keep_nobody_out() {
    let web = with(Options {
        limits: Limits {
            head_time: Duration::from_secs(600),
            ..Limits::default()
        },
        ..Options::default()
    });
    let mut page = web.connect();
    let ask = web.text("GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n\n");
    page.send(ask.as_bytes());
    assert_eq!(page.answer().status, 200);
    let idle: Vec<_> = (0..300).map(|_| web.connect()).collect();
    web.assert_answers();
    assert_eq!(web.ask("GET / HTTP/1.1\nHost: HOST\n\n").status, 200);
    // Those that never showed the token make room, not the page.
    page.send(ask.as_bytes());
    assert_eq!(page.answer().status, 200);
    wait_for("those too many are closed", || web.connections() <= 256);
    drop((idle, page));
    wait_for("all are closed", || web.connections() == 0);
}

#[test]
fn pages_are_not_closed_for_others() {
    let web = with(Options {
        limits: Limits {
            connections: 2,
            ..Limits::default()
        },
        ..Options::default()
    });
    let ask = web.text("GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n\n");
    let mut pages = [(); 2].map(|()| web.connect());
    for _ in 0..2 {
        for page in &mut pages {
            page.send(ask.as_bytes());
            assert_eq!(page.answer().status, 200);
        }
        assert_eq!(web.connect().read_to_end(), "", "there is no room");
    }
    drop(pages);
    wait_for("both are closed", || web.connections() == 0);
    web.assert_answers();
}

#[test]
fn a_request_after_garbage_is_not_read() {
    let web = writing();
    let mut client = web.connect();
    let good = web.text("GET / HTTP/1.1\nHost: HOST\n\n");
    let bad = "\x00\x01garbage\r\n\r\n";
    client.send(format!("{good}{bad}{good}").as_bytes());
    assert_eq!(client.answer().status, 200);
    client.answer().assert_refused(400);
    assert_eq!(client.read_to_end(), "");
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let web = writing();
    let mut client = web.connect();
    let hello = "GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n\n";
    let shell = "GET / HTTP/1.1\nHost: HOST\n\n";
    let refused = "GET /api/hello HTTP/1.1\nHost: HOST\n\n";
    client.send(
        web.text(&format!("{hello}{shell}{refused}{hello}"))
            .as_bytes(),
    );
    let statuses = [(); 4].map(|()| client.answer().status);
    assert_eq!(statuses, [200, 200, 401, 200]);
}
