//! The prompts and compactions of a session, as many as an export lists.

use backtrail::{RecordKind, SessionReader};
use backtrail_web::library::{Outline, OutlineEntry};

use super::super::{Answer, StoreLibrary, failure, session_id};
use crate::commands::conversation::{LOST_SUMMARY, compaction_words};
use crate::commands::export::{MOST_PROMPTS, prompt_words};
use crate::derived;
use crate::error::Result;

pub(super) fn outline(library: &StoreLibrary, session: &str) -> Answer<Outline> {
    let id = session_id(session)?;
    let read = || {
        let reader = library.store.read_session(&id)?;
        let mut outline = Outline {
            entries: entries(&reader)?,
            left: 0,
        };
        if outline.entries.len() >= MOST_PROMPTS {
            let row = derived::session(&library.index_as_left()?, &id)?;
            let prompts = outline.entries.iter().filter(|it| !it.is_compaction);
            let listed = prompts.count() as u64;
            outline.left = row.map_or(0, |row| row.turns.saturating_sub(listed));
        }
        Ok(outline)
    };
    read().map_err(failure)
}

fn entries(reader: &SessionReader) -> Result<Vec<OutlineEntry>> {
    let mut entries = Vec::new();
    let mut records = reader.records()?;
    while entries.len() < MOST_PROMPTS
        && let Some(record) = records.next()?
    {
        let (seq, is_compaction) = (record.seq(), record.kind() == RecordKind::Compaction);
        let text = match record.stored_message() {
            _ if is_compaction => match record.compaction() {
                Ok(Some(stored)) => compaction_words(&stored),
                _ => LOST_SUMMARY.to_owned(),
            },
            Ok(Some(stored)) if stored.is_prompt() => {
                let message = record.message()?;
                message.map_or_else(String::new, |it| prompt_words(&it.said().text))
            }
            _ => continue,
        };
        entries.push(OutlineEntry {
            seq,
            is_compaction,
            text,
        });
    }
    Ok(entries)
}
