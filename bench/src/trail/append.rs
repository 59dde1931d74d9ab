//! One thread that appends without syncing, compared with a bare `write` and with what
//! programs without an engine do.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::{Clock, Durability, Message, OsRandomness, Randomness, Store, SystemClock};
use serde_json::json;

use super::durable::RawLog;
use super::fixture;
use crate::Result;
use crate::args::Args;
use crate::measure::{interleave, time};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

/// The number of records in a round: few enough to stay in the cache.
const ROUND: usize = 1000;

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let store = Store::open_or_create(dir.join("store"))?;
    let messages = fixture::messages(ROUND, fixture::around(&store)?);
    let session = fixture::session(&store, Durability::Os)?;
    let mut raw = RawLog::create(&dir.join("raw"))?;
    let naive = NaiveLog {
        path: dir.join("naive"),
        seq: Cell::new(0),
    };
    let mut ours = || {
        let messages = messages.clone();
        time(|| {
            messages
                .into_iter()
                .try_for_each(|message| Ok(session.append(message).map(drop)?))
        })
    };
    let mut bare = || time(|| (0..ROUND).try_for_each(|_| raw.append()));
    let mut naive = || {
        let messages = messages.clone();
        time(|| {
            messages
                .iter()
                .try_for_each(|message| naive.append(message))
        })
    };
    let rounds = args.pick(300, 80);
    let times = interleave(rounds, [&mut ours, &mut bare, &mut naive])?;
    let [ours, bare, naive] = times.map(|samples| samples.map(|round| round / ROUND as f64));
    session.close()?;

    let figure = |name: &str, ours, baseline, goal| {
        Entry::Figure(Figure {
            name: name.to_owned(),
            ours,
            baseline: Some(baseline),
            goal,
        })
    };
    let median = |samples| Quantity::of(samples, Unit::Seconds);
    let bare_median = ("write, held fd", median(&bare));
    let bare_mean = ("write, held fd", mean(&bare));
    let naive = ("open, write, write", median(&naive));
    Ok(vec![
        figure(
            "append, OS mode, 1 KiB",
            median(&ours),
            bare_median,
            Goal::CostAtMost(4.0),
        ),
        figure(
            "append, OS mode, 1 KiB",
            median(&ours),
            naive,
            Goal::SpeedAtLeast(1.5),
        ),
        // Rotation syncs 64 MiB in one of 65 rounds, which a median hides.
        figure(
            "append, OS mode, mean with rotations",
            mean(&ours),
            bare_mean,
            Goal::Open,
        ),
    ])
}

fn mean(samples: &crate::measure::Samples) -> Quantity {
    Quantity::single(samples.mean(), Unit::Seconds)
}

/// A log as it is often written: the record is built as a JSON value, the file is opened
/// for every record, and the line and its newline are two writes. The record has the same
/// fields except for `prev` and `sum`.
struct NaiveLog {
    path: PathBuf,
    seq: Cell<u64>,
}

impl NaiveLog {
    fn append(&self, message: &Message) -> Result<()> {
        let mut id = [0; 16];
        OsRandomness.fill(&mut id)?;
        self.seq.set(self.seq.get() + 1);
        let record = json!({
            "type": "message",
            "seq": self.seq.get(),
            "at": SystemClock.now(),
            "id": uuid::Builder::from_random_bytes(id).into_uuid(),
            "message": message,
        });
        let line = serde_json::to_string(&record)?;
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        file.write_all(line.as_bytes())?;
        Ok(file.write_all(b"\n")?)
    }
}
