//! `completions`: a shell completes verbs, sessions and labels.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::kit::{Cli, finish, short};

/// Asks for the completions of the last word, as the scripts do.
fn offered(cli: &Cli, words: &[&str]) -> Vec<String> {
    let ran = cli.run(&[&["__complete", "--"], words].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{words:?}: {ran:#?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

/// Returns the values alone.
fn values(cli: &Cli, words: &[&str]) -> Vec<String> {
    let value = |line: &String| line.split('\t').next().unwrap().to_owned();
    offered(cli, words).iter().map(value).collect()
}

#[test]
fn verbs_options_and_their_values_are_offered() {
    let cli = Cli::new();
    let verbs = values(&cli, &[""]);
    for verb in ["run", "show", "search", "completions", "man"] {
        assert!(verbs.iter().any(|it| it == verb), "{verb}: {verbs:?}");
    }
    assert!(
        !verbs.iter().any(|verb| verb.starts_with("__")),
        "{verbs:?}"
    );
    assert_eq!(values(&cli, &["compl"]), ["completions"]);
    let about = offered(&cli, &["undo"]);
    assert!(about[0].starts_with("undo\t"), "{about:?}");
    let shells = ["bash", "zsh", "fish", "powershell"];
    assert_eq!(values(&cli, &["completions", ""]), shells);
    assert_eq!(values(&cli, &["show", "--fo"]), ["--follow"]);
    assert_eq!(values(&cli, &["--color", "a"]), ["auto", "always"]);
    assert_eq!(values(&cli, &["list", "--color=n"]), ["--color=never"]);
    assert_eq!(
        values(&cli, &["list", "--color", "=", "n"]),
        ["never"],
        "as bash has it"
    );
    assert_eq!(values(&cli, &["trash", "re"]), ["restore"]);
    assert_eq!(values(&cli, &["man", "sho"]), ["show"]);
    assert!(values(&cli, &["export", "latest", "--to", "m"]).contains(&"markdown".to_owned()));
    // What the shell knows better is left to it.
    assert_eq!(values(&cli, &["import", ""]), [":files"]);
    assert_eq!(values(&cli, &["diff", "last", "--", ""]), [":files"]);
    assert_eq!(values(&cli, &["--store", ""]), [":dirs"]);
    assert_eq!(values(&cli, &["run", "--", ""]), [":commands"]);
    assert_eq!(values(&cli, &["run", "--", "ls", ""]), [":files"]);
    // Nothing that is wrong stops it.
    for words in [
        &["nonsense", ""][..],
        &["--nonsense", ""],
        &["show", "-", "--x=", "-"],
    ] {
        offered(&cli, words);
    }
    assert_eq!(offered(&cli, &[]), [""; 0]);
}

#[test]
fn sessions_come_with_their_titles_and_checkpoints_with_their_labels() {
    let cli = Cli::new();
    let id = cli.talk();
    let other = cli.new_session("no title");
    let ran = cli.run(&["checkpoint", "before lunch"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for words in [
        &["show", ""][..],
        &["fork", ""],
        &["tag", ""],
        &["record", "--session", ""],
        &["--json", "show", "--full", ""],
    ] {
        let all = values(&cli, words);
        for value in [&*short(&id), &*short(&other), "latest"] {
            assert!(all.iter().any(|it| it == value), "{words:?}: {all:?}");
        }
    }
    let one = offered(&cli, &["show", &id[..6]]);
    assert_eq!(one.len(), 1, "{one:?}");
    assert!(one[0].starts_with(&format!("{id}\t")), "{one:?}");
    assert!(one[0].ends_with(": a talk"), "{one:?}");

    let points = values(&cli, &["rewind", ""]);
    assert!(points.contains(&"last".to_owned()), "{points:?}");
    assert!(points.contains(&"before lunch".to_owned()), "{points:?}");
    let checkpoint = cli.run(&["log", "--json"]).json()[0]["id"].clone();
    let beginning = checkpoint.as_str().unwrap()[..8].to_owned();
    assert_eq!(values(&cli, &["diff", &beginning[..4]]), [beginning]);
    assert_eq!(values(&cli, &["restore", "bef"]), ["before lunch"]);

    let deleted = cli.run(&["delete", &other]);
    assert_eq!(deleted.code, 0, "{deleted:#?}");
    assert_eq!(values(&cli, &["trash", "restore", ""]), [other]);
    // Another store has others.
    let elsewhere = cli.work().join("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    assert_eq!(
        values(&cli, &["--store", elsewhere, "show", ""]),
        ["latest"]
    );
}

#[test]
fn sessions_of_this_workspace_come_first_and_the_newest_of_them() {
    let cli = Cli::new();
    let record = |title: &str, root: &Path| {
        fs::create_dir_all(root).unwrap();
        let mut command = cli.command(&["record", "--title", title, "--text", "x", "--json"]);
        let ran = finish(command.current_dir(root), b"");
        ran.json()["session"].as_str().unwrap().to_owned()
    };
    let elsewhere = cli.work().parent().unwrap().join("elsewhere");
    let oldest = record("one", &cli.work());
    let other = record("two", &elsewhere);
    let middle = record("three", &cli.work());
    assert_eq!(cli.run(&["list", "--all"]).code, 0);
    let gone = cli.store().join("sessions").join(&middle);
    let [oldest, other, middle] = [oldest, other, middle].map(|id| short(&id));
    let ids = || values(&cli, &["show", ""]);
    assert_eq!(ids(), ["latest", &middle, &oldest, &other]);
    // The catalogue does not know this one yet.
    let newest = short(&record("four", &cli.work()));
    assert_eq!(ids(), ["latest", &newest, &middle, &oldest, &other]);
    let lines = offered(&cli, &["show", ""]);
    for (line, title) in lines[1..].iter().zip(["four", "three", "one", "two"]) {
        assert!(line.ends_with(&format!(": {title}")), "{line}");
    }
    // Neither does it matter if it is gone or damaged, or knows a session that is gone.
    fs::remove_dir_all(gone).unwrap();
    assert!(!ids().contains(&middle));
    for entry in fs::read_dir(cli.store().join("derived")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::write(path, "nonsense").unwrap();
        }
    }
    assert_eq!(ids().len(), 4);
}

/// Everything below a directory, with its times.
fn picture(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut ahead = vec![dir.to_owned()];
    while let Some(dir) = ahead.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let meta = entry.metadata().unwrap();
            all.push(format!(
                "{:?} {:?} {}",
                entry.path(),
                meta.modified().unwrap(),
                meta.len()
            ));
            ahead.push(entry.path());
        }
    }
    all.sort();
    all
}

#[test]
fn completion_writes_nothing_and_is_silent_on_errors() {
    let cli = Cli::new();
    let asked = [
        &["show", ""][..],
        &["rewind", ""],
        &["trash", "restore", ""],
        &["tag", "x", ""],
    ];
    for words in asked {
        offered(&cli, words);
    }
    assert!(!cli.store().exists());
    let id = cli.talk();
    cli.run(&["checkpoint", "a label"]);
    let before = picture(&cli.store());
    for words in asked {
        offered(&cli, words);
    }
    assert_eq!(picture(&cli.store()), before);
    // Damage, settings that are wrong, a file in the place of the store.
    fs::write(cli.trail(&id, 0), [0xff; 100]).unwrap();
    fs::write(cli.store().join("config.toml"), "][").unwrap();
    fs::create_dir(cli.store().join("sessions/not a session")).unwrap();
    for words in asked {
        offered(&cli, words);
    }
    assert!(
        values(&cli, &["show", &id[..4]]).contains(&id),
        "it is there all the same"
    );
    let file = cli.work().join("file");
    fs::write(&file, "x").unwrap();
    assert_eq!(
        values(&cli, &["--store", file.to_str().unwrap(), "show", ""]),
        ["latest"]
    );
}

#[test]
fn hostile_titles_and_tags_are_made_safe() {
    let cli = Cli::new();
    let title = "\u{1b}]0;owned\u{7}a\ttab\u{9b}2J\u{202e}txt\nnext line";
    let ran = cli.run(&["record", "--title", title, "--text", "x", "--json"]);
    let id = ran.json()["session"].as_str().unwrap().to_owned();
    let ran = cli.run(&["tag", &id, "\u{1b}[31mred", "$(touch owned)"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for words in [&["show", ""][..], &["show", &id[..4]], &["tag", &id, ""]] {
        for line in offered(&cli, words) {
            let fields: Vec<&str> = line.split('\t').collect();
            assert!(fields.len() <= 2, "{line:?}");
            let is_unsafe = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!fields.concat().contains(is_unsafe), "{line:?}");
        }
    }
}

/// Returns whether a program is installed; reports a skipped test if not.
fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    let found = command.output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: needs {program}; its completions were not tried");
    }
    found
}

/// Runs a shell with the program in its path.
fn shell(cli: &Cli, program: &str, args: &[&str]) -> String {
    let ours = Path::new(env!("CARGO_BIN_EXE_backtrail"));
    let mut path = ours.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(cli.work())
        .env("HOME", cli.work())
        .env("BACKTRAIL_HOME", cli.store())
        .env("PATH", path);
    let ran = finish(&mut command, b"");
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
    ran.stdout
}

#[test]
fn bash_offers_sessions_labels_and_files() {
    if !is_there("bash") {
        return;
    }
    let cli = Cli::new();
    let id = cli.talk();
    let ran = cli.run(&["checkpoint", "it's $(touch owned)"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    fs::write(cli.work().join("a file"), "x").unwrap();
    let complete = |words: &[&str]| -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "source <(backtrail completions bash); COMP_WORDS=({}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _backtrail backtrail; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"; complete -p backtrail >/dev/null",
            words.join(" ")
        );
        let out = shell(&cli, "bash", &["--norc", "-c", &script]);
        out.lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(complete(&["backtrail", "show", &id[..5]]), [&*id]);
    assert_eq!(complete(&["backtrail", "undo", &id[..5]]), [&*id]);
    assert_eq!(complete(&["backtrail", "sho"]), ["show"]);
    // Several have their titles beside them.
    let several = complete(&["backtrail", "show", ""]);
    assert!(
        several
            .iter()
            .any(|it| it.starts_with(&format!("{}  (", short(&id))) && it.ends_with(": a talk)")),
        "{several:?}"
    );
    assert_eq!(complete(&["backtrail", "import", "a"]), ["a file"]);
    assert_eq!(
        complete(&["backtrail", "show", "--color", "=", "al"]),
        ["always"]
    );
    // A label is one word to the shell, and nothing else.
    let label = complete(&["backtrail", "rewind", "it"]);
    let echoed = shell(&cli, "bash", &["-c", &format!("printf %s {}", label[0])]);
    assert_eq!(echoed, "it's $(touch owned)");
    assert!(!cli.work().join("owned").exists());
}

#[test]
fn zsh_accepts_its_script() {
    if !is_there("zsh") {
        return;
    }
    let cli = Cli::new();
    let id = cli.talk();
    let script = format!(
        "compdef() {{ : }}; source <(backtrail completions zsh); \
         compadd() {{ print -l -- $values }}; words=(backtrail show {}); CURRENT=3; _backtrail",
        &id[..5]
    );
    let out = shell(&cli, "zsh", &["-f", "-c", &script]);
    assert_eq!(out.trim(), id);
}

#[test]
fn fish_accepts_its_script() {
    if !is_there("fish") {
        return;
    }
    let cli = Cli::new();
    let id = cli.talk();
    let script = format!(
        "backtrail completions fish | source; complete -C 'backtrail show {}'",
        &id[..5]
    );
    let out = shell(&cli, "fish", &["--no-config", "-c", &script]);
    assert!(out.starts_with(&format!("{id}\t")), "{out:?}");
}

#[test]
fn every_script_asks_the_program() {
    let cli = Cli::new();
    for name in ["bash", "zsh", "fish", "powershell"] {
        let ran = cli.run(&["completions", name]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
        assert!(ran.stdout.contains("__complete"), "{name}");
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 120, "{name}: {line}");
        }
    }
}

#[test]
fn short_ids_are_completed() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let whole = id.parse::<backtrail::SessionId>().unwrap().short();
    for letters in 1..=4 {
        let found = values(&cli, &["show", &whole[..letters]]);
        assert!(found.contains(&short(&id)), "{letters}: {found:?}");
    }
    assert!(values(&cli, &["show", &whole[..7]]).contains(&whole));
}
