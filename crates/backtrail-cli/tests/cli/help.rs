//! Help: short, in groups, with examples, and it fits.

use unicode_width::UnicodeWidthStr;

use crate::kit::{Cli, finish, snapshot};

fn help(cli: &Cli, args: &[&str], columns: &str) -> String {
    let mut command = cli.command(args);
    let ran = finish(command.env("COLUMNS", columns), b"");
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
    ran.stdout
}

fn verbs(cli: &Cli) -> Vec<String> {
    let offered = cli.run(&["__complete", "--", ""]).stdout;
    let verb = |line: &str| line.split('\t').next().unwrap().to_owned();
    let verbs: Vec<String> = offered.lines().map(verb).collect();
    assert!(verbs.len() > 30, "{verbs:?}");
    verbs
}

#[test]
fn help_has_the_usual_verbs_and_help_all_has_every_verb() {
    let cli = Cli::new();
    snapshot("help", &cli, &["--help"], &[]);
    let usual = help(&cli, &["--help"], "100");
    for group in [
        "Going back:",
        "Looking:",
        "Recording:",
        "Sharing:",
        "Organising:",
        "Housekeeping:",
    ] {
        assert!(usual.contains(group), "{group}");
    }
    assert!(!usual.contains("\n  rebuild "), "{usual}");
    assert_eq!(help(&cli, &["help"], "100"), usual);
    let text = help(&cli, &["help", "--all"], "100");
    for verb in verbs(&cli) {
        assert_eq!(
            text.matches(&format!("\n  {verb} ")).count(),
            1,
            "{verb}: {text}"
        );
    }
}

#[test]
fn every_help_has_examples_and_fits() {
    let cli = Cli::new();
    for verb in verbs(&cli) {
        let text = help(&cli, &[&verb, "--help"], "100");
        let (_, examples) = text
            .split_once("\nExamples:\n")
            .unwrap_or_else(|| panic!("{text}"));
        let example = format!("  backtrail {verb}");
        assert!(examples.starts_with(&example), "{text}");
        assert!(
            help(&cli, &[&verb, "-h"], "100").contains(examples),
            "{verb} -h"
        );
        for (columns, width) in [("60", 60), ("100", 100)] {
            for flag in ["-h", "--help"] {
                for line in help(&cli, &[&verb, flag], columns).lines() {
                    // The usage takes one line.
                    let fits = line.width() <= width || line.starts_with("Usage:");
                    assert!(fits, "{verb} {flag} at {columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn help_of_a_verb_is_its_help() {
    let cli = Cli::new();
    for verb in [&["show"][..], &["trash", "empty"], &["ls"]] {
        let asked = help(&cli, &[&["help"], verb].concat(), "80");
        assert_eq!(asked, help(&cli, &[verb, &["--help"]].concat(), "80"));
    }
    let wrong = cli.run(&["help", "grep"]);
    assert_eq!(wrong.code, 2, "{wrong:#?}");
    assert!(
        wrong.stderr.contains("did you mean 'search'?"),
        "{wrong:#?}"
    );
}

#[test]
fn version_is_a_verb_and_an_option() {
    let cli = Cli::new();
    let version = cli.run(&["version"]);
    assert_eq!((version.code, &*version.stderr), (0, ""), "{version:#?}");
    assert_eq!(version.stdout, cli.run(&["--version"]).stdout);
    let json = cli.run(&["version", "--json"]).json();
    assert!(json["version"].is_string(), "{json}");
}

#[test]
fn words_from_other_programs_bring_up_the_verb_they_mean() {
    let cli = Cli::new();
    for (word, verb) in [
        ("grep", "search"),
        ("history", "list"),
        ("sessions", "list"),
        ("rm", "delete"),
        ("revert", "restore"),
        ("checkout", "restore"),
        ("cost", "stats"),
        ("usage", "stats"),
        ("snapshot", "checkpoint"),
        ("commit", "checkpoint"),
        ("save", "checkpoint"),
        ("open", "show"),
        ("view", "show"),
    ] {
        let ran = cli.run(&[word]);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{ran:#?}");
        let tip = format!("tip: use 'backtrail {verb}'\n");
        assert!(ran.stderr.contains(&tip), "{word}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("tip:").count(), 1, "{}", ran.stderr);
    }
    let ran = cli.run(&["--json", "grep"]);
    assert!(ran.stderr.contains("use 'backtrail search'"), "{ran:#?}");
    let ran = cli.run(&["trash", "list"]);
    assert!(ran.stderr.contains("use 'backtrail trash'"), "{ran:#?}");
}

#[test]
fn ls_is_list() {
    let cli = Cli::new();
    cli.new_session("hello");
    let list = cli.run(&["list", "--json"]);
    assert_eq!(list.code, 0, "{list:#?}");
    assert_eq!(cli.run(&["ls", "--json"]).stdout, list.stdout);
}
