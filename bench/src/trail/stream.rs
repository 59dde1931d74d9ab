//! A long session from its first record to its last: read, checked, and with every
//! message parsed. One thread, page cache warm.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use backtrail::Store;
use backtrail::verify::Sums;

use super::fixture::Made;
use crate::args::Args;
use crate::machine;
use crate::measure::{Samples, interleave, time};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::{Error, Result};

/// What is done with every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It is borrowed without checking its sum.
    Trust,
    /// Its sum is recomputed.
    Check,
    /// Its sum is recomputed and its message parsed.
    Message,
}

pub(super) fn measure(args: &Args, made: &Made) -> Result<Vec<Entry>> {
    let bytes = made.bytes as f64;
    let lane = |pass| move || time(|| stream_whole(made, pass));
    let mut floor = || time(|| read_plainly(made));
    let (mut trust, mut check) = (lane(Pass::Trust), lane(Pass::Check));
    let mut message = lane(Pass::Message);
    let rounds = args.pick(8, 5);
    let lanes: [crate::measure::Lane<'_>; 4] = [&mut floor, &mut trust, &mut check, &mut message];
    let times = interleave(rounds, lanes)?;
    let [floor, trust, check, message] = times.map(|samples| samples.map(|s| bytes / s));

    let size = format!(
        "{:.0} MB of {} B records",
        bytes / 1e6,
        made.bytes / made.records
    );
    let figure = |what: &str, ours: &Samples, least: f64| {
        Entry::Figure(Figure {
            name: format!("stream {size}, {what}"),
            ours: Quantity::of(ours, Unit::BytesPerSecond),
            baseline: Some(("plain reads", Quantity::of(&floor, Unit::BytesPerSecond))),
            goal: Goal::AtLeast(least),
        })
    };
    Ok(vec![
        figure("sums trusted", &trust, 500e6),
        figure("sums checked", &check, 350e6),
        figure("messages parsed", &message, 150e6),
        peak_memory(made)?,
    ])
}

/// Streams a session and returns its number of records.
pub(crate) fn stream(store: &Store, id: &str, pass: Pass) -> Result<u64> {
    let sums = match pass {
        Pass::Trust => Sums::Trust,
        Pass::Check | Pass::Message => Sums::Check,
    };
    let mut records = store.read_session(&id.parse()?)?.records_with(sums)?;
    let mut count = 0;
    while let Some(record) = records.next()? {
        count += 1;
        black_box((record.seq(), record.bytes()));
        if pass == Pass::Message {
            black_box(record.message()?.ok_or("a record without a message")?);
        }
    }
    match records.damage().first() {
        [] => Ok(count),
        [damage, ..] => Err(damage.to_string().into()),
    }
}

fn stream_whole(made: &Made, pass: Pass) -> Result<()> {
    let count = stream(&Store::open(&made.store)?, made.id.as_str(), pass)?;
    if count == made.records {
        return Ok(());
    }
    Err(format!("{count} of {} records were read", made.records).into())
}

/// Reads the same files and does nothing with them.
fn read_plainly(made: &Made) -> Result<()> {
    let mut buffer = vec![0; 256 << 10];
    let mut total = 0;
    for path in &made.trails {
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => total += black_box(&buffer[..n]).len() as u64,
            }
        }
    }
    if total == made.bytes {
        return Ok(());
    }
    Err(format!("{total} of {} bytes were read", made.bytes).into())
}

/// Measures in a separate process, because this one has other things in memory.
fn peak_memory(made: &Made) -> Result<Entry> {
    let output = Command::new(std::env::current_exe()?)
        .arg("stream-child")
        .arg(&made.store)
        .arg(made.id.as_str())
        .output()?;
    if !output.status.success() {
        return Err(Error::from(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let bytes: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(Entry::Figure(Figure {
        name: "stream, peak memory of the process".to_owned(),
        ours: Quantity::single(bytes as f64, Unit::Bytes),
        baseline: None,
        goal: Goal::AtMost(f64::from(64 << 20)),
    }))
}

/// Streams in every way and returns the peak memory in bytes.
pub(crate) fn child(store: &Path, session: &str) -> Result<u64> {
    let store = Store::open(store)?;
    for pass in [Pass::Trust, Pass::Check, Pass::Message] {
        stream(&store, session, pass)?;
    }
    machine::peak_memory(std::process::id())
}
