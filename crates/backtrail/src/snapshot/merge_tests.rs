//! Three-way merges of texts.

use super::*;

fn merged(base: &str, ours: &str, theirs: &str) -> Result<String, Vec<Clash>> {
    let merged = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
    merged.map(|bytes| String::from_utf8(bytes).unwrap())
}

fn clean(base: &str, ours: &str, theirs: &str) -> String {
    merged(base, ours, theirs).unwrap()
}

#[test]
fn changes_apart_from_each_other_are_both_taken() {
    let base = "1\n2\n3\n4\n5\n6\n";
    assert_eq!(
        clean(base, "1\nours\n3\n4\n5\n6\n", "1\n2\n3\n4\ntheirs\n6\n"),
        "1\nours\n3\n4\ntheirs\n6\n"
    );
    assert_eq!(
        clean(base, "2\n3\n4\n5\n6\nnew\n", "1\n2\n3\nnew\n4\n6\n"),
        "2\n3\nnew\n4\n6\nnew\n"
    );
}

#[test]
fn what_only_one_side_changed_is_taken_from_it() {
    let base = "1\n2\n3\n";
    for side in ["", "1\n", "1\n2\n3\n4\n", "0\n2\n0\n", "3\n2\n1\n"] {
        assert_eq!(clean(base, side, base), side);
        assert_eq!(clean(base, base, side), side);
        assert_eq!(clean(base, side, side), side);
    }
}

#[test]
fn the_same_change_on_both_sides_is_made_once() {
    let base = "1\n2\n3\n4\n5\n";
    assert_eq!(
        clean(base, "1\nX\n2\n3\n4\nours\n", "1\nX\n2\n3\n4\n5\n"),
        "1\nX\n2\n3\n4\nours\n"
    );
    assert_eq!(clean(base, "1\n4\n5\n", "1\n4\nT\n"), "1\n4\nT\n");
}

#[test]
fn changes_that_overlap_or_touch_clash_with_what_each_made_of_it() {
    let base = "1\n2\n3\n4\n";
    let clash = |line, ours: &str, base: &str, theirs: &str| Clash {
        line,
        ours: ours.into(),
        base: base.into(),
        theirs: theirs.into(),
    };
    assert_eq!(
        merged(base, "1\nO\n3\n4\n", "1\nT\n3\n4\n"),
        Err(vec![clash(2, "O\n", "2\n", "T\n")])
    );
    // Adjacent lines.
    assert_eq!(
        merged(base, "1\nO\n3\n4\n", "1\n2\nT\n4\n"),
        Err(vec![clash(2, "O\n3\n", "2\n3\n", "2\nT\n")])
    );
    // Added after lines that the other side removes.
    assert_eq!(
        merged("1\n2\n", "1\n2\n3\n", "1\n"),
        Err(vec![clash(2, "2\n3\n", "2\n", "")])
    );
    // Both add something in the same place.
    assert!(merged(base, "1\n2\nO\n3\n4\n", "1\n2\nT\n3\n4\n").is_err());
    // One line between them is enough.
    assert_eq!(clean(base, "1\nO\n3\n4\n", "1\n2\n3\nT\n"), "1\nO\n3\nT\n");
}

#[test]
fn every_clash_is_reported_with_its_line() {
    let base = "1\n2\n3\n4\n5\n6\n7\n8\n";
    let clashes = merged(
        base,
        "0\n1\n2\nO\n4\n5\n6\nO\n8\n",
        "1\n2\nT\n4\n5\n6\nT\n8\n",
    );
    let lines: Vec<u64> = clashes.unwrap_err().iter().map(|one| one.line).collect();
    assert_eq!(lines, [4, 8]);
}

#[test]
fn line_ends_and_a_missing_last_one_are_bytes_like_others() {
    // One side adds the last newline, the other changes another line.
    assert_eq!(clean("1\n2\n3", "1\n2\n3\n", "X\n2\n3"), "X\n2\n3\n");
    assert_eq!(clean("1\n2\n3", "1\n2\n3\n4", "X\n2\n3"), "X\n2\n3\n4");
    assert!(merged("1\n2\n3", "1\n2\n3\n", "1\n2\nX").is_err());
    // A line with a different line end is a different line.
    assert!(merged("1\r\n2\r\n", "1\n2\n", "1\r\nX\r\n").is_err());
    assert_eq!(
        clean("1\r\n2\r\n3\r\n", "0\r\n2\r\n3\r\n", "1\r\n2\r\n4\r\n"),
        "0\r\n2\r\n4\r\n"
    );
    let odd = merge(b"\xff\n2\n3\n", b"\xff\n2\n\xfe\n", b"\xfd\n2\n3\n");
    assert_eq!(odd.unwrap(), b"\xfd\n2\n\xfe\n");
}
