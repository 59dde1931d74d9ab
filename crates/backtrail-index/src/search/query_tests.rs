//! The meaning of queries, and the errors of invalid ones.

use proptest::prelude::*;

use super::*;

/// Formats a query to show its meaning.
fn shown(query: &str) -> String {
    match ParsedQuery::parse(query) {
        Ok(parsed) => parsed.root.as_ref().map_or_else(String::new, show),
        Err(error) => format!("error: {error}"),
    }
}

fn show(node: &Node) -> String {
    let list = |nodes: &[Node], between: &str| {
        let shown: Vec<String> = nodes.iter().map(show).collect();
        format!("({})", shown.join(between))
    };
    match node {
        Node::All(nodes) => list(nodes, " & "),
        Node::Any(nodes) => list(nodes, " | "),
        Node::Not(node) => format!("!{}", show(node)),
        Node::Pair(phrase) => {
            let words: Vec<&str> = phrase.words.iter().map(|(_, word)| word.as_str()).collect();
            words.join("~")
        }
        Node::Phrase(phrase) => {
            let words: Vec<String> = phrase
                .words
                .iter()
                .map(|(offset, word)| match offset {
                    0 => word.clone(),
                    _ => format!("{offset}:{word}"),
                })
                .collect();
            let star = if phrase.is_prefix { "*" } else { "" };
            format!("{}{star}", words.join(" "))
        }
    }
}

#[test]
fn queries_mean_what_they_say() {
    let table = [
        ("foo", "foo"),
        ("Foo BAR", "(foo & bar)"),
        ("foo and bar", "(foo & bar)"),
        ("foo or bar", "(foo | bar)"),
        ("foo OR bar | baz", "(foo | bar | baz)"),
        ("a b or c d", "((a & b) | (c & d))"),
        ("a (b or c) d", "(a & (b | c) & d)"),
        ("a not b", "(a & !b)"),
        ("not b a", "(a & !b)"),
        ("a -b", "(a & !b)"),
        ("a not not b", "(a & b)"),
        ("a not (b or c)", "(a & !(b | c))"),
        ("a -\"b c\"", "(a & !b~c)"),
        ("\"foo bar\"", "foo~bar"),
        ("\"foo bar baz\"", "foo 15:bar 30:baz"),
        ("\"foo_bar\"", "foo 9:bar"),
        ("foo_bar", "foo 9:bar"),
        ("fooBar", "(foo 8:bar | foobar)"),
        ("--foo-bar", "foo 10:bar"),
        ("src/foo/bar.rs", "src 13:foo 26:bar 38:rs"),
        ("foo*", "foo*"),
        ("foo_ba*", "foo 9:ba*"),
        ("\"foo ba*\"", "foo 15:ba*"),
        ("\"foo ba\"*", "foo 15:ba*"),
        ("c81f*", "(c 8:81 16:f* | c81f*)"),
        ("foo()", "foo"),
        ("(foo() or bar)", "(foo | bar)"),
        ("foo => bar", "(foo & bar)"),
        ("a=\"b c\"", "(a & b~c)"),
        ("android order notable", "(android & order & notable)"),
        ("中文", "中 8:文"),
    ];
    for (query, expected) in table {
        assert_eq!(shown(query), expected, "{query}");
    }
}

#[test]
fn errors_name_the_place() {
    let table = [
        ("", "nothing to search for: no letters or digits"),
        ("=> *", "nothing to search for: no letters or digits"),
        ("foo \"bar", "the quote at character 5 is not closed"),
        ("é (foo", "the `(` at character 3 is not closed"),
        ("foo )", "the `)` at character 5 closes nothing"),
        ("foo ()", "nothing inside the parentheses at character 5"),
        ("foo or", "nothing after the `or` at character 5"),
        ("or foo", "nothing before the `or` at character 1"),
        ("foo or or bar", "nothing after the `or` at character 5"),
        ("and foo", "nothing before the `and` at character 1"),
        ("foo and", "nothing after the `and` at character 5"),
        ("foo not", "nothing after the `not` at character 5"),
        ("(foo or) bar", "nothing after the `or` at character 6"),
        ("not foo", ONLY_NOT),
        ("not foo not bar", ONLY_NOT),
        ("-foo", ONLY_NOT),
    ];
    for (query, expected) in table {
        assert_eq!(shown(query), format!("error: {expected}"), "{query}");
    }
    assert!(shown("foo or not bar").starts_with("error: next to an `or`"));
    assert!(shown(&"(".repeat(10_000)).starts_with("error: "));
    assert!(shown(&"not ".repeat(10_000)).starts_with("error: "));
    assert!(shown(&"word ".repeat(10_000)).starts_with("error: too many words"));
}

proptest! {
    #[test]
    fn no_query_causes_a_panic(query in "\\PC*|([()\"*|a-c-]| and | or | not | é|中){0,30}") {
        if let Ok(parsed) = ParsedQuery::parse(&query) {
            prop_assert!(parsed.root.as_ref().is_none_or(is_sound));
            prop_assert!(parsed.has_words() || !parsed.files.is_empty());
        }
    }
}

/// Returns whether a query can be answered without scanning everything.
fn is_sound(node: &Node) -> bool {
    match node {
        Node::All(nodes) => {
            nodes.iter().any(|node| !matches!(node, Node::Not(_)))
                && nodes.iter().all(|node| match node {
                    Node::Not(inner) => is_sound(inner),
                    other => is_sound(other),
                })
        }
        Node::Any(nodes) => nodes
            .iter()
            .all(|node| !matches!(node, Node::Not(_)) && is_sound(node)),
        Node::Not(_) => false,
        Node::Phrase(phrase) | Node::Pair(phrase) => {
            !phrase.words.is_empty() && phrase.words.iter().all(|(_, word)| !word.is_empty())
        }
    }
}
