//! The agents: where their programs are, and how a prompt is given to them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::program::variable;
use crate::scenario::Under;

/// The installed agents: what `.ci/agents` installs is read from the same file.
const INSTALLED: &str = include_str!("../../agents.txt");

/// An agent that is installed.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Its name, as Backtrail has it.
    pub(crate) name: &'static str,
    /// Its program.
    program: PathBuf,
}

/// What an agent is started with.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) port: u16,
}

/// Which session a prompt belongs to.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// A new one.
    New,
    /// The last one in the project.
    Continue,
    /// The one with this id.
    Resume(String),
}

impl Agent {
    /// Returns the agent with this name.
    pub(crate) fn named(name: &str) -> Self {
        let (name, program) = installed(name);
        Self { name, program }
    }

    /// Returns the directory of its program.
    pub(crate) fn program_dir(&self) -> &Path {
        self.program.parent().expect("a program is in a directory")
    }

    /// Returns whether the agent has hooks.
    pub(crate) fn has_hooks(&self) -> bool {
        self.name != "goose"
    }

    /// Returns whether a prompt can be added to a session without a terminal.
    pub(crate) fn can_continue(&self) -> bool {
        self.name != "cline"
    }

    /// Returns the command line that gives a prompt to the agent.
    pub(crate) fn command(&self, under: Under, start: &Start, prompt: &str) -> Vec<OsString> {
        let mut arguments = arguments(self.name, start, prompt);
        if (self.name, under) == ("codex", Under::Hooks) {
            // Otherwise it runs only hooks that somebody trusted on a terminal.
            arguments.insert(1, "--dangerously-bypass-hook-trust".to_owned());
        }
        let program = self.program.clone().into_os_string();
        let words = arguments.into_iter().map(OsString::from);
        std::iter::once(program).chain(words).collect()
    }
}

/// Returns the directory of the Node that agents run on.
pub(crate) fn node_dir() -> PathBuf {
    let (_, node) = installed("node");
    node.parent()
        .map(Path::to_owned)
        .expect("the program is in a directory")
}

/// Returns the names of what is installed.
pub(crate) fn names() -> Vec<&'static str> {
    rows().map(|row| row[0]).collect()
}

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let rows = INSTALLED.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| line.split_whitespace().collect())
}

fn installed(wanted: &str) -> (&'static str, PathBuf) {
    let row = rows().find(|row| row[0] == wanted);
    let row = row.unwrap_or_else(|| panic!("{wanted} is not in agents.txt"));
    let (_, version) = row[1].rsplit_once('@').expect("each package has a version");
    let dir = Path::new(&variable("BACKTRAIL_AGENTS")).join(format!("{wanted}-{version}"));
    let program = dir.join("node_modules").join(row[2]);
    assert!(
        program.exists(),
        "{} is missing; run .ci/agents",
        program.display()
    );
    (row[0], program)
}

/// Returns the arguments for a prompt.
fn arguments(agent: &str, start: &Start, prompt: &str) -> Vec<String> {
    let (before, resumed, after): (&[&str], Vec<String>, &[&str]) = match agent {
        "codex" => (
            &[
                "exec",
                "--skip-git-repo-check",
                "--dangerously-bypass-approvals-and-sandbox",
            ],
            start.words(&["resume", "--last"], &["resume", "ID"]),
            &[],
        ),
        "gemini-cli" => (
            &["--yolo", "-m", "gemini-2.5-pro"],
            start.words(&["--resume", "latest"], &["--resume", "ID"]),
            &["-p"],
        ),
        "pi" => (
            &["--provider", "fake", "--model", "fake-1"],
            start.words(&["-c"], &["--session", "ID"]),
            &["-p"],
        ),
        "opencode" => (&["run"], start.words(&["-c"], &["-s", "ID"]), &[]),
        "qwen-code" => (
            &["--yolo"],
            start.words(&["--continue"], &["--resume", "ID"]),
            &["-p"],
        ),
        "copilot-cli" => (
            &["--allow-all-tools", "--allow-all-paths", "--no-color"],
            start.words(&["--continue"], &["--resume=ID"]),
            &["-p"],
        ),
        // It continues a session only on a terminal.
        "cline" => (&[], start.words(&["--continue"], &["--id", "ID"]), &[]),
        "goose" => (
            &["run"],
            start.words(&["-r"], &["-r", "--session-id", "ID"]),
            &["-t"],
        ),
        "claude-code" => (
            &[
                "--model",
                "claude-sonnet-4-5",
                "--permission-mode",
                "acceptEdits",
                "--allowedTools",
                "Bash,Edit,Write,Read",
            ],
            start.words(&["-c"], &["-r", "ID"]),
            &["-p"],
        ),
        _ => panic!("nobody knows how to start {agent}"),
    };
    let fixed = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    [
        fixed(before),
        resumed,
        fixed(after),
        vec![prompt.to_owned()],
    ]
    .concat()
}

impl Start {
    /// Returns the words that continue the last session, or the one whose id stands for `ID`.
    fn words(&self, last: &[&str], by_id: &[&str]) -> Vec<String> {
        match self {
            Self::New => Vec::new(),
            Self::Continue => last.iter().map(|word| (*word).to_owned()).collect(),
            Self::Resume(id) => by_id.iter().map(|word| word.replace("ID", id)).collect(),
        }
    }
}
