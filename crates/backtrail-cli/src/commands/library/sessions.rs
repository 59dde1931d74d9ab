//! The sessions, as a list and one by one.

use std::sync::Arc;

use backtrail::{SessionId, SessionReader};
use backtrail_index::{Field, Filter, Project, SessionRow};
use backtrail_view::library::{Freshness, Scope, SessionEntry, SessionHead, SessionList};

use super::{Answer, StoreLibrary, failure, session_id};
use crate::commands::conversation::{NO_TITLE, Survey};
use crate::commands::list::{SessionLine, trees};
use crate::commands::workspace::freshen_at_once;
use crate::commands::{filters, fresh};
use crate::derived;
use crate::error::Result;
use crate::short::{know, short};
use crate::text::{cost, one_line, visible};

/// The longest title.
const TITLE: usize = 300;

pub(super) fn list(
    library: &StoreLibrary,
    scope: Scope,
    freshness: Freshness,
) -> Answer<SessionList> {
    read_list(library, scope, freshness).map_err(failure)
}

fn read_list(library: &StoreLibrary, scope: Scope, freshness: Freshness) -> Result<SessionList> {
    let index = match freshness {
        Freshness::Known => Arc::new(library.index_as_left()?),
        Freshness::Current => {
            freshen_at_once(&library.store);
            fresh::import_quietly(&library.store);
            library.fresh_index()?
        }
    };
    know(|| index.short_ids().ok());
    let filter = filter(library, scope);
    let mut rows = index.sessions(&filter)?;
    if scope == Scope::Project {
        rows.retain(|row| row.project == library.project);
    }
    let all = match scope {
        Scope::Everything => rows.len() as u64,
        _ => index.values(Field::Sessions)?.len() as u64,
    };
    let entries = trees(rows, entry);
    Ok(SessionList {
        entries,
        all,
        workspace: library.workspace_name(),
        project: library.project.as_ref().map(|project| name(&project.name)),
    })
}

fn name(text: &str) -> String {
    one_line(&visible(text), 60)
}

/// Returns the filter of a scope.
pub(super) fn filter(library: &StoreLibrary, scope: Scope) -> Filter {
    let mut filter = Filter::default();
    match scope {
        Scope::Everything => {}
        Scope::Workspace => {
            let root = library.root.clone().unwrap_or_default();
            filter.workspace = Some(filters::known(&library.store, root));
        }
        Scope::Project => {
            let names = |project: &Project| project.remote.clone().unwrap_or(project.name.clone());
            filter.projects = library.project.iter().map(names).collect();
        }
    }
    filter
}

/// Returns a session of the list.
pub(super) fn entry(line: &SessionLine<'_>, is_wordless: bool) -> SessionEntry {
    let row = line.row;
    let title = match &row.error {
        Some(error) => format!("unreadable: {error}"),
        None => line.full_title(),
    };
    SessionEntry {
        id: row.id.to_string(),
        short: short(&row.id),
        agent: line.agent(),
        project: line.project(),
        title: one_line(&title, TITLE),
        updated_ms: row.updated_at.map_or(0, |at| at.as_millis()),
        when: line.when(),
        turns: row.turns,
        files: line.files,
        cost: cost(&line.spending),
        tags: row.tags.iter().map(|tag| name(tag)).collect(),
        depth: line.depth,
        is_sub_agent: row.family.spawned_by.is_some(),
        is_pinned: row.pinned,
        is_damaged: row.damaged > 0 || row.error.is_some(),
        is_wordless,
        last_seq: row.last_seq,
    }
}

pub(super) fn head(library: &StoreLibrary, session: &str) -> Answer<SessionHead> {
    let id = session_id(session)?;
    read_head(library, &id).map_err(failure)
}

fn read_head(library: &StoreLibrary, id: &SessionId) -> Result<SessionHead> {
    let reader = library.store.read_session(id)?;
    let info = reader.info()?;
    let row = derived::session(&library.index_as_left()?, &info.id)?;
    let mut facts = vec![short(id)];
    facts.extend(row.iter().flat_map(|row| survey_of(row).words()));
    let title = reader.title()?;
    let title = title.as_deref().unwrap_or(NO_TITLE);
    Ok(SessionHead {
        title: one_line(title, TITLE),
        facts: facts.join(", "),
        writer: writer_of(&reader)?,
    })
}

/// Returns the process that is writing to a session, if one is.
pub(super) fn writer_of(reader: &SessionReader) -> Result<Option<String>> {
    Ok(reader.writer()?.map(|holder| match holder {
        Some(holder) => one_line(&holder.to_string(), 80),
        None => "another process".to_owned(),
    }))
}

/// Returns the numbers that the catalogue has of a session, so that it need not be read.
pub(super) fn survey_of(row: &SessionRow) -> Survey {
    let mut survey = Survey {
        spending: row.spending,
        files: row.files_changed,
        ..Survey::default()
    };
    survey.stats.turns = row.turns;
    survey.stats.messages.total = row.messages;
    survey.stats.tool_calls = row.tool_calls;
    survey
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
