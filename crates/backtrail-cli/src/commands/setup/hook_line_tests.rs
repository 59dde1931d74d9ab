//! Whatever the program does, the line that an agent runs is silent and exits with 0 (F35).

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::*;

/// Runs the line of a program with a payload, in a shell whose PATH has nothing of ours.
fn run(program: &Path, shell: &str, payload: &[u8]) -> (Option<i32>, String, String) {
    let program = HookProgram::new(program, None).unwrap();
    let line = program.line("claude-code", "PreToolUse", &Created::default());
    let mut child = Command::new(shell)
        .args(["-c", &line])
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The input is read to its end, or writing it would fail.
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(payload).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Creates a program from lines of sh.
#[expect(clippy::disallowed_methods, reason = "a program of the test")]
fn script(dir: &Path, name: &str, lines: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

// F35
#[test]
fn a_program_that_is_missing_fails_crashes_or_prints_rubbish_does_not_disturb() {
    let dir = tempfile::tempdir().unwrap();
    // More than a pipe holds.
    let payload = [b'x'; 300_000];
    let silent = (Some(0), String::new(), String::new());
    for (name, lines) in [
        ("refuses", "cat >/dev/null; echo no; echo no >&2; exit 2"),
        ("fails at once", "exit 1"),
        (
            "too-old",
            "echo \"error: unrecognized subcommand 'hook'\" >&2; exit 2",
        ),
        ("is killed", "kill -9 $$"),
        ("crashes", "echo '{\"a\":1}'; kill -SEGV $$"),
        ("prints rubbish", "cat >/dev/null; echo rubbish; exit 0"),
        (
            "prints $(rubbish)",
            "cat >/dev/null; echo; echo '}{'; exit 0",
        ),
        ("it's \"quiet\"", "cat >/dev/null"),
    ] {
        let program = script(dir.path(), name, lines);
        assert_eq!(run(&program, "sh", &payload), silent, "{name}");
    }
    assert_eq!(run(&dir.path().join("gone"), "sh", &payload), silent);
    assert_eq!(run(dir.path(), "sh", &payload), silent, "a directory");
}

// F35
#[test]
fn what_the_program_answers_reaches_the_agent_in_every_shell() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "printf '{\"args\":\"%s\",' \"$*\"; printf '\"input\":'; cat; printf '}'";
    for name in ["plain", "it's $HOME \"odd\""] {
        let program = script(dir.path(), name, lines);
        let wanted = "{\"args\":\"hook claude-code --event PreToolUse\",\"input\":{\"a\":1}}\n";
        for shell in ["sh", "bash", "zsh", "fish"] {
            if crate::home::in_path(Path::new(shell)).is_none() {
                eprintln!("SKIPPED: needs {shell}; the line was not run in it");
                continue;
            }
            let ran = run(&program, shell, b"{\"a\":1}");
            assert_eq!(ran, (Some(0), wanted.to_owned(), String::new()), "{shell}");
        }
    }
}

#[test]
fn the_program_and_the_mark_are_read_from_the_line() {
    for path in ["/usr/bin/backtrail", "/a b/it's/back;trail"] {
        let program = HookProgram::new(Path::new(path), Some(Path::new("/my store"))).unwrap();
        let created = Created {
            new: [Level::File, Level::Event].into(),
            tight: [Level::Root].into(),
            directories: 12,
        };
        let line = program.line("codex", "Stop", &created);
        assert_eq!(program_in(&line), Some(PathBuf::from(path)), "{line}");
        assert_eq!(Created::read(&line), Some(created), "{line}");
        assert!(line.contains("--store"), "{line}");
    }
    assert_eq!(Created::read("sh -c 'backtrail hook'"), None);
}

#[test]
fn a_path_that_is_not_text_is_refused() {
    assert!(HookProgram::new(Path::new("/a\nb"), None).is_err());
    let bytes = std::os::unix::ffi::OsStrExt::from_bytes(b"/\xff");
    let path: &std::ffi::OsStr = bytes;
    assert!(HookProgram::new(Path::new(path), None).is_err());
}
