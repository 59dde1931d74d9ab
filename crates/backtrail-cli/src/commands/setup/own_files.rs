//! Files that are ours alone: hooks of Copilot CLI and Cline, and what opencode and pi load.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::agents::{HookAgent, Mechanism};
use super::hook_line::{Created, HookProgram};
use crate::json_edit::Document;

/// A file that is ours alone.
pub(super) struct OwnFile {
    pub(super) path: PathBuf,
    pub(super) event: &'static str,
    pub(super) mode: u32,
    pub(super) text: fn(&HookAgent, &str, &HookProgram, &Created) -> String,
}

/// Returns the files of ours that an agent has.
pub(super) fn own_files(agent: &HookAgent, place: &Path) -> Vec<OwnFile> {
    let one = |text, mode| OwnFile {
        path: place.to_owned(),
        event: "",
        mode,
        text,
    };
    match agent.mechanism {
        Mechanism::Settings { .. } => Vec::new(),
        Mechanism::Copilot => vec![one(copilot_file, 0o600)],
        Mechanism::Module { .. } => vec![one(module_file, 0o600)],
        Mechanism::Scripts => {
            let script = |(event, _): &(&'static str, u64)| OwnFile {
                path: place.join(event),
                event,
                ..one(script_file, 0o700)
            };
            agent.events.iter().map(script).collect()
        }
    }
}

fn copilot_file(
    agent: &HookAgent,
    _event: &str,
    program: &HookProgram,
    created: &Created,
) -> String {
    let hooks = agent.events.iter().map(|(event, seconds)| {
        let line = program.line(agent.name, event, created);
        let handler = json!({"type": "command", "bash": line, "timeoutSec": seconds});
        ((*event).to_owned(), json!([handler]))
    });
    let hooks = Value::Object(hooks.collect());
    let file = json!({"version": 1, "hooks": hooks});
    Document::parse("")
        .expect("an empty text can be read")
        .with_root(&file)
}

fn script_file(agent: &HookAgent, event: &str, program: &HookProgram, created: &Created) -> String {
    let (name, script) = (agent.name, program.script(agent.name, event));
    format!(
        "#!/bin/sh\n# {}\n# Remove it with: backtrail setup --remove {name}\n{script}\n",
        created.mark()
    )
}

fn module_file(
    agent: &HookAgent,
    _event: &str,
    program: &HookProgram,
    created: &Created,
) -> String {
    let Mechanism::Module { source, .. } = agent.mechanism else {
        return String::new();
    };
    let options = json!(program.options()).to_string();
    source
        .replace("@MARK@", &created.mark())
        .replace("@AGENT@", agent.name)
        .replace("\"@PROGRAM@\"", &json!(program.path()).to_string())
        .replace("[\"@OPTIONS@\"]", &options)
}
