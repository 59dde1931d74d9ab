//! A session as a whole: the head of its page, its family, its workspace.

use backtrail::{SessionId, SessionInfo};
use backtrail_index::{Filter, Group, Index};
use backtrail_view::library::SessionEntry;
use backtrail_web::library::SessionPage;

use super::super::sessions::{entry, survey_of, writer_of};
use super::super::{Answer, StoreLibrary, failure, moments};
use super::find_sessions::alone;
use crate::commands::conversation::{NO_TITLE, Survey};
use crate::commands::export::header;
use crate::commands::list::trees;
use crate::commands::moves::workspace_of;
use crate::derived;
use crate::error::Result;

pub(super) fn session_page(library: &StoreLibrary, reference: &str) -> Answer<SessionPage> {
    read(library, reference).map_err(failure)
}

fn read(library: &StoreLibrary, reference: &str) -> Result<SessionPage> {
    let id = moments::session(library, reference)?;
    let reader = library.store.read_session(&id)?;
    let info = reader.info()?;
    let index = library.recent_index()?;
    let title = reader.title()?;
    let title = title.as_deref().unwrap_or(NO_TITLE);
    let mut filter = Filter::default();
    filter.session = Some(id.clone());
    let rows = alone(&index, &filter)?;
    Ok(SessionPage {
        row: rows.into_iter().next().unwrap_or_default(),
        head_html: header(title, &info, &survey(&index, &id)?),
        first: 0,
        end: info.last_seq,
        writer: writer_of(&reader)?,
        family: family(&index, &id)?,
        workspace: workspace(library, &info)?,
    })
}

/// Returns the numbers that the head shows, without reading the session.
fn survey(index: &Index, id: &SessionId) -> Result<Survey> {
    let row = derived::session(index, id)?;
    let mut survey = row.as_ref().map(survey_of).unwrap_or_default();
    let mut filter = Filter::default();
    filter.session = Some(id.clone());
    let models = index.spending_by(&filter, &[Group::Model])?.by;
    let mut models: Vec<String> = models.into_iter().filter_map(|row| row.key).collect();
    models.sort();
    survey.stats.models = models;
    Ok(survey)
}

fn family(index: &Index, id: &SessionId) -> Result<Vec<SessionEntry>> {
    let mut filter = Filter::default();
    filter.family_of = Some(id.clone());
    Ok(trees(index.sessions(&filter)?, entry))
}

/// Returns the workspace that has the files of a session; empty if none is known.
fn workspace(library: &StoreLibrary, info: &SessionInfo) -> Result<String> {
    let found = match workspace_of(&library.store, &info.id)? {
        Some(found) => Some(found),
        // It names the directory alone.
        None => {
            let root = info.workspace_root.as_deref();
            root.and_then(|root| library.store.find_workspace(root).ok()?)
        }
    };
    Ok(found.map_or_else(String::new, |workspace| workspace.id().to_string()))
}
