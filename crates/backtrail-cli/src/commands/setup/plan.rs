//! What `setup` would change in the files of an agent.

use std::path::{Path, PathBuf};

use backtrail_formats::Environment;
use serde_json::{Value, json};

use super::agents::{HookAgent, Mechanism};
use super::hook_line::{Created, HookProgram, MARK};
use super::merge::{self, Refused, WantedHook};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::json_edit::{Document, SyntaxError};
use crate::shell::quote_path;
use crate::text::count;
use crate::user_file::UserFile;

/// An agent, and the changes to its files.
#[derive(Debug)]
pub(super) struct AgentPlan {
    pub(super) agent: &'static HookAgent,
    changes: Vec<FileChange>,
    /// Files that stay as they are, with the reason.
    pub(super) warnings: Vec<CommandError>,
}

/// A file, and what becomes of it.
#[derive(Debug)]
pub(super) struct FileChange {
    pub(super) file: UserFile,
    /// `None` if the file goes.
    pub(super) new: Option<String>,
    mode: u32,
    /// How many directories above it are ours.
    directories: usize,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Unchanged,
    Create,
    Update,
    Remove,
}

impl ChangeKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Create => "create",
            Self::Update => "change",
            Self::Remove => "remove",
        }
    }
}

impl FileChange {
    pub(super) fn kind(&self) -> ChangeKind {
        match (self.file.text(), &self.new) {
            (None, Some(_)) => ChangeKind::Create,
            (Some(_), None) => ChangeKind::Remove,
            (old, new) if old == new.as_deref() => ChangeKind::Unchanged,
            _ => ChangeKind::Update,
        }
    }

    /// Changes the file. After a removal nothing of ours is left, the copy included.
    pub(super) fn apply(&self, is_removal: bool) -> Result<()> {
        match (self.kind(), &self.new) {
            (ChangeKind::Create | ChangeKind::Update, Some(new)) => {
                self.file.write(new, self.mode)?;
            }
            (ChangeKind::Remove, _) => self.file.remove()?,
            _ => return Ok(()),
        }
        if is_removal {
            self.file.remove_backup()?;
            self.file.remove_directories(self.directories);
        }
        Ok(())
    }
}

impl AgentPlan {
    /// Plans to install the hooks.
    pub(super) fn install(
        agent: &'static HookAgent,
        environment: &Environment,
        program: &HookProgram,
    ) -> Result<Self> {
        let place = place(agent, environment)?;
        let mut plan = Self::new(agent);
        match agent.mechanism {
            Mechanism::Settings { .. } => {
                let wanted = wanted_hooks(agent, program);
                plan.changes.push(install_settings(&place, &wanted)?);
            }
            _ => {
                for file in own_files(agent, &place) {
                    plan.install_own(file, program)?;
                }
            }
        }
        Ok(plan)
    }

    /// Plans to remove the hooks.
    pub(super) fn remove(agent: &'static HookAgent, environment: &Environment) -> Result<Self> {
        let place = place(agent, environment)?;
        let mut plan = Self::new(agent);
        match agent.mechanism {
            Mechanism::Settings { .. } => plan.changes.extend(remove_settings(&place)?),
            _ => {
                for own in own_files(agent, &place) {
                    plan.changes.extend(remove_own(&own.path)?);
                }
            }
        }
        // The file that created the directory is not always the last to go.
        let most = plan.changes.iter().map(|change| change.directories).max();
        for change in &mut plan.changes {
            change.directories = most.unwrap_or(0);
        }
        Ok(plan)
    }

    fn new(agent: &'static HookAgent) -> Self {
        Self {
            agent,
            changes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn changes(&self) -> impl Iterator<Item = &FileChange> {
        self.changes.iter()
    }

    /// Returns whether anything would change.
    pub(super) fn has_changes(&self) -> bool {
        let mut kinds = self.changes.iter().map(FileChange::kind);
        kinds.any(|kind| kind != ChangeKind::Unchanged)
    }

    /// Describes the change of a file.
    pub(super) fn describe(&self, change: &FileChange) -> String {
        let hooks = count(self.agent.events.len(), "hook");
        let (kind, is_own) = (change.kind(), !self.is_settings());
        match (kind, &self.agent.mechanism) {
            (ChangeKind::Unchanged, _) => "installed, nothing to change".to_owned(),
            (ChangeKind::Remove, _) => "remove the file".to_owned(),
            (ChangeKind::Create, Mechanism::Settings { .. } | Mechanism::Copilot) => {
                format!("create it with {hooks}")
            }
            (ChangeKind::Create, Mechanism::Module(_)) if self.agent.name == "pi" => {
                "create it: an extension with /undo and /rewind".to_owned()
            }
            (ChangeKind::Create, Mechanism::Module(_)) => "create it: a plugin".to_owned(),
            (ChangeKind::Create, _) => "create it: a hook".to_owned(),
            (ChangeKind::Update, _) if is_own => "replace it by this version's".to_owned(),
            (ChangeKind::Update, _) => {
                let ours = |text: Option<&str>| {
                    let found = merge::installed_in(text.unwrap_or_default());
                    found.map_or(0, |found| found.len())
                };
                match (ours(change.file.text()), ours(change.new.as_deref())) {
                    (0, _) => format!("add {hooks}"),
                    (old, 0) => format!("remove {}", count(old, "hook")),
                    _ => format!("update {hooks}"),
                }
            }
        }
    }

    fn is_settings(&self) -> bool {
        matches!(self.agent.mechanism, Mechanism::Settings { .. })
    }

    fn install_own(&mut self, own: OwnFile, program: &HookProgram) -> Result<()> {
        let file = UserFile::read(&own.path)?;
        let created = match file.text() {
            Some(text) => Created::read(text),
            // The first of several files creates the directory.
            None if !self.changes.is_empty() => Some(Created::default()),
            None => Some(Created {
                directories: file.missing_directories(),
                ..Created::default()
            }),
        };
        let Some(created) = created else {
            self.warnings.push(not_ours(self.agent, &own));
            return Ok(());
        };
        let new = Some((own.text)(self.agent, own.event, program, &created));
        self.changes.push(FileChange {
            file,
            new,
            mode: own.mode,
            directories: created.directories,
        });
        Ok(())
    }
}

/// Returns the file or the directory of an agent's hooks.
pub(super) fn place(agent: &HookAgent, environment: &Environment) -> Result<PathBuf> {
    let home = agent
        .home(environment)
        .ok_or_else(|| CommandError::invalid("cannot find your home directory").hint("set HOME"))?;
    let absolute = std::path::absolute(&home)
        .map_err(|error| CommandError::io("cannot find the settings", Some(&home), &error))?;
    Ok(absolute.join(agent.place))
}

/// Returns the hooks that an agent's settings get.
pub(super) fn wanted_hooks(agent: &'static HookAgent, program: &HookProgram) -> Vec<WantedHook> {
    let wanted = |(event, seconds): &(&'static str, u64)| {
        let (name, event, program) = (agent.name, *event, program.clone());
        let mut handler = json!({"type": "command", "command": ""});
        if agent.name == "gemini-cli" {
            handler["name"] = "backtrail".into();
        }
        handler["timeout"] = agent.limit(*seconds).into();
        WantedHook {
            event,
            handler,
            command: Box::new(move |created| program.line(name, event, created)),
        }
    };
    agent.events.iter().map(wanted).collect()
}

fn install_settings(path: &Path, wanted: &[WantedHook]) -> Result<FileChange> {
    let file = UserFile::read(path)?;
    let refuse = |refused: Refused| refuse(path, refused);
    let directories = file.missing_directories();
    let new = merge::install(file.text(), wanted, directories).map_err(refuse)?;
    // A change that cannot be reversed to the byte is not made.
    let back = merge::remove(&new).map_err(refuse)?;
    let before = file.text().map(merge::remove).transpose().map_err(refuse)?;
    if back != before.flatten() {
        let what = format!("{} has a form that cannot be changed safely", tilde(path));
        return Err(CommandError::invalid(what)
            .at_path(path)
            .hint("please report it, with the file"));
    }
    Ok(FileChange {
        file,
        new: Some(new),
        mode: 0o600,
        directories,
    })
}

fn remove_settings(path: &Path) -> Result<Option<FileChange>> {
    let file = UserFile::read(path)?;
    let Some(text) = file.text() else {
        return Ok(None);
    };
    // A file without our mark need not be understood.
    if !text.contains(MARK) {
        return Ok(None);
    }
    let new = merge::remove(text).map_err(|refused| refuse(path, refused))?;
    let found = merge::installed_in(text).unwrap_or_default();
    let directories = found.first().map_or(0, |hook| hook.created.directories);
    Ok(Some(FileChange {
        new,
        mode: 0o600,
        directories,
        file,
    }))
}

fn remove_own(path: &Path) -> Result<Option<FileChange>> {
    let file = UserFile::read(path)?;
    let Some(created) = file.text().and_then(Created::read) else {
        return Ok(None);
    };
    Ok(Some(FileChange {
        file,
        new: None,
        mode: 0o600,
        directories: created.directories,
    }))
}

/// A file that is ours alone.
pub(super) struct OwnFile {
    pub(super) path: PathBuf,
    event: &'static str,
    mode: u32,
    text: fn(&HookAgent, &str, &HookProgram, &Created) -> String,
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
        Mechanism::Module(_) => vec![one(module_file, 0o600)],
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
    let Mechanism::Module(source) = agent.mechanism else {
        return String::new();
    };
    let options = json!(program.options()).to_string();
    source
        .replace("@MARK@", &created.mark())
        .replace("\"@PROGRAM@\"", &json!(program.path()).to_string())
        .replace("[\"@OPTIONS@\"]", &options)
}

fn not_ours(agent: &HookAgent, own: &OwnFile) -> CommandError {
    let what = format!(
        "{} is not Backtrail's, and stays as it is",
        tilde(&own.path)
    );
    let error = CommandError::invalid(what).at_path(&own.path);
    match agent.mechanism {
        Mechanism::Scripts => error.hint(format!(
            "to have both, pass its input on: backtrail hook {} --event {}",
            agent.name, own.event
        )),
        _ => error.hint(format!(
            "move it away, then: backtrail setup {}",
            agent.name
        )),
    }
}

/// Says why a settings file stays as it is.
pub(super) fn refuse(path: &Path, refused: Refused) -> CommandError {
    let reason = match refused {
        Refused::Syntax(SyntaxError { line, reason }) => {
            format!("is not valid JSON: {reason} (line {line})")
        }
        Refused::Shape(reason) => format!("cannot be changed: {reason}"),
    };
    CommandError::invalid(format!("{} {reason}", tilde(path)))
        .at_path(path)
        .hint(format!("fix {}, then try again", quote_path(path)))
}
