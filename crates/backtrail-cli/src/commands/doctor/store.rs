//! Whether sessions and workspaces can be read.

use backtrail::Store;

use super::Check;
use crate::commands::short;
use crate::error::full_text;
use crate::home::tilde;
use crate::shell::quote_path;
use crate::text::{count, one_line};
use crate::ui::Ui;

pub(super) fn checks(store: &Store, ui: &Ui) -> Vec<Check> {
    let mut checks = sessions(store, ui);
    checks.extend(workspaces(store, ui));
    checks
}

fn sessions(store: &Store, ui: &Ui) -> Vec<Check> {
    let infos = match store.infos() {
        Ok(infos) => infos,
        Err(error) => {
            let hint = format!("{} verify", ui.program());
            return vec![Check::found("sessions", full_text(&error), hint)];
        }
    };
    let all = infos.len() as u64;
    let unreadable: Vec<Check> = infos
        .into_iter()
        .filter_map(|(id, info)| match info {
            Ok(info) if info.created_at.is_some() => None,
            Ok(_) => Some((id, "its beginning cannot be read".to_owned())),
            Err(error) => Some((id, full_text(&error))),
        })
        .map(|(id, reason)| {
            let what = format!("{}: {}", short(&id), one_line(&reason, 200));
            let hint = format!("{} verify {}", ui.program(), short(&id));
            Check::found("sessions", what, hint)
        })
        .collect();
    match unreadable.is_empty() {
        true => vec![Check::fine("sessions", count(all, "session"))],
        false => unreadable,
    }
}

fn workspaces(store: &Store, ui: &Ui) -> Vec<Check> {
    let all = match store.workspaces() {
        Ok(all) => all,
        Err(error) => {
            let hint = format!("{} verify", ui.program());
            return vec![Check::found("workspaces", full_text(&error), hint)];
        }
    };
    let mut found = Vec::new();
    for workspace in &all {
        let root = tilde(workspace.root());
        let word = quote_path(workspace.root());
        if !workspace.root().is_dir() {
            let what = format!("{root} is gone");
            let hint = format!("if it was moved: {} relink {word} NEW", ui.program());
            found.push(Check::found("workspaces", what, hint));
            continue;
        }
        if workspace.is_moving().unwrap_or(false) {
            let what = format!("a rewind of {root} is running or was interrupted");
            let hint = format!("finish it: {} status --workspace {word}", ui.program());
            found.push(Check::found("unfinished", what, hint));
        }
        for stray in workspace.strays().unwrap_or_default() {
            let what = format!("{} has files of an unknown rewind", tilde(&stray));
            found.push(Check::found(
                "unfinished",
                what,
                "move out what is yours, then remove it",
            ));
        }
    }
    match found.is_empty() {
        true => vec![Check::fine("workspaces", count(all.len(), "workspace"))],
        false => found,
    }
}
