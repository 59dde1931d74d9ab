//! Completions from the store.
//!
//! They must be quick with many thousands of sessions: ids come from the names of directories,
//! titles and times from the catalogue as it is, and only a few sessions are read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use backtrail::{SessionId, SessionInfo, Store, Timestamp, Workspace};
use backtrail_index::known_sessions;

use super::line::Candidate;
use crate::files;
use crate::home::{store_dir, workspace_root};
use crate::settings::Settings;
use crate::short::{self, short};
use crate::when;

/// The most sessions that are read for their titles.
const TITLED: usize = 30;
/// The most sessions that are offered before anything is typed.
const NEWEST: usize = 30;
/// The most checkpoints that are offered.
const CHECKPOINTS: usize = 200;

/// The completions of a word.
pub(super) struct Values<'a> {
    current: &'a str,
    dir: Option<PathBuf>,
}

impl<'a> Values<'a> {
    pub(super) fn new(store: Option<&str>, current: &'a str) -> Self {
        let dir = store_dir(store.map(Path::new)).ok();
        Self {
            current,
            dir: dir.map(|(dir, _)| dir),
        }
    }

    /// Opens the store without creating it.
    fn store(&self) -> Option<Store> {
        Store::open(self.dir.clone()?).ok()
    }

    /// Returns the sessions: those of this workspace first, and the newest of each first.
    pub(super) fn sessions(&self) -> Vec<Candidate> {
        let mut found = self.latest();
        let Some(store) = self.store() else {
            let ids = self.session_ids();
            found.extend(ids.iter().filter_map(|id| Candidate::new(id, "")));
            return found;
        };
        let mut there: HashMap<String, PathBuf> = self.all_ids().into_iter().collect();
        there.retain(|id, _| self.may_mean(id));
        let mut known = known_sessions(&store);
        known.retain(|session| there.remove(&session.id).is_some());
        let root = workspace_root(&store);
        known.sort_by_key(|session| root.is_none() || session.root != root);
        // What the catalogue does not know yet is newer than what it knows.
        let new = newest(there.into_iter().collect(), self.most());
        let titled = new.len() <= TITLED;
        let new = new.iter().filter_map(|id| {
            let what = titled.then(|| described(&store, id));
            Candidate::new(&self.name_of(&store, id)?, &what.unwrap_or_default())
        });
        let known = known.iter().filter_map(|session| {
            let what = about(session.updated_at, &session.title);
            Candidate::new(&self.name_of(&store, &session.id)?, &what)
        });
        found.extend(new.chain(known).take(self.most()));
        found
    }

    /// Returns how many sessions are offered at most: the newest if nothing was typed.
    fn most(&self) -> usize {
        match self.current.is_empty() {
            true => NEWEST,
            false => usize::MAX,
        }
    }

    /// Returns whether what was typed is the beginning of a session's id or short id.
    fn may_mean(&self, id: &str) -> bool {
        self.fits(id) || id.parse().is_ok_and(|id: SessionId| self.fits(&id.short()))
    }

    /// Returns the name of a session that continues what was typed: its id, or its short id.
    fn name_of(&self, store: &Store, id: &str) -> Option<String> {
        if self.fits(id) && !self.current.is_empty() {
            return Some(id.to_owned());
        }
        short::use_store(store);
        let id = id.parse().ok()?;
        let shown = Some(short(&id)).filter(|shown| self.fits(shown));
        Some(shown.unwrap_or_else(|| id.short()))
    }

    /// Returns the sessions in the trash.
    pub(super) fn deleted(&self) -> Vec<Candidate> {
        let ids = self.store().and_then(|store| store.deleted_sessions().ok());
        let ids = ids.into_iter().flatten();
        let fitting = ids.filter(|id| id.as_str().starts_with(self.current));
        let candidate = |id: SessionId| Candidate::new(id.as_str(), "in the trash");
        fitting.filter_map(candidate).collect()
    }

    /// Returns the checkpoints of this workspace, by their ids and their labels.
    pub(super) fn points(&self) -> Vec<Candidate> {
        let mut found = self.fixed(&[
            ("last", "the newest checkpoint here"),
            ("last~1", "before the last turn or run"),
            ("last~2", "before the last two"),
        ]);
        let Some(workspace) = self.workspace() else {
            return found;
        };
        let Ok(checkpoints) = workspace.checkpoints_back() else {
            return found;
        };
        for checkpoint in checkpoints
            .take(CHECKPOINTS)
            .filter_map(backtrail::Result::ok)
        {
            let at = when::brief(checkpoint.at());
            let id = checkpoint.id().prefix(8);
            let label = checkpoint.label().map(ToOwned::to_owned);
            let about = || checkpoint.about().map(|about| about.to_string());
            let about = label.or_else(about).unwrap_or_default();
            let what = format!("{}, {at}: {about}", checkpoint.reason());
            found.extend(Candidate::new(&id, &what).filter(|_| self.fits(&id)));
            if let Some(label) = checkpoint.label().filter(|label| self.fits(label)) {
                let what = format!("checkpoint {id}, {at}");
                let is_new = !found.iter().any(|it| it.value == label);
                found.extend(Candidate::new(label, &what).filter(|_| is_new));
            }
        }
        found
    }

    pub(super) fn sessions_and_points(&self) -> Vec<Candidate> {
        let mut found = self.sessions();
        found.extend(self.points());
        found
    }

    pub(super) fn agents(&self) -> Vec<Candidate> {
        self.facts(|info| info.agent.into_iter().collect())
    }

    /// Returns the remotes that were added.
    pub(super) fn remotes(&self) -> Vec<Candidate> {
        let settings = self.dir.as_ref().and_then(|dir| Settings::read(dir).ok());
        let remotes = settings.map(|settings| settings.remotes.value);
        let remotes = remotes.into_iter().flatten();
        let fitting = remotes.filter(|remote| self.fits(&remote.name));
        fitting
            .filter_map(|remote| Candidate::new(&remote.name, &remote.url.to_string()))
            .collect()
    }

    pub(super) fn models(&self) -> Vec<Candidate> {
        self.facts(|info| info.model.into_iter().collect())
    }

    pub(super) fn tags(&self) -> Vec<Candidate> {
        self.facts(|info| info.tags)
    }

    /// Returns facts about the newest sessions.
    fn facts(&self, what: impl Fn(SessionInfo) -> Vec<String>) -> Vec<Candidate> {
        let Some(store) = self.store() else {
            return Vec::new();
        };
        let ids = newest(self.all_ids(), 10 * NEWEST);
        let infos = ids.iter().filter_map(|id| info(&store, id));
        let mut facts: Vec<String> = infos.flat_map(what).collect();
        facts.sort_unstable();
        facts.dedup();
        facts.retain(|text| self.fits(text));
        facts
            .iter()
            .filter_map(|text| Candidate::new(text, ""))
            .collect()
    }

    fn latest(&self) -> Vec<Candidate> {
        self.fixed(&[("latest", "the newest session here")])
    }

    fn fixed(&self, all: &[(&str, &str)]) -> Vec<Candidate> {
        let fitting = all.iter().filter(|(value, _)| self.fits(value));
        fitting
            .filter_map(|(value, what)| Candidate::new(value, what))
            .collect()
    }

    fn fits(&self, value: &str) -> bool {
        value.starts_with(self.current)
    }

    fn workspace(&self) -> Option<Workspace> {
        let store = self.store()?;
        let root = workspace_root(&store)?;
        store.find_workspace(&root).ok().flatten()
    }

    /// Returns the sessions that match what was typed; the newest if that is nothing.
    fn session_ids(&self) -> Vec<String> {
        let mut ids = self.all_ids();
        ids.retain(|(id, _)| self.may_mean(id));
        newest(ids, self.most())
    }

    /// Returns the names and the paths of all sessions.
    fn all_ids(&self) -> Vec<(String, PathBuf)> {
        let dir = self.dir.as_ref().map(|dir| dir.join("sessions"));
        // Nothing in a store is read through a link.
        let dir = dir.filter(|dir| !dir.is_symlink());
        let entries = dir.and_then(|dir| files::entries(&dir).ok());
        let entries = entries.into_iter().flatten();
        let named = entries.filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            name.parse::<SessionId>().ok()?;
            Some((name, path))
        });
        named.collect()
    }
}

/// Returns the names of the newest directories, newest first; all of them by name if there are
/// at most `most`.
fn newest(mut all: Vec<(String, PathBuf)>, most: usize) -> Vec<String> {
    if all.len() > most {
        let changed = |path: &PathBuf| path.symlink_metadata().and_then(|it| it.modified()).ok();
        all.sort_by_cached_key(|(_, path)| {
            std::cmp::Reverse(changed(path).unwrap_or(SystemTime::UNIX_EPOCH))
        });
        all.truncate(most);
    } else {
        all.sort_unstable();
    }
    all.into_iter().map(|(id, _)| id).collect()
}

fn info(store: &Store, id: &str) -> Option<SessionInfo> {
    let reader = store.read_session(&id.parse().ok()?).ok()?;
    reader.info().ok()
}

fn described(store: &Store, id: &str) -> String {
    let Some(info) = info(store, id) else {
        return String::new();
    };
    let title = info.title.or(info.begins).unwrap_or_default();
    about(info.updated_at, &title)
}

fn about(updated_at: Option<Timestamp>, title: &str) -> String {
    let at = updated_at.map(when::brief).unwrap_or_default();
    match title.is_empty() {
        true => at,
        false => format!("{at}: {title}"),
    }
}
