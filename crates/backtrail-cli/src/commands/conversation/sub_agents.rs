//! The sub-agents that the calls of an imported session started. No record of it names them: only
//! their own sessions say which call it was.

use std::collections::HashSet;

use backtrail::{SessionId, SessionReader, Store};
use backtrail_index::{Filter, Index, SessionRow};

use crate::error::Result;

/// The sub-agents of a session, each with the id of the call that started it, oldest first.
#[derive(Debug, Default)]
pub(in crate::commands) struct SubAgents(Vec<(String, SessionId)>);

impl SubAgents {
    /// Finds those that an index knows. A conversation can be read without them, so errors are
    /// ignored.
    pub(in crate::commands) fn find(index: &Index, store: &Store, reader: &SessionReader) -> Self {
        Self::look(index, store, reader).unwrap_or_default()
    }

    fn look(index: &Index, store: &Store, reader: &SessionReader) -> Result<Self> {
        let line = reader.line_parts()?.into_iter();
        let line: HashSet<String> = line.map(|part| part.session.to_string()).collect();
        let mut filter = Filter::default();
        filter.family_of = Some(reader.id().clone());
        let mut rows = index.sessions(&filter)?;
        rows.retain(|row| {
            let parent = row.family.spawned_by.as_ref();
            is_imported(row) && parent.is_some_and(|parent| line.contains(parent))
        });
        rows.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let with_call = rows.into_iter().filter_map(|row| {
            let info = store.read_session(&row.id).and_then(|it| it.info()).ok()?;
            let call = info.spawned_by?.tool_use_id;
            (!call.is_empty()).then_some((call, row.id))
        });
        Ok(Self(with_call.collect()))
    }

    /// Returns the sub-agents that a call started.
    pub(in crate::commands) fn of_call<'s>(
        &'s self,
        call: &'s str,
    ) -> impl Iterator<Item = &'s SessionId> {
        let of_it = self.0.iter().filter(move |(id, _)| id == call);
        of_it.map(|(_, session)| session)
    }
}

/// Returns whether an agent keeps a session itself. Any other one is named by a record.
fn is_imported(row: &SessionRow) -> bool {
    row.belongs_to.is_some()
}
