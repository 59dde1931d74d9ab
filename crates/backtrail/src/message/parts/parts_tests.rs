//! Parts that move out of a message come back byte for byte (F9), and the rest is small.
//! A table by hash replaces the payload file.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

type Table = HashMap<ObjectId, Vec<u8>>;

/// Moves the parts of a message out, as an append does.
fn move_out(message: &str, limit: usize) -> (String, Table) {
    let parts = parts(message, limit);
    let mut table = Table::new();
    let mut references = Vec::new();
    for part in &parts {
        let bytes = part.content.bytes();
        let hash = ObjectId::of(bytes);
        table.insert(hash, bytes.to_vec());
        references.push(part.content.reference(hash, u64::MAX - table.len() as u64));
    }
    let spliced = splice(message, &parts, &references);
    (String::from_utf8(spliced).unwrap(), table)
}

fn move_back(message: &str, table: &Table) -> Result<String> {
    restore(message, |reference| Ok(table[&reference.hash].clone()))
}

/// Moves parts out and back, and returns the moved parts as texts.
fn moved(message: &str, limit: usize) -> Vec<String> {
    let (spliced, table) = move_out(message, limit);
    assert_eq!(move_back(&spliced, &table).unwrap(), message);
    let parts = parts(message, limit);
    let texts = parts.iter().map(|part| message[part.range.clone()].into());
    texts.collect()
}

fn reference(hash_of: &str) -> Reference {
    Content::Json(hash_of).reference(ObjectId::of(hash_of.as_bytes()), 7)
}

fn written(reference: &Reference) -> String {
    let mut out = Vec::new();
    reference.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn media_move_out_whatever_their_size_and_where_they_stand() {
    let message = r#"{"role":"tool","blocks":[
        {"data":"aW1n","type":"image","media_type":"image/png"},
        {"type":"document","source":{"type":"text","data":"plain, not Base64"}},
        {"type":"tool_result","tool_use_id":"t","output":[
            {"type":"text","text":"look:"},
            {"type":"tool_result","content":[{"type":"file","source":{"data":"ZGVlcA=="}}]},
            {"type":"audio","data":"c291bmQ="}]},
        {"type":"im\u0061ge","d\u0061ta":"ZXNj"}]}"#;
    let expected = [
        r#""aW1n""#,
        r#""plain, not Base64""#,
        r#""ZGVlcA==""#,
        r#""c291bmQ=""#,
        r#""ZXNj""#,
    ];
    assert_eq!(moved(message, MAX_INLINE), expected);
    assert!(may_have_parts(message.as_bytes()));
    let contents = parts(message, MAX_INLINE).into_iter().map(|p| p.content);
    let contents: Vec<_> = contents.collect();
    assert_eq!(contents[0], Content::Base64(b"img".to_vec()));
    assert_eq!(contents[1], Content::Json(r#""plain, not Base64""#));
}

#[test]
fn what_is_no_medium_and_short_stays() {
    for block in [
        r#"{"type":"image","data":"","media_type":"aW1n"}"#,
        r#"{"type":"image","data":{"data":"aW1n"},"src":"aW1n"}"#,
        r#"{"type":"image","source":["aW1n"],"nested":{"data":"aW1n"}}"#,
        r#"{"type":"images","data":"aW1n","source":{"data":"aW1n"}}"#,
        r#"{"type":"text","text":"\"image\" \"data\" \"payload\""}"#,
        r#"{"type":"tool_use","input":{"type":"image","data":"aW1n"}}"#,
        r#"{"type":"tool_use","input":{"a":{"payload":1}},"output":[{"type":"file","data":"a"}]}"#,
        r#"{"type":"tool_result","output":[{"data":"aW1n"},["payload"],5,{"type":1,"data":"a"}]}"#,
    ] {
        let message = format!(r#"{{"role":"user","blocks":[{block}],"data":"aW1n"}}"#);
        assert_eq!(moved(&message, MAX_INLINE), [""; 0], "{block}");
    }
}

#[test]
fn a_plain_message_is_recognized_without_parsing() {
    let plain = r#"{"role":"user","blocks":[{"type":"text","text":"a \"payload\" \u001b file"}]}"#;
    assert!(!may_have_parts(plain.as_bytes()));
    let long = format!(
        r#"{{"role":"user","blocks":[],"x":"{}"}}"#,
        "x".repeat(MAX_INLINE)
    );
    assert!(may_have_parts(long.as_bytes()));
}

#[test]
fn a_value_moves_out_when_it_is_longer_than_the_limit() {
    let text = format!("\"{}\"", "ab, ".repeat(250));
    let message = format!(
        r#"{{"role":"r","blocks":[{{"type":"text","text":{text}}},{{"type":"odd","x":{{"y":{text}}}}}],"usage":[{text}]}}"#
    );
    assert_eq!(moved(&message, text.len() - 1).len(), 3);
    let longer = [format!("{{\"y\":{text}}}"), format!("[{text}]")];
    assert_eq!(moved(&message, text.len()), longer);
    assert_eq!(moved(&message, text.len() + 6), [""; 0]);
}

#[test]
fn a_list_of_blocks_stays_when_it_is_short_without_its_media() {
    let image = format!(r#"{{"type":"image","data":"{}"}}"#, "aW1n".repeat(1000));
    let result = |output: &str| {
        format!(r#"{{"role":"tool","blocks":[{{"type":"tool_result","output":{output}}}]}}"#)
    };
    let short = format!(r#"[{image},{{"type":"text","text":"and more"}}]"#);
    assert_eq!(
        moved(&result(&short), 2000),
        [format!("\"{}\"", "aW1n".repeat(1000))]
    );
    // The remaining text and the references together can be too long.
    let text = r#"{"type":"text","text":"x"}"#;
    let small = r#"{"type":"image","data":"aW1n"}"#;
    for long in [
        format!("[{image},{}]", [text; 100].join(",")),
        format!("[{}]", [small; 10].join(",")),
    ] {
        assert_eq!(moved(&result(&long), 2000), [long]);
    }
    // Elements without a type are not blocks.
    let plain = format!(r#"[{{"text":"{}"}}]"#, "x ".repeat(1000));
    assert_eq!(moved(&result(&plain), 2000), [plain]);
}

#[test]
fn a_role_and_a_type_stay_whatever_their_length() {
    let long = "x".repeat(1000);
    let message = format!(r#"{{"role":"{long}","blocks":[{{"type":"{long}","a":1}}]}}"#);
    assert_eq!(moved(&message, 0), ["1"]);
}

#[test]
fn a_hash_is_64_lower_case_digits_and_nothing_else() {
    let hash = ObjectId::of(b"x");
    let text = serde_json::to_string(&hash).unwrap();
    assert_eq!(text.len(), ObjectId::HEX + 2);
    assert_eq!(serde_json::from_str::<ObjectId>(&text).unwrap(), hash);
    for other in [&text.to_uppercase(), &text.replace('"', "\"0"), "\"\"", "5"] {
        assert!(serde_json::from_str::<ObjectId>(other).is_err(), "{other}");
    }
}

#[test]
fn what_a_user_wrote_is_never_taken_for_a_reference() {
    let ours = written(&reference("\"x\""));
    for value in [
        ours.as_str(),
        r#"{"payload":1}"#,
        r#"{"a":1,"p\u0061yload":2}"#,
        &format!(r#"{{"data":{ours}}}"#),
        &format!(r#"{{"payload":{ours},"data":{ours}}}"#),
        &format!(r#"[{{"type":"text","text":{ours}}}]"#),
    ] {
        for message in [
            format!(r#"{{"role":"r","blocks":[{{"type":"image","source":{value}}}]}}"#),
            format!(r#"{{"role":"r","blocks":[{{"type":"tool_result","output":{value}}}]}}"#),
            format!(r#"{{"role":"r","blocks":[],"x":{value}}}"#),
        ] {
            let (spliced, table) = move_out(&message, MAX_INLINE);
            assert_eq!(references(&spliced).len(), table.len(), "{message}");
            assert_eq!(move_back(&spliced, &table).unwrap(), message);
        }
    }
    let lookalike = format!(r#"{{"role":"r","blocks":[],"x":{ours}}}"#);
    assert_eq!(moved(&lookalike, MAX_INLINE), [ours]);
}

#[test]
fn only_the_one_spelling_of_base64_is_decoded() {
    for (literal, decoded) in [
        ("\"aGk=\"", Some(b"hi".as_slice())),
        ("\"/+8=\"", Some(&[0xff, 0xef])),
        // Stray bits, no padding, too much padding, another alphabet, a line break, an
        // equivalent escape.
        ("\"aGl=\"", None),
        ("\"aGk\"", None),
        ("\"aGk==\"", None),
        ("\"_-8=\"", None),
        ("\"aG k=\"", None),
        ("\"\\/+8=\"", None),
        ("\"\"", None),
        ("1234", None),
    ] {
        let expected = decoded.map_or(Content::Json(literal), |b| Content::Base64(b.to_vec()));
        assert_eq!(Content::of(literal), expected);
    }
}

#[test]
fn a_reference_says_how_the_value_begins() {
    let text = format!(r#""\ud83e\udd80\n\ud800{}""#, "\\u00e9".repeat(300));
    let shown = reference(&text);
    assert_eq!(shown.preview, format!("🦀\n\u{fffd}{}", "é".repeat(197)));
    assert_eq!(reference(r#"{"k" :1}"#).preview, r#"{"k" :1}"#);
    // A preview may be cut anywhere, even within a character or an escape.
    for lead in 0..12 {
        let long = format!("\"{}{}\"", "x".repeat(lead), "\\ud83e\\udd80".repeat(300));
        let preview = reference(&long).preview;
        assert_eq!(
            preview,
            format!("{}{}", "x".repeat(lead), "🦀".repeat(200 - lead))
        );
        let wide = format!("\"{}{}\"", "x".repeat(lead), "🦀".repeat(3000));
        assert_eq!(reference(&wide).preview.chars().count(), 200);
    }
    let hash = ObjectId::of(b"img");
    let media = Content::Base64(b"img".to_vec()).reference(hash, 12);
    let expected =
        format!(r#"{{"payload":"{hash}","bytes":3,"at":12,"as":"base64","preview":""}}"#);
    assert_eq!(written(&media), expected);
}

#[test]
fn the_longest_reference_is_no_longer_than_assumed() {
    let long = Reference {
        hash: ObjectId::of(b""),
        bytes: u64::MAX,
        at: u64::MAX,
        base64: true,
        preview: "\u{1}".repeat(PREVIEW),
    };
    let text = written(&long);
    assert!(text.len() <= MAX_REFERENCE);
    assert_eq!(Reference::read(&text), Some(long));
}

#[test]
fn only_the_exact_form_is_a_reference() {
    let text = written(&reference("\"x\""));
    assert!(Reference::read(&text).is_some());
    let base64 = text.replace(r#","preview""#, r#","as":"base64","preview""#);
    assert!(Reference::read(&base64).is_some_and(|reference| reference.base64));
    let hash = ObjectId::of(b"\"x\"").to_string();
    for other in [
        text.replace(r#""at":7"#, r#""at": 7"#),
        text.replace(r#""at":7"#, r#""at":07"#),
        text.replace(r#""at":7"#, r#""at":-7"#),
        text.replace(r#","at":7"#, ""),
        text.replace(r#","preview""#, r#","as":null,"preview""#),
        text.replace(r#","preview""#, r#","as":"hex","preview""#),
        text.replace(r#","preview""#, r#","more":1,"preview""#),
        text.replace(r#""preview":"x""#, r#""preview":"\u0078""#),
        text.replace(&hash, &hash.to_uppercase()),
        text.replace(&hash, &hash[1..]),
        text.replace(&hash, ""),
    ] {
        assert_eq!(Reference::read(&other), None, "{other}");
    }
}

#[test]
fn content_that_is_not_text_is_distinguished_from_json() {
    let message = format!(
        r#"{{"role":"r","blocks":[],"x":{}}}"#,
        written(&reference("1"))
    );
    let error = restore(&message, |_| Ok(vec![0xff])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(&ObjectId::of(b"1").to_string()));
    let error = restore(&message, |_| Err(Error::invalid("lost"))).unwrap_err();
    assert_eq!(error.to_string(), "lost");
}

#[test]
fn blocks_are_looked_into_eight_levels_deep_and_no_depth_is_too_much() {
    let nested = |levels: usize| {
        let begin = r#"{"type":"tool_result","output":["#.repeat(levels);
        let end = "]}".repeat(levels);
        format!(r#"{{"role":"r","blocks":[{begin}{{"type":"file","data":"aW1n"}}{end}]}}"#)
    };
    assert_eq!(moved(&nested(8), MAX_INLINE), ["\"aW1n\""]);
    assert_eq!(moved(&nested(9), MAX_INLINE), [""; 0]);
    moved(&nested(10_000), MAX_INLINE);
    let deep = format!("{}{}", "[".repeat(300_000), "]".repeat(300_000));
    let message = format!(r#"{{"role":"r","blocks":[{{"type":"x","y":{deep}}}]}}"#);
    assert_eq!(moved(&message, 1000), [deep]);
}

#[test]
fn text_that_is_no_message_has_no_parts() {
    for text in [
        "",
        "5",
        "\"data\"",
        "[{\"payload\":1}]",
        "{",
        "{\"x\"",
        "nul",
        "{\"x\":{\"payload\":",
    ] {
        assert_eq!(moved(text, 0), [""; 0], "{text}");
    }
}

/// Generates any string literal, including reserved names.
fn any_literal() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "type",
        "role",
        "blocks",
        "data",
        "source",
        "output",
        "content",
        "payload",
        "text",
        "input",
        "usage",
        "p\\u0061yload",
        "d\\u0061ta",
        "typ\\u0065",
        "\\ud800",
        "",
    ]);
    let pieces = prop::sample::select(vec![
        "a",
        "é",
        "🦀",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u0000",
        "\\ud83e\\udd80",
        "\\udd80",
        "\\ud83e",
        "aGk=",
        "aGkh",
        "\\u0070",
    ]);
    let pieces = prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat());
    prop_oneof![
        2 => names.prop_map(str::to_owned),
        2 => pieces,
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| STANDARD.encode(bytes)),
    ]
    .prop_map(|inner| format!("\"{inner}\""))
}

fn any_kind() -> impl Strategy<Value = String> {
    let kinds = vec![
        "text",
        "thinking",
        "tool_use",
        "tool_result",
        "tool_result",
        "image",
        "audio",
        "video",
        "document",
        "file",
        "im\\u0061ge",
        "tool\\u005fresult",
        "hologram",
    ];
    prop::sample::select(kinds).prop_map(|kind| format!("\"{kind}\""))
}

fn any_space() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", "", " ", "\t", "  ", "\n "])
}

/// Joins items between brackets, with whitespace in odd places.
fn joined(open: &str, items: &[(String, &str)], close: &str) -> String {
    let items: Vec<_> = items
        .iter()
        .map(|(item, s)| format!("{s}{item}{s}"))
        .collect();
    format!("{open}{}{close}", items.join(","))
}

fn object_of(fields: impl Strategy<Value = (String, String)>) -> impl Strategy<Value = String> {
    let field = (fields, any_space(), any_space());
    prop::collection::vec(field, 0..5).prop_map(|fields| {
        let fields = fields.into_iter();
        let fields: Vec<_> = fields
            .map(|((name, value), space, outer)| (format!("{name}{space}:{space}{value}"), outer))
            .collect();
        joined("{", &fields, "}")
    })
}

fn array_of(elements: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec((elements, any_space()), 0..4)
        .prop_map(|elements| joined("[", &elements, "]"))
}

/// Generates any value, the relevant ones more often.
fn any_value() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec!["0", "-1.50", "1e400", "true", "null"]);
    let exact = any_literal().prop_map(|text| written(&reference(&text)));
    let leaf = prop_oneof![
        4 => any_literal(),
        1 => number.prop_map(str::to_owned),
        2 => exact,
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let field = (any_literal(), inner.clone());
        let typed = (Just("\"type\"".to_owned()), any_kind());
        let field = prop_oneof![3 => field.boxed(), 1 => typed.boxed()];
        prop_oneof![array_of(inner), object_of(field)]
    })
}

/// Generates any message, with duplicate names and invalid blocks.
fn any_message() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        any_literal(),
        prop::sample::select(vec!["\"data\"", "\"source\"", "\"output\"", "\"content\""])
            .prop_map(str::to_owned),
    ];
    let typed = (Just("\"type\"".to_owned()), any_kind());
    let field = prop_oneof![2 => (name, any_value()).boxed(), 1 => typed.boxed()];
    let block = prop_oneof![6 => object_of(field).boxed(), 1 => any_value().boxed()];
    let blocks = (Just("\"blocks\"".to_owned()), array_of(block));
    let field = prop_oneof![2 => blocks.boxed(), 1 => (any_literal(), any_value()).boxed()];
    object_of(field)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_message_comes_back_byte_for_byte(
        message in any_message(),
        limit in prop::sample::select(vec![0, 1, 8, 40, 300, 2000, MAX_INLINE]),
    ) {
        let (spliced, table) = move_out(&message, limit);
        prop_assert_eq!(&move_back(&spliced, &table).unwrap(), &message);
        // Every place now has a reference, or a small value that is not media.
        let ours = references(&spliced);
        let mut count = 0;
        walk(&spliced, &mut |place| {
            if Reference::read(place.value).is_some() {
                count += 1;
                return;
            }
            assert!(place.value.len() <= limit);
            assert!(!place.is_media || !place.value.starts_with('"') || place.value == "\"\"");
            assert!(!has_field(place.value, "payload"));
        });
        prop_assert_eq!(count, ours.len());
        prop_assert_eq!(parts(&message, limit).len(), ours.len());
    }

    #[test]
    fn a_message_that_cannot_have_parts_has_none(message in any_message()) {
        prop_assert!(may_have_parts(message.as_bytes()) || parts(&message, MAX_INLINE).is_empty());
    }

    #[test]
    fn no_text_is_a_panic(text in any::<String>(), message in any_message(), cut in any::<usize>()) {
        let mut cut = cut % (message.len() + 1);
        while !message.is_char_boundary(cut) {
            cut -= 1;
        }
        for text in [text.as_str(), &message[..cut]] {
            let found = parts(text, 3);
            prop_assert!(found.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
            let restored = restore(text, |_| Ok(b"1".to_vec())).unwrap();
            prop_assert!(restored.len() <= text.len());
        }
    }
}
