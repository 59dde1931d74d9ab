//! Where the text of a purged session remains: in sessions that other agents continued it in, and
//! in the agents' own files, which are not Backtrail's to remove.

use std::path::PathBuf;

use backtrail::trash::PurgePlan;
use backtrail::{SessionId, SessionReader, Store};
use backtrail_formats::{agent_title, is_handed_over};
use serde_json::{Value, json};

use crate::commands::short;
use crate::home::tilde;
use crate::shell::quote_paths;
use crate::text::{one_line, path_json, plural, some_of};
use crate::ui::Ui;

/// How many of many are named in a warning.
const NAMED: usize = 5;

/// What a purge leaves with agents.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The sessions that stay, and whose kept file begins with the text; with their agents.
    sessions: Vec<(SessionId, Option<String>)>,
    /// The agents' own files.
    files: Vec<PathBuf>,
    /// The agents' databases.
    databases: Vec<PathBuf>,
}

impl Copies {
    /// Finds what a purge will leave.
    pub(super) fn find(store: &Store, plan: &PurgePlan) -> Self {
        let mut copies = Self::default();
        for deletion in plan.deletions() {
            // One that is in the trash or cannot be read is purged all the same.
            if let Ok(reader) = store.read_session(&deletion.id) {
                copies.add_files(&reader);
            }
        }
        for id in plan.forks() {
            let Ok(reader) = store.read_session(id) else {
                continue;
            };
            if is_handed_over(&reader).unwrap_or(true) {
                let agent = reader.info().ok().and_then(|info| info.belongs_to);
                copies.sessions.push((id.clone(), agent));
                copies.add_files(&reader);
            }
        }
        copies
    }

    /// Adds the files on this machine that a session was imported from.
    fn add_files(&mut self, reader: &SessionReader) {
        for source in reader.sources().unwrap_or_default() {
            let database = source.path.parent().filter(|path| path.is_file());
            let (list, path) = match database {
                Some(database) => (&mut self.databases, database),
                None if source.path.is_file() => (&mut self.files, source.path.as_path()),
                None => continue,
            };
            if !list.iter().any(|known| known == path) {
                list.push(path.to_owned());
            }
        }
    }

    pub(super) fn sessions_json(&self) -> Value {
        let session = |(id, agent): &(SessionId, Option<String>)| json!({"id": id, "agent": agent});
        self.sessions.iter().map(session).collect()
    }

    pub(super) fn files_json(&self) -> Value {
        let all = self.files.iter().chain(&self.databases);
        all.map(|path| path_json(path)).collect()
    }

    /// Warns of it. `cascade` is the command that purges the sessions, too.
    pub(super) fn warn(&self, cascade: &str, ui: &Ui) {
        if !self.sessions.is_empty() {
            let named = self.sessions.iter().map(|(id, agent)| {
                let agent = agent.as_deref().map_or("another agent", agent_title);
                format!("{} ({})", short(id), one_line(agent, 40))
            });
            let named = some_of(named, NAMED, self.sessions.len());
            let what =
                format!("it continues in other agents, and these sessions keep its text: {named}");
            ui.warning(&what, Some(&format!("to purge them too: {cascade}")));
        }
        if !self.files.is_empty() {
            let have = plural(
                self.files.len() as u64,
                "an agent's own file has",
                "agents' own files have",
            );
            let named = some_of(
                self.files.iter().map(|path| tilde(path)),
                NAMED,
                self.files.len(),
            );
            let hint = format!("to remove the text there: rm {}", quote_paths(&self.files));
            ui.warning(&format!("{have} its text: {named}"), Some(&hint));
        }
        if !self.databases.is_empty() {
            let named = some_of(
                self.databases.iter().map(|path| tilde(path)),
                NAMED,
                self.databases.len(),
            );
            let what = format!("an agent's own database has its text: {named}");
            ui.warning(&what, Some("delete the session in that agent"));
        }
    }
}
