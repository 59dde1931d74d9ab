//! `setup` installs the line and removes it to the byte; another command that is there comes
//! first, and can neither break ours nor be broken by it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::kit::{Cli, Ran, finish};

/// A home directory with Claude Code's settings.
struct Home {
    cli: Cli,
    settings: PathBuf,
}

impl Home {
    fn new(settings: Option<&str>) -> Self {
        let cli = Cli::new();
        let settings_dir = cli.work().with_file_name("home").join(".claude");
        fs::create_dir_all(&settings_dir).unwrap();
        let home = Self {
            cli,
            settings: settings_dir.join("settings.json"),
        };
        if let Some(text) = settings {
            fs::write(&home.settings, text).unwrap();
        }
        home
    }

    fn with_command(command: &str) -> Self {
        let text = serde_json::json!({"statusLine": {"type": "command", "command": command}});
        Self::new(Some(&text.to_string()))
    }

    fn setup(&self, args: &[&str]) -> Ran {
        let mut command = self.cli.command(&[&["setup", "claude"], args].concat());
        let home = self.settings.parent().unwrap().parent().unwrap();
        command.env("HOME", home).env("PATH", "/usr/bin:/bin");
        let ran = finish(&mut command, b"");
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.settings).unwrap()
    }

    fn line(&self) -> String {
        let settings: Value =
            serde_json::from_str(self.text().trim_start_matches('\u{feff}')).unwrap();
        settings["statusLine"]["command"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Runs a command line as the agent does.
    fn show(&self, line: &str) -> Ran {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(self.cli.work())
            .env("BACKTRAIL_HOME", self.cli.store())
            .env("HOME", "/home/of/nobody")
            .env("PATH", "/usr/bin:/bin")
            .env("NO_COLOR", "1");
        finish(&mut command, b"{\"model\":\"m-1\"}")
    }

    /// Shows the installed line, which must not fail.
    fn shown(&self) -> String {
        let ran = self.show(&self.line());
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
        ran.stdout
    }

    fn status(&self) -> Value {
        self.setup(&["--status", "--json"]).json()[0]["status_line"].clone()
    }
}

const OURS: &str = "m-1 · NOT PROTECTED (no checkpoint yet)\n";

#[test]
fn it_is_installed_once_shown_and_removed_to_the_byte() {
    for text in [
        None,
        Some("{}"),
        Some("\u{feff}{\r\n\t\"model\": \"opus\"\r\n}\r\n"),
        Some("{\"hooks\":{\"Stop\":[]}}"),
        Some(
            "{ \"statusLine\":{\"padding\":0, \"type\":\"command\",\"command\":\"\\u0065cho it's \\/mine\"} }",
        ),
    ] {
        let home = Home::new(text);
        assert_eq!(home.status(), "missing");
        let plan = home.setup(&["--dry-run"]);
        assert!(plan.stdout.contains("7 hooks, status line"), "{plan:#?}");
        home.setup(&["--yes"]);
        let installed = home.text();
        assert!(home.shown().ends_with(OURS), "{installed}");
        home.setup(&["--yes"]);
        assert_eq!(home.text(), installed);
        home.setup(&["--remove", "--yes"]);
        let left = fs::read_to_string(&home.settings).ok();
        assert_eq!(left.as_deref(), text);
    }
}

#[test]
fn an_older_one_is_updated_with_the_hooks_and_still_goes_without_a_trace() {
    for text in [None, Some("{}"), Some("{\"a\":1}")] {
        let home = Home::new(text);
        home.setup(&["--yes"]);
        let old = home.text().replace("--event Stop", "--event  Stop");
        let old = old.replace("statusline) ||", "statusline ) ||");
        assert_ne!(old, home.text());
        fs::write(&home.settings, old).unwrap();
        assert_eq!(home.status(), "outdated");
        home.setup(&["--yes"]);
        assert_eq!(home.status(), "installed");
        home.setup(&["--remove", "--yes"]);
        assert_eq!(fs::read_to_string(&home.settings).ok().as_deref(), text);
    }
}

#[test]
fn it_is_left_out_if_it_is_not_wanted() {
    let home = Home::new(None);
    home.setup(&["--yes", "--no-statusline"]);
    assert!(!home.text().contains("statusLine"), "{}", home.text());
    assert_eq!(home.status(), "missing");
    let plan = home.setup(&["--dry-run"]);
    assert!(plan.stdout.contains("add status line"), "{plan:#?}");
    home.setup(&["--yes"]);
    home.setup(&["--yes", "--no-statusline"]);
    assert_eq!(home.status(), "installed", "it only leaves it alone");
}

#[test]
fn the_command_that_was_there_comes_first_with_the_same_input() {
    let home = Home::with_command("echo \"it's $(cat)\"; printf '\\033[31mred'");
    home.setup(&["--yes"]);
    assert_eq!(home.status(), "wraps another");
    let expected = "it's {\"model\":\"m-1\"}\n\u{1b}[31mred\u{1b}[0m\n";
    assert_eq!(home.shown(), format!("{expected}{OURS}"));
}

#[test]
fn a_command_that_fails_hangs_or_never_stops_does_not_cost_our_line() {
    for (command, first) in [
        ("exit 3", ""),
        ("echo half; exit 3", "half\n"),
        ("kill -9 $$", ""),
        ("/no/such/program", ""),
        ("echo early; sleep 1000", "early\n"),
        // A process that it leaves behind keeps its output open.
        ("echo done; sleep 1000 &", "done\n"),
        ("exec </dev/null; echo unread", "unread\n"),
    ] {
        let home = Home::with_command(command);
        fs::create_dir_all(home.cli.store()).unwrap();
        let wait = "statusline.wait = \"2s\"\n";
        fs::write(home.cli.store().join("config.toml"), wait).unwrap();
        home.setup(&["--yes", "--no-import"]);
        assert_eq!(home.shown(), format!("{first}{OURS}"), "{command}");
    }
    let home = Home::with_command("yes");
    fs::create_dir_all(home.cli.store()).unwrap();
    fs::write(
        home.cli.store().join("config.toml"),
        "statusline.wait = \"100ms\"\n",
    )
    .unwrap();
    home.setup(&["--yes", "--no-import"]);
    let shown = home.shown();
    assert!(shown.len() < 70_000 && shown.ends_with(OURS));
}

#[test]
fn without_the_program_only_the_command_that_was_there_is_shown() {
    let home = Home::new(None);
    home.setup(&["--yes"]);
    let elsewhere =
        |line: &str| line.replace(env!("CARGO_BIN_EXE_backtrail"), "/nowhere/backtrail");
    let ran = home.show(&elsewhere(&home.line()));
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "", ""));

    let home = Home::with_command("echo mine; cat");
    home.setup(&["--yes"]);
    let mine = "mine\n{\"model\":\"m-1\"}";
    assert_eq!(home.show(&elsewhere(&home.line())).stdout, mine);
    // One that is too old does not know the verb.
    let old = home
        .line()
        .replace(" statusline --after", " statusbar --after");
    assert_eq!(home.show(&old).stdout, mine);
}
