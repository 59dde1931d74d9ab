//! Writes the file that a session was imported from, byte for byte.

use std::io::Write;

use backtrail::plumbing::KeptSource;
use backtrail::{SessionReader, Store};

use super::super::short;
use crate::error::{CommandError, Result};
use crate::text::{clean, count, visible_path};

/// Writes the file of `agent` that a session was imported from; the longest, if there are
/// several. Returns remarks about it.
pub(super) fn write(
    store: &Store,
    reader: &SessionReader,
    agent: &str,
    redacting: bool,
    out: &mut dyn Write,
) -> Result<Vec<String>> {
    let sources = reader.sources()?;
    let mut remarks = Vec::new();
    if let Some(source) = longest(&sources, agent) {
        let others = sources.iter().filter(|other| other.agent == agent).count() - 1;
        if others > 0 {
            remarks.push(format!(
                "the session was also imported from {}; this is the longest, {}",
                count(others, "other file"),
                visible_path(&source.path)
            ));
        }
        refuse_packed(source, redacting)?;
        reader.write_source(source, out)?;
        return Ok(remarks);
    }
    // A branch or a sub-agent, whose records are in the file of another session.
    let holder = sources.iter().filter(|source| source.agent == agent).rev();
    let holder = holder.filter_map(|source| Some((source, source.held_by.as_ref()?)));
    for (source, id) in holder {
        let holder = store.read_session(id)?;
        let held = holder.sources()?;
        if let Some(held) = held.iter().find(|held| held.path == source.path) {
            remarks.push(format!(
                "session {} is part of this file, which belongs to session {}",
                short(reader.id()),
                short(id)
            ));
            refuse_packed(held, redacting)?;
            holder.write_source(held, out)?;
            return Ok(remarks);
        }
    }
    Err(none(reader, &sources, agent))
}

/// Refuses to remove secrets from a compressed file.
fn refuse_packed(source: &KeptSource, redacting: bool) -> Result<()> {
    if redacting && source.path.extension().is_some_and(|it| it == "zst") {
        let what = "this session's file is compressed, so --redact cannot edit it";
        let error = CommandError::invalid(what).at_path(&source.path);
        return Err(error.hint("export it as html, markdown or json"));
    }
    Ok(())
}

fn longest<'s>(sources: &'s [KeptSource], agent: &str) -> Option<&'s KeptSource> {
    let fits = |source: &&KeptSource| source.agent == agent && source.held_by.is_none();
    sources
        .iter()
        .filter(fits)
        .max_by_key(|source| source.bytes)
}

fn none(reader: &SessionReader, sources: &[KeptSource], agent: &str) -> CommandError {
    let id = short(reader.id());
    let what = format!("session {id} was not imported from {agent}");
    let error = CommandError::invalid(what);
    if let Some(source) = sources.first() {
        return error.hint(format!(
            "it was imported from {}: use --to {}",
            source.agent, source.agent
        ));
    }
    let parent = reader.info().ok().and_then(|info| info.forked_from);
    match parent {
        Some(parent) => error.hint(format!(
            "try its parent {}, or export it as html, markdown or json",
            clean(&parent.parent_session_id)
        )),
        None => error.hint("export it as html, markdown or json"),
    }
}
