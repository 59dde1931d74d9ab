//! Files of our own among those that are taken in: trails, and what was exported.

use std::path::{Path, PathBuf};

use backtrail::{Import, ImportOutcome, Store};
use backtrail_formats::recognised;
use serde_json::{Value, json};

use crate::error::{CommandError, full_text};
use crate::shell::quote;
use crate::text::{clean, path_json};
use crate::ui::Ui;

/// What came of files of our own.
#[derive(Debug, Default)]
pub(super) struct Own {
    taken: Vec<Import>,
    /// With `--dry-run`: files that would be tried.
    would: Vec<PathBuf>,
    errors: Vec<(PathBuf, backtrail::Error)>,
}

/// Parts what was named: files that no other agent knows, which are ours or nobody's, and
/// the rest.
pub(super) fn part(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    paths
        .iter()
        .cloned()
        .partition(|path| path.is_file() && matches!(recognised(path), Ok(None) | Err(_)))
}

impl Own {
    pub(super) fn take_in(store: Option<&Store>, files: &[PathBuf], dry_run: bool) -> Self {
        let mut own = Self::default();
        for file in files {
            let Some(store) = store.filter(|_| !dry_run) else {
                own.would.push(file.clone());
                continue;
            };
            // A link is followed here, where the person named it; the store follows none.
            // One that leads nowhere is named as it was given.
            let path = file.canonicalize().unwrap_or_else(|_| file.clone());
            match store.import(&path) {
                Ok(import) => own.taken.push(import),
                Err(error) => own.errors.push((file.clone(), error)),
            }
        }
        own
    }

    pub(super) fn failed(&self) -> bool {
        !self.errors.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.would.is_empty() && self.errors.is_empty()
    }

    pub(super) fn as_json(&self) -> Value {
        let taken = self.taken.iter().map(|import| {
            json!({
                "file": path_json(&import.file),
                "session": import.id,
                "outcome": outcome(import),
                "messages": import.messages,
                "damaged": import.damage.count(),
                "original_id": import.original_id,
            })
        });
        let would = self
            .would
            .iter()
            .map(|file| json!({"file": path_json(file), "session": null, "outcome": "not_tried"}));
        taken.chain(would).collect()
    }

    pub(super) fn errors_json(&self) -> impl Iterator<Item = Value> {
        self.errors.iter().map(|(file, error)| {
            json!({"file": path_json(file), "error": full_text(error),
                "kind": error.kind().as_str()})
        })
    }

    /// Tells people.
    pub(super) fn tell(&self, ui: &Ui) -> crate::error::Result<()> {
        for import in &self.taken {
            let file = clean_path(&import.file);
            let messages = super::many(import.messages as usize, "message");
            let outcome = outcome(import);
            ui.print_line(&format!(
                "{outcome:<9}  {file}: {messages}, session {}",
                import.id
            ))?;
            if let Some(original) = &import.original_id {
                ui.status(&format!(
                    "  its own id {} is taken or no id; it is kept as original_id",
                    quote(original)
                ));
            }
            if let Some(first) = import.damage.first().first() {
                let line = first
                    .line
                    .map_or_else(String::new, |line| format!(", line {line}"));
                let places = super::many(import.damage.count() as usize, "place");
                let text = format!(
                    "{places} of {file} cannot be read; the first: {}{line}",
                    first.reason
                );
                ui.warning(&text, None);
            }
        }
        for file in &self.would {
            let file = clean_path(file);
            ui.status(&format!(
                "{file} is of no other agent; it would be tried as a file of Backtrail's own"
            ));
        }
        for (file, error) in &self.errors {
            let what = format!("{} was not taken in", clean_path(file));
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
