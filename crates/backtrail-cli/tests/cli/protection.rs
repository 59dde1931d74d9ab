//! What is not protected is said, and can be included (F32).

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Cli, Ran};

fn write(cli: &Cli, path: &str, text: impl AsRef<[u8]>) {
    let path = cli.work().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(cli: &Cli, script: &str) -> Ran {
    let ran = cli.run(&["run", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran
}

/// A directory with something ignored.
fn project() -> Cli {
    let cli = Cli::new();
    write(&cli, ".gitignore", "data/\ntarget/\n.env\n");
    write(&cli, "main", "main\n");
    write(&cli, ".env", "KEY=1\n");
    write(&cli, "data/a", vec![b'a'; 3000]);
    cli
}

#[test]
fn the_first_run_says_what_is_not_protected_and_the_first_snapshot_what_it_keeps() {
    let cli = project();
    let first = run(&cli, "true");
    let not = "backtrail: not protected: data/ (2.9 KiB, ignored); to protect an ignored path: \
               --include-ignored PATH\n";
    assert!(first.stderr.contains(not), "{first:#?}");
    let kept = "backtrail: kept in the store although ignored (up to 1 MiB each): .env; ";
    assert!(first.stderr.contains(kept), "{first:#?}");
    let second = run(&cli, "true");
    assert!(!second.stderr.contains("2.9 KiB"), "{second:#?}");
    assert!(!second.stderr.contains(".env"), "{second:#?}");
    // Before the first run, even if there was a checkpoint.
    let cli = project();
    let made = cli.run(&["checkpoint"]);
    assert!(
        made.stderr
            .contains("not protected: data/ (2.9 KiB, ignored)"),
        "{made:#?}"
    );
    assert!(
        made.stderr
            .contains("although ignored (up to 1 MiB each): .env"),
        "{made:#?}"
    );
    let ran = run(&cli, "true");
    assert!(
        ran.stderr.contains("not protected: data/ (2.9 KiB"),
        "{ran:#?}"
    );
    assert!(!ran.stderr.contains(".env"), "{ran:#?}");
    let made = cli.run(&["checkpoint", "--json"]).json();
    assert_eq!(made["protection"]["first"], false);
}

/// F32, and a script can tell a partial undo.
#[test]
fn what_a_run_destroyed_without_protection_is_named_and_undo_fails_for_it() {
    let cli = project();
    let script = "echo edited > main; rm -r data";
    let report = cli.work().join("../report.json");
    let report = report.to_str().unwrap();
    let ran = cli.run(&["run", "--report", report, "--", "sh", "-c", script]);
    let warning = "warning: lost without protection: data/ (deleted, was 2.9 KiB); undo cannot \
                   restore it\n";
    assert!(ran.stderr.contains(warning), "{ran:#?}");
    assert!(
        ran.stderr.contains("(1 edited, 1 unprotected lost)"),
        "{ran:#?}"
    );
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let lost = json!({
        "path": "data", "kind": "dir", "reason": "ignored",
        "before": {"files": 1, "bytes": 3000}, "after": null,
    });
    assert_eq!(report["unprotected"]["lost"], json!([lost]));
    assert_eq!(report["unprotected"]["count"], 1);
    let before = &report["before"]["protection"]["unprotected"][0];
    assert_eq!(before["amount"]["bytes"], 3000);

    for flag in ["--dry-run", "--files"] {
        let undone = cli.run(&["undo", flag]);
        assert_eq!(undone.code, 1, "{undone:#?}");
        let named = "data (deleted while not protected (ignored))";
        assert!(undone.stdout.contains(named), "{undone:#?}");
    }
    assert_eq!(
        fs::read_to_string(cli.work().join("main")).unwrap(),
        "main\n"
    );
    // Nothing of what the redo is asked for is missing.
    let redone = cli.run(&["redo", "--json"]);
    assert_eq!(
        (redone.code, &redone.json()["complete"]),
        (0, &json!(true)),
        "{redone:#?}"
    );
    let undone = cli.run(&["undo", "--json"]);
    assert_eq!(
        (undone.code, &undone.json()["complete"]),
        (1, &json!(false)),
        "{undone:#?}"
    );
    assert_eq!(undone.json()["not_restored"][0]["path"], "data");
}

/// F32: "no changes" is never said of a run that destroyed something.
#[test]
fn a_run_that_only_destroyed_something_unprotected_does_not_report_no_changes() {
    let cli = project();
    run(&cli, "echo more > data/b; echo one > main");
    let ran = run(&cli, "rm data/b");
    assert!(
        ran.stderr
            .contains("1 unprotected path lost, no other changes"),
        "{ran:#?}"
    );
    assert!(
        ran.stderr.contains("data/ (now 2.9 KiB, was 2.9 KiB)"),
        "{ran:#?}"
    );
    // A build only changes: that is one word, and no warning.
    let ran = run(&cli, "echo more > data/b");
    assert!(ran.stderr.contains("no changes in"), "{ran:#?}");
    assert!(
        ran.stderr.contains("not protected: data/, changed"),
        "{ran:#?}"
    );
    assert!(!ran.stderr.contains("warning"), "{ran:#?}");
    let undone = cli.run(&["undo"]);
    assert_eq!(undone.code, 1, "{undone:#?}");
    assert!(
        undone.stdout.contains("made smaller while not protected"),
        "{undone:#?}"
    );
    // The next one undoes the run before.
    assert_eq!(cli.run(&["undo"]).code, 0);
}

#[test]
fn an_included_directory_is_remembered_listed_restored_and_taken_back() {
    let cli = project();
    let ran = cli.run(&[
        "run",
        "--include-ignored",
        "data",
        "--",
        "sh",
        "-c",
        "rm -r data",
    ]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!ran.stderr.contains("not protected"), "{ran:#?}");
    assert!(ran.stderr.contains("1 file changed"), "{ran:#?}");
    let status = cli.run(&["status"]);
    let line = "included   data (protected although ignored)\n";
    assert!(status.stdout.contains(line), "{status:#?}");
    let json = cli.run(&["status", "--json"]).json();
    assert_eq!(json["included"], json!([{"path": "data"}]));
    let undone = cli.run(&["undo"]);
    assert_eq!(undone.code, 0, "{undone:#?}");
    assert_eq!(fs::read(cli.work().join("data/a")).unwrap().len(), 3000);
    // Without the option it is still included.
    run(&cli, "echo cut > data/a");
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(fs::read(cli.work().join("data/a")).unwrap().len(), 3000);

    let made = cli.run(&["checkpoint", "--exclude-ignored", "data"]);
    assert_eq!(made.code, 0, "{made:#?}");
    assert!(
        made.stderr.contains("not protected: data/ (ignored)"),
        "{made:#?}"
    );
    let json = cli.run(&["status", "--json"]).json();
    assert_eq!(json["included"], json!([]));
    let again = cli.run(&["checkpoint", "--exclude-ignored", "data"]);
    assert_ne!(again.code, 0);
    assert!(again.stderr.contains("data is not included"), "{again:#?}");
}

#[test]
fn a_wrong_path_to_include_is_refused_before_the_command_starts() {
    let cli = project();
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    fs::write(cli.store().join("config.toml"), "include_cap = \"2 KiB\"\n").unwrap();
    let cases = [
        ("nothing", "nothing does not exist"),
        ("..", "is outside the workspace"),
        ("/", "is outside the workspace"),
        (".", "as a whole cannot be included"),
        (
            "data",
            "data cannot be included: it holds 2.9 KiB, more than include_cap (2.0 KiB)",
        ),
    ];
    for (path, words) in cases {
        let include = ["--include-ignored", path];
        let touch = ["--", "touch", "started"];
        for args in [
            [&["run"][..], &include, &touch].concat(),
            [&["run", "--unprotected"][..], &include, &touch].concat(),
            [&["checkpoint"][..], &include].concat(),
        ] {
            let ran = cli.run(&args);
            assert_ne!(ran.code, 0, "{ran:#?}");
            assert!(ran.stderr.contains(words), "{path}: {ran:#?}");
            assert!(!ran.stderr.contains("--unprotected"), "{path}: {ran:#?}");
        }
        assert!(!cli.work().join("started").exists(), "{path}");
    }
    // One that grows over the limit is named each time, and not protected.
    write(&cli, "data/a", "small");
    let made = cli.run(&["checkpoint", "--include-ignored", "data"]);
    assert_eq!(made.code, 0, "{made:#?}");
    write(&cli, "data/a", vec![b'a'; 3000]);
    let ran = run(&cli, "true");
    let words = "data/ is not protected now: it holds 2.9 KiB, more than include_cap";
    assert!(ran.stderr.contains(words), "{ran:#?}");
}
