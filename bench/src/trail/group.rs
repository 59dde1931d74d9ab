//! Many threads that append durably to one session, compared with one thread.

use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use backtrail::{Durability, Message, Session, Store};

use super::durable::RawLog;
use super::fixture;
use crate::args::Args;
use crate::measure::{Samples, interleave};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::{Error, Result};

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let store = Store::open_or_create(dir.join("store"))?;
    let messages = fixture::messages(64, fixture::around(&store)?);
    let session = fixture::session(&store, Durability::Batch)?;
    let mut raw = RawLog::create(&dir.join("raw"))?;
    let slice = Duration::from_millis(args.pick(500, 200));
    let lane = |threads| {
        let (session, messages) = (&session, &messages);
        move || append_with(session, messages, threads, slice)
    };
    let (mut one, mut eight, mut many) = (lane(1), lane(8), lane(32));
    let mut plain = || for_a_while(slice, || raw.append_durably());
    let rounds = args.pick(12, 4);
    let times = interleave(rounds, [&mut plain, &mut one, &mut eight, &mut many])?;
    session.close()?;

    let [plain, one, eight, many] = times.map(|samples| samples.map(f64::recip));
    let figure = |threads, ours: &Samples, baseline, goal| {
        Entry::Figure(Figure {
            name: format!("group commit, 1 KiB, {threads}"),
            ours: Quantity::of(ours, Unit::PerSecond),
            baseline: Some(baseline),
            goal,
        })
    };
    let raw = ("write + fdatasync", Quantity::of(&plain, Unit::PerSecond));
    let alone = || ("1 thread", Quantity::of(&one, Unit::PerSecond));
    Ok(vec![
        figure("1 thread", &one, raw, Goal::Open),
        figure("8 threads", &eight, alone(), Goal::SpeedAtLeast(2.0)),
        figure("32 threads", &many, alone(), Goal::SpeedAtLeast(4.0)),
    ])
}

/// Appends with this many threads for a while; returns the time per append.
fn append_with(
    session: &Session,
    messages: &[Message],
    threads: usize,
    slice: Duration,
) -> Result<Duration> {
    let ready = Barrier::new(threads + 1);
    let (appended, took) = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|n| {
                let ready = &ready;
                scope.spawn(move || {
                    let mut next = messages.iter().cycle().skip(n);
                    ready.wait();
                    let start = Instant::now();
                    let mut appended = 0;
                    while start.elapsed() < slice {
                        let message = next.next().ok_or("no message")?.clone();
                        session.append(message)?;
                        appended += 1;
                    }
                    Ok::<u32, Error>(appended)
                })
            })
            .collect();
        ready.wait();
        let start = Instant::now();
        let mut appended = 0;
        for worker in workers {
            appended += worker.join().map_err(|_| "a thread panicked")??;
        }
        Ok::<_, Error>((appended, start.elapsed()))
    })?;
    Ok(took / appended)
}

/// Repeats something for a while; returns the time for each.
fn for_a_while(slice: Duration, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < slice {
        work()?;
        count += 1;
    }
    Ok(start.elapsed() / count)
}
