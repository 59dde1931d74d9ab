//! `rewind`, `restore`, `undo` and `redo` of files, by the real program: what they do,
//! what they say, and that each can be undone by the command it prints.

mod conflicts;
mod damaged;
mod merge;
mod parts;
mod patch;
mod points;
mod recovery;
mod restore;
mod review;
mod steps;
mod terminal;
mod turns;
mod wrong;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, screen};

/// The files of a workspace with their bytes.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(dir) = ahead.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                ahead.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn write(cli: &Cli, name: &str, text: &str) {
    let path = cli.work().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(cli: &Cli, script: &str) {
    let ran = cli.run(&["run", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}

/// A workspace with a checkpoint `one`, and two runs after it.
fn two_runs() -> (Cli, [Files; 3]) {
    let cli = Cli::new();
    write(&cli, "a", "1\n");
    write(&cli, "k", "kept\n");
    write(&cli, "src/x", "x\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    let first = files(&cli.work());
    run(&cli, "echo 2 >> a; echo new > n; rm src/x");
    let second = files(&cli.work());
    run(&cli, "echo 3 >> a");
    let third = files(&cli.work());
    (cli, [first, second, third])
}

/// Writes a run as the user sees it; ids that are reported have a word in their place.
fn seen(ran: &Ran, cli: &Cli) -> String {
    let screen = screen(ran, cli, &[]);
    let mut out = String::new();
    for line in screen.lines() {
        let words: Vec<&str> = line
            .split(' ')
            .map(|word| if is_id(word) { "<id>" } else { word })
            .collect();
        out += &words.join(" ");
        out.push('\n');
    }
    out
}

fn is_id(word: &str) -> bool {
    word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[test]
fn a_rewind_restores_the_files_and_reports_it() {
    let (cli, [first, _, third]) = two_runs();
    let ran = cli.run(&["rewind", "one"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: Back to checkpoint \"one\" (<when>):
out:   restored   a, src/x
out:   deleted    n
out:   unchanged  1 file
err: to reverse: backtrail undo
"
    );
    assert_eq!(files(&cli.work()), first);
    let back = cli.reverse(&ran);
    assert_eq!(
        seen(&back, &cli),
        "\
exit 0
out: Undid the rewind to checkpoint \"one\" (<when>):
out:   restored   a, n
out:   deleted    src/x
out:   unchanged  1 file
err: to reverse: backtrail redo
"
    );
    assert_eq!(files(&cli.work()), third);
    let again = cli.reverse(&back);
    assert!(
        again
            .stdout
            .starts_with("Redid the rewind to checkpoint \"one\" ("),
        "{again:#?}"
    );
    assert_eq!(files(&cli.work()), first);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn a_dry_run_shows_what_would_be_done_and_touches_nothing() {
    let (cli, [_, _, third]) = two_runs();
    let log = cli.run(&["log", "--all", "--json"]).stdout;
    let ran = cli.run(&["rewind", "one", "--dry-run"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: Would go back to checkpoint \"one\" (<when>):
out:   would restore  a, src/x
out:   would delete   n
out:   unchanged      1 file
err: to do it: backtrail rewind one
"
    );
    let told = cli.run(&["rewind", "one", "--dry-run", "--json"]).json();
    assert_eq!(told["stage"], "planned");
    assert_eq!(changed(&told), ["restore a", "delete n", "create src/x"]);
    assert_eq!(files(&cli.work()), third);
    assert_eq!(cli.run(&["log", "--all", "--json"]).stdout, log);
}

#[test]
fn a_rewind_to_the_present_state_is_one_line_and_no_failure() {
    let (cli, [first, ..]) = two_runs();
    assert_eq!(cli.run(&["rewind", "one"]).code, 0);
    let log = cli.run(&["log", "--all", "--json"]).stdout;
    for args in [&["rewind", "one"][..], &["rewind", "one", "--dry-run"]] {
        let ran = cli.run(args);
        assert_eq!(
            seen(&ran, &cli),
            "exit 0\nerr: already as it was at checkpoint \"one\" (<when>)\n"
        );
    }
    assert_eq!(files(&cli.work()), first);
    assert_eq!(cli.run(&["log", "--all", "--json"]).stdout, log);
}

/// Returns what happens to which paths.
pub(super) fn changed(outcome: &Value) -> Vec<String> {
    let changes = outcome["changes"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    changes
        .map(|one| format!("{} {}", text(&one["kind"]), text(&one["path"])))
        .collect()
}

fn ids(cli: &Cli) -> BTreeMap<String, Value> {
    let log = cli.run(&["log", "--all", "--json"]).json();
    let all = log.as_array().unwrap().iter();
    all.map(|one| {
        (
            one["id"].as_str().unwrap().to_owned(),
            one["reason"].clone(),
        )
    })
    .collect()
}

#[test]
fn a_rewind_is_printed_as_json() {
    let (cli, _) = two_runs();
    let one = cli.run(&["log", "--json"]).json();
    let one = one.as_array().unwrap().last().unwrap().clone();
    let ran = cli.run(&["rewind", "one", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let mut told = ran.json();
    let ids = ids(&cli);
    let id = |name: &str| ids[told[name].as_str().unwrap()].clone();
    assert_eq!([id("from"), id("now")], [json!("run-end"), json!("rewind")]);
    for name in ["from", "now"] {
        told[name] = Value::Null;
    }
    assert_eq!(
        told,
        json!({
            "verb": "rewind", "stage": "done", "step": null, "session": null, "from": null,
            "to": {
                "checkpoint": one["id"], "at": one["at"], "session": null,
                "text": "checkpoint \"one\"",
            },
            "now": null,
            "changes": [
                {"path": "a", "kind": "restore", "is_dir": false},
                {"path": "n", "kind": "delete", "is_dir": false},
                {"path": "src/x", "kind": "create", "is_dir": false},
            ],
            "kept": [], "not_restored": [], "conflicts": [], "on_conflict": "stop",
            "can_merge": false,
            "unchanged": 1, "skipped": {"count": 0, "first": []}, "tool_calls": [],
            "other_sessions": [], "chat": null, "belongs_to": null, "chat_in_use": null,
            "active": [], "complete": true,
        })
    );
    let undone = cli.run(&["undo", "--json"]).json();
    assert_eq!(undone["verb"], "undo");
    assert_eq!(changed(&undone), ["restore a", "create n", "delete src/x"]);
    assert_eq!(undone["step"]["kind"], "rewind");
    assert_eq!(undone["step"]["text"], "the rewind to checkpoint \"one\"");
}

/// The commands that are named work where they are read.
#[test]
fn printed_commands_name_the_same_store_and_workspace() {
    let cli = Cli::new();
    let ws = cli.work().with_file_name("my ws");
    fs::create_dir(&ws).unwrap();
    let store = cli.work().join("another store");
    let with = [
        "--store",
        store.to_str().unwrap(),
        "--workspace",
        "../my ws",
    ];
    let there = |args: &[&str]| cli.run(&[args, &with[..]].concat());
    fs::write(ws.join("a"), "1\n").unwrap();
    assert_eq!(there(&["checkpoint", "one two"]).code, 0);
    fs::write(ws.join("a"), "2\n").unwrap();
    assert_eq!(there(&["checkpoint"]).code, 0);
    let program = format!("backtrail --store '{}'", store.display());
    let ran = there(&["rewind", "one two", "--files", "--dry-run"]);
    let named = format!("to do it: {program} rewind 'one two' --files --workspace '../my ws'\n");
    assert_eq!(ran.stderr, named);
    let ran = there(&["rewind", "one two"]);
    assert_eq!(fs::read(ws.join("a")).unwrap(), b"1\n");
    let named = format!("to reverse: {program} undo --workspace '../my ws'\n");
    assert_eq!(ran.stderr, named);
    let back = cli.reverse(&ran);
    assert_eq!(fs::read(ws.join("a")).unwrap(), b"2\n");
    cli.reverse(&back);
    assert_eq!(fs::read(ws.join("a")).unwrap(), b"1\n");
    let ran = cli.run(
        &[
            &["run"],
            &with[..],
            &["--", "sh", "-c", "echo 3 > '../my ws/a'"],
        ]
        .concat(),
    );
    let named = format!("undo: {program} undo --workspace '../my ws'");
    assert!(ran.stderr.contains(&named), "{ran:#?}");
}

/// F27: the user's git state is theirs.
#[test]
fn f27_a_rewind_leaves_git_alone() {
    let cli = Cli::new();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(args)
            .current_dir(cli.work())
            .env("HOME", cli.work());
        git.env("GIT_CONFIG_NOSYSTEM", "1");
        git.output()
    };
    if git(&["init", "-q"]).is_err() {
        eprintln!("SKIPPED: needs git; there is no repository to leave alone");
        return;
    }
    write(&cli, "a", "1\n");
    write(&cli, "staged", "1\n");
    git(&["add", "staged"]).unwrap();
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "echo 2 > a; echo 2 > staged; echo n > n");
    let picture = || files(&cli.work().join(".git"));
    let before = picture();
    assert!(
        before.contains_key(Path::new("index")),
        "{:?}",
        before.keys()
    );
    let ran = cli.run(&["rewind", "one"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    cli.reverse(&ran);
    assert_eq!(picture(), before);
}

#[test]
fn names_that_command_a_terminal_do_not() {
    let cli = Cli::new();
    write(&cli, "a", "1\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "printf x > \"$(printf 'e\\033[31m')\"");
    let ran = cli.run(&["rewind", "one"]);
    assert!(ran.stdout.contains("  deleted    e^[[31m\n"), "{ran:#?}");
}

#[test]
fn many_names_end_in_a_number() {
    let cli = Cli::new();
    write(&cli, "a", "1\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "for n in $(seq 10 56); do echo x > f$n; done");
    let ran = cli.run(&["rewind", "one"]);
    assert!(ran.stdout.contains("f18, f19 and 37 more\n"), "{ran:#?}");
    let json = cli.run(&["undo", "--json"]).json();
    assert_eq!(json["changes"].as_array().unwrap().len(), 47);
}
