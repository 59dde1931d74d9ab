//! One durable record at a time, compared with a write and an `fdatasync` of as many
//! bytes.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use backtrail::{Durability, Store};

use super::fixture::{self, RECORD};
use crate::Result;
use crate::args::Args;
use crate::measure::{interleave, time};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let store = Store::open_or_create(dir.join("store"))?;
    let messages = fixture::messages(64, fixture::around(&store)?);
    let session = fixture::session(&store, Durability::Record)?;
    let mut raw = RawLog::create(&dir.join("raw"))?;
    let mut next = messages.iter().cycle();
    let mut ours = || {
        let message = next.next().ok_or("no message")?.clone();
        time(|| Ok(session.append(message).map(drop)?))
    };
    let mut theirs = || time(|| raw.append_durably());
    let [ours, theirs] = interleave(args.pick(2000, 300), [&mut ours, &mut theirs])?;
    session.close()?;

    let p99 = |samples: &crate::measure::Samples| {
        Quantity::single(samples.percentile(99.0), Unit::Seconds)
    };
    Ok(vec![
        Entry::Figure(Figure {
            name: "durable append, 1 KiB, median".to_owned(),
            ours: Quantity::of(&ours, Unit::Seconds),
            baseline: Some(("write + fdatasync", Quantity::of(&theirs, Unit::Seconds))),
            goal: Goal::CostAtMost(1.2),
        }),
        Entry::Figure(Figure {
            name: "durable append, 1 KiB, p99".to_owned(),
            ours: p99(&ours),
            baseline: Some(("write + fdatasync", p99(&theirs))),
            goal: Goal::Open,
        }),
    ])
}

/// A file that is kept open and appended to: the least a log can do.
pub(crate) struct RawLog {
    file: File,
    line: Vec<u8>,
}

impl RawLog {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::of_lines(path, RECORD)
    }

    /// Creates a log whose records have this length.
    pub(crate) fn of_lines(path: &Path, len: usize) -> Result<Self> {
        let file = File::options().append(true).create_new(true).open(path)?;
        let mut line = vec![b'x'; len.max(1)];
        line[len.max(1) - 1] = b'\n';
        Ok(Self { file, line })
    }

    pub(crate) fn append(&mut self) -> Result<()> {
        Ok(self.file.write_all(&self.line)?)
    }

    pub(crate) fn append_durably(&mut self) -> Result<()> {
        self.append()?;
        Ok(self.file.sync_data()?)
    }
}
