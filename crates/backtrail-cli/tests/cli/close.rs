//! A directory that cannot be closed (a network file system that fails late) is no reason
//! to panic.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::Cli;
use crate::traced;

fn directories(dir: &Path, all: &mut Vec<PathBuf>) {
    all.push(dir.to_owned());
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            directories(&entry.path(), all);
        }
    }
}

#[test]
fn a_directory_that_cannot_be_closed_stops_nothing() {
    if !traced::is_there("no call can be made to fail") {
        return;
    }
    let cli = Cli::new();
    std::fs::create_dir(cli.work().join("sub")).unwrap();
    std::fs::write(cli.work().join("sub/a.txt"), "one\n").unwrap();
    cli.new_session("words");
    cli.run(&["checkpoint", "now"]);
    cli.run(&["list"]);
    let mut watched = Vec::new();
    directories(&cli.store(), &mut watched);
    directories(&cli.work(), &mut watched);
    let trace = cli.store().with_file_name("trace");
    for (args, expected) in [
        (&["list"][..], 0),
        (&["status"], 0),
        (&["search", "words"], 0),
        (&["log"], 0),
        (&["diff", "now"], 0),
        (&["show", "latest"], 0),
        (&["verify"], 0),
        (&["doctor"], 0),
        (&["gc", "--dry-run"], 0),
        (&["trash"], 0),
        (&["import", "--dry-run", "sub"], 0),
        (&["checkpoint", "again"], 0),
        (&["rebuild"], 0),
    ] {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(&trace);
        for dir in &watched {
            strace.arg("-P").arg(dir);
        }
        strace
            .args(["-e", "trace=close", "-e", "inject=close:error=EIO"])
            .arg(env!("CARGO_BIN_EXE_backtrail"))
            .args(args)
            .current_dir(cli.work())
            .env("BACKTRAIL_HOME", cli.store())
            .env("HOME", "/home/of/nobody");
        let ran = strace.output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
        assert_eq!(ran.status.code(), Some(expected), "{args:?}: {stderr}");
        let failed = std::fs::read_to_string(&trace).unwrap();
        assert!(failed.contains("INJECTED"), "{args:?} closed no directory");
    }
}

/// `std` panics if a directory that it lists cannot be closed, so nothing lists by it.
#[test]
fn no_code_lists_directories_by_std() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = Vec::new();
    for name in [
        "backtrail",
        "backtrail-index",
        "backtrail-formats",
        "backtrail-cli",
    ] {
        sources_in(&crates.join(name).join("src"), &mut sources);
    }
    assert!(sources.len() > 300);
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let code = code.take_while(|line| !line.contains("#[cfg(test)]"));
        for line in code {
            let lists = ["read_dir(", "remove_dir_all(", "WalkDir", "WalkBuilder"];
            let found = lists.iter().find(|call| line.contains(**call));
            assert!(found.is_none(), "{}: {line}", path.display());
        }
    }
}

fn sources_in(dir: &Path, sources: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_test = name.ends_with("_tests.rs") || name == "testing.rs" || name == "tests.rs";
        if path.is_dir() && name != "tests" {
            sources_in(&path, sources);
        } else if name.ends_with(".rs") && !is_test {
            sources.push(path);
        }
    }
}
