//! Only requests that name this host are answered: a name that was bound to this address later
//! (DNS rebinding) gets nothing, not even a shell.

use crate::client::{Web, reading};

const PATHS: [&str; 4] = ["/", "/app.js", "/api/hello", "/nowhere"];

fn assert_misdirected(web: &Web, head: &str) {
    for path in PATHS {
        let head = head.replace("PATH", path);
        let answer = web.ask(&format!("{head}\nX-Backtrail-Token: TOKEN\n\n"));
        // What HTTP itself forbids is answered before us, with nothing.
        let status = if answer.status == 400 { 400 } else { 421 };
        answer.assert_refused(status);
        assert!(!answer.body.contains("<html"), "{head}: {answer:?}");
    }
}

#[test]
fn a_foreign_host_gets_nothing() {
    let web = reading();
    for host in [
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1.evil.example:PORT",
        "localhost.evil.example:PORT",
        "localhost.:PORT",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "127.0.0.1:PORT1",
        "127.0.0.1:0PORT",
        "127.1:PORT",
        "127.0.0.2:PORT",
        "0.0.0.0:PORT",
        "[::]:PORT",
        "user@127.0.0.1:PORT",
        "127.0.0.1:PORT, evil.example",
        "",
    ] {
        assert_misdirected(&web, &format!("GET PATH HTTP/1.1\nHost: {host}"));
    }
    web.assert_answers();
}

#[test]
fn a_host_that_is_missing_or_there_twice_gets_nothing() {
    let web = reading();
    for head in [
        "GET PATH HTTP/1.1",
        "GET PATH HTTP/1.0",
        "GET PATH HTTP/1.1\nHost: HOST\nHost: HOST",
        "GET PATH HTTP/1.1\nHost: HOST\nHost: evil.example",
        "GET PATH HTTP/1.1\nHost: evil.example\nHost: HOST",
        "GET PATH HTTP/1.1\nX-Forwarded-Host: HOST",
    ] {
        assert_misdirected(&web, head);
    }
}

#[test]
fn an_address_with_another_host_gets_nothing() {
    let web = reading();
    for (address, host) in [
        ("http://evil.example", "HOST"),
        ("http://HOST", "evil.example"),
        ("http://evil.example", "evil.example"),
        ("https://HOST", "HOST"),
        ("http://user@HOST", "HOST"),
        ("http://localhost:PORT", "HOST"),
    ] {
        assert_misdirected(&web, &format!("GET {address}PATH HTTP/1.1\nHost: {host}"));
    }
}

#[test]
fn each_of_our_names_is_served() {
    let web = reading();
    for host in ["127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT"] {
        for address in ["", &format!("http://{host}")] {
            let line = format!("GET {address}/api/hello HTTP/1.1");
            let answer = web.ask(&format!(
                "{line}\nHost: {host}\nX-Backtrail-Token: TOKEN\n\n"
            ));
            assert_eq!(answer.status, 200, "{host}");
            assert_eq!(answer.json()["name"], "parser");
        }
    }
}
