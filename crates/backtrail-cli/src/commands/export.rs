//! `backtrail export`: a session for other programs, and for people.

mod diff;
mod frame;
mod html;
mod markup;
mod prose;
mod queue;
mod removed;
mod sha256;
mod source;
mod tool;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use backtrail::{Json, Message, RecordRef, SessionInfo, SessionReader, Store, Text};
use backtrail_formats::{JsonRedactor, Redactor};
use clap::ValueEnum;
use serde_json::{Value, json};

use self::removed::Removed;
use super::markdown;
use super::{Answer, require_store, resolve, short};
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::shell::argument;
use crate::text::{count, path_json, size};
use crate::ui::{Ui, unwritable};

/// Write a session out for other programs or for people
///
/// html is one page that needs nothing else, markdown is to be read, json is one object with
/// all messages. An agent's name gives back the files that the session was taken in from,
/// byte for byte. v1 are the JSON lines that older programs read; what they have no place
/// for is turned into text or left out, and listed.
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

    /// Remove keys, tokens, passwords and private keys, and list what was removed; the
    /// session itself stays as it is
    #[arg(long)]
    redact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Html,
    Markdown,
    Json,
    ClaudeCode,
    Codex,
    GeminiCli,
    Pi,
    ClawCode,
    CheckpointFiles,
    V1,
}

impl Format {
    fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Pi => "pi",
            Self::ClawCode => "claw-code",
            Self::CheckpointFiles => "checkpoint-files",
            Self::V1 => "v1",
        }
    }
}

/// A session on its way out.
pub(super) struct Export<'a> {
    pub(super) store: &'a Store,
    pub(super) reader: &'a SessionReader,
    /// Where secrets are to be removed.
    redactor: Option<Redactor>,
}

impl Export<'_> {
    /// Reads a message as it goes out, and whether all of it could be read; where only a
    /// part of it is lost, the rest is written.
    pub(super) fn message(&mut self, record: &RecordRef<'_>) -> (Option<Message>, bool) {
        let read = record.message();
        let whole = read.is_ok();
        let mut message = read.or_else(|_| record.stored_message()).ok().flatten();
        if let (Some(redactor), Some(message)) = (&mut self.redactor, &mut message) {
            redactor.at(record.seq());
            redactor.redact_message(message);
        }
        (message, whole)
    }

    /// Returns a text as it goes out.
    pub(super) fn text(&mut self, text: &str) -> String {
        match &mut self.redactor {
            Some(redactor) => redactor.redact(text).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Reads what is known of the session, as it goes out.
    pub(super) fn info(&mut self) -> Result<SessionInfo> {
        let mut info = self.reader.info()?;
        let Some(redactor) = &mut self.redactor else {
            return Ok(info);
        };
        redactor.at(0);
        let mut redact = |text: &mut Option<String>| {
            if let Some(text) = text
                && let Cow::Owned(redacted) = redactor.redact(text)
            {
                *text = redacted;
            }
        };
        let mut root = info
            .workspace_root
            .as_ref()
            .map(|root| root.to_string_lossy().into_owned());
        for text in [
            &mut info.title,
            &mut info.begins,
            &mut info.agent,
            &mut info.model,
            &mut root,
        ] {
            redact(text);
        }
        info.workspace_root = info.workspace_root.and(root.map(PathBuf::from));
        for tag in &mut info.tags {
            *tag = redactor.redact(tag).into_owned();
        }
        Ok(info)
    }
}

/// Returns what a session is called: its title, else how it begins.
pub(super) fn title_of(info: &SessionInfo) -> Option<String> {
    info.title.clone().or_else(|| info.begins.clone())
}

/// Returns the text of a JSON value that is a string.
pub(super) fn text_of(json: &Json) -> Option<Text> {
    serde_json::from_str(json.as_str()).ok()
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let id = resolve(&store, &args.reference)?;
    let reader = store.read_session(&id)?;
    let mut export = Export {
        store: &store,
        reader: &reader,
        redactor: args.redact.then(Redactor::new),
    };
    let file = args.output.as_ref().filter(|path| *path != Path::new("-"));
    let Some(path) = file else {
        let mut out = BufWriter::new(io::stdout().lock());
        let losses = write(args.to, &mut export, &mut out)?;
        out.flush().map_err(|error| unwritable(&error))?;
        tell(&losses, ui);
        if let Some(removed) = removed(args.to, &export)? {
            removed.tell(ui);
        }
        return Ok(Answer::Done);
    };
    let (losses, bytes) = write_file(args.to, &mut export, path)?;
    let removed = removed(args.to, &export)?;
    if ui.json() {
        let mut told = json!({
            "session": id,
            "to": args.to.as_str(),
            "file": path_json(path),
            "bytes": bytes,
            "losses": losses.iter().map(|loss| Value::from(loss.as_str())).collect::<Vec<_>>(),
        });
        if let Some(removed) = removed {
            told["removed"] = removed.to_json();
        }
        ui.print_json(&told)?;
        return Ok(Answer::Done);
    }
    let shown = path.to_string_lossy();
    ui.print_line(&format!(
        "{} written to {shown} ({})",
        short(&id),
        size(bytes)
    ))?;
    tell(&losses, ui);
    if let Some(removed) = removed {
        removed.tell(ui);
    }
    ui.status(&format!("to reverse: rm {}", argument(&shown)));
    Ok(Answer::Done)
}

/// Returns what was removed; `None` where nothing was to be.
fn removed(format: Format, export: &Export<'_>) -> Result<Option<Removed>> {
    let Some(redactor) = &export.redactor else {
        return Ok(None);
    };
    Ok(Some(match format {
        Format::Html | Format::Markdown => Removed::in_records(redactor),
        Format::Json => Removed::in_messages(redactor, export.reader)?,
        _ => Removed::in_lines(redactor),
    }))
}

/// Writes the session, and returns what was lost on the way.
fn write(format: Format, export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<String>> {
    match format {
        Format::Html => html::write(export, out),
        Format::Markdown => markdown::write(export, out),
        Format::Json => {
            let reader = export.reader;
            let skipped = match &mut export.redactor {
                Some(redactor) => {
                    let mut out = JsonRedactor::elements(out, redactor, "messages");
                    let skipped = reader.write_json(&mut out)?;
                    out.finish().map_err(|error| unwritable(&error))?;
                    skipped
                }
                None => reader.write_json(out)?,
            };
            let told = || format!("{} could not be read", count(skipped, "place"));
            Ok((skipped > 0).then(told).into_iter().collect())
        }
        Format::V1 => {
            let reader = export.reader;
            let losses = match &mut export.redactor {
                Some(redactor) => {
                    let mut out = JsonRedactor::lines(out, redactor);
                    let losses = reader.write_v1(&mut out)?;
                    out.finish().map_err(|error| unwritable(&error))?;
                    losses
                }
                None => reader.write_v1(out)?,
            };
            Ok(losses.iter().map(ToString::to_string).collect())
        }
        agent => match &mut export.redactor {
            Some(redactor) => {
                let mut out = JsonRedactor::lines(out, redactor);
                let told =
                    source::write(export.store, export.reader, agent.as_str(), true, &mut out)?;
                out.finish().map_err(|error| unwritable(&error))?;
                Ok(told)
            }
            None => source::write(export.store, export.reader, agent.as_str(), false, out),
        },
    }
}

/// Writes a new file, whole or not at all.
fn write_file(format: Format, export: &mut Export<'_>, path: &Path) -> Result<(Vec<String>, u64)> {
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
    let written = write(format, export, &mut out).and_then(|losses| {
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
