use super::*;

/// Returns the name of each object's first field, and the report.
fn read(bytes: &[u8]) -> (Vec<String>, ReadReport) {
    let source = Source::from_bytes("/x", bytes);
    let (mut lines, mut report) = JsonLines::new(&source);
    let mut names = Vec::new();
    while let Some(line) = lines.next(&mut report).unwrap() {
        let object = line.object();
        let name = object.fields().next().map(|(name, _)| name.to_owned());
        names.push(name.unwrap_or_default());
    }
    (names, report)
}

/// F8: an odd line costs at most itself, and never the process.
#[test]
fn f8_odd_lines_cost_at_most_themselves() {
    let deep = format!(
        "{{\"deep\":{}{}}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let half = format!("{{\"half\":{}\n", "{\"a\":".repeat(100_000));
    let odd = concat!(
        "{\"emoji\":\"\\ud83d\\ude00\"}\n",
        "{\"lone\":\"\\ud83d\"}\n",
        "{\"huge\":1e99999}\n",
        "{\"long\":123456789012345678901234567890123456789}\n",
        "{\"null\":null}\n",
        "{\"twice\":1,\"twice\":2}\n",
        "[1]\n7\nnull\n{\"torn\":\n{}}\n",
        "{\"last\":1}\n",
    );
    let bytes = [
        deep.as_bytes(),
        half.as_bytes(),
        odd.as_bytes(),
        b"{\"byte\":\"\xff\"}\n",
    ]
    .concat();
    let (names, report) = read(&bytes);
    let expected = [
        "deep", "emoji", "lone", "huge", "long", "null", "twice", "last", "byte",
    ];
    assert_eq!(names, expected);
    assert_eq!(report.damage.count, 6);
    let lines: Vec<_> = report
        .damage
        .first
        .iter()
        .map(|damaged| damaged.line)
        .collect();
    assert_eq!(lines, [2, 9, 10, 11, 12, 13]);
    assert_eq!(report.read_to, bytes.len() as u64);
}

/// F19: lines after a block of NUL bytes are read; the block is counted.
#[test]
fn f19_lines_after_nul_bytes_are_read() {
    let nuls = [0u8; 4096];
    let bytes = [
        b"{\"a\":1}\n",
        &nuls[..],
        b"\n{\"b\":1}\n",
        &nuls,
        b"{\"c\":1}\n",
    ]
    .concat();
    let (names, report) = read(&bytes);
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(report.damage.count, 2);
    assert!(report.damage.first[1].reason.contains("could be read"));
}

#[test]
fn an_incomplete_last_line_is_read_when_it_is_complete() {
    let whole = b"{\"a\":1}\n\n{\"b\":1}\n";
    for cut in 0..=whole.len() {
        let (names, report) = read(&whole[..cut]);
        let ends = [(7, "a"), (16, "b")]
            .into_iter()
            .filter(|(end, _)| *end <= cut);
        let expected: Vec<_> = ends.map(|(_, name)| name.to_owned()).collect();
        assert_eq!(names, expected, "cut at {cut}");
        assert_eq!(report.damage.count, 0, "cut at {cut}");
        assert_eq!(
            report.unfinished,
            (1..7).contains(&cut) || (10..16).contains(&cut),
            "{cut}"
        );
    }
}

#[test]
fn random_record_types_do_not_fill_the_memory() {
    let mut report = ReadReport::default();
    (0..5_000).for_each(|n| report.add_unknown(&format!("type {n}")));
    assert!(report.unknown.len() <= 1_001);
    assert_eq!(report.unknown.values().sum::<u64>(), 5_000);
}
