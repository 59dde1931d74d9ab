//! Exports a session for other programs, message by message.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

use serde::Serialize;

use super::info::SessionInfo;
use super::reader::SessionReader;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::message::{CompactionSummary, Details};
use crate::time::Timestamp;
use crate::trail::readable::Readable;
use crate::trail::{FORMAT_VERSION, RecordKind, RecordRef};
use crate::version1::{LossKind, Losses, V1Meta, V1Writer};

impl SessionReader {
    /// Writes the session as version-1 lines, which older programs read, and returns what
    /// became text or was dropped.
    ///
    /// Messages that a summary replaces are dropped, as in version 1. Only one message is
    /// in memory at a time.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read or `out` cannot be written.
    pub fn write_v1(&self, out: &mut dyn Write) -> Result<Losses> {
        self.pinned()?.write_v1_of_line(out)
    }

    fn write_v1_of_line(&self, out: &mut dyn Write) -> Result<Losses> {
        let info = self.info()?;
        let compaction = self.newest_compaction()?.map(|(_, stored)| stored);
        let instructions: HashSet<u64> = self
            .instructions()?
            .said
            .iter()
            .map(|said| said.seq)
            .collect();
        let from = compaction
            .as_ref()
            .and_then(|stored| stored.keeps_from)
            .unwrap_or(0);
        let mut writer = V1Writer::new(out);
        if info.title.is_some() || info.agent.is_some() || !info.tags.is_empty() {
            writer.add_loss(LossKind::Notes, 0);
        }
        writer.meta(&meta_of(info))?;
        if let Some(stored) = compaction {
            writer.compaction(&CompactionSummary {
                count: stored.count,
                removed_message_count: stored.removed_message_count,
                summary: stored.summary,
                covered: 0,
            })?;
        }
        let mut records = self.records()?;
        while let Some(record) = records.next()? {
            let seq = record.seq();
            if record.kind() == RecordKind::Other("prompt_history") {
                writer.add_loss(LossKind::Prompts, seq);
            }
            let readable = record.readable()?;
            if matches!(readable, Readable::InPart(_) | Readable::Nothing) {
                writer.add_loss(LossKind::Unreadable, seq);
            }
            let (Readable::Whole(message) | Readable::InPart(message)) = readable else {
                continue;
            };
            if seq < from && !instructions.contains(&seq) {
                writer.skip(&message, seq);
                continue;
            }
            if record.details() != Details::default() {
                writer.add_loss(LossKind::Details, seq);
            }
            writer.message(&message, seq)?;
        }
        for _ in 0..records.damage().count() {
            writer.add_loss(LossKind::Unreadable, 0);
        }
        writer.finish()
    }

    /// Writes the session as one JSON object: that of a
    /// [`Transcript`](crate::Transcript), with the details of the session and of each
    /// message's record. Only one message is in memory at a time. Returns how many places
    /// and messages could not be read, and so are missing or incomplete.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read or `out` cannot be written.
    pub fn write_json(&self, out: &mut dyn Write) -> Result<u64> {
        self.pinned()?.write_json_of_line(out)
    }

    fn write_json_of_line(&self, out: &mut dyn Write) -> Result<u64> {
        let info = self.info()?;
        let written = |error: io::Error| Error::machine("cannot write the export", error);
        let head = as_json(&Head::new(&info)).map_err(written)?;
        out.write_all(&head.as_bytes()[..head.len() - 1])
            .and_then(|()| out.write_all(b",\"messages\":["))
            .map_err(written)?;
        let compaction = self.newest_compaction()?.map(|(_, stored)| stored);
        let keeps_from = compaction.as_ref().and_then(|stored| stored.keeps_from);
        let (mut written_so_far, mut covered, mut skipped) = (0, 0, 0);
        let mut separator = "";
        let mut records = self.records()?;
        while let Some(record) = records.next()? {
            let (json, flaws) = readable_json(&record)?;
            skipped += flaws;
            let Some(json) = json else {
                continue;
            };
            covered += usize::from(keeps_from.is_some_and(|from| record.seq() < from));
            write!(out, "{separator}{json}").map_err(written)?;
            written_so_far += 1;
            separator = ",";
        }
        out.write_all(b"],\"records\":[").map_err(written)?;
        self.write_details(out, written_so_far)?;
        out.write_all(b"]").map_err(written)?;
        if let Some(stored) = compaction {
            let compaction = ExportedCompaction {
                count: stored.count,
                removed_message_count: stored.removed_message_count,
                summary: stored.summary.as_str(),
                covered,
            };
            let compaction = as_json(&compaction).map_err(written)?;
            write!(out, ",\"compaction\":{compaction}").map_err(written)?;
        }
        if let Some(fork) = &info.forked_from {
            let fork = as_json(fork).map_err(written)?;
            write!(out, ",\"fork\":{fork}").map_err(written)?;
        }
        out.write_all(b"}\n").map_err(written)?;
        Ok(skipped + records.damage().count())
    }

    /// Writes the details of the records of the first `messages` messages, in order: more
    /// may have been appended meanwhile.
    fn write_details(&self, out: &mut dyn Write, mut messages: u64) -> Result<()> {
        #[derive(Serialize)]
        struct RecordDetails<'a> {
            seq: u64,
            id: Option<&'a str>,
            at: Option<Timestamp>,
            model: Option<String>,
            response_id: Option<String>,
            duration_ms: Option<u64>,
            cost_usd: Option<f64>,
        }
        let mut records = self.records()?;
        let mut separator = "";
        while messages > 0
            && let Some(record) = records.next()?
        {
            if record.stored_message_json().is_none() {
                continue;
            }
            messages -= 1;
            let details = record.details();
            let id = record.id();
            let known = RecordDetails {
                seq: record.seq(),
                id: id.as_deref(),
                at: record.at(),
                model: details.model,
                response_id: details.response_id,
                duration_ms: details.duration_ms,
                cost_usd: details.cost_usd,
            };
            let line = serde_json::to_string(&known).map_err(io::Error::other);
            line.and_then(|line| write!(out, "{separator}{line}"))
                .map_err(|error| Error::machine("cannot write the export", error))?;
            separator = ",";
        }
        Ok(())
    }
}

/// Returns the JSON of a record's message as far as it can be read, and its number of
/// flaws.
fn readable_json<'r>(record: &RecordRef<'r>) -> Result<(Option<Cow<'r, str>>, u64)> {
    match record.message_json() {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            Ok((record.stored_message_json().map(Cow::Borrowed), 1))
        }
        json => Ok((json?, 0)),
    }
}

fn meta_of(info: SessionInfo) -> V1Meta {
    let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    V1Meta {
        session_id: Some(info.id.to_string()),
        created_at_ms: Some(millis(info.created_at).unwrap_or(0)),
        updated_at_ms: Some(millis(info.updated_at).unwrap_or(0)),
        fork: info.forked_from,
        model: info.model,
        workspace_root: info
            .workspace_root
            .map(|root| root.to_string_lossy().into_owned()),
        ..V1Meta::default()
    }
}

fn as_json(value: &impl Serialize) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::other)
}

/// An export's details of the session, before its messages.
#[derive(Serialize)]
struct Head<'a> {
    version: u32,
    session_id: &'a SessionId,
    created_at_ms: i64,
    updated_at_ms: i64,
    title: Option<&'a str>,
    tags: &'a [String],
    agent: Option<&'a str>,
    model: Option<&'a str>,
    workspace_root: Option<Cow<'a, str>>,
}

impl<'a> Head<'a> {
    fn new(info: &'a SessionInfo) -> Self {
        let root = info.workspace_root.as_ref();
        Self {
            version: FORMAT_VERSION,
            session_id: &info.id,
            created_at_ms: info.created_at.map_or(0, Timestamp::as_millis),
            updated_at_ms: info.updated_at.map_or(0, Timestamp::as_millis),
            title: info.title.as_deref(),
            tags: &info.tags,
            agent: info.agent.as_deref(),
            model: info.model.as_deref(),
            workspace_root: root.map(|root| root.to_string_lossy()),
        }
    }
}

/// The newest compaction in an export, and how many of its messages are covered.
#[derive(Serialize)]
struct ExportedCompaction<'a> {
    count: u64,
    removed_message_count: u64,
    summary: &'a str,
    covered: usize,
}
