//! A pipe that closes early is not an error.

use std::io::Read;
use std::process::Stdio;

use crate::kit::{Cli, line};

/// Runs a command and closes its output after `bytes`; returns its exit code and stderr.
fn read_a_little(cli: &Cli, args: &[&str], bytes: usize) -> (Option<i32>, String) {
    let mut child = cli
        .command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut read = vec![0; bytes];
    out.read_exact(&mut read).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_reader_may_stop_early() {
    let cli = Cli::new();
    let text = "x".repeat(5000);
    let input = line(&text).repeat(200);
    let ran = cli.run_with(&["record", "--durability", "os"], input.as_bytes());
    assert_eq!(ran.code, 0);
    // All of these print more than a pipe holds.
    let cases: [&[&str]; 9] = [
        &["show", "latest"],
        &["show", "latest", "--json"],
        &["show", "latest", "--follow"],
        &["context", "latest"],
        &["context", "latest", "--format", "anthropic"],
        &["export", "latest", "--to", "v1"],
        &["export", "latest", "--to", "json"],
        &["export", "latest", "--to", "markdown"],
        &["export", "latest", "--to", "html"],
    ];
    for args in cases {
        assert_eq!(
            read_a_little(&cli, args, 10),
            (Some(0), String::new()),
            "{args:?}"
        );
    }
}

/// A change is made whether its output is read or not.
#[test]
fn a_change_is_made_even_if_nobody_reads_the_output() {
    let cli = Cli::new();
    let id = cli.talk();
    let summary = cli.work().join("summary");
    std::fs::write(summary, "They looked.").unwrap();
    let point = format!("{id}:2");
    let cases: [&[&str]; 8] = [
        &["title", &id, "unread"],
        &["tag", &id, "unread"],
        &["pin", &id],
        &["compact", &id, "--summary-file", "summary"],
        &["rewind", &point, "--chat"],
        &["undo", &id],
        &["redo", &id],
        &["fork", &id, "--name", "unread"],
    ];
    for args in cases {
        let (code, said) = read_a_little(&cli, args, 0);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        assert!(!said.contains("error"), "{args:?}: {said}");
    }
    let shown = cli.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["title"], "unread");
    assert_eq!(shown["tags"][0], "unread");
    assert_eq!(shown["pinned"], true);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    let forks = cli.run(&["list"]).stdout;
    assert!(forks.contains("[fork unread] unread"), "{forks}");
}
