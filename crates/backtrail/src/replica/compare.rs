//! How a log here and the one at a replica differ, found out with a few requests.
//!
//! A sum covers the sum of the line before, so two trails that share a line share everything up
//! to it, and it is enough to compare their ends. Lines are read only to find the last common one
//! of trails that diverged.

use std::collections::BTreeMap;

use super::refusal::{LastCommon, Refusal, odd_answer};
use super::wire::{Answer, End, Line, LogKey, LogStatus, Order, Request, TrailStatus};
use crate::error::Result;
use crate::trail::record::{split_prev, split_sum};

/// A log here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Here {
    pub(crate) trails: BTreeMap<u32, HereTrail>,
    /// Trails that are known to be gone here.
    pub(crate) gone: Vec<u32>,
}

/// A trail here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HereTrail {
    /// `None` if it cannot be read.
    pub(crate) opener: Option<End>,
    /// The last line that can be read.
    pub(crate) end: Option<End>,
    /// Whether something after that line cannot be read.
    pub(crate) lost_end: bool,
}

impl Here {
    /// Returns the last line of the newest trail.
    pub(crate) fn end(&self) -> Option<End> {
        self.trails.values().next_back()?.end
    }

    fn head(&self) -> Option<u32> {
        self.trails.keys().next_back().copied()
    }
}

/// What a comparison needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Need {
    /// An answer of the replica.
    Ask(Request),
    /// The sums of lines here; see [`LocalLog::sum_at`](super::local::LocalLog::sum_at).
    Sums { trail: u32, seqs: Vec<u64> },
    /// Nothing.
    Nothing,
}

/// How a log here and at a replica differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Relation {
    /// Nothing is there.
    Absent,
    /// Nothing is to be sent, either way.
    Same,
    /// The replica has the beginning of what is here, up to there.
    Behind { head: End },
    /// What is here is the beginning of what the replica has.
    Ahead {
        /// The lines that the head here lacks: those after the first and up to the second.
        append: Option<(End, End)>,
        /// The trails that are missing here, lowest first.
        trails: Vec<TrailStatus>,
    },
    /// Both have what the other lacks.
    Diverged { common: Option<LastCommon> },
}

/// How one trail differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Differs {
    Not,
    /// More is here.
    Here,
    /// More is there.
    There,
    Both,
}

/// Compares a log with a replica.
#[derive(Debug)]
pub(crate) struct Comparison {
    log: LogKey,
    here: Here,
    status: Option<LogStatus>,
    there: Vec<TrailStatus>,
    /// The trails of `there` that were compared so far.
    compared: Vec<Differs>,
    state: State,
}

#[derive(Debug)]
enum State {
    Status,
    Trails,
    /// Looks for the end of a trail there among the lines here.
    SumHere,
    /// Looks for the end of a trail here among the lines there.
    LineThere(End),
    /// Reads lines there from the last one back, to find one that is here.
    Back {
        trail: u32,
        beyond: Option<u64>,
    },
    SumsBack {
        trail: u32,
        lines: Vec<(u64, [u8; 8])>,
        more: bool,
    },
    Done(Relation),
}

/// How many bytes are read at a time to find the last common line.
const BACK: u64 = 256 << 10;

impl Comparison {
    pub(crate) fn new(log: LogKey, here: Here) -> Self {
        Self {
            log,
            here,
            status: None,
            there: Vec::new(),
            compared: Vec::new(),
            state: State::Status,
        }
    }

    /// Begins again, with what is here.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.log.clone(), self.here.clone())
    }

    /// Returns the numbers of the trails here, lowest first.
    pub(crate) fn trails_here(&self) -> impl Iterator<Item = u32> + '_ {
        self.here.trails.keys().copied()
    }

    /// Returns the result, once nothing more is needed.
    pub(crate) fn relation(&self) -> Option<&Relation> {
        match &self.state {
            State::Done(relation) => Some(relation),
            _ => None,
        }
    }

    /// Returns the log as it was there, if it was.
    pub(crate) fn status(&self) -> Option<&LogStatus> {
        self.status.as_ref()
    }

    /// Returns the trails that are there.
    pub(crate) fn there(&self) -> &[TrailStatus] {
        &self.there
    }

    /// Returns what is needed next.
    pub(crate) fn need(&self) -> Need {
        let log = self.log.clone();
        match &self.state {
            State::Status => Need::Ask(Request::Status { log }),
            State::Trails => Need::Ask(Request::Trails { log }),
            State::SumHere => {
                let end = self.there[self.compared.len()].end;
                Need::Sums {
                    trail: end.trail,
                    seqs: vec![end.seq],
                }
            }
            State::LineThere(end) => Need::Ask(Request::Read {
                log,
                trail: end.trail,
                beyond: end.seq.checked_sub(1),
                order: Order::Forwards,
                max_bytes: 1,
            }),
            State::Back { trail, beyond } => Need::Ask(Request::Read {
                log,
                trail: *trail,
                beyond: *beyond,
                order: Order::Backwards,
                max_bytes: BACK,
            }),
            State::SumsBack { trail, lines, .. } => Need::Sums {
                trail: *trail,
                seqs: lines.iter().map(|(seq, _)| *seq).collect(),
            },
            State::Done(_) => Need::Nothing,
        }
    }

    /// Takes an answer of the replica.
    pub(crate) fn answer(&mut self, answer: Answer) -> Result<()> {
        match (&self.state, answer) {
            (_, Answer::Purged(at)) => Err(Refusal::PurgedThere(at).of(&self.log)),
            (State::Status, Answer::Absent) => {
                self.state = State::Done(Relation::Absent);
                Ok(())
            }
            (State::Status, Answer::Log(status)) => self.take_status(status),
            (State::Trails, Answer::Trails(trails)) => {
                self.there = trails;
                self.go_on();
                Ok(())
            }
            (State::LineThere(end), Answer::Lines { lines, .. }) => {
                let differs = match lines.first().is_some_and(|line| follows(*end, line)) {
                    true => self.there_is_more(*end),
                    false => Differs::Both,
                };
                self.compared.push(differs);
                self.go_on();
                Ok(())
            }
            (State::Back { trail, .. }, Answer::Lines { lines, more }) => {
                let trail = *trail;
                let lines = lines.iter().map(|line| (line.seq, line.sum)).collect();
                self.state = State::SumsBack { trail, lines, more };
                Ok(())
            }
            _ => Err(odd_answer(&self.log, "comparing")),
        }
    }

    fn take_status(&mut self, status: LogStatus) -> Result<()> {
        if let Some(at) = status.deleted_at_ms {
            return Err(Refusal::InTrashThere(at).of(&self.log));
        }
        let end_here = self.here.end();
        self.state = match status.head {
            None => State::Done(Relation::Absent),
            head if head == end_here => State::Done(Relation::Same),
            Some(_) => State::Trails,
        };
        self.status = Some(status);
        Ok(())
    }

    /// Takes the sums of lines here.
    pub(crate) fn sums(&mut self, sums: &[Option<[u8; 8]>]) {
        match &self.state {
            State::SumHere => {
                let end = self.there[self.compared.len()].end;
                self.compared
                    .push(match sums.first() == Some(&Some(end.sum)) {
                        true => Differs::Here,
                        false => Differs::Both,
                    });
                self.go_on();
            }
            State::SumsBack { trail, lines, more } => {
                let trail = *trail;
                let mut pairs = lines.iter().zip(sums);
                let common = pairs.find(|((_, there), here)| **here == Some(*there));
                let oldest = lines.last().map(|(seq, _)| *seq);
                self.state = match (common, more) {
                    (Some(((seq, _), _)), _) => diverged_after(trail, *seq),
                    (None, true) => State::Back {
                        trail,
                        beyond: oldest,
                    },
                    (None, false) => self.diverged_at_opener(trail),
                };
            }
            _ => {}
        }
    }

    fn diverged_at_opener(&self, trail: u32) -> State {
        let opener = self.here.trails.get(&trail).and_then(|it| it.opener);
        diverged_after(trail, opener.map_or(0, |opener| opener.seq))
    }

    /// Compares the next trail, or decides.
    fn go_on(&mut self) {
        while let Some(there) = self.there.get(self.compared.len()) {
            let end = there.end;
            let here = self.here.trails.get(&end.trail);
            let Some(here) = here.and_then(|here| here.end) else {
                let differs = self.missing_here(end.trail);
                self.compared.push(differs);
                continue;
            };
            if here == end {
                self.compared.push(Differs::Not);
            } else if end.seq <= here.seq {
                self.state = State::SumHere;
                return;
            } else if here.seq == there.opener.seq {
                let differs = match here.sum == there.opener.sum {
                    true => self.there_is_more(here),
                    false => Differs::Both,
                };
                self.compared.push(differs);
            } else {
                self.state = State::LineThere(here);
                return;
            }
        }
        self.decide();
    }

    /// Returns what it means that a trail there is not here, or unreadable.
    fn missing_here(&self, trail: u32) -> Differs {
        let is_new = self.here.head().is_none_or(|head| trail > head);
        match is_new && !self.here.gone.contains(&trail) {
            true => Differs::There,
            false => Differs::Not,
        }
    }

    /// Returns what it means that a trail continues there after its end here.
    fn there_is_more(&self, end: End) -> Differs {
        let lost_end = self.here.trails[&end.trail].lost_end;
        match self.here.head() == Some(end.trail) {
            true => Differs::There,
            // Only the head grows: what is missing here was lost, or never was here.
            false if lost_end => Differs::Not,
            false => Differs::Both,
        }
    }

    fn decide(&mut self) {
        let head = self.there.last().map(|trail| trail.end);
        let (Some(head), Some(head_here)) = (head, self.here.head()) else {
            self.state = State::Done(match head {
                None => Relation::Absent,
                Some(_) => self.ahead(),
            });
            return;
        };
        let last = self.compared.last();
        let more_here = head_here > head.trail || last == Some(&Differs::Here);
        let more_there = self.compared.contains(&Differs::There);
        self.state = match (more_here, more_there) {
            _ if self.compared.contains(&Differs::Both) => self.find_common(),
            (true, true) => self.find_common(),
            (true, false) => State::Done(Relation::Behind { head }),
            // Lines that are only here, in a trail that no longer grows there.
            (false, true) if self.compared.contains(&Differs::Here) => self.find_common(),
            (false, true) => State::Done(self.ahead()),
            (false, false) => State::Done(Relation::Same),
        };
    }

    fn ahead(&self) -> Relation {
        let mut append = None;
        let mut trails = Vec::new();
        for (there, differs) in self.there.iter().zip(&self.compared) {
            if *differs != Differs::There {
                continue;
            }
            match self.here.trails.get(&there.end.trail).and_then(|it| it.end) {
                Some(here) => append = Some((here, there.end)),
                None => trails.push(there.clone()),
            }
        }
        Relation::Ahead { append, trails }
    }

    /// Looks for the last common line, in the highest trail that began alike.
    fn find_common(&self) -> State {
        let alike = |there: &&TrailStatus| {
            let here = self.here.trails.get(&there.end.trail);
            let opener = here.and_then(|here| here.opener);
            opener.is_some_and(|opener| opener.sum == there.opener.sum)
        };
        match self.there.iter().rev().find(alike) {
            Some(there) => State::Back {
                trail: there.end.trail,
                beyond: None,
            },
            None => State::Done(Relation::Diverged { common: None }),
        }
    }
}

fn diverged_after(trail: u32, seq: u64) -> State {
    let common = Some(LastCommon { trail, seq });
    State::Done(Relation::Diverged { common })
}

/// Returns whether a line there is the line of this end, or comes right after it.
fn follows(end: End, line: &Line) -> bool {
    if line.seq == end.seq {
        return line.sum == end.sum;
    }
    let covered = split_sum(&line.bytes).map(|(covered, _)| covered);
    let prev = covered.and_then(split_prev).map(|(_, prev)| prev);
    prev.is_some_and(|prev| prev.to_bytes() == end.sum)
}
