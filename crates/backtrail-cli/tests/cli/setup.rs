//! `setup` installs hooks, removes them without a trace, and never damages settings (F35).

mod modules;
mod refused;
mod status;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::kit::{Cli, Ran, finish, snapshot};
use crate::pty::{self, Terminal};

/// A home directory, and the program to set it up with.
struct SetupHome {
    cli: Cli,
    home: PathBuf,
}

/// The directories by which agents are found.
const HOMES: [&str; 8] = [
    ".claude",
    ".codex",
    ".gemini",
    ".qwen",
    ".copilot",
    ".cline",
    ".config/opencode",
    ".pi/agent",
];

impl SetupHome {
    fn new() -> Self {
        let cli = Cli::new();
        let home = cli.work().with_file_name("home");
        std::fs::create_dir(&home).unwrap();
        Self { cli, home }
    }

    /// Creates the directories of all agents.
    fn with_agents() -> Self {
        let home = Self::new();
        for dir in HOMES {
            std::fs::create_dir_all(home.home.join(dir)).unwrap();
        }
        home
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.home.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.cli.command(&[&["setup"], args].concat());
        command
            .env("HOME", &self.home)
            .env("PATH", "/usr/bin:/bin")
            .env_remove("QWEN_HOME")
            .env_remove("COPILOT_HOME")
            .env_remove("CLINE_DIR");
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        finish(&mut self.command(args), b"")
    }

    fn setup(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran
    }

    /// Returns everything below the home directory: the mode, and a file's content or a link's target.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut tree = BTreeMap::new();
        collect(&self.home, &mut tree);
        tree
    }
}

fn collect(dir: &Path, tree: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        let content = if found.is_symlink() {
            std::fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else if found.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        if found.is_dir() {
            collect(&path, tree);
        }
        tree.insert(path, (found.permissions().mode(), content));
    }
}

/// The files that are changed or created for each agent.
const FILES: [&str; 9] = [
    ".claude/settings.json",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".copilot/hooks/backtrail.json",
    ".cline/hooks/PreToolUse",
    ".cline/hooks/TaskStart",
    ".config/opencode/plugin/backtrail.js",
    ".pi/agent/extensions/backtrail.ts",
];

// F35
#[test]
fn f35_every_agent_gets_its_hooks_once_and_loses_them_without_a_trace() {
    let home = SetupHome::with_agents();
    home.write(
        ".claude/settings.json",
        "{\n    // mine\n    \"model\": \"opus\", \n}\r\n",
    );
    home.write(".qwen/settings.json", "\u{feff}{\"a\":1}");
    home.write(".gemini/settings.json", "");
    std::fs::create_dir(home.home.join(".config/opencode/plugin")).unwrap();
    let before = home.tree();
    let looked = home.setup(&["--dry-run"]);
    assert!(looked.stderr.contains("nothing was changed"), "{looked:#?}");
    assert_eq!(home.tree(), before);

    let done = home.setup(&["--yes", "--json"]).json();
    assert_eq!(done["done"], true);
    assert_eq!(done["agents"].as_array().unwrap().len(), 8);
    for file in FILES {
        let text = home.read(file);
        assert!(text.contains("added by backtrail setup"), "{file}: {text}");
        assert!(
            text.contains(env!("CARGO_BIN_EXE_backtrail")),
            "{file}: {text}"
        );
    }
    let mode = |file: &str| {
        home.home
            .join(file)
            .metadata()
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode(".cline/hooks/PreToolUse") & 0o777, 0o700);
    assert_eq!(
        home.read(".claude/settings.json.backtrail-backup"),
        "{\n    // mine\n    \"model\": \"opus\", \n}\r\n"
    );

    let installed = home.tree();
    let again = home.setup(&["--yes", "--json"]).json();
    assert_eq!(again["done"], false, "{again}");
    assert_eq!(home.tree(), installed);

    home.setup(&["--remove", "--yes"]);
    assert_eq!(home.tree(), before);
    let none = home.setup(&["--remove", "--yes"]);
    assert!(none.stderr.contains("no hooks to remove"), "{none:#?}");
}

#[test]
fn an_agent_that_is_named_is_set_up_even_if_it_was_never_used() {
    let home = SetupHome::new();
    let none = home.setup(&["--yes"]);
    assert!(
        none.stderr.contains("not found: Claude Code, Codex"),
        "{none:#?}"
    );
    for agent in [
        "claude", "codex", "gemini", "qwen", "copilot", "cline", "opencode", "pi",
    ] {
        home.setup(&["--yes", agent]);
        assert!(!home.tree().is_empty(), "{agent}");
        home.setup(&["--remove", "--yes", agent]);
        assert!(home.tree().is_empty(), "{agent}: {:?}", home.tree());
    }
}

/// Every command takes every common name of an agent, and suggests the right one for a wrong one.
#[test]
fn an_agent_has_the_same_names_everywhere() {
    let home = SetupHome::new();
    for name in ["claude", "claude-code", "Claude Code", "CLAUDE_CODE"] {
        let ran = home.setup(&[name, "--dry-run", "--json"]);
        assert_eq!(ran.json()["agents"][0]["agent"], "claude-code", "{ran:#?}");
        let ran = home
            .cli
            .run(&["import", "--from", name, "--dry-run", "--json"]);
        let agents = ran.json()["agents"].clone();
        let agents: Vec<&String> = agents.as_object().unwrap().keys().collect();
        assert_eq!(agents, ["claude-code"], "{ran:#?}");
        let ran = home.cli.run(&["hook", name, "--event", "Stop", "{}"]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
    }
    for (words, similar) in [
        (&["setup", "claud"][..], "'claude'"),
        (&["setup", "gemmini"], "'gemini'"),
        (&["import", "--from", "gemini-ci"], "'gemini-cli'"),
        (&["run", "--agent", "codx", "--", "true"], "'codex'"),
        (&["export", "latest", "--to", "coddex"], "'codex'"),
    ] {
        let ran = home.cli.run(words);
        assert_ne!(ran.code, 0, "{ran:#?}");
        assert!(ran.stderr.contains(similar), "{ran:#?}");
    }
}

#[test]
fn variables_that_move_an_agents_settings_are_respected() {
    let home = SetupHome::new();
    let place = home.home.join("elsewhere");
    for (agent, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/backtrail.json"),
        ("cline", "CLINE_DIR", "hooks/PreToolUse"),
        (
            "opencode",
            "XDG_CONFIG_HOME",
            "opencode/plugin/backtrail.js",
        ),
        ("pi", "PI_CODING_AGENT_DIR", "extensions/backtrail.ts"),
    ] {
        let mut command = home.command(&["--yes", agent]);
        let ran = finish(command.env(variable, &place), b"");
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(place.join(file).is_file(), "{agent}");
        let mut command = home.command(&["--remove", "--yes", agent]);
        finish(command.env(variable, &place), b"");
        assert!(!place.exists(), "{agent}");
    }
}

#[test]
fn settings_say_what_each_agent_needs() {
    let home = SetupHome::with_agents();
    home.setup(&["--yes"]);
    let json = |path: &str| -> Value { serde_json::from_str(&home.read(path)).unwrap() };
    let claude = json(".claude/settings.json");
    let events: Vec<&String> = claude["hooks"].as_object().unwrap().keys().collect();
    // One that a version of Claude Code does not know makes it ignore the whole file.
    assert_eq!(
        events,
        [
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "SubagentStop",
            "Stop",
            "SessionEnd"
        ]
    );
    let handler = &claude["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!(
        (&handler["type"], &handler["timeout"]),
        (&"command".into(), &5.into())
    );
    let command = handler["command"].as_str().unwrap();
    assert!(
        command.contains("hook claude-code --event PreToolUse"),
        "{command}"
    );
    let gemini = &json(".gemini/settings.json")["hooks"]["BeforeTool"][0]["hooks"][0];
    assert_eq!(
        (&gemini["timeout"], &gemini["name"]),
        (&5000.into(), &"backtrail".into())
    );
    // Codex cuts the end of a session after three seconds.
    let codex = &json(".codex/hooks.json")["hooks"]["SessionEnd"][0]["hooks"][0];
    assert_eq!(codex["timeout"], 3);
    let copilot = json(".copilot/hooks/backtrail.json");
    assert_eq!(copilot["version"], 1);
    let handler = &copilot["hooks"]["preToolUse"][0];
    assert!(
        handler["bash"]
            .as_str()
            .unwrap()
            .contains("--event preToolUse")
    );
    assert_eq!(handler["timeoutSec"], 5);
}

/// A store that was named is the one that hooks use.
#[test]
fn hooks_use_the_store_that_was_named() {
    let home = SetupHome::with_agents();
    let ran = home.run(&["--yes", "--store", "my store"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let store = home.cli.work().canonicalize().unwrap().join("my store");
    let store = store.to_str().unwrap();
    for file in FILES {
        let text = home.read(file);
        assert!(text.contains("--store"), "{file}: {text}");
        assert!(text.contains(store), "{file}: {text}");
    }
}

#[test]
fn nothing_is_changed_unless_the_user_agrees() {
    let home = SetupHome::with_agents();
    let before = home.tree();
    let ran = home.run(&[]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("pass --yes"), "{ran:#?}");
    assert_eq!(home.tree(), before);
}

#[test]
fn on_a_terminal_it_asks_once() {
    if !pty::is_there() {
        return;
    }
    let home = SetupHome::with_agents();
    let before = home.tree();
    let mut terminal = Terminal::start(&home.command(&[]));
    terminal.wait_for("Change 15 files? [y/N]");
    terminal.type_keys("n\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("nothing was changed"), "{screen}");
    assert_eq!(home.tree(), before);
    let mut terminal = Terminal::start(&home.command(&[]));
    terminal.wait_for("[y/N]");
    terminal.type_keys("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("hooks installed"), "{screen}");
    assert_eq!(screen.matches("[y/N]").count(), 1, "{screen}");
}

#[test]
fn the_plan_fits_on_the_screen() {
    let cli = Cli::new();
    let args = ["setup", "claude", "codex", "cline", "pi", "--dry-run"];
    snapshot("setup", &cli, &args, &[]);
}

/// A script for Cline is guarded like the command lines.
// F35
#[test]
fn f35_a_script_is_silent_without_the_program() {
    let home = SetupHome::with_agents();
    home.setup(&["--yes", "cline"]);
    let path = home.home.join(".cline/hooks/PreToolUse");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace(env!("CARGO_BIN_EXE_backtrail"), "/nowhere/backtrail"),
    )
    .unwrap();
    let mut script = Command::new(&path);
    let ran = finish(script.env("PATH", "/usr/bin:/bin"), &[b'x'; 200_000]);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "", ""));
}
