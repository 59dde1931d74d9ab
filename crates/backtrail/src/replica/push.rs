//! Pushing one log, as a machine without I/O: answers go in, requests come out.

use std::collections::VecDeque;

use super::compare::{Comparison, Here, Need, Relation};
use super::local::{LinesPart, LocalLine};
use super::refusal::{Refusal, odd_answer};
use super::wire::{Answer, End, Fence, Line, LogKey, Request};
use crate::error::Result;
use crate::message::parts::Reference;

/// What a push needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PushNeed {
    /// An answer of the replica.
    Ask(Request),
    /// The sums of lines here.
    Sums { trail: u32, seqs: Vec<u64> },
    /// The next lines of a trail. They are read from `after` on when the trail is named first.
    Lines { trail: u32, after: Option<u64> },
    /// These payloads must be at the replica: the lines that are sent next name them.
    Payloads(Vec<Reference>),
    /// Nothing.
    Nothing,
}

/// Sends what a replica lacks of a log.
#[derive(Debug)]
pub(crate) struct Push {
    log: LogKey,
    holder: String,
    ttl_ms: u64,
    comparison: Comparison,
    /// The trails that have something to send, with the seq after which it begins.
    trails: VecDeque<(u32, Option<u64>)>,
    /// The end at the replica.
    end: Option<End>,
    fence: Fence,
    requests: VecDeque<Request>,
    state: State,
    /// How often the log changed between the comparison and the lease.
    again: u32,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Compare,
    Lease,
    Lines,
    Payloads(Vec<Reference>),
    Send,
    Release,
    Done,
}

/// How often the log may change between the comparison and the lease.
const PATIENCE: u32 = 8;

impl Push {
    pub(crate) fn new(log: LogKey, here: Here, holder: &str, ttl_ms: u64) -> Self {
        let numbers = here.trails.keys().map(|trail| (*trail, None)).collect();
        Self {
            comparison: Comparison::new(log.clone(), here),
            log,
            holder: holder.to_owned(),
            ttl_ms,
            trails: numbers,
            end: None,
            fence: Fence(0),
            requests: VecDeque::new(),
            state: State::Compare,
            again: 0,
            lines: 0,
            bytes: 0,
        }
    }

    /// Returns what is left to send: trails, with the seq after which it begins. Known when the
    /// comparison is done.
    pub(crate) fn to_send(&self) -> Option<&VecDeque<(u32, Option<u64>)>> {
        (self.state != State::Compare).then_some(&self.trails)
    }

    /// Returns what is needed next.
    pub(crate) fn need(&self) -> PushNeed {
        match &self.state {
            State::Compare => match self.comparison.need() {
                Need::Ask(request) => PushNeed::Ask(request),
                Need::Sums { trail, seqs } => PushNeed::Sums { trail, seqs },
                Need::Nothing => PushNeed::Nothing,
            },
            State::Lease => PushNeed::Ask(Request::Lease {
                log: self.log.clone(),
                holder: self.holder.clone(),
                ttl_ms: self.ttl_ms,
                wrapped_key: Vec::new(),
            }),
            State::Lines => match self.trails.front() {
                Some((trail, after)) => PushNeed::Lines {
                    trail: *trail,
                    after: *after,
                },
                None => PushNeed::Nothing,
            },
            State::Payloads(payloads) => PushNeed::Payloads(payloads.clone()),
            State::Send => match self.requests.front() {
                Some(request) => PushNeed::Ask(request.clone()),
                None => PushNeed::Nothing,
            },
            State::Release => PushNeed::Ask(self.release()),
            State::Done => PushNeed::Nothing,
        }
    }

    /// Returns the request that gives the lease back, if there is one.
    pub(crate) fn give_up(&self) -> Option<Request> {
        let leased = !matches!(self.state, State::Compare | State::Lease | State::Done);
        leased.then(|| self.release())
    }

    fn release(&self) -> Request {
        Request::Release {
            log: self.log.clone(),
            fence: self.fence,
        }
    }

    /// Takes an answer of the replica.
    pub(crate) fn answer(&mut self, answer: Answer) -> Result<()> {
        match (&self.state, answer) {
            (State::Compare, answer) => {
                self.comparison.answer(answer)?;
                self.look()
            }
            (_, Answer::Purged(at)) => Err(Refusal::PurgedThere(at).of(&self.log)),
            (State::Lease, Answer::Held(lease)) => Err(Refusal::Held(lease).of(&self.log)),
            (State::Lease, Answer::Leased { fence, log }) => {
                self.fence = fence;
                let known = self.comparison.status().and_then(|status| status.head);
                match log.deleted_at_ms {
                    Some(at) => Err(Refusal::InTrashThere(at).of(&self.log)),
                    None if log.head == known => {
                        self.state = State::Lines;
                        self.advance();
                        Ok(())
                    }
                    None => self.compare_again(),
                }
            }
            (State::Send, Answer::Appended(end)) => self.appended(end),
            (State::Send, Answer::Fenced { lease, .. }) => {
                Err(Refusal::Fenced(lease).of(&self.log))
            }
            (State::Send, Answer::Moved(_)) => Err(Refusal::Fenced(None).of(&self.log)),
            (State::Release, _) => {
                self.state = State::Done;
                Ok(())
            }
            _ => Err(odd_answer(&self.log, "pushing")),
        }
    }

    /// Takes the sums of lines here.
    pub(crate) fn sums(&mut self, sums: &[Option<[u8; 8]>]) -> Result<()> {
        self.comparison.sums(sums);
        self.look()
    }

    /// Acts on the comparison, if it is done.
    fn look(&mut self) -> Result<()> {
        let Some(relation) = self.comparison.relation() else {
            return Ok(());
        };
        match relation {
            Relation::Diverged { common } => {
                Err(Refusal::Diverged { common: *common }.of(&self.log))
            }
            Relation::Ahead { .. } => Err(Refusal::Ahead.of(&self.log)),
            Relation::Same => {
                self.trails.clear();
                self.state = State::Done;
                Ok(())
            }
            Relation::Absent => {
                self.state = State::Lease;
                Ok(())
            }
            Relation::Behind { head } => {
                let head = *head;
                self.end = Some(head);
                self.trails.retain(|(trail, _)| *trail >= head.trail);
                for (trail, after) in &mut self.trails {
                    if *trail == head.trail {
                        *after = Some(head.seq);
                    }
                }
                self.state = State::Lease;
                Ok(())
            }
        }
    }

    fn compare_again(&mut self) -> Result<()> {
        self.again += 1;
        if self.again > PATIENCE {
            return Err(Refusal::Fenced(None).of(&self.log));
        }
        let comparison = self.comparison.again();
        let fresh = Self::new(self.log.clone(), Here::default(), &self.holder, self.ttl_ms);
        let numbers = comparison.trails_here().map(|trail| (trail, None));
        *self = Self {
            trails: numbers.collect(),
            comparison,
            again: self.again,
            ..fresh
        };
        Ok(())
    }

    /// Takes the next lines of the first trail.
    pub(crate) fn lines(&mut self, part: LinesPart) {
        let Some((trail, after)) = self.trails.front().copied() else {
            return;
        };
        let mut payloads = Vec::new();
        let mut lines = Vec::with_capacity(part.lines.len());
        for line in part.lines {
            let LocalLine {
                line,
                payloads: named,
            } = line;
            payloads.extend(named);
            lines.push(line);
        }
        let last = lines.last().map(|line| line.seq);
        self.prepare(trail, after, lines);
        match part.more {
            true => {
                if let (Some((_, after)), Some(last)) = (self.trails.front_mut(), last) {
                    *after = Some(last);
                }
            }
            false => drop(self.trails.pop_front()),
        }
        self.state = match payloads.is_empty() {
            true => State::Send,
            false => State::Payloads(payloads),
        };
        self.advance();
    }

    /// Prepares the requests that send lines.
    fn prepare(&mut self, trail: u32, after: Option<u64>, lines: Vec<Line>) {
        let mut end = self.end;
        let mut lines = lines.into_iter().peekable();
        if after.is_none()
            && let Some(opener) = lines.next()
        {
            let head = end;
            end = Some(end_of(trail, &opener));
            self.requests.push_back(Request::Begin {
                log: self.log.clone(),
                fence: self.fence,
                head,
                trail,
                opener,
                relies_on: Vec::new(),
                ttl_ms: self.ttl_ms,
            });
        }
        if let Some(after) = end
            && lines.peek().is_some()
        {
            self.requests.push_back(Request::Append {
                log: self.log.clone(),
                fence: self.fence,
                after,
                lines: lines.collect(),
                relies_on: Vec::new(),
                ttl_ms: self.ttl_ms,
            });
        }
    }

    /// Takes note that the payloads are at the replica.
    pub(crate) fn stored(&mut self) {
        self.state = State::Send;
        self.advance();
    }

    fn appended(&mut self, end: End) -> Result<()> {
        let sent: &[Line] = match self.requests.front() {
            Some(Request::Begin { opener, .. }) => std::slice::from_ref(opener),
            Some(Request::Append { lines, .. }) => lines,
            _ => &[],
        };
        let is_last = |line: &Line| (line.seq, line.sum) == (end.seq, end.sum);
        if !sent.last().is_some_and(is_last) {
            return Err(odd_answer(&self.log, "pushing"));
        }
        self.lines += sent.len() as u64;
        self.bytes += bytes_of(sent);
        self.end = Some(end);
        self.requests.pop_front();
        self.advance();
        Ok(())
    }

    /// Moves on if the present state has nothing to do.
    fn advance(&mut self) {
        if self.state == State::Send && self.requests.is_empty() {
            self.state = State::Lines;
        }
        if self.state == State::Lines && self.trails.is_empty() {
            self.state = State::Release;
        }
    }
}

fn end_of(trail: u32, line: &Line) -> End {
    End {
        trail,
        seq: line.seq,
        sum: line.sum,
    }
}

/// Returns how many bytes lines have, newlines included.
pub(crate) fn bytes_of(lines: &[Line]) -> u64 {
    lines.iter().map(|line| line.bytes.len() as u64 + 1).sum()
}
