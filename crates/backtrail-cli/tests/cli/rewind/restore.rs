//! Some files as they were, and all else as it is.

use std::fs;

use serde_json::json;

use super::{changed, files, seen, two_runs};
use crate::kit;

#[test]
fn only_named_paths_are_restored() {
    let (cli, [.., third]) = two_runs();
    let ran = cli.run(&["restore", "one", "--", "src"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: Restored to checkpoint \"one\" (<when>):
out:   restored  src/x
err: to reverse: backtrail undo
"
    );
    let mut expected = third.clone();
    expected.insert("src/x".into(), b"x\n".to_vec());
    assert_eq!(files(&cli.work()), expected);
    let back = cli.reverse(&ran);
    assert!(
        back.stdout.starts_with("Undid the restore of src ("),
        "{back:#?}"
    );
    assert_eq!(files(&cli.work()), third);
}

#[test]
fn files_created_later_are_deleted_and_undo_restores_them() {
    let (cli, [.., third]) = two_runs();
    let ran = cli.run(&["restore", "one", "n", "a", "--json"]);
    let told = ran.json();
    assert_eq!(told["verb"], "restore");
    assert_eq!(changed(&told), ["restore a", "delete n"]);
    assert_eq!(told["chat"], json!(null));
    assert!(!cli.work().join("n").exists());
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(files(&cli.work()), third);
}

#[test]
fn paths_are_relative_to_the_current_directory() {
    let (cli, _) = two_runs();
    fs::create_dir_all(cli.work().join("src")).unwrap();
    let there = |args: &[&str]| {
        let mut command = kit::command(&cli.store(), &cli.work().join("src"), args);
        kit::finish(&mut command, b"")
    };
    let ran = there(&["restore", "one", "--dry-run", "--", "x", "../a"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.stderr, "to do it: backtrail restore one -- x ../a\n");
    let ran = there(&["restore", "one", "--", "x"]);
    assert!(ran.stdout.contains("  restored  src/x\n"), "{ran:#?}");
    assert_eq!(fs::read(cli.work().join("src/x")).unwrap(), b"x\n");
}

/// F31: naming a file is consent, and the answer says whose changes it cost.
#[test]
fn f31_a_named_file_is_replaced_and_the_answer_says_whose_it_was() {
    let (cli, _) = two_runs();
    fs::write(cli.work().join("a"), "mine\n").unwrap();
    let ran = cli.run(&["restore", "last~1", "--dry-run", "--", "a"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: Would restore to before the run `sh -c 'echo 3 >> a'` (<when>):
out:   would restore  a
out: Your changes in a would be replaced; undo would restore them
err: to do it: backtrail restore last~1 -- a
"
    );
    let ran = cli.run(&["restore", "last~1", "--", "a"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: Restored to before the run `sh -c 'echo 3 >> a'` (<when>):
out:   restored  a
out: Your changes in a were replaced; undo restores them
err: to reverse: backtrail undo
"
    );
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"1\n2\n");
    cli.reverse(&ran);
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"mine\n");
    let told = cli.run(&["restore", "last~1", "--json", "--", "a"]).json();
    assert_eq!(told["stage"], "done");
    assert_eq!(told["conflicts"][0]["changed_by"], "person");
    assert_eq!(told["conflicts"][0]["named"], true);
}

/// F31: naming a directory is no consent to what is in it.
#[test]
fn f31_a_named_directory_stops_at_your_changes_until_you_save_them() {
    let (cli, _) = two_runs();
    fs::create_dir_all(cli.work().join("src")).unwrap();
    fs::write(cli.work().join("src/x"), "mine\n").unwrap();
    for directory in ["src", "."] {
        let ran = cli.run(&["restore", "one", "--", directory]);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert!(ran.stderr.contains("  src/x  you, "), "{ran:#?}");
        assert!(
            ran.stderr.contains("as it is, restore the rest"),
            "{ran:#?}"
        );
        assert_eq!(fs::read(cli.work().join("src/x")).unwrap(), b"mine\n");
    }
    assert_eq!(cli.run(&["checkpoint", "mine"]).code, 0);
    let ran = cli.run(&["restore", "one", "--", "src"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read(cli.work().join("src/x")).unwrap(), b"x\n");
    cli.reverse(&ran);
    assert_eq!(fs::read(cli.work().join("src/x")).unwrap(), b"mine\n");
}
