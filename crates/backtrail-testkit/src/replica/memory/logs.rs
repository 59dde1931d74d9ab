//! Requests about logs.

use std::ops::Bound;

use backtrail::replica::{Answer, Change, LogKey, ReplicaError, Request};

use super::log::{Addition, Log};
use super::{State, refused};

impl State {
    pub(super) fn answer_about_logs(
        &mut self,
        request: &Request,
        now_ms: i64,
    ) -> Result<Answer, ReplicaError> {
        Ok(match request {
            Request::List { after, limit } => self.list(after.as_ref(), *limit, now_ms),
            Request::Changes { after, limit } => self.changes(*after, *limit),
            Request::Purge { log } => self.purge(log, now_ms),
            Request::Lease { log, .. }
            | Request::Status { log }
            | Request::Renew { log, .. }
            | Request::Release { log, .. }
            | Request::Append { log, .. }
            | Request::Begin { log, .. }
            | Request::Trails { log }
            | Request::Read { log, .. }
            | Request::Delete { log, .. } => match self.purged.get(log) {
                Some(at_ms) => Answer::Purged(*at_ms),
                None => self.answer_about(log, request, now_ms)?,
            },
            _ => return Err(refused("a request of a newer version")),
        })
    }

    fn answer_about(
        &mut self,
        key: &LogKey,
        request: &Request,
        now_ms: i64,
    ) -> Result<Answer, ReplicaError> {
        if let Request::Lease {
            holder,
            ttl_ms,
            wrapped_key,
            ..
        } = request
        {
            let log = self.logs.entry(key.clone());
            let log = log.or_insert_with(|| Log::new(wrapped_key, now_ms));
            return Ok(log.take(holder, *ttl_ms, now_ms));
        }
        let Some(log) = self.logs.get_mut(key) else {
            return Ok(Answer::Absent);
        };
        Ok(match request {
            Request::Status { .. } => Answer::Log(log.status(now_ms)),
            Request::Renew { fence, ttl_ms, .. } => log.renew(*fence, *ttl_ms, now_ms),
            Request::Release { fence, .. } => {
                log.release(*fence, now_ms);
                Answer::Renewed
            }
            Request::Trails { .. } => Answer::Trails(log.trails()),
            Request::Read {
                trail,
                beyond,
                order,
                max_bytes,
                ..
            } => log.read(*trail, *beyond, *order, *max_bytes),
            Request::Delete { deleted, .. } => {
                log.deleted_at_ms = deleted.then(|| log.deleted_at_ms.unwrap_or(now_ms));
                Answer::Done
            }
            request => self.answer_writer(key, request, now_ms)?,
        })
    }

    /// Answers an append or the beginning of a trail.
    fn answer_writer(
        &mut self,
        key: &LogKey,
        request: &Request,
        now_ms: i64,
    ) -> Result<Answer, ReplicaError> {
        let (addition, relies_on, ttl_ms) = match request {
            Request::Append {
                fence,
                after,
                lines,
                relies_on,
                ttl_ms,
                ..
            } => (
                Addition {
                    fence: *fence,
                    after: Some(*after),
                    trail: after.trail,
                    begins: false,
                    lines,
                },
                relies_on,
                *ttl_ms,
            ),
            Request::Begin {
                fence,
                head,
                trail,
                opener,
                relies_on,
                ttl_ms,
                ..
            } => (
                Addition {
                    fence: *fence,
                    after: *head,
                    trail: *trail,
                    begins: true,
                    lines: std::slice::from_ref(opener),
                },
                relies_on,
                *ttl_ms,
            ),
            _ => return Err(refused("a request of a newer version")),
        };
        self.add(key, &addition, relies_on, ttl_ms, now_ms)
    }

    fn add(
        &mut self,
        key: &LogKey,
        addition: &Addition<'_>,
        relies_on: &[[u8; 32]],
        ttl_ms: u64,
        now_ms: i64,
    ) -> Result<Answer, ReplicaError> {
        let Some(log) = self.logs.get_mut(key) else {
            return Ok(Answer::Absent);
        };
        if let Some(answer) = log.verdict(addition, now_ms) {
            return Ok(answer);
        }
        addition.check()?;
        if let Err(gone) = self.packs.rely_on(relies_on) {
            return Ok(Answer::PacksGone(gone));
        }
        log.add(addition, ttl_ms, now_ms);
        let end = addition.end().ok_or_else(|| refused("lines are missing"))?;
        self.newest_change += 1;
        self.changes.push(Change {
            id: self.newest_change,
            log: key.clone(),
            end,
            at_ms: now_ms,
            by: log.holder().to_owned(),
        });
        Ok(Answer::Appended(end))
    }

    fn list(&self, after: Option<&LogKey>, limit: u32, now_ms: i64) -> Answer {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let logs = self.logs.range((from, Bound::Unbounded));
        let listed = logs.map(|(key, log)| (key.clone(), log.status(now_ms)));
        Answer::Logs(listed.take(limit as usize).collect())
    }

    fn changes(&self, after: u64, limit: u32) -> Answer {
        let newer = self.changes.iter().filter(|change| change.id > after);
        Answer::Changes(newer.take(limit as usize).cloned().collect())
    }

    fn purge(&mut self, log: &LogKey, now_ms: i64) -> Answer {
        self.logs.remove(log);
        self.payloads.retain(|(owner, _), _| owner != log);
        self.changes.retain(|change| change.log != *log);
        self.purged.entry(log.clone()).or_insert(now_ms);
        Answer::Done
    }
}
