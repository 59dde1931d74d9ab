//! The conversation with the replica: one request at a time, one retry, and what its outcomes
//! mean to the session.

use super::Shared;
use super::status::{stop_error, unanswered};
use super::unsent::{UnsentLines, Until, payload_name};
use crate::error::{Error, ErrorKind, Result};
use crate::log::payloads::Payloads;
use crate::message::parts::Reference;
use crate::replica::{BlobName, ReplicaError, ReplicaErrorKind, WhenAway, Writer, WriterStep};
use crate::sync::lock;

/// How often a request is asked in a row: the first answer may be lost because a connection
/// was closed meanwhile.
const TRIES: u32 = 2;
/// With more payloads than this, the replica is asked first which of them it has.
const FEW: usize = 2;

#[derive(Debug)]
pub(super) struct Link {
    writer: Writer,
    unsent: UnsentLines,
    /// Whether the session was opened, if only because the replica was away.
    is_open: bool,
}

/// How far the writer got.
enum Reached {
    /// The replica has everything.
    All,
    /// There may be more to send.
    Lease,
}

/// Why it got no further.
enum Failure {
    /// There was no answer.
    Replica(ReplicaError),
    /// The log here cannot be read.
    Here(Error),
    /// Nothing may be sent any more.
    Stopped(Error),
}

impl Link {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            writer,
            unsent: UnsentLines::default(),
            is_open: false,
        }
    }

    /// Takes the lease, or prolongs it now.
    pub(super) fn renew(&mut self, shared: &Shared) -> Result<()> {
        self.writer.renew();
        let outcome = self.advance(shared, None);
        self.settle(shared, outcome)
    }

    /// Takes note that the session is open: whoever writes to it from now on took it over.
    pub(super) fn opened(&mut self) {
        self.is_open = true;
    }

    /// Prolongs the lease if that is due, or catches up. Failures are for the next append.
    pub(super) fn tick(&mut self, shared: &Shared) {
        let now = shared.now_ms();
        let is_due = self.writer.due().is_some_and(|due| due <= now);
        let status = lock(&shared.status);
        let is_left_alone = status.pauses(now) || status.stopped().is_some();
        let until = status.catches_up(now);
        drop(status);
        match until {
            _ if is_left_alone => {}
            Some(until) => drop(self.send(shared, until)),
            None if is_due => drop(self.renew(shared)),
            None => {}
        }
    }

    /// Sends everything up to a place.
    pub(super) fn send(&mut self, shared: &Shared, until: Until) -> Result<()> {
        self.writer.send();
        if lock(&shared.status).pauses(shared.now_ms()) {
            return Ok(());
        }
        let outcome = self.advance(shared, Some(until));
        if matches!(outcome, Ok(Reached::All)) {
            lock(&shared.status).has_all(until);
        }
        self.settle(shared, outcome)
    }

    /// Gives the lease back. Without an answer it runs out.
    pub(super) fn release(&mut self, shared: &Shared) {
        if let Some(request) = self.writer.release() {
            shared.remote.replica.ask(&request).ok();
        }
    }

    /// Does what the machine wants until it rests, or wants to read and there is no `until`.
    fn advance(&mut self, shared: &Shared, until: Option<Until>) -> Result<Reached, Failure> {
        let replica = shared.remote.replica.as_ref();
        let mut tries = 0;
        loop {
            let outcome = match self.writer.step(shared.now_ms()) {
                WriterStep::Ask(request) => {
                    let answer = replica.ask(request);
                    self.writer.answered(shared.now_ms(), answer)
                }
                WriterStep::Store(names) => match store(shared, names, &self.unsent.payloads) {
                    Ok(()) => {
                        self.writer.stored();
                        Ok(())
                    }
                    Err(Failure::Replica(error)) => Err(error),
                    Err(failure) => return Err(failure),
                },
                WriterStep::Read { after } => {
                    let Some(until) = until else {
                        return Ok(Reached::Lease);
                    };
                    let found = self.unsent.read(&shared.dir, after, until);
                    self.writer.found(found.map_err(Failure::Here)?);
                    continue;
                }
                WriterStep::Rest => return Ok(Reached::All),
                WriterStep::Stop(refusal) => {
                    let error = stop_error(shared, refusal, self.is_open);
                    return Err(Failure::Stopped(error));
                }
            };
            match outcome {
                Ok(()) => tries = 0,
                Err(error) => {
                    tries += 1;
                    if error.kind != ReplicaErrorKind::Away || tries == TRIES {
                        return Err(Failure::Replica(error));
                    }
                }
            }
        }
    }

    /// Decides what the outcome means to the caller.
    fn settle(&self, shared: &Shared, outcome: Result<Reached, Failure>) -> Result<()> {
        let mut status = lock(&shared.status);
        let error = match outcome {
            Ok(_) => return Ok(()),
            Err(Failure::Here(error)) => return Err(error),
            Err(Failure::Stopped(error)) => {
                status.stop(&error);
                return Err(error);
            }
            Err(Failure::Replica(error)) => error,
        };
        let is_away = error.kind == ReplicaErrorKind::Away;
        let error = unanswered(shared, error);
        if is_away && shared.remote.when_away == WhenAway::Local {
            status.is_behind(error, shared.now_ms());
            return Ok(());
        }
        Err(error)
    }
}

/// Stores the payloads of lines before the lines.
fn store(shared: &Shared, names: &[BlobName], references: &[Reference]) -> Result<(), Failure> {
    let replica = shared.remote.replica.as_ref();
    let there = match names.len() > FEW {
        true => replica.has_blobs(&shared.key, names),
        false => Ok(vec![false; names.len()]),
    };
    let there = there.map_err(Failure::Replica)?;
    let payloads = Payloads::new(&shared.dir);
    for (name, is_there) in names.iter().zip(there) {
        let mut references = references.iter();
        let reference = references.find(|reference| payload_name(reference) == *name);
        let Some(reference) = reference.filter(|_| !is_there) else {
            continue;
        };
        let content = match payloads.fetch(reference.hash, reference.bytes, reference.at) {
            // It is lost here. The line goes all the same, as in a push.
            Err(error) if error.kind() == ErrorKind::Corrupt => continue,
            fetched => fetched.map_err(Failure::Here)?,
        };
        let put = replica.put_blob(&shared.key, *name, &content);
        put.map_err(Failure::Replica)?;
    }
    Ok(())
}
