//! What a writer does for its replica: it waits for it before it acknowledges, and cuts off
//! what was not acknowledged when another machine took over.

use std::sync::MutexGuard;

use super::remote::{RemoteLog, Until};
use super::tail::Tail;
use super::writer::LogWriter;
use crate::error::{Error, ErrorKind, Result};

impl LogWriter {
    /// Waits until the replica, if there is one, has everything up to the end, which is
    /// durable here.
    pub(super) fn acknowledge(&self, tail: MutexGuard<'_, Tail>) -> Result<()> {
        let Some(remote) = &self.remote else {
            return Ok(());
        };
        let (until, last) = (end_of(&tail), tail.position().seq);
        // Readers of the tail do not wait for the replica.
        drop(tail);
        remote.send(until).map_err(|error| match error.kind() {
            _ if remote.stopped().is_some() => self.fenced(&mut self.lock_tail(), error),
            ErrorKind::Away => error.with_head(last).with_note(
                "what was written is here, not acknowledged, and sent with the next append or push",
            ),
            _ => error,
        })
    }

    /// Waits for the replica as [`acknowledge`](Self::acknowledge) does. Records that were
    /// refused were not written, and stay refused.
    pub(super) fn acknowledge_group(
        &self,
        tail: MutexGuard<'_, Tail>,
        results: Vec<Result<u64>>,
    ) -> Vec<Result<u64>> {
        if self.remote.is_none() || !results.iter().any(Result::is_ok) {
            return results;
        }
        let Err(error) = self.acknowledge(tail) else {
            return results;
        };
        let failed = |seq| match error.head() {
            Some(_) => error.duplicate().with_head(seq),
            None => error.duplicate(),
        };
        let results = results.into_iter();
        results
            .map(|result| result.and_then(|seq| Err(failed(seq))))
            .collect()
    }

    /// Brings the replica up to date when the log is opened.
    pub(super) fn catch_up_remote(&self) -> Result<()> {
        let Some(remote) = &self.remote else {
            return Ok(());
        };
        let until = end_of(&self.lock_tail());
        let sent = remote.send(until);
        match &sent {
            Ok(()) => remote.opened(),
            Err(_) => remote.release(),
        }
        sent
    }

    /// Runs `work` after all queued records, while no other thread writes, and acknowledges
    /// what it wrote.
    pub(crate) fn alone<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.queue.alone(self, || {
            let done = work()?;
            let mut tail = self.lock_tail();
            if self.remote.is_some() && tail.stopped().is_none() {
                // An import leaves that to the end; but what is there must not be lost here.
                tail.sync()?;
            }
            self.acknowledge(tail)?;
            Ok(done)
        })
    }

    /// Refuses to write after another machine took over.
    pub(crate) fn must_not_be_fenced(&self, tail: &mut Tail) -> Result<()> {
        let stopped = self.remote.as_ref().and_then(RemoteLog::stopped);
        match stopped {
            Some(error) => Err(self.fenced(tail, error)),
            None => Ok(()),
        }
    }

    /// Takes note of where the log ends before something is written. The caller holds the
    /// short lock.
    pub(crate) fn note_end(&self, tail: &Tail) {
        if let Some(remote) = &self.remote {
            remote.stands_at(tail.trail, tail.len());
        }
    }

    /// Takes note that everything from a byte on was just written.
    pub(crate) fn note_written(&self, tail: &Tail, from: u64) {
        if let Some(remote) = &self.remote {
            remote.wrote(tail.trail, from, tail.len());
        }
    }

    /// Stops the tail, and sets aside what was written through it and never acknowledged.
    fn fenced(&self, tail: &mut Tail, error: Error) -> Error {
        let error = match self.set_unacknowledged_aside(tail) {
            Ok(0) => error,
            Ok(bytes) => error.with_note(format!(
                "{bytes} bytes that were not acknowledged are set aside"
            )),
            Err(failed) => error.with_note(format!(
                "what was not acknowledged could not be set aside: {failed}"
            )),
        };
        tail.stop(error)
    }

    /// Returns how many bytes were set aside.
    fn set_unacknowledged_aside(&self, tail: &mut Tail) -> Result<u64> {
        let Some(remote) = &self.remote else {
            return Ok(0);
        };
        let _guard = self.append_lock.hold()?;
        tail.catch_up()?;
        let mut bytes = 0;
        while let Some(from) = remote.take_unacknowledged(tail.trail, tail.len()) {
            bytes += tail.len() - from;
            tail.set_aside_from(from)?;
        }
        Ok(bytes)
    }
}

fn end_of(tail: &Tail) -> Until {
    Until {
        trail: tail.trail,
        byte: tail.len(),
    }
}
