//! docs/agents.md is true: what each format supports, and where its files are.

#![allow(
    clippy::disallowed_methods,
    reason = "it reads the project's own manual"
)]

use backtrail_formats::{Environment, formats};

#[test]
fn the_manual_has_the_table_of_what_each_format_supports() {
    let yes = |is: bool| if is { "yes" } else { "–" };
    let rows = formats().map(|format| {
        let support = format.agent();
        assert!(!support.versions.is_empty(), "{}", format.name());
        format!(
            "| {} (`{}`) | {} | {} | {} | {} | {} | {} | {} |\n",
            format.title(),
            format.name(),
            yes(support.appends),
            yes(support.branches),
            yes(support.sub_agents),
            yes(support.compactions),
            yes(support.usage),
            yes(support.media),
            support.versions
        )
    });
    let table: String = rows.collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
    let manual = std::fs::read_to_string(path).expect("the manual is there");
    assert!(
        manual.contains(&table),
        "docs/agents.md should have:\n{table}"
    );
}

#[test]
fn the_manual_has_the_directories_of_each_format() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
    let manual = std::fs::read_to_string(path).expect("the manual is there");
    let table = manual.split("| agent | directories |").nth(1);
    let directories = table.expect("its table");
    for format in formats() {
        let start = format!("| `{}` |", format.name());
        let row = directories.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("no row of {}", format.name()));
        for directory in format.directories(&Environment::new("/home/u")) {
            let directory = directory.to_string_lossy().replace("/home/u", "~");
            assert!(
                row.contains(&format!("`{directory}`")),
                "{directory}: {row}"
            );
        }
    }
}
