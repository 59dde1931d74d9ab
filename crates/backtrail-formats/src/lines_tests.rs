use super::*;

fn all(bytes: &[u8], from: u64, number: u64) -> Vec<(u64, Range<u64>, String, bool, bool)> {
    let source = Source::from_bytes("/x", bytes);
    let mut lines = Lines::new(&source, from, number);
    let mut found = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        let text = line.text().into_owned();
        found.push((
            line.number,
            line.range.clone(),
            text,
            line.nulls,
            line.ended,
        ));
    }
    found
}

#[test]
fn lines_have_numbers_and_ranges_and_blank_ones_are_skipped() {
    let found = all(b"\xef\xbb\xbfone\n\n  \t\r\n two \r\nthree", 0, 0);
    let expected = [
        (1, 0..7, "one".to_owned(), false, true),
        (4, 13..20, "two".to_owned(), false, true),
        (5, 20..25, "three".to_owned(), false, false),
    ];
    assert_eq!(found, expected);
}

/// F19: blocks of NUL bytes, left by a power cut, hide nothing after them.
#[test]
fn f19_nul_blocks_do_not_hide_the_lines_around_them() {
    let nuls = vec![0; 3 * BUFFER];
    let text = [b"before\n", &nuls[..], b"glued\n", &nuls, b"\nafter\n"].concat();
    let read: Vec<_> = all(&text, 0, 0)
        .into_iter()
        .map(|(_, _, text, nulls, _)| (text, nulls))
        .collect();
    let expected = [
        ("before", false),
        ("glued", true),
        ("", true),
        ("after", false),
    ];
    assert_eq!(read, expected.map(|(text, nulls)| (text.to_owned(), nulls)));
}

/// F8: an invalid byte costs only itself.
#[test]
fn f8_an_invalid_byte_is_shown_as_a_replacement_character() {
    let read = all(b"a\xffb\nc\n", 0, 0);
    assert_eq!(
        (read[0].2.as_str(), read[1].2.as_str()),
        ("a\u{fffd}b", "c")
    );
}

#[test]
fn lines_longer_than_the_buffer_are_complete_and_so_are_the_next_ones() {
    for len in [BUFFER - 1, BUFFER, BUFFER + 1, 5 * BUFFER + 7] {
        let text = format!("{}\nshort\n{}\n", "x".repeat(len), "y".repeat(len));
        let lens: Vec<_> = all(text.as_bytes(), 0, 0)
            .iter()
            .map(|line| line.2.len())
            .collect();
        assert_eq!(lens, [len, 5, len]);
    }
}

#[test]
fn resuming_within_a_line_without_an_end_counts_it_once() {
    let whole = b"one\ntwo\n\nthree\n";
    for from in [4, 7, 8, 9] {
        let before = all(&whole[..from], 0, 0).len() as u64;
        let blank = u64::from(from == 9);
        let rest = all(whole, from as u64, before + blank);
        assert_eq!(rest.last().map(|line| line.0), Some(4), "from {from}");
    }
    let source = Source::from_bytes("/x", "one  \ntwo");
    assert!(source.can_resume_at(0) && source.can_resume_at(3) && source.can_resume_at(6));
    assert!(!source.can_resume_at(2) && !source.can_resume_at(8) && source.can_resume_at(9));
}

#[test]
fn a_line_that_is_too_long_is_marked_and_the_next_is_read() {
    for long in [BUFFER + 1, 2 * BUFFER - 10, 3 * BUFFER, 9 * BUFFER] {
        let mut bytes = b"first\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', long));
        bytes.extend_from_slice(b"\nlast\n");
        let source = Source::from_bytes("a", bytes);
        let mut lines = Lines::new(&source, 0, 0).up_to(BUFFER);
        let mut read = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            read.push((line.number, line.too_long, line.bytes.len(), line.ended));
        }
        let expected = [(1, false, 5, true), (2, true, 0, true), (3, false, 4, true)];
        assert_eq!(read, expected, "{long}");
    }
}
