//! One thread that appends without syncing, against a bare `write` and against
//! what programs without an engine do.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::{Durability, Message, Store};

use super::durable::RawLog;
use super::fixture;
use crate::Result;
use crate::args::Args;
use crate::measure::{interleave, time};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

/// How many records a round appends: few enough to stay in the cache.
const ROUND: usize = 1000;

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let store = Store::open_or_create(dir.join("store"))?;
    let messages = fixture::messages(ROUND, fixture::around(&store)?);
    let session = fixture::session(&store, Durability::Os)?;
    let mut raw = RawLog::create(&dir.join("raw"))?;
    let naive = NaiveLog(dir.join("naive"));
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

/// A log as it is often written: the file is opened for every record, and the
/// line and its newline are two writes.
struct NaiveLog(PathBuf);

impl NaiveLog {
    fn append(&self, message: &Message) -> Result<()> {
        let mut line = br#"{"type":"message","message":"#.to_vec();
        serde_json::to_writer(&mut line, message)?;
        line.push(b'}');
        let mut file = File::options().append(true).create(true).open(&self.0)?;
        file.write_all(&line)?;
        Ok(file.write_all(b"\n")?)
    }
}
