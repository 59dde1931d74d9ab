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
fn the_whole_help_has_every_verb_in_a_group() {
    let cli = Cli::new();
    snapshot("help", &cli, &["--help"], &[]);
    let text = help(&cli, &["--help"], "100");
    for group in ["Recording:", "Looking:", "Going back:", "Housekeeping:"] {
        assert!(text.contains(group), "{group}");
    }
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
                    // How it is called takes one line.
                    let fits = line.width() <= width || line.starts_with("Usage:");
                    assert!(fits, "{verb} {flag} at {columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn ls_is_list() {
    let cli = Cli::new();
    cli.new_session("hello");
    let list = cli.run(&["list", "--json"]);
    assert_eq!(list.code, 0, "{list:#?}");
    assert_eq!(cli.run(&["ls", "--json"]).stdout, list.stdout);
}
