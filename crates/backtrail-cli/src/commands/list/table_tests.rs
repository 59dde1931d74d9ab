//! The table at several widths, with rows made by hand.

use backtrail::{SessionId, Timestamp};
use backtrail_index::{Money, Project};

use super::super::Sort;
use super::super::families;
use super::*;

fn row(id: &str, title: &str) -> SessionRow {
    let mut row = SessionRow::new(id.parse::<SessionId>().expect("an id"));
    row.title = Some(title.to_owned());
    row.agent = Some("claude-code".to_owned());
    row.project = Some(Project::new(std::path::Path::new("/src/shop"), None));
    // A day that reads the same whenever this runs.
    row.updated_at = Timestamp::from_millis(1_600_000_000_000);
    row.turns = 7;
    row.files_changed = 12;
    row.spending.calls = 3;
    row.spending.input_tokens = 412_000;
    row.spending.cost = Money(1_840_000_000);
    row
}

fn ids(rows: &[SessionRow]) -> Vec<String> {
    let mut ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    ids.sort();
    ids
}

/// Draws rows folded, or unfolded, without styles.
fn drawn(rows: Vec<SessionRow>, width: Option<usize>, unfolded: bool) -> String {
    let ids = ids(&rows);
    let mut families = families::gather(rows);
    families::sort(&mut families, Sort::Updated);
    let lines: Vec<SessionLine<'_>> = match unfolded {
        true => families.iter().flat_map(|family| family.tree()).collect(),
        false => families.iter().map(|family| family.folded()).collect(),
    };
    anstream::adapter::strip_str(&draw(&lines, &ids, width)).to_string()
}

fn some() -> Vec<SessionRow> {
    let first = row("c81fa000", "fix the currency rounding");
    let mut second = row("77ab0000", "漢字かな交じり文を e\u{301}crire");
    second.agent = Some("codex".to_owned());
    second.spending.unpriced_calls = 1;
    let mut third = row("44100000", "rotate\u{1b}[31m the\nkeys");
    third.spending.unpriced_calls = 3;
    third.project = None;
    third.pinned = true;
    vec![first, second, third]
}

#[test]
fn a_table_reads_well() {
    assert_eq!(
        drawn(some(), None, false),
        "\
ID    WHEN        AGENT        PROJECT  TITLE                      TURNS  FILES  TOKENS      COST
4410  2020-09-13  claude-code           * rotate the keys              7     12   412 k  unpriced
77ab  2020-09-13  codex        shop     漢字かな交じり文を e\u{301}crire      7     12   412 k    $1.84+
c81f  2020-09-13  claude-code  shop     fix the currency rounding      7     12   412 k    $1.84
"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal_and_columns_go_from_the_right() {
    for width in 10..=170 {
        for unfolded in [false, true] {
            let text = drawn(some(), Some(width), unfolded);
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
            assert_eq!(text.lines().count(), 4, "{width}");
        }
    }
    let head = |width| {
        let text = drawn(some(), Some(width), false);
        let words = text.lines().next().unwrap_or_default().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        head(160),
        "ID WHEN AGENT PROJECT TITLE TURNS FILES TOKENS COST"
    );
    assert_eq!(head(85), "ID WHEN AGENT PROJECT TITLE TURNS FILES TOKENS");
    assert_eq!(head(80), "ID WHEN AGENT PROJECT TITLE TURNS FILES");
    assert_eq!(head(60), "ID WHEN AGENT PROJECT TITLE");
    assert_eq!(head(52), "ID WHEN AGENT TITLE");
    assert_eq!(head(30), "ID TITLE");
}

/// A parent, its fork, the fork of that, and a sub-agent of the parent's.
fn family() -> Vec<SessionRow> {
    let at = |n: i64| Timestamp::from_millis(1_600_000_000_000 + n);
    let mut rows = Vec::new();
    for (n, id) in ["aaaa1", "bbbb2", "cccc3", "dddd4"].into_iter().enumerate() {
        let mut row = row(id, "why is checkout slow");
        row.family.root = "aaaa1".to_owned();
        row.created_at = at(n as i64);
        row.updated_at = at(n as i64);
        rows.push(row);
    }
    rows[1].family.forked_from = Some(("aaaa1".to_owned(), Some(5)));
    rows[1].family.branch = Some("try 2".to_owned());
    rows[2].family.forked_from = Some(("bbbb2".to_owned(), Some(9)));
    rows[3].family.spawned_by = Some("aaaa1".to_owned());
    rows[3].title = Some("look for slow queries".to_owned());
    rows
}

#[test]
fn a_family_is_folded_under_its_newest_session_that_is_not_a_sub_agent() {
    let text = drawn(family(), None, false);
    let mut lines = text.lines().skip(1);
    let line = lines.next().expect("a line");
    assert!(
        line.contains("[fork] why is checkout slow +2 forks +1 sub-agent"),
        "{text}"
    );
    assert!(line.starts_with("cccc"), "{text}");
    assert!(line.ends_with("48   1.6 M  $7.36"), "all of it: {text}");
    assert_eq!(lines.next(), None);
    // How many are folded is never cut off.
    for width in 20..100 {
        let text = drawn(family(), Some(width), false);
        let told = ["+2 forks +1 sub-agent", " +3"];
        assert!(
            told.iter().any(|told| text.contains(told)),
            "{width}: {text}"
        );
    }
}

#[test]
fn a_family_unfolds_as_a_tree() {
    let text = drawn(family(), None, true);
    let titles: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|line| line.split("shop     ").nth(1).unwrap_or(line))
        .map(|rest| rest.split("   ").next().unwrap_or(rest))
        .collect();
    assert_eq!(
        titles,
        [
            "why is checkout slow",
            "└ [fork try 2] why is checkout slow",
            "  └ [fork] why is checkout slow",
            "└ [sub-agent] look for slow queries",
        ]
    );
}

#[test]
fn what_comes_from_itself_is_not_hidden() {
    let mut rows = family();
    rows[0].family.forked_from = Some(("cccc3".to_owned(), Some(1)));
    let text = drawn(rows, None, true);
    for id in ["aaaa", "bbbb", "cccc", "dddd"] {
        assert_eq!(text.matches(id).count(), 1, "{id}: {text}");
    }
}

#[test]
fn the_reason_for_an_unreadable_session_takes_the_rest_of_the_line() {
    let mut rows = some();
    rows[0].error = Some("permission denied: /store/sessions/c81fa000/0000.jsonl".to_owned());
    let text = drawn(rows, Some(100), false);
    let line = text.lines().find(|line| line.starts_with("c81f"));
    assert!(
        line.expect("it is listed")
            .ends_with("unreadable: permission denied: /store/sessions/c81fa000/000…"),
        "{text}"
    );
}

#[test]
fn ids_are_as_long_as_needed_to_be_unique() {
    let ids = [
        "aaaabbbb",
        "aaaacccc",
        "ffff0000",
        "session-1",
        "session-10",
    ];
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    assert_eq!(prefix("aaaabbbb", &ids), "aaaab");
    assert_eq!(prefix("ffff0000", &ids), "ffff");
    assert_eq!(prefix("session-1", &ids), "session-1");
    assert_eq!(prefix("session-10", &ids), "session-10");
    assert_eq!(prefix("not listed", &ids), "not ");
    // One that somebody else named does not break the lines.
    let mut rows = some();
    let long = "x".repeat(120);
    rows.push(row(&format!("{long}1"), "a"));
    rows.push(row(&format!("{long}2"), "b"));
    for line in drawn(rows, Some(60), false).lines() {
        assert!(line.width() <= 60, "{line}");
    }
}

#[test]
fn sessions_are_sorted_by_what_is_asked_and_what_is_not_known_comes_last() {
    let mut rows = some();
    rows[0].spending.cost = Money(5);
    rows[1].turns = 40;
    rows[2].created_at = Timestamp::from_millis(9);
    rows.push({
        let mut row = row("eeee0000", "");
        row.title = None;
        row.spending = Spending::default();
        row
    });
    let first = |by| {
        let mut families = families::alone(rows.clone());
        families::sort(&mut families, by);
        let ids = families
            .iter()
            .map(|family| family.head().id.prefix(4).to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(first(Sort::Updated)[0], "4410", "it is pinned");
    assert_eq!(first(Sort::Created)[0], "4410");
    assert_eq!(first(Sort::Cost)[2..], ["c81f", "eeee"]);
    assert_eq!(first(Sort::Tokens)[3], "eeee");
    assert_eq!(first(Sort::Turns)[0], "77ab");
    assert_eq!(first(Sort::Title), ["c81f", "4410", "77ab", "eeee"]);
}
