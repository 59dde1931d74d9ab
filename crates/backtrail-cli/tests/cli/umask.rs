//! A strict umask: everything in a store belongs to its owner, who can use it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::kit::Cli;

fn run_under(umask: &str, cli: &Cli, args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_backtrail");
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\""), program])
        .args(args)
        .current_dir(cli.work())
        .env("BACKTRAIL_HOME", cli.store())
        .env("HOME", "/home/of/nobody");
    command.output().unwrap()
}

fn modes(dir: &Path, wrong: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        let mode = found.permissions().mode() & 0o777;
        if mode != expected {
            wrong.push(format!("{mode:o} {}", path.display()));
        }
        if found.is_dir() {
            modes(&path, wrong);
        }
    }
}

#[test]
fn a_store_made_under_any_umask_is_its_owners_and_usable() {
    let barred = tempfile::NamedTempFile::new().unwrap();
    std::fs::set_permissions(barred.path(), std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::File::open(barred.path()).is_ok() {
        eprintln!("SKIPPED: needs a user other than root; root can use every file");
    }
    for umask in ["0777", "0277", "0022", "0"] {
        let cli = Cli::new();
        let agents = cli.work().join("claude.jsonl");
        let line = r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-11-01T08:00:00Z","cwd":"/","message":{"role":"user","content":"hi"}}"#;
        std::fs::write(&agents, format!("{line}\n")).unwrap();
        std::fs::create_dir(cli.work().join("sub")).unwrap();
        std::fs::write(cli.work().join("sub/a.txt"), "one\n").unwrap();
        for args in [
            &["record", "--text", "words"][..],
            &[
                "run",
                "--",
                "sh",
                "-c",
                "umask 022; rm -r sub; echo two > b.txt",
            ],
            &["undo"],
            &["redo"],
            &["undo"],
            &["import", "claude.jsonl"],
            &["search", "words"],
            &["list"],
            &["rebuild"],
            &["fork", "last", "--into", "../forked"],
            &["delete", "latest"],
            &["gc"],
            &["verify"],
        ] {
            let ran = run_under(umask, &cli, args);
            assert!(ran.status.success(), "umask {umask}, {args:?}: {ran:#?}");
        }
        let mut wrong = Vec::new();
        modes(&cli.store(), &mut wrong);
        assert!(wrong.is_empty(), "umask {umask}: {wrong:#?}");
        let back = std::fs::read(cli.work().join("sub/a.txt")).unwrap();
        assert_eq!(back, b"one\n", "umask {umask}");
    }
}
