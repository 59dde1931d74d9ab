//! The machine of a writer: decides what a session asks of its replica.
//!
//! It has no I/O, no thread and no clock: the caller asks [`Writer::step`] what to do, does it,
//! and passes the result back. Times are values, in milliseconds since any moment.
//!
//! A request whose answer was lost is asked again exactly as it was, before anything else: the
//! replica then says whether its lines are there, even if another writer took over since.

use super::{
    Answer, BlobName, End, Fence, Line, LogKey, LogStatus, Refusal, ReplicaError, ReplicaErrorKind,
    Request,
};

/// Takes the lease of a log and brings to the replica what is written here.
#[derive(Debug, Clone)]
pub struct Writer {
    log: LogKey,
    holder: String,
    ttl_ms: u64,
    fence: Option<Fence>,
    /// When an idle writer prolongs its lease, and whether it does so at once.
    renew_at: u64,
    renew_now: bool,
    /// The end of the log there, once a lease told it.
    there: Option<End>,
    /// The request that has no answer yet.
    pending: Option<Request>,
    /// Payloads that the pending request names, and that have to be stored before it.
    payloads: Vec<BlobName>,
    /// Whether there may be lines that the replica lacks.
    wanted: bool,
    stopped: Option<Refusal>,
}

/// What a writer needs next.
#[derive(Debug, PartialEq, Eq)]
pub enum WriterStep<'a> {
    /// Ask the replica this, and pass the outcome to [`Writer::answered`].
    Ask(&'a Request),
    /// Read what comes after this line here, and pass it to [`Writer::found`]. `None`: from
    /// the beginning.
    Read {
        /// The last line that the replica has.
        after: Option<End>,
    },
    /// Store these payloads at the replica, then call [`Writer::stored`].
    Store(&'a [BlobName]),
    /// Nothing: the replica has everything that was read.
    Rest,
    /// Nothing will be written any more, and this is why.
    Stop(&'a Refusal),
}

/// What comes after a line in the log here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsent {
    /// Lines of the same trail, and the payloads that they name.
    Lines(Vec<Line>, Vec<BlobName>),
    /// The beginning of the next trail.
    Trail {
        /// Its number.
        trail: u32,
        /// Its first line.
        opener: Line,
    },
    /// Nothing.
    Nothing,
    /// The log here ends before that line.
    Ahead,
    /// The log here has another line in its place.
    Diverged,
}

impl Writer {
    /// Creates a writer without a lease. `holder` is unique, and in words for people.
    pub fn new(log: LogKey, holder: impl Into<String>, ttl_ms: u64) -> Self {
        Self {
            log,
            holder: holder.into(),
            ttl_ms,
            fence: None,
            renew_at: 0,
            renew_now: false,
            there: None,
            pending: None,
            payloads: Vec::new(),
            wanted: false,
            stopped: None,
        }
    }

    /// Brings everything to the replica that is here by now.
    pub fn send(&mut self) {
        self.wanted = true;
        // An append prolongs the lease as well.
        if matches!(self.pending, Some(Request::Renew { .. })) {
            self.pending = None;
        }
    }

    /// Takes the lease, or prolongs it whenever it was prolonged last.
    pub fn renew(&mut self) {
        self.renew_now = true;
    }

    /// Returns what to do now.
    pub fn step(&mut self, now_ms: u64) -> WriterStep<'_> {
        if let Some(stop) = &self.stopped {
            return WriterStep::Stop(stop);
        }
        if self.pending.is_none() {
            self.pending = self.lease_request(now_ms);
        }
        match &self.pending {
            Some(_) if !self.payloads.is_empty() => WriterStep::Store(&self.payloads),
            Some(request) => WriterStep::Ask(request),
            None if self.wanted => WriterStep::Read { after: self.there },
            None => WriterStep::Rest,
        }
    }

    /// Returns the request that takes the lease, or prolongs it if that is due.
    fn lease_request(&self, now_ms: u64) -> Option<Request> {
        let (log, ttl_ms) = (self.log.clone(), self.ttl_ms);
        match self.fence {
            // What is sent prolongs the lease as well.
            Some(fence) if self.renew_now || (!self.wanted && now_ms >= self.renew_at) => {
                Some(Request::Renew { log, fence, ttl_ms })
            }
            None if self.wanted || self.renew_now => Some(Request::Lease {
                log,
                holder: self.holder.clone(),
                ttl_ms,
                wrapped_key: Vec::new(),
            }),
            _ => None,
        }
    }

    /// Takes the answer to the request of the last step.
    ///
    /// # Errors
    ///
    /// Fails if there was no answer, or one that cannot be right. The next step asks the same
    /// again.
    pub fn answered(
        &mut self,
        now_ms: u64,
        answer: Result<Answer, ReplicaError>,
    ) -> Result<(), ReplicaError> {
        match (&self.pending, answer?) {
            (Some(Request::Lease { .. }), Answer::Leased { fence, log }) => {
                self.leased(fence, &log);
            }
            (Some(Request::Lease { .. }), Answer::Held(lease)) => self.stop(Refusal::Held(lease)),
            (Some(Request::Renew { .. }), Answer::Renewed) => self.renew_now = false,
            (Some(Request::Append { .. } | Request::Begin { .. }), Answer::Appended(end)) => {
                self.there = Some(end);
            }
            (Some(Request::Append { .. } | Request::Begin { .. }), Answer::Moved(end))
                if end != self.there =>
            {
                // The fence is still the newest, so these are lines of ours whose answer was lost.
                self.there = end;
            }
            (Some(_), Answer::Fenced { lease, .. }) => self.stop(Refusal::Fenced(lease)),
            (Some(_), Answer::Purged(at_ms)) => self.stop(Refusal::PurgedThere(at_ms)),
            (_, other) => return Err(self.unexpected(&other)),
        }
        self.pending = None;
        self.renew_at = now_ms.saturating_add(self.ttl_ms / 3);
        Ok(())
    }

    fn leased(&mut self, fence: Fence, log: &LogStatus) {
        self.fence = Some(fence);
        self.renew_now = false;
        self.there = log.head;
        // Whatever is there has to be ours, even if nothing is to be sent.
        self.wanted = true;
        if let Some(at_ms) = log.deleted_at_ms {
            self.stop(Refusal::InTrashThere(at_ms));
        }
    }

    fn unexpected(&self, answer: &Answer) -> ReplicaError {
        let asked = match &self.pending {
            Some(Request::Lease { .. }) => "a lease",
            Some(Request::Renew { .. }) => "its renewal",
            Some(_) => "an append",
            None => "nothing",
        };
        let answer = match answer {
            Answer::Absent => "the log is gone",
            Answer::Moved(_) => "its end is where it was said to be, and is not",
            _ => "an answer to something else",
        };
        ReplicaError {
            kind: ReplicaErrorKind::Corrupt,
            message: format!("asked for {asked}, the remote answered: {answer}"),
        }
    }

    /// Takes what the last step asked to read.
    pub fn found(&mut self, found: Unsent) {
        match (found, self.fence) {
            (Unsent::Ahead, _) => self.stop(Refusal::Ahead),
            (Unsent::Diverged, _) => self.stop(Refusal::Diverged { common: None }),
            (Unsent::Lines(lines, payloads), Some(fence)) if !lines.is_empty() => {
                self.payloads = payloads;
                self.pending = self.there.map(|after| Request::Append {
                    log: self.log.clone(),
                    fence,
                    after,
                    lines,
                    relies_on: Vec::new(),
                    ttl_ms: self.ttl_ms,
                });
            }
            (Unsent::Trail { trail, opener }, Some(fence)) => {
                self.pending = Some(Request::Begin {
                    log: self.log.clone(),
                    fence,
                    head: self.there,
                    trail,
                    opener,
                    relies_on: Vec::new(),
                    ttl_ms: self.ttl_ms,
                });
            }
            _ => self.wanted = false,
        }
    }

    /// Takes note that the payloads of the last step are there.
    pub fn stored(&mut self) {
        self.payloads.clear();
    }

    /// Gives the lease back: the request to ask, whose answer does not matter. `None` without
    /// a lease.
    pub fn release(&mut self) -> Option<Request> {
        let fence = self.fence.take()?;
        if let Some(Refusal::Held(_) | Refusal::Fenced(_) | Refusal::PurgedThere(_)) = self.stopped
        {
            return None;
        }
        self.wanted = false;
        let log = self.log.clone();
        Some(Request::Release { log, fence })
    }

    fn stop(&mut self, stop: Refusal) {
        self.stopped = Some(stop);
    }

    /// Returns why nothing is written any more.
    pub fn stopped(&self) -> Option<&Refusal> {
        self.stopped.as_ref()
    }

    /// Returns the fence of the lease; `None` before the first.
    pub fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// Returns the end of the log at the replica, as far as it is known.
    pub fn there(&self) -> Option<End> {
        self.there
    }

    /// Returns when an idle writer takes its next step; `None` without a lease.
    pub fn due(&self) -> Option<u64> {
        self.fence.map(|_| self.renew_at)
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
