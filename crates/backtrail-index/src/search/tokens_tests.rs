//! The words of a text.

use proptest::prelude::*;

use super::*;

/// Returns the words of a text with a space where they are apart, whole names in
/// brackets.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    let mut last = None;
    for token in words(text) {
        if let Some(last) = last {
            let joint = match token.position - last {
                0 => "=",
                JOINED => "+",
                9 => "_",
                10 => "-",
                11 => ":",
                12 => ".",
                13 => "/",
                14 => "?",
                APART => " ",
                _ => " far ",
            };
            shown.push_str(joint);
        }
        last = Some(token.position);
        if is_whole(&token) {
            shown.push_str(&format!("[{}]", token.text));
        } else {
            shown.push_str(&token.text);
        }
    }
    shown
}

#[test]
fn names_are_split_as_programmers_write_them() {
    let table = [
        ("foo bar", "foo bar"),
        ("fooBar", "[foobar]=foo+bar"),
        ("FooBar", "[foobar]=foo+bar"),
        ("foo_bar", "foo_bar"),
        ("foo::bar", "foo:bar"),
        ("src/foo/bar.rs", "src/foo/bar.rs"),
        ("--foo-bar", "foo-bar"),
        ("HTTPServer2", "[httpserver]=http+server+2"),
        ("FOO_BAR", "foo_bar"),
        ("HTTP", "http"),
        ("sha256", "sha+256"),
        ("myFoo2Bar", "[myfoo]=my+foo+2+bar"),
        ("foo, bar", "foo bar"),
        ("foo. Bar", "foo bar"),
        ("foo(bar)", "foo bar"),
        ("https://a.example/b", "https?a.example/b"),
        ("-----", ""),
        ("a ----- b", "a b"),
        ("a-----b", "a b"),
        ("don't", "don?t"),
        ("a3f09b2c", "a3f09b2c"),
        ("e", "e"),
        ("", ""),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn every_script_has_words() {
    let table = [
        ("Привет, МИР", "привет мир"),
        ("ёлка й", "елка и"),
        ("Καλημέρα ΚΌΣΜΟΣ κόσμος", "καλημερα κοσμοσ κοσμοσ"),
        ("naïve café CAFÉ cafe\u{301}", "naive cafe cafe cafe"),
        ("Straße STRASSE", "strasse strasse"),
        ("naïveBayes", "naive+bayes"),
        ("中文搜索", "中+文+搜+索"),
        ("使用Rust语言", "使+用+rust+语+言"),
        ("日本語のテスト", "日+本+語+の+テ+ス+ト"),
        ("한국어 검색", "한+국+어 검+색"),
        ("ค้นหา", "ค+้+น+ห+า"),
        ("بَحْث العربية", "بحث العربية"),
        ("שָׁלוֹם", "שלום"),
        ("हिन्दी", "हिन्दी"),
        ("ＡＢＣ１", "abc+1"),
        ("ship 🚀👍🏽", "ship 🚀+👍"),
        ("“foo” — bar…", "foo bar"),
        ("a3f09b2c… x", "a3f09b2c x"),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn long_words_have_a_beginning() {
    let long = "x".repeat(1000);
    assert_eq!(shown(&long), "x".repeat(LONGEST));
    let wide = "ж".repeat(1000);
    assert!(shown(&wide).len() <= LONGEST + 4);
}

#[test]
fn encoded_data_is_one_word() {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 7_u32;
    let blob: String = (0..5000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(letters[(state >> 26) as usize])
        })
        .collect();
    let count = words(&format!("before {blob} after")).len();
    assert!(count < 12, "{count} words");
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "\\PC*|[a-zA-Z0-9_./:é中👍\u{301} ]*") {
        let words = words(&text);
        let mut last = 0;
        for word in words {
            prop_assert!(word.position >= last);
            prop_assert!(word.offset_from < word.offset_to);
            prop_assert!(text.get(word.offset_from..word.offset_to).is_some());
            prop_assert!(!word.text.is_empty() && word.text.len() <= LONGEST + 12);
            last = word.position;
        }
    }

    #[test]
    fn case_does_not_matter_to_plain_words(text in "[a-z]{1,12}( [a-z]{1,12}){0,5}") {
        prop_assert_eq!(shown(&text), shown(&text.to_uppercase()));
    }
}
