//! `run`: signals that a process sends, and dispositions that are inherited.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::Cli;

/// Says that it is up, then goes on until a signal comes. (A shell that waits for
/// something can miss one as it begins to wait.)
pub(crate) const UNTIL_TOLD: &str = "echo up; while ((SECONDS < 60)); do :; done";

/// A run, and one that follows the session of an agent: they treat the command alike.
pub(crate) const WAYS: [&[&str]; 2] = [&["run"], &["run", "--agent", "codex"]];

/// A run whose command is up: it has said so.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that is no script says what it is told.
        child.stdin.as_mut().unwrap().write_all(b"up\n").unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        Self { child, stdout }
    }

    fn kill(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns the exit code, what the command still said, and what we said.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        let mut ours = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut ours).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), None, "we were killed ourselves");
        (status.code(), said, ours)
    }
}

/// The signals that end a program, sent to us alone: the command gets them.
#[test]
fn a_signal_sent_to_us_alone_ends_the_command_and_not_us() {
    let cli = Cli::new();
    let signals = [
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
    ];
    for (run, (signal, code)) in WAYS.iter().flat_map(|way| signals.map(|it| (way, it))) {
        let running = Running::start(cli.command(&[run, &["--", "cat"][..]].concat()));
        running.kill(signal);
        let (ended, _, ours) = running.end();
        assert_eq!(ended, Some(code), "{ours}");
        assert!(ours.starts_with("backtrail: "), "{ours}");
    }
}

/// What the command makes of a signal is its own affair.
#[test]
fn a_command_that_handles_a_signal_ends_as_it_likes() {
    let cli = Cli::new();
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
    ] {
        let line = format!("trap 'echo got {name}; exit 7' {name}; {UNTIL_TOLD}");
        let running = Running::start(cli.command(&["run", "--", "bash", "-c", &line]));
        running.kill(signal);
        let (ended, said, ours) = running.end();
        assert_eq!((ended, said), (Some(7), format!("got {name}\n")));
        assert!(ours.starts_with("backtrail: "), "{ours}");
    }
}

/// A command that signals its whole group, us included, hears it once.
#[test]
fn a_signal_that_the_command_sends_itself_does_not_come_back_to_it() {
    let cli = Cli::new();
    // In a group of its own, or it would be ours.
    let line = "trap 'n=$((n+1))' TERM; \
                for i in {1..20}; do kill -TERM 0; for j in {1..2000}; do :; done; done; echo $n";
    let mut command = Command::new("setsid");
    let run = cli.command(&["run", "--", "bash", "-c", line]);
    command.arg("--wait").arg(run.get_program());
    command.args(run.get_args()).current_dir(cli.work());
    for (name, value) in run.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "20\n");
    assert_eq!(output.status.code(), Some(0));
}

/// Prints which signals are ignored, caught and blocked.
const DISPOSITIONS: [&str; 3] = ["grep", "^Sig\\(Ign\\|Cgt\\|Blk\\):", "/proc/self/status"];

/// The command starts with the dispositions that it would have without us, also
/// where some are ignored, as under nohup or in the background of a script.
#[test]
fn the_command_inherits_the_dispositions_that_we_were_given() {
    let cli = Cli::new();
    let program = env!("CARGO_BIN_EXE_backtrail");
    for ignored in [
        "",
        "trap '' HUP;",
        "trap '' INT QUIT;",
        "trap '' TERM TSTP;",
    ] {
        let [grep, pattern, file] = DISPOSITIONS;
        let show = format!("{grep} '{pattern}' {file}");
        let line = format!("{ignored} {show}; echo with; {program} run -- {show}");
        let output = Command::new("bash")
            .args(["-c", &line])
            .current_dir(cli.work())
            .env("BACKTRAIL_HOME", cli.store())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (without, with) = said.split_once("with\n").unwrap();
        assert_eq!(with, without, "{ignored}");
        assert_eq!(without.lines().count(), 3);
    }
}

/// A signal that we were told to ignore is ignored, by us and by the command.
#[test]
fn a_run_under_nohup_outlives_the_terminal() {
    let cli = Cli::new();
    let line = format!("trap 'echo got TERM; exit 7' TERM; {UNTIL_TOLD}");
    let mut command = Command::new("bash");
    let program = env!("CARGO_BIN_EXE_backtrail");
    let outer = format!("trap '' HUP; exec {program} run -- bash -c \"$0\"");
    command
        .args(["-c", &outer, &line])
        .current_dir(cli.work())
        .env("BACKTRAIL_HOME", cli.store());
    let running = Running::start(command);
    running.kill(Signal::HUP);
    running.kill(Signal::TERM);
    let (code, said, _) = running.end();
    assert_eq!((code, said.as_str()), (Some(7), "got TERM\n"));
}
