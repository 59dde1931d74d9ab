//! A session in the form of another agent, which continues it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backtrail::context::{HandOverExtent, HandOverOptions};
use backtrail::{SessionId, Store};
use backtrail_formats::{
    HandOver, Launcher, Losses, NewSession, OutgoingSession, PausedImports, Source, Target,
    agent_title, formats, target,
};

use super::made::{CANNOT_WRITE, MadeSession, StagedSession};
use super::session::Found;
use crate::commands::import::failed;
use crate::commands::short;
use crate::error::{CommandError, Result};
use crate::files::StagedFile;
use crate::progress::{while_paused, while_waiting};
use crate::text::{count, one_line};
use crate::ui::Ui;

/// Writes the session beside where the agent finds it, under a new id, or lets the agent import
/// it.
pub(super) fn make(
    store: &Store,
    found: &Found,
    extent: HandOverExtent,
    new: &NewSession<'_>,
    ui: &Ui,
) -> Result<StagedSession> {
    let agent = found.agent;
    let target = target(agent.name()).ok_or_else(|| {
        let what = format!("sessions cannot be written for {}", agent.title());
        CommandError::invalid(what)
    })?;
    let prepared = Prepared::new(found, extent, target, new)?;
    let written = match agent.import_command(Path::new("")) {
        Some(_) => prepared.import(store, &agent, ui)?,
        None => prepared.place(store, &agent, ui)?,
    };
    let (old, upto) = (short(found.reader.id()), found.upto());
    let messages = count(prepared.outgoing.message_count(), "message");
    let text = format!(
        "wrote session {old}{upto} for {} as {} ({messages})",
        agent.title(),
        written.id
    );
    let new = NewSession {
        id: written.id,
        ..new.clone()
    };
    let mut made = MadeSession::new(&agent, &new, written.file);
    made.session = Some(written.session);
    made.losses = prepared.losses;
    let mut staged = StagedSession::new(made, written.staged, text);
    staged.companions = written.companions;
    Ok(staged)
}

/// A session that is written, and continues in the store.
struct Written {
    /// The agent's id for it.
    id: String,
    session: SessionId,
    file: PathBuf,
    /// The file, unless the agent imported it.
    staged: Option<StagedFile>,
    companions: Vec<StagedFile>,
}

/// A session in its target's own words.
struct Prepared<'p> {
    target: Target,
    outgoing: OutgoingSession<'p>,
    losses: Losses,
    new: &'p NewSession<'p>,
    parent: &'p SessionId,
    seq: u64,
    title: String,
}

impl<'p> Prepared<'p> {
    fn new(
        found: &'p Found,
        extent: HandOverExtent,
        target: Target,
        new: &'p NewSession<'p>,
    ) -> Result<Self> {
        if new.directory.to_str().is_none() {
            let what = "the directory is not UTF-8, and a session file cannot name it";
            return Err(CommandError::invalid(what).at_path(&new.directory));
        }
        let up_to = found.last.filter(|_| found.asked.is_some());
        let options = HandOverOptions::new(extent, up_to);
        let conversation = found.reader.hand_over(options)?;
        let seq = conversation.last_seq;
        let title = found.new_title()?;
        let old = found.info.workspace_root.as_deref();
        let (outgoing, losses) = target.prepare(conversation, &title, old, new);
        Ok(Self {
            target,
            outgoing,
            losses,
            new,
            parent: found.parent.id(),
            seq,
            title,
        })
    }

    /// Writes the file beside where the agent finds it. The session here comes before the file
    /// has its name: otherwise an import could take the file for a session of its own.
    fn place(&self, store: &Store, agent: &Launcher, ui: &Ui) -> Result<Written> {
        let file = agent.place(self.new).map_err(|error| failed(&error))?;
        let mut content = Vec::new();
        let written = self.target.write(&self.outgoing, &mut content);
        written.map_err(|error| CommandError::io(CANNOT_WRITE, None, &error))?;
        let source = Source::from_bytes(&file, content);
        let bytes = source.read_range(0..source.len());
        let staged = stage(&file, &bytes.map_err(|error| failed(&error))?)?;
        let companions = self.target.companions(&self.outgoing, &file).into_iter();
        let companions = companions.map(|(path, text)| stage(&path, text.as_bytes()));
        let companions = companions.collect::<Result<_>>()?;
        let new = self.handed_over(&file, &self.new.id, Some(&source));
        let pause = pause(store, ui)?;
        let session = pause.hand_over(&new).map_err(|error| failed(&error))?;
        Ok(Written {
            id: self.new.id.clone(),
            session,
            staged: Some(staged),
            companions,
            file,
        })
    }

    /// Lets the agent import the session into its database.
    fn import(&self, store: &Store, agent: &Launcher, ui: &Ui) -> Result<Written> {
        let file = self.temporary_file()?;
        let pause = pause(store, ui)?;
        let printed = while_waiting(ui, "the agent imports the session", || {
            self.run_import(agent, file.path())
        })?;
        let id = agent.imported_id(&printed, self.new).ok_or_else(|| {
            let what = format!("{} does not say which session it imported", agent.title());
            CommandError::invalid(format!("{what}: {}", one_line(&printed, 200)))
        })?;
        let new = NewSession {
            id: id.clone(),
            ..self.new.clone()
        };
        let place = agent.place(&new).map_err(|error| failed(&error))?;
        let handed = pause.hand_over(&self.handed_over(&place, &id, None));
        let session = handed.map_err(|error| failed(&error))?;
        Ok(Written {
            id,
            session,
            file: place,
            staged: None,
            companions: Vec::new(),
        })
    }

    fn temporary_file(&self) -> Result<tempfile::NamedTempFile> {
        let failed = |error| CommandError::io("cannot create a temporary file", None, &error);
        let name = tempfile::Builder::new().suffix(".json").tempfile();
        let mut file = name.map_err(failed)?;
        self.target
            .write(&self.outgoing, &mut file)
            .and_then(|()| file.flush())
            .map_err(failed)?;
        Ok(file)
    }

    /// Runs the agent's own import, and returns what it printed.
    fn run_import(&self, agent: &Launcher, file: &Path) -> Result<String> {
        let words = agent.import_command(file).unwrap_or_default();
        let program = agent.program();
        let ran = Command::new(program)
            .args(words.iter().skip(1))
            .current_dir(&self.new.directory)
            .stdin(Stdio::null())
            .output();
        let ran =
            ran.map_err(|error| CommandError::io(format!("cannot run {program}"), None, &error))?;
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.status.success() {
            return Ok(printed);
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let said = if said.trim().is_empty() {
            &printed
        } else {
            said.as_ref()
        };
        let what = format!("{} could not import the session", agent.title());
        Err(CommandError::invalid(format!(
            "{what}: {}",
            one_line(said.trim(), 300)
        )))
    }

    fn handed_over<'h>(
        &'h self,
        file: &'h Path,
        name: &'h str,
        content: Option<&'h Source>,
    ) -> HandOver<'h> {
        let agent = formats().find(|format| format.name() == self.target.name());
        HandOver {
            agent: agent.expect("an agent that is started has a format"),
            name,
            file,
            content,
            parent: self.parent,
            seq: self.seq,
            title: Some(&self.title),
            directory: Some(&self.new.directory),
        }
    }
}

/// Writes a file beside its place.
fn stage(path: &Path, bytes: &[u8]) -> Result<StagedFile> {
    let staged = StagedFile::write(path, |out| out.write_all(bytes));
    staged.map_err(|error: std::io::Error| CommandError::io(CANNOT_WRITE, Some(path), &error))
}

/// Pauses all imports, after waiting for one that is under way.
fn pause(store: &Store, ui: &Ui) -> Result<PausedImports> {
    let pause = while_paused(ui, || PausedImports::begin(store));
    pause.map_err(|error| failed(&error))
}

impl Found {
    /// Returns the title of the new session, which says where it came from.
    fn new_title(&self) -> Result<String> {
        let title = self.reader.title()?;
        let title = title.unwrap_or_else(|| format!("session {}", short(self.reader.id())));
        let from = self
            .info
            .belongs_to
            .as_deref()
            .or(self.info.agent.as_deref());
        // Where it was before does not matter any more.
        let title = title
            .rsplit_once(" (from ")
            .map_or(&*title, |(title, _)| title);
        Ok(match from.filter(|from| *from != self.agent.name()) {
            Some(from) => format!("{title} (from {})", agent_title(from)),
            None => title.to_owned(),
        })
    }
}
