//! A damaged file stops only itself: it is named, the way out is printed, and everything else
//! can be restored.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{run, write};
use crate::kit::{Cli, Ran};

const LOST: &str = "a text that is short, and stored as it is\n";

/// A workspace whose run changed two files, one of which is damaged as it was before.
fn damaged() -> Cli {
    let cli = Cli::new();
    write(&cli, "src/lost", LOST);
    write(&cli, "src/fine", "fine\n");
    assert_eq!(cli.run(&["checkpoint", "base"]).code, 0);
    run(&cli, "echo 2 > src/lost; echo 2 > src/fine");
    damage(&cli, LOST.as_bytes());
    cli
}

fn damage(cli: &Cli, content: &[u8]) {
    let mut damaged = 0;
    for pack in cli.packs() {
        let mut bytes = fs::read(&pack).unwrap();
        let found = bytes
            .windows(content.len())
            .position(|piece| piece == content);
        if let Some(at) = found {
            bytes[at] ^= 1;
            fs::write(&pack, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
}

fn read(cli: &Cli, name: &str) -> String {
    fs::read_to_string(cli.work().join(name)).unwrap()
}

/// Checks that a command refuses, names the file and its checkpoint, and says what to do.
fn is_refused(ran: &Ran) {
    assert_eq!(ran.code, 2, "{ran:#?}");
    let first = ran.stderr.lines().next().unwrap();
    assert!(
        first.starts_with("error: src/lost of checkpoint "),
        "{ran:#?}"
    );
    assert!(first.contains(" is damaged: object "), "{ran:#?}");
    for hint in ["hint: see all damage: backtrail verify", "backtrail repair"] {
        assert!(ran.stderr.contains(hint), "{ran:#?}");
    }
}

#[test]
fn a_damaged_file_is_named_and_the_rest_can_be_restored() {
    let commands: [&[&str]; 5] = [
        &["undo"],
        &["rewind", "base"],
        &["restore", "base", "--", "src"],
        &["undo", "--paths", "src/lost", "src/fine"],
        &["rewind", "base", "--files"],
    ];
    for command in commands {
        let cli = damaged();
        let (verb, rest) = command.split_at(1);
        is_refused(&cli.run(&[verb, &["--dry-run"], rest].concat()));
        let ran = cli.run(command);
        is_refused(&ran);
        assert_eq!((read(&cli, "src/lost"), read(&cli, "src/fine")), two());
        // The printed command goes on without it.
        let hint = ran
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("hint: restore everything else: backtrail "));
        let hint = hint.unwrap_or_else(|| panic!("{ran:#?}"));
        let args: Vec<&str> = hint.split(' ').collect();
        let ran = cli.run(&args);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert!(
            ran.stdout.contains("not restored  src/lost (damaged)"),
            "{ran:#?}"
        );
        assert_eq!(read(&cli, "src/lost"), "2\n");
        assert_eq!(read(&cli, "src/fine"), "fine\n");
        let reversed = cli.reverse(&ran);
        assert_eq!(reversed.code, 0, "{reversed:#?}");
        assert_eq!((read(&cli, "src/lost"), read(&cli, "src/fine")), two());
    }
}

fn two() -> (String, String) {
    ("2\n".to_owned(), "2\n".to_owned())
}

#[test]
fn programs_are_told_which_files_are_damaged() {
    let cli = damaged();
    let ran = cli.run(&["undo", "--json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "corrupt");
    assert_eq!(error["error"]["damaged"], json!(["src/lost"]));
    let ran = cli.run(&["undo", "--skip-damaged", "--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let outcome = ran.json();
    let lost = json!([{"path": "src/lost", "reason": "damaged"}]);
    assert_eq!(
        (&outcome["stage"], &outcome["not_restored"]),
        (&json!("done"), &lost)
    );
}

#[test]
fn a_fork_goes_on_without_a_damaged_file() {
    let cli = damaged();
    let dir = cli.work().parent().unwrap().join("fork");
    let into = dir.to_str().unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let ran = cli.run(&[&["fork", "base", "--into", into], more].concat());
        is_refused(&ran);
        assert!(ran.stderr.contains(" --skip-damaged"), "{ran:#?}");
        assert!(!dir.exists());
    }
    let args = ["fork", "base", "--into", into, "--skip-damaged"];
    let ran = cli.run(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(!dir.exists());
    let ran = cli.run(&args);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stderr.contains("not copied: src/lost (damaged)"),
        "{ran:#?}"
    );
    assert_eq!(fs::read(dir.join("src/fine")).unwrap(), b"fine\n");
    assert!(!Path::new(&dir).join("src/lost").exists());
    let status = cli.run(&["status", "--workspace", into]);
    assert!(
        status.stdout.contains("nothing since the last checkpoint"),
        "{status:#?}"
    );
}

#[test]
fn cat_and_diff_name_the_damaged_file() {
    let cli = damaged();
    is_refused(&cli.run(&["cat", "base", "src/lost"]));
    is_refused(&cli.run(&["diff", "base"]));
    let cat = cli.run(&["cat", "base", "src/fine"]);
    assert_eq!(cat.stdout, "fine\n");
    // What the files have is read from them.
    let cli = Cli::new();
    write(&cli, "now", LOST);
    assert_eq!(cli.run(&["checkpoint", "base"]).code, 0);
    damage(&cli, LOST.as_bytes());
    fs::remove_file(cli.work().join("now")).unwrap();
    let ran = cli.run(&["diff"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.starts_with("error: now of checkpoint "),
        "{ran:#?}"
    );
    let ran = cli.run(&["status"]);
    assert!(ran.stdout.contains("now"), "{ran:#?}");
}
