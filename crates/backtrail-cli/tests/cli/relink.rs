//! `relink`: sessions stay with a directory that was copied away (F26); wrong arguments are
//! refused with a hint.

use std::path::Path;

use crate::kit::{Cli, Ran, command, finish};

/// A directory beside the one to work in.
fn beside(cli: &Cli, name: &str) -> std::path::PathBuf {
    cli.work().canonicalize().unwrap().with_file_name(name)
}

fn at(cli: &Cli, dir: &Path, args: &[&str]) -> Ran {
    finish(&mut command(&cli.store(), dir, args), b"")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn says(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{ran:#?}");
    for word in words {
        assert!(ran.stderr.contains(word), "{word}: {ran:#?}");
    }
}

// F26
#[test]
fn f26_a_copied_directory_has_its_sessions_again_after_relink() {
    let cli = Cli::new();
    let session = cli.new_session("hello");
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    let (old, new) = (beside(&cli, "work"), beside(&cli, "copy"));
    std::fs::create_dir(&new).unwrap();
    std::fs::remove_dir_all(&old).unwrap();
    // It is listed as gone.
    let gone = at(&cli, &new, &["relink", "--json"]).json();
    assert_eq!(gone[0]["root"], text(&old));
    assert_eq!(gone[0]["sessions"], 1);
    assert_eq!(gone[0]["candidate"], serde_json::Value::Null);
    let linked = at(&cli, &new, &["relink", text(&old)]);
    says(&linked, 0, &["to reverse: backtrail relink"]);
    assert!(linked.stdout.contains("(1 session)"), "{linked:#?}");
    let latest = at(&cli, &new, &["show", "latest", "--json"]).json();
    assert_eq!(
        latest["id"].as_str().or(latest["session"].as_str()),
        Some(session.as_str())
    );
    let log = at(&cli, &new, &["log", "--json"]).json();
    assert_eq!(log.as_array().unwrap().len(), 1);
    assert_eq!(
        at(&cli, &new, &["relink", "--json"]).json(),
        serde_json::json!([])
    );
    // Taken back: as it was.
    let back = at(&cli, &new, &["relink", text(&new), text(&old), "--json"]);
    assert_eq!(back.json()["what"], "workspace", "{back:#?}");
    assert_eq!(
        at(&cli, &new, &["relink", "--json"]).json()[0]["root"],
        text(&old)
    );
    assert_eq!(cli_verify(&cli, &new), 0);
}

fn cli_verify(cli: &Cli, dir: &Path) -> i32 {
    at(cli, dir, &["verify"]).code
}

// F26
#[test]
fn f26_a_directory_of_the_same_project_is_suggested() {
    let cli = Cli::new();
    let config = "[remote \"origin\"]\nurl = https://me:s3cr3t@github.com/acme/shop.git\n";
    let clone = |dir: &Path| {
        std::fs::create_dir_all(dir.join(".git")).unwrap();
        std::fs::write(dir.join(".git/config"), config).unwrap();
    };
    let (old, new) = (beside(&cli, "work"), beside(&cli, "clone"));
    clone(&old);
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    clone(&new);
    std::fs::remove_dir_all(&old).unwrap();
    let ran = at(&cli, &new, &["relink"]);
    says(&ran, 0, &["is the same project", "relink"]);
    assert!(ran.stdout.contains("github.com/acme/shop"), "{ran:#?}");
    assert!(!format!("{ran:?}").contains("s3cr3t"), "{ran:#?}");
    let gone = at(&cli, &new, &["relink", "--json"]).json();
    assert_eq!(gone[0]["candidate"], text(&new));
}

#[test]
fn wrong_directories_are_refused_with_a_hint() {
    let cli = Cli::new();
    let ran = cli.run(&["relink", "/nowhere"]);
    says(&ran, 2, &["no store in"]);
    says(&cli.run(&["relink"]), 0, &["no moved directories"]);
    cli.new_session("hello");
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    let (old, other) = (beside(&cli, "work"), beside(&cli, "other"));
    std::fs::create_dir(&other).unwrap();
    let wrok = beside(&cli, "wrok");
    let ran = cli.run(&["relink", text(&wrok), text(&other)]);
    says(
        &ran,
        2,
        &["no checkpoints or sessions in", "did you mean: ", "/work"],
    );
    let ran = cli.run(&["relink", text(&old), text(&wrok)]);
    says(&ran, 2, &["does not exist", "relink OLD NEW"]);
    let ran = cli.run(&["relink", text(&old), text(&other)]);
    says(&ran, 2, &["still exists", "--yes"]);
    let ran = cli.run(&["relink", text(&old), text(&other), "--yes"]);
    says(&ran, 0, &["to reverse"]);
    says(&cli.run(&["relink", "--yes"]), 2, &[]);
}
