//! What `setup` would change in the files of an agent. `plan/rows.rs` describes it to people.

mod rows;

use std::path::{Path, PathBuf};

use backtrail::ErrorKind;
use backtrail_formats::Environment;
use serde_json::json;

use super::agents::{HookAgent, Mechanism};
use super::hook_line::{Created, HookProgram, MARK};
use super::merge::{self, Refused, WantedHook};
use super::own_files::{OwnFile, own_files};
use super::status_line;
use crate::error::{CommandError, Result};
use crate::json_edit::SyntaxError;
use crate::shell::quote_path;
use crate::user_file::UserFile;

/// What becomes of a status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusLine {
    Install,
    AsItIs,
}

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
    new: Option<String>,
    /// Whether the file is ours alone.
    is_own: bool,
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

    /// Returns where a copy of the file is saved, unless it is ours alone.
    pub(super) fn copy(&self) -> Option<PathBuf> {
        let is_saved = self.kind() == ChangeKind::Update && !self.is_own;
        is_saved.then(|| self.file.backup())
    }

    /// Changes the file. After a removal nothing of ours is left, the copy included.
    pub(super) fn apply(&self, is_removal: bool) -> Result<()> {
        if self.copy().is_some() {
            self.file.save_copy()?;
        }
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
    /// Plans to install the hooks, and a status line where the agent has one.
    pub(super) fn install(
        agent: &'static HookAgent,
        environment: &Environment,
        program: &HookProgram,
        status_line: StatusLine,
    ) -> Result<Self> {
        let place = place(agent, environment)?;
        let mut plan = Self::new(agent);
        match agent.mechanism {
            Mechanism::Settings { .. } => {
                let wanted = wanted_hooks(agent, program);
                let line = match agent.has_status_line() {
                    true => status_line,
                    false => StatusLine::AsItIs,
                };
                let change = install_settings(&place, &wanted, program, line)?;
                plan.changes.push(change);
            }
            _ => {
                for file in own_files(agent, &place) {
                    plan.install_own(file, program)?;
                }
            }
        }
        plan.checked()
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
        plan.checked()
    }

    /// Refuses to change a file that should not be replaced.
    fn checked(self) -> Result<Self> {
        let mut changes = self.changes.iter();
        let is_changed = |change: &&FileChange| change.kind() != ChangeKind::Unchanged;
        let mut changed = changes.by_ref().filter(is_changed);
        changed.try_for_each(|change| change.file.check_replaceable())?;
        Ok(self)
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
            is_own: true,
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

/// Plans the hooks in a settings file, and the status line.
fn install_settings(
    path: &Path,
    wanted: &[WantedHook],
    program: &HookProgram,
    status_line: StatusLine,
) -> Result<FileChange> {
    let file = UserFile::read(path)?;
    let refuse = |refused: Refused| refuse(path, refused);
    let directories = file.missing_directories();
    let before = file.text().map(without_ours).transpose().map_err(refuse)?;
    let before = before.flatten();
    let mut new = with_hooks(file.text(), wanted, directories).map_err(refuse)?;
    let line = status_line::installed_in(file.text().unwrap_or_default());
    let line = line.map_err(|error| refuse(error.into()))?;
    if line.is_some() || status_line == StatusLine::Install {
        let directories = line.map_or(directories, |line| line.directories());
        let created = status_line::created_for(before.as_deref(), directories).map_err(refuse)?;
        let with_line = status_line::install(&new, program, &created).map_err(refuse)?;
        // One that is there and not asked for only comes back.
        if status_line == StatusLine::Install || file.text() != Some(&new) {
            new = with_line;
        }
    }
    // A change that cannot be reversed to the byte is not made.
    let back = without_ours(&new).map_err(refuse)?;
    if back != before {
        let what = format!(
            "{} has a form that cannot be changed safely",
            path.display()
        );
        return Err(CommandError::invalid(what)
            .at_path(path)
            .hint("please report it, with the file"));
    }
    Ok(FileChange {
        file,
        new: Some(new),
        is_own: false,
        mode: 0o600,
        directories,
    })
}

/// Returns settings with the hooks. Where those change, our status line is removed first: it was
/// added to settings that had hooks.
fn with_hooks(
    text: Option<&str>,
    wanted: &[WantedHook],
    directories: usize,
) -> Result<String, Refused> {
    let Some(text) = text else {
        return merge::install(None, wanted, directories);
    };
    if merge::is_installed(text, wanted)? {
        return Ok(text.to_owned());
    }
    let line = status_line::installed_in(text)?;
    let directories = line.map_or(directories, |line| line.directories());
    merge::install(status_line::remove(text)?.as_deref(), wanted, directories)
}

/// Returns settings as they would be without us; `None` if there would be no file.
fn without_ours(text: &str) -> Result<Option<String>, Refused> {
    match status_line::remove(text)? {
        Some(text) => merge::remove(&text),
        None => Ok(None),
    }
}

fn remove_settings(path: &Path) -> Result<Option<FileChange>> {
    let Some(file) = read_marked(path)? else {
        return Ok(None);
    };
    let text = file.text().unwrap_or_default();
    let mut new = without_ours(text).map_err(|refused| refuse(path, refused))?;
    // A link was not created by us, and would lead nowhere.
    if new.is_none() && file.is_link() {
        new = Some("{}\n".to_owned());
    }
    let found = merge::installed_in(text).unwrap_or_default();
    let line = status_line::installed_in(text).ok().flatten();
    let of_line = line.map_or(0, |line| line.directories());
    let directories = found
        .first()
        .map_or(of_line, |hook| hook.created.directories);
    Ok(Some(FileChange {
        new,
        is_own: false,
        mode: 0o600,
        directories,
        file,
    }))
}

/// Reads a file that has our mark. Any other need not be understood.
fn read_marked(path: &Path) -> Result<Option<UserFile>> {
    match UserFile::read(path) {
        Ok(file) => {
            let is_marked = file.text().is_some_and(|text| text.contains(MARK));
            Ok(is_marked.then_some(file))
        }
        Err(error) if error.kind == ErrorKind::Invalid.as_str() => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove_own(path: &Path) -> Result<Option<FileChange>> {
    let file = read_marked(path)?;
    let created = |file: &UserFile| file.text().and_then(Created::read);
    let Some((file, created)) = file.and_then(|file| {
        let created = created(&file)?;
        Some((file, created))
    }) else {
        return Ok(None);
    };
    Ok(Some(FileChange {
        file,
        new: None,
        is_own: true,
        mode: 0o600,
        directories: created.directories,
    }))
}

fn not_ours(agent: &HookAgent, own: &OwnFile) -> CommandError {
    let what = format!(
        "{} is not Backtrail's, and stays as it is",
        own.path.display()
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
    CommandError::invalid(format!("{} {reason}", path.display()))
        .at_path(path)
        .hint(format!("fix {}, then try again", quote_path(path)))
}
