//! A store that version 0.1 wrote opens, verifies, shows, undoes and continues.

use std::path::Path;

use serde_json::Value;

use crate::kit::{Cli, Ran};

/// The directory that the workspace had when the store was written.
const FORMER: &str = "/tmp/backtrail-fixture/shop";

/// Copies the fixture and relinks its workspace to the copy.
fn old_store() -> Cli {
    let cli = Cli::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fixtures/store-0.1");
    copy(&fixture.join("store"), &cli.store());
    copy(&fixture.join("shop"), &cli.work());
    let work = cli.work();
    done(&cli, &["relink", FORMER, work.to_str().unwrap()]);
    cli
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn done(cli: &Cli, args: &[&str]) -> Ran {
    let ran = cli.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
    ran
}

/// Returns the texts of a session's messages; a message without text has none.
fn texts(cli: &Cli, reference: &str) -> Vec<String> {
    let shown = done(cli, &["show", reference, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap().iter();
    let text = |message: &Value| Some(message["blocks"][0]["text"].as_str()?.to_owned());
    messages.filter_map(text).collect()
}

fn file(cli: &Cli, name: &str) -> Option<String> {
    std::fs::read_to_string(cli.work().join(name)).ok()
}

#[test]
fn an_old_store_verifies_and_lists_all_its_sessions() {
    let cli = old_store();
    done(&cli, &["verify"]);
    let listed = done(&cli, &["list", "--all", "--json"]);
    for title in [
        "turns with files",
        "talk with moves",
        "hello from version one",
    ] {
        assert!(listed.stdout.contains(title), "{title}: {listed:#?}");
    }
    assert!(!listed.stdout.contains("throw me away"), "{listed:#?}");
}

#[test]
fn an_old_conversation_reads_as_it_did_with_its_summary_image_and_fork() {
    let cli = old_store();
    let talk = texts(&cli, "aa2f");
    assert_eq!(talk[0], "question 1");
    assert_eq!(talk.last().unwrap(), "the other answer");
    assert_eq!(talk.len(), 10, "{talk:?}");
    let turns = done(&cli, &["show", "13e6", "--json"]).stdout;
    assert!(turns.contains("look at this"), "{turns}");
    let image = done(&cli, &["context", "13e6"]).stdout;
    assert!(image.contains(&"iVBORw0KGgoAAAANSUhEUgAA".repeat(200)));
    let fork = texts(&cli, "083d");
    assert_eq!(fork[0], "write a poem");
    assert_eq!(fork.last().unwrap(), "As you like.");
}

#[test]
fn a_version_1_first_trail_of_an_old_store_is_read_undone_and_continued() {
    let cli = old_store();
    let messages = texts(&cli, "session-1-0");
    assert_eq!(messages[0], "hello from version one");
    assert_eq!(messages.last().unwrap(), "continued after the import");
    done(&cli, &["verify", "session-1-0"]);
    done(
        &cli,
        &["record", "--session", "session-1-0", "--text", "and on"],
    );
    assert_eq!(texts(&cli, "session-1-0").last().unwrap(), "and on");
    done(&cli, &["rewind", "session-1-0:2", "--chat"]);
    assert_eq!(texts(&cli, "session-1-0"), ["hello from version one"]);
    done(&cli, &["undo", "session-1-0"]);
    assert_eq!(texts(&cli, "session-1-0").last().unwrap(), "and on");
    let v1 = done(&cli, &["export", "session-1-0", "--to", "v1"]).stdout;
    assert!(v1.contains("hello from version one"), "{v1}");
    done(&cli, &["verify"]);
}

#[test]
fn runs_and_turns_of_an_old_store_are_undone_and_redone() {
    let cli = old_store();
    let log = done(&cli, &["log"]).stdout;
    for text in ["write a poem", "add a line", "rename it", "before-lunch"] {
        assert!(log.contains(text), "{text}: {log}");
    }
    done(&cli, &["undo"]);
    assert_eq!(file(&cli, "run.txt"), None);
    assert_eq!(file(&cli, "keep.txt").as_deref(), Some("kept\n"));
    done(&cli, &["undo"]);
    assert_eq!(file(&cli, "ode.txt"), None);
    assert_eq!(
        file(&cli, "poem.txt").as_deref(),
        Some("roses\nare\nred\nindeed\n")
    );
    done(&cli, &["redo"]);
    done(&cli, &["redo"]);
    assert_eq!(file(&cli, "run.txt").as_deref(), Some("run\n"));
    assert_eq!(file(&cli, "poem.txt"), None);
    done(&cli, &["verify"]);
}

#[test]
fn an_old_workspace_goes_back_to_its_label_and_takes_new_runs() {
    let cli = old_store();
    done(
        &cli,
        &["run", "--", "sh", "-c", "rm *.txt; echo new > new.txt"],
    );
    done(&cli, &["rewind", "before-lunch"]);
    assert_eq!(file(&cli, "keep.txt").as_deref(), Some("kept\nmore\n"));
    assert_eq!(file(&cli, "new.txt"), None);
    done(&cli, &["gc"]);
    done(&cli, &["verify"]);
}

#[test]
fn a_session_in_the_trash_of_an_old_store_is_restored() {
    let cli = old_store();
    done(&cli, &["trash", "restore", "17eb"]);
    assert_eq!(texts(&cli, "17eb"), ["throw me away"]);
}
