//! Whatever is on stdin, the line is printed, clean and at once.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{line, status};
use crate::kit::{Cli, finish};
use crate::pty::{self, Terminal};

const UNPROTECTED: &str = "NOT PROTECTED (no checkpoint yet)\n";

#[test]
fn what_is_not_a_report_costs_the_agents_figures_alone() {
    let cli = Cli::new();
    let deep = "[".repeat(100_000);
    let nested = format!("{{\"model\":\"m\",\"x\":{deep}");
    let huge = format!("{{\"model\":\"{}\"}}", "x".repeat(4 << 20));
    let inputs: [&[u8]; 9] = [
        b"",
        b"null",
        b"{",
        b"{\"model\":{\"display_name\":",
        b"\xff\xfe\0",
        deep.as_bytes(),
        nested.as_bytes(),
        huge.as_bytes(),
        br#"{"model":5,"cost":[],"context_window":"x","rate_limits":{"five_hour":7},"cwd":{}}"#,
    ];
    for input in inputs {
        let mut command = cli.command(&["statusline"]);
        let ran = finish(command.env("NO_COLOR", "1"), input);
        let what = String::from_utf8_lossy(&input[..input.len().min(80)]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{what}");
        assert_eq!(ran.stdout, UNPROTECTED, "{what}");
    }
}

#[test]
fn text_of_the_report_is_clean_bounded_and_on_one_line() {
    let cli = Cli::new();
    let name = format!(
        "\u{1b}]0;evil\u{7}Op\u{9b}us\n\u{202e}x {}",
        "y".repeat(400)
    );
    let payload = json!({"model": {"display_name": "a\u{1b}[31mb"}, "cwd": "/no\u{1b}[2Kwhere"});
    let shown = line(&cli, &payload);
    assert!(!shown.contains(char::is_control), "{shown:?}");
    // A name with control characters is none.
    let payload = json!({"model": {"display_name": name, "id": "z".repeat(300)}});
    let shown = line(&cli, &payload);
    let model = shown.split(" · ").next().unwrap();
    assert_eq!(model, format!("{}…", "z".repeat(39)));
    let json = status(&cli, &payload, &["--json"]);
    assert!(
        !json.stdout.trim_end().contains(char::is_control),
        "{json:#?}"
    );
}

#[test]
fn an_agent_that_keeps_its_pipe_open_is_not_waited_for() {
    let cli = Cli::new();
    let mut command = cli.command(&["statusline"]);
    let began = Instant::now();
    let mut child = command
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), UNPROTECTED);
    assert!(began.elapsed() < Duration::from_secs(20));
    drop(stdin);
    let mut command = cli.command(&["statusline"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn on_a_terminal_nothing_is_read() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let mut terminal = Terminal::start(&cli.command(&["statusline"]));
    terminal.wait_for("NOT PROTECTED");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn a_warning_is_red_for_an_agent_unless_colours_are_not_wanted() {
    let cli = Cli::new();
    let red = finish(&mut cli.command(&["statusline"]), b"").stdout;
    assert!(red.contains("\u{1b}[31m"), "{red:?}");
    let plain = finish(cli.command(&["statusline"]).env("NO_COLOR", "1"), b"").stdout;
    assert_eq!(plain, UNPROTECTED);
    let never = cli.run(&["statusline", "--color", "never"]).stdout;
    assert_eq!(never, UNPROTECTED);
}
