//! The session to resume, and the messages of it that are kept.

use std::path::PathBuf;

use backtrail::{RecordKind, SessionId, SessionInfo, SessionReader, Store};
use backtrail_formats::{
    CompleteEnd, Environment, ImportOptions, ResumableAgent, agent_title, formats, import,
    resumable,
};

use crate::commands::import::failed;
use crate::commands::{resolve, short, split_place};
use crate::error::{CommandError, Result};
use crate::home::{tilde, workspace_root};
use crate::shell::quote_path;
use crate::text::one_line;
use crate::ui::Ui;

/// A session of an agent that can be resumed.
pub(super) struct Found {
    pub(super) reader: SessionReader,
    pub(super) agent: ResumableAgent,
    pub(super) directory: PathBuf,
    /// The record that was asked for.
    pub(super) asked: Option<u64>,
    /// The keys of the messages and summaries that are kept, and the record of the last.
    pub(super) keys: Vec<String>,
    pub(super) last: Option<u64>,
    /// The last message or summary up to the record that was asked for.
    newest: Option<u64>,
}

impl Found {
    /// Finds the session that a reference means, or the newest of an agent here.
    pub(super) fn find(
        store: &Store,
        place: Option<&str>,
        environment: &Environment,
        ui: &Ui,
    ) -> Result<Self> {
        let (id, asked) = match place.map(split_place).transpose()? {
            Some((reference, seq)) => {
                let id = resolve(store, reference)?;
                update_session(store, &id, environment)?;
                (id, seq)
            }
            None => (newest(store, environment, ui)?, None),
        };
        let reader = store.read_session(&id)?;
        let info = reader.info()?;
        let agent = agent_of(&info, ui)?;
        let mut found = Self {
            directory: directory_of(store, &info, ui)?,
            reader,
            agent,
            asked,
            keys: Vec::new(),
            last: None,
            newest: None,
        };
        found.read(info.last_seq, ui)?;
        Ok(found)
    }

    /// Returns whether the conversation could not end where it was asked to.
    pub(super) fn is_cut_earlier(&self) -> bool {
        self.newest != self.last
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

/// Returns the newest session of an agent in this workspace, after importing what is new.
fn newest(store: &Store, environment: &Environment, ui: &Ui) -> Result<SessionId> {
    let formats = formats().filter(|format| resumable(format.name()).is_some());
    let options = ImportOptions::new(environment.clone()).formats(formats.collect());
    import(store, &options, &|_| {}).map_err(|error| failed(&error))?;
    let is_resumable = |info: &SessionInfo| {
        let agent = info.belongs_to.as_deref();
        agent.is_some_and(|agent| resumable(agent).is_some())
    };
    let found = match workspace_root(store) {
        Some(root) => store.latest_in(&root, is_resumable)?,
        None => None,
    };
    found.ok_or_else(|| {
        let program = ui.program();
        CommandError::not_found("no session here that can be resumed")
            .hint(format!("see all sessions: {program} list --all"))
    })
}

/// Imports what the agent added to a session's file.
fn update_session(store: &Store, id: &SessionId, environment: &Environment) -> Result<()> {
    let sources = store.read_session(id)?.sources()?;
    let paths = sources.into_iter().map(|source| source.path);
    // A file that is imported under another path would be another file of the session.
    let is_itself = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real == *path);
    let paths: Vec<PathBuf> = paths.filter(is_itself).collect();
    if !paths.is_empty() {
        let options = ImportOptions::new(environment.clone()).paths(paths);
        import(store, &options, &|_| {}).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Returns the agent of a session, if it can resume it.
fn agent_of(info: &SessionInfo, ui: &Ui) -> Result<ResumableAgent> {
    let (id, program) = (short(&info.id), ui.program());
    let Some(name) = &info.belongs_to else {
        let what = format!("session {id} is not an agent's own, so no agent can resume it");
        let error = CommandError::invalid(what);
        return Err(match &info.forked_from {
            Some(fork) => {
                let seq = fork.seq.map_or_else(String::new, |seq| format!(":{seq}"));
                let parent = one_line(&fork.parent_session_id, 60);
                error.hint(format!("resume its parent: {program} resume {parent}{seq}"))
            }
            None => error.hint(format!(
                "add messages to it: {program} record --session {id}"
            )),
        });
    };
    if let Some(spawned) = &info.spawned_by {
        let what = format!("session {id} is a sub-agent's, which is not resumed by itself");
        let (parent, seq) = (short(&spawned.session_id), spawned.seq);
        return Err(CommandError::invalid(what).hint(format!(
            "resume the session that started it: {program} resume {parent}:{seq}"
        )));
    }
    resumable(name).ok_or_else(|| not_yet(info, name, program))
}

/// Returns the error for an agent whose sessions cannot be copied, and what can be done instead.
fn not_yet(info: &SessionInfo, name: &str, program: &str) -> CommandError {
    let id = short(&info.id);
    let title = one_line(agent_title(name), 40);
    let what = format!("resuming a session of {title} is not possible yet");
    let original = info.original_id.as_deref().unwrap_or(info.id.as_str());
    let original = one_line(original, 80);
    let whole = match name {
        "opencode" => Some(format!("opencode -s {original}")),
        "goose" => Some(format!("goose session -r --session-id {original}")),
        "cline" => Some(format!("cline --id {original} -i")),
        _ => None,
    };
    let error = CommandError::invalid(what);
    let error = match whole {
        Some(command) => error.hint(format!(
            "all of it, under its own id: {program} run -- {command}"
        )),
        None => error,
    };
    error.hint(format!("read it: {program} show {id}"))
}

/// Returns the directory of a session as it is called now, if it exists.
fn directory_of(store: &Store, info: &SessionInfo, ui: &Ui) -> Result<PathBuf> {
    let (id, program) = (short(&info.id), ui.program());
    let Some(directory) = &info.workspace_root else {
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
        .hint(format!("if not, create it: mkdir -p {old}")))
}
