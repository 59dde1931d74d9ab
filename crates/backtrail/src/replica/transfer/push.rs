//! Pushes sessions: reads what the machine asks for, and asks the replica.

use std::collections::{BTreeSet, VecDeque};

use super::relatives::{Parent, SubAgents, files_anywhere, parent_here};
use super::{
    PushOptions, Role, SessionTransfer, Transfer, TransferProgress, Transferred, ends_all,
    while_doing,
};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::message::parts::Reference;
use crate::replica::local::{LocalLog, TrailLines};
use crate::replica::push::{Push, PushNeed};
use crate::replica::refusal::Refusal;
use crate::replica::wire::{Answer, BlobKind, BlobName, LogKey, LogOwner, Order, Replica, Request};
use crate::store::Store;
use crate::trail::opener::Continues;

/// Is told how far a push or pull is.
pub type OnProgress<'a> = &'a mut dyn FnMut(&TransferProgress);

/// About how many bytes of lines are sent at a time.
const AT_ONCE: u64 = 1 << 20;

impl Store {
    /// Pushes sessions to a replica, with those that they were forked from and those of their
    /// sub-agents: the lines and payloads that it lacks. Lines that are damaged here are skipped
    /// and reported.
    ///
    /// It can be stopped at any moment; the next push sends the rest. A session that the replica
    /// has more of, or that diverged from it, is refused; see [`Error::refusal`].
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read. What is wrong with one session is its outcome.
    pub fn push(
        &self,
        ids: &[SessionId],
        replica: &dyn Replica,
        options: &PushOptions,
        progress: OnProgress<'_>,
    ) -> Result<Transfer> {
        let mut run = PushRun {
            store: self,
            replica,
            options,
            progress,
            sub_agents: SubAgents::read(self)?,
            seen: BTreeSet::new(),
            transfer: Transfer::default(),
        };
        let mut waiting: VecDeque<_> = ids.iter().map(|id| (id.clone(), Role::Named)).collect();
        while let Some((id, role)) = waiting.pop_front() {
            let chain = run.ancestors(&id);
            for ancestor in chain.into_iter().rev() {
                if !run.push(&ancestor, Role::Ancestor)? {
                    return Ok(run.transfer);
                }
            }
            if !run.push(&id, role)? {
                return Ok(run.transfer);
            }
            let found = run.sub_agents_of(&id);
            waiting.extend(found.into_iter().map(|id| (id, Role::SubAgent)));
        }
        Ok(run.transfer)
    }
}

struct PushRun<'a> {
    store: &'a Store,
    replica: &'a dyn Replica,
    options: &'a PushOptions,
    progress: OnProgress<'a>,
    sub_agents: SubAgents,
    seen: BTreeSet<SessionId>,
    transfer: Transfer,
}

impl PushRun<'_> {
    /// Returns the sessions that one continues and that are still to be pushed, nearest first.
    fn ancestors(&self, id: &SessionId) -> Vec<SessionId> {
        let mut chain: Vec<SessionId> = Vec::new();
        let mut next = id.clone();
        while let Some(Parent { id: parent, .. }) = self.parent(&next) {
            if self.seen.contains(&parent) || chain.contains(&parent) || parent == *id {
                break;
            }
            chain.push(parent.clone());
            next = parent;
        }
        chain
    }

    /// Returns the session that one continues, if it is here.
    fn parent(&self, id: &SessionId) -> Option<Parent> {
        let files = files_anywhere(self.store, id).ok()?;
        let parent = parent_here(&files).ok()??;
        files_anywhere(self.store, &parent.id).ok()?;
        Some(parent)
    }

    fn sub_agents_of(&self, id: &SessionId) -> Vec<SessionId> {
        let log = LocalLog::open(&self.store.files(id));
        let found = log.and_then(|log| self.sub_agents.of(&log));
        let mut found = found.unwrap_or_default();
        // A call that was recorded may have started nothing.
        found.retain(|id| files_anywhere(self.store, id).is_ok());
        found
    }

    /// Pushes a session, unless it was; returns whether there is a point in going on.
    fn push(&mut self, id: &SessionId, role: Role) -> Result<bool> {
        if !self.seen.insert(id.clone()) {
            return Ok(true);
        }
        let outcome = self.checked_push(id, role);
        let goes_on = !outcome.as_ref().is_err_and(ends_all);
        self.transfer.sessions.push(SessionTransfer {
            id: id.clone(),
            role,
            outcome,
        });
        Ok(goes_on)
    }

    fn checked_push(&mut self, id: &SessionId, role: Role) -> Result<Transferred> {
        let files = match role {
            // The history of another one needs it, wherever it is.
            Role::Ancestor => files_anywhere(self.store, id)?,
            _ => self.store.files(id),
        };
        let log = LocalLog::open(&files)?;
        self.check_parent(&log)?;
        self.push_log(&log)
    }

    /// Checks that the record that a session continues is there, if the session of that record
    /// could not be pushed.
    fn check_parent(&self, log: &LocalLog) -> Result<()> {
        let Some(parent) = parent_here(log.files())? else {
            return Ok(());
        };
        let (Some(Err(error)), Some(at)) = (self.transfer.of(&parent.id), &parent.at) else {
            return Ok(());
        };
        // What was purged is a gap there, as it is here.
        let purged = matches!(error.refusal(), Some(Refusal::PurgedThere(_)));
        if purged || has_line(self.replica, at)? {
            return Ok(());
        }
        let note = format!("session {} continues it", log.key().id);
        Err(error.duplicate().with_note(note))
    }

    fn push_log(&mut self, log: &LocalLog) -> Result<Transferred> {
        let mut machine = Push::new(
            log.key(),
            log.here(),
            &self.options.holder,
            self.options.ttl_ms(),
        );
        let mut sending = Sending {
            run: self,
            log,
            open: None,
            sent: Transferred::default(),
            total: None,
        };
        let result = sending.run_machine(&mut machine);
        let mut sent = sending.finish();
        (sent.lines, sent.bytes) = (machine.lines, machine.bytes);
        match result {
            Ok(()) => Ok(sent),
            Err(error) => {
                // Otherwise the next writer waits until the lease runs out.
                if let Some(request) = machine.give_up()
                    && !ends_all(&error)
                {
                    self.replica.ask(&request).ok();
                }
                Err(error)
            }
        }
    }
}

/// One log that is being sent.
struct Sending<'r, 'a> {
    run: &'r mut PushRun<'a>,
    log: &'r LocalLog,
    /// The trail that is being read.
    open: Option<(u32, TrailLines)>,
    sent: Transferred,
    /// How many bytes of lines will be sent.
    total: Option<u64>,
}

impl Sending<'_, '_> {
    fn run_machine(&mut self, machine: &mut Push) -> Result<()> {
        let id = &self.log.key().id;
        loop {
            match machine.need() {
                PushNeed::Ask(request) => {
                    let answer = self.run.replica.ask(&request);
                    let answer = answer.map_err(while_doing("push", id))?;
                    if let Answer::Leased { log, .. } = &answer {
                        self.sent.is_new = log.head.is_none();
                    }
                    machine.answer(answer)?;
                }
                PushNeed::Sums { trail, seqs } => {
                    let sums = seqs.iter().map(|seq| self.log.sum_at(trail, *seq));
                    machine.sums(&sums.collect::<Result<Vec<_>>>()?)?;
                }
                PushNeed::Lines { trail, after } => {
                    self.measure(machine)?;
                    let lines = self.lines(trail, after)?.read(AT_ONCE)?;
                    machine.lines(lines);
                }
                PushNeed::Payloads(payloads) => {
                    self.store_payloads(payloads)?;
                    machine.stored();
                }
                PushNeed::Nothing => return Ok(()),
            }
            self.report(machine);
        }
    }

    /// Returns the lines of a trail, which are made durable here before they are sent.
    fn lines(&mut self, trail: u32, after: Option<u64>) -> Result<&mut TrailLines> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != trail) {
            self.count_skipped();
            self.log.make_durable(trail)?;
            self.open = Some((trail, self.log.lines(trail, after)?));
        }
        match &mut self.open {
            Some((_, lines)) => Ok(lines),
            None => Err(Error::invalid("no trail is open")),
        }
    }

    fn count_skipped(&mut self) {
        if let Some((_, lines)) = self.open.take() {
            self.sent.skipped.append(&mut lines.into_skipped());
        }
    }

    fn finish(mut self) -> Transferred {
        self.count_skipped();
        self.sent
    }

    /// Makes sure that payloads are at the replica.
    fn store_payloads(&mut self, mut payloads: Vec<Reference>) -> Result<()> {
        let mut seen = BTreeSet::new();
        payloads.retain(|payload| seen.insert(payload.hash));
        let log = self.log.key();
        let names: Vec<BlobName> = payloads.iter().map(name_of).collect();
        let replica = self.run.replica;
        let failed = || while_doing("push", &log.id);
        let there = replica.has_blobs(&log, &names).map_err(failed())?;
        for (at, payload) in payloads.iter().enumerate() {
            if there.get(at) == Some(&true) {
                continue;
            }
            let Some(content) = self.log.payload(payload)? else {
                // The line goes all the same: it says more than nothing.
                self.sent.lost_payloads.push(payload.hash.to_string());
                continue;
            };
            let stored = replica.put_blob(&log, names[at], &content);
            stored.map_err(failed())?;
            self.sent.payloads += 1;
            self.sent.payload_bytes += content.len() as u64;
        }
        Ok(())
    }

    fn measure(&mut self, machine: &Push) -> Result<()> {
        if self.total.is_some() {
            return Ok(());
        }
        let mut total = 0;
        for (trail, after) in machine.to_send().into_iter().flatten() {
            total += self.log.bytes_after(*trail, *after)?;
        }
        self.total = Some(total);
        Ok(())
    }

    fn report(&mut self, machine: &Push) {
        let Some(total) = self.total else {
            return;
        };
        let done = machine.bytes + self.sent.payload_bytes;
        (self.run.progress)(&TransferProgress {
            session: self.log.key().id,
            done,
            total: done.max(total + self.sent.payload_bytes),
        });
    }
}

/// Returns the name of a payload at a replica.
pub(super) fn name_of(reference: &Reference) -> BlobName {
    BlobName {
        kind: BlobKind::Payload,
        hash: *reference.hash.as_bytes(),
    }
}

/// Returns whether a replica has the record that a session continues.
fn has_line(replica: &dyn Replica, at: &Continues) -> Result<bool> {
    let log = session_key(&at.session_id);
    let request = Request::Read {
        log,
        trail: at.trail,
        beyond: at.seq.checked_add(1),
        order: Order::Backwards,
        max_bytes: 1,
    };
    let answer = replica.ask(&request);
    let sum = at.sum.to_bytes();
    match answer.map_err(while_doing("push what continues", &at.session_id))? {
        Answer::Lines { lines, .. } => Ok(lines.first().is_some_and(|line| line.sum == sum)),
        _ => Ok(false),
    }
}

/// Returns the name of a session at a replica.
pub(super) fn session_key(id: &SessionId) -> LogKey {
    LogKey {
        owner: LogOwner::Session,
        id: id.clone(),
    }
}
