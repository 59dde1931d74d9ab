//! Answers, as the caller sees them.

use backtrail::replica::{
    Answer, End, Lease, Line, LogKey, LogStatus, Order, Replica, ReplicaError,
};

use super::errors::{corrupt, named};
use super::{EncryptedReplica, LogKeys, Opened};

/// The holder of a lease whose name does not open.
pub(super) const UNKNOWN: &str = "(encrypted)";

impl<R: Replica> EncryptedReplica<R> {
    /// Opens an answer about a log.
    pub(super) fn open_answer(&self, log: &LogKey, answer: Answer) -> Result<Answer, ReplicaError> {
        match answer {
            Answer::Log(mut status) => {
                let keys = self.keyring.open(log, &status.wrapped_key)?;
                keys.open_status(&mut status);
                Ok(Answer::Log(status))
            }
            Answer::Leased {
                fence,
                log: mut status,
            } => {
                let keys = self.keyring.open(log, &status.wrapped_key)?;
                keys.open_status(&mut status);
                Ok(Answer::Leased { fence, log: status })
            }
            Answer::Absent
            | Answer::Purged(_)
            | Answer::Renewed
            | Answer::Fenced { lease: None, .. }
            | Answer::Moved(None)
            | Answer::PacksGone(_)
            | Answer::Done => Ok(answer),
            Answer::Held(_)
            | Answer::Fenced { .. }
            | Answer::Moved(_)
            | Answer::Appended(_)
            | Answer::Trails(_) => match self.keys(log)? {
                Opened::Keys(keys) => keys.open_answer(answer),
                Opened::Gone(answer) => Ok(answer),
            },
            other => Err(unexpected(log, &other)),
        }
    }

    /// Returns the keys of a log that somebody else may have encrypted.
    pub(super) fn keys_to_list(
        &self,
        log: &LogKey,
    ) -> Result<Option<std::sync::Arc<LogKeys>>, ReplicaError> {
        use backtrail::replica::ReplicaErrorKind::{Corrupt, Denied, Unfit};
        match self.keys(log) {
            Ok(Opened::Keys(keys)) => Ok(Some(keys)),
            Ok(Opened::Gone(_)) => Ok(None),
            Err(error) if matches!(error.kind, Corrupt | Denied | Unfit) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl LogKeys {
    pub(super) fn hide_end(&self, end: &mut End) {
        end.sum = self.hide_sum(end.trail, end.seq, end.sum);
    }

    pub(super) fn open_end(&self, end: &mut End) {
        end.sum = self.reveal_sum(end.trail, end.seq, end.sum);
    }

    pub(super) fn hide_line(&self, trail: u32, line: &mut Line) {
        line.bytes = self.seal_line(trail, line.seq, line.sum, &line.bytes);
        line.sum = self.hide_sum(trail, line.seq, line.sum);
    }

    pub(super) fn open_status(&self, status: &mut LogStatus) {
        if let Some(head) = &mut status.head {
            self.open_end(head);
        }
        if let Some(lease) = &mut status.lease {
            self.open_lease(lease);
        }
        status.wrapped_key.clear();
    }

    fn open_lease(&self, lease: &mut Lease) {
        lease.holder = holder(self, &lease.holder);
    }

    fn open_answer(&self, mut answer: Answer) -> Result<Answer, ReplicaError> {
        match &mut answer {
            Answer::Held(lease)
            | Answer::Fenced {
                lease: Some(lease), ..
            } => self.open_lease(lease),
            Answer::Moved(Some(end)) | Answer::Appended(end) => self.open_end(end),
            Answer::Trails(trails) => {
                if !trails.is_sorted_by(|a, b| a.end.trail < b.end.trail) {
                    return Err(self.out_of_order("its trails are"));
                }
                for trail in trails {
                    self.open_bytes(trail.end.trail, &mut trail.opener)?;
                    self.open_end(&mut trail.end);
                }
            }
            _ => {}
        }
        Ok(answer)
    }

    pub(super) fn open_lines(
        &self,
        trail: u32,
        order: Order,
        lines: &mut [Line],
    ) -> Result<(), ReplicaError> {
        let is_sorted = match order {
            Order::Forwards => lines.is_sorted_by(|a, b| a.seq < b.seq),
            Order::Backwards => lines.is_sorted_by(|a, b| a.seq > b.seq),
        };
        if !is_sorted {
            return Err(self.out_of_order(&format!("the lines of trail {trail} are")));
        }
        lines
            .iter_mut()
            .try_for_each(|line| self.open_bytes(trail, line))
    }

    fn open_bytes(&self, trail: u32, line: &mut Line) -> Result<(), ReplicaError> {
        let sum = self.reveal_sum(trail, line.seq, line.sum);
        let opened = self.open_line(trail, line.seq, sum, &line.bytes);
        line.bytes = opened.map_err(|why| {
            corrupt(format!(
                "cannot decrypt record {} of trail {trail} of {}: {why}",
                line.seq,
                named(self.log())
            ))
        })?;
        line.sum = sum;
        Ok(())
    }

    fn out_of_order(&self, what: &str) -> ReplicaError {
        corrupt(format!(
            "cannot read {}: {what} out of order at the remote",
            named(self.log())
        ))
    }
}

/// Returns the holder of a lease in words.
pub(super) fn holder(keys: &LogKeys, hidden: &str) -> String {
    let holder = keys.reveal_holder(hidden);
    holder.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Leaves a status of somebody else's log as it is, without what means nothing.
pub(super) fn leave_hidden(status: &mut LogStatus) {
    if let Some(lease) = &mut status.lease {
        UNKNOWN.clone_into(&mut lease.holder);
    }
}

pub(super) fn unexpected(log: &LogKey, answer: &Answer) -> ReplicaError {
    corrupt(format!(
        "the remote answered something else than was asked about {}: {answer:?}",
        named(log)
    ))
}

pub(super) fn unasked_object(log: &LogKey) -> ReplicaError {
    corrupt(format!(
        "the remote located an object that was not asked for, for {}",
        named(log)
    ))
}
