//! Calls and outputs on a page, whatever they hold.

use super::*;

fn page(tool: &str, json: &str) -> (String, Option<(u64, u64)>) {
    let call = serde_json::json!({
        "seq": 1, "at": null, "id": "t", "name": tool,
        "arguments": serde_json::from_str::<serde_json::Value>(json).unwrap(),
        "result": null, "success": null,
    });
    let call: ToolCall = serde_json::from_value(call).unwrap();
    let view = CallView::new(&call, &RelativePaths::default());
    let mut out = Html::new();
    Call::new(&view, "more").write(&mut out, None);
    (out.as_str().to_owned(), view.changes)
}

#[test]
fn edits_are_shown_as_changes_whichever_agent_made_them() {
    let changed =
        "<pre class=\"diff\"><span class=\"del\">-a</span><span class=\"add\">+b</span></pre>";
    for json in [
        r#"{"file_path":"x","old_string":"a","new_string":"b"}"#,
        r#"{"command":"str_replace","path":"x","old_str":"a","new_str":"b"}"#,
        r#"{"path":"x","edits":[{"oldText":"a","newText":"b"}]}"#,
        r#""{\"path\":\"x\",\"oldText\":\"a\",\"newText\":\"b\"}""#,
        r#"{"input":"*** Begin Patch\n*** Update File: x\n-a\n+b\n*** End Patch"}"#,
    ] {
        let (html, changes) = page("edit", json);
        assert!(html.contains(changed), "{json}: {html}");
        assert!(html.contains("<code>x</code>"), "{html}");
        assert_eq!(changes, Some((1, 1)));
    }
    let (html, changes) = page("Write", r#"{"file_path":"x","content":"a\nb\n"}"#);
    assert!(html.contains("+a</span>"), "{html}");
    assert_eq!(changes, Some((2, 0)));
}

#[test]
fn tasks_and_questions_are_lists() {
    let todos =
        r#"{"todos":[{"content":"<b>","status":"completed"},{"content":"c","status":"pending"}]}"#;
    let (html, _) = page("TodoWrite", todos);
    assert!(
        html.contains("<li class=\"done\">&lt;b&gt;</li><li class=\"open\">c</li>"),
        "{html}"
    );
    assert!(html.contains("1 of 2 done"), "{html}");
    let asked =
        r#"{"questions":[{"question":"Which?","options":[{"label":"A","description":"d"}]}]}"#;
    let (html, _) = page("AskUserQuestion", asked);
    assert!(
        html.contains("<b>Which?</b>") && html.contains("<li>A<span"),
        "{html}"
    );
}

#[test]
fn names_of_fields_are_text_too() {
    let (html, _) = page("x", r#"{"<script>":"<b>","deep\u2028":1}"#);
    let fields = "<dl><div><dt>&lt;script&gt;</dt><dd><code>&lt;b&gt;</code></dd></div>\
         <div><dt>deep\u{2028}</dt><dd><code>1</code></dd></div></dl>";
    assert!(html.contains(fields), "{html}");
}

#[test]
fn arguments_may_be_deep_and_long() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let (html, _) = page("x", &format!("{{\"a\":{deep}}}"));
    assert!(html.len() < 2 * MOST, "{}", html.len());
    let long = format!(
        "{{\"file_path\":\"x\",\"content\":\"{}\"}}",
        "line\\n".repeat(100_000)
    );
    let (html, changes) = page("Write", &long);
    assert!(html.len() < 3 * MOST, "{}", html.len());
    assert!(html.contains("more bytes: <code>more</code>"));
    assert_eq!(changes, Some((100_000, 0)));
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
