//! `backtrail import`: sessions of other programs.

use std::path::{Path, PathBuf};

use backtrail::{Import, ImportOutcome, Store};
use serde_json::{Value, json};

use super::{Answer, open_or_create_store};
use crate::args::Global;
use crate::error::{CommandError, Result, full_text};
use crate::shell::quote;
use crate::text::{clean, count, path_json};
use crate::ui::Ui;

/// Take in session files of version 1: JSON lines, or one single object
///
/// Each becomes a session of its own, with the file's bytes as its first trail.
/// The files are only read. Taken in again, the same content changes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = open_or_create_store(global)?;
    let mut rows = Vec::new();
    let mut failed = 0;
    for file in &args.files {
        match take_in(&store, file) {
            Ok(import) => rows.push(report(&import, ui)?),
            Err(error) => {
                failed += 1;
                rows.push(refuse(file, &error, ui));
            }
        }
    }
    if ui.json() {
        ui.print_json(&Value::from(rows))?;
    }
    if failed > 0 {
        let all = args.files.len();
        if all > 1 {
            let files = count(all as u64, "file");
            ui.status(&format!("{} of {files} taken in", all - failed));
        }
        return Ok(Answer::No);
    }
    Ok(Answer::Done)
}

fn take_in(store: &Store, file: &Path) -> backtrail::Result<Import> {
    // A link is followed here, where the person named it; the store follows none.
    // One that leads nowhere is named as it was given.
    let path = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    store.import(&path)
}

fn report(import: &Import, ui: &Ui) -> Result<Value> {
    let outcome = match import.outcome {
        ImportOutcome::New => "new",
        ImportOutcome::Unchanged => "unchanged",
        _ => "other",
    };
    if ui.json() {
        return Ok(json!({
            "file": path_json(&import.file),
            "session": import.id,
            "outcome": outcome,
            "messages": import.messages,
            "damaged": import.damage.count(),
            "original_id": import.original_id,
        }));
    }
    let file = clean_path(&import.file);
    let messages = count(import.messages, "message");
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
        let text = format!(
            "{} of {file} cannot be read; the first: {}{}",
            count(import.damage.count(), "place"),
            first.reason,
            first
                .line
                .map_or_else(String::new, |line| format!(", line {line}")),
        );
        ui.warning(&text, None);
    }
    Ok(Value::Null)
}

fn refuse(file: &Path, error: &backtrail::Error, ui: &Ui) -> Value {
    if ui.json() {
        return json!({"file": path_json(file), "error": full_text(error), "kind": error.kind().as_str()});
    }
    let what = format!("{} was not taken in", clean_path(file));
    ui.error(&CommandError::invalid(what).cause(full_text(error)));
    Value::Null
}

fn clean_path(path: &Path) -> String {
    clean(&path.to_string_lossy()).into_owned()
}
