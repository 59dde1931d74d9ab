//! `verify` names what damage costs; `repair` brings back what still lies somewhere.

use std::fs;

use serde_json::json;

use crate::kit::Cli;

/// Two checkpoints: one file changed between them, another did not.
fn kept(cli: &Cli) {
    for (label, text) in [("one", "first"), ("two", "second")] {
        fs::write(
            cli.work().join("changes"),
            format!("{text} {}\n", "z".repeat(30)),
        )
        .unwrap();
        fs::write(
            cli.work().join("stays"),
            format!("stays {}\n", "y".repeat(30)),
        )
        .unwrap();
        let ran = cli.run(&["checkpoint", label]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
}

/// Changes a byte of what is stored as it is.
fn damage(cli: &Cli, text: &[u8]) {
    let pack = cli.packs().remove(0);
    let mut bytes = fs::read(&pack).unwrap();
    let at = bytes.windows(text.len()).position(|part| part == text);
    bytes[at.expect("short contents are not compressed")] ^= 1;
    fs::write(&pack, bytes).unwrap();
}

#[test]
fn a_damaged_file_is_named_with_its_checkpoints_and_captured_again() {
    let cli = Cli::new();
    kept(&cli);
    damage(&cli, b"stays yy");
    let ran = cli.run(&["verify"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let lost = ran.stdout.lines().find(|line| line.starts_with("lost"));
    let lost = lost.unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(lost.starts_with("lost     stays of "), "{lost}");
    assert!(lost.contains(", in 2 checkpoints, "), "{lost}");
    assert!(
        ran.stderr.contains("backtrail repair --dry-run"),
        "{}",
        ran.stderr
    );
    let plan = cli.run(&["repair", "--dry-run"]);
    assert_eq!(plan.code, 0, "{plan:#?}");
    assert!(
        plan.stdout.contains("1 object would be captured again\n"),
        "{}",
        plan.stdout
    );
    assert_eq!(cli.run(&["verify"]).code, 1);
    let ran = cli.run(&["repair"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("1 object was captured again\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(cli.run(&["verify"]).code, 0);
    assert_eq!(cli.run(&["cat", "one", "stays"]).code, 0);
    assert_eq!(
        cli.run(&["repair"]).stdout,
        "nothing to repair in the file states\n"
    );
}

#[test]
fn what_lies_nowhere_any_more_is_named_and_the_exit_code_says_so() {
    let cli = Cli::new();
    kept(&cli);
    damage(&cli, b"first zz");
    let ran = cli.run(&["repair", "--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let repair = ran.json();
    assert_eq!(repair["recaptured"], json!([]));
    assert_eq!(repair["lost"][0]["path"], json!("changes"));
    assert_eq!(repair["lost"].as_array().unwrap().len(), 1);
    let ran = cli.run(&["repair"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.ends_with("1 file state nowhere to be found\n"),
        "{}",
        ran.stdout
    );
    // The other checkpoint has lost nothing.
    assert_eq!(cli.run(&["cat", "two", "changes"]).code, 0);
    assert_eq!(cli.run(&["cat", "one", "changes"]).code, 2);
}

#[test]
fn a_quick_check_says_that_it_is_one() {
    let cli = Cli::new();
    kept(&cli);
    cli.new_session("hello");
    let ran = cli.run(&["verify", "--quick"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.ends_with("; only the structure was checked\n"),
        "{}",
        ran.stdout
    );
    let ran = cli.run(&["verify", "--quick", "--json"]);
    assert_eq!(
        (&ran.json()["quick"], &ran.json()["ok"]),
        (&json!(true), &json!(true))
    );
    for pack in cli.packs() {
        fs::remove_file(pack).unwrap();
    }
    assert_eq!(cli.run(&["verify", "--quick"]).code, 1);
}
