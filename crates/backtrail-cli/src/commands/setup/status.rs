//! `setup --status`: what is installed, what it calls, and when it was last called.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backtrail::Timestamp;
use backtrail_formats::Environment;
use serde_json::{Value, json};

use super::agents::{HookAgent, Mechanism};
use super::hook_line::{self, Created, HookProgram};
use super::merge::{self, InstalledHook};
use super::own_files::own_files;
use super::plan::{self, AgentPlan, StatusLine};
use super::status_line;
use super::{Answer, fired_file, is_found, last_failure};
use crate::error::{CommandError, Result};
use crate::files;
use crate::home::{in_path, tilde};
use crate::json_edit::{Document, Step};
use crate::layout::{Column, DIM, Table};
use crate::text::{one_line, path_json, visible};
use crate::ui::Ui;
use crate::user_file::UserFile;
use crate::when;

/// How people trust hooks in Codex, which runs no others.
pub(super) const HOW_TO_TRUST: &str =
    "hooks run once you trust them: start codex, type /hooks and trust each of backtrail's";

/// The state of one agent's hooks.
struct AgentStatus {
    agent: &'static HookAgent,
    found: bool,
    place: PathBuf,
    hooks: HookState,
    /// The program that the hooks call, and its version if it runs.
    calls: Option<(PathBuf, Option<String>)>,
    /// Whether Codex will run them.
    trusted: Option<bool>,
    /// The setting that turns all hooks of the agent off.
    off: Option<String>,
    /// The state of its status line, if it can have one.
    status_line: Option<&'static str>,
    last_fired: Option<Timestamp>,
    /// Why its last call failed, if it did.
    failure: Option<String>,
}

enum HookState {
    Missing,
    Installed,
    /// Not as this version installs them.
    Outdated,
    Unreadable(CommandError),
}

/// Shows the state of each agent.
pub(super) fn print(
    agents: &[&'static HookAgent],
    environment: &Environment,
    program: &HookProgram,
    ui: &Ui,
) -> Result<Answer> {
    let (store, _) = ui.store_dir()?;
    let status = |agent: &&'static HookAgent| look(agent, environment, program, &store);
    let all = agents.iter().map(status).collect::<Result<Vec<_>>>()?;
    let failed = |status: &&AgentStatus| matches!(status.hooks, HookState::Unreadable(_));
    let answer = Answer::no_if(all.iter().any(|status| failed(&status)));
    if ui.json() {
        ui.print_json(&all.iter().map(AgentStatus::as_json).collect::<Vec<_>>())?;
        return Ok(answer);
    }
    let mut table = Table::new([
        Column::text("AGENT"),
        Column::text("HOOKS"),
        Column::text("LAST CALL"),
        Column::text("STATUS LINE").drop(0),
        Column::text("PROGRAM").drop(1),
        Column::text("IN").style(DIM).drop(2),
    ]);
    for status in &all {
        let last = status.last_fired.map_or("never".to_owned(), when::brief);
        table.push([
            status.agent.title.into(),
            status.word().into(),
            last.into(),
            status.status_line.unwrap_or_default().into(),
            status.calls_text().into(),
            tilde(&status.place).into(),
        ]);
    }
    ui.print_table(&table, ui.width())?;
    for status in &all {
        status.print_notes(ui);
    }
    Ok(answer)
}

fn look(
    agent: &'static HookAgent,
    environment: &Environment,
    program: &HookProgram,
    store: &Path,
) -> Result<AgentStatus> {
    let place = plan::place(agent, environment)?;
    let mut status = AgentStatus {
        agent,
        found: is_found(agent, environment),
        hooks: HookState::Missing,
        calls: None,
        trusted: None,
        off: None,
        status_line: None,
        last_fired: last_fired(&fired_file(store, agent.name)),
        failure: last_failure(store, agent.name),
        place,
    };
    status.status_line = agent
        .has_status_line()
        .then(|| line_state(&status.place, program));
    let text = match installed_text(agent, &status.place) {
        Ok(text) => text,
        Err(error) => {
            status.hooks = HookState::Unreadable(error);
            return Ok(status);
        }
    };
    let Some(text) = text else {
        return Ok(status);
    };
    status.calls = program_of(agent, &text).map(|path| {
        let version = version_of(&path);
        (path, version)
    });
    // Another program is no reason to install them again.
    let program = match &status.calls {
        Some((path, _)) => program.at(path)?,
        None => program.clone(),
    };
    status.hooks = match AgentPlan::install(agent, environment, &program, StatusLine::AsItIs) {
        Ok(plan) if plan.has_changes() => HookState::Outdated,
        Ok(_) => HookState::Installed,
        Err(error) => HookState::Unreadable(error),
    };
    if agent.name == "codex" {
        let hooks = merge::installed_in(&text).unwrap_or_default();
        status.look_at_codex(&hooks);
    } else {
        status.off = turned_off(agent, &status.place, &text);
    }
    Ok(status)
}

/// Returns the state of the status line in settings.
fn line_state(place: &Path, program: &HookProgram) -> &'static str {
    let text = UserFile::read(place).ok();
    let text = text.as_ref().and_then(UserFile::text).unwrap_or_default();
    let Some(line) = status_line::installed_in(text).ok().flatten() else {
        return "missing";
    };
    // Another program is no reason to install it again.
    let called = hook_line::program_in(&line.command).and_then(|path| program.at(&path).ok());
    match line.is_of(called.as_ref().unwrap_or(program)) {
        false => "outdated",
        true if line.wraps() => "wraps another",
        true => "installed",
    }
}

/// Returns a text with our hooks: the settings, or the first of the files that are ours.
fn installed_text(agent: &HookAgent, place: &Path) -> Result<Option<String>> {
    if let Mechanism::Settings { .. } = agent.mechanism {
        let file = UserFile::read(place)?;
        let text = file.text().unwrap_or_default();
        let hooks = merge::installed_in(text);
        let hooks = hooks.map_err(|error| plan::refuse(place, error.into()))?;
        return Ok((!hooks.is_empty()).then(|| text.to_owned()));
    }
    for own in own_files(agent, place) {
        let file = UserFile::read(&own.path)?;
        if let Some(text) = file.text().filter(|text| Created::read(text).is_some()) {
            return Ok(Some(text.to_owned()));
        }
    }
    Ok(None)
}

/// Returns the program that our hooks in a text call.
fn program_of(agent: &HookAgent, text: &str) -> Option<PathBuf> {
    let from_line = |line: &Value| hook_line::program_in(line.as_str()?);
    match agent.mechanism {
        Mechanism::Settings { .. } => {
            let hooks = merge::installed_in(text).ok()?;
            from_line(&hooks.first()?.handler["command"])
        }
        Mechanism::Copilot => {
            let file: Value = serde_json::from_str(text).ok()?;
            let (_, handlers) = file["hooks"].as_object()?.iter().next()?;
            from_line(&handlers[0]["bash"])
        }
        Mechanism::Scripts => hook_line::program_in(text),
        Mechanism::Module { .. } => {
            let (_, list) = text.split_once("programs")?.1.split_once("= [")?;
            let mut values = serde_json::Deserializer::from_str(list).into_iter::<String>();
            Some(PathBuf::from(values.next()?.ok()?))
        }
    }
}

/// Returns the version of a program, if it runs.
fn version_of(path: &Path) -> Option<String> {
    let ran = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(ran.stdout).ok()?;
    let version = text.trim().strip_prefix("backtrail ")?;
    (ran.status.success() && version.len() < 40).then(|| version.to_owned())
}

fn last_fired(file: &Path) -> Option<Timestamp> {
    let modified = files::open(file).ok()?.metadata().ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?)
}

/// Returns the setting that turns the agent's hooks off.
fn turned_off(agent: &HookAgent, place: &Path, text: &str) -> Option<String> {
    let Mechanism::Settings { off, .. } = agent.mechanism else {
        return None;
    };
    let document = Document::parse(text).ok()?;
    let is_off = |(keys, value): &&(&'static [&'static str], bool)| {
        let path: Vec<Step<'_>> = keys.iter().map(|key| Step::Key(key)).collect();
        let found = document.get(&path).map(|node| document.value(node));
        found == Some(Value::from(*value))
    };
    let (keys, _) = off.iter().find(is_off)?;
    Some(format!("{} in {}", keys.join("."), tilde(place)))
}

impl AgentStatus {
    /// Reads in Codex's own settings whether it will run the hooks.
    fn look_at_codex(&mut self, hooks: &[InstalledHook]) {
        let config = self.place.with_file_name("config.toml");
        let table = files::read(&config).ok();
        let table = table.and_then(|text| text.parse::<toml::Table>().ok());
        let table = table.unwrap_or_default();
        let features = table.get("features");
        let is_off =
            |name: &str| features.and_then(|features| features.get(name)?.as_bool()) == Some(false);
        if is_off("hooks") || is_off("codex_hooks") {
            self.off = Some(format!("features.hooks in {}", tilde(&config)));
        }
        let state = table.get("hooks").and_then(|hooks| hooks.get("state"));
        // Codex may name the file by its path without links.
        let target = self.place.canonicalize().unwrap_or_default();
        let is_trusted = |hook: &InstalledHook| {
            let event = snake_case(&hook.event);
            let key = |path: &Path| {
                let (path, group, index) = (path.display(), hook.group, hook.index);
                format!("{path}:{event}:{group}:{index}")
            };
            let of = |path: &Path| state?.get(key(path));
            let of_hook = of(&self.place).or_else(|| of(&target));
            of_hook.is_some_and(|state| {
                let is_enabled = state.get("enabled").and_then(toml::Value::as_bool);
                state.get("trusted_hash").is_some() && is_enabled != Some(false)
            })
        };
        self.trusted = Some(hooks.iter().all(is_trusted));
    }

    fn word(&self) -> &'static str {
        match &self.hooks {
            HookState::Unreadable(_) => "cannot be read",
            HookState::Missing if self.found => "not installed",
            HookState::Missing => "agent not found",
            _ if self.off.is_some() => "turned off",
            _ if !self.can_be_called() => "program missing",
            _ if self.trusted == Some(false) => "not trusted",
            HookState::Outdated => "outdated",
            HookState::Installed => "installed",
        }
    }

    /// Returns whether the program, or another backtrail in its place, is there.
    fn can_be_called(&self) -> bool {
        let program = self.calls.as_ref().map(|(path, _)| path);
        program.is_some_and(|path| path.is_file()) || in_path(Path::new("backtrail")).is_some()
    }

    fn calls_text(&self) -> String {
        match &self.calls {
            Some((path, Some(version))) => format!("{} ({version})", tilde(path)),
            Some((path, None)) => tilde(path),
            None => String::new(),
        }
    }

    fn print_notes(&self, ui: &Ui) {
        let (title, program) = (self.agent.title, ui.program());
        match &self.hooks {
            HookState::Unreadable(error) => ui.error(error),
            HookState::Outdated => ui.status(&format!(
                "{title}: to update the hooks: {program} setup {}",
                self.agent.program
            )),
            _ => {}
        }
        if let Some(off) = &self.off {
            ui.status(&format!("{title}: {off} turns all hooks off"));
        }
        if let Some(failure) = &self.failure {
            let failure = one_line(&visible(failure), 200);
            ui.status(&format!("{title}: the last call failed: {failure}"));
        }
        if self.trusted == Some(false) {
            ui.status(&format!("{title}: {HOW_TO_TRUST}"));
        }
    }

    fn as_json(&self) -> Value {
        let state = match &self.hooks {
            HookState::Missing => "missing",
            HookState::Installed => "installed",
            HookState::Outdated => "outdated",
            HookState::Unreadable(_) => "unreadable",
        };
        let error = match &self.hooks {
            HookState::Unreadable(error) => Some(error.with_causes()),
            _ => None,
        };
        json!({
            "agent": self.agent.name,
            "title": self.agent.title,
            "found": self.found,
            "program": in_path(Path::new(self.agent.program)).as_deref().map(path_json),
            "path": path_json(&self.place),
            "hooks": state,
            "calls": self.calls.as_ref().map(|(path, _)| path_json(path)),
            "version": self.calls.as_ref().and_then(|(_, version)| version.as_deref()),
            "trusted": self.trusted,
            "turned_off_by": self.off,
            "status_line": self.status_line,
            "last_call": self.last_fired.map(|at| at.to_string()),
            "failed": self.failure,
            "error": error,
        })
    }
}

/// Returns the name of an event as Codex's settings have it: `PreToolUse` is `pre_tool_use`.
fn snake_case(event: &str) -> String {
    let mut out = String::new();
    for c in event.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}
