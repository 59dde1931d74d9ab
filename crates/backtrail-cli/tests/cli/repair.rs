//! `verify` names what is lost; `repair` saves it again if a workspace still has it.

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

/// Changes a byte of uncompressed content.
fn damage(cli: &Cli, text: &[u8]) {
    let pack = cli.packs().remove(0);
    let mut bytes = fs::read(&pack).unwrap();
    let at = bytes.windows(text.len()).position(|part| part == text);
    bytes[at.expect("short contents are not compressed")] ^= 1;
    fs::write(&pack, bytes).unwrap();
}

#[test]
fn a_damaged_file_is_named_with_its_checkpoints_and_saved_again() {
    let cli = Cli::new();
    kept(&cli);
    damage(&cli, b"stays yy");
    let ran = cli.run(&["verify"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let lost = ran.stdout.lines().find(|line| line.starts_with("lost"));
    let lost = lost.unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(lost.starts_with("lost     stays in "), "{lost}");
    assert!(lost.contains(", in 2 checkpoints, "), "{lost}");
    assert!(
        ran.stderr.contains("backtrail repair --dry-run"),
        "{}",
        ran.stderr
    );
    let plan = cli.run(&["repair", "--dry-run"]);
    assert_eq!(plan.code, 0, "{plan:#?}");
    assert!(
        plan.stdout
            .contains("1 object or more would be saved again\n"),
        "{}",
        plan.stdout
    );
    assert_eq!(cli.run(&["verify"]).code, 1);
    let ran = cli.run(&["repair"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("1 object was saved again\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(cli.run(&["verify"]).code, 0);
    assert_eq!(cli.run(&["cat", "one", "stays"]).code, 0);
    assert_eq!(
        cli.run(&["repair"]).stdout,
        "nothing to repair in the saved files\n"
    );
}

#[test]
fn a_lost_file_is_named_and_the_exit_code_is_1() {
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
        ran.stdout.ends_with("1 saved file lost\n"),
        "{}",
        ran.stdout
    );
    // The other checkpoint has lost nothing.
    assert_eq!(cli.run(&["cat", "two", "changes"]).code, 0);
    assert_eq!(cli.run(&["cat", "one", "changes"]).code, 2);
}

#[test]
fn a_quick_check_is_marked_as_such() {
    let cli = Cli::new();
    kept(&cli);
    cli.new_session("hello");
    let ran = cli.run(&["verify", "--quick"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.ends_with("; structure only\n"), "{}", ran.stdout);
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

/// A lost directory of a labelled checkpoint stops gc until it is given up; the checkpoint then
/// shows why it has no files.
#[test]
fn lost_directories_can_be_given_up_so_that_gc_runs() {
    let cli = Cli::new();
    kept(&cli);
    for pack in cli.packs() {
        fs::remove_file(pack).unwrap();
    }
    fs::write(cli.work().join("stays"), "another\n").unwrap();
    assert_eq!(cli.run(&["checkpoint", "three"]).code, 0);
    assert_eq!(cli.run(&["gc"]).code, 2);
    let ran = cli.run(&["repair"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("repair --give-up"), "{}", ran.stderr);
    let ran = cli.run(&["repair", "--give-up"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("dropped the files of "),
        "{}",
        ran.stdout
    );
    assert_eq!(cli.run(&["gc"]).code, 0);
    assert_eq!(cli.run(&["verify"]).code, 0);
    let ran = cli.run(&["cat", "one", "stays"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("damaged beyond repair"),
        "{}",
        ran.stderr
    );
    assert_eq!(cli.run(&["cat", "three", "stays"]).stdout, "another\n");
}

/// F21: nothing is deleted because a trail is gone; nothing is lost without a report.
#[test]
fn f21_a_workspace_without_its_trail_stops_gc_and_is_named() {
    let cli = Cli::new();
    kept(&cli);
    let workspaces = fs::read_dir(cli.store().join("workspaces")).unwrap();
    let dirs = workspaces.map(|entry| entry.unwrap().path());
    let dir = dirs.into_iter().find(|path| path.is_dir()).unwrap();
    let trail = dir.join("0000.jsonl");
    let text = fs::read_to_string(&trail).unwrap();
    // A line that is lost is named, and so is the record in it.
    fs::write(&trail, text.replacen("\"checkpoint\"", "\"checkpaint\"", 1)).unwrap();
    assert_eq!(cli.run(&["gc"]).code, 2);
    let ran = cli.run(&["repair"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("lost     record "), "{}", ran.stdout);
    assert_eq!(cli.run(&["verify"]).code, 0);
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            fs::remove_file(path).unwrap();
        }
    }
    for args in [&["gc"][..], &["gc", "--older-than", "0s"]] {
        let ran = cli.run(args);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("is gone"), "{}", ran.stderr);
    }
    assert_eq!(cli.run(&["verify"]).code, 1);
    assert_eq!(cli.run(&["repair"]).code, 1);
    assert!(!cli.packs().is_empty());
}

/// The rest must be readable before anything is given up.
#[test]
fn f21_nothing_is_dropped_where_gc_would_stop() {
    let cli = Cli::new();
    fs::create_dir(cli.work().join("dir")).unwrap();
    for n in 0..4 {
        fs::write(cli.work().join("dir/file"), n.to_string().repeat(50)).unwrap();
        assert_eq!(cli.run(&["checkpoint"]).code, 0);
    }
    // The listing of the newest state: the last objects that were stored.
    let pack = cli.packs().remove(0);
    let whole = fs::read(&pack).unwrap();
    let mut stopped = 0;
    for back in (40..400).step_by(8) {
        let mut bytes = whole.clone();
        let at = bytes.len() - back;
        bytes[at] ^= 0x55;
        fs::write(&pack, &bytes).unwrap();
        let ran = cli.run(&["gc", "--older-than", "0s", "--dry-run"]);
        if ran.code == 2 {
            stopped += 1;
            let ran = cli.run(&["gc", "--older-than", "0s"]);
            assert_eq!(ran.code, 2, "{ran:#?}");
            let log = cli.run(&["log", "--all"]);
            assert!(!log.stdout.contains("files dropped"), "{}", log.stdout);
        }
    }
    fs::write(&pack, &whole).unwrap();
    assert!(stopped > 0);
    assert_eq!(cli.run(&["gc", "--older-than", "0s"]).code, 0);
}
