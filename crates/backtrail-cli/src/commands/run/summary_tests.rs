use serde_json::json;

use super::*;

fn summary() -> Summary {
    Summary {
        place: "~/src/shop".to_owned(),
        changes: changes(|it| (it.edited, it.new, it.deleted) = (9, 4, 1)),
        skipped: skipped(
            2,
            vec![
                entry("target", "dir", "ignored", 0),
                entry("data/dump.sql", "file", "too_large", 1_288_490_189),
            ],
        ),
        lost: Vec::new(),
        unprotected: UnprotectedChanges::default(),
        took: Duration::from_secs(151),
        git: None,
    }
}

fn changes(set: impl Fn(&mut ChangeCounts)) -> ChangeCounts {
    let mut changes = ChangeCounts::default();
    set(&mut changes);
    changes
}

fn skipped(count: u64, first: Vec<SkippedEntry>) -> SkippedFiles {
    let mut skipped = SkippedFiles::default();
    (skipped.count, skipped.first) = (count, first);
    skipped
}

fn entry(path: &str, kind: &str, reason: &str, bytes: u64) -> SkippedEntry {
    let entry = json!({"path": path, "kind": kind, "reason": reason, "bytes": bytes});
    serde_json::from_value(entry).unwrap()
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
            "  diff: backtrail diff      undo: backtrail undo",
        ]
    );
}

#[test]
fn nothing_changed_is_one_line() {
    let mut summary = summary();
    summary.changes = ChangeCounts::default();
    summary.skipped = SkippedFiles::default();
    summary.took = Duration::from_millis(420);
    assert_eq!(
        plain(&summary, None),
        ["backtrail: no changes in ~/src/shop, 420 ms"]
    );
}

#[test]
fn no_changes_mentions_what_is_not_protected() {
    let mut summary = summary();
    summary.changes = ChangeCounts::default();
    assert_eq!(
        plain(&summary, Some(80)),
        ["backtrail: no changes in ~/src/shop (2 entries not protected), 2 min 31 s"]
    );
}

/// F32: what was destroyed without protection is never "no changes".
#[test]
fn what_was_lost_without_protection_is_in_the_headline() {
    let mut summary = summary();
    summary.unprotected.count = 2;
    assert_eq!(
        plain(&summary, None)[0],
        "backtrail: 14 files changed in ~/src/shop (9 edited, 4 new, 1 deleted, 2 unprotected \
         lost), 2 min 31 s"
    );
    summary.changes = ChangeCounts::default();
    for width in [None, Some(60)] {
        let headline = &plain(&summary, width)[0];
        assert!(!headline.contains(": no changes"), "{headline}");
        let lost = "backtrail: 2 unprotected paths lost, no other changes";
        assert!(headline.starts_with(lost), "{headline}");
    }
}

#[test]
fn what_changed_without_protection_is_one_word() {
    let mut summary = summary();
    let changed = json!({"count": 0, "lost": [], "changed": [{"path": "target"}]});
    summary.unprotected = serde_json::from_value(changed).unwrap();
    assert_eq!(
        plain(&summary, None)[1],
        "  not protected: target/ (ignored, changed), data/dump.sql (1.2 GiB, over snapshot_cap)"
    );
    summary.changes = ChangeCounts::default();
    let headline = &plain(&summary, None)[0];
    let words = "(2 entries not protected, 1 changed)";
    assert!(headline.contains(words), "{headline}");
    summary.skipped = skipped(1, vec![entry("target", "dir", "ignored", 0)]);
    let headline = &plain(&summary, None)[0];
    assert!(
        headline.contains("(not protected: target/, changed)"),
        "{headline}"
    );
}

#[test]
fn only_counts_above_zero_are_shown() {
    let mut summary = summary();
    summary.skipped = SkippedFiles::default();
    summary.changes = changes(|it| it.modes = 1);
    let line = &plain(&summary, None)[0];
    assert_eq!(
        line,
        "backtrail: 1 file changed in ~/src/shop (1 mode change), 2 min 31 s"
    );
    summary.changes = changes(|it| (it.new, it.renamed) = (12_000, 2));
    let line = &plain(&summary, None)[0];
    assert_eq!(
        line,
        "backtrail: 12,002 files changed in ~/src/shop (12,000 new, 2 renamed), 2 min 31 s"
    );
}

#[test]
fn at_most_three_names_are_shown_and_how_many_more_there_are() {
    let mut summary = summary();
    let names = ["a", "b", "c", "d", "e"].map(|name| entry(name, "fifo", "special", 0));
    summary.skipped = skipped(1_234, names.to_vec());
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
    assert_eq!(lines[2], "  diff: backtrail diff");
    assert_eq!(lines[3], "  undo: backtrail undo");
    assert_eq!(plain(&summary(), Some(30))[1], "  not protected: 2 entries");
}

#[test]
fn suggested_commands_use_the_same_store() {
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
fn suggested_commands_use_the_same_workspace() {
    let named = Suggestions {
        program: "backtrail",
        workspace: " --workspace ../ws".to_owned(),
    };
    let lines = summary().lines(&named, None);
    let look = "diff: backtrail diff --workspace ../ws  ";
    assert!(lines[2].contains(look), "{lines:#?}");
}

/// F12: a name can hold anything but `/` and NUL; none of it commands a terminal.
#[test]
fn a_name_neither_breaks_a_line_nor_commands_the_terminal() {
    let mut summary = summary();
    summary.place = "~/a\u{1b}[31m\nb".to_owned();
    summary.skipped.first[0].path = "x\r\n\u{1b}]0;owned\u{7}y\u{202e}/".into();
    for line in plain(&summary, None) {
        assert!(
            !line.contains(|c: char| crate::text::is_unsafe(c) || c == '\n'),
            "{line:?}"
        );
    }
    let styled = summary.lines(&named("backtrail"), None).concat();
    assert!(
        !styled.contains("31m") && !styled.contains("\u{1b}]"),
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
fn what_is_no_longer_protected_comes_first_and_within_four_lines() {
    let mut summary = summary();
    summary.lost = vec![entry("src", "dir", "unreadable", 0)];
    for width in [None, Some(100), Some(40)] {
        let lines = plain(&summary, width);
        assert!(lines.len() <= 4, "{lines:?}");
        assert!(
            lines[1].starts_with("  no longer protected: src/"),
            "{lines:?}"
        );
    }
    summary.changes = ChangeCounts::default();
    let lines = plain(&summary, None);
    assert_eq!(lines.len(), 2);
    let headline = "backtrail: 1 path no longer protected, no other changes in ";
    assert!(lines[0].starts_with(headline), "{lines:?}");
}
