//! There is GET and POST, and nothing else: a preflight of another origin is refused, too.

use crate::client::writing;

#[test]
fn other_methods_are_refused_everywhere() {
    let web = writing();
    for method in [
        "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "get", "PROPFIND",
    ] {
        for path in ["/", "/app.js", "/api/hello", "/api/plan", "/nowhere"] {
            let mut client = web.connect();
            let head =
                format!("{method} {path} HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n\n");
            client.send(web.text(&head).as_bytes());
            assert_eq!(client.head().status, 405, "{method} {path}");
        }
    }
    for line in ["OPTIONS *", "CONNECT HOST", "CONNECT evil.example:443"] {
        let answer = web.ask(&format!("{line} HTTP/1.1\nHost: HOST\n\n"));
        assert!(
            [400, 405, 421].contains(&answer.status),
            "{line}: {answer:?}"
        );
    }
}

#[test]
fn a_preflight_is_not_granted() {
    let web = writing();
    let answer = web.ask(
        "OPTIONS /api/plan HTTP/1.1\nHost: HOST\nOrigin: http://evil.example\n\
         Access-Control-Request-Method: POST\nAccess-Control-Request-Headers: x-backtrail-token\n\n",
    );
    answer.assert_refused(405);
}

#[test]
fn each_address_has_its_method() {
    let web = writing();
    assert_eq!(web.post("/api/hello", "{}").status, 405);
    assert_eq!(web.get("/api/plan").status, 405);
    assert_eq!(web.post("/", "{}").status, 405);
}
