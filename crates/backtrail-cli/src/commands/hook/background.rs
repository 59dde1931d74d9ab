//! What a hook leaves to a process of its own, so that the agent can continue.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use super::HookArgs;
use super::agent_process::agent_process;
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// What is done in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Background {
    /// The first snapshot of a workspace.
    First,
    /// The snapshot of a moment that the agent did not wait for.
    Late,
    /// The same, where the record that the agent did not wait is missing, too.
    Missed,
    /// Importing what the agent wrote in the turn that ended.
    Import,
}

impl Background {
    fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Late => "late",
            Self::Missed => "missed",
            Self::Import => "import",
        }
    }

    /// Starts it, apart from the agent: it survives the agent's end, and the agent does not wait
    /// for its output.
    pub(super) fn start(self, args: &HookArgs, payload: &[u8], ui: &Ui) -> Result<()> {
        let failed = |error| CommandError::io("cannot start in the background", None, &error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        if let Ok((store, _)) = ui.store_dir() {
            command.arg("--store").arg(store);
        }
        command.args(["hook", &args.agent, "--background", self.as_str()]);
        command.args(args.event.iter().flat_map(|event| ["--event", event]));
        if let Some(agent) = agent_process() {
            command.args(["--agent-process", &agent.pid.to_string()]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(payload).map_err(failed)
    }
}
