//! Lines of the log at several widths, with rows made by hand.

use super::*;

fn row(kind: &str, at: &str, about: &str, change: Changed, id: &str) -> Row {
    Row {
        kind: kind.to_owned(),
        at: at.to_owned(),
        about: about.to_owned(),
        change,
        id: id.to_owned(),
        ..Row::default()
    }
}

fn rows() -> Vec<Row> {
    let today = |row: Row| Row {
        day: Some("today".to_owned()),
        ..row
    };
    let files = ["src/a.rs", "src/cart.rs", "src/lib/deep.rs", "x"];
    vec![
        today(Row {
            files: vec!["notes.md".to_owned()],
            ..row(
                "",
                "now",
                "since the last checkpoint",
                Changed::Lines(2, 0, 1),
                "",
            )
        }),
        today(Row {
            labels: vec!["built".to_owned()],
            session: "kxyz".to_owned(),
            took: "2 min 31 s".to_owned(),
            ..row(
                "turn",
                "14:32",
                "fix the currency rounding",
                Changed::Lines(1048, 12, 4),
                "c81f",
            )
        }),
        today(Row {
            files: files.map(str::to_owned).into(),
            ..row("you", "14:20", "", Changed::Lines(3, 1, 4), "9d02")
        }),
        Row {
            day: Some("yesterday".to_owned()),
            ending: Some(Ending::Failed {
                exit_code: Some(3),
                signal: None,
            }),
            session: "mnop".to_owned(),
            took: "340 ms".to_owned(),
            ..row(
                "run",
                "23:11",
                "npm run build",
                Changed::Lines(0, 7, 1),
                "77ab",
            )
        },
        Row {
            day: Some("yesterday".to_owned()),
            labels: vec!["before-lunch".to_owned()],
            ..row(
                "checkpoint",
                "12:01",
                "",
                Changed::Text("12 files".to_owned()),
                "e3c0",
            )
        },
    ]
}

fn drawn(rows: &[Row], width: Option<usize>) -> String {
    anstream::adapter::strip_str(&draw_rows(rows, width)).to_string()
}

#[test]
fn days_are_headings_numbers_line_up_and_labels_come_first() {
    assert_eq!(
        drawn(&rows(), None),
        "\
today
now                since the last checkpoint: notes.md                              +2        1 file
14:32  turn        [built] fix the currency rounding          kxyz  2 min 31 s  +1,048 −12   4 files  c81f
14:20  you         src/a.rs, src/cart.rs, src/lib/deep.rs, x                        +3  −1   4 files  9d02
yesterday
23:11  run         npm run build (failed, exit 3)             mnop      340 ms          −7    1 file  77ab
12:01  checkpoint  before-lunch                                                             12 files  e3c0
"
    );
}

#[test]
fn where_it_is_narrow_the_text_stays_and_files_are_counted() {
    let at_60 = drawn(&rows(), Some(60));
    assert!(at_60.contains("14:20  you         src/a.rs, +3"), "{at_60}");
    let at_80 = drawn(&rows(), Some(80));
    assert!(at_80.contains("src/a.rs, src/cart.rs, +2"), "{at_80}");
    for width in 60..200 {
        let text = drawn(&rows(), Some(width));
        for line in text.lines() {
            assert!(line.width() <= width, "{width}: {line:?}");
        }
        for never_cut in ["built", "before-lunch", "(failed, exit 3)", "c81f"] {
            assert!(text.contains(never_cut), "{width}: {text}");
        }
    }
}

#[test]
fn a_long_name_is_cut_in_its_middle() {
    let row = Row {
        files: vec!["crates/cli/src/commands/log/rows.rs".to_owned(), "b".into()],
        ..row("you", "14:20", "", Changed::Lines(3, 1, 2), "9d02")
    };
    assert_eq!(row.text(100), "crates/cli/src/commands/log/rows.rs, b");
    assert_eq!(row.text(24), "crates…s/log/rows.rs, +1");
    assert_eq!(row.text(3), "");
}

#[test]
fn each_kind_has_its_colour() {
    let kinds = ["you", "turn", "run", "checkpoint", "undo"];
    let mut styles: Vec<String> = kinds
        .iter()
        .map(|it| format!("{}", kind_style(it)))
        .collect();
    assert_eq!(kind_style("you or codex"), kind_style("you"));
    assert_eq!(kind_style("redo"), kind_style("undo"));
    styles.sort_unstable();
    styles.dedup();
    assert_eq!(styles.len(), kinds.len());
    let text = draw_rows(&rows(), None);
    for styled in [
        format!("{ADDED}+1,048{ADDED:#}"),
        format!("{REMOVED}−12{REMOVED:#}"),
        format!("{LABEL}[built]{LABEL:#}"),
        format!("{FAILED}(failed, exit 3){FAILED:#}"),
        format!("{BOLD}yesterday{BOLD:#}"),
    ] {
        assert!(text.contains(&styled), "{styled:?}: {text:?}");
    }
}
