use super::*;

fn summary() -> Summary {
    Summary {
        place: "~/src/shop".to_owned(),
        changes: Changes {
            edited: 9,
            added: 4,
            deleted: 1,
            ..Changes::default()
        },
        skipped: SkippedPaths {
            count: 2,
            first: vec![
                entry("target/", SkippedReason::Ignored, 0),
                entry("data/dump.sql", SkippedReason::TooLarge, 1_288_490_189),
            ],
        },
        lost: Vec::new(),
        took: Duration::from_secs(151),
    }
}

fn entry(path: &str, reason: SkippedReason, bytes: u64) -> Entry {
    Entry {
        path: path.to_owned(),
        reason,
        bytes,
    }
}

fn named(program: &str) -> Suggestions<'_> {
    let workspace = String::new();
    Suggestions { program, workspace }
}

/// Returns the lines as they look without colours.
fn plain(summary: &Summary, width: Option<usize>) -> Vec<String> {
    let lines = summary.lines(&named("backtrail"), width).into_iter();
    lines
        .map(|line| anstream::adapter::strip_str(&line).to_string())
        .collect()
}

#[test]
fn three_lines_show_what_changed_what_was_skipped_and_how_to_continue() {
    assert_eq!(
        plain(&summary(), None),
        [
            "backtrail: 14 files changed in ~/src/shop (9 edited, 4 new, 1 deleted), 2 min 31 s",
            "  not protected: target/ (ignored), data/dump.sql (1.2 GiB, over snapshot_cap)",
            "  look: backtrail diff      undo: backtrail undo",
        ]
    );
}

#[test]
fn nothing_changed_is_one_line() {
    let mut summary = summary();
    summary.changes = Changes::default();
    summary.skipped = SkippedPaths::default();
    summary.took = Duration::from_millis(420);
    assert_eq!(
        plain(&summary, None),
        ["backtrail: no changes in ~/src/shop, 0.4 s"]
    );
}

/// That nothing changed is said of what was captured, no more.
#[test]
fn nothing_changed_says_that_not_all_was_captured() {
    let mut summary = summary();
    summary.changes = Changes::default();
    assert_eq!(
        plain(&summary, Some(80)),
        ["backtrail: no changes in ~/src/shop (2 entries not protected), 2 min 31 s"]
    );
}

#[test]
fn counts_are_in_words_and_only_those_that_there_are() {
    let mut summary = summary();
    summary.skipped = SkippedPaths::default();
    summary.changes = Changes {
        mode: 1,
        ..Changes::default()
    };
    let line = &plain(&summary, None)[0];
    assert_eq!(
        line,
        "backtrail: 1 file changed in ~/src/shop (1 mode change), 2 min 31 s"
    );
    summary.changes = Changes {
        added: 12_000,
        renamed: 2,
        ..Changes::default()
    };
    let line = &plain(&summary, None)[0];
    assert_eq!(
        line,
        "backtrail: 12,002 files changed in ~/src/shop (12,000 new, 2 renamed), 2 min 31 s"
    );
}

#[test]
fn at_most_three_names_are_told_and_how_many_more_there_are() {
    let mut summary = summary();
    let names = ["a", "b", "c", "d", "e"].map(|name| entry(name, SkippedReason::Special, 0));
    summary.skipped = SkippedPaths {
        count: 1_234,
        first: names.to_vec(),
    };
    assert_eq!(
        plain(&summary, None)[1],
        "  not protected: a (not a file), b (not a file), c (not a file) and 1,231 more"
    );
    // Names may be fewer than there are entries, or none at all.
    summary.skipped.first.clear();
    assert_eq!(plain(&summary, None)[1], "  not protected: 1,234 entries");
}

#[test]
fn a_narrow_terminal_gets_shorter_lines_and_no_more_than_four() {
    // Commands are never cut.
    let widths = [
        (
            83,
            "backtrail: 14 files changed in ~/src/shop (9 edited, 4 new, 1 deleted), 2 min 31 s",
        ),
        (
            81,
            "backtrail: 14 files changed in …/shop (9 edited, 4 new, 1 deleted), 2 min 31 s",
        ),
        (
            70,
            "backtrail: 14 files changed (9 edited, 4 new, 1 deleted), 2 min 31 s",
        ),
        (60, "backtrail: 14 files changed, 2 min 31 s"),
        (20, "backtrail: 14 files…"),
    ];
    for (width, headline) in widths {
        let lines = plain(&summary(), Some(width));
        assert_eq!(lines[0], headline, "at {width}");
        assert!(lines.len() <= 4, "{lines:#?}");
        let wide = |line: &&String| line.width() > width && !line.contains(": backtrail ");
        assert_eq!(lines.iter().find(wide), None, "at {width}: {lines:#?}");
    }
    let lines = plain(&summary(), Some(45));
    assert_eq!(lines[1], "  not protected: target/ (ignored) and 1 more");
    assert_eq!(lines[2], "  look: backtrail diff");
    assert_eq!(lines[3], "  undo: backtrail undo");
    assert_eq!(plain(&summary(), Some(30))[1], "  not protected: 2 entries");
}

#[test]
fn what_is_named_means_the_same_store() {
    let lines = summary().lines(&named("backtrail --store '/a b'"), None);
    assert!(
        lines[2].contains("backtrail --store '/a b' diff"),
        "{lines:#?}"
    );
    assert!(
        lines[2].contains("backtrail --store '/a b' undo"),
        "{lines:#?}"
    );
}

#[test]
fn what_is_named_means_the_same_workspace() {
    let named = Suggestions {
        program: "backtrail",
        workspace: " --workspace ../ws".to_owned(),
    };
    let lines = summary().lines(&named, None);
    let look = "look: backtrail diff --workspace ../ws  ";
    assert!(lines[2].contains(look), "{lines:#?}");
}

/// F12: a name can hold anything but `/` and NUL; none of it commands a terminal.
#[test]
fn a_name_neither_breaks_a_line_nor_commands_the_terminal() {
    let mut summary = summary();
    summary.place = "~/a\u{1b}[31m\nb".to_owned();
    summary.skipped.first[0].path = "x\r\n\u{1b}]0;owned\u{7}y\u{202e}/".to_owned();
    for line in plain(&summary, None) {
        assert!(
            !line.contains(|c: char| crate::text::is_unsafe(c) || c == '\n'),
            "{line:?}"
        );
    }
    let styled = summary.lines(&named("backtrail"), None).concat();
    assert!(
        !styled.contains("31m") && !styled.contains("owned"),
        "{styled:?}"
    );
}

#[test]
fn lines_are_dim_except_for_their_numbers() {
    let line = dim_but_numbers("backtrail: 14 files changed in ~/v2 (9 edited), 2.5 s");
    let (dim, reset) = (DIM.render().to_string(), DIM.render_reset().to_string());
    let number = |n: &str| format!("{reset}{n}{dim}");
    let expected = format!(
        "{dim}backtrail: {} files changed in ~/v2 ({} edited), {} s{reset}",
        number("14"),
        number("9"),
        number("2.5"),
    );
    assert_eq!(line, expected);
}

#[test]
fn a_length_of_time_reads_as_one_says_it() {
    let cases = [
        (0, "0.0 s"),
        (449, "0.4 s"),
        (9_940, "9.9 s"),
        (9_960, "10 s"),
        (59_400, "59 s"),
        (59_600, "1 min 0 s"),
        (151_000, "2 min 31 s"),
        (3_599_600, "1 h 0 min"),
        (11_100_000, "3 h 5 min"),
        (360_000_000, "100 h 0 min"),
    ];
    for (ms, words) in cases {
        assert_eq!(duration(Duration::from_millis(ms)), words, "{ms} ms");
    }
}

#[test]
fn what_was_lost_sight_of_is_named_first_and_within_four_lines() {
    let mut summary = summary();
    summary.lost = vec![entry("src/", SkippedReason::Unreadable, 0)];
    for width in [None, Some(100), Some(40)] {
        let lines = plain(&summary, width);
        assert!(lines.len() <= 4, "{lines:?}");
        assert!(
            lines[1].starts_with("  no longer protected: src/"),
            "{lines:?}"
        );
    }
    summary.changes = Changes::default();
    assert_eq!(plain(&summary, None).len(), 2);
}
