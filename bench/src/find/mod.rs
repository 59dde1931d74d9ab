//! Search: building the first index, and queries, as whole processes. And the status line, which
//! asks the same catalogue at once.

pub(crate) mod corpus;
mod statusline;

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::measure::{Lane, interleave};
use crate::parts::{Part, Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::store::process::{backtrail, run};
use corpus::{COMMON, PHRASE, RARE, Size};

/// The measured parts.
pub(crate) const PARTS: [Part; 2] = [
    Part {
        name: "index",
        also: &[],
        measure,
    },
    Part {
        name: "statusline",
        also: &[],
        measure: statusline::measure,
    },
];

/// The limit for catching up if nothing changed.
const CATCH_UP: f64 = 0.060;
/// The limit for an answer on top of that.
const ON_TOP: f64 = 0.030;

fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("index", &why)]),
    };
    command::announce(&bin);
    let store = dir.join("store");
    let size = Size {
        sessions: args.pick(10_000, 1_000),
        messages_each: 100,
        bytes_each: 1_000,
    };
    let text = corpus::make(&store, size)?;
    settle(dir)?;
    let mut entries = first(args, &bin, &store, text)?;
    entries.extend(questions(args, &bin, &store)?);
    entries.extend(new_message(args, &bin, &store)?);
    Ok(entries)
}

fn figure(
    name: impl Into<String>,
    ours: Quantity,
    baseline: Option<(&'static str, Quantity)>,
    goal: Goal,
) -> Entry {
    Entry::Figure(Figure {
        name: name.into(),
        ours,
        baseline,
        goal,
    })
}

/// Measures how long it takes to index everything, and the resources used.
fn first(args: &Args, bin: &Path, store: &Path, text: u64) -> Result<Vec<Entry>> {
    let peak = Cell::new(0);
    let mut ours = || {
        std::fs::remove_dir_all(store.join("derived")).ok();
        let ran = run(&mut backtrail(bin, store, &["rebuild"]))?;
        peak.set(ran.peak.max(peak.get()));
        Ok(ran.took)
    };
    let all = format!("cat {}/sessions/*/*.jsonl", store.display());
    let mut read = || run_quietly(Command::new("sh").arg("-c").arg(&all));
    let lanes: [Lane<'_>; 2] = [&mut ours, &mut read];
    let [ours, read] = interleave(args.pick(3, 2), lanes)?;
    let rate = |samples: &crate::measure::Samples| {
        let rates = samples.map(|seconds| text as f64 / seconds);
        Quantity::of(&rates, Unit::BytesPerSecond)
    };
    let derived = bytes_in(&store.join("derived"))?;
    let name = format!("first index, {:.2} GB of text", text as f64 / 1e9);
    let size = Quantity::single(derived as f64, Unit::Bytes);
    let of_text = Quantity::single(text as f64, Unit::Bytes);
    let peak = Quantity::single(peak.get() as f64, Unit::Bytes);
    Ok(vec![
        figure(
            name.clone(),
            rate(&ours),
            Some(("cat", rate(&read))),
            Goal::AtLeast(35e6),
        ),
        figure(
            format!("{name}, peak memory"),
            peak,
            None,
            Goal::AtMost(f64::from(400 << 20)),
        ),
        figure(
            format!("{name}, on disk"),
            size,
            Some(("text", of_text)),
            Goal::CostAtMost(0.8),
        ),
    ])
}

/// Measures queries if nothing changed, compared with catching up alone and with grep.
fn questions(args: &Args, bin: &Path, store: &Path) -> Result<Vec<Entry>> {
    let ask = |words: &[&str]| run_quietly(&mut backtrail(bin, store, words));
    let mut catch_up = || ask(&["rebuild", "--new"]);
    let mut list = || ask(&["list", "--all"]);
    let mut rare = || ask(&["search", RARE]);
    let mut common = || ask(&["search", COMMON]);
    let mut phrase = || ask(&["search", PHRASE]);
    let mut stats = || ask(&["stats", "--by", "model"]);
    let mut grep = || {
        let mut command = Command::new("grep");
        let sessions = store.join("sessions");
        run_quietly(command.args(["-r", "-l", "-F", RARE]).arg(sessions))
    };
    let lanes: [Lane<'_>; 7] = [
        &mut catch_up,
        &mut list,
        &mut rare,
        &mut common,
        &mut phrase,
        &mut stats,
        &mut grep,
    ];
    let [catch_up, list, rare, common, phrase, stats, grep] = interleave(args.pick(21, 5), lanes)?;
    let seconds = |samples| Quantity::of(samples, Unit::Seconds);
    let mut entries = vec![figure(
        "catch-up, nothing changed",
        seconds(&catch_up),
        None,
        Goal::AtMost(CATCH_UP),
    )];
    for (name, samples) in [
        ("list", &list),
        ("search, a rare word", &rare),
        ("search, a common word", &common),
        ("search, a phrase", &phrase),
        ("stats --by model", &stats),
    ] {
        let top = (samples.median() - catch_up.median()).max(0.0);
        entries.push(figure(
            format!("{name}, on top of catching up"),
            Quantity::single(top, Unit::Seconds),
            None,
            Goal::AtMost(ON_TOP),
        ));
    }
    entries.push(figure(
        "search, a rare word",
        seconds(&rare),
        Some(("grep", seconds(&grep))),
        Goal::Open,
    ));
    Ok(entries)
}

/// Measures how long it takes to find a message that was just appended.
fn new_message(args: &Args, bin: &Path, store: &Path) -> Result<Vec<Entry>> {
    let mut n = 0;
    let mut find = || {
        n += 1;
        let word = format!("brandnewword{n}");
        run(&mut backtrail(bin, store, &["record", "--text", &word]))?;
        let ran = run(&mut backtrail(bin, store, &["search", &word]))?;
        match ran.told["hits"].as_array().map(Vec::len) {
            Some(1) => Ok(ran.took),
            _ => Err(format!("{word} was not found: {}", ran.told).into()),
        }
    };
    let [found] = interleave(args.pick(11, 3), [&mut find])?;
    Ok(vec![figure(
        "search, one new message",
        Quantity::of(&found, Unit::Seconds),
        None,
        Goal::AtMost(0.120),
    )])
}

fn bytes_in(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        bytes += match path.is_dir() {
            true => bytes_in(&path)?,
            false => path.metadata()?.len(),
        };
    }
    Ok(bytes)
}
