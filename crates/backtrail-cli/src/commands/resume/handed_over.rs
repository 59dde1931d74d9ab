//! A session in the form of another agent, which continues it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backtrail::context::{HandOverExtent, HandOverOptions};
use backtrail::trash::DeleteScope;
use backtrail::{SessionId, Store};
use backtrail_formats::{
    HandOver, Launcher, Losses, NewSession, OutgoingSession, PausedImports, Source, Target,
    agent_title, formats, hand_over, target,
};

use super::made::{MadeSession, WriteError};
use super::session::Found;
use crate::commands::import::failed;
use crate::commands::short;
use crate::error::{CommandError, Result};
use crate::files;
use crate::text::{count, one_line};
use crate::ui::Ui;

/// Writes the session where the agent finds it, under a new id.
pub(super) fn make(
    store: &Store,
    found: &Found,
    extent: HandOverExtent,
    new: &NewSession<'_>,
    ui: &Ui,
) -> Result<MadeSession> {
    let agent = found.agent;
    let target = target(agent.name()).ok_or_else(|| {
        let what = format!("sessions cannot be written for {}", agent.title());
        CommandError::invalid(what)
    })?;
    let prepared = Prepared::new(found, extent, target, new)?;
    let (id, session, file) = match agent.import_command(Path::new("")) {
        Some(_) => prepared.import(store, &agent)?,
        None => prepared.place(store, &agent)?,
    };
    let new = NewSession { id, ..new.clone() };
    let mut made = MadeSession::new(&agent, &new, file);
    for loss in prepared.losses.rows() {
        ui.status(&format!("note: {loss}"));
    }
    let (old, upto) = (short(found.reader.id()), found.upto());
    let messages = count(prepared.outgoing.message_count(), "message");
    ui.status(&format!(
        "wrote session {old}{upto} for {} as {} ({messages})",
        agent.title(),
        new.id
    ));
    made.session = Some(session);
    made.losses = prepared.losses;
    Ok(made)
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

    /// Writes the file where the agent finds it. The session here comes first: otherwise an
    /// import could take the file for a session of its own.
    fn place(&self, store: &Store, agent: &Launcher) -> Result<(String, SessionId, PathBuf)> {
        let file = agent.place(self.new).map_err(|error| failed(&error))?;
        let mut content = Vec::new();
        let written = self.target.write(&self.outgoing, &mut content);
        written.map_err(|error| CommandError::io("cannot write the session", None, &error))?;
        let mut session = None;
        let source = Source::from_bytes(&file, content);
        let created = files::create_whole(&file, |out| {
            // The directory can be written, or we were not here.
            let new = self.handed_over(&file, &self.new.id, Some(&source));
            let handed = hand_over(store, &new).map_err(|error| failed(&error));
            session = Some(handed.map_err(WriteError::Content)?);
            let bytes = source.read_range(0..source.len());
            let bytes = bytes.map_err(|error| WriteError::Content(failed(&error)))?;
            out.write_all(&bytes)?;
            Ok(())
        });
        if let (Err(_), Some(session)) = (&created, &session) {
            // Nothing will ever be added to it.
            let ids = std::slice::from_ref(session);
            let plan = store.purge_plan(ids, DeleteScope::Named);
            plan.and_then(|plan| plan.apply()).ok();
        }
        created.map_err(|error: WriteError| error.at("cannot write the session", &file))?;
        // Last, as some agents find a session by them.
        for (path, text) in self.target.companions(&self.outgoing, &file) {
            create_companion(&path, &text)?;
        }
        let session = session.expect("the file is written after the session");
        Ok((self.new.id.clone(), session, file))
    }

    /// Lets the agent import the session into its database.
    fn import(&self, store: &Store, agent: &Launcher) -> Result<(String, SessionId, PathBuf)> {
        let file = self.temporary_file()?;
        let pause = PausedImports::begin(store).map_err(|error| failed(&error))?;
        let printed = self.run_import(agent, file.path())?;
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
        Ok((id, session, place))
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

/// Creates a small file beside the session, unless there is one.
fn create_companion(path: &Path, text: &str) -> Result<()> {
    let created = files::create_whole(path, |out| {
        out.write_all(text.as_bytes())?;
        Ok(())
    });
    match created {
        Err(WriteError::File(error)) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map_err(|error| error.at("cannot write the session", path)),
    }
}
