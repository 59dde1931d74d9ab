//! Hooks in settings: everything else stays, and removing them is exact (F35).

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;

fn wanted(program: &'static str) -> Vec<WantedHook> {
    let hook = |event| WantedHook {
        event,
        handler: json!({"type": "command", "command": "", "timeout": 5}),
        command: Box::new(move |created| format!("sh -c '{program} # {}'", created.mark())),
    };
    ["SessionStart", "PreToolUse", "Stop"].map(hook).into()
}

fn installed(text: &str) -> String {
    install(Some(text), &wanted("a"), 0).unwrap()
}

fn value(text: &str) -> Value {
    let document = Document::parse(text).unwrap();
    document
        .root()
        .map_or(Value::Null, |root| document.value(root))
}

/// Returns a text without what was inserted into it: `None` if something else was changed.
fn is_inserted(before: &str, after: &str) -> bool {
    let mut rest = after.chars();
    before.chars().all(|c| rest.any(|other| other == c))
}

#[test]
fn hooks_join_those_that_are_there() {
    let text = r#"{
  // my model
  "model": "opus",
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "say done" }] }
    ]
  }
}
"#;
    let new = installed(text);
    let hooks = &value(&new)["hooks"];
    assert_eq!(hooks["Stop"][0]["hooks"][0]["command"], "say done");
    assert_eq!(hooks["Stop"].as_array().unwrap().len(), 2, "{new}");
    assert_eq!(hooks["PreToolUse"].as_array().unwrap().len(), 1, "{new}");
    assert!(
        new.starts_with("{\n  // my model\n  \"model\": \"opus\",\n"),
        "{new}"
    );
    assert_eq!(remove(&new).unwrap().unwrap(), text);
}

#[test]
fn a_file_that_was_created_goes_and_one_that_was_empty_stays_empty() {
    let new = install(None, &wanted("a"), 2).unwrap();
    assert_eq!(installed_in(&new).unwrap()[0].created.directories, 2);
    assert_eq!(remove(&new).unwrap(), None);
    // With something else in it, it stays.
    let other = new.replacen('{', "{\n  \"model\": \"opus\",", 1);
    let left = remove(&other).unwrap().unwrap();
    assert_eq!(value(&left), json!({"model": "opus"}));
    for blank in [
        "",
        "\n",
        "\u{feff}",
        " \r\n",
        "// nothing yet\n",
        "\u{feff}// a",
    ] {
        let new = installed(blank);
        assert_eq!(installed_in(&new).unwrap().len(), 3, "{new:?}");
        assert_eq!(remove(&new).unwrap().unwrap(), blank);
    }
}

#[test]
fn an_update_replaces_the_hooks_and_keeps_what_was_created() {
    for text in [
        "{}",
        "{\"hooks\":{}}",
        "{ }",
        "{\"hooks\": {\"Stop\": []}}\n",
        "",
    ] {
        let old = installed(text);
        let new = install(Some(&old), &wanted("b"), 0).unwrap();
        assert_eq!(
            new,
            install(Some(text), &wanted("b"), 0).unwrap(),
            "{text:?}"
        );
        assert_eq!(remove(&new).unwrap().unwrap(), text);
    }
    let old = install(None, &wanted("a"), 1).unwrap();
    let new = install(Some(&old), &wanted("b"), 0).unwrap();
    assert_eq!(new, install(None, &wanted("b"), 1).unwrap());
}

#[test]
fn what_others_added_around_our_hooks_stays() {
    let new = installed("{}");
    // Written again by the agent, with a new key, another hook of the event, and one in our group.
    let mut value: Value = serde_json::from_str(&new).unwrap();
    value["model"] = "opus".into();
    let other = json!({"type": "command", "command": "say done"});
    let stop = value["hooks"]["Stop"].as_array_mut().unwrap();
    stop.push(json!({"hooks": [other]}));
    let group = value["hooks"]["PreToolUse"][0]["hooks"]
        .as_array_mut()
        .unwrap();
    group.insert(0, other.clone());
    let text = serde_json::to_string_pretty(&value).unwrap();
    let left = remove(&text).unwrap().unwrap();
    let wanted = json!({
        "hooks": {
            "PreToolUse": [{"hooks": [other]}],
            "Stop": [{"hooks": [other]}],
        },
        "model": "opus",
    });
    assert_eq!(left, serde_json::to_string_pretty(&wanted).unwrap());
}

#[test]
fn settings_of_another_shape_are_refused() {
    for (text, reason) in [
        ("[]", "not a JSON object"),
        ("{\"hooks\": []}", "not an object"),
        ("{\"hooks\": null}", "not an object"),
        ("{\"hooks\": {\"Stop\": {}}}", "not a list"),
        ("{\"hooks\": {}, \"hooks\": {}}", "twice"),
        ("{\"hooks\": {\"Stop\": [], \"Stop\": []}}", "twice"),
    ] {
        match install(Some(text), &wanted("a"), 0) {
            Err(Refused::Shape(shape)) => assert!(shape.contains(reason), "{shape}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let error = install(Some("{\n\"a\": }"), &wanted("a"), 0).unwrap_err();
    assert!(matches!(error, Refused::Syntax(error) if error.line == 2));
}

/// A piece of blank space, perhaps with comments.
fn blank(newline: &'static str) -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        5 => Just(String::new()),
        3 => Just(" ".to_owned()),
        3 => "[ \t]{0,5}".prop_map(move |indent| format!("{newline}{indent}")),
        1 => Just("/* \"hooks\": { */".to_owned()),
        1 => Just(format!(" // it's, [a] comment  {newline}")),
        1 => Just(format!("{newline}{newline}    // own line{newline}  ")),
    ];
    pieces.boxed()
}

/// Joins items with commas and blanks, and puts brackets around them.
fn list(
    newline: &'static str,
    open: char,
    close: char,
    item: impl Strategy<Value = String> + 'static,
    count: std::ops::Range<usize>,
) -> BoxedStrategy<String> {
    let items = prop::collection::vec((blank(newline), item, blank(newline)), count);
    (items, any::<bool>(), blank(newline))
        .prop_map(move |(items, trailing, end)| {
            let joined: Vec<String> = items
                .iter()
                .map(|(a, it, b)| format!("{a}{it}{b}"))
                .collect();
            let comma = if trailing && !items.is_empty() {
                ","
            } else {
                ""
            };
            format!("{open}{}{comma}{end}{close}", joined.join(","))
        })
        .boxed()
}

fn member(
    newline: &'static str,
    key: &'static str,
    value: impl Strategy<Value = String> + 'static,
) -> BoxedStrategy<String> {
    (blank(newline), blank(newline), value)
        .prop_map(move |(a, b, value)| format!("\"{key}\"{a}:{b}{value}"))
        .boxed()
}

/// Some of the members, in any order.
fn object(newline: &'static str, members: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    let most = members.len();
    let all = members.into_iter().map(|member| (any::<bool>(), member));
    (all.collect::<Vec<_>>(), 0..most)
        .prop_flat_map(move |(members, first)| {
            let mut members: Vec<_> = members.into_iter().filter(|(used, _)| *used).collect();
            let count = members.len();
            members.rotate_left(first % count.max(1));
            let texts: Vec<String> = members.into_iter().map(|(_, text)| text).collect();
            let blanks = prop::collection::vec((blank(newline), blank(newline)), count);
            (blanks, any::<bool>(), blank(newline)).prop_map(move |(blanks, trailing, end)| {
                let pairs = blanks.iter().zip(&texts);
                let joined: Vec<String> = pairs
                    .map(|((a, b), text)| format!("{a}{text}{b}"))
                    .collect();
                let comma = if trailing && !texts.is_empty() {
                    ","
                } else {
                    ""
                };
                format!("{{{}{comma}{end}}}", joined.join(","))
            })
        })
        .boxed()
}

fn settings_with(newline: &'static str) -> BoxedStrategy<String> {
    let handler = prop_oneof![
        Just(r#"{"type":"command","command":"say \"done\" // not a comment"}"#.to_owned()),
        Just(r#"{ "command": "x" }"#.to_owned()),
    ];
    let group = object(
        newline,
        vec![
            member(newline, "matcher", Just("\"Bash|Edit\"".to_owned())),
            member(newline, "hooks", list(newline, '[', ']', handler, 0..3)),
        ],
    );
    let event = move |name| member(newline, name, list(newline, '[', ']', group.clone(), 0..3));
    let hooks = object(
        newline,
        vec![event("PreToolUse"), event("Stop"), event("Other")],
    );
    let scalar = prop_oneof![Just("-1.5e3"), Just("null"), Just("\"ü \\u00fc }\"")];
    let scalar = scalar.prop_map(str::to_owned);
    let root = object(
        newline,
        vec![
            member(newline, "hooks", hooks),
            member(newline, "model", scalar.clone()),
            member(newline, "more", list(newline, '[', ']', scalar, 0..3)),
            member(newline, "empty", Just("{}".to_owned())),
        ],
    );
    let root = prop_oneof![9 => root, 1 => Just(String::new())];
    let mark = prop_oneof![4 => Just(""), 1 => Just("\u{feff}")];
    (mark, blank(newline), root, blank(newline))
        .prop_map(|(mark, a, root, b)| format!("{mark}{a}{root}{b}"))
        .boxed()
}

fn settings() -> impl Strategy<Value = String> {
    prop_oneof![settings_with("\n"), settings_with("\r\n")]
}

fn config() -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: cases.and_then(|cases| cases.parse().ok()).unwrap_or(1000),
        rng_seed: RngSeed::Fixed(35),
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    // F35
    #[test]
    fn f35_installing_inserts_and_removing_leaves_the_same_bytes(text in settings()) {
        let new = installed(&text);
        prop_assert!(is_inserted(&text, &new), "{text:?} became {new:?}");
        prop_assert!(is_installed(&new, &wanted("a")).unwrap(), "{new:?}");
        prop_assert_eq!(&installed(&new), &new);
        prop_assert_eq!(remove(&new).unwrap(), Some(text));
    }

    // F35
    #[test]
    fn f35_removing_after_other_edits_leaves_what_the_edits_alone_would(
        text in settings(),
        place in 0..3_usize,
    ) {
        // The edit of another program: a member at the end, a group in an event, or a member less.
        let stop = [Step::Key("hooks"), Step::Key("Stop")];
        let before = Document::parse(&text).unwrap();
        let root = before.root();
        let has_groups = before.get(&stop).is_some_and(|groups| groups.len() > 0);
        let first = root.and_then(|root| root.keys().next());
        let edit = |text: &str| {
            let document = Document::parse(text).unwrap();
            let root = document.root()?;
            let group = json!({"hooks": [{"command": "later"}]});
            Some(match place {
                0 => document.add(root, Some("later"), &json!({"a": [1]})),
                1 if has_groups => document.add(document.get(&stop)?, None, &group),
                2 if first? != "hooks" => document.remove(root, 0),
                _ => return None,
            })
        };
        if let (true, Some(alone), Some(both)) = (root.is_some(), edit(&text), edit(&installed(&text))) {
            let left = remove(&both).unwrap().unwrap_or_default();
            prop_assert_eq!(value(&left), value(&alone), "{:?} is left of {:?}", left, both);
            // The edit follows the style of what it finds there, which may be ours.
            let packed = |text: &str| {
                let mut all: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
                all.sort_unstable();
                all
            };
            prop_assert_eq!(packed(&left), packed(&alone), "{:?} is left of {:?}", left, both);
        }
    }
}
