//! House rules that a machine can check.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_source_file_outgrows_its_subject() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    assert!(files.len() > 20);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = text
            .lines()
            .take_while(|line| *line != "#[cfg(test)]")
            .count();
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        assert!(
            is_test || lines <= 900,
            "{} has {lines} lines: what is the second subject?",
            file.display()
        );
    }
}

#[test]
fn the_engines_root_has_at_most_80_names() {
    let lib = read("crates/backtrail/src/lib.rs");
    let hidden = lib.find("#[doc(hidden)]").unwrap();
    let lib = &lib[..hidden];
    let modules = lib
        .lines()
        .filter(|line| line.starts_with("pub mod "))
        .count();
    let exports = lib.split("\npub use ").skip(1);
    let exports = exports.map(|rest| rest.split_once(';').unwrap().0);
    let names: usize = exports
        .map(|list| {
            list.split(',')
                .filter(|name| !name.trim().trim_matches('}').is_empty())
                .count()
        })
        .sum();
    assert!(
        names > 50 && names + modules <= 80,
        "{names} names and {modules} modules"
    );
}

#[test]
fn the_engine_never_prints_never_exits_and_never_reads_the_environment() {
    let mut files = Vec::new();
    sources(&root().join("crates/backtrail/src"), &mut files);
    // Tests say loudly what they could not prove.
    files.retain(|file| !file.to_string_lossy().ends_with("_tests.rs"));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let text: String = text.lines().filter(is_code).collect();
        for banned in [
            "println!",
            "eprintln!",
            "process::exit",
            "env::var",
            "env::args",
        ] {
            assert!(!text.contains(banned), "{banned} in {}", file.display());
        }
    }
}

/// README's first screen has the two commands; `.ci/run` runs the second, and the first is run here.
#[test]
fn the_readme_commands_are_real() {
    let readme = read("README.md");
    let screen: String = readme.lines().take(40).collect::<Vec<_>>().join("\n");
    assert!(screen.contains("cargo run --release -- run -- ls"));
    assert!(screen.contains("\ncargo test "));
    assert!(read(".ci/run").contains(".ci/test") && read(".ci/test").contains("\ncargo test "));
    let cli = crate::kit::Cli::new();
    std::fs::write(cli.work().join("a file"), "x").unwrap();
    let ran = cli.run(&["run", "--", "ls"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a file\n"));
    assert!(ran.stderr.contains("no changes"), "{ran:#?}");
    assert_eq!(cli.run(&["log", "--json"]).json()[0]["reason"], "run-end");
}

/// docs/cli.md has the help of every verb, word for word. `BACKTRAIL_BLESS=1` rewrites it.
#[test]
fn the_manual_matches_help() {
    let mut manual = read("docs/cli.md");
    let bless = std::env::var_os("BACKTRAIL_BLESS").is_some();
    let cli = crate::kit::Cli::new();
    for verb in [
        "run",
        "checkpoint",
        "log",
        "diff",
        "cat",
        "blame",
        "status",
        "record",
        "list",
        "search",
        "show",
        "fork",
        "rewind",
        "restore",
        "resume",
        "undo",
        "redo",
        "compact",
        "context",
        "title",
        "tag",
        "pin",
        "stats",
        "web",
        "import",
        "watch",
        "setup",
        "hook",
        "statusline",
        "export",
        "remote",
        "remote add",
        "remote init",
        "remote list",
        "remote check",
        "remote log",
        "remote delete",
        "remote restore",
        "remote purge",
        "remote remove",
        "push",
        "pull",
        "verify",
        "repair",
        "rebuild",
        "relink",
        "doctor",
        "gc",
        "delete",
        "trash",
        "trash restore",
        "trash empty",
        "config",
        "completions",
        "man",
        "help",
        "version",
    ] {
        let mut words: Vec<&str> = verb.split(' ').collect();
        words.push("--help");
        let mut command = cli.command(&words);
        let help = crate::kit::finish(command.env("COLUMNS", "100"), b"").stdout;
        let opening = format!("```text\n$ backtrail {verb} --help\n");
        let block = format!("{opening}{help}```");
        if bless && let Some(at) = manual.find(&opening) {
            let end = manual[at + opening.len()..].find("```").unwrap();
            manual.replace_range(at..at + opening.len() + end + 3, &block);
        }
        assert!(
            manual.contains(&block),
            "docs/cli.md should contain:\n{block}"
        );
    }
    if bless {
        std::fs::write(root().join("docs/cli.md"), manual).unwrap();
    }
}
