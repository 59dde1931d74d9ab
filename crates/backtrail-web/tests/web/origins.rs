//! Data is only for pages of ours: another site, another port of this host, or a form of another
//! page gets nothing, even if it knew the token.

use crate::client::{Web, reading, writing};

/// Asks for data in both ways; each must be refused.
fn assert_foreign(web: &Web, header: &str) {
    for line in ["GET /api/hello", "GET /api/events", "GET /nowhere"] {
        let head = format!("{line} HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n{header}\n\n");
        web.ask(&head).assert_refused(403);
    }
    for path in ["/api/plan", "/api/apply"] {
        let body = r#"{"action":{"do":"undo"}}"#;
        let request = web.post_text(path, body);
        let header = web.text(&format!("{header}\n"));
        let request = request.replacen("Content-Type", &format!("{header}Content-Type"), 1);
        web.ask_bytes(request.as_bytes()).assert_refused(403);
    }
}

#[test]
fn another_origin_gets_no_data() {
    let web = writing();
    for origin in [
        "http://evil.example",
        "null",
        "",
        "https://HOST",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://HOST.evil.example",
        "http://evil.example:PORT",
        "http://HOST/",
        "HOST",
        "file://",
        "http://HOST http://evil.example",
    ] {
        assert_foreign(&web, &format!("Origin: {origin}"));
    }
    assert_foreign(&web, "Origin: http://HOST\nOrigin: http://HOST");
    assert_foreign(&web, "Origin: http://HOST\nOrigin: http://evil.example");
}

#[test]
fn another_site_gets_no_data() {
    let web = writing();
    for site in [
        "cross-site",
        "same-site",
        "",
        "Same-Origin",
        "same-origin, none",
        "anything",
    ] {
        assert_foreign(&web, &format!("Sec-Fetch-Site: {site}"));
    }
    assert_foreign(
        &web,
        "Sec-Fetch-Site: same-origin\nSec-Fetch-Site: cross-site",
    );
}

#[test]
fn a_page_of_ours_gets_data() {
    let web = reading();
    for header in [
        "Sec-Fetch-Site: same-origin",
        "Sec-Fetch-Site: none",
        "Origin: http://HOST",
        "Origin: http://localhost:PORT\nSec-Fetch-Site: same-origin",
    ] {
        let head = "GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN";
        assert_eq!(
            web.ask(&format!("{head}\n{header}\n\n")).status,
            200,
            "{header}"
        );
    }
}

#[test]
fn a_form_of_another_page_does_nothing() {
    let web = writing();
    for media_type in [
        "Content-Type: application/x-www-form-urlencoded\n",
        "Content-Type: multipart/form-data; boundary=x\n",
        "Content-Type: text/plain\n",
        "Content-Type: text/plain; x=application/json\n",
        "Content-Type: application/jsonx\n",
        "",
    ] {
        let request = web.post_text("/api/plan", r#"{"action":{"do":"undo"}}"#);
        let ours = "Content-Type: application/json\r\n";
        let request = request.replace(ours, &media_type.replace('\n', "\r\n"));
        web.ask_bytes(request.as_bytes()).assert_refused(415);
    }
}

#[test]
fn anybody_may_open_a_shell() {
    let web = reading();
    let head = "GET /costs HTTP/1.1\nHost: HOST\nSec-Fetch-Site: cross-site\nOrigin: null\n\n";
    assert_eq!(web.ask(head).status, 200);
}
