//! agentsview beside ours, on the same sessions of Claude Code: its start, a search, a new message,
//! memory, and doing nothing. Both see an empty home with nothing but these, and no network.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::served::Served;
use super::{IDLE, wait_until};
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::follow::agent::{Agent, TEXT};
use crate::import::programs;
use crate::measure::Samples;
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::{backtrail, run};
use crate::ui::{at_home, bytes, figure, samples, seconds};

/// The bytes of a session.
const BYTES: u64 = 20_000;
/// Where agentsview listens.
const PORT: u16 = 18_391;

/// What a program is asked, and how.
struct Peer<'a> {
    start: &'a dyn Fn() -> Result<Served>,
    list: &'a str,
    /// Asks for a word, which follows.
    search: &'a str,
}

/// What was measured of a program.
struct Measured {
    start: Samples,
    search: Samples,
    live: Samples,
    memory: u64,
    idle: Duration,
}

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bins = command::find(args).and_then(|bin| Ok((bin, programs::agentsview()?)));
    let (bin, theirs) = match bins {
        Ok(bins) => bins,
        Err(why) => return Ok(vec![Entry::skipped("agentsview-pages", &why)]),
    };
    command::announce(&bin);
    let (home, store) = (dir.join("home"), dir.join("store"));
    fs::create_dir(&home)?;
    let sessions = args.pick(2_000, 200);
    for n in 0..sessions {
        Agent::create(&home, n)?.fill(BYTES)?;
    }
    let import = ["import", "--from", "claude-code"];
    run(&mut at_home(backtrail(&bin, &store, &import), &home))?;
    run(&mut at_home(backtrail(&bin, &store, &["rebuild"]), &home))?;
    let serve = || {
        let mut command = at_home(Command::new(&theirs), &home);
        command
            .args(["serve", "--no-browser", "--no-update-check", "--port"])
            .arg(PORT.to_string())
            .stdout(std::process::Stdio::null());
        Served::other(command, PORT)
    };
    // It reads everything once.
    let first = serve()?;
    let is_read = || Ok(first.says("/api/v1/sessions?limit=1", &format!("\"total\":{sessions}")));
    wait_until(is_read)?;
    drop(first);
    settle(dir)?;
    let ours = Peer {
        start: &|| Served::ours(&bin, &store, &home),
        list: "/api/sessions?limit=100",
        search: "/api/search?words=",
    };
    let theirs = Peer {
        start: &serve,
        list: "/api/v1/sessions?limit=100",
        search: "/api/v1/search?q=",
    };
    let ours = ours.measure(args, &home, sessions)?;
    let theirs = theirs.measure(args, &home, sessions + 1)?;
    Ok(compared(sessions, &ours, &theirs))
}

impl Peer<'_> {
    fn measure(&self, args: &Args, home: &Path, n: u32) -> Result<Measured> {
        let mut start = Vec::new();
        let mut served = None;
        for _ in 0..args.pick(10, 3) {
            drop(served.take());
            let started = (self.start)()?;
            let listed = wait_until(|| Ok(started.get(self.list).is_ok()))?;
            start.push(listed.duration_since(started.began()));
            served = Some(started);
        }
        let served = served.ok_or("it was not started")?;
        let word = TEXT.split(' ').nth(1).unwrap_or_default();
        let mut search = Vec::new();
        for _ in 0..args.pick(20, 5) {
            let began = Instant::now();
            served.get(&format!("{}{word}", self.search))?;
            search.push(began.elapsed());
        }
        let mut live = Vec::new();
        let mut agent = Agent::create(home, n)?;
        agent.write()?;
        for n in 0..args.pick(5, 2) {
            let word = format!("brandnew{}{n}", u32::from(self.list.contains("v1")));
            let began = Instant::now();
            agent.say(&word)?;
            let path = format!("{}{word}", self.search);
            let session = agent.session().to_owned();
            let found = wait_until(|| Ok(served.says(&path, &session)))?;
            live.push(found.duration_since(began));
        }
        // What follows the last message is over.
        sleep(2 * IDLE);
        let before = served.work()?;
        sleep(IDLE);
        Ok(Measured {
            start: samples(&start),
            search: samples(&search),
            live: samples(&live),
            memory: served.peak_memory()?,
            idle: served.work()?.saturating_sub(before),
        })
    }
}

fn compared(sessions: u32, ours: &Measured, theirs: &Measured) -> Vec<Entry> {
    let entry = |what: &str, ours: Quantity, theirs: Quantity| {
        let name = format!("pages beside agentsview, {sessions} sessions: {what}");
        figure(name, ours, Some(("agentsview", theirs)), Goal::Open)
    };
    let work = |time: Duration| Quantity::single(time.as_secs_f64(), Unit::Seconds);
    vec![
        entry(
            "start to first list",
            seconds(&ours.start),
            seconds(&theirs.start),
        ),
        entry(
            "search, a common word",
            seconds(&ours.search),
            seconds(&theirs.search),
        ),
        entry(
            "a line of an agent is found",
            seconds(&ours.live),
            seconds(&theirs.live),
        ),
        entry("peak memory", bytes(ours.memory), bytes(theirs.memory)),
        entry(
            &format!("work in {} idle seconds", IDLE.as_secs()),
            work(ours.idle),
            work(theirs.idle),
        ),
    ]
}
