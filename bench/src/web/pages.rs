//! What the server itself takes: its start, its answers, a new message, memory, and doing nothing.

use std::path::Path;
use std::thread::sleep;
use std::time::Instant;

use backtrail::{Message, SessionOptions, Store};

use super::served::Served;
use super::{IDLE, wait_until};
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::find::corpus;
use crate::measure::{Lane, interleave};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::{backtrail, run};
use crate::ui::{bytes, figure, samples, seconds};

/// The limit for the first page.
const START: f64 = 0.150;
/// The sessions, as the page asks for them first.
const LIST: &str = "/api/sessions?limit=100";

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("pages", &why)]),
    };
    command::announce(&bin);
    let (store, home) = (dir.join("store"), dir.join("home"));
    std::fs::create_dir(&home)?;
    let sessions = args.pick(10_000, 1_000);
    let size = corpus::Size {
        sessions,
        messages_each: 20,
        bytes_each: 500,
    };
    corpus::make(&store, size)?;
    run(&mut backtrail(&bin, &store, &["rebuild"]))?;
    settle(dir)?;
    let name = |what: &str| format!("pages, {sessions} sessions: {what}");
    let mut first_page = || {
        let served = Served::ours(&bin, &store, &home)?;
        served.get("/")?;
        served.get(LIST)?;
        Ok(served.began().elapsed())
    };
    let lanes: [Lane<'_>; 1] = [&mut first_page];
    let [first_page] = interleave(args.pick(20, 5), lanes)?;
    let served = Served::ours(&bin, &store, &home)?;
    let mut entries = vec![figure(
        name("start to first page"),
        seconds(&first_page),
        None,
        Goal::AtMost(START),
    )];
    for (what, path) in [
        ("list again", LIST),
        ("search, a rare word", "/api/search?words=quicksilverfish"),
        ("costs by day", "/api/spending?by=day"),
    ] {
        let mut ask = || {
            let began = Instant::now();
            served.get(path)?;
            Ok(began.elapsed())
        };
        let lanes: [Lane<'_>; 1] = [&mut ask];
        let [asked] = interleave(args.pick(20, 5), lanes)?;
        entries.push(figure(name(what), seconds(&asked), None, Goal::Open));
    }
    entries.push(new_messages(args, &served, &store, &name)?);
    entries.push(figure(
        name("peak memory after that"),
        bytes(served.peak_memory()?),
        None,
        Goal::Open,
    ));
    // What follows the last message is over.
    sleep(IDLE);
    let before = served.work()?;
    sleep(IDLE);
    let work = served.work()?.saturating_sub(before);
    entries.push(figure(
        name(&format!("work in {} idle seconds", IDLE.as_secs())),
        Quantity::single(work.as_secs_f64(), Unit::Seconds),
        None,
        Goal::AtMost(0.0),
    ));
    Ok(entries)
}

/// Measures how long after a message was acknowledged a page can read it.
fn new_messages(
    args: &Args,
    served: &Served,
    store: &Path,
    name: &dyn Fn(&str) -> String,
) -> Result<Entry> {
    let session = Store::open(store)?.create_session(SessionOptions::new())?;
    let mut times = Vec::new();
    for n in 0..args.pick(20, 5) {
        let word = format!("brandnew{n}");
        let seq = session.append(Message::user_text(word.as_str()))?;
        let began = Instant::now();
        let path = format!(
            "/api/records?session={}&first=0&last={}",
            session.id(),
            seq + 1
        );
        let seen = wait_until(|| Ok(served.says(&path, &word)))?;
        times.push(seen.duration_since(began));
    }
    Ok(figure(
        name("a new message is readable"),
        seconds(&samples(&times)),
        None,
        Goal::Open,
    ))
}
