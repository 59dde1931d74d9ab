//! `run` in a terminal: Ctrl-C, Ctrl-\, Ctrl-Z and `fg`, the window's size, and a
//! terminal that goes away.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::kit::Cli;
use crate::pty::{self, CTRL_BACKSLASH, CTRL_C, CTRL_Z, Terminal};
use crate::run_signals::{UNTIL_TOLD, WAYS};

/// Starts a run in a terminal; its command is a line for bash.
fn start(cli: &Cli, line: &str) -> Terminal {
    start_as(cli, WAYS[0], line)
}

fn start_as(cli: &Cli, way: &[&str], line: &str) -> Terminal {
    Terminal::start(&cli.command(&[way, &["--", "bash", "-c", line]].concat()))
}

#[test]
fn ctrl_c_ends_the_command_and_we_still_report_what_it_did() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let keys = [(CTRL_C, 130), (CTRL_BACKSLASH, 131)];
    for (way, (key, code)) in WAYS.iter().flat_map(|way| keys.map(|it| (way, it))) {
        let mut terminal = Terminal::start(&cli.command(&[way, &["--", "cat"][..]].concat()));
        terminal.type_keys("up\n");
        // What is typed, and then what the command makes of it.
        terminal.wait_for("up\r\nup");
        terminal.type_keys(key);
        terminal.wait_for("backtrail: ");
        let (ended, screen) = terminal.end();
        assert_eq!(ended, code, "{screen}");
    }
}

/// Starts a run whose command has ended, while we do not come to an end: nobody
/// reads our report yet.
fn closing(cli: &Cli) -> Terminal {
    let made = Command::new("mkfifo")
        .arg(cli.work().join("report"))
        .status();
    assert!(made.unwrap().success());
    let run = [
        "run", "--report", "report", "--title", "closing", "--", "true",
    ];
    let terminal = Terminal::start(&cli.command(&run));
    // The run is recorded when all the rest is done.
    while !recorded(cli) {
        std::thread::yield_now();
    }
    terminal
}

fn recorded(cli: &Cli) -> bool {
    let sessions = std::fs::read_dir(cli.store().join("sessions"));
    let sessions = sessions.into_iter().flatten().flatten();
    let trails = sessions.map(|session| session.path().join("0000.jsonl"));
    let texts = trails.filter_map(|trail| std::fs::read_to_string(trail).ok());
    texts
        .into_iter()
        .any(|text| text.contains(r#""type":"run""#))
}

/// Who presses Ctrl-C once too often does not cut off what is kept of the command.
#[test]
fn after_the_command_a_single_ctrl_c_does_not_end_us() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut terminal = closing(&cli);
    terminal.type_keys(CTRL_C);
    terminal.wait_for("^C");
    let report = pty::read_fifo(&cli.work().join("report"));
    assert!(report.contains(r#""exit_code":0"#), "{report}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn after_the_command_a_second_ctrl_c_ends_us() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let (code, screen) = closing(&cli).type_to_the_end(CTRL_C);
    assert_eq!(code, 130, "{screen}");
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn a_command_that_handles_ctrl_c_gets_it_once_and_continues() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    // What comes while a trap is at work a shell may lose: it answers afterwards.
    let line = "n=0; m=0; trap 'n=$((n+1))' INT; trap 'exit $n' QUIT; echo up; \
                while ((SECONDS < 60)); do ((m == n)) || { m=$n; echo caught $m.; }; done";
    let mut terminal = start(&cli, line);
    terminal.wait_for("up");
    for n in 1..=20 {
        terminal.type_keys(CTRL_C);
        terminal.wait_for(&format!("caught {n}."));
    }
    terminal.type_keys(CTRL_BACKSLASH);
    let (code, screen) = terminal.end();
    assert_eq!(code, 20, "{screen}");
}

#[test]
fn the_command_sees_the_terminal_and_its_size_and_hears_when_it_changes() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let line = "test -t 0 && test -t 1 && test -t 2 && echo a terminal; stty size; \
                trap 'stty size; exit 5' WINCH";
    for way in WAYS {
        let mut terminal = start_as(&cli, way, &format!("{line}; {UNTIL_TOLD}"));
        terminal.wait_for("a terminal");
        terminal.wait_for("24 80");
        terminal.wait_for("up");
        terminal.resize(50, 132);
        terminal.wait_for("50 132");
        let (code, screen) = terminal.end();
        assert_eq!(code, 5, "{screen}");
    }
}

/// Starts a shell with job control, for a person who types and sees no echo. Its
/// prompt is `1> `, that of a shell in it `2> `.
fn shell(cli: &Cli) -> Terminal {
    let mut bash = Command::new("bash");
    bash.args(INTERACTIVE)
        .current_dir(cli.work())
        .env("BACKTRAIL_HOME", cli.store())
        .env("BACKTRAIL", env!("CARGO_BIN_EXE_backtrail"))
        .env("SHLVL", "0")
        .env("PS1", "$SHLVL> ")
        .env("HISTFILE", "")
        .env("TERM", "dumb")
        .env_remove("BACKTRAIL_SESSION");
    let mut terminal = Terminal::start(&bash);
    terminal.wait_for("1> ");
    terminal.type_keys("stty -echo; echo qui''et\n");
    terminal.wait_for("quiet");
    terminal.wait_for("1> ");
    terminal
}

const INTERACTIVE: [&str; 4] = ["--norc", "--noprofile", "--noediting", "-i"];

/// Sees a job stop and the shell come back, and calls for the job again.
fn stopped_and_called_back(terminal: &mut Terminal) {
    terminal.wait_for("Stopped");
    terminal.wait_for("1> ");
    terminal.type_keys("echo the shell is here\n");
    terminal.wait_for("the shell is here");
    terminal.wait_for("1> ");
    terminal.type_keys("fg\n");
}

/// Sees a job end with our summary and exit code 6, and leaves the shell.
fn ends_with_6(mut terminal: Terminal) {
    terminal.wait_for("backtrail: ");
    terminal.wait_for("1> ");
    terminal.type_keys("echo code=$?\n");
    terminal.wait_for("code=6");
    terminal.wait_for("1> ");
    terminal.type_keys("exit 0\n");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    if !pty::is_there() {
        return;
    }
    for way in WAYS {
        let cli = Cli::new();
        let mut terminal = shell(&cli);
        let line = "echo up; while read a && [ $a != end ]; do echo read $a; done; exit 6";
        let way = way.join(" ");
        terminal.type_keys(&format!("$BACKTRAIL {way} -- bash -c '{line}'\n"));
        terminal.wait_for("up");
        for round in 1..=20 {
            terminal.type_keys(CTRL_Z);
            stopped_and_called_back(&mut terminal);
            terminal.type_keys(&format!("{round}\n"));
            terminal.wait_for(&format!("read {round}"));
        }
        terminal.type_keys("end\n");
        ends_with_6(terminal);
    }
}

/// A program with a screen of its own puts the terminal in order before it stops;
/// the shell must not be back before that.
#[test]
fn a_command_that_handles_ctrl_z_stops_the_job_when_it_stops_itself() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut terminal = shell(&cli);
    let line = r#"trap "echo in order; kill -STOP \$\$" TSTP; trap "echo on; exit 6" CONT"#;
    terminal.type_keys(&format!(
        "$BACKTRAIL run -- bash -c '{line}; {UNTIL_TOLD}'\n"
    ));
    terminal.wait_for("up");
    terminal.type_keys(CTRL_Z);
    terminal.wait_for("in order");
    stopped_and_called_back(&mut terminal);
    terminal.wait_for("on");
    ends_with_6(terminal);
}

#[test]
fn a_command_that_does_not_stop_for_ctrl_z_keeps_the_terminal() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut terminal = shell(&cli);
    let line = r#"trap "" TSTP; echo up; read a; echo read $a; exit 6"#;
    terminal.type_keys(&format!("$BACKTRAIL run -- bash -c '{line}'\n"));
    terminal.wait_for("up");
    terminal.type_keys(CTRL_Z);
    terminal.type_keys("on\n");
    terminal.wait_for("read on");
    ends_with_6(terminal);
}

#[test]
fn a_command_that_stops_on_its_own_stops_the_job() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut terminal = shell(&cli);
    let line = "kill -STOP $$; echo on; exit 6";
    terminal.type_keys(&format!("$BACKTRAIL run -- bash -c '{line}'\n"));
    stopped_and_called_back(&mut terminal);
    terminal.wait_for("on");
    ends_with_6(terminal);
}

/// A shell makes a process group of its own, which no `fg` outside of it reaches.
#[test]
fn a_shell_in_a_run_is_suspended_and_comes_back() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut terminal = shell(&cli);
    let inner = INTERACTIVE.join(" ");
    terminal.type_keys(&format!("$BACKTRAIL run -- bash {inner}\n"));
    terminal.wait_for("2> ");
    terminal.type_keys("suspend\n");
    stopped_and_called_back(&mut terminal);
    terminal.type_keys("echo the inner one\n");
    terminal.wait_for("the inner one");
    terminal.wait_for("2> ");
    terminal.type_keys("exit 6\n");
    ends_with_6(terminal);
}

#[test]
fn a_command_in_the_background_is_stopped_when_it_reads_and_comes_back() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut terminal = shell(&cli);
    let line = "read a; echo read $a; exit 6";
    terminal.type_keys(&format!("set -b; $BACKTRAIL run -- bash -c '{line}' &\n"));
    terminal.wait_for("Stopped");
    terminal.type_keys("fg\n");
    terminal.type_keys("on\n");
    terminal.wait_for("read on");
    ends_with_6(terminal);
}

/// A window that is closed: the command hears of it, and we stay to the end.
#[test]
fn a_terminal_that_closes_ends_the_command_and_not_us() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let trap = "trap 'echo > heard; exit 9' HUP";
    let mut terminal = start(&cli, &format!("{trap}; {UNTIL_TOLD}"));
    terminal.wait_for("up");
    let mut child = terminal.hang_up();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(9), None));
    assert!(cli.work().join("heard").exists());
}

#[test]
fn lines_of_ours_are_dim_in_a_terminal_unless_colours_are_not_wanted() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut command = cli.command(&["run", "--", "true"]);
    let screen = Terminal::start(command.env("TERM", "xterm")).end().1;
    assert!(screen.starts_with("\u{1b}[2mbacktrail: "), "{screen:?}");
    let screen = Terminal::start(command.env("NO_COLOR", "1")).end().1;
    assert!(screen.starts_with("backtrail: "), "{screen:?}");
}
