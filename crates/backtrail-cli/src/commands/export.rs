//! `backtrail export`: a session for other programs, and for people.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use backtrail::SessionReader;
use clap::ValueEnum;
use serde_json::{Value, json};

use super::markdown;
use super::{Answer, require_store, resolve, short};
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::shell::argument;
use crate::text::{count, path_json, size};
use crate::ui::{Ui, unwritable};

/// Write a session out for other programs or for people
///
/// v1 are the JSON lines that older programs read; what they have no place for
/// is turned into text or left out, and listed. json is one object with all
/// messages. markdown is to be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// What to write
    #[arg(long, value_name = "FORMAT")]
    to: Format,

    /// Write to a new file instead of stdout (-)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    V1,
    Json,
    Markdown,
}

impl Format {
    fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::Json => "json",
            Self::Markdown => "markdown",
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let id = resolve(&store, &args.reference)?;
    let reader = store.read_session(&id)?;
    let file = args.output.as_ref().filter(|path| *path != Path::new("-"));
    let Some(path) = file else {
        let mut out = BufWriter::new(io::stdout().lock());
        let losses = write(args.to, &reader, &mut out)?;
        out.flush().map_err(|error| unwritable(&error))?;
        tell(&losses, ui);
        return Ok(Answer::Done);
    };
    let (losses, bytes) = write_file(args.to, &reader, path)?;
    if ui.json() {
        ui.print_json(&json!({
            "session": id,
            "to": args.to.as_str(),
            "file": path_json(path),
            "bytes": bytes,
            "losses": losses.iter().map(|loss| Value::from(loss.as_str())).collect::<Vec<_>>(),
        }))?;
        return Ok(Answer::Done);
    }
    let shown = path.to_string_lossy();
    ui.print_line(&format!(
        "{} written to {shown} ({})",
        short(&id),
        size(bytes)
    ))?;
    tell(&losses, ui);
    ui.status(&format!("take this back: rm {}", argument(&shown)));
    Ok(Answer::Done)
}

/// Writes the session, and returns what was lost on the way.
fn write(format: Format, reader: &SessionReader, out: &mut dyn Write) -> Result<Vec<String>> {
    match format {
        Format::V1 => {
            let losses = reader.write_v1(out)?;
            Ok(losses.iter().map(ToString::to_string).collect())
        }
        Format::Json => {
            let skipped = reader.write_json(out)?;
            let told = || format!("{} could not be read", count(skipped, "place"));
            Ok((skipped > 0).then(told).into_iter().collect())
        }
        Format::Markdown => markdown::write(reader, out),
    }
}

/// Writes a new file, whole or not at all.
fn write_file(format: Format, reader: &SessionReader, path: &Path) -> Result<(Vec<String>, u64)> {
    let failed = |error: &io::Error| CommandError::io("cannot write the export", Some(path), error);
    let file = File::create_new(path).map_err(|error| {
        let error_text = failed(&error);
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                CommandError::invalid("this file exists; it is not replaced")
                    .at_path(path)
                    .hint("name another file, or remove this one first")
            }
            _ => error_text,
        }
    })?;
    let mut out = BufWriter::new(file);
    let written = write(format, reader, &mut out).and_then(|losses| {
        let file = out.into_inner().map_err(|error| failed(error.error()))?;
        file.sync_all().map_err(|error| failed(&error))?;
        let bytes = file.metadata().map_err(|error| failed(&error))?.len();
        Ok((losses, bytes))
    });
    if written.is_err() {
        remove(path);
    }
    written
}

#[expect(
    clippy::disallowed_methods,
    reason = "half an export that this command made itself"
)]
fn remove(path: &Path) {
    std::fs::remove_file(path).ok();
}

fn tell(losses: &[String], ui: &Ui) {
    for loss in losses {
        ui.status(&format!("note: {loss}"));
    }
}
