//! What of each workspace is not protected by its last checkpoint.

use std::path::Path;
use std::time::{Duration, Instant};

use backtrail::workspace::{LogEntry, LogKind};
use backtrail::{Checkpoint, Workspace};
use backtrail_web::library::Protection;

use super::super::StoreLibrary;
use crate::commands::checkpoint::skipped_path;
use crate::error::Result;
use crate::home::tilde;
use crate::text::{clean, one_line, visible};
use crate::when;

/// Looking at other workspaces takes no longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many paths of a workspace are listed.
const LISTED: usize = 200;

/// Returns what is not protected, this workspace first, and how many workspaces were not looked at.
pub(super) fn protection(library: &StoreLibrary) -> Result<(Vec<Protection>, u64)> {
    let here = library.root.as_deref();
    let known = here.map(|root| library.store.find_workspace(root));
    let known = known.transpose()?.flatten();
    let id = known.as_ref().map(|workspace| workspace.id().clone());
    let mut listed = Vec::new();
    if let Some(root) = here {
        listed.push(Protection {
            is_here: true,
            ..of_directory(root, known.as_ref())
        });
    }
    let others = library.store.workspaces()?.into_iter();
    let others = others.filter(|workspace| Some(workspace.id()) != id.as_ref());
    let mut others: Vec<Workspace> = others.collect();
    others.sort_by(|a, b| a.root().cmp(b.root()));
    let begun = Instant::now();
    let mut unchecked = 0;
    for workspace in &others {
        match begun.elapsed() < PATIENCE {
            true => listed.push(of_directory(workspace.root(), Some(workspace))),
            false => unchecked += 1,
        }
    }
    Ok((listed, unchecked))
}

fn of_directory(root: &Path, workspace: Option<&Workspace>) -> Protection {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let found = Protection {
        name: one_line(&visible(&name), 60),
        directory: tilde(root),
        ..Protection::default()
    };
    let Some(workspace) = workspace else {
        return nothing(found, "there are no checkpoints yet");
    };
    // One that cannot be read must not hide the others.
    look_at(found.clone(), workspace).unwrap_or_else(|error| {
        let reason = format!("its last checkpoint cannot be read: {error}");
        nothing(found, &one_line(&clean(&reason), 300))
    })
}

fn look_at(found: Protection, workspace: &Workspace) -> Result<Protection> {
    let Some(last) = workspace.last_checkpoint()? else {
        return Ok(nothing(found, "there are no checkpoints yet"));
    };
    if let Some(dropped) = last.dropped()? {
        let when = when::brief(dropped.at);
        let reason = format!("the files of the last checkpoint were dropped, {when}");
        return Ok(nothing(found, &reason));
    }
    let (skipped, has_more) = skipped(&last)?;
    Ok(Protection {
        problem: last_work(workspace)?,
        skipped,
        has_more,
        ..found
    })
}

fn nothing(found: Protection, reason: &str) -> Protection {
    Protection {
        problem: Some(format!("Nothing is protected: {reason}.")),
        ..found
    }
}

/// Returns why what an agent did last is not protected, if it is not.
fn last_work(workspace: &Workspace) -> Result<Option<String>> {
    let log = workspace.log()?;
    let is_work = |entry: &&LogEntry| matches!(entry.kind(), LogKind::Turn | LogKind::Run);
    let last = log.iter().rev().find(is_work);
    let reason = last.and_then(LogEntry::not_protected);
    Ok(reason.map(|reason| {
        let reason = one_line(&clean(reason), 300);
        format!("What was done last is not protected: {reason}.")
    }))
}

/// Returns the first paths that a checkpoint does not hold, and whether there are more.
fn skipped(last: &Checkpoint) -> Result<(Vec<(String, String)>, bool)> {
    let snapshot = last.snapshot()?;
    let mut paths = snapshot.skipped();
    let mut listed = Vec::new();
    for entry in paths.by_ref().take(LISTED) {
        let entry = entry?;
        listed.push((skipped_path(&entry), entry.reason.to_string()));
    }
    Ok((listed, paths.next().is_some()))
}

#[cfg(test)]
#[path = "protection_tests.rs"]
mod tests;
