//! Decides how each name in a directory is handled.

use std::ffi::CStr;
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::super::entry::{Kind, LeftOut, LeftOutReason};
use super::super::walk::MAX_DEPTH;
use super::cache::{self, Known, What};
use super::rules::{Rules, Verdict};
use super::sys::{self, Horizon, Seen, Stamp};
use super::walk::Jobs;
use crate::error::Result;
use crate::objects::ObjectId;

/// The prefix of temporary names that a restore uses; scans ignore them.
pub(crate) const STAGING: &[u8] = b".backtrail-staging-";

/// A name in a directory that differs from the cache.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: Box<CStr>,
    pub(super) verdict: Verdict,
    pub(super) state: State,
}

/// The state of a name.
#[derive(Debug)]
pub(super) enum State {
    /// The number of the directory in this scan.
    Dir(u32),
    File {
        stamp: Stamp,
        racy: bool,
        content: ObjectId,
    },
    Link {
        stamp: Stamp,
        racy: bool,
        target: Box<[u8]>,
    },
    LeftOut(LeftOut),
    /// A file of this length that must be read.
    Unread(u64),
    /// It disappeared during the scan.
    Gone,
}

/// The result of inspecting a name.
pub(super) enum Looked {
    /// Everything the cache has about it is still true.
    Same,
    /// A directory, with its number in this scan.
    Dir(Verdict, u32),
    Other(Verdict, State),
}

impl State {
    /// Creates the state from the cache; `dir` is the number of a directory that this
    /// scan walks.
    pub(super) fn known(known: &Known<'_>, dir: Option<u32>) -> Self {
        match (known.what, dir) {
            (_, Some(dir)) => Self::Dir(dir),
            // Every cached directory is walked, so it has a number.
            (What::Dir(_), None) => Self::Gone,
            (What::File { stamp, content }, None) => Self::File {
                stamp,
                racy: known.racy,
                content,
            },
            (What::Link { stamp, target }, None) => Self::Link {
                stamp,
                racy: known.racy,
                target: target.into(),
            },
            (What::LeftOut(left_out), None) => Self::LeftOut(left_out),
        }
    }

    pub(super) fn left_out(reason: LeftOutReason, kind: Kind, size: u64) -> Self {
        Self::LeftOut(LeftOut { reason, kind, size })
    }
}

/// The sizes that decide what is captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Larger files are skipped.
    pub(super) cap: u64,
    /// Larger ignored files are skipped.
    pub(super) small_ignored: u64,
}

impl Sizes {
    /// Returns the reason for skipping something that is not a directory, if there is
    /// one.
    pub(super) fn refuse(self, verdict: Verdict, seen: &Seen) -> Option<LeftOutReason> {
        match (seen.kind, verdict) {
            (Kind::File | Kind::Link, Verdict::Excluded | Verdict::Inside) => {
                Some(LeftOutReason::Ignored)
            }
            (Kind::Link, _) => None,
            (Kind::File, Verdict::Ignored) if seen.len() > self.small_ignored => {
                Some(LeftOutReason::Ignored)
            }
            (Kind::File, _) if seen.len() > self.cap => Some(LeftOutReason::TooLarge),
            (Kind::File, _) => None,
            _ => Some(LeftOutReason::Special),
        }
    }
}

/// A directory that is being inspected.
pub(super) struct Here<'a> {
    pub(super) fd: &'a OwnedFd,
    pub(super) path: &'a [u8],
    /// How many directories it is nested in.
    pub(super) depth: usize,
    pub(super) rules: &'a Arc<Rules>,
    /// Whether the cached verdicts were decided by the same rules.
    pub(super) verdicts_hold: bool,
    /// Whether captured entries stay captured.
    pub(super) keep: bool,
    /// Whether everything is captured regardless of rules.
    pub(super) all: bool,
    pub(super) sizes: Sizes,
    pub(super) horizon: Horizon,
}

impl Here<'_> {
    /// Inspects one name. `hint` is its kind, if the directory listing has it.
    pub(super) fn look(
        &self,
        name: &CStr,
        known: Option<&Known<'_>>,
        hint: Option<Kind>,
        jobs: &mut Jobs<'_>,
    ) -> Result<Looked> {
        if name == c".git" {
            return Ok(self.git(name, known, hint));
        }
        if name.to_bytes().starts_with(STAGING) && self.all {
            let state = State::left_out(LeftOutReason::Special, hint.unwrap_or(Kind::Dir), 0);
            return Ok(Looked::Other(Verdict::Kept, state));
        }
        if name.to_bytes().starts_with(STAGING) {
            return Ok(Looked::Other(Verdict::Plain, State::Gone));
        }
        let walked = known.is_some_and(Known::is_walked);
        if hint == Some(Kind::Dir) || (hint.is_none() && walked) {
            return Ok(self.dir(name, known, jobs));
        }
        match sys::seen_at(self.fd, name) {
            Ok(seen) if seen.kind == Kind::Dir => Ok(self.dir(name, known, jobs)),
            Ok(seen) => self.file(name, known, &seen),
            Err(Errno::NOENT) => Ok(Looked::Other(Verdict::Plain, State::Gone)),
            Err(error) if sys::is_fatal(error) => Err(jobs.fatal(self.path, name, error)),
            Err(_) => {
                let kind = hint.unwrap_or(Kind::File);
                let state = State::left_out(LeftOutReason::Unreadable, kind, 0);
                Ok(Looked::Other(Verdict::Plain, state))
            }
        }
    }

    /// Handles `.git`: it is recorded but never opened. Its length says nothing about the
    /// workspace.
    fn git(&self, name: &CStr, known: Option<&Known<'_>>, hint: Option<Kind>) -> Looked {
        let kind = hint.or_else(|| match known?.what {
            What::LeftOut(left_out) => Some(left_out.kind),
            _ => None,
        });
        let kind = kind.or_else(|| sys::seen_at(self.fd, name).ok().map(|seen| seen.kind));
        match kind {
            Some(kind) => {
                let state = State::left_out(LeftOutReason::Git, kind, 0);
                same_or(known, Verdict::Plain, state)
            }
            None => Looked::Other(Verdict::Plain, State::Gone),
        }
    }

    fn dir(&self, name: &CStr, known: Option<&Known<'_>>, jobs: &mut Jobs<'_>) -> Looked {
        let record = known.and_then(|known| match known.what {
            What::Dir(record) => Some(record),
            _ => None,
        });
        let verdict = self.verdict(name, known, true);
        let verdict = match record {
            Some(_) if self.keep => verdict.keep(),
            _ => verdict,
        };
        match verdict {
            Verdict::Plain | Verdict::Kept if self.depth + 1 >= MAX_DEPTH => {
                let state = State::left_out(LeftOutReason::TooDeep, Kind::Dir, 0);
                same_or(known, verdict.by_rules(), state)
            }
            Verdict::Plain | Verdict::Kept => {
                let number = jobs.add((self.path, name), record, self.rules, verdict);
                Looked::Dir(verdict, number)
            }
            verdict => {
                let state = State::left_out(LeftOutReason::Ignored, Kind::Dir, 0);
                same_or(known, verdict, state)
            }
        }
    }

    fn file(&self, name: &CStr, known: Option<&Known<'_>>, seen: &Seen) -> Result<Looked> {
        // For special files only the kind matters.
        let verdict = match seen.kind {
            Kind::File | Kind::Link => self.verdict(name, known, false),
            _ => Verdict::Plain,
        };
        let verdict = match known {
            Some(known) if self.keep && known.is_captured() => verdict.keep(),
            _ => verdict,
        };
        if let Some(reason) = self.sizes.refuse(verdict, seen) {
            let state = State::left_out(reason, seen.kind, seen.len());
            return Ok(same_or(known, verdict, state));
        }
        if let Some(known) = known.filter(|known| !known.racy) {
            let kept = match known.what {
                What::File { stamp, .. } => seen.kind == Kind::File && stamp == seen.stamp,
                What::Link { stamp, .. } => seen.kind == Kind::Link && stamp == seen.stamp,
                _ => false,
            };
            if kept && known.verdict == verdict.by_rules() {
                return Ok(Looked::Same);
            }
            if kept {
                return Ok(Looked::Other(verdict, State::known(known, None)));
            }
        }
        let state = match seen.kind {
            Kind::Link => self.link(name, seen),
            _ => State::Unread(seen.len()),
        };
        Ok(Looked::Other(verdict, state))
    }

    fn link(&self, name: &CStr, seen: &Seen) -> State {
        match sys::link_target(self.fd, name) {
            Ok(target) => State::Link {
                stamp: seen.stamp,
                racy: seen.is_racy(self.horizon),
                target,
            },
            Err(Errno::NOENT) => State::Gone,
            // Something replaced it; the next scan will see that the directory changed.
            Err(Errno::INVAL) => State::left_out(LeftOutReason::Unstable, Kind::Link, 0),
            Err(_) => State::left_out(LeftOutReason::Unreadable, Kind::Link, 0),
        }
    }

    fn verdict(&self, name: &CStr, known: Option<&Known<'_>>, is_dir: bool) -> Verdict {
        if self.all {
            return Verdict::Kept;
        }
        match known.filter(|known| self.verdicts_hold && known.is_dir() == is_dir) {
            Some(known) => known.verdict,
            None => self.rules.verdict(self.path, name.to_bytes(), is_dir),
        }
    }
}

/// Returns `Same` if the cache has the same skipped state.
fn same_or(known: Option<&Known<'_>>, verdict: Verdict, state: State) -> Looked {
    let same = match (known.map(|known| (known.verdict, known.what)), &state) {
        (Some((was, What::LeftOut(before))), State::LeftOut(now)) => {
            was == verdict && before == *now && !cache::is_walked(&before)
        }
        _ => false,
    };
    if same {
        Looked::Same
    } else {
        Looked::Other(verdict, state)
    }
}
