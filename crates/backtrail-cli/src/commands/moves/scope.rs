//! What undo, redo and `log --steps` are about: a workspace, or a conversation alone.

use backtrail::{SessionId, Store, Workspace};

use crate::commands::hook::ancestors;
use crate::commands::recovery::Finish;
use crate::commands::workspace::WorkspaceArgs;
use crate::commands::{open_files_store, require_files_store, resolve, short};
use crate::error::{CommandError, Result};
use crate::home::{tilde, workspace_root};
use crate::shell::quote_path;
use crate::ui::Ui;

/// What undo, redo and `log --steps` are about.
pub(in crate::commands) enum Scope {
    /// A workspace, or one session that works there.
    Workspace {
        workspace: Workspace,
        session: Option<SessionId>,
        /// The workspace, if it is not the current one.
        place: Option<String>,
    },
    /// A conversation without file checkpoints.
    Session(Store, SessionId),
}

impl Scope {
    /// Finds it: the session that is named, else the workspace here, else the newest
    /// session.
    pub(in crate::commands) fn find(
        reference: Option<&str>,
        here: &WorkspaceArgs,
        ui: &Ui,
        finish: Finish,
    ) -> Result<Self> {
        if let Some(reference) = reference {
            return Self::of_session(reference, here, ui, finish);
        }
        if let Some(workspace) = here.find(ui, finish)? {
            return Ok(Self::Workspace {
                session: session_around(&workspace)?,
                workspace,
                place: None,
            });
        }
        let store = match open_files_store(ui)? {
            Some(store) if !here.is_named() => store,
            _ => return Err(here.unknown(ui)?),
        };
        let id = resolve(&store, "latest")?;
        match workspace_of(&store, &id)? {
            None => Ok(Self::Session(store, id)),
            // Files elsewhere are not touched unless they are named.
            Some(workspace) => {
                let place = tilde(workspace.root());
                let what = format!("no checkpoints here; the newest session is in {place}");
                let root = quote_path(workspace.root());
                Err(CommandError::not_found(what)
                    .hint(format!("use that workspace: --workspace {root}"))
                    .hint(format!("or name the session: {}", short(&id))))
            }
        }
    }

    fn of_session(reference: &str, here: &WorkspaceArgs, ui: &Ui, finish: Finish) -> Result<Self> {
        let store = require_files_store(ui)?;
        let id = resolve(&store, reference)?;
        let workspace = workspace_of(&store, &id)?;
        if here.is_named() {
            let named = here.find(ui, finish)?;
            let same = |named: &Workspace| workspace.as_ref().is_some_and(|w| w.id() == named.id());
            if !named.as_ref().is_some_and(same) {
                let what = format!("session {} is not in that workspace", short(&id));
                return Err(CommandError::invalid(what).hint("use either REF or --workspace DIR"));
            }
        }
        let Some(workspace) = workspace else {
            return Ok(Self::Session(store, id));
        };
        finish.finish(&workspace, ui)?;
        let around = workspace_root(&store);
        let is_here = here.is_named() || around.as_deref() == Some(workspace.root());
        Ok(Self::Workspace {
            place: (!is_here).then(|| tilde(workspace.root())),
            workspace,
            session: Some(id),
        })
    }

    /// Returns the session, if it is about only one.
    pub(in crate::commands) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Workspace { session, .. } => session.as_ref(),
            Self::Session(_, id) => Some(id),
        }
    }
}

/// Returns the session of the agent whose own shell we are in.
fn session_around(workspace: &Workspace) -> Result<Option<SessionId>> {
    let around = ancestors();
    for activity in workspace.active()? {
        if !around.contains(&activity.holder.pid) {
            continue;
        }
        let start = workspace.checkpoint_by_id(activity.checkpoint)?;
        let place = start.filter(|start| start.agent().is_some());
        if let Some(place) = place.and_then(|start| start.session().cloned()) {
            return Ok(Some(place.id));
        }
    }
    Ok(None)
}

/// Returns the error of a session without file checkpoints.
pub(in crate::commands) fn no_files(id: &SessionId, ui: &Ui) -> CommandError {
    let what = format!("session {} has no file checkpoints", short(id));
    let program = ui.program();
    CommandError::invalid(what)
        .hint("conversation only: --chat")
        .hint(format!(
            "make checkpoints with: {program} checkpoint, or {program} run -- COMMAND"
        ))
}

/// Returns the workspace that a session works in, if it has checkpoints.
pub(in crate::commands) fn workspace_of(
    store: &Store,
    session: &SessionId,
) -> backtrail::Result<Option<Workspace>> {
    let Some(wanted) = store.read_session(session)?.info()?.workspace_id else {
        return Ok(None);
    };
    let mut all = store.workspaces()?.into_iter();
    Ok(all.find(|workspace| *workspace.id() == wanted))
}
