//! A moment of the workspace by every name that it has, on the real program.

use serde_json::Value;

use super::{changed, files, run, seen, write};
use crate::kit::{Cli, short};

/// A checkpoint `one` without a session, at whose state a run begins; then runs of two
/// sessions.
fn after_one() -> Cli {
    let cli = Cli::new();
    write(&cli, "a", "1\n");
    write(&cli, "b", "1\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "echo 2 >> a");
    run(&cli, "echo 2 >> b");
    cli
}

/// Returns all names of the state of `one`.
fn names(cli: &Cli) -> Vec<String> {
    let log = cli.run(&["log", "--all", "--json"]).json();
    let all = log.as_array().unwrap();
    let mut names = vec!["one".to_owned()];
    for one in &all[all.len() - 2..] {
        let id = one["id"].as_str().unwrap();
        names.extend([id.to_owned(), id[..8].to_owned()]);
    }
    for n in 1..10 {
        let point = format!("last~{n}");
        let plan = cli.run(&["rewind", &point, "--dry-run", "--overwrite", "--json"]);
        if plan.code == 0 && plan.json()["to"]["checkpoint"] == all[all.len() - 2]["id"] {
            names.push(point);
        }
    }
    assert_eq!(names.len(), 6, "{names:?}");
    names
}

/// What is planned for the files.
fn plan(cli: &Cli, point: &str) -> (i32, Vec<String>, Value) {
    let ran = cli.run(&["rewind", point, "--dry-run", "--files", "--json"]);
    let told = ran.json();
    (ran.code, changed(&told), told["conflicts"].clone())
}

/// F31: agents and runs, whichever session; your own changes stop it until you save them.
#[test]
fn f31_every_name_of_a_moment_gives_the_same_answer() {
    let cli = after_one();
    let first = |point: &str| plan(&cli, point);
    for name in names(&cli) {
        let (code, changes, _) = first(&name);
        assert_eq!((code, changes.len()), (0, 2), "{name}");
    }
    write(&cli, "mine", "m\n");
    run(&cli, "echo 3 >> a");
    for name in names(&cli) {
        assert_eq!(plan(&cli, &name), plan(&cli, "one"), "{name}");
        let (code, _, conflicts) = plan(&cli, &name);
        assert_eq!((code, &conflicts[0]["path"]), (1, &Value::from("mine")));
    }
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    for name in names(&cli) {
        assert_eq!(plan(&cli, &name), plan(&cli, "one"), "{name}");
        assert_eq!(plan(&cli, &name).0, 0, "{name}");
    }
    let now = files(&cli.work());
    let ran = cli.run(&["rewind", "one"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: Back to checkpoint \"one\" (<when>):
out:   restored  a, b
out:   deleted   mine
err: to reverse: backtrail undo
"
    );
    cli.reverse(&ran);
    assert_eq!(files(&cli.work()), now);
}

/// A session that is running is named, and stops nothing.
#[test]
fn a_running_session_is_named_and_stops_nothing() {
    let cli = after_one();
    let program = env!("CARGO_BIN_EXE_backtrail");
    let script = format!("echo 9 > a; {program} rewind one --files");
    let ran = cli.run(&["run", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let log = cli.run(&["log", "--all", "--json"]).json();
    let session = log[0]["session"].as_str().unwrap();
    let named = format!("(session {}, process ", short(session));
    assert!(ran.stderr.contains(&named), "{ran:#?}");
    assert!(ran.stdout.contains("  restored  a, b\n"), "{ran:#?}");
    assert_eq!(std::fs::read(cli.work().join("a")).unwrap(), b"1\n");
}
