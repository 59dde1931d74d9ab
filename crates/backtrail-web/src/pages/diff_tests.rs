//! A difference shows every line once on each of its sides.

use super::*;
use DiffKind::{Added, Hunk, Removed, Same};
use backtrail_view::library::DiffLine;

fn diff() -> FileDiff {
    let line = |(kind, old, new, text): (DiffKind, u64, u64, &str)| DiffLine {
        kind,
        old: (old > 0).then_some(old),
        new: (new > 0).then_some(new),
        text: text.to_owned(),
    };
    let lines = [
        (Hunk, 0, 0, "@@ -1,2 +1,3 @@"),
        (Same, 1, 1, "fn main() {"),
        (Removed, 2, 0, "    count(one);"),
        (Added, 0, 2, "    count(two);"),
        (Added, 0, 3, "    more();"),
        (Hunk, 0, 0, "@@ -9,1 +10,1 @@"),
        (Same, 9, 10, "}"),
    ];
    FileDiff {
        path: "a.rs".to_owned(),
        lines: lines.map(line).into(),
        note: None,
    }
}

fn shown(layout: Layout, hunks: Hunks) -> String {
    table(&diff(), layout, hunks).into_string()
}

#[test]
fn unified_every_line_is_there_once_with_its_numbers() {
    let html = shown(Layout::Unified, Hunks::Shown);
    assert_eq!(html.matches("<td class=\"t").count(), 5);
    assert!(html.contains("<tr class=\"del\"><td class=\"n\">2</td><td class=\"n\"></td>"));
}

#[test]
fn side_by_side_removed_and_added_lines_share_a_row() {
    let html = shown(Layout::SideBySide, Hunks::Shown);
    assert_eq!(html.matches("<td class=\"t").count(), 7);
    let row = html.split("<tr>").find(|row| row.contains("del")).unwrap();
    assert!(row.contains("one") && row.contains("two") && !row.contains("more"));
}

#[test]
fn only_the_changed_word_is_emphasised() {
    let html = shown(Layout::Unified, Hunks::Shown);
    assert_eq!(html.matches("<b>").count(), 2, "{html}");
    assert!(html.contains(">one<") && html.contains(">two<"));
}

#[test]
fn hunks_that_can_be_restored_are_counted_from_zero() {
    let html = shown(Layout::Unified, Hunks::Restorable);
    assert!(html.contains("data-hunk=\"0\"") && html.contains("data-hunk=\"1\""));
    assert!(!shown(Layout::Unified, Hunks::Shown).contains("data-hunk"));
}
