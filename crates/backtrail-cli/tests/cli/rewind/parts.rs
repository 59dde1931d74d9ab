//! `undo --paths`: some files of a step, as a step of its own.

use super::{changed, files, run, two_runs, write};

#[test]
fn undo_of_some_paths_takes_the_last_step_that_changed_them() {
    let (cli, [first, second, third]) = two_runs();
    // The newest run did not change these; the one before it did.
    let ran = cli.run(&["undo", "--paths", "n", "src"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout
            .starts_with("Restored to before the run `sh -c 'echo 2 >> a;"),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("  restored  src/x\n"), "{ran:#?}");
    assert!(ran.stdout.contains("  deleted   n\n"), "{ran:#?}");
    let mut expected = first.clone();
    expected.insert("a".into(), third[std::path::Path::new("a")].clone());
    assert_eq!(files(&cli.work()), expected);
    // It is a step of its own, and those before it are as they were.
    let steps = cli.run(&["log", "--steps", "--json"]).json();
    assert_eq!(steps["undo"][0]["kind"], "restore", "{steps:#}");
    assert_eq!(steps["undo"][0]["text"], "the restore of n and 1 more");
    assert_eq!(steps["undo"].as_array().unwrap().len(), 3);
    // Once more, it is that step which changed them last.
    let again = cli.run(&["undo", "--paths", "n", "--json"]).json();
    assert_eq!(changed(&again), ["create n"]);
    assert_eq!(again["verb"], "restore");
    assert_eq!(cli.run(&["undo"]).code, 0);
    cli.reverse(&ran);
    assert_eq!(files(&cli.work()), third);
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(files(&cli.work()), second);
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(files(&cli.work()), first);
}

#[test]
fn paths_that_the_step_did_not_change_are_named_or_refused() {
    let (cli, [.., third]) = two_runs();
    let ran = cli.run(&["undo", "--paths", "k"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr
            .starts_with("error: no undoable step changed k\n"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("backtrail log -- k"), "{ran:#?}");
    let ran = cli.run(&["undo", "--paths", "../x"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("is outside the workspace"), "{ran:#?}");
    assert_eq!(files(&cli.work()), third);
    let ran = cli.run(&["undo", "--paths", "n", "k", "--dry-run"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stdout
            .contains("  cannot restore  k (that step did not change it)\n"),
        "{ran:#?}"
    );
    assert_eq!(ran.stderr, "to do it: backtrail undo --paths n k\n");
    assert_eq!(files(&cli.work()), third);
}

/// Paths are meant from the current directory, and conflicts are what they are.
#[test]
fn paths_are_relative_to_the_current_directory_and_conflicts_stop_them() {
    let (cli, _) = two_runs();
    run(&cli, "echo 1 > src/y; echo 1 > z");
    write(&cli, "src/y", "1\nmine\n");
    let mut command = cli.command(&["undo", "--paths", "y"]);
    let output = command
        .current_dir(cli.work().join("src"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("  src/y  you, since the last checkpoint"),
        "{stderr}"
    );
    let ran = cli.run(&["undo", "--paths", "src/y", "--overwrite"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!cli.work().join("src/y").exists() && cli.work().join("z").exists());
    cli.reverse(&ran);
    let text = std::fs::read(cli.work().join("src/y")).unwrap();
    assert_eq!(text, b"1\nmine\n");
}
