//! The request that an agent really sent.

use backtrail::{SessionId, SessionReader};
use backtrail_formats::{Source, WhichRequest, sent_request};

use super::super::export::KeptFile;
use super::super::import::failed;
use super::super::{Answer, find_session, short};
use super::print;
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// The agent that keeps what it sends.
const AGENT: &str = "claude-code";

pub(super) fn run(reference: &str, seq: Option<u64>, ui: &Ui) -> Result<Answer> {
    let (store, id) = find_session(reference, ui)?;
    let reader = store.read_session(&id)?;
    let Some(file) = KeptFile::find(&store, &reader, AGENT)? else {
        return Err(not_kept(&id, None));
    };
    let response = match seq.is_some() || file.is_held() {
        true => {
            let response = last_response(&reader, seq.unwrap_or(u64::MAX))?;
            Some(response.ok_or_else(|| not_kept(&id, seq))?)
        }
        false => None,
    };
    let which = response
        .as_deref()
        .map_or(WhichRequest::Last, WhichRequest::AnsweredBy);
    let path = file.source.path.clone();
    let write = |out: &mut dyn std::io::Write| file.write(&reader, out).map(|_| ());
    let source = Source::from_written(path, write);
    let source = source.map_err(|error| failed(&error).without_hints())?;
    let sent = sent_request(&source, which).map_err(|error| {
        failed(&error).context(format!("cannot rebuild what session {} sent", short(&id)))
    })?;
    let Some(sent) = sent else {
        return Err(not_kept(&id, seq));
    };
    print(&sent.json)?;
    if !sent.is_verified {
        let text = "the request does not have the hash that the agent noted: \
                    the file was edited, or its format is newer";
        ui.warning(text, None);
    }
    Ok(Answer::Done)
}

/// Returns the id of the last response at or before a record.
fn last_response(reader: &SessionReader, seq: u64) -> Result<Option<String>> {
    let mut records = reader.records_back()?;
    while let Some(record) = records.next()? {
        if record.seq() <= seq
            && let Some(id) = record.details().response_id
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn not_kept(id: &SessionId, seq: Option<u64>) -> CommandError {
    let what = match seq {
        Some(seq) => format!("record {seq} of session {}", short(id)),
        None => format!("session {}", short(id)),
    };
    CommandError::not_found(format!(
        "{what} has no record of what was sent: only Claude Code from 2.1.325 keeps it"
    ))
}
