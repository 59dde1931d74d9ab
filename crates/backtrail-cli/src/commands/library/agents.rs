//! The agents that continue a session, and the formats of exports.

use std::env;
use std::ffi::OsString;

use backtrail::SessionInfo;
use backtrail_formats::{Launcher, formats, launcher};
use backtrail_view::library::Place;

use super::StoreLibrary;
use super::moments;
use crate::commands::export::formats_of;
use crate::commands::run::can_start;

/// Returns the agents here that a session can continue in, its own first.
pub(super) fn agents(library: &StoreLibrary, session: &str) -> Vec<(String, String)> {
    let own = info(library, session).and_then(|info| info.belongs_to.or(info.agent));
    let mut all: Vec<Launcher> = formats().filter_map(|it| launcher(it.name())).collect();
    all.retain(|agent| can_start(agent.program()));
    all.sort_by_key(|agent| own.as_deref() != Some(agent.name()));
    all.iter()
        .map(|agent| (agent.name().to_owned(), agent.title().to_owned()))
        .collect()
}

fn info(library: &StoreLibrary, session: &str) -> Option<SessionInfo> {
    let id = moments::session(library, session).ok()?;
    library.store.read_session(&id).ok()?.info().ok()
}

/// Returns the command that continues a session in an agent.
pub(super) fn continue_command(
    library: &StoreLibrary,
    place: &Place,
    agent: &str,
) -> Vec<OsString> {
    let program = env::current_exe().map_or_else(|_| "backtrail".into(), OsString::from);
    let mut command = vec![program];
    if let Ok(Some(store)) = library.ui.named_store() {
        command.extend(["--store".into(), store.into()]);
    }
    let reference = format!("{}:{}", place.session, place.seq);
    command.extend(["resume", &reference, "--agent", agent].map(OsString::from));
    command
}

/// Returns the formats of exports, those for people first, with their file name extensions.
pub(super) fn exports(library: &StoreLibrary, session: &str) -> Vec<(String, String)> {
    let id = moments::session(library, session);
    let reader = id.and_then(|id| Ok(library.store.read_session(&id)?));
    let all = reader.and_then(|reader| formats_of(&reader));
    let all = all.unwrap_or_default().into_iter();
    all.map(|(name, extension)| (name.to_owned(), extension))
        .collect()
}
