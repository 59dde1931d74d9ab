//! Binds checkpoints that were made while an agent worked to the agent's imported sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backtrail::workspace::AgentPlace;
use backtrail::{Checkpoint, ErrorKind, SessionId, Store, Workspace};

use crate::error::Result;
use crate::format::{Format, formats};
use crate::import::{ImportOptions, import, session_id};

/// Returns the id here of a session, by its agent's own id.
pub fn agent_session(agent: &str, name: &str) -> SessionId {
    session_id(agent, name)
}

/// Binds the checkpoints of all workspaces to the sessions that are imported. Returns how many
/// got their place.
///
/// # Errors
///
/// Fails if the store cannot be read or written.
pub fn bind_imported(store: &Store) -> Result<usize> {
    let mut count = 0;
    for workspace in store.workspaces()? {
        for place in sessions_of(&workspace.unbound()?) {
            count += bind_one(&workspace, &place)?;
        }
    }
    Ok(count)
}

/// Imports the agents' sessions that these places are in, and binds the checkpoints of the
/// workspace that wait for them. Returns how many got their place.
///
/// # Errors
///
/// Fails if the store cannot be read or written.
pub fn bind_new(
    workspace: &Workspace,
    places: &[AgentPlace],
    options: &ImportOptions,
) -> Result<usize> {
    for (format, paths) in files_of(places) {
        let options = options.clone().formats(vec![format]);
        let options = match paths.is_empty() {
            // A database, where all that did not change is skipped.
            true => options,
            false => options.paths(paths),
        };
        import(workspace.store(), &options, &|_| {})?;
    }
    let bound = places.iter().map(|place| bind_one(workspace, place));
    bound.sum()
}

/// Returns the sessions of agents that checkpoints are for, each once.
pub fn sessions_of(checkpoints: &[Checkpoint]) -> Vec<AgentPlace> {
    let mut places: BTreeMap<(&str, &str), AgentPlace> = BTreeMap::new();
    for agent in checkpoints.iter().filter_map(Checkpoint::agent) {
        let place = places.entry((&agent.name, &agent.session));
        let place = place.or_insert_with(|| AgentPlace::new(&*agent.name, &*agent.session));
        place.source = place.source.take().or_else(|| agent.source.clone());
    }
    places.into_values().collect()
}

fn bind_one(workspace: &Workspace, place: &AgentPlace) -> Result<usize> {
    let session = session_id(&place.name, &place.session);
    match workspace.bind_session(place, &session) {
        // It is not imported yet, was deleted, or is damaged: the others count.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => Ok(0),
        bound => Ok(bound?),
    }
}

/// Returns the files to import, by their format; none for an agent that does not say.
fn files_of(places: &[AgentPlace]) -> Vec<(&'static dyn Format, Vec<PathBuf>)> {
    let of_format = |format: &'static dyn Format| {
        let own = places.iter().filter(|place| place.name == format.name());
        let own: Vec<&AgentPlace> = own.collect();
        if own.is_empty() {
            return None;
        }
        let sources = own.iter().map(|place| place.source.as_ref());
        let paths: Option<Vec<PathBuf>> = sources.map(|it| it.map(PathBuf::from)).collect();
        Some((format, paths.unwrap_or_default()))
    };
    formats().filter_map(of_format).collect()
}
