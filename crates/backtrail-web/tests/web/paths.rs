//! Nothing but the known addresses leads anywhere, however an address is written.

use crate::client::{Web, writing};

const ODD: [&[u8]; 24] = [
    b"/..",
    b"/../../../etc/passwd",
    b"/%2e%2e/%2e%2e/etc/passwd",
    b"/..%2f..%2fetc%2fpasswd",
    b"/session/../api/hello",
    b"/session/%2e%2e%2fapi%2fhello",
    b"/session/a/b",
    b"/session/",
    b"/session",
    b"//api/hello",
    b"/api//hello",
    b"/api/hello/",
    b"/%61pi/hello",
    b"/api%2fhello",
    b"/API/HELLO",
    b"/api/hello%00",
    b"/api/hello;x=1",
    b"/./api/hello",
    b"/app.js/../api/hello",
    b"/app.js%00",
    b"/api/hello\\",
    b"/api",
    b"/%ff%fe",
    b"/{name}",
];

fn ask(web: &Web, path: &[u8], token: &str) -> crate::client::Answer {
    let tail = web.text(&format!(" HTTP/1.1\nHost: HOST\n{token}\n"));
    web.ask_bytes(&[b"GET ", path, tail.as_bytes()].concat())
}

#[test]
fn an_odd_address_leads_nowhere() {
    let web = writing();
    for path in ODD {
        let shown = String::from_utf8_lossy(path);
        let answer = ask(&web, path, "");
        let is_shell = answer.status == 200 && shown.starts_with("/session/%2e");
        assert!(
            is_shell || [400, 401].contains(&answer.status),
            "{shown}: {answer:?}"
        );
        assert!(!answer.body.contains("parser"), "{shown}: {answer:?}");
        let answer = ask(&web, path, "X-Backtrail-Token: TOKEN\n");
        assert!(
            is_shell || [400, 404].contains(&answer.status),
            "{shown}: {answer:?}"
        );
    }
    web.assert_answers();
}

#[test]
fn bytes_that_are_no_address_are_refused() {
    let web = writing();
    let wrong: [&[u8]; 6] = [
        b"/\x00",
        b"/api/hello\x00",
        b"/a b",
        b"/\r\nHost: evil",
        b"api/hello",
        b"",
    ];
    for path in wrong {
        ask(&web, path, "X-Backtrail-Token: TOKEN\n").assert_refused(400);
    }
    for path in [b"/\xff\xfe".as_slice(), b"/\xc3\xa9"] {
        let answer = ask(&web, path, "X-Backtrail-Token: TOKEN\n");
        assert!([400, 404].contains(&answer.status), "{answer:?}");
    }
    web.assert_answers();
}

#[test]
fn nothing_of_a_request_becomes_a_header_of_the_answer() {
    let web = writing();
    for path in [
        "/session/x%0d%0aInjected:%201",
        "/api/hello?w=x%0d%0aInjected:%201",
        "/x%0d%0aInjected:%201",
        "/%0d%0a%0d%0a<script>",
    ] {
        let answer = web.get(path);
        assert!(!answer.head.contains("injected"), "{answer:?}");
        assert!(!answer.body.contains("Injected:"), "{answer:?}");
    }
    let head = "GET /app.js HTTP/1.1\nHost: HOST\nIf-None-Match: \"x\"\n\tInjected: 1\n\n";
    assert!(!web.ask(head).head.contains("injected"));
}

#[test]
fn headers_that_are_no_text_are_refused() {
    let web = writing();
    for value in [b"\xff\xfe".as_slice(), b"\xc3\xa9", b"a\x00b", b"a\x7f"] {
        for name in ["Host", "X-Backtrail-Token", "Origin", "Sec-Fetch-Site"] {
            let mut head =
                web.text("GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n");
            if let Some(at) = head.find(&format!("{name}: ")) {
                let end = at + head[at..].find('\n').unwrap() + 1;
                head.replace_range(at..end, "");
            }
            let head = [head.as_bytes(), name.as_bytes(), b": ", value, b"\r\n\r\n"].concat();
            let answer = web.ask_bytes(&head);
            assert!(
                [400, 401, 403, 421].contains(&answer.status),
                "{name}: {answer:?}"
            );
        }
    }
    web.assert_answers();
}
