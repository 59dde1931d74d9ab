//! The table at several widths, with rows made by hand.

use std::collections::HashMap;

use backtrail::{SessionId, Timestamp};
use backtrail_index::{Money, Project};

use super::super::Sort;
use super::super::families::{self, Content};
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

/// Draws rows folded, or unfolded, without styles.
fn drawn(rows: Vec<SessionRow>, width: Option<usize>, unfolded: bool) -> String {
    let mut families = families::gather(rows, &HashMap::new());
    families::sort(&mut families, Sort::Updated);
    let lines: Vec<SessionLine<'_>> = match unfolded {
        true => families.iter().flat_map(|family| family.tree()).collect(),
        false => families.iter().map(|family| family.folded()).collect(),
    };
    anstream::adapter::strip_str(&draw(&lines, None, false, width)).to_string()
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
mmyx  2020-09-13  Claude Code           * rotate the keys              7     12   412 k  unpriced
yprs  2020-09-13  Codex        shop     漢字かな交じり文を e\u{301}crire      7     12   412 k    $1.84+
xywv  2020-09-13  Claude Code  shop     fix the currency rounding      7     12   412 k    $1.84
"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal_and_the_cost_stays_at_80_columns() {
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
    assert_eq!(head(90), "ID WHEN AGENT PROJECT TITLE TURNS FILES COST");
    assert_eq!(head(80), "ID WHEN AGENT PROJECT TITLE COST");
    assert_eq!(head(60), "ID WHEN TITLE COST");
    assert_eq!(head(44), "ID WHEN TITLE");
    assert_eq!(head(30), "ID TITLE");
}

#[test]
fn the_sessions_of_one_workspace_have_no_column_for_it() {
    let rows = some();
    let lines: Vec<SessionLine<'_>> = rows.iter().map(|row| SessionLine::of(row, 0)).collect();
    let text = draw(&lines, None, true, Some(80));
    let text = anstream::adapter::strip_str(&text).to_string();
    let head: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head.join(" "), "ID WHEN AGENT TITLE TURNS FILES COST");
    assert!(!text.contains("shop"), "{text}");
}

#[test]
fn runs_are_folded_into_the_last_line() {
    let run = |id: &str, runs: u64, at: i64| {
        let mut row = row(id, "make");
        (row.turns, row.runs) = (0, runs);
        row.updated_at = Timestamp::from_millis(1_600_000_000_000 + at * 86_400_000);
        row
    };
    let runs = families::alone(vec![run("r1", 1, 0), run("r2", 11, 2), run("r3", 0, 9)]);
    let runs: Vec<Family> = runs.into_iter().filter(|run| run.runs() > 0).collect();
    let rows = some();
    let lines = [SessionLine::of(&rows[0], 0)];
    let text = draw(&lines, FoldedRuns::of(&runs).as_ref(), false, Some(60));
    let text = anstream::adapter::strip_str(&text).to_string();
    let last = text.lines().last().unwrap();
    assert_eq!(last, "      2020-09-15  +12 runs", "{text}");
    assert!(FoldedRuns::of(&[]).is_none());
}

#[test]
fn what_is_in_a_family_decides_whether_it_is_listed() {
    let content = |change: &dyn Fn(&mut SessionRow)| {
        let mut row = row("r1", "make");
        row.turns = 0;
        change(&mut row);
        families::alone(vec![row])[0].content()
    };
    assert_eq!(content(&|_| {}), Content::Nothing);
    assert_eq!(content(&|row| row.runs = 2), Content::Runs);
    assert_eq!(content(&|row| row.turns = 1), Content::Conversation);
    let never_hidden: [&dyn Fn(&mut SessionRow); 3] =
        [&|row| row.pinned = true, &|row| row.damaged = 1, &|row| {
            row.error = Some("denied".to_owned())
        }];
    for change in never_hidden {
        assert_eq!(content(change), Content::Conversation);
    }
    let mut family = family();
    family.iter_mut().for_each(|row| row.turns = 0);
    family[2].turns = 1;
    let families = families::gather(family, &HashMap::from([("aaaa1".to_owned(), 7)]));
    assert_eq!(families[0].content(), Content::Conversation);
    assert_eq!(families[0].folded().files, 7, "different ones");
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
    assert!(line.starts_with("uwux"), "{text}");
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
fn a_family_names_its_other_agents_but_not_those_of_sub_agents() {
    let mut rows = family();
    for (row, agent) in rows.iter_mut().zip(["codex", "pi", "codex", "mine"]) {
        row.agent = Some(agent.to_owned());
    }
    let line = drawn(rows, None, false);
    assert!(line.contains("+2 forks (pi) +1 sub-agent"), "{line}");
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
    for id in ["kxmv", "lmvr", "uwux", "vrwp"] {
        assert_eq!(text.matches(id).count(), 1, "{id}: {text}");
    }
}

#[test]
fn the_reason_for_an_unreadable_session_takes_the_rest_of_the_line() {
    let mut rows = some();
    rows[0].error = Some("permission denied: /store/sessions/c81fa000/0000.jsonl".to_owned());
    let text = drawn(rows, Some(100), false);
    let line = text.lines().find(|line| line.starts_with("xywv"));
    assert!(
        line.expect("it is listed")
            .ends_with("unreadable: permission denied: /store/sessions/c81fa000/000…"),
        "{text}"
    );
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
