//! Pushes what is only here of a session that diverged, as a fork.
//!
//! The fork continues the session at the last record that both have, and has copies of the
//! records behind it that are on the session's line of history here. They keep their numbers.

use std::collections::BTreeSet;

use super::push::OnProgress;
use super::relatives::{files_anywhere, parent_here};
use super::{PushOptions, Transfer, while_doing};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::lock::LockFile;
use crate::log::payloads::{PayloadWriter, adopt};
use crate::log::{Durability, LogDir, chain, place, present_at, trail_copy::TrailCopy};
use crate::replica::compare::{Comparison, Need, Relation};
use crate::replica::local::LocalLog;
use crate::replica::refusal::{LastCommon, Refusal};
use crate::replica::wire::{End, Replica};
use crate::session::Session;
use crate::store::Store;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::opener::{Continues, Opener, TrailReason};
use crate::trail::origin::ForkOrigin;
use crate::trail::present::Present;
use crate::trail::record::Position;
use crate::trail::{RecordKind, Sums};

/// A session that diverged, pushed as a fork.
#[derive(Debug)]
#[non_exhaustive]
pub struct PushedFork {
    /// The new session, which has what is only here.
    pub fork: SessionId,
    /// The session that diverged: the one that was named, or one that it continues.
    pub diverged: SessionId,
    /// The last record of that session that is here and there; `None` if there is none.
    pub common: Option<LastCommon>,
    /// What was pushed.
    pub transfer: Transfer,
}

impl Store {
    /// Makes a fork of a session that [diverged](Refusal::Diverged), or continues one that did,
    /// with the records of its line of history that are only here, and pushes it. The session
    /// itself stays as it is, here and there. Asked again, it pushes the same fork.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the session did not diverge, and if
    /// the store cannot be read or written, or the replica is away.
    pub fn push_as_fork(
        &self,
        id: &SessionId,
        replica: &dyn Replica,
        options: &PushOptions,
        progress: OnProgress<'_>,
    ) -> Result<PushedFork> {
        let log = LocalLog::open(&self.files(id))?;
        let Some((diverged, common)) = find_diverged(self, id, replica)? else {
            let what = format!("session {id} did not diverge: push it as it is, or pull it");
            return Err(Error::invalid(what));
        };
        let fork = fork_id(id, log.here().end());
        if self.files(&fork).trails()?.is_empty() {
            self.files(&fork).refuse_gone()?;
            make_fork(self, log.files(), &fork, &diverged, common)?;
        }
        Ok(PushedFork {
            transfer: self.push(std::slice::from_ref(&fork), replica, options, progress)?,
            fork,
            diverged,
            common,
        })
    }
}

/// Returns the session that diverged: this one, or the nearest that it continues.
fn find_diverged(
    store: &Store,
    id: &SessionId,
    replica: &dyn Replica,
) -> Result<Option<(SessionId, Option<LastCommon>)>> {
    let mut seen = BTreeSet::new();
    let mut next = Some(id.clone());
    while let Some(id) = next.take().filter(|id| seen.insert(id.clone())) {
        let Ok(files) = files_anywhere(store, &id) else {
            break;
        };
        if let Relation::Diverged { common } = compare(&LocalLog::open(&files)?, replica)? {
            return Ok(Some((id, common)));
        }
        next = parent_here(&files)?.map(|parent| parent.id);
    }
    Ok(None)
}

fn compare(log: &LocalLog, replica: &dyn Replica) -> Result<Relation> {
    let mut comparison = Comparison::new(log.key(), log.here());
    loop {
        match comparison.need() {
            Need::Ask(request) => {
                let answer = replica.ask(&request);
                comparison.answer(answer.map_err(while_doing("push", &log.key().id))?)?;
            }
            Need::Sums { trail, seqs } => {
                let sums = seqs.iter().map(|seq| log.sum_at(trail, *seq));
                comparison.sums(&sums.collect::<Result<Vec<_>>>()?);
            }
            Need::Nothing => break,
        }
    }
    let relation = comparison.relation().cloned();
    relation.ok_or_else(|| Refusal::NotThere.of(&log.key()))
}

/// Returns the id of the fork of a session that ends there: the same each time, so that a push
/// that was interrupted makes no second one.
fn fork_id(id: &SessionId, end: Option<End>) -> SessionId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"backtrail fork of a session that diverged\0");
    hasher.update(id.as_str().as_bytes());
    if let Some(end) = end {
        hasher.update(&end.trail.to_le_bytes());
        hasher.update(&end.seq.to_le_bytes());
        hasher.update(&end.sum);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    SessionId::from_uuid(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

/// Creates the fork, whole or not at all.
fn make_fork(
    store: &Store,
    files: &LogDir,
    fork: &SessionId,
    diverged: &SessionId,
    common: Option<LastCommon>,
) -> Result<()> {
    // The session must not be deleted before the fork exists and refers to it.
    let lock = LockFile::existing(files)?;
    let _guard = lock.map(|lock| lock.hold()).transpose()?;
    let head = files.head()?;
    let (segments, _) = chain::Walk::new(store, files, head).collect()?;
    let line = chain::Line::new(&segments);
    let shared = common.map_or(0, |it| line.last_shared(diverged, it.trail, it.seq));
    let end = place::end(store, files, head)?;
    let known = present_at(store, files, end.trail, &end.position)?;
    let opener = Opener {
        present: Present {
            pinned: false,
            belongs_to: None,
            ..known
        },
        fork: Some(ForkOrigin::new(diverged.as_str(), None, Some(shared))),
        ..Opener::new(fork, 0, TrailReason::Fork, store.now())
    };
    let opener = match place_of(&segments, &line, diverged, shared)? {
        None => opener,
        Some((from, compacted)) => opener.continuing(from, compacted),
    };
    let shared = opener.seq;
    let copy = |new: &LogDir| copy_line(&segments, files, new, &opener, shared);
    Session::create_with(store, fork.clone(), Some(Durability::Record), copy)?.close()
}

/// Returns the place of a record of the session that diverged on the line.
fn place_of(
    segments: &[chain::Segment],
    line: &chain::Line,
    diverged: &SessionId,
    seq: u64,
) -> Result<Option<(Continues, Option<u64>)>> {
    for (segment, part) in segments.iter().zip(&line.0).rev() {
        if part.session == *diverged
            && seq <= segment.until
            && let Some(record) = segment.find(seq)?
        {
            let position = Position::after(&record.as_ref());
            let from = chain::continues_at(diverged, segment.trail, &position);
            return Ok(Some((from, position.compacted)));
        }
    }
    Ok(None)
}

/// Writes the fork's trail: the records behind `shared`.
fn copy_line(
    segments: &[chain::Segment],
    files: &LogDir,
    new: &LogDir,
    opener: &Opener,
    shared: u64,
) -> Result<()> {
    files.sync_names()?;
    let mut payloads = PayloadWriter::new(new);
    let path = new.trail_path(0);
    let written = new.create_trail(0, |file| {
        let mut copy = TrailCopy::new(file, &path);
        copy.opener(opener)?;
        let mut last = shared;
        for segment in segments.iter().filter(|segment| segment.until > shared) {
            let mut reader =
                segment.forwards(last.saturating_add(1), STREAM_BUFFER, Sums::Check)?;
            while let Some(record) = reader.next_record()? {
                if record.seq() > segment.until {
                    break;
                }
                if record.seq() > last && record.kind() != RecordKind::Opener {
                    last = record.seq();
                    let line = adopt(record.bytes(), &segment.payloads(), &mut payloads)?;
                    copy.add(&line, copy.prev)?;
                }
            }
        }
        copy.flush()
    });
    written.map(drop)
}
