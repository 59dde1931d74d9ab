//! `--merge`: the agent's lines go, the user's stay, or nothing is touched and the
//! lines that stand in the way are shown.

use std::fs;

use serde_json::json;

use super::{Files, changed, files, run, seen, write};
use crate::kit::Cli;
use crate::pty::{self, Terminal};

const FIRST: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";

/// A run that changed `a` and made `n`, and a change of the user's to `a` that no
/// checkpoint has.
fn both(person: &str, with: &str) -> (Cli, Files) {
    let cli = Cli::new();
    write(&cli, "a", FIRST);
    write(&cli, "k", "kept\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "sed -i s/two/agent/ a; echo n > n");
    let text = fs::read_to_string(cli.work().join("a")).unwrap();
    assert!(text.contains(person), "{text}");
    write(&cli, "a", &text.replace(person, with));
    let now = files(&cli.work());
    (cli, now)
}

fn text(cli: &Cli) -> String {
    fs::read_to_string(cli.work().join("a")).unwrap()
}

#[test]
fn a_merge_undoes_the_agents_lines_and_undo_restores_every_byte() {
    let (cli, now) = both("six", "mine");
    let ran = cli.run(&["rewind", "last~1", "--merge"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: Back to before the run `sh -c 'sed -i s/two/agent/ a; echo n > n'` (<when>):
out:   merged     a (+1 −1 lines; the rest stays)
out:   deleted    n
out:   unchanged  1 file
err: to reverse: backtrail undo
"
    );
    assert_eq!(text(&cli), FIRST.replace("six", "mine"));
    cli.reverse(&ran);
    assert_eq!(files(&cli.work()), now);
    let ran = cli.run(&["undo", "--merge", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let told = ran.json();
    assert_eq!(
        told["changes"][0],
        json!({"path": "a", "kind": "merge", "removed": 1, "returned": 1, "is_dir": false})
    );
    assert_eq!(told["conflicts"][0]["merge"]["outcome"], "merged");
    assert_eq!(text(&cli), FIRST.replace("six", "mine"));
    assert_eq!(cli.run(&["redo"]).code, 0);
    assert_eq!(files(&cli.work()), now);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn a_dry_run_of_a_merge_touches_nothing() {
    let (cli, now) = both("six", "mine");
    let ran = cli.run(&["rewind", "last~1", "--merge", "--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout
            .contains("  would merge   a (+1 −1 lines; the rest stays)\n"),
        "{ran:#?}"
    );
    assert_eq!(ran.stderr, "to do it: backtrail rewind last~1 --merge\n");
    assert_eq!(files(&cli.work()), now);
}

#[test]
fn lines_that_overlap_stop_it_and_are_shown() {
    let (cli, now) = both("agent", "mine instead");
    for args in [
        &["rewind", "last~1", "--merge"][..],
        &["undo", "--merge"],
        &["restore", "last~1", "--merge", "a"],
    ] {
        let ran = cli.run(args);
        assert_eq!(files(&cli.work()), now);
        let screen = seen(&ran, &cli);
        let shown = "\
exit 1
err: error: 1 file cannot be merged; nothing was touched
err:
err:   a  you, since the last checkpoint  also changed by the run `sh -c 'sed -i s/two/agent/ a; echo n > n'`
err:
err:   a: you changed the same lines
err:     line 2, changed by the run `sh -c 'sed -i s/two/agent/ a; echo n > n'`:
err:       now     mine instead
err:       after   agent
err:       before  two
err:
err:   --keep       leave a as it is, ";
        assert!(screen.starts_with(shown), "{screen}");
        assert!(!screen.contains("--merge"), "{screen}");
        assert!(
            screen.contains("err:   --overwrite  discard your version"),
            "{screen}"
        );
    }
    let ran = cli.run(&["rewind", "last~1", "--merge", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let told = ran.json();
    assert_eq!(told["stage"], "stopped");
    let mut merge = told["conflicts"][0]["merge"].clone();
    assert!(merge["overlaps"][0]["by"].take().is_string(), "{told}");
    assert_eq!(
        merge,
        json!({
            "outcome": "stopped", "reason": "you changed the same lines",
            "overlaps": [{
                "line": 2, "now": "mine instead\n", "left": "agent\n", "was": "two\n", "by": null,
            }],
        })
    );
    assert_eq!(files(&cli.work()), now);
}

/// Where a merge cannot work it is not offered, and the lines are named.
#[test]
fn a_merge_that_cannot_work_is_not_offered_and_the_lines_are_named() {
    let (cli, now) = both("agent", "mine instead");
    for args in [&["undo"][..], &["rewind", "one"], &["undo", "--dry-run"]] {
        let ran = cli.run(args);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert!(!ran.stderr.contains("  --merge  "), "{ran:#?}");
        let named = "\n  --merge is not possible:\n  a: you changed the same lines (line 2)\n";
        assert!(ran.stderr.ends_with(named), "{ran:#?}");
        assert_eq!(files(&cli.work()), now);
    }
    let (cli, _) = both("six", "mine");
    let ran = cli.run(&["undo"]);
    assert!(
        ran.stderr
            .contains("  --merge      remove the run's lines, keep yours\n"),
        "{ran:#?}"
    );
    let told = cli.run(&["undo", "--json"]).json();
    assert_eq!(
        (
            &told["can_merge"],
            &told["conflicts"][0]["merge"]["outcome"]
        ),
        (&json!(true), &json!("merged"))
    );
    // A file that only you changed has nothing to merge.
    let cli = Cli::new();
    write(&cli, "a", FIRST);
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "echo n > n");
    write(&cli, "a", "mine\n");
    let ran = cli.run(&["rewind", "one"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(!ran.stderr.contains("--merge"), "{ran:#?}");
}

/// A file is a change or a conflict, never both.
#[test]
fn a_dry_run_lists_conflicting_files_as_conflicts_only() {
    let (cli, _) = both("six", "mine");
    let ran = cli.run(&["rewind", "one", "--dry-run"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("  would delete  n\n"), "{ran:#?}");
    assert!(!ran.stdout.contains("would restore"), "{ran:#?}");
    assert!(ran.stderr.contains("  a  you, "), "{ran:#?}");
    for args in [
        &["rewind", "one", "--json"][..],
        &["rewind", "one", "--json", "--dry-run"],
    ] {
        let told = cli.run(args).json();
        assert_eq!(changed(&told), ["delete n"]);
        assert_eq!(told["conflicts"][0]["path"], "a");
    }
}

/// Runs of two sessions that overlapped are said to have overlapped.
#[test]
fn runs_that_overlapped_are_said_to_have_overlapped() {
    let cli = Cli::new();
    write(&cli, "a", FIRST);
    let program = env!("CARGO_BIN_EXE_backtrail");
    // One within another, as a program of its own.
    let inner =
        format!("env -u BACKTRAIL_SESSION -u BACKTRAIL_RUN {program} run -- sh -c 'echo 2 >> a'");
    run(&cli, &format!("echo 1 >> a; {inner}"));
    let ran = cli.run(&["undo"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stderr.starts_with(
            "error: 1 file changed while this run and others overlapped; nothing was touched\n"
        ),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("overlapped with the run `"), "{ran:#?}");
    assert!(
        ran.stderr
            .contains("  a: it changed while turns or runs overlapped\n"),
        "{ran:#?}"
    );
    assert_eq!(
        cli.run(&["undo", "--json"]).json()["conflicts"][0]["overlapped"],
        true
    );
}

#[test]
fn a_file_that_is_not_text_is_named_with_the_reason() {
    let cli = Cli::new();
    write(&cli, "a", FIRST);
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "printf 'made\\n' > n");
    write(&cli, "n", "made\nmine\n");
    let ran = cli.run(&["undo", "--merge"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stderr
            .contains("\n  n: it was created, then you changed it\n"),
        "{ran:#?}"
    );
}

/// Content of files commands no terminal, and takes no more room than there is.
#[test]
fn overlapping_lines_fit_a_narrow_terminal_without_colours() {
    if !pty::is_there() {
        return;
    }
    let long = format!("\u{1b}[31m{}", "x ".repeat(200));
    let (cli, now) = both("agent", &long);
    let mut command = cli.command(&["rewind", "last~1", "--merge"]);
    command.env("NO_COLOR", "1");
    let terminal = Terminal::start(&command);
    terminal.resize(24, 60);
    let (code, screen) = terminal.end();
    assert_eq!(code, 1, "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
    assert!(screen.contains("^[[31mx x"), "{screen:?}");
    let lines = screen.lines().filter(|line| line.contains("x x"));
    for line in lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(files(&cli.work()), now);
}
