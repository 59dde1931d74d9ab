//! What is not protected, and what the user asks to include: for run and checkpoint.

use std::path::{Path, PathBuf};

use backtrail::CheckpointOptions;
use backtrail::snapshot::{Amount, FileKind, SkippedReason};
use backtrail::workspace::{Included, Lost, Protection, UnprotectedChanges, UnprotectedEntry};

use super::cat::within_all;
use crate::error::{CommandError, Result};
use crate::text::{count, one_line, plural, size, some_of, visible_path};
use crate::ui::Ui;

/// How many entries are named.
const NAMED: usize = 3;

/// Ignored paths to protect
#[derive(Debug, Default, clap::Args)]
pub(crate) struct IncludeArgs {
    /// Protect this ignored directory or file too, now and later, up to include_cap
    #[arg(long, value_name = "PATH")]
    include_ignored: Vec<PathBuf>,

    /// No longer protect this ignored path
    #[arg(long, value_name = "PATH")]
    exclude_ignored: Vec<PathBuf>,
}

impl IncludeArgs {
    /// Adds the paths, which are relative to the current directory, to the options.
    pub(super) fn add_to(
        &self,
        mut options: CheckpointOptions,
        root: &Path,
    ) -> Result<CheckpointOptions> {
        for path in within_all(root, &self.include_ignored)? {
            options = options.include_ignored(path);
        }
        for path in within_all(root, &self.exclude_ignored)? {
            options = options.exclude_ignored(path);
        }
        Ok(options)
    }

    /// Returns whether an error may be about one of the paths: a mistake, which running without
    /// protection does not solve.
    pub(super) fn may_be_wrong(&self, error: &CommandError) -> bool {
        let is_given = !self.include_ignored.is_empty() || !self.exclude_ignored.is_empty();
        is_given && matches!(error.kind, "invalid" | "not_found")
    }

    /// Adds how to solve the error of a path that cannot be included or excluded.
    pub(super) fn explain(&self, error: CommandError) -> CommandError {
        let text = error.to_string();
        if text.contains("include_cap") {
            error.hint("raise include_cap in config.toml, or include a smaller directory")
        } else if text.contains("is not included") {
            error.hint("see what is included: backtrail status")
        } else {
            error
        }
    }
}

/// Returns what is not protected, with sizes and how to include it; `None` if that is nothing.
pub(super) fn unprotected_line(protection: &Protection) -> Option<String> {
    let entries = &protection.unprotected;
    if entries.is_empty() {
        return None;
    }
    let names = some_of(entries.iter().map(describe), NAMED, entries.len());
    let is_ignored = |entry: &UnprotectedEntry| entry.reason == SkippedReason::Ignored;
    let include = match entries.iter().any(is_ignored) {
        true => "; to protect an ignored path: --include-ignored PATH",
        false => "",
    };
    Some(format!("not protected: {names}{include}"))
}

/// Returns which ignored files a first snapshot keeps because they are small; `None` if
/// there are none.
pub(super) fn kept_ignored_line(protection: &Protection) -> Option<String> {
    if protection.ignored_files == 0 {
        return None;
    }
    let first = protection.ignored_first.iter();
    let names = first.map(|path| one_line(&visible_path(path), 60));
    let names = some_of(names, NAMED, protection.ignored_files as usize);
    Some(format!(
        "kept in the store although ignored (up to 1 MiB each): {names}; to leave one out, list \
         it in .backtrailignore"
    ))
}

/// Warns of included directories that hold too much.
pub(super) fn warn_over_cap(protection: &Protection, ui: &Ui) {
    for entry in &protection.over_cap {
        let path = visible_path(&entry.path);
        let bytes = entry.amount.map_or_else(String::new, amount);
        let what = format!("{path}/ is not protected now: it holds {bytes}, more than include_cap");
        ui.warning(&what, Some("raise include_cap in config.toml"));
    }
}

/// Returns the warning about unprotected files that are gone or smaller.
pub(super) fn lost_warning(changes: &UnprotectedChanges) -> Option<String> {
    if changes.count == 0 {
        return None;
    }
    let names = some_of(
        changes.lost.iter().map(describe_lost),
        NAMED,
        changes.count as usize,
    );
    let it = plural(changes.count, "it", "them");
    Some(format!(
        "lost without protection: {names}; undo cannot restore {it}"
    ))
}

/// Returns the names of included paths; `None` if there are none.
pub(super) fn included_names(included: &[Included]) -> Option<String> {
    let names = included
        .iter()
        .map(|it| one_line(&visible_path(&it.path), 60));
    (!included.is_empty()).then(|| names.collect::<Vec<_>>().join(", "))
}

fn describe(entry: &UnprotectedEntry) -> String {
    let path = path_of(&entry.path, entry.kind);
    match entry.amount {
        Some(how_much) => format!("{path} ({}, {})", amount(how_much), entry.reason),
        None => format!("{path} ({})", entry.reason),
    }
}

fn describe_lost(lost: &Lost) -> String {
    let path = path_of(&lost.path, lost.kind);
    let was = lost.before.map(amount);
    match (lost.after, was) {
        (None, Some(was)) => format!("{path} (deleted, was {was})"),
        (None, None) => format!("{path} (deleted)"),
        (Some(now), Some(was)) => format!("{path} ({}, was {was})", less(lost.before, now)),
        (Some(_), None) => format!("{path} (smaller)"),
    }
}

/// Returns what is left of something, by what shows that it is less.
fn less(before: Option<Amount>, now: Amount) -> String {
    match before.is_some_and(|before| now.bytes >= before.bytes) {
        true => format!("now {}", count(now.files, "file")),
        false => format!("now {}", amount(now)),
    }
}

fn amount(amount: Amount) -> String {
    let at_least = if amount.at_least { "at least " } else { "" };
    format!("{at_least}{}", size(amount.bytes))
}

fn path_of(path: &Path, kind: FileKind) -> String {
    let slash = if kind == FileKind::Dir { "/" } else { "" };
    one_line(&format!("{}{slash}", visible_path(path)), 60)
}
