//! What somebody else changed stops everything before anything is touched.

use std::fs;

use super::{Files, files, run, seen, two_runs, write};
use crate::kit::{Cli, short};

/// A run, then a change of the user that no checkpoint has.
fn contested() -> (Cli, Files) {
    let (cli, _) = two_runs();
    write(&cli, "a", "1\n2\n3\nmine\n");
    let now = files(&cli.work());
    (cli, now)
}

/// F15, F31: nothing that somebody else did goes without a word.
#[test]
fn f15_the_users_changes_stop_a_rewind_and_the_options_are_listed() {
    let (cli, now) = contested();
    let ran = cli.run(&["rewind", "last~2"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 1
err: error: 1 file has your changes since that point; nothing was touched
err:
err:   a  you, since the last checkpoint  also changed by the run `sh -c 'echo 3 >> a'`
err:
err:   --keep       leave a as it is, rewind the rest
err:   --overwrite  discard your version too (undo restores it)
err:
err:   --merge is not possible:
err:   a: you changed the same lines (line 2)
"
    );
    assert_eq!(files(&cli.work()), now);
}

#[test]
fn a_conflict_is_printed_as_json() {
    let (cli, now) = contested();
    let ran = cli.run(&["rewind", "last~2", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let told = ran.json();
    assert_eq!(told["stage"], "stopped");
    let conflict = &told["conflicts"][0];
    assert_eq!(conflict["path"], "a");
    assert_eq!(conflict["changed_by"], "person");
    assert_eq!(conflict["unsaved"], true);
    assert!(conflict["at"].as_str().unwrap().ends_with('Z'), "{told}");
    assert_eq!(files(&cli.work()), now);
}

#[test]
fn a_dry_run_with_conflicts_exits_with_1() {
    let (cli, now) = contested();
    let ran = cli.run(&["rewind", "last~2", "--dry-run"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stdout.starts_with("Would go back to before the run `"),
        "{ran:#?}"
    );
    assert!(
        ran.stderr.starts_with("error: 1 file has your changes"),
        "{ran:#?}"
    );
    assert!(!ran.stderr.contains("to do it:"), "{ran:#?}");
    let ran = cli.run(&["rewind", "last~2", "--dry-run", "--keep"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout
            .contains("  would keep     a (has your changes)\n"),
        "{ran:#?}"
    );
    assert_eq!(ran.stderr, "to do it: backtrail rewind last~2 --keep\n");
    assert_eq!(files(&cli.work()), now);
}

#[test]
fn files_with_other_changes_are_kept_and_the_rest_is_rewound() {
    let (cli, now) = contested();
    let ran = cli.run(&["rewind", "last~2", "--keep"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("  kept       a (has your changes)\n"),
        "{ran:#?}"
    );
    let work = cli.work();
    assert_eq!(fs::read(work.join("a")).unwrap(), b"1\n2\n3\nmine\n");
    assert!(work.join("src/x").exists() && !work.join("n").exists());
    cli.reverse(&ran);
    assert_eq!(files(&work), now);
}

#[test]
fn files_with_other_changes_are_overwritten_and_undo_restores_them() {
    let (cli, now) = contested();
    let ran = cli.run(&["rewind", "last~2", "--overwrite"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"1\n");
    cli.reverse(&ran);
    assert_eq!(files(&cli.work()), now);
}

/// F31: another session's work in the same directory, for a record of a session.
#[test]
fn f31_changes_by_another_session_name_it() {
    let cli = Cli::new();
    write(&cli, "a", "1\n");
    run(&cli, "echo 2 >> a");
    run(&cli, "echo 3 >> a");
    let log = cli.run(&["log", "--all", "--json"]).json();
    let first = log.as_array().unwrap().last().unwrap()["session"].clone();
    let first = format!("{}:0", first.as_str().unwrap());
    let other = log[0]["session"].as_str().unwrap().to_owned();
    let ran = cli.run(&["rewind", &first]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let row = format!("  a  session {}, ", short(&other));
    assert!(ran.stderr.contains(&row), "{ran:#?}");
    let told = cli.run(&["rewind", &first, "--json"]).json();
    assert_eq!(told["conflicts"][0]["changed_by"], other);
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"1\n2\n3\n");
}

#[test]
fn undo_obeys_the_same_rule() {
    let (cli, now) = contested();
    let ran = cli.run(&["undo"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stderr
            .starts_with("error: 1 file has your changes since this run; nothing was touched\n"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("as it is, undo the rest\n"), "{ran:#?}");
    assert_eq!(files(&cli.work()), now);
    let ran = cli.run(&["undo", "--overwrite"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"1\n2\n");
    cli.reverse(&ran);
    assert_eq!(files(&cli.work()), now);
}

#[test]
fn many_conflicts_end_in_a_number() {
    let cli = Cli::new();
    write(&cli, "a", "1\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "for n in $(seq 10 34); do echo x > f$n; done");
    for n in 10..35 {
        write(&cli, &format!("f{n}"), "mine\n");
    }
    let ran = cli.run(&["rewind", "last~1"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("\n  and 5 more\n"), "{ran:#?}");
    assert!(!ran.stderr.contains("f30"), "{ran:#?}");
    assert!(
        ran.stderr.contains("leave these files as they are"),
        "{ran:#?}"
    );
    let told = cli.run(&["rewind", "last~1", "--json"]).json();
    assert_eq!(told["conflicts"].as_array().unwrap().len(), 25);
}
