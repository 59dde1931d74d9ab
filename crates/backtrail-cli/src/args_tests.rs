//! What help promises.

use super::*;
use crate::examples::EXAMPLES;
use crate::verbs::{GROUPS, MORE};

fn verbs() -> Vec<String> {
    let command = Args::command();
    let verbs = command.get_subcommands();
    verbs.map(|verb| verb.get_name().to_owned()).collect()
}

/// Splits a line as a shell does, up to what is not for us.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted, "{line}");
    words.retain(|word| !word.is_empty());
    let end = words
        .iter()
        .position(|word| matches!(word.as_str(), "|" | ">" | "<"));
    words.truncate(end.unwrap_or(words.len()));
    words
}

#[test]
fn every_example_is_understood() {
    for line in EXAMPLES.lines() {
        let (line, what) = line.split_once("   # ").unwrap_or((line, ""));
        let args = std::iter::once("backtrail".to_owned()).chain(split(line));
        let parsed = Args::try_parse_from(args);
        assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        assert!(
            !what.ends_with('.') && !what.starts_with(char::is_uppercase),
            "{what}"
        );
    }
}

#[test]
fn every_verb_has_examples_and_a_group() {
    let mut verbs = verbs();
    verbs.sort();
    let examples = EXAMPLES.lines().filter_map(|line| line.split(' ').next());
    let mut with_examples: Vec<&str> = examples.collect();
    with_examples.dedup();
    assert_eq!(with_examples, verbs);
    let groups = GROUPS.iter().chain([&MORE]).flat_map(|(_, verbs)| *verbs);
    let mut in_groups: Vec<&str> = groups.copied().collect();
    in_groups.sort_unstable();
    assert_eq!(in_groups, verbs);
}

/// A line that is broken cannot be pasted.
#[test]
fn examples_fit_in_60_columns() {
    for verb in verbs().iter().filter(|verb| *verb != "completions") {
        let text = examples::of(verb).unwrap();
        for line in text.lines() {
            assert!(line.chars().count() <= 60, "{line}");
        }
    }
}

#[test]
fn the_definitions_hold_together() {
    command().debug_assert();
}

#[test]
fn what_agents_run_often_is_parsed_as_by_the_whole_command() {
    for line in [
        "statusline",
        "statusline --after date",
        "--store /a statusline --json --color=never",
        "hook codex --event stop",
        "hook pi {}",
    ] {
        let words = || std::iter::once("backtrail").chain(line.split(' '));
        let often = often(words().map(OsString::from)).expect(line);
        let whole = Args::try_parse_from(words()).expect(line);
        assert_eq!(format!("{often:?}"), format!("{whole:?}"), "{line}");
    }
    for line in ["statusline --help", "statusline --no", "hook", "list", ""] {
        let words = std::iter::once("backtrail").chain(line.split_whitespace());
        assert!(often(words.map(OsString::from)).is_none(), "{line}");
    }
}
