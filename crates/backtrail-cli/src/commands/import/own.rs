//! Imports Backtrail's own files: trails and exports.

use std::path::{Path, PathBuf};

use backtrail::{Import, ImportOutcome, Store};
use backtrail_formats::recognise;
use serde_json::{Value, json};

use crate::error::{CommandError, full_text};
use crate::shell::quote;
use crate::text::{clean, path_json};
use crate::ui::Ui;

/// The result of importing Backtrail's own files.
#[derive(Debug, Default)]
pub(super) struct Own {
    imported: Vec<Import>,
    /// With `--dry-run`: files that would be tried.
    not_tried: Vec<PathBuf>,
    errors: Vec<(PathBuf, backtrail::Error)>,
}

/// Splits paths into files of no known agent, which may be our own, and the rest.
pub(super) fn split(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    paths
        .iter()
        .cloned()
        .partition(|path| path.is_file() && matches!(recognise(path), Ok(None) | Err(_)))
}

impl Own {
    pub(super) fn import(store: Option<&Store>, files: &[PathBuf], dry_run: bool) -> Self {
        let mut own = Self::default();
        for file in files {
            let Some(store) = store.filter(|_| !dry_run) else {
                own.not_tried.push(file.clone());
                continue;
            };
            // A link that the user gave is followed here; the store follows none.
            let path = file.canonicalize().unwrap_or_else(|_| file.clone());
            match store.import(&path) {
                Ok(import) => own.imported.push(import),
                Err(error) => own.errors.push((file.clone(), error)),
            }
        }
        own
    }

    pub(super) fn failed(&self) -> bool {
        !self.errors.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.imported.is_empty() && self.not_tried.is_empty() && self.errors.is_empty()
    }

    pub(super) fn as_json(&self) -> Value {
        let imported = self.imported.iter().map(|import| {
            json!({
                "file": path_json(&import.file),
                "session": import.id,
                "outcome": outcome(import),
                "messages": import.messages,
                "damaged": import.damage.count(),
                "original_id": import.original_id,
            })
        });
        let not_tried = self
            .not_tried
            .iter()
            .map(|file| json!({"file": path_json(file), "session": null, "outcome": "not_tried"}));
        imported.chain(not_tried).collect()
    }

    pub(super) fn errors_json(&self) -> impl Iterator<Item = Value> {
        self.errors.iter().map(|(file, error)| {
            json!({"file": path_json(file), "error": full_text(error),
                "kind": error.kind().as_str()})
        })
    }

    pub(super) fn print(&self, ui: &Ui) -> crate::error::Result<()> {
        for import in &self.imported {
            let file = clean_path(&import.file);
            let messages = super::many(import.messages as usize, "message");
            let outcome = outcome(import);
            ui.print_line(&format!(
                "{outcome:<9}  {file}: {messages}, session {}",
                import.id
            ))?;
            if let Some(original) = &import.original_id {
                ui.status(&format!(
                    "  its own id {} is taken or invalid; it is kept as original_id",
                    quote(original)
                ));
            }
            if let Some(first) = import.damage.first().first() {
                let line = first
                    .line
                    .map_or_else(String::new, |line| format!(", line {line}"));
                let places = super::many(import.damage.count() as usize, "place");
                let text = format!(
                    "{places} of {file} cannot be read; the first is: {}{line}",
                    first.reason
                );
                ui.warning(&text, None);
            }
        }
        for file in &self.not_tried {
            let file = clean_path(file);
            ui.status(&format!(
                "{file} belongs to no known agent; it would be imported as a file of Backtrail itself"
            ));
        }
        for (file, error) in &self.errors {
            let what = format!("{} was not imported", clean_path(file));
            ui.error(&CommandError::invalid(what).cause(full_text(error)));
        }
        Ok(())
    }
}

fn outcome(import: &Import) -> &'static str {
    match import.outcome {
        ImportOutcome::New => "new",
        ImportOutcome::Unchanged => "unchanged",
        _ => "other",
    }
}

fn clean_path(path: &Path) -> String {
    clean(&path.to_string_lossy()).into_owned()
}
