//! Pulling one log, as a machine without I/O: answers go in, requests and effects come out.

use std::collections::VecDeque;

use super::compare::{Comparison, Here, Need, Relation};
use super::refusal::{Refusal, odd_answer};
use super::wire::{Answer, End, Line, LogKey, Order, Request, TrailStatus};
use crate::error::Result;

/// What a pull needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PullNeed {
    /// An answer of the replica.
    Ask(Request),
    /// The sums of lines here.
    Sums { trail: u32, seqs: Vec<u64> },
    /// A new trail here, with this opener.
    Begin { trail: u32, opener: Line },
    /// These lines at the end of the newest trail here, after their payloads.
    Append { trail: u32, lines: Vec<Line> },
    /// Nothing.
    Nothing,
}

/// Fetches what is missing here of a log.
#[derive(Debug)]
pub(crate) struct Pull {
    log: LogKey,
    comparison: Comparison,
    /// What is missing, in order.
    parts: VecDeque<Part>,
    state: State,
    /// Where the log here ends before anything is written.
    pub(crate) end_here: Option<End>,
}

/// Lines of one trail that are missing here.
#[derive(Debug)]
struct Part {
    /// The opener, if the trail is missing.
    opener: Option<Line>,
    /// The last line that was fetched.
    beyond: u64,
    /// The last line that is wanted.
    until: End,
}

#[derive(Debug)]
enum State {
    Compare,
    Begin,
    Read,
    /// The lines, and whether they end the part.
    Append(Vec<Line>, bool),
    Done,
}

/// How many bytes are read at a time.
const AT_ONCE: u64 = 1 << 20;

impl Pull {
    pub(crate) fn new(log: LogKey, here: Here) -> Self {
        Self {
            end_here: here.end(),
            comparison: Comparison::new(log.clone(), here),
            log,
            parts: VecDeque::new(),
            state: State::Compare,
        }
    }

    /// Returns whether something is to be written here.
    pub(crate) fn will_write(&self) -> bool {
        !matches!(self.state, State::Compare | State::Done)
    }

    /// Returns how many bytes the lines there have, if that is known.
    pub(crate) fn bytes_there(&self) -> u64 {
        self.comparison.status().map_or(0, |status| status.bytes)
    }

    /// Returns the trails that are there, as far as they were asked for.
    pub(crate) fn there(&self) -> &[TrailStatus] {
        self.comparison.there()
    }

    /// Returns what is needed next.
    pub(crate) fn need(&self) -> PullNeed {
        match &self.state {
            State::Compare => match self.comparison.need() {
                Need::Ask(request) => PullNeed::Ask(request),
                Need::Sums { trail, seqs } => PullNeed::Sums { trail, seqs },
                Need::Nothing => PullNeed::Nothing,
            },
            State::Begin => match self.parts.front() {
                Some(Part {
                    opener: Some(opener),
                    until,
                    ..
                }) => PullNeed::Begin {
                    trail: until.trail,
                    opener: opener.clone(),
                },
                _ => PullNeed::Nothing,
            },
            State::Read => match self.parts.front() {
                Some(part) => PullNeed::Ask(Request::Read {
                    log: self.log.clone(),
                    trail: part.until.trail,
                    beyond: Some(part.beyond),
                    order: Order::Forwards,
                    max_bytes: AT_ONCE,
                }),
                None => PullNeed::Nothing,
            },
            State::Append(lines, _) => match self.parts.front() {
                Some(part) => PullNeed::Append {
                    trail: part.until.trail,
                    lines: lines.clone(),
                },
                None => PullNeed::Nothing,
            },
            State::Done => PullNeed::Nothing,
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
            (State::Read, Answer::Lines { lines, more }) => self.read(lines, more),
            _ => Err(odd_answer(&self.log, "pulling")),
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
            Relation::Absent => Err(Refusal::NotThere.of(&self.log)),
            Relation::Diverged { common } => {
                Err(Refusal::Diverged { common: *common }.of(&self.log))
            }
            Relation::Same | Relation::Behind { .. } => {
                self.state = State::Done;
                Ok(())
            }
            Relation::Ahead { append, trails } => {
                let rest = append.map(|(here, there)| Part {
                    opener: None,
                    beyond: here.seq,
                    until: there,
                });
                let new = trails.iter().map(|trail| Part {
                    opener: Some(trail.opener.clone()),
                    beyond: trail.opener.seq,
                    until: trail.end,
                });
                self.parts = rest.into_iter().chain(new).collect();
                self.begin_part();
                Ok(())
            }
        }
    }

    fn begin_part(&mut self) {
        self.state = match self.parts.front() {
            None => State::Done,
            Some(Part {
                opener: Some(_), ..
            }) => State::Begin,
            Some(_) => State::Read,
        };
    }

    /// Takes lines of the first part, up to its end.
    fn read(&mut self, mut lines: Vec<Line>, more: bool) -> Result<()> {
        let Some(part) = self.parts.front_mut() else {
            return Ok(());
        };
        let until = part.until;
        lines.retain(|line| line.seq <= until.seq);
        let mut before = part.beyond;
        for line in &lines {
            if line.seq <= before {
                return Err(odd_answer(&self.log, "pulling"));
            }
            before = line.seq;
        }
        let ends = lines.last().is_some_and(|last| last.seq == until.seq);
        let is_it = lines.last().is_some_and(|last| last.sum == until.sum);
        if (ends && !is_it) || (!ends && (!more || lines.is_empty())) {
            return Err(odd_answer(&self.log, "pulling"));
        }
        part.beyond = before;
        self.state = State::Append(lines, ends);
        Ok(())
    }

    /// Takes note that what was needed last is written here.
    pub(crate) fn written(&mut self) {
        let ends = match &self.state {
            State::Begin => self
                .parts
                .front()
                .and_then(|part| Some(part.opener.as_ref()?.seq == part.until.seq))
                .unwrap_or(true),
            State::Append(_, ends) => *ends,
            _ => return,
        };
        self.state = State::Read;
        if ends {
            self.parts.pop_front();
            self.begin_part();
        }
    }
}
