//! `checkpoint`, `log`, `diff`, `cat` and `status`.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::kit::{Cli, Recording, finish, normal, screen, snapshot};

fn write(cli: &Cli, path: &str, text: &str) {
    let path = cli.work().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn checkpoint(cli: &Cli, label: &str) -> Value {
    let ran = cli.run(&["checkpoint", label, "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()
}

#[test]
fn a_checkpoint_as_json() {
    let cli = Cli::new();
    write(&cli, "a.txt", "one\n");
    write(&cli, "target/o", "built");
    write(&cli, ".gitignore", "target/\n.env\n");
    write(&cli, ".env", "KEY=1\n");
    let first = checkpoint(&cli, "first");
    assert_eq!(first["label"], "first");
    assert_eq!(first["session"], Value::Null);
    assert_eq!((&first["files"], &first["bytes"]), (&json!(3), &json!(23)));
    assert_eq!(first["changed"], 0);
    let left_out = json!({"count": 1, "first": [
        {"path": "target", "kind": "dir", "reason": "ignored", "bytes": 0},
    ]});
    assert_eq!(first["skipped"], left_out);
    assert_eq!(first["snapshot"].as_str().unwrap().len(), 64);
    write(&cli, "a.txt", "two\n");
    write(&cli, "b.txt", "new\n");
    let second = checkpoint(&cli, "second");
    assert_eq!(second["changed"], 2);
    assert_ne!(second["snapshot"], first["snapshot"]);
    std::fs::remove_file(cli.work().join("b.txt")).unwrap();
    write(&cli, "a.txt", "one\n");
    // The same state has the same name.
    assert_eq!(checkpoint(&cli, "third")["snapshot"], first["snapshot"]);
    let log = cli.run(&["log", "--json"]).json();
    let labels: Vec<&Value> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["label"])
        .collect();
    assert_eq!(labels, ["third", "second", "first"]);
    assert_eq!(log[1]["reason"], "manual");
}

#[test]
fn a_checkpoint_reports_what_it_saved_and_skipped() {
    let cli = Cli::new();
    write(&cli, "a.txt", "one\n");
    let ran = cli.run(&["checkpoint", "first"]);
    let id = ran.stdout.trim().to_owned();
    assert_eq!(id.len(), 8, "{ran:#?}");
    let seen = normal(&ran.stderr, &cli, &[]);
    assert_eq!(seen, "saved 1 file (4 bytes) in <work>\n");
    write(&cli, "node_modules/x/index.js", "x");
    write(&cli, ".gitignore", "node_modules\n");
    let ran = cli.run(&["checkpoint"]);
    assert_eq!(
        normal(&ran.stderr, &cli, &[]),
        "saved 2 files (17 bytes) in <work>, 1 changed since the last checkpoint\n\
         not protected: node_modules/ (ignored)\n"
    );
    assert_eq!(cli.run(&["cat", &id, "a.txt"]).stdout, "one\n");
}

#[test]
fn a_diff_has_every_kind_of_change_and_git_applies_it() {
    let cli = Cli::new();
    write(&cli, "edited", "1\n2\n3\n");
    write(&cli, "deleted", "gone\n");
    write(&cli, "moved", "the same content\n");
    write(&cli, "script", "#!/bin/sh\n");
    std::fs::write(cli.work().join("binary"), b"\0\x01").unwrap();
    std::os::unix::fs::symlink("edited", cli.work().join("link")).unwrap();
    checkpoint(&cli, "before");
    write(&cli, "edited", "1\ntwo\n3\n");
    std::fs::remove_file(cli.work().join("deleted")).unwrap();
    std::fs::rename(cli.work().join("moved"), cli.work().join("there")).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(cli.work().join("script"), executable).unwrap();
    std::fs::write(cli.work().join("binary"), b"\0\x02").unwrap();
    std::fs::remove_file(cli.work().join("link")).unwrap();
    write(&cli, "link", "a file now\n");
    std::fs::create_dir(cli.work().join("empty")).unwrap();
    let told = cli.run(&["diff", "before", "--json"]).json();
    let mut seen: Vec<(String, String)> = Vec::new();
    for change in told.as_array().unwrap() {
        let text = |name: &str| change[name].as_str().unwrap().to_owned();
        seen.push((text("path"), text("change")));
    }
    let expected = [
        ("binary", "modified"),
        ("deleted", "deleted"),
        ("edited", "modified"),
        ("empty", "added"),
        ("link", "kind"),
        ("script", "mode"),
        ("there", "renamed"),
    ];
    assert_eq!(seen, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let there = &told[6];
    assert_eq!(there["from"], "moved");
    let text = cli.run(&["diff", "before"]);
    assert_eq!(text.code, 0, "differences are no failure");
    assert!(text.stdout.contains("-2\n+two\n"), "{}", text.stdout);
    assert!(text.stdout.contains("Binary"), "{}", text.stdout);
    assert!(!text.stdout.contains('\u{1b}'), "no colours in a pipe");
    let names = cli.run(&["diff", "before", "--name-only", "--", "edited", "empty"]);
    assert_eq!(names.stdout, "edited\nempty\n");
    let stat = cli.run(&["diff", "before", "--stat", "--", "edited"]);
    assert!(
        stat.stdout.contains("edited  edited  2  +−\n"),
        "{}",
        stat.stdout
    );
}

#[test]
fn no_changes_is_not_a_failure() {
    let cli = Cli::new();
    write(&cli, "a", "1");
    checkpoint(&cli, "x");
    let ran = cli.run(&["diff"]);
    assert_eq!(
        screen(&ran, &cli, &[]),
        "exit 0\nerr: no changes in <work>\n"
    );
    assert_eq!(cli.run(&["diff", "--json"]).stdout, "[]\n");
    assert_eq!(cli.run(&["diff", "x", "last"]).code, 0);
}

#[test]
fn a_file_is_read_as_it_was_byte_for_byte() {
    let cli = Cli::new();
    let bytes: Vec<u8> = (0..=255_u8).cycle().take(3 << 20).collect();
    std::fs::write(cli.work().join("blob"), &bytes).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff name");
    std::fs::write(cli.work().join(odd), "odd\n").unwrap();
    checkpoint(&cli, "then");
    std::fs::remove_file(cli.work().join("blob")).unwrap();
    let output = cli.command(&["cat", "then", "blob"]).output().unwrap();
    assert!(output.status.success() && output.stdout == bytes);
    let output = cli.command(&["cat", "then"]).arg(odd).output().unwrap();
    assert_eq!(output.stdout, b"odd\n");
    let below = cli.work().join("sub");
    std::fs::create_dir(&below).unwrap();
    let mut from_below = cli.command(&["cat", "then", "../blob"]);
    let output = from_below.current_dir(&below).output().unwrap();
    assert!(output.status.success() && output.stdout == bytes);
}

#[test]
fn wrong_points_and_paths_get_a_hint() {
    let cli = Cli::new();
    write(&cli, "a", "1");
    let nothing = cli.run(&["diff"]);
    assert_eq!(nothing.code, 2);
    assert!(
        nothing
            .stderr
            .contains("hint: make one: backtrail checkpoint")
    );
    assert!(!cli.store().exists(), "looking creates nothing");
    checkpoint(&cli, "morning");
    checkpoint(&cli, "evening");
    let cases: [(&[&str], &str); 9] = [
        (
            &["cat", "mornin", "a"],
            "did you mean morning? (all: backtrail log)",
        ),
        (&["cat", "~1", "a"], "do not begin with ~, # or -"),
        (&["cat", "last~x", "a"], "needs a number after last~"),
        (&["diff", "last~1"], "no turns or runs here yet"),
        (&["diff", ":3"], "no sessions in"),
        (&["cat", "last", "b"], "b did not exist at last"),
        (&["cat", "last", "../b"], "is outside the workspace"),
        (&["checkpoint", "last"], "is reserved; choose another label"),
        (&["checkpoint", ""], "is blank"),
    ];
    for (args, words) in cases {
        let ran = cli.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    assert_eq!(
        cli.run(&["log", "--json"]).json().as_array().unwrap().len(),
        2
    );
}

#[test]
fn an_ambiguous_point_is_refused_with_its_matches() {
    let cli = Cli::new();
    write(&cli, "a", "1");
    let id = checkpoint(&cli, "x")["id"].as_str().unwrap().to_owned();
    let prefix = &id[..6];
    checkpoint(&cli, prefix);
    let ran = cli.run(&["cat", prefix, "a"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains(&format!("\"{prefix}\" matches 2 checkpoints or records"))
    );
    assert_eq!(ran.stderr.matches("hint: ").count(), 2, "{}", ran.stderr);
    assert_eq!(cli.run(&["cat", &id, "a"]).code, 0);
}

#[test]
fn record_makes_checkpoints_and_answers_when_they_are_durable() {
    let cli = Cli::new();
    write(&cli, "a", "1");
    let mut recording = Recording::start(cli.command(&["record"]));
    let said = recording.say("what is here?");
    let session = said["session"].as_str().unwrap().to_owned();
    recording.send_line(r#"{"type":"checkpoint","label":"mid"}"#);
    let answer = recording.answer().unwrap();
    assert_eq!((&answer["ok"], &answer["line"]), (&json!(true), &json!(2)));
    let id = answer["checkpoint"].as_str().unwrap().to_owned();
    write(&cli, "a", "2");
    assert_eq!(recording.say("and now?")["seq"], 2);
    recording.send_line(r#"{"type":"checkpoint","label":"last"}"#);
    let refused = recording.answer().unwrap();
    assert_eq!(refused["ok"], false);
    recording.send_line(r#"{"type":"checkpoint","lable":"x"}"#);
    assert!(
        recording.answer().unwrap()["error"]
            .as_str()
            .unwrap()
            .contains("lable")
    );
    assert_eq!(recording.end(), 1);
    let kept = &cli.run(&["log", "--json"]).json()[0];
    assert_eq!(
        (&kept["id"], &kept["session"], &kept["seq"]),
        (&json!(id), &json!(session), &json!(1))
    );
    // A record of the session is a point, by its place and by its id.
    let place = format!("{session}:2");
    assert_eq!(cli.run(&["cat", &place, "a"]).stdout, "1");
    assert_eq!(cli.run(&["cat", ":1", "a"]).stdout, "1");
    let shown = cli.run(&["show", &session, "--json"]).json();
    let record = shown["messages"][1]["id"].as_str().unwrap().to_owned();
    assert_eq!(cli.run(&["cat", &record[..12], "a"]).stdout, "1");
}

#[test]
fn status_shows_the_state() {
    let cli = Cli::new();
    let ran = cli.run(&["status"]);
    assert_eq!(
        screen(&ran, &cli, &[]),
        "exit 0\nerr: no checkpoints here yet; start with: backtrail run -- COMMAND\n"
    );
    write(&cli, "a", "1\n");
    checkpoint(&cli, "x");
    write(&cli, "b", "2\n");
    let told = cli.run(&["status", "--json"]).json();
    let work = cli.work().canonicalize().unwrap();
    assert_eq!(told["workspace"]["root"], work.to_str().unwrap());
    assert_eq!(told["checkpoints"], 1);
    assert_eq!(told["running"], json!([]));
    assert_eq!(told["changed"][0]["path"], "b");
    assert_eq!(told["last"]["label"], "x");
    let ran = cli.run(&["status"]);
    assert!(
        ran.stdout.contains("1 path since the last checkpoint"),
        "{}",
        ran.stdout
    );
}

#[test]
fn status_shows_a_running_command_until_it_is_killed() {
    let cli = Cli::new();
    write(&cli, "a", "1\n");
    let inner = format!("{} status --json", env!("CARGO_BIN_EXE_backtrail"));
    let ran = cli.run(&["run", "--title", "outer", "--", "sh", "-c", &inner]);
    let told: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    assert_eq!(told["running"].as_array().unwrap().len(), 1, "{ran:#?}");
    assert_eq!(told["session"]["title"], "outer");
    // The command kills the process that runs it.
    let killed = cli.run(&["run", "--", "sh", "-c", "kill -9 $PPID"]);
    assert_eq!(killed.code, -1);
    let told = cli.run(&["status", "--json"]).json();
    assert_eq!(told["running"], json!([]));
    let log = cli.run(&["log"]).stdout;
    assert!(log.contains("(interrupted)"), "{log}");
}

#[test]
fn a_workspace_is_named_known_or_the_nearest_git_directory() {
    let cli = Cli::new();
    let deep = cli.work().join("project/src/deep");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir(cli.work().join("project/.git")).unwrap();
    let root = |args: &[&str], dir: &PathBuf| {
        let mut command = cli.command(args);
        command.current_dir(dir);
        let ran = finish(&mut command, b"");
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.stderr
    };
    let project = cli.work().canonicalize().unwrap().join("project");
    let said = root(&["checkpoint"], &deep);
    assert!(
        said.contains(&format!("in {}", project.display())),
        "{said}"
    );
    // A known workspace around comes before git.
    root(
        &["checkpoint", "--workspace", "src"],
        &cli.work().join("project"),
    );
    let said = root(&["checkpoint"], &deep);
    assert!(
        said.contains(&format!("in {}/src", project.display())),
        "{said}"
    );
}

#[test]
fn the_home_directory_and_the_whole_file_system_are_refused_without_a_flag() {
    let cli = Cli::new();
    write(&cli, "a", "1");
    let mut command = cli.command(&["checkpoint"]);
    command.env("HOME", cli.work());
    let ran = finish(&mut command, b"");
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("refusing to snapshot your home directory"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: to do it anyway: --yes"));
    let record = || {
        let mut command = cli.command(&["record"]);
        let line = b"{\"type\":\"checkpoint\"}\n";
        finish(command.env("HOME", cli.work()), line)
    };
    let ran = record();
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stdout
            .contains("refusing to snapshot your home directory"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("backtrail checkpoint --yes"),
        "{ran:#?}"
    );
    let mut command = cli.command(&["checkpoint", "--yes"]);
    assert_eq!(finish(command.env("HOME", cli.work()), b"").code, 0);
    assert_eq!(record().code, 0, "who made one has decided");
    let ran = cli.run(&["checkpoint", "--workspace", "/"]);
    assert!(
        ran.stderr
            .contains("refusing to snapshot the whole file system"),
        "{}",
        ran.stderr
    );
    let ran = cli.run(&["checkpoint", "--workspace", "nowhere"]);
    assert!(
        ran.stderr.contains("cannot open the workspace"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_store_in_a_workspace_is_never_saved() {
    let cli = Cli::new();
    write(&cli, "a", "1");
    let inside = cli.work().join("store inside");
    let args = ["--store", inside.to_str().unwrap(), "checkpoint", "--json"];
    let first = cli.run(&args).json();
    assert_eq!(first["files"], 1, "{first}");
    assert_eq!(first["skipped"]["first"][0]["reason"], "store");
    let again = cli.run(&args).json();
    assert_eq!(again["snapshot"], first["snapshot"]);
}

#[test]
fn verify_finds_a_damaged_object_and_names_the_checkpoint() {
    let cli = Cli::new();
    write(&cli, "a", &"some text\n".repeat(100));
    let id = checkpoint(&cli, "x")["id"].as_str().unwrap().to_owned();
    let ran = cli.run(&["verify"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("1 checkpoint in 1 workspace"),
        "{}",
        ran.stdout
    );
    for path in cli.packs() {
        let bytes = std::fs::read(&path).unwrap();
        // Locks lie beside the packs.
        std::fs::write(&path, &bytes[..bytes.len().min(20)]).unwrap();
    }
    let ran = cli.run(&["verify"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains(&id[..8]), "{}", ran.stdout);
    assert!(ran.stdout.contains("in 1 workspace\n"), "{}", ran.stdout);
    let lost = &cli.run(&["verify", "--json"]).json()["lost"][0];
    assert_eq!(
        (&lost["path"], &lost["checkpoints"]),
        (&json!("."), &json!([id]))
    );
    let ran = cli.run(&["cat", "x", "a"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    // What is kept from now on is whole again.
    checkpoint(&cli, "after");
    assert_eq!(cli.run(&["cat", "after", "a"]).code, 0);
}

#[test]
fn escapes_in_names_never_reach_a_terminal() {
    let cli = Cli::new();
    write(&cli, "a", "1");
    checkpoint(&cli, "x");
    std::fs::write(cli.work().join("\u{1b}[31mred"), "\u{1b}]0;title\u{7}\n").unwrap();
    for args in [
        &["diff", "--stat"][..],
        &["diff", "--name-only"],
        &["status"],
        &["log"],
    ] {
        let ran = cli.run(args);
        assert!(!ran.stdout.contains('\u{1b}'), "{args:?}: {ran:#?}");
    }
}

#[test]
fn f28_a_file_of_a_gigabyte_is_skipped_over_the_cap_and_saved_under_it() {
    const LEN: u64 = 1 << 30;
    let cli = Cli::new();
    let path = cli.work().join("dump");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(LEN).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"the end", LEN - 7).unwrap();
    write(&cli, "a", "1");
    let over = checkpoint(&cli, "over");
    assert_eq!(over["files"], 1);
    let left_out = json!({"path": "dump", "kind": "file", "reason": "too_large", "bytes": LEN});
    assert_eq!(over["skipped"]["first"][0], left_out);
    let refused = cli.run(&["cat", "over", "dump"]);
    assert!(
        refused.stderr.contains("over snapshot_cap"),
        "{}",
        refused.stderr
    );
    std::fs::write(cli.store().join("config.toml"), "snapshot_cap = \"2 GiB\"").unwrap();
    let under = checkpoint(&cli, "under");
    assert_eq!(
        (&under["files"], &under["bytes"]),
        (&json!(2), &json!(LEN + 1))
    );
    // It compares with what is there, and takes little room.
    assert_eq!(cli.run(&["diff", "under", "--json"]).stdout, "[]\n");
    let packs = cli.packs().into_iter();
    let stored: u64 = packs.map(|pack| pack.metadata().unwrap().len()).sum();
    assert!(stored < 16 << 20, "{stored} bytes");
    let mut cat = cli.command(&["cat", "under", "dump"]);
    let mut child = cat.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut buffer, mut len, mut last) = (vec![0; 1 << 20], 0_u64, 0);
    loop {
        let n = std::io::Read::read(&mut out, &mut buffer).unwrap();
        if n == 0 {
            break;
        }
        len += n as u64;
        last = buffer[n - 1];
    }
    assert!(child.wait().unwrap().success());
    assert_eq!((len, last), (LEN, b'd'));
}

#[test]
fn f18_a_run_that_changes_the_rules_does_not_hide_what_it_did() {
    let cli = Cli::new();
    for (path, text) in [("src/a", "1\n"), ("src/b", "2\n"), ("src/deep/c", "3\n")] {
        write(&cli, path, text);
    }
    let script = "echo /src/ > .gitignore; echo changed > src/a; rm src/b; echo new > src/n";
    let ran = cli.run(&["run", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let told = cli.run(&["diff", "last~1", "last", "--name-only"]).stdout;
    assert_eq!(told, ".gitignore\nsrc/a\nsrc/b\n");
    assert_eq!(cli.run(&["diff", "--name-only"]).stdout, told);
    assert_eq!(cli.run(&["cat", "last~1", "src/b"]).stdout, "2\n");
    assert_eq!(cli.run(&["cat", "last", "src/a"]).stdout, "changed\n");
    // From the next step on the new rules hold.
    let next = checkpoint(&cli, "next");
    assert_eq!(next["skipped"]["first"][0]["path"], "src");
}

#[test]
fn a_first_snapshot_that_is_too_large_names_the_directories_and_the_lines() {
    let cli = Cli::new();
    let sizes = [("data", 12), ("more/deep", 8), ("small", 1)];
    for (dir, files) in sizes {
        std::fs::create_dir_all(cli.work().join(dir)).unwrap();
        for n in 0..files {
            let file = std::fs::File::create(cli.work().join(dir).join(format!("f{n}"))).unwrap();
            file.set_len(256 << 20).unwrap();
        }
    }
    let ran = cli.run(&["checkpoint"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(
        ran.stderr.contains("over the limit of 5.0 GiB\n"),
        "{}",
        ran.stderr
    );
    let data = "hint: data/ has 3 GiB in 12 files; to skip it, add this line to .backtrailignore: /data/\n";
    assert!(ran.stderr.contains(data), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: or include everything: --yes\n"));
    assert_eq!(
        cli.run(&["log", "--json"]).stdout,
        "[]\n",
        "nothing was kept"
    );
    std::fs::write(
        cli.work().join(".backtrailignore"),
        "/data/\n/more/\n/small/\n",
    )
    .unwrap();
    assert_eq!(checkpoint(&cli, "now")["skipped"]["count"], 3);
}

#[test]
fn a_summary_of_changes_fits_every_terminal() {
    let cli = Cli::new();
    let deep = "crates/shop/src/currency/conversion/rounding/half_even_and_others_tests.rs";
    write(&cli, "src/cart.rs", "1\n2\n3\n");
    write(&cli, "old.txt", "moved as it is\n");
    std::fs::write(cli.work().join("logo.png"), [0; 12 << 10]).unwrap();
    checkpoint(&cli, "before");
    write(&cli, "src/cart.rs", "1\n3\n4\n5\n");
    write(&cli, deep, &"line\n".repeat(1200));
    std::fs::rename(cli.work().join("old.txt"), cli.work().join("new.txt")).unwrap();
    std::fs::write(cli.work().join("logo.png"), [0; 14 << 10]).unwrap();
    std::fs::write(cli.work().join("icon.png"), [0; 900]).unwrap();
    snapshot("diff-stat", &cli, &["diff", "before", "--stat"], &[]);
    let whole = cli.run(&["diff", "before", "--stat"]).stdout;
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.last(), Some(&"5 paths, +1,202 −1"), "{whole}");
    let path = |line: &&str| {
        line.split_whitespace()
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    let names: Vec<String> = lines.iter().map(path).collect();
    assert!(names.contains(&deep.to_owned()), "{whole}");
    assert!(whole.contains("  Bin  12 KiB → 14 KiB\n"), "{whole}");
    assert!(whole.contains("  Bin  900 bytes\n"), "{whole}");
}
