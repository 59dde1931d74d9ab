//! Rows fit into their width, and show every line of a difference once.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::*;
use DiffKind::{Added, Hunk, Removed, Same};
use backtrail_view::library::{ChangesOf, DiffLine};

fn request(width: u16, skip: usize, side_by_side: bool) -> DiffRequest {
    DiffRequest {
        of: ChangesOf::Row("x".to_owned()),
        between: None,
        path: "a.rs".to_owned(),
        width,
        skip,
        side_by_side,
    }
}

/// Numbers lines as a difference does.
fn diff(lines: &[(DiffKind, &str)]) -> FileDiff {
    let (mut old, mut new) = (0, 0);
    let lines = lines.iter().map(|(kind, text)| {
        let is_old = matches!(kind, Same | Removed);
        let is_new = matches!(kind, Same | Added);
        old += u64::from(is_old);
        new += u64::from(is_new);
        DiffLine {
            kind: *kind,
            old: is_old.then_some(old),
            new: is_new.then_some(new),
            text: (*text).to_owned(),
        }
    });
    FileDiff {
        path: "a.rs".to_owned(),
        lines: lines.collect(),
        note: None,
    }
}

fn text_of(row: &Line) -> String {
    row.iter().map(|span| span.text.as_str()).collect()
}

fn screen(diff: &FileDiff, request: &DiffRequest, look: Look) -> Vec<String> {
    let rows = lay_out(diff, request, look).rows;
    rows.iter()
        .map(|(row, _)| text_of(row).trim_end().to_owned())
        .collect()
}

const EDIT: [(DiffKind, &str); 6] = [
    (Hunk, "@@ -1,3 +1,3 @@"),
    (Same, "fn main() {"),
    (Removed, "    count(1);"),
    (Added, "    count(2);"),
    (Added, "    more();"),
    (Same, "}"),
];

#[test]
fn a_unified_difference_has_both_numbers_and_a_sign() {
    let rows = screen(&diff(&EDIT), &request(60, 0, false), Look::default());
    let expected = [
        "@@ -1,3 +1,3 @@",
        "1 1  fn main() {",
        "2   -    count(1);",
        "  2 +    count(2);",
        "  3 +    more();",
        "3 4  }",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn side_by_side_removed_and_added_lines_share_a_row() {
    let rows = screen(&diff(&EDIT), &request(41, 0, true), Look::default());
    let expected = [
        "@@ -1,3 +1,3 @@",
        "1  fn main() {      │1  fn main() {",
        "2 -    count(1);    │2 +    count(2);",
        "                    │3 +    more();",
        "3  }                │4  }",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn hunks_are_counted_from_the_first_heading_on() {
    let mut lines = EDIT.to_vec();
    lines.extend(EDIT);
    let rows = lay_out(&diff(&lines), &request(60, 0, false), Look::default()).rows;
    let hunks: Vec<Option<usize>> = rows.iter().map(|(_, hunk)| *hunk).collect();
    assert_eq!(hunks[..6], [Some(0); 6]);
    assert_eq!(hunks[6..], [Some(1); 6]);
}

#[test]
fn only_changed_words_are_emphasised_with_and_without_colours() {
    let few = Look {
        many_colors: false,
        ..Look::default()
    };
    let none = Look {
        color: false,
        ..few
    };
    for look in [Look::default(), few, none] {
        let rows = lay_out(&diff(&EDIT), &request(60, 0, false), look).rows;
        for (row, kind, word) in [(2, Removed, "1"), (3, Added, "2")] {
            let (_, emphasis) = styles(kind, look);
            let is_emphasised = |span: &&Span| over(span.style, emphasis) == span.style;
            let words: Vec<&str> = rows[row]
                .0
                .iter()
                .filter(is_emphasised)
                .map(|it| it.text.as_str())
                .collect();
            assert_eq!(words, [word], "{look:?}: {:?}", rows[row].0);
        }
    }
}

#[test]
fn scrolling_moves_the_text_and_not_the_numbers() {
    let rows = screen(&diff(&EDIT), &request(60, 4, false), Look::default());
    assert_eq!(rows[2], "2   -count(1);");
}

#[test]
fn a_remark_is_passed_on() {
    let binary = FileDiff {
        note: Some("binary".to_owned()),
        ..FileDiff::default()
    };
    let rows = lay_out(&binary, &request(60, 0, false), Look::default());
    assert_eq!((rows.rows, rows.note.as_deref()), (vec![], Some("binary")));
}

fn any_line() -> impl Strategy<Value = (DiffKind, String)> {
    let kind = prop_oneof![Just(Hunk), Just(Same), Just(Removed), Just(Added)];
    let text = prop_oneof![
        "[a-z ]{0,30}",
        "[日本語a\t]{0,20}",
        "\\PC{0,20}",
        any::<String>()
    ];
    (kind, text)
}

proptest! {
    #[test]
    fn no_row_is_wider_than_it_may_be(
        lines in proptest::collection::vec(any_line(), 0..30),
        width in 0_u16..120,
        skip in 0_usize..40,
        side_by_side: bool,
    ) {
        let lines: Vec<(DiffKind, &str)> = lines.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
        // Without colours, so that no language has to be loaded.
        let look = Look { color: false, ..Look::default() };
        for (row, _) in lay_out(&diff(&lines), &request(width, skip, side_by_side), look).rows {
            let text = text_of(&row);
            prop_assert!(text.width() <= usize::from(width), "{text:?}");
            prop_assert!(!text.contains(char::is_control), "{text:?}");
        }
    }

    #[test]
    fn every_line_appears_once_on_each_of_its_sides(
        kinds in proptest::collection::vec(prop_oneof![Just(Hunk), Just(Same), Just(Removed), Just(Added)], 0..40),
        side_by_side: bool,
    ) {
        let texts: Vec<String> = (0..kinds.len()).map(|n| format!("<line {n}>")).collect();
        let lines: Vec<(DiffKind, &str)> = kinds.iter().copied().zip(texts.iter().map(String::as_str)).collect();
        let look = Look { color: false, ..Look::default() };
        let rows = screen(&diff(&lines), &request(80, 0, side_by_side), look);
        for (kind, text) in lines {
            let sides: Vec<usize> = match side_by_side && kind != Hunk {
                false => vec![rows.iter().map(|row| row.matches(text).count()).sum()],
                true => {
                    let parts = rows.iter().filter_map(|row| row.split_once('│'));
                    let (old, new): (Vec<&str>, Vec<&str>) = parts.unzip();
                    [old, new].map(|side| side.iter().filter(|it| it.contains(text)).count()).to_vec()
                }
            };
            let expected: &[usize] = match (side_by_side, kind) {
                (false, _) | (_, Hunk) => &[1],
                (true, Same) => &[1, 1],
                (true, Removed) => &[1, 0],
                (true, Added) => &[0, 1],
            };
            prop_assert_eq!(&sides[..], expected, "{} in {:#?}", text, rows);
        }
    }
}
