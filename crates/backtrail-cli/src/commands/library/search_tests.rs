//! A search as somebody types finds what `search` finds, and a query that is not finished is not
//! an error.

use backtrail::{Message, SessionOptions};
use backtrail_view::library::Library;

use super::super::testing::{Fixture, answer, plain};
use super::*;
use crate::layout::BOLD;

#[test]
fn a_query_is_completed_as_it_is_typed() {
    for (typed, meant) in [
        ("roun", "roun*"),
        ("half cent", "half cent*"),
        ("half ", "half "),
        ("a", "a"),
        ("src/foo.rs", "src/foo.rs"),
        ("fo*", "fo*"),
        ("\"half ce", "\"half ce\""),
        ("\"half cent\"", "\"half cent\""),
        ("half or", "half"),
        ("half and not", "half"),
        ("half (", "half"),
        ("half (cent or ev", "half (cent or ev*)"),
        ("half \" (", "half \" (\""),
        ("not", "not*"),
        ("file:src/a", "file:src/a"),
    ] {
        let meant = match typed {
            "half or" | "half and not" | "half (" => "half*",
            _ => meant,
        };
        assert_eq!(completed(typed), meant, "{typed}");
    }
}

fn store() -> Fixture {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new().title("money").agent("codex"));
    session
        .append(Message::user_text("round half even"))
        .unwrap();
    session.append(answer("The rounding lost a cent.")).unwrap();
    session
        .append(Message::user_text("round it otherwise"))
        .unwrap();
    session.rewind_chat(2).unwrap();
    let other = fixture.create(SessionOptions::new().title("other"));
    other
        .append(Message::user_text("a cent for the roundabout"))
        .unwrap();
    fixture
}

fn search(fixture: &Fixture, words: &str, scope: Scope) -> SearchResults {
    fixture.library.search(words, scope).unwrap()
}

#[test]
fn the_last_word_is_the_beginning_of_one_and_matches_are_in_bold() {
    let fixture = store();
    let found = search(&fixture, "cent rounda", Scope::Everything);
    assert_eq!(found.all, 1);
    let hit = &found.hits[0];
    assert!(hit.heading.starts_with("other · "), "{}", hit.heading);
    assert_eq!(plain(&hit.snippet), ["a cent for the roundabout"]);
    let bold = hit
        .snippet
        .iter()
        .flatten()
        .filter(|span| span.style == BOLD);
    let bold: Vec<&str> = bold.map(|span| span.text.as_str()).collect();
    assert_eq!(bold, ["cent", "roundabout"]);
}

#[test]
fn matches_of_a_session_are_together_and_undone_ones_name_their_trail() {
    let fixture = store();
    let found = search(&fixture, "round", Scope::Everything);
    assert_eq!(found.hits.len(), 4);
    let sessions: Vec<&str> = found
        .hits
        .iter()
        .map(|hit| hit.place.session.as_str())
        .collect();
    let mut distinct = sessions.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), 2, "{sessions:?}");
    let undone: Vec<_> = found.hits.iter().filter(|hit| hit.is_undone).collect();
    assert_eq!(undone.len(), 1);
    assert_eq!((undone[0].place.seq, undone[0].place.trail), (3, Some(0)));
    let first = found
        .hits
        .iter()
        .find(|hit| hit.place.seq == 1 && hit.heading.contains("money"));
    let heading = &first.unwrap().heading;
    assert!(heading.starts_with("money · Codex · shop · "), "{heading}");
    assert!(heading.contains(" · turn 1 · user"), "{heading}");
    assert_eq!(search(&fixture, "round", Scope::Workspace).hits.len(), 3);
}

#[test]
fn a_query_that_is_not_finished_is_no_error() {
    let fixture = store();
    for words in [
        "", "  ", "\"", "\"half", "(", "half (", "half or", "-", "file:", "*", "half -",
    ] {
        let answer = fixture.library.search(words, Scope::Everything);
        if let Err(failure) = answer {
            assert!(
                failure.message.len() <= 100 && failure.hints.is_empty(),
                "{words}"
            );
        }
    }
    assert_eq!(
        search(&fixture, "\"half ev", Scope::Everything).hits.len(),
        0
    );
    assert_eq!(
        search(&fixture, "\"half even", Scope::Everything)
            .hits
            .len(),
        1
    );
    assert_eq!(search(&fixture, "half or", Scope::Everything).hits.len(), 1);
}

#[test]
fn a_misspelled_word_is_suggested() {
    let fixture = store();
    let found = search(&fixture, "roundabuot ", Scope::Everything);
    assert_eq!(found.hits.len(), 0);
    assert_eq!(found.suggestion.as_deref(), Some("roundabout"));
}

#[test]
fn what_was_written_since_the_last_search_is_found() {
    let fixture = store();
    assert_eq!(search(&fixture, "zebra", Scope::Everything).hits.len(), 0);
    let session = fixture.session(SessionOptions::new());
    session.append(Message::user_text("a zebra")).unwrap();
    fixture.library.fresh_index().unwrap();
    assert_eq!(search(&fixture, "zebra", Scope::Everything).hits.len(), 1);
}

#[test]
fn a_query_that_no_more_letters_mend_says_what_is_wrong_with_it() {
    let fixture = store();
    for (words, reason) in [
        ("zzzz AND", "nothing after the `and` at character 6"),
        ("zzzz and not", "nothing after the `not` at character 10"),
        ("and", "nothing before the `and` at character 1"),
        ("or cent", "nothing before the `or` at character 1"),
        ("cent )", "the `)` at character 6 closes nothing"),
        ("zzzz (", "nothing inside the parentheses at character 6"),
        ("-cent", "the query only excludes words"),
        ("file:", "nothing after the `file:` at character 1"),
    ] {
        let failure = fixture.library.search(words, Scope::Everything);
        let message = failure.expect_err(words).message;
        assert!(message.contains(reason), "{words}: {message}");
    }
    // What closing completes was only not found.
    for words in ["\"zzzz ce", "(zzzz", "zzzz \" (", "zzzz", "zzzz AND a"] {
        assert_eq!(search(&fixture, words, Scope::Everything).all, 0, "{words}");
    }
    // As long as there are matches they are shown.
    assert_eq!(search(&fixture, "cent AND", Scope::Everything).all, 2);
}
