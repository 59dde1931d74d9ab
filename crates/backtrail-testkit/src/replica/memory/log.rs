//! One log: its trails, its lease, and who may write.

use std::collections::BTreeMap;

use backtrail::replica::{
    Answer, End, Fence, Lease, Line, LogStatus, Order, ReplicaError, TrailStatus,
};

use super::refused;

/// A log; its trails have at least an opener each.
pub(super) struct Log {
    trails: BTreeMap<u32, Vec<Line>>,
    fence: Fence,
    holder: String,
    lease_until_ms: i64,
    changed_at_ms: i64,
    pub(super) deleted_at_ms: Option<i64>,
    wrapped_key: Vec<u8>,
}

/// What an append or a new trail adds.
pub(super) struct Addition<'a> {
    pub(super) fence: Fence,
    /// The end that the log has to have.
    pub(super) after: Option<End>,
    pub(super) trail: u32,
    /// Whether it begins that trail.
    pub(super) begins: bool,
    pub(super) lines: &'a [Line],
}

impl Addition<'_> {
    /// Returns the end of the log once it is added.
    pub(super) fn end(&self) -> Option<End> {
        self.lines.last().map(|line| end_at(self.trail, line))
    }

    /// Checks what a client always gets right.
    pub(super) fn check(&self) -> Result<(), ReplicaError> {
        let rises = self.lines.windows(2).all(|pair| pair[0].seq < pair[1].seq);
        let (Some(first), true) = (self.lines.first(), rises) else {
            return Err(refused("lines are missing or out of order"));
        };
        match self.after {
            Some(end) if self.begins && self.trail <= end.trail => {
                Err(refused("a new trail has to have a higher number"))
            }
            Some(end) if !self.begins && first.seq <= end.seq => {
                Err(refused("a line has to have a higher number than the end"))
            }
            _ => Ok(()),
        }
    }
}

fn end_at(trail: u32, line: &Line) -> End {
    End {
        trail,
        seq: line.seq,
        sum: line.sum,
    }
}

/// Returns the time at which a lease ends.
fn lease_end(now_ms: i64, ttl_ms: u64) -> i64 {
    now_ms.saturating_add(i64::try_from(ttl_ms).unwrap_or(i64::MAX))
}

impl Log {
    pub(super) fn new(wrapped_key: &[u8], now_ms: i64) -> Self {
        Self {
            trails: BTreeMap::new(),
            fence: Fence(0),
            holder: String::new(),
            lease_until_ms: i64::MIN,
            changed_at_ms: now_ms,
            deleted_at_ms: None,
            wrapped_key: wrapped_key.to_vec(),
        }
    }

    pub(super) fn holder(&self) -> &str {
        &self.holder
    }

    pub(super) fn head(&self) -> Option<End> {
        let (trail, lines) = self.trails.last_key_value()?;
        lines.last().map(|line| end_at(*trail, line))
    }

    pub(super) fn lease(&self, now_ms: i64) -> Option<Lease> {
        let left_ms = u64::try_from(self.lease_until_ms.saturating_sub(now_ms)).ok()?;
        (left_ms > 0).then(|| Lease {
            holder: self.holder.clone(),
            left_ms,
        })
    }

    pub(super) fn status(&self, now_ms: i64) -> LogStatus {
        let lines = self.trails.values().flatten();
        LogStatus {
            head: self.head(),
            fence: self.fence,
            lease: self.lease(now_ms),
            changed_at_ms: self.changed_at_ms,
            bytes: lines.map(|line| line.bytes.len() as u64).sum(),
            deleted_at_ms: self.deleted_at_ms,
            wrapped_key: self.wrapped_key.clone(),
        }
    }

    /// Gives a lease with a new fence, unless somebody else has it.
    pub(super) fn take(&mut self, holder: &str, ttl_ms: u64, now_ms: i64) -> Answer {
        if let Some(lease) = self.lease(now_ms).filter(|lease| lease.holder != holder) {
            return Answer::Held(lease);
        }
        self.fence.0 += 1;
        holder.clone_into(&mut self.holder);
        self.lease_until_ms = lease_end(now_ms, ttl_ms);
        Answer::Leased {
            fence: self.fence,
            log: self.status(now_ms),
        }
    }

    /// Returns the answer for a writer that another one superseded.
    fn fenced(&self, fence: Fence, now_ms: i64) -> Option<Answer> {
        (fence != self.fence).then(|| Answer::Fenced {
            fence: self.fence,
            lease: self.lease(now_ms),
        })
    }

    pub(super) fn renew(&mut self, fence: Fence, ttl_ms: u64, now_ms: i64) -> Answer {
        self.fenced(fence, now_ms).unwrap_or_else(|| {
            self.lease_until_ms = lease_end(now_ms, ttl_ms);
            Answer::Renewed
        })
    }

    pub(super) fn release(&mut self, fence: Fence, now_ms: i64) {
        if fence == self.fence {
            self.lease_until_ms = now_ms;
        }
    }

    /// Returns the answer that an addition gets before its packs are looked at; `None` if it
    /// can be added.
    pub(super) fn verdict(&self, addition: &Addition<'_>, now_ms: i64) -> Option<Answer> {
        if self.has(addition) {
            return addition.end().map(Answer::Appended);
        }
        if let Some(fenced) = self.fenced(addition.fence, now_ms) {
            return Some(fenced);
        }
        (addition.after != self.head()).then(|| Answer::Moved(self.head()))
    }

    /// Returns whether all lines are there already, with the same sums.
    fn has(&self, addition: &Addition<'_>) -> bool {
        let there = self
            .trails
            .get(&addition.trail)
            .map_or(&[][..], Vec::as_slice);
        let has_line = |line: &Line| {
            let at = there.binary_search_by_key(&line.seq, |line| line.seq);
            at.is_ok_and(|at| there[at].sum == line.sum)
        };
        !addition.lines.is_empty() && addition.lines.iter().all(has_line)
    }

    pub(super) fn add(&mut self, addition: &Addition<'_>, ttl_ms: u64, now_ms: i64) {
        let trail = self.trails.entry(addition.trail).or_default();
        trail.extend_from_slice(addition.lines);
        self.changed_at_ms = now_ms;
        self.lease_until_ms = self.lease_until_ms.max(lease_end(now_ms, ttl_ms));
    }

    pub(super) fn trails(&self) -> Vec<TrailStatus> {
        let trails = self.trails.iter().filter_map(|(trail, lines)| {
            Some(TrailStatus {
                opener: lines.first()?.clone(),
                end: end_at(*trail, lines.last()?),
            })
        });
        trails.collect()
    }

    /// Returns the lines of a trail that were asked for, as many as fit.
    pub(super) fn read(
        &self,
        trail: u32,
        beyond: Option<u64>,
        order: Order,
        max_bytes: u64,
    ) -> Answer {
        let Some(lines) = self.trails.get(&trail) else {
            return Answer::Absent;
        };
        let wanted: Vec<&Line> = match (order, beyond) {
            (Order::Forwards, None) => lines.iter().collect(),
            (Order::Forwards, Some(seq)) => {
                lines[1..].iter().filter(|line| line.seq > seq).collect()
            }
            (Order::Backwards, beyond) => {
                let is_before = |line: &&Line| beyond.is_none_or(|seq| line.seq < seq);
                lines.iter().rev().filter(is_before).collect()
            }
        };
        let mut left = max_bytes;
        let fits = |(at, line): &(usize, &&Line)| {
            let rest = left.checked_sub(line.bytes.len() as u64);
            left = rest.unwrap_or(0);
            *at == 0 || rest.is_some()
        };
        let fitting: Vec<Line> = wanted
            .iter()
            .enumerate()
            .take_while(fits)
            .map(|(_, line)| (**line).clone())
            .collect();
        Answer::Lines {
            more: fitting.len() < wanted.len(),
            lines: fitting,
        }
    }
}
