//! Compares a session here with the one at a replica, line by line. It only reads.

use std::collections::HashSet;

use serde::Serialize;

use super::push::{name_of, session_key};
use super::{is_damage, while_doing};
use crate::error::Result;
use crate::ids::{ObjectId, SessionId};
use crate::message::parts::Reference;
use crate::replica::local::{LocalLog, TrailLines, is_intact, is_payload, references_in};
use crate::replica::refusal::{Refusal, odd_answer};
use crate::replica::wire::{Answer, Line, LogKey, Order, Replica, Request, TrailStatus};
use crate::store::Store;
use crate::trail::DamageReport;

/// How thoroughly payloads are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Depth {
    /// Whether the replica has them.
    #[default]
    Names,
    /// Whether the replica has them, and what it has is what their names say: all are fetched.
    Contents,
}

/// A line, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LinePlace {
    /// The trail.
    pub trail: u32,
    /// The line's number.
    pub seq: u64,
}

/// Lines: how many, and the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LinePlaces {
    count: u64,
    first: Vec<LinePlace>,
}

/// How many places are kept.
const KEPT: usize = 10_000;

impl LinePlaces {
    /// Returns how many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first of them: all, unless there are more than 10,000.
    pub fn first(&self) -> &[LinePlace] {
        &self.first
    }

    fn add(&mut self, trail: u32, seq: u64) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(LinePlace { trail, seq });
        }
    }
}

/// How a session here and at a replica differ.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ReplicaReport {
    /// How many lines are intact and the same, openers included.
    pub same: u64,
    /// The lines that are only here: not pushed yet, or lost there.
    pub only_here: LinePlaces,
    /// The lines that are only there: not pulled yet, or damaged here.
    pub only_there: LinePlaces,
    /// The lines with one number and different content.
    pub different: LinePlaces,
    /// The lines that are damaged there.
    pub damaged_there: LinePlaces,
    /// What is damaged here.
    pub damaged_here: DamageReport,
    /// How many payloads were compared.
    pub payloads: u64,
    /// The payloads that are lost or damaged here.
    pub lost_here: Vec<String>,
    /// The payloads that are lost there or, if contents were compared, damaged.
    pub lost_there: Vec<String>,
}

impl ReplicaReport {
    /// Returns whether the session is the same on both sides, whole.
    pub fn is_same(&self) -> bool {
        let lines = [
            &self.only_here,
            &self.only_there,
            &self.different,
            &self.damaged_there,
        ];
        lines.iter().all(|lines| lines.count == 0)
            && self.damaged_here.is_empty()
            && self.lost_here.is_empty()
            && self.lost_there.is_empty()
    }
}

impl Store {
    /// Compares a session with the one at a replica, line by line, and changes nothing.
    ///
    /// # Errors
    ///
    /// Fails if the session is not here or not there, or cannot be read.
    pub fn verify_replica(
        &self,
        id: &SessionId,
        replica: &dyn Replica,
        depth: Depth,
    ) -> Result<ReplicaReport> {
        let log = LocalLog::open(&self.files(id))?;
        let key = session_key(id);
        let answer = replica.ask(&Request::Trails { log: key.clone() });
        let there = match answer.map_err(while_doing("verify", id))? {
            Answer::Trails(trails) => trails,
            Answer::Absent => return Err(Refusal::NotThere.of(&key)),
            Answer::Purged(at) => return Err(Refusal::PurgedThere(at).of(&key)),
            _ => return Err(odd_answer(&key, "verifying")),
        };
        let mut check = Check {
            log: &log,
            key,
            replica,
            depth,
            seen: HashSet::new(),
            report: ReplicaReport::default(),
        };
        let mut numbers: Vec<u32> = log.here().trails.into_keys().collect();
        numbers.extend(there.iter().map(|trail| trail.end.trail));
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            let there = there.iter().find(|trail| trail.end.trail == number);
            check.trail(number, there)?;
        }
        Ok(check.report)
    }
}

struct Check<'a> {
    log: &'a LocalLog,
    key: LogKey,
    replica: &'a dyn Replica,
    depth: Depth,
    /// The payloads that were compared.
    seen: HashSet<ObjectId>,
    report: ReplicaReport,
}

/// How many bytes are read at a time.
const AT_ONCE: u64 = 1 << 20;

impl Check<'_> {
    fn trail(&mut self, trail: u32, there: Option<&TrailStatus>) -> Result<()> {
        let mut here = match self.log.here().trails.contains_key(&trail) {
            true => Some(self.log.lines(trail, None)?),
            false => None,
        };
        let mut theirs = Theirs::new(there);
        let (mut mine, mut other) = (next(&mut here)?, self.next_there(&mut theirs)?);
        loop {
            let order = match (&mine, &other) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                // The opener has the number that it continues at.
                (Some(mine), Some(other)) => mine.seq.cmp(&other.seq),
            };
            let line = match order.is_le() {
                true => mine.take(),
                false => other.take(),
            };
            let Some(line) = line else { break };
            match (order, &other) {
                (std::cmp::Ordering::Less, _) => self.report.only_here.add(trail, line.seq),
                (std::cmp::Ordering::Greater, _) => self.report.only_there.add(trail, line.seq),
                (_, Some(other)) if *other == line => self.report.same += 1,
                _ => self.report.different.add(trail, line.seq),
            }
            self.payloads(&line)?;
            if order.is_le() {
                mine = next(&mut here)?;
            }
            if order.is_ge() {
                other = self.next_there(&mut theirs)?;
            }
        }
        if let Some(here) = here {
            self.report.damaged_here.append(&mut here.into_skipped());
        }
        Ok(())
    }

    /// Returns the next intact line there.
    fn next_there(&mut self, theirs: &mut Theirs) -> Result<Option<Line>> {
        loop {
            let Some(line) = theirs.lines.pop() else {
                if !theirs.more {
                    return Ok(None);
                }
                self.read(theirs)?;
                continue;
            };
            match is_intact(&line) {
                true => return Ok(Some(line)),
                false => self.report.damaged_there.add(theirs.trail, line.seq),
            }
        }
    }

    fn read(&self, theirs: &mut Theirs) -> Result<()> {
        let answer = self.replica.ask(&Request::Read {
            log: self.key.clone(),
            trail: theirs.trail,
            beyond: theirs.beyond,
            order: Order::Forwards,
            max_bytes: AT_ONCE,
        });
        match answer.map_err(while_doing("verify", &self.key.id))? {
            Answer::Lines { mut lines, more } => {
                theirs.more = more && !lines.is_empty();
                theirs.beyond = lines.last().map(|line| line.seq).or(theirs.beyond);
                lines.reverse();
                theirs.lines = lines;
                Ok(())
            }
            _ => Err(odd_answer(&self.key, "verifying")),
        }
    }

    /// Compares the payloads that a line names.
    fn payloads(&mut self, line: &Line) -> Result<()> {
        let mut named = references_in(line);
        named.retain(|payload| self.seen.insert(payload.hash));
        if named.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = named.iter().map(name_of).collect();
        let there = self.replica.has_blobs(&self.key, &names);
        let there = there.map_err(while_doing("verify", &self.key.id))?;
        for (at, payload) in named.iter().enumerate() {
            self.report.payloads += 1;
            if !self.log.has_payload(payload)? {
                self.report.lost_here.push(payload.hash.to_string());
            }
            if there.get(at) != Some(&true) || !self.is_whole(payload)? {
                self.report.lost_there.push(payload.hash.to_string());
            }
        }
        Ok(())
    }

    fn is_whole(&self, payload: &Reference) -> Result<bool> {
        if self.depth == Depth::Names {
            return Ok(true);
        }
        match self.replica.get_blob(&self.key, name_of(payload), None) {
            Err(error) if is_damage(&error) => Ok(false),
            got => {
                let got = got.map_err(while_doing("verify", &self.key.id))?;
                Ok(got.is_some_and(|content| is_payload(payload, &content)))
            }
        }
    }
}

/// The lines of a trail there.
struct Theirs {
    trail: u32,
    /// Those that were read, the next one last.
    lines: Vec<Line>,
    beyond: Option<u64>,
    more: bool,
}

impl Theirs {
    fn new(trail: Option<&TrailStatus>) -> Self {
        Self {
            trail: trail.map_or(0, |trail| trail.end.trail),
            lines: trail
                .map(|trail| trail.opener.clone())
                .into_iter()
                .collect(),
            beyond: trail.map(|trail| trail.opener.seq),
            more: trail.is_some(),
        }
    }
}

fn next(lines: &mut Option<TrailLines>) -> Result<Option<Line>> {
    match lines {
        Some(lines) => Ok(lines.next()?.map(|line| line.line)),
        None => Ok(None),
    }
}
