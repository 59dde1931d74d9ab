//! Fork, rewind and undo in a long history and in a short one, with the real disk and as
//! if syncs took no time.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::{Draft, Durability, ForkOptions, Message, Session, Store, StoreOptions};

use super::storage::{CountedStorage, SyncCount, Syncs};
use crate::Result;
use crate::args::Args;
use crate::measure::{interleave, time};
use crate::parts::settle;
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::trail::fixture;

/// The limit for a move without its syncs, in seconds.
const BESIDE_SYNCS: f64 = 5e-3;

#[derive(Debug, Clone, Copy)]
enum What {
    Fork,
    Rewind,
    Undo,
}

impl What {
    const ALL: [Self; 3] = [Self::Fork, Self::Rewind, Self::Undo];

    fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Rewind => "rewind to the middle",
            Self::Undo => "undo of that",
        }
    }
}

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let short = make(&dir.join("short"), 1_000)?;
    let long = make(&dir.join("long"), args.pick(1_000_000, 100_000))?;
    settle(dir)?;
    let mut entries = Vec::new();
    for what in What::ALL {
        entries.extend(without_syncs(args, what, &long, &short)?);
    }
    for what in What::ALL {
        entries.push(with_syncs(args, what, &long, dir)?);
    }
    Ok(entries)
}

/// A session of many short records.
struct Long {
    store: PathBuf,
    records: u64,
}

fn make(store: &Path, records: u64) -> Result<Long> {
    const BATCH: u64 = 1000;
    let session = fixture::session(&Store::open_or_create(store)?, Durability::Os)?;
    let drafts: Vec<Draft> = (0..BATCH as usize)
        .map(|n| Message::user_text(fixture::text(80, n)).into())
        .collect();
    for _ in 0..records / BATCH {
        for result in session.append_batch(drafts.iter().cloned()) {
            result?;
        }
    }
    session.close()?;
    Ok(Long {
        store: store.to_owned(),
        records,
    })
}

/// An open session.
struct Subject {
    session: Session,
    watched: CountedStorage,
    middle: u64,
}

impl Subject {
    fn open(long: &Long, syncs: Syncs) -> Result<Self> {
        let watched = CountedStorage::new(syncs);
        let store = StoreOptions::new()
            .storage(watched.clone())
            .open(&long.store)?;
        // Forks are sessions too, without records of their own.
        for id in store.sessions()? {
            let info = store.read_session(&id)?.info()?;
            if info.forked_from.is_none() {
                return Ok(Self {
                    session: store.open_session(&id)?,
                    watched,
                    middle: long.records / 2,
                });
            }
        }
        Err("the session is not there".into())
    }

    /// Performs the move once and leaves the session where it was; returns its time and
    /// number of syncs.
    fn once(&self, what: What) -> Result<(Duration, SyncCount)> {
        if matches!(what, What::Undo) {
            self.rewind()?;
        }
        self.watched.take_count();
        let took = match what {
            What::Fork => time(|| Ok(self.session.fork(&ForkOptions::new()).map(drop)?)),
            What::Rewind => time(|| self.rewind()),
            What::Undo => time(|| self.undo()),
        }?;
        let count = self.watched.take_count();
        if matches!(what, What::Rewind) {
            self.undo()?;
        }
        Ok((took, count))
    }

    fn rewind(&self) -> Result<()> {
        let moved = self.session.rewind_chat(self.middle)?;
        moved.map(drop).ok_or_else(|| "nothing was rewound".into())
    }

    fn undo(&self) -> Result<()> {
        let moved = self.session.undo()?;
        match moved {
            Some(moved)
                if moved
                    .chat
                    .as_ref()
                    .is_some_and(|chat| chat.to >= 2 * self.middle) =>
            {
                Ok(())
            }
            other => Err(format!("undo went to {other:?}").into()),
        }
    }
}

fn without_syncs(args: &Args, what: What, long: &Long, short: &Long) -> Result<[Entry; 2]> {
    let in_long = Subject::open(long, Syncs::Skipped)?;
    let in_short = Subject::open(short, Syncs::Skipped)?;
    let lane = |subject: Subject| move || Ok(subject.once(what)?.0);
    let (mut in_long, mut in_short) = (lane(in_long), lane(in_short));
    let [ours, theirs] = interleave(args.pick(200, 40), [&mut in_long, &mut in_short])?;
    let figure = |goal| {
        Entry::Figure(Figure {
            name: format!("{}, {} records, no syncs", what.name(), long.records),
            ours: Quantity::of(&ours, Unit::Seconds),
            baseline: Some(("1000 records", Quantity::of(&theirs, Unit::Seconds))),
            goal,
        })
    };
    Ok([
        figure(Goal::AtMost(BESIDE_SYNCS)),
        figure(Goal::CostAtMost(1.5)),
    ])
}

fn with_syncs(args: &Args, what: What, long: &Long, dir: &Path) -> Result<Entry> {
    let subject = Subject::open(long, Syncs::Made)?;
    let (_, count) = subject.once(what)?;
    let floor_dir = dir.join(what.name().replace(' ', "-"));
    fs::create_dir(&floor_dir)?;
    let mut ours = || Ok(subject.once(what)?.0);
    let mut made = 0;
    let mut floor = || {
        made += 1;
        time(|| sync_so_often(&floor_dir, made, count))
    };
    let [ours, floor] = interleave(args.pick(60, 15), [&mut ours, &mut floor])?;
    let SyncCount { of_files, of_dirs } = count;
    Ok(Entry::Figure(Figure {
        name: format!(
            "{}, {} records, {of_files}+{of_dirs} syncs",
            what.name(),
            long.records
        ),
        ours: Quantity::of(&ours, Unit::Seconds),
        goal: Goal::AtMost(floor.median() + BESIDE_SYNCS),
        baseline: Some((
            "a new file, as often synced",
            Quantity::of(&floor, Unit::Seconds),
        )),
    }))
}

/// Writes a file of an opener's length and syncs as often as a move does: the file, then
/// its directory.
fn sync_so_often(dir: &Path, n: u64, count: SyncCount) -> Result<()> {
    let mut file = File::create_new(dir.join(n.to_string()))?;
    for _ in 0..count.of_files {
        file.write_all(&[b'x'; 512])?;
        file.sync_data()?;
    }
    for _ in 0..count.of_dirs {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_come_back_to_where_they_began_and_count_their_syncs() {
        let dir = tempfile::tempdir().unwrap();
        let long = make(&dir.path().join("s"), 1000).unwrap();
        let subject = Subject::open(&long, Syncs::Skipped).unwrap();
        for what in What::ALL {
            let (_, count) = subject.once(what).unwrap();
            assert!(
                count.of_files > 0 && count.of_dirs > 0,
                "{what:?} {count:?}"
            );
            assert_eq!(subject.session.last_seq(), 1000, "{what:?}");
        }
        drop(subject);
        let again = Subject::open(&long, Syncs::Made).unwrap();
        assert_eq!(again.session.last_seq(), 1000);
    }
}
