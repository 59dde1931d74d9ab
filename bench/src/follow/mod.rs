//! Following an agent while it works: how much work that is, and how soon its records are here.

pub(crate) mod agent;
mod nothing_new;

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use backtrail::Store;
use backtrail_formats::{Environment, FollowOptions, Follower, ImportOptions, import};
use rustix::time::{ClockId, clock_gettime};

use crate::Result;
use crate::args::Args;
use crate::measure::Samples;
use crate::parts::{Part, Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use agent::Agent;

/// The measured parts.
pub(crate) const PARTS: [Part; 3] = [
    Part {
        name: "live",
        also: &[],
        measure: live,
    },
    Part {
        name: "grown",
        also: &[],
        measure: grown,
    },
    Part {
        name: "nothing-new",
        also: &[],
        measure: nothing_new::measure,
    },
];

/// How many other sessions there are.
const OTHERS: u32 = 1_000;
/// How many lines the agent writes each second.
const LINES_PER_SECOND: u32 = 10;
/// How long nothing comes before the measurement has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Follows an agent that writes a few lines each second, and then nothing.
fn live(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let home = dir.join("home");
    for n in 1..=OTHERS {
        let mut other = Agent::create(&home, n)?;
        (0..20).try_for_each(|_| other.write().map(drop))?;
    }
    let store = Store::open_or_create(dir.join("store"))?;
    let environment = Environment::new(&home);
    import(&store, &ImportOptions::new(environment.clone()), &|_| {})?;
    settle(dir)?;
    let mut follower = Follower::start(&store, &FollowOptions::new(environment))?;
    let idle_time = args.pick(Duration::from_secs(20), Duration::from_secs(3));
    let idle = idle_share(&mut follower, idle_time)?;
    let lines = args.pick(60, 5) * LINES_PER_SECOND;
    let (work, delays) = working(&mut follower, &home, lines)?;
    let delays_at = |percent: f64| Quantity::single(delays.percentile(percent), Unit::Seconds);
    let figure = |name: String, ours: Quantity, goal: Goal| {
        Entry::Figure(Figure {
            name,
            ours,
            baseline: None,
            goal,
        })
    };
    let share = |share: f64| Quantity::single(share, Unit::Seconds);
    let among = format!("{LINES_PER_SECOND} lines a second among {OTHERS} sessions");
    Ok(vec![
        figure(
            format!("following {among}: work per second"),
            share(work),
            Goal::AtMost(0.02),
        ),
        figure(
            "following nothing: work per second".to_owned(),
            share(idle),
            Goal::AtMost(0.0005),
        ),
        figure(
            format!("following {among}: delay"),
            delays_at(50.0),
            Goal::AtMost(0.1),
        ),
        figure(
            format!("following {among}: delay, p99"),
            delays_at(99.0),
            Goal::AtMost(0.1),
        ),
    ])
}

/// Returns which share of the time a follower works while nothing happens.
fn idle_share(follower: &mut Follower, time: Duration) -> Result<f64> {
    let (began, worked) = (Instant::now(), process_work());
    let wake = follower.wait(Some(began + time))?;
    if !wake.is_empty() {
        return Err(format!("something happened while nothing should: {wake:?}").into());
    }
    Ok((process_work() - worked).as_secs_f64() / began.elapsed().as_secs_f64())
}

/// Returns which share of the time a follower works while an agent does, and how long after their
/// writing lines were records.
fn working(follower: &mut Follower, home: &Path, lines: u32) -> Result<(f64, Samples)> {
    let mut agent = Agent::create(home, OTHERS + 1)?;
    let (tell, told) = mpsc::channel();
    let (began, worked) = (Instant::now(), process_work());
    let writer = std::thread::spawn(move || -> Result<Duration> {
        for n in 1..=lines {
            agent.write()?;
            tell.send(Instant::now())?;
            let next = began + Duration::from_secs(1) * n / LINES_PER_SECOND;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(work_of(ClockId::ThreadCPUTime))
    });
    let mut delays = Vec::new();
    while delays.len() < lines as usize {
        let records = records(follower)?;
        let seen = Instant::now();
        for _ in 0..records {
            delays.push(seen.duration_since(told.recv()?).as_secs_f64());
        }
    }
    let writing = writer.join().map_err(|_| "the writer failed")??;
    let work = process_work() - worked - writing;
    let share = work.as_secs_f64() / began.elapsed().as_secs_f64();
    Ok((share, Samples::new(delays)))
}

/// Follows a long session to which a line is added.
fn grown(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let home = dir.join("home");
    let bytes = args.pick(50_000_000, 5_000_000);
    let mut agent = Agent::create(&home, 1)?;
    agent.fill(bytes)?;
    let store = Store::open_or_create(dir.join("store"))?;
    let environment = Environment::new(&home);
    import(&store, &ImportOptions::new(environment.clone()), &|_| {})?;
    settle(dir)?;
    let mut follower = Follower::start(&store, &FollowOptions::new(environment))?;
    let (mut works, mut delays) = (Vec::new(), Vec::new());
    for _ in 0..args.pick(100, 20) {
        agent.write()?;
        let (written, worked) = (Instant::now(), work_of(ClockId::ThreadCPUTime));
        records(&mut follower)?;
        delays.push(written.elapsed().as_secs_f64());
        works.push((work_of(ClockId::ThreadCPUTime) - worked).as_secs_f64());
    }
    let name = format!("one line more in {} MB", bytes / 1_000_000);
    let figure = |what: &str, samples: Vec<f64>, most: f64| {
        Entry::Figure(Figure {
            name: format!("{name}: {what}"),
            ours: Quantity::of(&Samples::new(samples), Unit::Seconds),
            baseline: None,
            goal: Goal::AtMost(most),
        })
    };
    Ok(vec![
        figure("work", works, 0.002),
        figure("delay", delays, 0.1),
    ])
}

/// Waits for records, and returns how many lines they were.
fn records(follower: &mut Follower) -> Result<usize> {
    let wake = follower.wait(Some(Instant::now() + PATIENCE))?;
    if let Some(problem) = wake.problems.first() {
        return Err(problem.to_string().into());
    }
    let mut seqs: Vec<u64> = wake
        .sessions
        .iter()
        .flat_map(|session| session.records.iter().map(|record| record.seq))
        .collect();
    seqs.dedup();
    match seqs.len() {
        0 => Err("nothing came".into()),
        count => Ok(count),
    }
}

fn process_work() -> Duration {
    work_of(ClockId::ProcessCPUTime)
}

/// Returns how long the processor has worked.
fn work_of(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().unwrap_or_default()
}
