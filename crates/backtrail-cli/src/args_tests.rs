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
    for (verb, examples) in EXAMPLES {
        for (line, what) in *examples {
            let words = split(line);
            assert_eq!(words[0], *verb, "{line}");
            let args = std::iter::once("backtrail".to_owned()).chain(words);
            let parsed = Args::try_parse_from(args);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            assert!(
                !what.ends_with('.') && !what.starts_with(char::is_uppercase),
                "{what}"
            );
        }
    }
}

#[test]
fn every_verb_has_examples_and_a_group() {
    let mut verbs = verbs();
    verbs.sort();
    let with_examples: Vec<&str> = EXAMPLES.iter().map(|(verb, _)| *verb).collect();
    assert_eq!(with_examples, verbs);
    for (verb, examples) in EXAMPLES {
        assert!(!examples.is_empty(), "{verb}");
    }
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
