//! A copy taken with ordinary tools while sessions are written is a store.

use std::process::Command;

use crate::kit::{Cli, Recording, command, finish, texts};

#[test]
fn a_copy_taken_in_the_middle_of_writing_is_a_valid_store() {
    let cli = Cli::new();
    cli.new_session("first");
    std::fs::write(cli.store().join("config.toml"), "rotation = \"8 KiB\"").unwrap();
    let mut recordings: Vec<_> = (0..3)
        .map(|_| Recording::start(cli.command(&["record", "--durability", "os"])))
        .collect();
    let mut said = vec![Vec::new(); recordings.len()];
    for copy in 0..8 {
        for (recording, said) in recordings.iter_mut().zip(&mut said) {
            let text = format!("message {} {}", said.len(), "x".repeat(copy * 100));
            let answer = recording.say(&text);
            said.push((answer["session"].as_str().unwrap().to_owned(), text));
        }
        // More is on its way while the copy is taken.
        let before: Vec<usize> = said.iter().map(Vec::len).collect();
        for (recording, said) in recordings.iter_mut().zip(&mut said) {
            let session = said[0].0.clone();
            for n in 0..60 {
                let text = format!("during {copy} {n} {}", "y".repeat(50));
                recording.send(&text);
                said.push((session.clone(), text));
            }
        }
        let target = cli.work().join(format!("copy{copy}"));
        let copied = Command::new("cp")
            .arg("-r")
            .arg(cli.store())
            .arg(&target)
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        // `cp` says so when a name is gone before it gets there. Only the name under
        // which a trail is made ready ever goes.
        let complaints = String::from_utf8(copied.stderr).unwrap();
        for complaint in complaints.lines() {
            let gone = complaint.ends_with("/new-trail': No such file or directory");
            assert!(gone, "{complaint}");
        }
        assert!(copied.status.success() || !complaints.is_empty());
        for recording in &mut recordings {
            for _ in 0..60 {
                assert_eq!(recording.answer().unwrap()["ok"], true);
            }
        }
        for (said, before) in said.iter().zip(before) {
            check_copy(&target, &cli.work(), said, before);
        }
    }
    for recording in recordings {
        assert_eq!(recording.end(), 0);
    }
}

/// Checks one session of a copy: all that was acknowledged before the copy was
/// begun, then some of what was said meanwhile; and it can be written to.
fn check_copy(
    store: &std::path::Path,
    work: &std::path::Path,
    said: &[(String, String)],
    before: usize,
) {
    let session = &said[0].0;
    let run = |args: &[&str]| finish(&mut command(store, work, args), b"");
    let shown = run(&["show", session, "--json"]);
    assert_eq!(shown.json()["damaged"], 0, "{}", shown.stderr);
    let shown = texts(&shown.json());
    assert!(shown.len() >= before, "{} of {before}", shown.len());
    let expected = said.iter().take(shown.len()).map(|(_, text)| text);
    assert!(shown.iter().eq(expected));
    assert_eq!(
        run(&["record", "--session", session, "--text", "in the copy"]).code,
        0
    );
    assert_eq!(run(&["verify", session]).code, 0);
}
