//! `backtrail relink`: tells Backtrail that a directory was moved.

use std::collections::BTreeMap;
use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::plumbing::remote_of;
use backtrail::workspace::{RelinkOptions, Relinked, RelinkedWhat};
use backtrail::{ErrorKind, Store, WorkspaceId};
use serde_json::{Value, json};

use super::{Answer, open_files_store, required};
use crate::error::{CommandError, Result};
use crate::home::{self, tilde};
use crate::layout::DIM;
use crate::shell::quote_path;
use crate::text::{count, path_json};
use crate::ui::Ui;

/// Tell Backtrail that a directory was moved
///
/// A renamed directory is recognised automatically. One that was copied to another disk is
/// not: `relink OLD NEW` gives the checkpoints and sessions of OLD to NEW. Without OLD it lists
/// the directories that are gone. Swap the arguments to undo it.
#[derive(Debug, clap::Args)]
pub(crate) struct RelinkArgs {
    /// The old directory
    old: Option<PathBuf>,
    /// The new directory [default: the enclosing workspace]
    new: Option<PathBuf>,
    /// Continue even if the old directory still exists
    #[arg(long, requires = "old")]
    yes: bool,
}

pub(crate) fn run(args: &RelinkArgs, ui: &Ui) -> Result<Answer> {
    let store = open_files_store(ui)?;
    let Some(old) = &args.old else {
        return list(store.as_ref(), ui);
    };
    let store = required(store, ui)?;
    let new = match &args.new {
        Some(new) => new.clone(),
        None => here(&store)?,
    };
    let mut options = RelinkOptions::new();
    if args.yes {
        options = options.replace_existing();
    }
    let linked = store
        .relink(old, &new, options)
        .map_err(|error| refused(&store, error, old, &new))?;
    report(&linked, ui)?;
    Ok(Answer::Done)
}

fn here(store: &Store) -> Result<PathBuf> {
    home::workspace_root(store).ok_or_else(|| {
        CommandError::invalid("cannot find the current directory")
            .hint("pass it: backtrail relink OLD NEW")
    })
}

/// Adds hints to an error.
fn refused(store: &Store, error: backtrail::Error, old: &Path, new: &Path) -> CommandError {
    let kind = error.kind();
    let command = CommandError::from(error);
    match kind {
        ErrorKind::NotFound if !new.is_dir() => {
            command.hint("NEW must be an existing directory: backtrail relink OLD NEW")
        }
        ErrorKind::NotFound => match nearest(store, old).as_slice() {
            [] => command.hint("see which directories are gone: backtrail relink"),
            near => {
                let near: Vec<String> = near.iter().map(|root| tilde(root)).collect();
                command.hint(format!("did you mean: {}", near.join(", ")))
            }
        },
        ErrorKind::Invalid
            if old.is_dir() && old.canonicalize().ok() != new.canonicalize().ok() =>
        {
            command.hint("to continue anyway: --yes")
        }
        _ => command,
    }
}

/// Returns the known directories that are most similar to a path.
fn nearest(store: &Store, path: &Path) -> Vec<PathBuf> {
    let wanted = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let distance = |root: &Path| {
        let (root, wanted) = (root.to_string_lossy(), wanted.to_string_lossy());
        strsim::damerau_levenshtein(&root, &wanted)
    };
    let name = |path: &Path| path.file_name().map(ToOwned::to_owned);
    let mut roots: Vec<(usize, PathBuf)> = known_roots(store)
        .into_keys()
        .map(|root| (distance(&root), root))
        .filter(|(apart, root)| *apart <= 12 || name(root) == name(&wanted))
        .collect();
    roots.sort();
    roots.into_iter().take(3).map(|(_, root)| root).collect()
}

/// A directory that the store knows.
#[derive(Default)]
struct KnownRoot {
    workspace: Option<WorkspaceId>,
    remote: Option<String>,
    sessions: u64,
}

/// Returns every directory of a workspace or a session.
fn known_roots(store: &Store) -> BTreeMap<PathBuf, KnownRoot> {
    let mut roots: BTreeMap<PathBuf, KnownRoot> = BTreeMap::new();
    let mut homes = Vec::new();
    for workspace in store.workspaces().unwrap_or_default() {
        let known = roots.entry(workspace.root().to_owned()).or_default();
        known.workspace = Some(workspace.id().clone());
        known.remote = workspace.remote().ok().flatten();
        homes.push((
            workspace.id().clone(),
            workspace.root().to_owned(),
            workspace.former_roots().unwrap_or_default(),
        ));
    }
    let infos = store.infos().unwrap_or_default().into_iter();
    for info in infos.filter_map(|(_, info)| info.ok()) {
        let by_id = info.workspace_id.as_ref();
        let home = homes
            .iter()
            .find(|(id, _, former)| match (by_id, &info.workspace_root) {
                (Some(by_id), _) => id == by_id,
                (None, Some(root)) => former.iter().any(|f| f.covers(root, info.created_at)),
                (None, None) => false,
            });
        let root = home
            .map(|(_, root, _)| root.clone())
            .or(info.workspace_root);
        if let Some(root) = root {
            roots.entry(root).or_default().sessions += 1;
        }
    }
    roots
}

/// Lists the directories that are gone.
fn list(store: Option<&Store>, ui: &Ui) -> Result<Answer> {
    let known = store.map(known_roots).unwrap_or_default();
    let gone: Vec<(PathBuf, KnownRoot)> = known
        .into_iter()
        .filter(|(root, _)| !root.is_dir())
        .collect();
    let around = store.and_then(home::workspace_root);
    let here = around.or_else(|| env::current_dir().ok());
    let remote = here.as_deref().and_then(remote_of);
    let candidate = |known: &KnownRoot| {
        let fits = remote.is_some() && known.remote == remote;
        here.clone().filter(|_| fits)
    };
    if ui.json() {
        let rows: Vec<Value> = gone
            .iter()
            .map(|(root, known)| {
                json!({
                    "root": path_json(root),
                    "workspace": known.workspace,
                    "remote": known.remote,
                    "sessions": known.sessions,
                    "candidate": candidate(known).as_deref().map(path_json),
                })
            })
            .collect();
        return ui.answer_json(&rows);
    }
    if gone.is_empty() {
        ui.status("no moved directories");
        return Ok(Answer::Done);
    }
    let mut out = ui.out();
    for (root, known) in &gone {
        let from = known.remote.as_deref().map_or_else(String::new, |remote| {
            format!(" {DIM}({}){DIM:#}", crate::text::one_line(remote, 60))
        });
        let sessions = count(known.sessions, "session");
        writeln!(out, "{}  {sessions}{from}", tilde(root))?;
    }
    out.flush()?;
    drop(out);
    for (root, known) in &gone {
        if candidate(known).is_some() {
            let old = quote_path(root);
            ui.status(&format!(
                "this directory is the same project; if it was moved here: {} relink {old}",
                ui.program()
            ));
        }
    }
    ui.remark(&format!("to relink one: {} relink OLD NEW", ui.program()));
    Ok(Answer::Done)
}

fn report(linked: &Relinked, ui: &Ui) -> Result<()> {
    let root = linked.workspace.root();
    let sessions = linked.workspace.sessions()?.len() as u64;
    let what = match linked.what {
        RelinkedWhat::Sessions => "sessions",
        RelinkedWhat::SessionsBack => "sessions-back",
        _ => "workspace",
    };
    if ui.json() {
        return ui.print_json(&json!({
            "workspace": linked.workspace.id(),
            "from": path_json(&linked.from),
            "to": path_json(root),
            "what": what,
            "sessions": sessions,
        }));
    }
    let (old, new) = (tilde(&linked.from), tilde(root));
    let sessions = count(sessions, "session");
    ui.print_line(&match linked.what {
        RelinkedWhat::Sessions => format!("moved the sessions of {old} to {new} ({sessions})"),
        RelinkedWhat::SessionsBack => format!("{new} has {sessions} again"),
        _ => format!("relinked {old} to {new} ({sessions})"),
    })?;
    if linked.what != RelinkedWhat::SessionsBack {
        let (new, old) = (quote_path(root), quote_path(&linked.from));
        ui.to_reverse(&format!("relink {new} {old}"));
    }
    Ok(())
}
