//! The workspaces of a store, and the store as it is seen from each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use backtrail::{Workspace, WorkspaceId};
use backtrail_web::library::{Site, WorkspaceEntry};

use super::super::{Answer, StoreLibrary, failure, lock};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::text::{one_line, visible};

/// The same store as it is seen from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Others {
    own: OnceLock<Weak<StoreLibrary>>,
    known: Mutex<HashMap<WorkspaceId, Arc<StoreLibrary>>>,
}

impl StoreLibrary {
    /// Shares a library: plans that are made by its workspace's name are its own, too.
    pub(in crate::commands) fn shared(self) -> Arc<Self> {
        let shared = Arc::new(self);
        shared
            .site
            .others
            .own
            .get_or_init(|| Arc::downgrade(&shared));
        shared
    }
}

pub(super) fn workspaces(library: &StoreLibrary) -> Answer<Vec<WorkspaceEntry>> {
    read(library).map_err(failure)
}

fn read(library: &StoreLibrary) -> Result<Vec<WorkspaceEntry>> {
    let here = here(library)?;
    let mut entries = Vec::new();
    for workspace in library.store.workspaces()? {
        let is_here = here.as_ref() == Some(workspace.id());
        // One that cannot be read is listed: health says what is wrong.
        let is_empty = workspace.last_checkpoint().is_ok_and(|last| last.is_none());
        if !is_empty {
            entries.push(entry(&workspace, is_here));
        }
    }
    entries.sort_by(|a, b| {
        let key = |entry: &WorkspaceEntry| (!entry.is_here, entry.name.to_lowercase());
        key(a)
            .cmp(&key(b))
            .then_with(|| a.directory.cmp(&b.directory))
    });
    Ok(entries)
}

fn entry(workspace: &Workspace, is_here: bool) -> WorkspaceEntry {
    let name = workspace.root().file_name().unwrap_or_default();
    WorkspaceEntry {
        id: workspace.id().to_string(),
        name: one_line(&visible(&name.to_string_lossy()), 60),
        directory: tilde(workspace.root()),
        is_here,
    }
}

/// Returns the workspace here, if there is one.
fn here(library: &StoreLibrary) -> Result<Option<WorkspaceId>> {
    let root = library.root.as_deref();
    let found = root
        .map(|root| library.store.find_workspace(root))
        .transpose()?;
    Ok(found.flatten().map(|workspace| workspace.id().clone()))
}

pub(super) fn in_workspace(library: &StoreLibrary, workspace: &str) -> Answer<Arc<dyn Site>> {
    let found = find(library, workspace).map_err(failure)?;
    Ok(found)
}

fn find(library: &StoreLibrary, workspace: &str) -> Result<Arc<StoreLibrary>> {
    let id = workspace.parse::<WorkspaceId>();
    let id = id.map_err(|error| CommandError::from(error).context("no such workspace"))?;
    let others = &library.site.others;
    if here(library)?.as_ref() == Some(&id)
        && let Some(own) = others.own.get().and_then(Weak::upgrade)
    {
        return Ok(own);
    }
    if let Some(known) = lock(&others.known).get(&id) {
        return Ok(Arc::clone(known));
    }
    let opened = library.store.workspace_by_id(&id);
    let opened = opened.map_err(|error| CommandError::from(error).context("no such workspace"))?;
    library.show_workspace(&id);
    let seen = Arc::new(library.seen_from(opened.root().to_owned()));
    let mut known = lock(&others.known);
    Ok(Arc::clone(known.entry(id).or_insert(seen)))
}
