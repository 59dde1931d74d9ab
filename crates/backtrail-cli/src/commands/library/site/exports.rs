//! Exports that a page saves.

use backtrail_web::library::{Exported, Redaction};

use super::super::moments;
use super::super::{Answer, StoreLibrary, failure};
use crate::commands::export::{Redact, formats_of, to_memory};
use crate::commands::short;
use crate::error::Result;

pub(super) fn export(
    library: &StoreLibrary,
    session: &str,
    format: &str,
    redaction: Redaction,
) -> Answer<Exported> {
    read(library, session, format, redaction).map_err(failure)
}

fn read(
    library: &StoreLibrary,
    session: &str,
    format: &str,
    redaction: Redaction,
) -> Result<Exported> {
    let id = moments::session(library, session)?;
    let redact = match redaction {
        Redaction::None => None,
        Redaction::Secrets => Some(Redact::Secrets),
        Redaction::People => Some(Redact::People),
    };
    let (bytes, notes) = to_memory(&library.store, &id, format, redact, &library.ui)?;
    let formats = formats_of(&library.store.read_session(&id)?)?;
    let extension = formats.iter().find(|(name, _)| *name == format);
    let extension = extension.map_or("txt", |(_, extension)| extension.as_str());
    Ok(Exported {
        file_name: format!("session-{}.{extension}", short(&id)),
        media_type: media_type(extension),
        bytes,
        notes,
    })
}

fn media_type(extension: &str) -> &'static str {
    match extension {
        "html" => "text/html; charset=utf-8",
        "md" => "text/markdown; charset=utf-8",
        "json" => "application/json",
        "jsonl" => "application/x-ndjson",
        _ => "text/plain; charset=utf-8",
    }
}
