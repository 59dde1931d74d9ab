//! Builds the snapshot from the walk: listings from the bottom up, and the next cache.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::super::entry::{Dir, Entry, Kind, LeftOut, LeftOutReason, Node, Totals};
use super::super::node::write_listing;
use super::cache::{Head, Known, StatCache, What, Writer};
use super::look::{Item, State};
use super::rules::Verdict;
use super::walk::{Changed, Found, Walked, join, replay};
use crate::error::Result;
use crate::objects::ObjectId;

/// How many skipped entries are listed by name.
const TOLD: usize = 10;

/// Stores a node.
pub(super) type Put<'a> = dyn FnMut(&[u8]) -> Result<ObjectId> + 'a;

/// The result for all directories.
pub(super) struct Built {
    pub(super) root: Dir,
    /// Whether the cache has the same root, so that it is stored already.
    pub(super) same: bool,
    pub(super) left_out: Vec<(PathBuf, LeftOut)>,
    /// Whether nothing that was inspected was skipped.
    pub(super) whole: bool,
    pub(super) cache: Option<StatCache>,
}

/// The result for one directory.
enum Outcome {
    /// A directory, with the numbers of the directories in it.
    Dir {
        dir: Dir,
        subdirs: Vec<u32>,
        record: Recorded,
        /// Whether the cache has the same.
        same: bool,
    },
    /// Something else, or nothing.
    Other(Option<Item>),
}

/// A directory's bytes in the next cache.
enum Recorded {
    /// The same as in the last cache.
    As(u32),
    New(Vec<u8>),
}

/// Builds the listings of all directories, which must come before those in them. Returns
/// `None` if the root is no longer a directory.
pub(super) fn build(
    dirs: Vec<Walked>,
    old: &StatCache,
    device: u64,
    put: &mut Put<'_>,
) -> Result<Option<Built>> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    outcomes.resize_with(dirs.len(), || Outcome::Other(None));
    let mut left_out = Told::default();
    for (number, walked) in dirs.into_iter().enumerate().rev() {
        let builder = Builder {
            old,
            outcomes: &outcomes,
            left_out: &mut left_out,
        };
        outcomes[number] = builder.dir(walked, put)?;
    }
    let Some(Outcome::Dir { dir, same, .. }) = outcomes.first() else {
        return Ok(None);
    };
    Ok(Some(Built {
        root: *dir,
        same: *same,
        whole: !left_out.any,
        left_out: left_out.finish(),
        cache: next_cache(&outcomes, old, device),
    }))
}

struct Builder<'a> {
    old: &'a StatCache,
    /// The outcomes of the directories below, which are complete.
    outcomes: &'a [Outcome],
    left_out: &'a mut Told,
}

impl Builder<'_> {
    fn dir(mut self, walked: Walked, put: &mut Put<'_>) -> Result<Outcome> {
        let before = walked.record.and_then(|number| self.old.record(number));
        match walked.found {
            Found::Gone => Ok(Outcome::Other(None)),
            Found::Replaced(item) => Ok(Outcome::Other(Some(item))),
            Found::LeftOut(reason) => Ok(Outcome::Other(Some(Item {
                name: Box::default(),
                verdict: Verdict::Plain,
                state: State::left_out(reason, Kind::Dir, 0),
            }))),
            Found::Changed(changed) => {
                let before = before.map(|record| record.head.dir());
                self.changed(&walked.path, changed, before, put)
            }
            Found::Same(subdirs) => {
                let (Some(number), Some(record)) = (walked.record, before) else {
                    unreachable!("only what the cache knows is the same")
                };
                if self.all_same(&record, &subdirs) {
                    self.tell(&walked.path, &record, &subdirs);
                    let subdirs = self.only_dirs(subdirs);
                    return Ok(Outcome::Dir {
                        dir: record.head.dir(),
                        subdirs,
                        record: Recorded::As(number),
                        same: true,
                    });
                }
                let head = record.head;
                let changed = Changed {
                    stamp: head.stamp,
                    racy: head.racy,
                    files: head.files,
                    key: head.key,
                    items: replay(&record, u64::MAX, &subdirs),
                };
                self.changed(&walked.path, changed, Some(head.dir()), put)
            }
        }
    }

    /// Returns whether every directory below is as the cache has it.
    fn all_same(&self, record: &super::cache::Record<'_>, subdirs: &[u32]) -> bool {
        let is_same = |number: &u32| {
            let outcome = &self.outcomes[*number as usize];
            matches!(outcome, Outcome::Dir { same: true, .. })
        };
        if subdirs.iter().all(is_same) {
            return true;
        }
        let mut walked = record.entries().flatten().filter(Known::is_walked);
        subdirs.iter().all(|number| {
            let before = walked.next().map(|known| known.what);
            match (&self.outcomes[*number as usize], before) {
                (Outcome::Dir { same, .. }, Some(What::Dir(_))) => *same,
                (Outcome::Other(Some(item)), Some(What::LeftOut(before))) => {
                    matches!(item.state, State::LeftOut(now) if now == before)
                }
                _ => false,
            }
        })
    }

    fn only_dirs(&self, mut subdirs: Vec<u32>) -> Vec<u32> {
        let is_dir = |number: &u32| matches!(self.outcomes[*number as usize], Outcome::Dir { .. });
        subdirs.retain(is_dir);
        subdirs
    }

    /// Lists the skipped entries of an unchanged directory.
    fn tell(&mut self, path: &[u8], record: &super::cache::Record<'_>, subdirs: &[u32]) {
        let below: u64 = subdirs
            .iter()
            .map(|number| match &self.outcomes[*number as usize] {
                Outcome::Dir { dir, .. } => dir.totals.left_out,
                Outcome::Other(_) => 0,
            })
            .sum();
        if record.head.totals.left_out == below {
            return;
        }
        for known in record.entries().flatten() {
            if let What::LeftOut(left_out) = known.what {
                self.left_out.add(path, known.name.to_bytes(), left_out);
            }
        }
    }

    fn changed(
        self,
        path: &[u8],
        changed: Changed,
        before: Option<Dir>,
        put: &mut Put<'_>,
    ) -> Result<Outcome> {
        let mut totals = Totals::default();
        let mut entries = Vec::with_capacity(changed.items.len());
        let mut known = Vec::with_capacity(changed.items.len() * 80);
        let mut subdirs = Vec::new();
        for mut item in changed.items {
            let mut below = None;
            if let State::Dir(number) = item.state {
                match &self.outcomes[number as usize] {
                    Outcome::Dir { dir, .. } => {
                        subdirs.push(number);
                        below = Some(*dir);
                    }
                    Outcome::Other(Some(now)) => item = copy(now, item),
                    Outcome::Other(None) => continue,
                }
            }
            let Some(node) = node(&item, below) else {
                continue;
            };
            if let Node::LeftOut(left_out) = node {
                self.left_out.add(path, item.name.to_bytes(), left_out);
            }
            totals.add(&node);
            write_known(&item, &mut known);
            let name = item.name.to_bytes().into();
            entries.push(Entry { name, node });
        }
        let head = Head {
            stamp: changed.stamp,
            racy: changed.racy,
            files: changed.files,
            key: changed.key,
            listing: write_listing(&entries, put)?,
            totals,
        };
        let mut record = Vec::with_capacity(known.len() + 128);
        head.write(&mut record);
        record.extend_from_slice(&known);
        Ok(Outcome::Dir {
            dir: head.dir(),
            subdirs,
            record: Recorded::New(record),
            same: before == Some(head.dir()),
        })
    }
}

/// Gives a directory's current state the name and verdict of its entry.
fn copy(now: &Item, was: Item) -> Item {
    let verdict = match &now.state {
        // The rules apply as they did before it was opened.
        State::LeftOut(left_out) if left_out.kind == Kind::Dir => was.verdict,
        _ => now.verdict,
    };
    let state = match &now.state {
        State::LeftOut(left_out) => State::LeftOut(*left_out),
        State::File {
            stamp,
            racy,
            content,
        } => State::File {
            stamp: *stamp,
            racy: *racy,
            content: *content,
        },
        State::Link {
            stamp,
            racy,
            target,
        } => State::Link {
            stamp: *stamp,
            racy: *racy,
            target: target.clone(),
        },
        State::Dir(_) | State::Unread(_) | State::Gone => State::Gone,
    };
    Item {
        name: was.name,
        verdict,
        state,
    }
}

/// Creates the entry of an item; `below` is the result for a directory.
fn node(item: &Item, below: Option<Dir>) -> Option<Node> {
    let ignored = item.verdict != Verdict::Plain;
    match &item.state {
        State::Dir(_) => below.map(Node::Dir),
        State::File { stamp, content, .. } => Some(Node::File {
            mode: stamp.mode,
            size: stamp.size,
            content: *content,
            ignored,
        }),
        State::Link { target, .. } => Some(Node::Link {
            target: target.clone(),
            ignored,
        }),
        State::LeftOut(left_out) => Some(Node::LeftOut(*left_out)),
        State::Unread(_) | State::Gone => None,
    }
}

/// Writes the cache entry of an item.
fn write_known(item: &Item, out: &mut Vec<u8>) {
    let (racy, what) = match &item.state {
        State::Dir(_) => (false, What::Dir(0)),
        State::File {
            stamp,
            racy,
            content,
        } => (
            *racy,
            What::File {
                stamp: *stamp,
                content: *content,
            },
        ),
        State::Link {
            stamp,
            racy,
            target,
        } => (
            *racy,
            What::Link {
                stamp: *stamp,
                target,
            },
        ),
        State::LeftOut(left_out) => (false, What::LeftOut(*left_out)),
        State::Unread(_) | State::Gone => return,
    };
    let known = Known {
        name: &item.name,
        verdict: item.verdict,
        racy,
        what,
    };
    known.write(out);
}

/// Assembles the next cache; `None` if it would be the same.
fn next_cache(outcomes: &[Outcome], old: &StatCache, device: u64) -> Option<StatCache> {
    let is_new = |outcome: &Outcome| {
        let recorded = |record: &Recorded| matches!(record, Recorded::New(_));
        matches!(outcome, Outcome::Dir { record, .. } if recorded(record))
    };
    if !outcomes.iter().any(is_new) {
        return None;
    }
    let mut writer = Writer::default();
    let mut line = VecDeque::from([0_u32]);
    let mut next = 1_u32;
    while let Some(number) = line.pop_front() {
        let Outcome::Dir {
            subdirs, record, ..
        } = &outcomes[number as usize]
        else {
            return None;
        };
        let bytes = match record {
            Recorded::As(number) => old.raw(*number)?,
            Recorded::New(bytes) => bytes,
        };
        writer.add(bytes, next)?;
        next = next.checked_add(u32::try_from(subdirs.len()).ok()?)?;
        line.extend(subdirs);
    }
    writer.finish(device)
}

/// The first skipped entries, ordered by importance and then by path.
#[derive(Default)]
struct Told {
    told: Vec<(PathBuf, LeftOut)>,
    any: bool,
}

impl Told {
    fn add(&mut self, dir: &[u8], name: &[u8], left_out: LeftOut) {
        self.any = true;
        if left_out.reason == LeftOutReason::Git {
            return;
        }
        let path = PathBuf::from(OsStr::from_bytes(&join(dir, name)));
        self.told.push((path, left_out));
        if self.told.len() >= 100 * TOLD {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.told
            .sort_by(|a, b| (rank(a.1.reason), &a.0).cmp(&(rank(b.1.reason), &b.0)));
        self.told.truncate(TOLD);
    }

    fn finish(mut self) -> Vec<(PathBuf, LeftOut)> {
        self.cut();
        self.told
    }
}

/// Orders reasons by importance: what users may miss comes before what they ignored.
fn rank(reason: LeftOutReason) -> u8 {
    match reason {
        LeftOutReason::TooLarge => 0,
        LeftOutReason::Unreadable => 1,
        LeftOutReason::TooDeep => 2,
        LeftOutReason::Unstable => 3,
        LeftOutReason::Special => 4,
        LeftOutReason::OtherFileSystem => 5,
        LeftOutReason::Store => 6,
        LeftOutReason::Ignored => 7,
        LeftOutReason::Git => 8,
    }
}
