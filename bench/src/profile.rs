//! Runs one thing in a loop, for `perf record` or `valgrind --tool=callgrind`.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use backtrail::{Draft, Durability, Store};

use crate::Result;
use crate::args::{Args, Profile};
use crate::measure::time;
use crate::session::load::child;
use crate::session::turns::{Turn, talk};
use crate::session::version1::{self, Form};
use crate::session::{context, payload};
use crate::trail::fixture;
use crate::trail::stream::{Pass, stream};

/// The length of the session that is streamed.
const STREAMED: u64 = 50_000_000;

pub(crate) fn run(args: &Args, what: Profile, count: Option<u64>) -> Result<()> {
    let dir = crate::scratch_dir(args)?;
    let dir = dir.path();
    let appends = count.unwrap_or(2_000_000);
    let drafts = count.unwrap_or(5_000_000);
    let passes = count.unwrap_or(40);
    let turns = count.unwrap_or(2_000);
    let images = count.unwrap_or(500);
    let (done, took) = match what {
        Profile::Append => (appends, append(dir, appends)?),
        Profile::Draft => (drafts, draft(drafts)?),
        Profile::Trust => (passes, pass_over(dir, Pass::Trust, passes)?),
        Profile::Check => (passes, pass_over(dir, Pass::Check, passes)?),
        Profile::Message => (passes, pass_over(dir, Pass::Message, passes)?),
        Profile::Context => (turns, contexts(dir, turns)?),
        Profile::Turns => (turns, converse(dir, turns)?),
        Profile::Object => (passes, load(dir, Form::Object, passes)?),
        Profile::Transcript => (passes, load(dir, Form::Lines, passes)?),
        Profile::Image => (images, payload::append(dir, images)?),
    };
    let each = took.div_f64(done as f64);
    eprintln!("{done} times in {took:.2?}, {each:.2?} each");
    Ok(())
}

/// Appends in OS mode. A full session is replaced by a new one, so that no rotation
/// disturbs the profile and the disk does not fill.
fn append(dir: &Path, count: u64) -> Result<Duration> {
    const EACH: u64 = 60_000;
    let store = Store::open_or_create(dir.join("store"))?;
    let messages = fixture::messages(256, fixture::around(&store)?);
    let mut took = Duration::ZERO;
    let mut left = count;
    while left > 0 {
        let session = fixture::session(&store, Durability::Os)?;
        let dir = session.reader().dir();
        let mut some = messages.iter().cycle().take(EACH.min(left) as usize);
        took +=
            time(|| some.try_for_each(|message| Ok(session.append(message.clone()).map(drop)?)))?;
        left -= EACH.min(left);
        // Removed before it is closed, which would sync it.
        std::fs::remove_dir_all(dir)?;
    }
    Ok(took)
}

/// Parses short messages as `record` does.
fn draft(count: u64) -> Result<Duration> {
    let lines: Vec<String> = (0..1000)
        .map(|n| format!("{{\"role\":\"user\",\"text\":\"message {n}\"}}"))
        .collect();
    let mut some = lines.iter().cycle().take(count as usize);
    time(|| {
        some.try_for_each(|line| {
            black_box(Draft::from_json(black_box(line))?);
            Ok(())
        })
    })
}

fn pass_over(dir: &Path, pass: Pass, count: u64) -> Result<Duration> {
    let made = fixture::make_session(dir, STREAMED)?;
    let store = Store::open(&made.store)?;
    time(|| (0..count).try_for_each(|_| stream(&store, made.id.as_str(), pass).map(drop)))
}

/// Renders the same context repeatedly.
fn contexts(dir: &Path, count: u64) -> Result<Duration> {
    let made = fixture::make_session(dir, STREAMED)?;
    context::compact(&made.store, &made.id)?;
    time(|| (0..count).try_for_each(|_| context::render(&made.store, &made.id)))
}

fn converse(dir: &Path, count: u64) -> Result<Duration> {
    let session = fixture::session(&Store::open_or_create(dir.join("store"))?, Durability::Os)?;
    let said = Turn::all()?;
    time(|| talk(&session, &said, count))
}

/// Loads the same file of version 1, over and over.
fn load(dir: &Path, form: Form, count: u64) -> Result<Duration> {
    let file = dir.join("file.jsonl");
    version1::write(&file, form, STREAMED)?;
    time(|| (0..count).try_for_each(|_| child(&file).map(drop)))
}
