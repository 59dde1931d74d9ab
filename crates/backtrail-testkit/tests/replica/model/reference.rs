//! A second model, and a replica that compares its answers with the first one's.
//!
//! It keeps a log as one flat list of what was accepted, and finds every answer by looking
//! through it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use backtrail::Clock;
use backtrail::replica::{
    Answer, BlobKind, BlobName, End, Fence, Lease, Line, LogKey, LogStatus, Order, Replica,
    ReplicaError, Request, TrailStatus,
};
use backtrail_testkit::ManualClock;
use backtrail_testkit::replica::MemoryReplica;

/// What an append or the beginning of a trail wants.
struct Attempt<'a> {
    fence: Fence,
    after: Option<End>,
    trail: u32,
    lines: &'a [Line],
    /// The packs that it relies on and that were removed.
    gone: Vec<[u8; 32]>,
}

#[derive(Debug, Default)]
struct Journal {
    /// Every line with its trail, in the order of acceptance.
    lines: Vec<(u32, Line)>,
    /// The holders of all leases: the newest fence is how many there are.
    holders: Vec<String>,
    lease_until_ms: i64,
    changed_at_ms: i64,
    deleted_at_ms: Option<i64>,
}

impl Journal {
    fn end(&self, at: usize) -> End {
        let (trail, line) = &self.lines[at];
        End {
            trail: *trail,
            seq: line.seq,
            sum: line.sum,
        }
    }

    fn head(&self) -> Option<End> {
        self.lines.len().checked_sub(1).map(|at| self.end(at))
    }

    fn fence(&self) -> Fence {
        Fence(self.holders.len() as u64)
    }

    fn lease(&self, now_ms: i64) -> Option<Lease> {
        (self.lease_until_ms > now_ms).then(|| Lease {
            holder: self.holders.last().unwrap().clone(),
            left_ms: (self.lease_until_ms - now_ms) as u64,
        })
    }

    fn status(&self, now_ms: i64) -> LogStatus {
        LogStatus {
            head: self.head(),
            fence: self.fence(),
            lease: self.lease(now_ms),
            changed_at_ms: self.changed_at_ms,
            bytes: self
                .lines
                .iter()
                .map(|(_, line)| line.bytes.len() as u64)
                .sum(),
            deleted_at_ms: self.deleted_at_ms,
            wrapped_key: Vec::new(),
        }
    }

    fn trail(&self, trail: u32) -> Vec<&Line> {
        let lines = self.lines.iter().filter(|(number, _)| *number == trail);
        lines.map(|(_, line)| line).collect()
    }

    fn write(&mut self, attempt: Attempt<'_>, ttl_ms: u64, now_ms: i64) -> Answer {
        let Attempt {
            fence,
            after,
            trail,
            lines,
            gone,
        } = attempt;
        let last = lines.last().unwrap();
        let appended = Answer::Appended(End {
            trail,
            seq: last.seq,
            sum: last.sum,
        });
        let there = self.trail(trail);
        let is_there = |line: &Line| {
            there
                .iter()
                .any(|other| other.seq == line.seq && other.sum == line.sum)
        };
        if lines.iter().all(is_there) {
            return appended;
        }
        if fence != self.fence() {
            return Answer::Fenced {
                fence: self.fence(),
                lease: self.lease(now_ms),
            };
        }
        if after != self.head() {
            return Answer::Moved(self.head());
        }
        if !gone.is_empty() {
            return Answer::PacksGone(gone);
        }
        self.lines
            .extend(lines.iter().map(|line| (trail, line.clone())));
        self.changed_at_ms = now_ms;
        self.lease_until_ms = self.lease_until_ms.max(now_ms + ttl_ms as i64);
        appended
    }
}

#[derive(Debug, Default)]
struct Reference {
    logs: BTreeMap<LogKey, Journal>,
    purged: BTreeMap<LogKey, i64>,
    packs: BTreeSet<[u8; 32]>,
}

impl Reference {
    /// Returns the right answer; `None` where only the packs would tell.
    fn answer(&mut self, request: &Request, now_ms: i64) -> Option<Answer> {
        let log = match request {
            Request::Status { log }
            | Request::Lease { log, .. }
            | Request::Renew { log, .. }
            | Request::Release { log, .. }
            | Request::Append { log, .. }
            | Request::Begin { log, .. }
            | Request::Trails { log }
            | Request::Read { log, .. }
            | Request::Delete { log, .. } => log,
            Request::Purge { log } => {
                self.logs.remove(log);
                self.purged.entry(log.clone()).or_insert(now_ms);
                return Some(Answer::Done);
            }
            _ => return None,
        };
        if let Some(at_ms) = self.purged.get(log) {
            return Some(Answer::Purged(*at_ms));
        }
        if matches!(request, Request::Lease { .. }) {
            let journal = self.logs.entry(log.clone());
            journal.or_insert_with(|| Journal {
                changed_at_ms: now_ms,
                ..Journal::default()
            });
        }
        let Some(journal) = self.logs.get_mut(log) else {
            return Some(Answer::Absent);
        };
        let gone = |packs: &[[u8; 32]]| -> Vec<[u8; 32]> {
            let gone = packs.iter().filter(|pack| !self.packs.contains(*pack));
            gone.copied().collect()
        };
        Some(match request {
            Request::Status { .. } => Answer::Log(journal.status(now_ms)),
            Request::Lease { holder, ttl_ms, .. } => match journal.lease(now_ms) {
                Some(lease) if lease.holder != *holder => Answer::Held(lease),
                _ => {
                    journal.holders.push(holder.clone());
                    journal.lease_until_ms = now_ms + *ttl_ms as i64;
                    Answer::Leased {
                        fence: journal.fence(),
                        log: journal.status(now_ms),
                    }
                }
            },
            Request::Renew { fence, ttl_ms, .. } if *fence == journal.fence() => {
                journal.lease_until_ms = now_ms + *ttl_ms as i64;
                Answer::Renewed
            }
            Request::Renew { .. } => Answer::Fenced {
                fence: journal.fence(),
                lease: journal.lease(now_ms),
            },
            Request::Release { fence, .. } => {
                if *fence == journal.fence() {
                    journal.lease_until_ms = now_ms;
                }
                Answer::Renewed
            }
            Request::Append {
                fence,
                after,
                lines,
                relies_on,
                ttl_ms,
                ..
            } => {
                let attempt = Attempt {
                    fence: *fence,
                    after: Some(*after),
                    trail: after.trail,
                    lines,
                    gone: gone(relies_on),
                };
                journal.write(attempt, *ttl_ms, now_ms)
            }
            Request::Begin {
                fence,
                head,
                trail,
                opener,
                relies_on,
                ttl_ms,
                ..
            } => {
                let attempt = Attempt {
                    fence: *fence,
                    after: *head,
                    trail: *trail,
                    lines: std::slice::from_ref(opener),
                    gone: gone(relies_on),
                };
                journal.write(attempt, *ttl_ms, now_ms)
            }
            Request::Trails { .. } => {
                let mut trails: Vec<TrailStatus> = Vec::new();
                for (at, (trail, line)) in journal.lines.iter().enumerate() {
                    match trails.last_mut().filter(|last| last.end.trail == *trail) {
                        Some(last) => last.end = journal.end(at),
                        None => trails.push(TrailStatus {
                            opener: line.clone(),
                            end: journal.end(at),
                        }),
                    }
                }
                Answer::Trails(trails)
            }
            Request::Read {
                trail,
                beyond,
                order,
                max_bytes,
                ..
            } => read(journal.trail(*trail), *beyond, *order, *max_bytes),
            Request::Delete { deleted, .. } => {
                journal.deleted_at_ms = match (journal.deleted_at_ms, deleted) {
                    (Some(at_ms), true) => Some(at_ms),
                    (None, true) => Some(now_ms),
                    (_, false) => None,
                };
                Answer::Done
            }
            _ => return None,
        })
    }
}

fn read(mut lines: Vec<&Line>, beyond: Option<u64>, order: Order, max_bytes: u64) -> Answer {
    if lines.is_empty() {
        return Answer::Absent;
    }
    if let (Order::Forwards, Some(_)) = (order, beyond) {
        lines.remove(0);
    }
    lines.retain(|line| match order {
        Order::Forwards => beyond.is_none_or(|seq| line.seq > seq),
        Order::Backwards => beyond.is_none_or(|seq| line.seq < seq),
    });
    if order == Order::Backwards {
        lines.reverse();
    }
    let mut sizes = lines.iter().scan(0, |sum, line| {
        *sum += line.bytes.len() as u64;
        Some(*sum)
    });
    let fit = sizes.by_ref().take_while(|sum| *sum <= max_bytes).count();
    let fit = fit.max(1).min(lines.len());
    Answer::Lines {
        lines: lines[..fit].iter().map(|line| (*line).clone()).collect(),
        more: fit < lines.len(),
    }
}

/// A replica in memory whose answers are compared with those of the second model.
#[derive(Debug)]
pub(super) struct Compared {
    replica: MemoryReplica,
    clock: ManualClock,
    reference: Mutex<Reference>,
}

impl Compared {
    /// Returns an empty replica; the clock has to stand still between two settings.
    pub(super) fn new(clock: ManualClock) -> Self {
        Self {
            replica: MemoryReplica::new(clock.clone()),
            clock,
            reference: Mutex::default(),
        }
    }
}

impl Replica for Compared {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        let answer = self.replica.ask(request)?;
        let mut reference = self.reference.lock().unwrap();
        if let Some(expected) = reference.answer(request, self.clock.now().as_millis()) {
            assert_eq!(answer, expected, "to {request:?}");
        }
        if let (Request::RemovePacks { .. }, Answer::Packs(removed)) = (request, &answer) {
            for pack in removed {
                reference.packs.remove(&pack.pack);
            }
        }
        Ok(answer)
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        self.replica.has_blobs(log, names)
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        self.replica.put_blob(log, name, bytes)?;
        let mut reference = self.reference.lock().unwrap();
        if name.kind == BlobKind::Pack && !reference.purged.contains_key(log) {
            reference.packs.insert(name.hash);
        }
        Ok(())
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        self.replica.get_blob(log, name, part)
    }
}
