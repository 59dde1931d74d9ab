//! The shells are the same for everybody: they cannot hold data.

use std::sync::Arc;

use backtrail_web::{Options, start};

use crate::client::{Web, reading};
use crate::site::Fake;

const PAGES: [&str; 8] = [
    "/",
    "/session/kkkk",
    "/session/%3Cscript%3E",
    "/workspace",
    "/files?w=w1&at=now&path=x",
    "/blame",
    "/costs",
    "/health",
];

fn open(web: &Web, path: &str) -> (String, String) {
    let answer = web.ask(&format!("GET {path} HTTP/1.1\nHost: HOST\n\n"));
    assert_eq!(answer.status, 200, "{path}");
    (answer.header("content-type").unwrap(), answer.body)
}

#[test]
fn the_shells_of_a_full_and_an_empty_site_are_equal() {
    let full = reading();
    let fake = Fake::new(0);
    let server = start(Arc::new(fake.clone()), Options::default()).unwrap();
    let empty = Web { fake, server };
    let (media_type, shell) = open(&full, "/");
    assert_eq!(media_type, "text/html; charset=utf-8");
    assert!(shell.contains("<html"));
    for page in PAGES {
        assert_eq!(open(&full, page).1, shell, "{page}");
        assert_eq!(open(&empty, page).1, shell, "{page}");
    }
    for path in ["/app.js", "/app.css"] {
        assert_eq!(open(&full, path), open(&empty, path));
    }
    assert!(!shell.contains("<script>"), "the policy would not run it");
}

#[test]
fn a_script_that_the_browser_has_is_not_sent_again() {
    let web = reading();
    let first = web.ask("GET /app.js HTTP/1.1\nHost: HOST\n\n");
    let tag = first.header("etag").unwrap();
    let head = format!("GET /app.js HTTP/1.1\nHost: HOST\nIf-None-Match: {tag}\n\n");
    assert_eq!(web.ask(&head).status, 304);
    let head = head.replace(&tag, "\"other\"");
    assert_eq!(web.ask(&head).body, first.body);
}

#[test]
fn there_is_no_icon_and_no_error() {
    let web = reading();
    assert_eq!(
        web.ask("GET /favicon.ico HTTP/1.1\nHost: HOST\n\n").status,
        204
    );
}
