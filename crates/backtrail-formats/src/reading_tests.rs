use super::*;

fn told(bytes: &[u8]) -> (Vec<String>, Told) {
    let source = Source::from_bytes("/x", bytes);
    let mut reading = Reading::new(&source, 0, 0);
    let mut names = Vec::new();
    while let Some(found) = reading.next().unwrap() {
        let name = found
            .object
            .fields()
            .next()
            .map(|(name, _)| name.to_owned());
        names.push(name.unwrap_or_default());
    }
    (names, reading.finish("s".to_owned(), None))
}

/// F8: one odd line costs itself at most, and never the process.
#[test]
fn f8_odd_lines_cost_themselves_at_most() {
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
    let (names, told) = told(&bytes);
    let expected = [
        "deep", "emoji", "lone", "huge", "long", "null", "twice", "last", "byte",
    ];
    assert_eq!(names, expected);
    assert_eq!(told.damage.count, 6);
    let lines: Vec<_> = told
        .damage
        .first
        .iter()
        .map(|damaged| damaged.line)
        .collect();
    assert_eq!(lines, [2, 9, 10, 11, 12, 13]);
    assert_eq!(told.read_to, bytes.len() as u64);
}

/// F19: what stands behind a block of NUL bytes is read; the block is counted.
#[test]
fn f19_what_stands_behind_nul_bytes_is_read() {
    let nuls = [0u8; 4096];
    let bytes = [
        b"{\"a\":1}\n",
        &nuls[..],
        b"\n{\"b\":1}\n",
        &nuls,
        b"{\"c\":1}\n",
    ]
    .concat();
    let (names, told) = told(&bytes);
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(told.damage.count, 2);
    assert!(told.damage.first[1].reason.contains("could be read"));
}

#[test]
fn half_a_line_at_the_end_is_read_when_it_is_whole() {
    let whole = b"{\"a\":1}\n\n{\"b\":1}\n";
    for cut in 0..=whole.len() {
        let (names, told) = told(&whole[..cut]);
        let ends = [(7, "a"), (16, "b")]
            .into_iter()
            .filter(|(end, _)| *end <= cut);
        let expected: Vec<_> = ends.map(|(_, name)| name.to_owned()).collect();
        assert_eq!(names, expected, "cut at {cut}");
        assert_eq!(told.damage.count, 0, "cut at {cut}");
        assert_eq!(
            told.unfinished,
            (1..7).contains(&cut) || (10..16).contains(&cut),
            "{cut}"
        );
    }
}

#[test]
fn kinds_without_end_do_not_fill_the_memory() {
    let source = Source::from_bytes("/x", "");
    let mut reading = Reading::new(&source, 0, 0);
    (0..5_000).for_each(|n| reading.unknown(&format!("kind {n}")));
    let told = reading.finish(String::new(), None);
    assert!(told.unknown.len() <= 1_001);
    assert_eq!(told.unknown.values().sum::<u64>(), 5_000);
}
