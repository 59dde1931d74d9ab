//! Lists the trails and their lengths.
//!
//! Every query begins with this, so it does as little as possible: one `stat` per trail.
//! A session's directory is only listed if its own time says that something was added or
//! removed. A recent change may not show in that time, so such a directory is always
//! listed.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use backtrail::plumbing::LinkRefused;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::files::{entries_in, open_dir};

/// A directory of trails: a session's or a workspace's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrailDir {
    /// The name of the directory, which is the id.
    pub(crate) id: String,
    /// When names in it last changed; 0 if that is too recent to be reliable.
    pub(crate) settled: i64,
    /// Its trails by number.
    pub(crate) trails: Vec<TrailFile>,
    /// The reason why it could not be read.
    pub(crate) error: Option<String>,
}

impl TrailDir {
    /// Returns whether nothing changed since it was last read.
    pub(crate) fn is_as_known(&self, known: &[KnownTrail]) -> bool {
        known.iter().map(|known| &known.seen).eq(&self.trails)
    }

    /// Returns whether all trails that were read are still there, as far as they were read.
    /// `has` looks into a trail that changed.
    pub(crate) fn continues(
        &self,
        known: &[KnownTrail],
        has: impl Fn(&KnownTrail) -> backtrail::Result<bool>,
    ) -> bool {
        known.iter().all(|known| {
            let mut trails = self.trails.iter();
            let now = trails.find(|trail| trail.number == known.seen.number);
            now.is_some_and(|now| {
                let is_long_enough = now.bytes >= known.read_to;
                *now == known.seen || (is_long_enough && has(known).unwrap_or(false))
            })
        })
    }

    /// Returns the trails that are new or have grown, and where to continue reading them.
    pub(crate) fn unread(&self, known: &[KnownTrail]) -> impl Iterator<Item = (&TrailFile, u64)> {
        self.trails.iter().filter_map(|trail| {
            match known.iter().find(|known| known.seen.number == trail.number) {
                Some(known) if known.seen == *trail => None,
                Some(known) => Some((trail, known.read_to)),
                None => Some((trail, 0)),
            }
        })
    }
}

/// A trail's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrailFile {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub(crate) modified: i64,
}

/// A trail as it was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownTrail {
    pub(crate) seen: TrailFile,
    /// The byte after the last record that was read.
    pub(crate) read_to: u64,
    /// The sum of that record.
    pub(crate) sum: [u8; 8],
}

/// A directory of trails as it was last read.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownDir {
    /// When names in it last changed; 0 if unknown.
    pub(crate) settled: i64,
    /// Its trails by number.
    pub(crate) trails: Vec<KnownTrail>,
}

/// The sessions or workspaces as they were last read, by id.
pub(crate) type KnownDirs = HashMap<String, KnownDir>;

/// How old a directory's time must be to be reliable: more than the clock differences of
/// file systems, some of which count in seconds.
const RECENT: i64 = 2_000_000_000;

/// Lists all directories of trails in a directory by id. A directory without trails does
/// not count.
pub(crate) fn list_trail_dirs(dir: &Path, known: &KnownDirs) -> Result<Vec<TrailDir>> {
    let failed = |error| Error::io("cannot list", dir, error);
    let top = match open_dir(dir) {
        Ok(top) => top,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let listed = top.try_clone().map_err(failed)?;
    let names = entries_in(listed).map_err(|error| failed(error.into()))?;
    let names = names.into_iter().map(|(name, _)| name);
    let ids: Vec<String> = names.filter(|name| is_id(name)).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos() as i64);
    let look = |id: &String| look(dir, &top, id, known.get(id), now);
    let mut seen = in_parallel(&ids, &look);
    seen.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    seen.retain(|seen| !seen.trails.is_empty() || seen.error.is_some());
    Ok(seen)
}

fn trail_name(number: u32) -> String {
    format!("{number:04}.jsonl")
}

/// Returns the number of the trail with this file name.
fn trail_number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".jsonl")?;
    let is_number = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number)?;
    (trail_name(number) == name).then_some(number)
}

/// Returns whether a name can be an id; other names are ignored.
fn is_id(name: &str) -> bool {
    name.parse::<backtrail::SessionId>().is_ok()
}

/// Inspects all directories, a part of them on each core.
fn in_parallel(ids: &[String], look: &(impl Fn(&String) -> TrailDir + Sync)) -> Vec<TrailDir> {
    /// Fewer than this are done before another thread has started.
    const WORTH: usize = 512;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(4).min(ids.len().div_ceil(WORTH)).max(1);
    if threads == 1 {
        return ids.iter().map(look).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut seen = Vec::with_capacity(ids.len() / threads);
        loop {
            let from = next.fetch_add(WORTH / 4, Ordering::Relaxed);
            let Some(rest) = ids.get(from..).filter(|rest| !rest.is_empty()) else {
                return seen;
            };
            seen.extend(rest.iter().take(WORTH / 4).map(look));
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut seen = work();
        for other in others {
            match other.join() {
                Ok(more) => seen.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        seen
    })
}

fn look(
    dir: &Path,
    top: &impl std::os::fd::AsFd,
    id: &str,
    known: Option<&KnownDir>,
    now: i64,
) -> TrailDir {
    let mut seen = TrailDir {
        id: id.to_owned(),
        settled: 0,
        trails: Vec::new(),
        error: None,
    };
    seen.error = match look_into(top, &mut seen, known, now) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => None,
        Err(Errno::LOOP) => Some(LinkRefused::at(&dir.join(id)).to_string()),
        Err(error) => Some(io::Error::from(error).to_string()),
    };
    seen
}

fn look_into(
    top: &impl std::os::fd::AsFd,
    seen: &mut TrailDir,
    known: Option<&KnownDir>,
    now: i64,
) -> Result<(), Errno> {
    let dir = statat(top, seen.id.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(dir.st_mode).is_symlink() {
        return Err(Errno::LOOP);
    }
    let changed = nanos(dir.st_mtime, dir.st_mtime_nsec as i64);
    if changed < now.saturating_sub(RECENT) {
        seen.settled = changed;
    }
    let numbers: Vec<u32> = match known {
        Some(known) if known.settled == changed => {
            known.trails.iter().map(|it| it.seen.number).collect()
        }
        _ => list_trails(top, &seen.id)?,
    };
    let mut path = String::with_capacity(seen.id.len() + 16);
    for number in numbers {
        path.clear();
        path.push_str(&seen.id);
        path.push('/');
        path.push_str(&trail_name(number));
        match statat(top, path.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => seen.trails.push(TrailFile {
                number,
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                modified: nanos(stat.st_mtime, stat.st_mtime_nsec as i64),
            }),
            // It was removed meanwhile.
            Err(Errno::NOENT) => seen.settled = 0,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn list_trails(top: &impl std::os::fd::AsFd, id: &str) -> Result<Vec<u32>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(top, id, flags, Mode::empty())?;
    let names = entries_in(dir)?;
    let numbers = names.iter().filter_map(|(name, _)| trail_number(name));
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}
