//! Edits change only what they say, and can be reversed to the byte.

use serde_json::json;

use super::*;

fn added(text: &str, path: &[Step<'_>], key: Option<&str>, value: &Value) -> String {
    let document = Document::parse(text).unwrap();
    document.add(document.get(path).unwrap(), key, value)
}

fn removed(text: &str, path: &[Step<'_>], index: usize) -> String {
    let document = Document::parse(text).unwrap();
    document.remove(document.get(path).unwrap(), index)
}

fn value(text: &str) -> Value {
    let document = Document::parse(text).unwrap();
    document.value(document.root().unwrap())
}

#[test]
fn a_member_is_added_in_the_style_of_its_neighbours() {
    let add = |text| added(text, &[], Some("b"), &json!([1]));
    assert_eq!(
        add("{\n    \"a\": 1\n}\n"),
        "{\n    \"a\": 1,\n    \"b\": [\n        1\n    ]\n}\n"
    );
    assert_eq!(
        add("{\r\n\t\"a\": 1\r\n}"),
        "{\r\n\t\"a\": 1,\r\n\t\"b\": [\r\n\t\t1\r\n\t]\r\n}"
    );
    assert_eq!(add("{\"a\":1}"), "{\"a\":1,\"b\":[1]}");
    assert_eq!(add("{}"), "{\n  \"b\": [\n    1\n  ]\n}");
    assert_eq!(add("{\n}"), "{\n  \"b\": [\n    1\n  ]\n}");
}

#[test]
fn comments_stay_with_what_they_are_about() {
    let text = "{\n  \"a\": 1 // one\n  // the end\n}";
    let new = added(text, &[], Some("b"), &json!(2));
    assert_eq!(new, "{\n  \"a\": 1, // one\n  \"b\": 2\n  // the end\n}");
    assert_eq!(removed(&new, &[], 1), text);
    let text = "{\n  \"a\": 1, /* one */ // really\n}";
    let new = added(text, &[], Some("b"), &json!(2));
    assert_eq!(new, "{\n  \"a\": 1, /* one */ // really\n  \"b\": 2,\n}");
    assert_eq!(removed(&new, &[], 1), text);
}

#[test]
fn nothing_becomes_part_of_a_comment() {
    for (text, index) in [
        ("[1, // one\n 2, 3]", 1),
        ("[1, // one\n 2]", 1),
        ("[ // none\n 1]", 0),
        ("[1 // one\n]", 0),
    ] {
        let mut wanted = value(text);
        wanted.as_array_mut().unwrap().remove(index);
        assert_eq!(value(&removed(text, &[], index)), wanted, "{text:?}");
    }
    let new = added("[1 // one\n]", &[], None, &json!(2));
    assert_eq!(value(&new), json!([1, 2]), "{new:?}");
}

#[test]
fn a_value_in_the_middle_goes_with_its_line() {
    let text = "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n";
    assert_eq!(removed(text, &[], 1), "{\n  \"a\": 1,\n  \"c\": 3\n}\n");
    assert_eq!(removed(text, &[], 0), "{\n  \"b\": 2,\n  \"c\": 3\n}\n");
    assert_eq!(removed(text, &[], 2), "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
}

#[test]
fn what_is_not_json_is_refused_with_its_line() {
    for (text, line) in [
        ("{", 1),
        ("{\n\"a\": }", 2),
        ("{'a': 1}", 1),
        ("{\"a\" 1}", 1),
        ("{\"a\": 1 \"b\": 2}", 1),
        ("[1\n2]", 2),
        ("{\"a\": \"b\nc\"}", 1),
        ("{} {}", 1),
        ("{\"a\": tru}", 1),
        ("{\"a\": \"\\x\"}", 1),
        ("/* {}", 1),
        ("[,]", 1),
        ("hello", 1),
        ("\"half", 1),
        ("{\"a\": 01}", 1),
    ] {
        let error = Document::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(Document::parse(&deep).is_err());
}

#[test]
fn values_are_read_without_comments_and_commas() {
    let text = "\u{feff}// top\n{\"a\": [1, 2,], /* b */ \"b\\u0041\": {\"c\": \"//\"}, }\n";
    assert_eq!(value(text), json!({"a": [1, 2], "bA": {"c": "//"}}));
    // Half a surrogate pair is JSON, but not a string.
    assert_eq!(value(r#"{"a": "\ud800", "b": 1}"#)["b"], 1);
    assert!(Document::parse(" \n// nothing\n").unwrap().root().is_none());
}
