//! What is to be done about each name in a directory.

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

/// Names that a restore writes beside the place of a file are passed over.
pub(crate) const STAGING: &[u8] = b".backtrail-staging-";

/// One name in a directory that is not as the cache has it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: Box<CStr>,
    pub(super) verdict: Verdict,
    pub(super) state: State,
}

/// What became of a name.
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
    /// A file of this length, to be read.
    Unread(u64),
    /// It went away meanwhile.
    Gone,
}

/// What a look at a name tells.
pub(super) enum Looked {
    /// All that the cache knows of it holds.
    Same,
    /// A directory, with its number in this scan.
    Dir(Verdict, u32),
    Other(Verdict, State),
}

impl State {
    /// Makes the state that the cache has; `dir` is the number of a directory that
    /// this scan walks.
    pub(super) fn known(known: &Known<'_>, dir: Option<u32>) -> Self {
        match (known.what, dir) {
            (_, Some(dir)) => Self::Dir(dir),
            // Every directory that is known is walked, so it has a number.
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
    /// A larger file is left out.
    pub(super) cap: u64,
    /// A larger file that is ignored is left out.
    pub(super) small_ignored: u64,
}

impl Sizes {
    /// Returns why something that is no directory is left out, if it is.
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

/// A directory that is being looked into.
pub(super) struct Here<'a> {
    pub(super) fd: &'a OwnedFd,
    pub(super) path: &'a [u8],
    /// How many directories it is in.
    pub(super) depth: usize,
    pub(super) rules: &'a Arc<Rules>,
    /// Whether what the cache says about ignoring was decided by the same rules.
    pub(super) verdicts_hold: bool,
    /// Whether what was captured is captured again.
    pub(super) keep: bool,
    /// Whether everything is captured, whatever rules say.
    pub(super) all: bool,
    pub(super) sizes: Sizes,
    pub(super) horizon: Horizon,
}

impl Here<'_> {
    /// Looks at one name. `hint` is its kind, where the directory told.
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

    /// Git's own state: noted, and never looked into. Its length says nothing
    /// about the workspace.
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
        // Nothing but its kind matters of what can be neither read nor linked to.
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
            // Something else stands there now; the next scan sees that the
            // directory changed.
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

/// Returns that nothing changed if the cache has the same reason.
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
