//! `backtrail checkpoint`: saves the files as they are now.

use backtrail::snapshot::{FileKind, SkippedEntry, SkippedReason};
use backtrail::workspace::SkippedFiles;
use backtrail::{Checkpoint, CheckpointOptions};

use super::Answer;
use super::protection::{IncludeArgs, kept_ignored_line, unprotected_line, warn_over_cap};
use super::workspace::{WorkspaceArgs, joined_session};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::progress;
use crate::text::{count, grouped, one_line, size, some_of, visible_path};
use crate::ui::Ui;

/// Save the files as they are now
///
/// A checkpoint covers everything in the workspace, whether edit tools, shell commands,
/// builds or people changed it. Anything it skips is reported.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckpointArgs {
    /// A name for the checkpoint
    #[arg(value_name = "LABEL")]
    label: Option<String>,

    #[command(flatten)]
    include: IncludeArgs,

    #[command(flatten)]
    here: WorkspaceArgs,

    /// Allow a first snapshot of any size, and of / or the home directory
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &CheckpointArgs, ui: &Ui) -> Result<Answer> {
    let workspace = args.here.open_or_create(args.yes, ui)?;
    let mut options = CheckpointOptions::new();
    if let Some(label) = &args.label {
        options = options.label(label.as_str());
    }
    if let Some(session) = joined_session(workspace.store())? {
        options = options.session(&session);
    }
    if args.yes {
        options = options.unlimited();
    }
    let options = args.include.add_to(options, workspace.root())?;
    let checkpoint = progress::checkpoint(ui, options, |options| workspace.checkpoint(options));
    let checkpoint = checkpoint.map_err(|error| args.include.explain(too_much(error)))?;
    if let Some(protection) = checkpoint.protection() {
        warn_over_cap(protection, ui);
    }
    if ui.json() {
        return ui.answer_json(&checkpoint);
    }
    ui.print_line(&checkpoint.id().prefix(8))?;
    ui.status(&summary(&checkpoint, &tilde(workspace.root())));
    let first = checkpoint.protection().filter(|it| it.first);
    match first.map(unprotected_line) {
        Some(line) => line.iter().for_each(|line| ui.status(line)),
        None => {
            if let Some(text) = skipped(checkpoint.skipped()) {
                ui.status(&format!("not protected: {text}"));
            }
        }
    }
    if let Some(line) = first.and_then(kept_ignored_line) {
        ui.status(&line);
    }
    Ok(Answer::Done)
}

/// Adds hints to the error for a first snapshot that is too large.
pub(crate) fn too_much(error: backtrail::Error) -> CommandError {
    let Some(much) = error.too_much().cloned() else {
        return error.into();
    };
    let text = error.message();
    // The directories become hints.
    let what = match much.largest.is_empty() {
        true => text.as_str(),
        false => text.split("; ").next().unwrap_or_default(),
    };
    let command = CommandError::from(error).message(what.to_owned());
    let named = much.largest.iter().fold(command, |command, dir| {
        let path = visible_path(&dir.path);
        let files = count(dir.files, "file");
        let holds = format!("{path}/ has {} in {files}", size(dir.bytes));
        command.hint(match dir.ignore_line() {
            Some(line) => format!("{holds}; to skip it, add this line to .backtrailignore: {line}"),
            None => holds,
        })
    });
    named.hint("or include everything: --yes")
}

fn summary(checkpoint: &Checkpoint, root: &str) -> String {
    let files = count(checkpoint.files(), "file");
    let changed = match checkpoint.changed() {
        0 => String::new(),
        n => format!(", {} changed since the last checkpoint", grouped(n)),
    };
    format!(
        "saved {files} ({}) in {root}{changed}",
        size(checkpoint.bytes())
    )
}

/// Names the first few skipped entries; `None` if nothing was skipped.
pub(crate) fn skipped(skipped: &SkippedFiles) -> Option<String> {
    first_of(&skipped.first, skipped.count)
}

/// Names the first few entries; `None` if there are none.
pub(crate) fn named(entries: &[SkippedEntry]) -> Option<String> {
    first_of(entries, entries.len() as u64)
}

fn first_of(entries: &[SkippedEntry], all: u64) -> Option<String> {
    const NAMED: usize = 3;
    match (all, entries) {
        (0, _) => None,
        (all, []) => Some(count(all, "path")),
        (all, entries) => {
            let entries = entries.iter().map(describe_skipped);
            Some(some_of(entries, NAMED, all as usize))
        }
    }
}

/// Returns the path and the reason of a skipped entry: `target/ (ignored)`.
pub(crate) fn describe_skipped(entry: &SkippedEntry) -> String {
    let path = one_line(&skipped_path(entry), 60);
    match entry.reason {
        SkippedReason::TooLarge => format!("{path} ({}, {})", size(entry.bytes), entry.reason),
        reason => format!("{path} ({reason})"),
    }
}

/// Returns the path of a skipped entry; a directory ends in `/`.
pub(crate) fn skipped_path(entry: &SkippedEntry) -> String {
    let slash = if entry.kind == FileKind::Dir { "/" } else { "" };
    format!("{}{slash}", visible_path(&entry.path))
}
