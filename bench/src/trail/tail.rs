//! The end of a long session, compared with the end of a short one.

use std::hint::black_box;
use std::path::Path;

use backtrail::Store;

use super::fixture::{Made, make_session};
use crate::Result;
use crate::args::Args;
use crate::measure::{interleave, time};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

/// The number of records.
const LAST: usize = 50;

pub(super) fn measure(args: &Args, long: &Made, dir: &Path) -> Result<Vec<Entry>> {
    let short = make_session(dir, 10_000_000)?;
    let lane = |made| move || time(|| read_tail(made));
    let (mut in_long, mut in_short) = (lane(long), lane(&short));
    let [in_long, in_short] = interleave(args.pick(1000, 200), [&mut in_long, &mut in_short])?;

    let name = format!("last {LAST} records of {:.0} MB", long.bytes as f64 / 1e6);
    let ours = Quantity::of(&in_long, Unit::Seconds);
    let theirs = Quantity::of(&in_short, Unit::Seconds);
    let figure = |goal| {
        Entry::Figure(Figure {
            name: name.clone(),
            ours: ours.clone(),
            baseline: Some(("of 10 MB", theirs.clone())),
            goal,
        })
    };
    Ok(vec![
        figure(Goal::AtMost(5e-3)),
        figure(Goal::CostAtMost(1.5)),
    ])
}

/// Opens the store and reads the end of a session, as a resuming program does.
fn read_tail(made: &Made) -> Result<()> {
    let records = Store::open(&made.store)?
        .read_session(&made.id)?
        .last_records(LAST)?;
    let last = records.last().map(backtrail::Record::seq);
    if black_box(&records).len() == LAST && last == Some(made.records) {
        return Ok(());
    }
    Err(format!("{} records up to {last:?} were read", records.len()).into())
}
