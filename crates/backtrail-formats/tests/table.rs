//! The table of what is supported says what the formats say.

#![allow(
    clippy::disallowed_methods,
    reason = "it reads the project's own manual"
)]

use backtrail_formats::formats;

#[test]
fn the_manual_has_the_table_of_what_each_format_supports() {
    let yes = |is: bool| if is { "yes" } else { "–" };
    let rows = formats().map(|format| {
        let support = format.support();
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
