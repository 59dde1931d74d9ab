//! docs/requirements.md and the tests agree: each row is named by a test, and each row
//! that a test names is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Returns the rows that a text names: an A, B or F and a number.
fn rows_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_row = |word: &&str| {
        let number = word.strip_prefix(['A', 'B', 'F']).unwrap_or("");
        (1..=2).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit())
    };
    words.filter(is_row).map(str::to_owned).collect()
}

/// Collects which rows the comments of tests name, and where.
fn named(dir: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            named(&path, found);
            continue;
        }
        let is_test = name.ends_with("_tests.rs")
            || name.ends_with(".rs") && path.components().any(|part| part.as_os_str() == "tests");
        if !is_test {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            for row in rows_in(comment) {
                found.insert(row, path.display().to_string());
            }
        }
    }
}

#[test]
fn every_requirement_is_named_by_a_test_and_every_named_one_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = std::fs::read_to_string(root.join("docs/requirements.md")).unwrap();
    let (kept, later) = document.split_once("## Not promised yet").unwrap();
    let rows = |text: &str| -> BTreeSet<String> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
        let numbers = rows.filter_map(|row| row.split(" |").next());
        numbers.flat_map(rows_in).collect()
    };
    let (kept, later) = (rows(kept), rows(later));
    let mut found = BTreeMap::new();
    named(&root.join("crates"), &mut found);
    assert!(kept.len() > 50 && !later.is_empty());
    for row in &kept {
        assert!(found.contains_key(row), "no test names {row}");
    }
    for (row, test) in &found {
        assert!(
            kept.contains(row),
            "{test} names {row}, which docs/requirements.md does not promise"
        );
    }
    assert!(kept.is_disjoint(&later));
}
