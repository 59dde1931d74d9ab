//! What snippets show.

use backtrail::{Block, Message, ToolUse};
use proptest::prelude::*;

use super::*;
use crate::search::record_text::add_message;

/// Formats a snippet with its marks in brackets.
fn shown(pieces: &[&str], query: &str) -> String {
    let query = ParsedQuery::parse(query).expect("a query");
    let pieces: Vec<String> = pieces.iter().map(|&piece| piece.to_owned()).collect();
    bracketed(&best(&pieces, &query))
}

fn bracketed(snippet: &Snippet) -> String {
    let mut out = String::new();
    let mut last = 0;
    for mark in &snippet.marks {
        out.push_str(&snippet.text[last..mark.start]);
        out.push_str(&format!("[{}]", &snippet.text[mark.clone()]));
        last = mark.end;
    }
    out + &snippet.text[last..]
}

#[test]
fn the_words_that_were_found_are_marked() {
    let text = "The old rounding lost a cent on refunds; round_half_even is better.";
    let table = [
        (
            "rounding",
            "The old [rounding] lost a cent on refunds; round_half_even is better.",
        ),
        (
            "cent rounding",
            "The old [rounding] lost a [cent] on refunds; round_half_even is better.",
        ),
        (
            "round_half",
            "The old rounding lost a cent on refunds; [round_half]_even is better.",
        ),
        (
            "\"old rounding\"",
            "The [old rounding] lost a cent on refunds; round_half_even is better.",
        ),
        (
            "refu*",
            "The old rounding lost a cent on [refunds]; round_half_even is better.",
        ),
        (
            "cent not absent",
            "The old rounding lost a [cent] on refunds; round_half_even is better.",
        ),
        (
            "nowhere",
            "The old rounding lost a cent on refunds; round_half_even is better.",
        ),
    ];
    for (query, expected) in table {
        assert_eq!(shown(&[text], query), expected, "{query}");
    }
    assert_eq!(shown(&["数据库查询很慢"], "查询"), "数据库[查询]很慢");
    assert_eq!(
        shown(&["un cafe\u{301} noir"], "café"),
        "un [cafe\u{301}] noir"
    );
    assert_eq!(shown(&["  a\n\n\tb   c "], "b"), " a\n[b]   c");
}

#[test]
fn the_piece_and_the_place_with_most_of_it_is_shown() {
    let far = format!(
        "alpha {} alpha beta gamma {}",
        "x ".repeat(300),
        "y ".repeat(300)
    );
    let snippet = shown(&["only alpha here", &far], "alpha beta gamma");
    assert!(snippet.contains("[alpha] [beta] [gamma]"), "{snippet}");
    assert!(
        snippet.starts_with('…') && snippet.ends_with('…'),
        "{snippet}"
    );
    assert!(snippet.chars().count() <= COLUMNS + 16, "{snippet}");
}

#[test]
fn a_call_shows_what_it_was_called_with() {
    let input = serde_json::json!({"file_path": "src/money.rs", "new_string": "round half even"});
    let call = ToolUse::new("t1", "edit", &input).expect("a call");
    let message = Message::assistant([Block::text("Let me look."), Block::from(call)]);
    let query = ParsedQuery::parse("src/money.rs").expect("a query");
    let mut pieces = Vec::new();
    add_message(&message, &mut pieces);
    assert_eq!(
        bracketed(&best(&pieces, &query)),
        "edit\nfile_path: [src/money.rs]\nnew_string: round half even"
    );
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(
        text in "(\\PC|[abé中👍\u{301}_ \n]){0,400}",
        query in "[abé中_]{1,3}( [ab]{1,2}){0,2}\\*?",
    ) {
        let Ok(query) = ParsedQuery::parse(&query) else { return Ok(()) };
        let snippet = best(&[text], &query);
        let mut last = 0;
        for mark in &snippet.marks {
            prop_assert!(mark.start >= last && mark.start < mark.end);
            prop_assert!(snippet.text.get(mark.clone()).is_some());
            last = mark.end;
        }
    }
}
