//! `run`: a command behaves as without Backtrail, and its exit code is ours.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::kit::{Cli, Ran, finish};
use crate::run_signals::WAYS;

fn run(cli: &Cli, command: &[&str]) -> Ran {
    cli.run(&[&["run", "--"], command].concat())
}

/// Writes a file to be run, or not.
fn script(cli: &Cli, name: &str, text: &str, mode: u32) {
    let path = cli.work().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn the_exit_code_is_the_commands() {
    let cli = Cli::new();
    for way in WAYS {
        let run = |line: &str| cli.run(&[way, &["--", "sh", "-c", line]].concat());
        for (line, code) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255)] {
            assert_eq!(run(line).code, code, "{way:?} {line}");
        }
        for (signal, code) in [("TERM", 143), ("KILL", 137), ("ABRT", 134), ("PIPE", 141)] {
            let line = format!("kill -{signal} $$");
            assert_eq!(run(&line).code, code, "{way:?} {line}");
        }
    }
}

#[test]
fn a_command_that_is_not_found_is_127() {
    let cli = Cli::new();
    let ran = run(&cli, &["no-such-command"]);
    assert_eq!(ran.code, 127, "{ran:#?}");
    let said = "error: cannot run no-such-command: command not found";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    assert_eq!(run(&cli, &["./gone"]).code, 127);
    assert_eq!(run(&cli, &[""]).code, 127);
    script(&cli, "orphan", "#!/no/such/interpreter\n", 0o755);
    let ran = run(&cli, &["./orphan"]);
    assert_eq!(ran.code, 127);
    assert!(ran.stderr.contains("interpreter"), "{ran:#?}");
    // Nothing was written for them.
    assert!(!cli.store().exists());
    assert!(!ran.stderr.contains("no changes"), "{ran:#?}");
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    let cli = Cli::new();
    script(&cli, "plain", "exit 0\n", 0o644);
    script(&cli, "no-shebang", "exit 0\n", 0o755);
    script(&cli, "no-interpreter", "#!./plain\n", 0o755);
    let cases = [
        ("./plain", "make it executable: chmod +x ./plain"),
        ("./no-interpreter", "not executable"),
        ("./", "is a directory"),
        ("./plain/x", "Not a directory"),
        ("./no-shebang", "backtrail run -- sh ./no-shebang"),
    ];
    for (command, said) in cases {
        let ran = run(&cli, &[command]);
        assert_eq!(ran.code, 126, "{ran:#?}");
        assert!(ran.stderr.contains(said), "{ran:#?}");
        assert_eq!(ran.stdout, "");
        // Only the system itself knows the last one.
        assert_eq!(cli.store().exists(), command == "./no-shebang");
    }
}

/// What the system alone refuses is a run that failed, and its session says so.
#[test]
fn a_command_that_the_system_refuses_marks_its_session_failed() {
    let cli = Cli::new();
    script(&cli, "no-shebang", "exit 0\n", 0o755);
    let ran = cli.run(&["run", "--title", "mine", "--", "./no-shebang"]);
    assert_eq!(ran.code, 126, "{ran:#?}");
    let listed = cli.run(&["list", "--json"]).json();
    assert_eq!(listed[0]["title"], "mine (failed: not started)", "{listed}");
    let log = cli.run(&["log"]).stdout;
    assert!(log.contains("(failed, exit 126)"), "{log}");
    let shown = cli.run(&["show", "latest"]).stdout;
    assert!(shown.contains("126"), "{shown}");
    // A session that has more than this run keeps its title.
    let id = cli.new_session("hello");
    assert_eq!(
        cli.run(&["run", "--session", &id, "--", "./no-shebang"])
            .code,
        126
    );
    let title = cli.run(&["title", &id, "--json"]).json();
    assert_eq!(title["title"], "hello", "{title}");
}

/// PATH, mode and interpreter are checked as the system will look at them: in every directory
/// of PATH, for scripts whose interpreters are scripts, and for programs.
#[test]
fn what_cannot_start_is_found_before_anything_is_written() {
    let cli = Cli::new();
    for dir in ["first", "second"] {
        std::fs::create_dir(cli.work().join(dir)).unwrap();
    }
    script(&cli, "first/tool", "#!/no/such/interpreter\n", 0o755);
    script(&cli, "first/plain", "exit 0\n", 0o644);
    script(&cli, "orphan", "#!/no/such/interpreter\n", 0o755);
    let nested = format!("#!{}/orphan\n", cli.work().display());
    script(&cli, "nested", &nested, 0o755);
    script(&cli, "crlf", "#!/bin/sh\r\nexit 0\r\n", 0o755);
    // A program whose loader is not there.
    let mut program = std::fs::read(env!("CARGO_BIN_EXE_backtrail")).unwrap();
    let loader = program.windows(4).position(|bytes| bytes == b"/lib");
    let is_dynamic = loader.is_some_and(|at| at < 4096);
    if let Some(at) = loader.filter(|_| is_dynamic) {
        program[at..at + 4].copy_from_slice(b"/no/");
        std::fs::write(cli.work().join("program"), program).unwrap();
        let mode = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(cli.work().join("program"), mode).unwrap();
    }
    let path = format!("{0}/first:{0}:{0}/second", cli.work().display());
    let run_with_path = |command: &str| {
        let mut run = cli.command(&["run", "--", command]);
        finish(run.env("PATH", &path), b"")
    };
    for (command, code) in [
        ("./nested", 127),
        ("./crlf", 127),
        ("tool", 127),
        ("plain", 126),
        ("./program", 127),
    ] {
        if command == "./program" && !is_dynamic {
            continue;
        }
        let ran = run_with_path(command);
        assert_eq!(ran.code, code, "{command}: {ran:#?}");
        assert!(!cli.store().exists(), "{command}");
    }
    // The system goes on to the next directory of PATH, and so do we.
    script(&cli, "second/tool", "#!/bin/sh\nexit 5\n", 0o755);
    let ran = run_with_path("tool");
    assert_eq!(ran.code, 5, "{ran:#?}");
}

#[test]
fn our_own_failure_is_125_and_nothing_is_started() {
    let cli = Cli::new();
    let started = ["touch", "started"];
    let wrong: [&[&str]; 3] = [
        &["run", "--session", "nonsense", "--"],
        &["run", "--no-such-flag", "--"],
        &["--store", "file", "run", "--"],
    ];
    script(&cli, "file", "not a store", 0o644);
    for args in wrong {
        let ran = cli.run(&[args, &started[..]].concat());
        assert_eq!(ran.code, 125, "{args:?}: {ran:#?}");
        assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
        assert!(!cli.work().join("started").exists(), "{args:?}");
    }
    assert_eq!(cli.run(&["run"]).code, 125, "there is no command");
    assert_eq!(cli.run(&["run", "--help"]).code, 0);
}

#[test]
fn options_after_the_command_belong_to_it() {
    let cli = Cli::new();
    for args in [
        &["run", "--", "echo", "--json", "--title", "-x", "--", "a b"][..],
        &["run", "echo", "--json", "--title", "-x", "--", "a b"],
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.stdout, "--json --title -x -- a b\n", "{ran:#?}");
    }
}

/// stdin arrives byte for byte, stdout leaves byte for byte; on stderr a few lines
/// of ours follow the command's.
#[test]
fn pipes_on_all_three_streams_are_the_commands_own() {
    let cli = Cli::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let mut command = cli.command(&["run", "--", "sh", "-c", "printf 'a\\377' >&2; cat"]);
    command.stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &sent));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.stdout == bytes, "stdout differs from stdin");
    let ours = output.stderr.strip_prefix(b"a\xff").unwrap();
    let ours = std::str::from_utf8(ours).unwrap();
    assert!(ours.starts_with("backtrail: "), "{ours}");
    assert!(ours.lines().count() <= 4, "{ours}");
    assert!(!ours.contains('\u{1b}'), "no colours in a pipe: {ours:?}");
}

/// A reader that stops ends the command, as it would without Backtrail.
#[test]
fn a_pipe_that_closes_early_ends_the_command() {
    let cli = Cli::new();
    let mut command = cli.command(&["run", "--", "yes"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = [0; 2];
    std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn the_command_finds_its_session_and_its_store() {
    let cli = Cli::new();
    let line = r#"echo "$BACKTRAIL_SESSION"; echo "$BACKTRAIL_HOME""#;
    let ran = run(&cli, &["sh", "-c", line]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let listed = cli.run(&["list", "--json"]).json();
    assert_eq!(listed[0]["id"], lines[0], "{listed}");
    assert_eq!(lines[1], cli.store().to_str().unwrap());

    // A store that is named by a flag is the command's, too, and wherever it goes.
    let ran = cli.run(&["--store", "other", "run", "--", "sh", "-c", line]);
    let other = cli.work().join("other");
    assert_eq!(ran.stdout.lines().nth(1), other.to_str(), "{ran:#?}");
    let id = ran.stdout.lines().next().unwrap();
    assert!(other.join("sessions").join(id).is_dir(), "{ran:#?}");
}

#[test]
fn a_run_joins_the_session_that_is_named_or_around_it() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let print = ["sh", "-c", "echo $BACKTRAIL_SESSION"];
    let ran = cli.run(&[&["run", "--session", &id[..8], "--"], &print[..]].concat());
    assert_eq!(ran.stdout.trim_end(), id, "{ran:#?}");
    let mut nested = cli.command(&[&["run", "--"], &print[..]].concat());
    let ran = finish(nested.env("BACKTRAIL_SESSION", &id), b"");
    assert_eq!(ran.stdout.trim_end(), id, "{ran:#?}");
    let ran = run(&cli, &print);
    assert_ne!(ran.stdout.trim_end(), id, "without either it is a new one");
}

#[test]
fn a_command_may_delete_the_directory_it_runs_in() {
    let cli = Cli::new();
    let ran = run(&cli, &["sh", "-c", "rmdir \"$PWD\" && exit 4"]);
    assert_eq!(ran.code, 4, "{ran:#?}");
    assert!(!cli.work().exists());
    assert!(ran.stderr.contains("backtrail: "), "{ran:#?}");
}

/// What would fail afterwards is refused before.
#[test]
fn a_wrong_label_or_report_is_refused_before_anything_starts() {
    let cli = Cli::new();
    let wrong: [(&[&str], &str); 5] = [
        (&["--label", "last"], "is reserved; choose another label"),
        (
            &["--label", "last", "--unprotected"],
            "is reserved; choose another label",
        ),
        (&["--report", "no/such/dir/r.json"], "No such file"),
        (&["--report", "."], "is a directory"),
        (&["--report", "no/"], "cannot write the report"),
    ];
    for (args, words) in wrong {
        let ran = cli.run(&[&["run"], args, &["--", "touch", "started"]].concat());
        assert_eq!(ran.code, 125, "{args:?}: {ran:#?}");
        let begins = "error: the command was not started: ";
        assert!(ran.stderr.starts_with(begins), "{ran:#?}");
        assert!(ran.stderr.contains(words), "{args:?}: {ran:#?}");
        assert!(!cli.work().join("started").exists(), "{args:?}");
        assert!(!cli.store().exists(), "{args:?}");
    }
}

#[test]
fn a_report_that_fails_later_loses_nothing_else() {
    let cli = Cli::new();
    let line = "echo new > new; rmdir out; exit 3";
    std::fs::create_dir(cli.work().join("out")).unwrap();
    let ran = cli.run(&["run", "--report", "out/r.json", "--", "sh", "-c", line]);
    assert_eq!(ran.code, 125, "{ran:#?}");
    assert!(
        ran.stderr.contains("backtrail: 2 files changed"),
        "{ran:#?}"
    );
    let said = "error: the command exited with code 3 and everything was saved, \
                but the report could not be written";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    let log = cli.run(&["log", "--json"]).json();
    assert_eq!(log[0]["reason"], "run-end", "{log:#}");
}

/// A relative path of the store still works if the command changes its directory.
#[test]
fn a_relative_store_is_the_same_one_for_the_command() {
    let cli = Cli::new();
    let line = "mkdir sub && cd sub && printf %s \"$BACKTRAIL_HOME\"";
    for args in [&["run", "--"][..], &["--store", "../store", "run", "--"]] {
        let mut command = cli.command(&[args, &["sh", "-c", line]].concat());
        command.env("BACKTRAIL_HOME", "../store");
        let ran = finish(&mut command, b"");
        let given = std::path::Path::new(&ran.stdout);
        assert!(given.is_absolute(), "{ran:#?}");
        let same = given.canonicalize().unwrap() == cli.store().canonicalize().unwrap();
        assert!(same, "{ran:#?}");
        std::fs::remove_dir(cli.work().join("sub")).unwrap();
    }
}
