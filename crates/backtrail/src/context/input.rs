//! Tool input as an object, and JSON without lone surrogates.

use std::borrow::Cow;

use super::output::literal;
use crate::json::Json;

/// The input of a call as it is sent.
pub(super) struct Input<'a> {
    /// The JSON text of an object.
    pub(super) object: Cow<'a, str>,
    /// Whether it was wrapped in an object.
    pub(super) wrapped: bool,
    /// Whether a lone surrogate was replaced in it.
    pub(super) lossy: bool,
}

/// Turns an input into an object. A string that contains an object becomes that object,
/// because version 1 stored all input as strings. Anything else is wrapped in an object.
pub(super) fn object(input: &Json, max_depth: usize) -> Input<'_> {
    let (found, mut lossy) = find_object(input);
    let wrapped = match &found {
        None => Some(format!("{{\"input\":{input}}}")),
        Some(text) if is_deeper(text, max_depth) => Some(wrap_text(text)),
        Some(_) => None,
    };
    let (mut object, wrapped) = match (wrapped, found) {
        (Some(wrapped), _) => (Cow::Owned(wrapped), true),
        (None, found) => (found.unwrap_or(Cow::Borrowed("{}")), false),
    };
    // A wrapped text is shallow, but a list may be deep as well.
    if wrapped && is_deeper(&object, max_depth) {
        object = Cow::Owned(wrap_text(input.as_str()));
    }
    if let Some(whole) = without_half_characters(&object) {
        object = Cow::Owned(whole);
        lossy = true;
    }
    Input {
        object,
        wrapped,
        lossy,
    }
}

fn find_object(input: &Json) -> (Option<Cow<'_, str>>, bool) {
    if input.as_str().starts_with('{') {
        return (Some(Cow::Borrowed(input.as_str())), false);
    }
    let Some((text, lossy)) = literal(input.as_str()) else {
        return (None, false);
    };
    if !text.trim_start().starts_with('{') {
        return (None, false);
    }
    match Json::new(text) {
        Ok(object) => (Some(Cow::Owned(object.as_str().to_owned())), lossy),
        Err(_) => (None, false),
    }
}

/// Wraps JSON as a text.
fn wrap_text(json: &str) -> String {
    let mut out = b"{\"input\":".to_vec();
    crate::escape::write_str(&mut out, json);
    out.push(b'}');
    String::from_utf8(out).expect("a literal of a string is UTF-8")
}

/// Returns whether JSON is nested deeper than `max`.
fn is_deeper(json: &str, max: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Replaces escapes of lone surrogates by that of U+FFFD, which has the same length.
/// `None` if there are none.
fn without_half_characters(json: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let Some(unit) = unit_at(json, at) else {
            // An escape of one letter; valid JSON has no other.
            at += 2;
            continue;
        };
        if (0xD800..0xDC00).contains(&unit)
            && unit_at(json, at + 6).is_some_and(|low| (0xDC00..0xE000).contains(&low))
        {
            at += 12;
            continue;
        }
        if (0xD800..0xE000).contains(&unit) {
            if bytes.is_empty() {
                bytes = json.as_bytes().to_vec();
            }
            bytes[at + 2..at + 6].copy_from_slice(b"fffd");
        }
        at += 6;
    }
    match bytes.is_empty() {
        true => None,
        false => Some(String::from_utf8(bytes).expect("ASCII replaced ASCII")),
    }
}

/// Parses the escaped UTF-16 unit at an offset.
fn unit_at(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(input: &str) -> (String, bool, bool) {
        let json = Json::new(input).unwrap();
        let input = object(&json, 8);
        (input.object.into_owned(), input.wrapped, input.lossy)
    }

    // A8: version-1 input is any text in a JSON string.
    #[test]
    fn input_is_sent_as_an_object_with_the_bytes_it_came_with() {
        let cases = [
            (r#"{"b":1.0, "a":[]}"#, r#"{"b":1.0, "a":[]}"#, false),
            (r#""{\"command\":\"ls\"}""#, r#"{"command":"ls"}"#, false),
            (r#"" {\"a\":\n1} ""#, r#"{"a": 1}"#, false),
            (r#""echo hi""#, r#"{"input":"echo hi"}"#, true),
            (r#""{echo hi""#, r#"{"input":"{echo hi"}"#, true),
            ("[1,2]", r#"{"input":[1,2]}"#, true),
            ("null", r#"{"input":null}"#, true),
            (
                r#"{"a":[[[[[[[[1]]]]]]]]}"#,
                r#"{"input":"{\"a\":[[[[[[[[1]]]]]]]]}"}"#,
                true,
            ),
            (
                "[[[[[[[[1]]]]]]]]",
                r#"{"input":"[[[[[[[[1]]]]]]]]"}"#,
                true,
            ),
            (
                r#"{"a":"[[[[[[[[[\"[["}"#,
                r#"{"a":"[[[[[[[[[\"[["}"#,
                false,
            ),
        ];
        for (given, object, wrapped) in cases {
            assert_eq!(sent(given), (object.to_owned(), wrapped, false), "{given}");
        }
    }

    #[test]
    fn half_a_character_becomes_u_fffd_and_a_whole_one_stays() {
        let cases = [
            (r#"{"a":"\ud83d"}"#, Some(r#"{"a":"\ufffd"}"#)),
            (r#"{"a":"\uDE00x"}"#, Some(r#"{"a":"\ufffdx"}"#)),
            (
                r#"{"\ud83d\ud83d\ude00":1}"#,
                Some(r#"{"\ufffd\ud83d\ude00":1}"#),
            ),
            (r#"{"a":"\ud83d\ude00"}"#, None),
            (r#"{"a":"\\ud83d"}"#, None),
            (
                r#"{"a":"\\\ud83d\u0041"}"#,
                Some(r#"{"a":"\\\ufffd\u0041"}"#),
            ),
        ];
        for (given, whole) in cases {
            assert_eq!(without_half_characters(given).as_deref(), whole, "{given}");
            let (object, _, lossy) = sent(given);
            assert_eq!(
                (object.as_str(), lossy),
                (whole.unwrap_or(given), whole.is_some())
            );
        }
        assert_eq!(
            sent(r#""{\"a\":\"\ud83d\"}""#),
            ("{\"a\":\"\u{fffd}\"}".to_owned(), false, true)
        );
    }

    #[test]
    fn nesting_without_end_is_wrapped_and_never_followed() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let (object, wrapped, _) = sent(&deep);
        assert!(wrapped);
        let value: serde_json::Value = serde_json::from_str(&object).unwrap();
        assert_eq!(value["input"].as_str(), Some(deep.as_str()));
    }
}
