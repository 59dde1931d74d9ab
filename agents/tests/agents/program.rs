//! Starting programs, and where they may run.

use std::process::{Command, Stdio};

use serde_json::Value;

/// The result of a program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Parses stdout as one JSON value.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }

    /// Returns itself, if the program succeeded.
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }
}

/// Runs a command to its end, without input.
pub(crate) fn finish(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Refuses to start an agent where it could reach anything but loopback.
pub(crate) fn assert_that_only_loopback_is_there() {
    let interfaces = std::fs::read_to_string("/proc/net/dev").unwrap();
    let lines = interfaces.lines().skip(2);
    let names: Vec<_> = lines
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        .collect();
    assert_eq!(
        names,
        ["lo"],
        "run .ci/agents: agents are only started without a network"
    );
}

/// Returns a variable that `.ci/agents` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run .ci/agents"))
}
