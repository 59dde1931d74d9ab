//! Imports what is new before a command that reads sessions, from agents that were imported
//! before. It takes little time, waits for nobody, and never fails the command.

use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};

use backtrail::Store;
use backtrail_formats::{Error, NewReport, bind_imported, import_new as import};

use super::import::{failed, import_options};
use crate::error::Result;
use crate::settings::Settings;
use crate::text::{count, one_line, plural};
use crate::ui::Ui;

/// How long an import may take: with the index of what was imported, about a second.
const TIME: Duration = Duration::from_millis(400);

/// Holds another time in milliseconds, for tests.
const TIME_VARIABLE: &str = "BACKTRAIL_IMPORT_MS";

/// Imports what agents wrote since the last import, and reports what is left to import.
pub(super) fn import_new(store: &Store, ui: &Ui) {
    if !is_wanted(store) {
        return;
    }
    match try_import(store) {
        Ok(Ok(report)) => tell(&report, ui),
        // A store that cannot be written is read as it is.
        Ok(Err(error)) if is_read_only(&error) => {}
        Ok(Err(error)) => warn(&failed(&error).with_causes(), ui),
        Err(error) => warn(&error.with_causes(), ui),
    }
}

/// Does the same and reports nothing: what cannot be imported is reported by the next command.
pub(super) fn import_quietly(store: &Store) {
    if is_wanted(store) {
        try_import(store).ok();
    }
}

/// Returns whether new sessions are imported. The command itself reports wrong settings.
pub(super) fn is_wanted(store: &Store) -> bool {
    Settings::read(store.root()).is_ok_and(|it| it.auto_import.value)
}

fn try_import(store: &Store) -> Result<backtrail_formats::Result<NewReport>> {
    let options = import_options(store.root())?;
    let (start, time) = (Instant::now(), allowed_time());
    let imported = import(store, &options, &|| start.elapsed() >= time);
    let bound = imported.and_then(|report| {
        if report.imported > 0 {
            bind_imported(store)?;
        }
        Ok(report)
    });
    Ok(bound)
}

fn allowed_time() -> Duration {
    let set = std::env::var(TIME_VARIABLE).ok();
    let set = set.and_then(|ms| ms.parse().ok());
    set.map_or(TIME, Duration::from_millis)
}

fn tell(report: &NewReport, ui: &Ui) {
    if let Some(first) = report.errors.first() {
        let more = match report.errors.len() - 1 {
            0 => String::new(),
            others => format!(" (and {} more)", count(others as u64, "file")),
        };
        let reason = failed(first);
        let path = reason
            .path
            .as_deref()
            .map(|path| path.display().to_string());
        let reason = one_line(&reason.with_causes(), 200);
        let file = path.filter(|path| !reason.contains(path.as_str()));
        let file = file.map_or_else(String::new, |file| format!(" {file}:"));
        warn(&format!("{file} {reason}{more}"), ui);
    }
    if report.left > 0 {
        let are = plural(report.left, "is", "are");
        ui.status(&format!(
            "{} {are} not imported yet; run {} import",
            count(report.left, "session"),
            ui.program()
        ));
    }
}

fn warn(reason: &str, ui: &Ui) {
    ui.warning(&format!("not imported: {}", reason.trim()), None);
}

/// Returns whether the store cannot be written by this user.
fn is_read_only(error: &Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem);
        }
        cause = error.source();
    }
    false
}
