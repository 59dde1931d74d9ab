//! Copies of sessions without their secrets, which are pushed in their place. They are in a store
//! of their own, as long as it takes to push them.

use backtrail::{Draft, RecordRef, Session, SessionId, SessionOptions, SessionReader, Store};
use backtrail_formats::Redactor;
use serde::Deserialize;
use tempfile::TempDir;

use crate::commands::export::Redact;
use crate::error::{CommandError, Result};

/// Redacted copies of sessions.
pub(super) struct Copies {
    pub(super) store: Store,
    pub(super) made: Vec<RedactedCopy>,
    _dir: TempDir,
}

/// A copy of one session.
pub(super) struct RedactedCopy {
    pub(super) of: SessionId,
    pub(super) id: SessionId,
    /// How many secrets were removed.
    pub(super) removed: u64,
    /// Messages that cannot be read, which are not in the copy.
    pub(super) unreadable: u64,
}

/// What a record says about its message.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    model: Option<String>,
    response_id: Option<String>,
    duration_ms: Option<u64>,
    cost_usd: Option<f64>,
}

/// How many messages are appended at once.
const AT_ONCE: usize = 100;

impl Copies {
    pub(super) fn make(store: &Store, ids: &[SessionId], redact: Redact) -> Result<Self> {
        let failed = |error: &_| CommandError::io("cannot make a redacted copy", None, error);
        let dir = tempfile::tempdir().map_err(|error| failed(&error))?;
        let copies = Store::open_or_create(dir.path().join("store"))?;
        let made = ids.iter().map(|id| copy(store, id, &copies, redact));
        Ok(Self {
            made: made.collect::<Result<_>>()?,
            store: copies,
            _dir: dir,
        })
    }
}

fn copy(from: &Store, id: &SessionId, to: &Store, redact: Redact) -> Result<RedactedCopy> {
    let reader = from.read_session(id)?;
    let mut redactor = redact.redactor();
    let session = to.create_session(options(&reader, &mut redactor)?)?;
    let mut unreadable = 0;
    let mut drafts: Vec<Draft> = Vec::new();
    let mut records = reader.records()?;
    while let Some(record) = records.next()? {
        if record.stored_message_json().is_none() {
            continue;
        }
        match draft(&record, &mut redactor) {
            Some(draft) => drafts.push(draft),
            None => unreadable += 1,
        }
        if drafts.len() == AT_ONCE {
            append(&session, std::mem::take(&mut drafts))?;
        }
    }
    unreadable += records.damage().count();
    append(&session, drafts)?;
    let copy = session.id().clone();
    session.close()?;
    Ok(RedactedCopy {
        of: id.clone(),
        id: copy,
        removed: redactor.findings().map(|found| found.count).sum(),
        unreadable,
    })
}

fn append(session: &Session, drafts: Vec<Draft>) -> Result<()> {
    for appended in session.append_batch(drafts) {
        appended?;
    }
    Ok(())
}

fn options(reader: &SessionReader, redactor: &mut Redactor) -> Result<SessionOptions> {
    let info = reader.info()?;
    let mut options = SessionOptions::new();
    if let Some(title) = reader.title()? {
        options = options.title(redactor.redact(&title));
    }
    if let Some(agent) = info.agent {
        options = options.agent(redactor.redact(&agent));
    }
    let tags = info
        .tags
        .iter()
        .map(|tag| redactor.redact(tag).into_owned());
    Ok(options.tags(tags.collect::<Vec<_>>()))
}

/// Returns a message without its secrets; `None` if it cannot be read.
fn draft(record: &RecordRef<'_>, redactor: &mut Redactor) -> Option<Draft> {
    redactor.at(record.seq());
    let mut message = record.message().ok().flatten()?;
    redactor.redact_message(&mut message);
    let details: Details = serde_json::from_slice(record.bytes()).unwrap_or_default();
    let mut draft = Draft::from(message);
    if let Some(at) = record.at() {
        draft = draft.at(at);
    }
    if let Some(model) = details.model {
        draft = draft.model(redactor.redact(&model));
    }
    if let Some(id) = details.response_id {
        draft = draft.response_id(id);
    }
    if let Some(duration_ms) = details.duration_ms {
        draft = draft.duration_ms(duration_ms);
    }
    if let Some(cost) = details.cost_usd {
        draft = draft.cost_usd(cost);
    }
    Some(draft)
}
