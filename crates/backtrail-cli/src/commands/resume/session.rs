//! The session to resume, and the messages of it that are kept.

use std::path::{Path, PathBuf};

use backtrail::{RecordKind, SessionId, SessionInfo, SessionReader, Store};
use backtrail_formats::{
    CompleteEnd, Environment, ImportOptions, Launcher, ResumableAgent, agent_title, formats,
    is_handed_over, launcher, resumable,
};

use crate::commands::import::{failed, import_files};
use crate::commands::{resolve, short, split_place};
use crate::error::{CommandError, Result};
use crate::home::{tilde, workspace_root};
use crate::shell::quote_path;
use crate::text::one_line;
use crate::ui::Ui;

/// What was asked for.
pub(super) struct Wanted<'w> {
    /// The session, with its last record.
    pub(super) place: Option<&'w str>,
    /// The agent that continues it, if not its own.
    pub(super) agent: Option<&'w str>,
    /// Whether it gets a directory of its own.
    pub(super) has_directory: bool,
}

impl Wanted<'_> {
    /// Returns the option that names the agent, if it was given.
    fn flag(&self) -> String {
        let agent = self.agent;
        agent.map_or_else(String::new, |agent| format!(" --agent {agent}"))
    }
}

/// A session that can be resumed.
pub(super) struct Found {
    pub(super) reader: SessionReader,
    /// The session that the new one continues: this one, or its fork in another directory.
    pub(super) parent: SessionReader,
    pub(super) info: SessionInfo,
    /// The agent that continues it.
    pub(super) agent: Launcher,
    /// How the agent's own file is copied, if it is the agent's own session.
    pub(super) copies: Option<ResumableAgent>,
    pub(super) directory: PathBuf,
    /// The option that names the agent, if it was given.
    pub(super) flag: String,
    /// The record that was asked for.
    pub(super) asked: Option<u64>,
    /// The keys of the messages and summaries that are kept, and the record of the last.
    pub(super) keys: Vec<String>,
    pub(super) last: Option<u64>,
    /// The last message or summary up to the record that was asked for.
    newest: Option<u64>,
}

impl Found {
    /// Finds the session that a reference means, or the newest here.
    pub(super) fn find(
        store: &Store,
        wanted: &Wanted<'_>,
        environment: &Environment,
        ui: &Ui,
    ) -> Result<Self> {
        let (id, asked) = match wanted.place.map(split_place).transpose()? {
            Some((reference, seq)) => {
                let id = resolve(store, reference)?;
                update_session(store, &id, environment, ui)?;
                (id, seq)
            }
            None => (newest(store, wanted, environment, ui)?, None),
        };
        let reader = store.read_session(&id)?;
        let info = reader.info()?;
        let agent = agent_of(&info, wanted, ui)?;
        let is_own = info.belongs_to.as_deref() == Some(agent.name())
            && info.spawned_by.is_none()
            // The first part of such a file is not the agent's own.
            && !is_handed_over(&reader).map_err(|error| failed(&error))?;
        let directory = match wanted.has_directory {
            true => PathBuf::new(),
            false => directory_of(store, &info, wanted, ui)?,
        };
        let mut found = Self {
            directory,
            flag: wanted.flag(),
            parent: store.read_session(&id)?,
            reader,
            agent,
            copies: resumable(agent.name()).filter(|_| is_own),
            asked,
            keys: Vec::new(),
            last: None,
            newest: None,
            info,
        };
        found.read(found.info.last_seq, ui)?;
        Ok(found)
    }

    /// Returns whether the agent's program must write the session itself.
    pub(super) fn needs_program(&self) -> bool {
        self.agent.import_command(Path::new("")).is_some()
    }

    /// Returns the session and its last record, as people write it.
    pub(super) fn place(&self) -> String {
        let seq = self.asked.map_or_else(String::new, |seq| format!(":{seq}"));
        format!("{}{seq}", short(self.reader.id()))
    }

    /// Returns where the conversation ends, if not at its end.
    pub(super) fn upto(&self) -> String {
        match self.last.filter(|_| self.asked.is_some()) {
            Some(last) => format!(" up to record {last}"),
            None => String::new(),
        }
    }

    /// Returns the record whose state of the files belongs to the end of the conversation. Commands
    /// may have run after its last message.
    pub(super) fn files_seq(&self) -> u64 {
        match self.newest == self.last {
            true => self.asked.unwrap_or(self.info.last_seq),
            false => self.last.unwrap_or(0),
        }
    }

    /// Reports that the conversation could not end where it was asked to.
    pub(super) fn report_cut(&self, ui: &Ui) {
        if let (Some(asked), Some(last)) = (self.asked, self.last)
            && self.newest != self.last
        {
            let what = format!("record {asked} is within a response; it ends at record {last}");
            ui.warning(&what, None);
        }
    }

    /// Reads which messages are kept.
    fn read(&mut self, last_seq: u64, ui: &Ui) -> Result<()> {
        let upto = self.asked.unwrap_or(u64::MAX);
        let (id, program) = (short(self.reader.id()).to_owned(), ui.program());
        let see = format!("see the records: {program} show {id}");
        if self.asked.is_some_and(|asked| asked > last_seq) {
            let what = format!("session {id} has no record {upto}; its last is {last_seq}");
            return Err(CommandError::not_found(what).hint(see));
        }
        let mut end = CompleteEnd::default();
        let mut complete = 0;
        let mut records = self.reader.records()?;
        while let Some(record) = records.next()? {
            if record.seq() > upto {
                break;
            }
            match record.kind() {
                RecordKind::Message => {
                    if let (Some(message), details) = record.stored_message_and_details() {
                        end.add(&message, details.response_id.as_deref());
                    }
                }
                RecordKind::Compaction => end.begin(),
                _ => continue,
            }
            self.keys.push(record.id().unwrap_or_default().into_owned());
            self.newest = Some(record.seq());
            if end.is_complete() || self.asked.is_none() {
                complete = self.keys.len();
                self.last = self.newest;
            }
        }
        self.keys.truncate(complete);
        match self.keys.is_empty() {
            false => Ok(()),
            true => {
                let what = format!("session {id} has no complete exchange up to there");
                Err(CommandError::invalid(what).hint(see))
            }
        }
    }
}

/// Returns the newest session in this workspace that can be resumed, after importing what is new.
fn newest(
    store: &Store,
    wanted: &Wanted<'_>,
    environment: &Environment,
    ui: &Ui,
) -> Result<SessionId> {
    let formats = formats().filter(|format| launcher(format.name()).is_some());
    let options = ImportOptions::new(environment.clone()).formats(formats.collect());
    import_files(Some(store), &options, ui)?;
    let can_resume = |info: &SessionInfo| match wanted.agent {
        Some(_) => info.spawned_by.is_none(),
        None => own_agent(info).is_some(),
    };
    let found = match workspace_root(store) {
        Some(root) => store.latest_in(&root, can_resume)?,
        None => None,
    };
    found.ok_or_else(|| {
        let program = ui.program();
        CommandError::not_found("no session here that can be resumed")
            .hint(format!("see all sessions: {program} list --all"))
    })
}

/// Imports what the agent added to a session's file.
fn update_session(store: &Store, id: &SessionId, environment: &Environment, ui: &Ui) -> Result<()> {
    let sources = store.read_session(id)?.sources()?;
    let paths = sources.into_iter().map(|source| source.path);
    // A file that is imported under another path would be another file of the session.
    let is_itself = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real == *path);
    let paths: Vec<PathBuf> = paths.filter(is_itself).collect();
    if !paths.is_empty() {
        let options = ImportOptions::new(environment.clone()).paths(paths);
        import_files(Some(store), &options, ui)?;
    }
    Ok(())
}

/// Returns the agent that keeps a session, or kept the one that it was forked from.
fn own_agent(info: &SessionInfo) -> Option<Launcher> {
    let name = info.belongs_to.as_deref().or(info.agent.as_deref());
    name.and_then(launcher)
}

/// Returns the agent that continues a session.
fn agent_of(info: &SessionInfo, wanted: &Wanted<'_>, ui: &Ui) -> Result<Launcher> {
    if let Some(agent) = wanted.agent.and_then(launcher) {
        return Ok(agent);
    }
    let (id, program) = (short(&info.id), ui.program());
    let other = format!("continue it in an agent: {program} resume {id} --agent NAME");
    if let Some(spawned) = &info.spawned_by {
        let what = format!("session {id} is a sub-agent's, which is not resumed by itself");
        let (parent, seq) = (short(&spawned.session_id), spawned.seq);
        let error = CommandError::invalid(what);
        return Err(error
            .hint(format!(
                "resume the session that started it: {program} resume {parent}:{seq}"
            ))
            .hint(other));
    }
    own_agent(info).ok_or_else(|| {
        let what = match &info.belongs_to {
            Some(name) => {
                let title = one_line(agent_title(name), 40);
                format!("{title} cannot be started on a session from here")
            }
            None => format!("session {id} is not an agent's own"),
        };
        CommandError::invalid(what).hint(other)
    })
}

/// Returns the directory of a session as it is called now, if it exists.
fn directory_of(
    store: &Store,
    info: &SessionInfo,
    wanted: &Wanted<'_>,
    ui: &Ui,
) -> Result<PathBuf> {
    let (id, program) = (short(&info.id), ui.program());
    let Some(directory) = &info.workspace_root else {
        // A session that was only recorded continues here.
        if wanted.agent.is_some()
            && let Some(here) = workspace_root(store)
        {
            return Ok(here);
        }
        let what = format!("session {id} does not say which directory it worked in");
        return Err(CommandError::invalid(what).hint(format!("read it: {program} show {id}")));
    };
    let moved = store.moved_root(info);
    let directory = moved.as_ref().unwrap_or(directory);
    if directory.is_dir() {
        return Ok(directory.clone());
    }
    let what = format!(
        "the directory of session {id} is gone: {}",
        tilde(directory)
    );
    let old = quote_path(directory);
    Err(CommandError::not_found(what)
        .at_path(directory)
        .hint(format!("if it was moved: {program} relink {old} NEW"))
        .hint(format!("if not, create it: mkdir -p {old}"))
        .hint(format!(
            "if its files were saved, put them elsewhere: {program} resume {id}{} --into DIR",
            wanted.flag()
        )))
}
