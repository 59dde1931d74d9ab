//! Pulls sessions: asks the replica what the machine asks for, and writes what it got.

use std::collections::{BTreeSet, HashSet, VecDeque};

use super::push::{OnProgress, name_of, session_key};
use super::relatives::{Parent, files_anywhere, parent_here, parent_in};
use super::{
    PullOptions, Role, SessionTransfer, Transfer, TransferProgress, Transferred, ends_all,
    is_damage, while_doing,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{ObjectId, SessionId};
use crate::message::parts::Reference;
use crate::replica::compare::Here;
use crate::replica::local::{CheckedLines, LocalLog, Named, PulledLog, is_payload};
use crate::replica::pull::{Pull, PullNeed};
use crate::replica::refusal::Refusal;
use crate::replica::wire::{Line, Replica};
use crate::store::{Staging, Store};
use crate::trail::opener::Opener;
use crate::trail::record::check_line;
use crate::trail::{RecordRef, Sums};

/// The name of the directory in which sessions are staged.
const PULL: &str = "pull";
/// Staged sessions are published when they have more bytes than this.
const STAGED: u64 = 64 << 20;
/// About how many bytes of payloads are written at a time.
const AT_ONCE: usize = 8 << 20;

impl Store {
    /// Pulls sessions from a replica, with those that they were forked from and those of their
    /// sub-agents: the lines and payloads that are missing here. A session that is new here is
    /// there whole or not at all.
    ///
    /// It can be stopped at any moment; the next pull fetches the rest. A session that diverged
    /// is refused; see [`Error::refusal`]. One that is in the trash here, or was purged, stays so.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written. What is wrong with one session is its outcome.
    pub fn pull(
        &self,
        ids: &[SessionId],
        replica: &dyn Replica,
        options: &PullOptions,
        progress: OnProgress<'_>,
    ) -> Result<Transfer> {
        let mut run = PullRun {
            store: self,
            replica,
            options,
            progress,
            staging: None,
            staged: Vec::new(),
            staged_bytes: 0,
            seen: BTreeSet::new(),
            transfer: Transfer::default(),
        };
        let mut waiting: VecDeque<_> = ids.iter().map(|id| (id.clone(), Role::Named)).collect();
        while let Some((id, role)) = waiting.pop_front() {
            match run.pull_with_ancestors(&id, role)? {
                Some(found) => waiting.extend(found.into_iter().map(|id| (id, Role::SubAgent))),
                None => break,
            }
        }
        run.publish()?;
        Ok(run.transfer)
    }
}

struct PullRun<'a> {
    store: &'a Store,
    replica: &'a dyn Replica,
    options: &'a PullOptions,
    progress: OnProgress<'a>,
    staging: Option<Staging>,
    /// The sessions that are staged and whole, each after those that it continues.
    staged: Vec<SessionId>,
    staged_bytes: u64,
    seen: BTreeSet<SessionId>,
    transfer: Transfer,
}

/// A session that was compared with the replica.
struct Compared {
    id: SessionId,
    role: Role,
    machine: Pull,
    /// The session as it is here.
    log: Option<LocalLog>,
    parent: Option<Parent>,
}

impl PullRun<'_> {
    /// Pulls a session after those that it continues. Returns its sub-agents; `None` if there
    /// is no point in going on.
    fn pull_with_ancestors(
        &mut self,
        id: &SessionId,
        role: Role,
    ) -> Result<Option<Vec<SessionId>>> {
        let mut chain: Vec<Compared> = Vec::new();
        let mut next = Some((id.clone(), role));
        while let Some((id, role)) = next.take() {
            if !self.seen.insert(id.clone()) {
                break;
            }
            match self.compare(&id, role) {
                Ok(compared) => {
                    let parent = compared.parent.as_ref();
                    next = parent.map(|parent| (parent.id.clone(), Role::Ancestor));
                    chain.push(compared);
                }
                Err(error) => {
                    let goes_on = !ends_all(&error);
                    self.note(id, role, Err(error));
                    if !goes_on {
                        return Ok(None);
                    }
                }
            }
        }
        let mut sub_agents = Vec::new();
        while let Some(compared) = chain.pop() {
            let (id, role) = (compared.id.clone(), compared.role);
            let outcome = self.fetch(compared);
            let goes_on = !outcome.as_ref().is_err_and(ends_all);
            let outcome = outcome.map(|(received, spawned)| {
                if role != Role::Ancestor {
                    sub_agents = spawned;
                }
                received
            });
            self.note(id, role, outcome);
            if !goes_on {
                return Ok(None);
            }
        }
        if self.staged_bytes > STAGED {
            self.publish()?;
        }
        Ok(Some(sub_agents))
    }

    fn note(&mut self, id: SessionId, role: Role, outcome: Result<Transferred>) {
        self.transfer
            .sessions
            .push(SessionTransfer { id, role, outcome });
    }

    /// Compares a session with the replica.
    fn compare(&self, id: &SessionId, role: Role) -> Result<Compared> {
        let log = match LocalLog::open(&self.store.files(id)) {
            Ok(log) => Some(log),
            Err(error) if self.may_create(&error, role) => None,
            Err(error) => return Err(error),
        };
        let here = log.as_ref().map_or_else(Here::default, LocalLog::here);
        let mut machine = Pull::new(session_key(id), here);
        while !machine.will_write() {
            match machine.need() {
                PullNeed::Ask(request) => {
                    let answer = self.replica.ask(&request);
                    machine.answer(answer.map_err(while_doing("pull", id))?)?;
                }
                PullNeed::Sums { trail, seqs } => {
                    let sum = |seq: &u64| match &log {
                        Some(log) => log.sum_at(trail, *seq),
                        None => Ok(None),
                    };
                    machine.sums(&seqs.iter().map(sum).collect::<Result<Vec<_>>>()?)?;
                }
                _ => break,
            }
        }
        let parent = match &log {
            Some(log) => parent_here(log.files())?,
            None => parent_there(id, &machine),
        };
        Ok(Compared {
            id: id.clone(),
            role,
            machine,
            log,
            parent,
        })
    }

    /// Returns whether a session that is not here may be created.
    fn may_create(&self, error: &Error, role: Role) -> bool {
        let is_missing = error.kind() == ErrorKind::NotFound && !error.is_moved();
        let again = self.options.purged && role == Role::Named;
        is_missing || (error.was_purged().is_some() && again)
    }

    /// Fetches what is missing of a session; returns its sub-agents too.
    fn fetch(&mut self, compared: Compared) -> Result<(Transferred, Vec<SessionId>)> {
        let Compared {
            id,
            mut machine,
            log,
            parent,
            ..
        } = compared;
        if log.is_none() {
            self.check_parent(&id, parent)?;
        }
        let known = log.as_ref().map_or(Ok(Named::default()), LocalLog::named)?;
        let mut spawned = known.sub_agents;
        let lost = match &log {
            Some(log) => log.lost(known.payloads)?,
            None => Vec::new(),
        };
        if !machine.will_write() && lost.is_empty() {
            return Ok((Transferred::default(), spawned));
        }
        let writer = match &log {
            Some(log) => PulledLog::open(self.store, log, machine.end_here)?,
            None => PulledLog::create(&self.staging()?.aside()?, &id)?,
        };
        let mut receiving = Receiving {
            total: machine
                .bytes_there()
                .saturating_sub(log.as_ref().map_or(0, LocalLog::bytes)),
            run: self,
            id: &id,
            log: log.as_ref(),
            writer,
            fetched: HashSet::new(),
            got: Transferred {
                is_new: log.is_none(),
                ..Transferred::default()
            },
            spawned: Vec::new(),
        };
        // An earlier pull may not have found them.
        let fetched = receiving.fetch_payloads(&lost);
        let result = fetched.and_then(|()| receiving.run_machine(&mut machine));
        let Receiving {
            writer,
            mut got,
            spawned: more,
            ..
        } = receiving;
        got.damaged_there = writer.damaged;
        drop(writer);
        if log.is_none() {
            match &result {
                Ok(()) => {
                    self.staged_bytes += got.bytes + got.payload_bytes;
                    self.staged.push(id);
                }
                Err(_) => self.staging()?.discard(&id)?,
            }
        }
        result?;
        spawned.extend(more);
        Ok((got, spawned))
    }

    /// Checks that the record that a new session continues is here, if the session of that
    /// record could not be pulled. What was purged is a gap here, as it is there.
    fn check_parent(&self, id: &SessionId, parent: Option<Parent>) -> Result<()> {
        let Some(Parent {
            id: of,
            at: Some(at),
        }) = parent
        else {
            return Ok(());
        };
        let Some(Err(error)) = self.transfer.of(&of) else {
            return Ok(());
        };
        let purged = matches!(error.refusal(), Some(Refusal::PurgedThere(_)));
        if purged || error.was_purged().is_some() {
            return Ok(());
        }
        let log = files_anywhere(self.store, &of).and_then(|files| LocalLog::open(&files));
        if let Ok(log) = log
            && log.sum_at(at.trail, at.seq)? == Some(at.sum.to_bytes())
        {
            return Ok(());
        }
        let note = format!("session {id} continues it");
        Err(error.duplicate().with_note(note))
    }

    fn staging(&mut self) -> Result<&Staging> {
        match &mut self.staging {
            Some(staging) => Ok(staging),
            none => Ok(none.insert(self.store.stage_as(PULL)?)),
        }
    }

    /// Moves the staged sessions into place.
    fn publish(&mut self) -> Result<()> {
        let ids = std::mem::take(&mut self.staged);
        self.staged_bytes = 0;
        let Some(staging) = &self.staging else {
            return Ok(());
        };
        for id in staging.publish_in_order(ids)? {
            let what = format!("session {id} was created by another process; pull again");
            let error = Error::new(ErrorKind::Conflict, what);
            let found = self.transfer.sessions.iter_mut().find(|it| it.id == id);
            if let Some(found) = found {
                found.outcome = Err(error);
            }
        }
        Ok(())
    }
}

/// Returns the session that one there continues.
fn parent_there(id: &SessionId, machine: &Pull) -> Option<Parent> {
    let first = machine.there().first()?;
    let envelope = check_line(&first.opener.bytes, Sums::Check).ok()?;
    let record = RecordRef::new(&first.opener.bytes, envelope, None);
    let opener = Opener::read(&record, id, first.end.trail).ok()?;
    parent_in(&opener)
}

/// One log that is being fetched.
struct Receiving<'r, 'a> {
    run: &'r mut PullRun<'a>,
    id: &'r SessionId,
    /// The session as it was here.
    log: Option<&'r LocalLog>,
    writer: PulledLog,
    /// The payloads that were fetched, or are lost.
    fetched: HashSet<ObjectId>,
    got: Transferred,
    spawned: Vec<SessionId>,
    total: u64,
}

impl Receiving<'_, '_> {
    fn run_machine(&mut self, machine: &mut Pull) -> Result<()> {
        loop {
            match machine.need() {
                PullNeed::Ask(request) => {
                    let answer = self.run.replica.ask(&request);
                    machine.answer(answer.map_err(while_doing("pull", self.id))?)?;
                }
                PullNeed::Begin { trail, opener } => {
                    self.writer.begin(trail, &opener)?;
                    self.got.lines += 1;
                    self.got.bytes += opener.bytes.len() as u64 + 1;
                    machine.written();
                }
                PullNeed::Append { trail, lines } => {
                    self.append(trail, &lines)?;
                    machine.written();
                }
                PullNeed::Sums { .. } | PullNeed::Nothing => return Ok(()),
            }
            let done = self.got.bytes + self.got.payload_bytes;
            (self.run.progress)(&TransferProgress {
                session: self.id.clone(),
                done,
                total: done.max(self.total + self.got.payload_bytes),
            });
        }
    }

    fn append(&mut self, trail: u32, lines: &[Line]) -> Result<()> {
        let lines: CheckedLines = self.writer.checked(lines);
        self.fetch_payloads(&lines.payloads)?;
        self.writer.append(trail, &lines)?;
        self.got.lines += lines.count;
        self.got.bytes += lines.len();
        self.spawned.extend(lines.spawned);
        Ok(())
    }

    /// Fetches payloads and makes them durable: lines that name them follow.
    fn fetch_payloads(&mut self, payloads: &[Reference]) -> Result<()> {
        let log = session_key(self.id);
        let mut contents = Vec::new();
        let mut bytes = 0;
        for payload in payloads {
            if !self.fetched.insert(payload.hash) || self.is_here(payload)? {
                continue;
            }
            let content = match self.run.replica.get_blob(&log, name_of(payload), None) {
                Err(error) if is_damage(&error) => None,
                got => got.map_err(while_doing("pull", self.id))?,
            };
            let Some(content) = content.filter(|content| is_payload(payload, content)) else {
                self.got.lost_payloads.push(payload.hash.to_string());
                continue;
            };
            self.got.payloads += 1;
            self.got.payload_bytes += content.len() as u64;
            bytes += content.len();
            contents.push((payload.clone(), content));
            if bytes >= AT_ONCE {
                self.writer.store_payloads(&contents)?;
                contents.clear();
                bytes = 0;
            }
        }
        self.writer.store_payloads(&contents)
    }

    fn is_here(&self, payload: &Reference) -> Result<bool> {
        self.log.map_or(Ok(false), |log| log.has_payload(payload))
    }
}
