//! Home directories of agents and of the programs that read them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::agents::Agent;
use crate::store::process::backtrail;

/// A home directory with nothing in it but the given sessions.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// Where the agents keep their sessions.
    agents: PathBuf,
    /// Where everything else goes.
    own: PathBuf,
}

impl Home {
    /// Creates a home whose agents keep their sessions in `agents`.
    pub(super) fn new(agents: &Path, own: PathBuf) -> std::io::Result<Self> {
        std::fs::create_dir_all(&own)?;
        Ok(Self {
            agents: agents.to_owned(),
            own,
        })
    }

    fn at_home(&self, mut command: Command) -> Command {
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        command
            .env("HOME", &self.own)
            .env("CLAUDE_CONFIG_DIR", &self.agents)
            .env("CODEX_HOME", &self.agents)
            .current_dir(&self.own);
        command
    }

    /// Returns a `backtrail` command.
    pub(super) fn ours(&self, bin: &Path, words: &[&str]) -> Command {
        self.at_home(backtrail(bin, &self.own.join("store"), words))
    }

    /// Returns the command by which agentsview imports new sessions: once, without its
    /// server and without network access.
    pub(super) fn agentsview(&self, bin: &Path) -> Command {
        let mut command = self.at_home(Command::new(bin));
        command
            .env("AGENTSVIEW_NO_DAEMON", "1")
            .env("AGENTSVIEW_DISABLE_UPDATE_CHECK", "1")
            .env("AGENTSVIEW_TELEMETRY_ENABLED", "0")
            .env("DO_NOT_TRACK", "1")
            .env("AGENTSVIEW_DATA_DIR", self.own.join("agentsview"))
            .env("CLAUDE_PROJECTS_DIR", self.agents.join("projects"))
            .arg("sync");
        command
    }

    /// Returns the command by which ccusage reports an agent's usage.
    pub(super) fn ccusage(&self, bin: &Path, agent: &Agent) -> Command {
        let mut command = self.at_home(Command::new(bin));
        command.args([agent.ccusage, "daily", "--json", "--offline"]);
        command
    }
}
