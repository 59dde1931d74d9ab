//! Writes the file that a session was imported from, byte for byte.

use std::io::Write;

use backtrail::plumbing::KeptSource;
use backtrail::{SessionReader, Store};

use super::super::short;
use super::ExportLoss;
use crate::error::{CommandError, Result};
use crate::text::{count, visible_path};

/// The file that a session was imported from.
pub(in crate::commands) struct KeptFile {
    pub(in crate::commands) source: KeptSource,
    /// The session that holds it, if that is another one.
    holder: Option<SessionReader>,
    /// How many other files the session was imported from.
    others: usize,
}

impl KeptFile {
    /// Finds the file of `agent` that a session was imported from; the longest, if there are
    /// several.
    pub(in crate::commands) fn find(
        store: &Store,
        reader: &SessionReader,
        agent: &str,
    ) -> Result<Option<Self>> {
        Ok(Self::all(store, reader, agent)?.into_iter().next())
    }

    /// Finds the files of `agent` that a session was imported from, the longest first.
    pub(in crate::commands) fn all(
        store: &Store,
        reader: &SessionReader,
        agent: &str,
    ) -> Result<Vec<Self>> {
        let mut sources = reader.sources()?;
        sources.retain(|source| source.agent == agent);
        let others = sources.len().saturating_sub(1);
        let own = sources.iter().filter(|source| source.held_by.is_none());
        let mut own: Vec<KeptSource> = own.cloned().collect();
        if !own.is_empty() {
            own.sort_by_key(|source| std::cmp::Reverse(source.bytes));
            let kept = |source| Self {
                source,
                holder: None,
                others,
            };
            return Ok(own.into_iter().map(kept).collect());
        }
        // A branch or a sub-agent, whose records are in the file of another session.
        for source in sources.iter().rev() {
            let Some(id) = &source.held_by else {
                continue;
            };
            let holder = store.read_session(id)?;
            let held = holder.sources()?;
            if let Some(held) = held.into_iter().find(|held| held.path == source.path) {
                return Ok(vec![Self {
                    source: held,
                    holder: Some(holder),
                    others: 0,
                }]);
            }
        }
        Ok(Vec::new())
    }

    /// Returns whether another session holds the file.
    pub(in crate::commands) fn is_held(&self) -> bool {
        self.holder.is_some()
    }

    /// Writes the file. `reader` is that of its session.
    pub(in crate::commands) fn write(
        &self,
        reader: &SessionReader,
        out: &mut dyn Write,
    ) -> backtrail::Result<u64> {
        let reader = self.holder.as_ref().unwrap_or(reader);
        reader.write_source(&self.source, out)
    }

    /// Returns what there is to say about the file.
    fn remark(&self, reader: &SessionReader) -> Option<ExportLoss> {
        if let Some(holder) = &self.holder {
            let text = format!(
                "session {} is part of this file, which belongs to session {}",
                short(reader.id()),
                short(holder.id())
            );
            return Some(ExportLoss::new("other_session", 1, text));
        }
        let others = self.others as u64;
        (others > 0).then(|| {
            let text = format!(
                "the session was also imported from {}; this is the longest, {}",
                count(others, "other file"),
                visible_path(&self.source.path)
            );
            ExportLoss::new("other_files", others, text)
        })
    }
}

/// Writes a file that a session was imported from. Returns remarks about it.
pub(super) fn write(
    file: &KeptFile,
    reader: &SessionReader,
    redacting: bool,
    out: &mut dyn Write,
) -> Result<Vec<ExportLoss>> {
    refuse_packed(&file.source, redacting)?;
    file.write(reader, out)?;
    Ok(file.remark(reader).into_iter().collect())
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
