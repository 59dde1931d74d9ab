//! Backtrail's own files among those to import: transcripts and JSON exports.

use std::path::{Path, PathBuf};

use backtrail::plumbing::version1::is_temporary;
use backtrail::verify::DamageReport;
use backtrail::{ErrorKind, SessionId, SessionOptions, Store, Transcript};
use backtrail_formats::{is_database_file, recognise};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{CommandError, Result};
use crate::files;
use crate::text::{count, path_json, visible_path};
use crate::ui::Ui;

/// The outcome of importing Backtrail's own files.
#[derive(Debug, Default)]
pub(super) struct Own {
    imported: Vec<Imported>,
    /// With `--dry-run`: files that would be tried.
    not_tried: Vec<PathBuf>,
    errors: Vec<(PathBuf, CommandError)>,
}

/// A file that was imported.
#[derive(Debug)]
struct Imported {
    file: PathBuf,
    session: SessionId,
    /// `new`, or `unchanged` if the store had the session already.
    outcome: &'static str,
    messages: u64,
    damage: DamageReport,
}

/// Splits the named paths: files that no other agent's format recognises, and the rest.
pub(super) fn split(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    paths.iter().cloned().partition(|path| {
        path.is_file() && !is_database_file(path) && matches!(recognise(path), Ok(None) | Err(_))
    })
}

/// Imports one file, unless the store has its session already.
fn import(store: &Store, path: &Path) -> Result<Imported> {
    if is_temporary(path) {
        let what = "this is a temporary file of another program";
        return Err(CommandError::invalid(what));
    }
    let transcript = Transcript::load_from_path(path)?;
    let session = transcript.session_id().clone();
    let is_new = !store.sessions()?.contains(&session);
    if is_new {
        let options = exported_options(path);
        store.create_session_from(&transcript, options)?.close()?;
    } else {
        let there = store.read_session(&session)?.transcript()?;
        let is_same = there.messages() == transcript.messages()
            && there.compaction() == transcript.compaction();
        if !is_same {
            let what = format!("session {session} already exists with different content");
            return Err(CommandError::new(ErrorKind::Conflict, what));
        }
    }
    Ok(Imported {
        file: path.to_owned(),
        session,
        outcome: if is_new { "new" } else { "unchanged" },
        messages: transcript.messages().len() as u64,
        damage: transcript.skipped().clone(),
    })
}

/// Returns what a JSON export says about the session beside its messages.
fn exported_options(path: &Path) -> SessionOptions {
    #[derive(Deserialize)]
    struct Exported {
        title: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        agent: Option<String>,
        model: Option<String>,
        workspace_root: Option<PathBuf>,
    }
    let exported = files::open(path).ok().and_then(|file| {
        let reader = std::io::BufReader::new(file);
        serde_json::from_reader::<_, Exported>(reader).ok()
    });
    let mut options = SessionOptions::new();
    let Some(exported) = exported else {
        return options;
    };
    if let Some(title) = exported.title {
        options = options.title(title);
    }
    if let Some(agent) = exported.agent {
        options = options.agent(agent);
    }
    if let Some(model) = exported.model {
        options = options.model(model);
    }
    if let Some(root) = exported.workspace_root {
        options = options.workspace_root(&root);
    }
    options.tags(exported.tags)
}

impl Own {
    pub(super) fn import(store: Option<&Store>, files: &[PathBuf], dry_run: bool) -> Self {
        let mut own = Self::default();
        for file in files {
            let Some(store) = store.filter(|_| !dry_run) else {
                own.not_tried.push(file.clone());
                continue;
            };
            // A link that the user named is followed; one that leads nowhere keeps its name.
            let path = file.canonicalize().unwrap_or_else(|_| file.clone());
            match import(store, &path) {
                Ok(imported) => own.imported.push(imported),
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
                "session": import.session,
                "outcome": import.outcome,
                "messages": import.messages,
                "damaged": import.damage.count(),
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
            json!({"file": path_json(file), "error": error.with_causes(), "kind": error.kind})
        })
    }

    pub(super) fn print(&self, ui: &Ui) -> Result<()> {
        for import in &self.imported {
            let file = visible_path(&import.file);
            let messages = count(import.messages, "message");
            let outcome = import.outcome;
            ui.print_line(&format!(
                "{outcome:<9}  {file}: {messages}, session {}",
                import.session
            ))?;
            if let Some(first) = import.damage.first().first() {
                let line = first
                    .line
                    .map_or_else(String::new, |line| format!(", line {line}"));
                let places = count(import.damage.count(), "place");
                let text = format!(
                    "{places} in {file} cannot be read; the first is: {}{line}",
                    first.reason
                );
                ui.warning(&text, None);
            }
        }
        for file in &self.not_tried {
            let file = visible_path(file);
            ui.status(&format!(
                "{file} is not from a known agent; it would be imported as a Backtrail file"
            ));
        }
        for (file, error) in &self.errors {
            let what = format!("{} was not imported", visible_path(file));
            ui.error(&CommandError::invalid(what).cause(error.with_causes()));
        }
        Ok(())
    }
}
