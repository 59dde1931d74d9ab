//! Calls and outputs on a page, whatever they hold.

use super::*;

fn input(json: &str) -> (String, Option<(u64, u64)>) {
    let mut out = Html::new();
    let json = Json::new(json).unwrap();
    let changes = write_input(&mut out, &json, "more");
    (out.as_str().to_owned(), changes)
}

#[test]
fn edits_are_shown_as_changes_whichever_agent_made_them() {
    let changed =
        "<pre class=\"diff\"><span class=\"del\">- a</span><span class=\"add\">+ b</span></pre>";
    for json in [
        r#"{"file_path":"x","old_string":"a","new_string":"b"}"#,
        r#"{"command":"str_replace","path":"x","old_str":"a","new_str":"b"}"#,
        r#"{"path":"x","edits":[{"oldText":"a","newText":"b"}]}"#,
        r#""{\"path\":\"x\",\"oldText\":\"a\",\"newText\":\"b\"}""#,
    ] {
        let (html, changes) = input(json);
        assert!(html.ends_with(changed), "{json}: {html}");
        assert!(html.contains("<dd><code>x</code></dd>"), "{html}");
        assert_eq!(changes, Some((1, 1)));
    }
    let (html, changes) = input(r#"{"file_path":"x","content":"a\nb\n"}"#);
    assert!(
        html.contains("+ a</span>") && changes == Some((2, 0)),
        "{html}"
    );
    let patch = r#"{"input":"*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n+c\n*** End Patch"}"#;
    let (html, changes) = input(patch);
    assert!(
        html.contains("<span class=\"del\">-a</span>") && changes == Some((2, 1)),
        "{html}"
    );
}

#[test]
fn names_of_fields_are_text_too() {
    let (html, _) = input(r#"{"<script>":"<b>","a":{"<i>":[1,{}]},"deep\u2028":null}"#);
    assert_eq!(
        html,
        "<dl><div><dt>&lt;script&gt;</dt><dd><code>&lt;b&gt;</code></dd></div>\
         <div><dt>a</dt><dd><code>{&quot;&lt;i&gt;&quot;:[1,{}]}</code></dd></div>\
         <div><dt>deep\u{2028}</dt><dd><code>null</code></dd></div></dl>"
    );
}

#[test]
fn json_is_laid_out_however_deep_it_is() {
    assert_eq!(
        pretty(r#"{"a":[1,{"b":"}\",{"}],"c":{}, "d":[]}"#),
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"}\\\",{\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}"
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(pretty(&deep).matches('[').count(), 100_000);
    let (html, _) = input(&format!("{{\"a\":{deep}}}"));
    assert!(html.len() < 2 * MOST, "{}", html.len());
}

#[test]
fn only_harmless_images_are_shown() {
    let shown = |kind: &str, data: &str| {
        let mut out = Html::new();
        let json = serde_json::json!({"type": "image", "media_type": kind, "data": data});
        let Block::Media(media) = serde_json::from_value(json).unwrap() else {
            panic!("no medium");
        };
        write_media(&mut out, &media);
        out.as_str().contains("<img")
    };
    assert!(shown("image/png", "AAAA+/=="));
    for (kind, data) in [
        ("image/svg+xml", "AAAA"),
        ("image/png", "\"><script>"),
        ("image/png\" onerror=\"x", "AAAA"),
        ("text/html", "AAAA"),
        ("IMAGE/PNG", ""),
    ] {
        assert!(!shown(kind, data), "{kind} {data}");
    }
    let nested = Json::new(
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
    );
    assert_eq!(media_of(&nested.unwrap()).unwrap().media_type, "image/png");
}

#[test]
fn a_text_that_is_too_long_is_cut_and_reported() {
    let mut out = Html::new();
    write_text(&mut out, &"line\n".repeat(100_000), "backtrail show x");
    assert!(out.len() < 2 * MOST);
    assert!(
        out.as_str()
            .contains("more bytes: <code>backtrail show x</code>")
    );
}
