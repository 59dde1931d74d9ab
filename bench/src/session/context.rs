//! The context of a long history and of a short one: the last compaction and 200 KB after
//! it.

use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use backtrail::{Compaction, Durability, SessionId, Shape, Store};

use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::machine;
use crate::measure::{Samples, interleave, time};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::trail::fixture::{Made, make_session, mix};

/// How much was appended since the last compaction.
const TAIL: usize = 200_000;

pub(super) fn measure(args: &Args, dir: &Path, shared: &Shared) -> Result<Vec<Entry>> {
    let long = shared.long(args)?;
    let short = make_session(dir, 10_000_000)?;
    let size = format!("{:.0} MB", long.bytes as f64 / 1e6);
    for made in [long, &short] {
        compact(&made.store, &made.id)?;
    }
    settle(dir)?;
    let mut entries = in_process(args, &size, long, &short)?;
    match command::find(args) {
        Ok(bin) => {
            command::announce(&bin);
            entries.extend(whole_process(args, &bin, &size, long, &short)?);
        }
        Err(why) => entries.push(Entry::skipped("backtrail context", &why)),
    }
    Ok(entries)
}

/// Compacts a whole session and appends [`TAIL`] bytes.
pub(crate) fn compact(store: &Path, id: &SessionId) -> Result<()> {
    let session = Store::open(store)?.open_session_with(id, Durability::Os)?;
    session.compact(&Compaction::new("They wrote a parser, and its tests pass."))?;
    let drafts = mix()?;
    let mut said = 0;
    for draft in drafts.iter().cycle() {
        session.append(draft.clone())?;
        said += session
            .reader()
            .last_records(1)?
            .first()
            .map_or(0, |record| record.as_ref().bytes().len());
        if said >= TAIL {
            break;
        }
    }
    Ok(session.close()?)
}

/// Opens the store and renders, as a resuming agent does.
pub(crate) fn render(store: &Path, id: &SessionId) -> Result<()> {
    let context = Store::open(store)?
        .read_session(id)?
        .context(Shape::Anthropic)?;
    let len = black_box(context.as_json()).len();
    if context.skipped() == 0 && (TAIL / 2..2 * TAIL).contains(&len) {
        return Ok(());
    }
    Err(format!(
        "a context of {len} bytes, {} places skipped",
        context.skipped()
    )
    .into())
}

fn in_process(args: &Args, size: &str, long: &Made, short: &Made) -> Result<Vec<Entry>> {
    let [ours, theirs] = [long, short].map(|made| (made.store.as_path(), &made.id));
    let times = rendered(args.pick(200, 40), ours, theirs)?;
    let name = format!("context of {size}, in process");
    Ok(figures(&name, "of 10 MB", times))
}

/// Renders the contexts of two sessions in turns.
pub(super) fn rendered(
    rounds: usize,
    long: (&Path, &SessionId),
    short: (&Path, &SessionId),
) -> Result<[Samples; 2]> {
    let lane = |(store, id): (&'_ Path, &'_ SessionId)| {
        let (store, id) = (store.to_owned(), id.clone());
        move || time(|| render(&store, &id))
    };
    let (mut in_long, mut in_short) = (lane(long), lane(short));
    interleave(rounds, [&mut in_long, &mut in_short])
}

fn whole_process(
    args: &Args,
    bin: &Path,
    size: &str,
    long: &Made,
    short: &Made,
) -> Result<Vec<Entry>> {
    let lane = |made: &'_ Made| {
        let mut command = command_for(bin, made);
        move || run_quietly(&mut command)
    };
    let (mut in_long, mut in_short) = (lane(long), lane(short));
    let times = interleave(args.pick(100, 20), [&mut in_long, &mut in_short])?;
    let name = format!("backtrail context of {size}, whole process");
    let mut entries = figures(&name, "of 10 MB", times);
    let peak = |made| -> Result<f64> { Ok(peak_memory(&mut command_for(bin, made))? as f64) };
    entries.push(Entry::Figure(Figure {
        name: format!("backtrail context of {size}, peak memory"),
        ours: Quantity::single(peak(long)?, Unit::Bytes),
        baseline: Some(("of 10 MB", Quantity::single(peak(short)?, Unit::Bytes))),
        goal: Goal::AtMost(f64::from(40 << 20)),
    }));
    Ok(entries)
}

/// Reports the time of a context in a long history and in a short one.
pub(super) fn figures(name: &str, than: &'static str, [long, short]: [Samples; 2]) -> Vec<Entry> {
    let figure = |goal| {
        Entry::Figure(Figure {
            name: name.to_owned(),
            ours: Quantity::of(&long, Unit::Seconds),
            baseline: Some((than, Quantity::of(&short, Unit::Seconds))),
            goal,
        })
    };
    vec![figure(Goal::AtMost(20e-3)), figure(Goal::CostAtMost(1.5))]
}

fn command_for(bin: &Path, made: &Made) -> Command {
    let mut command = Command::new(bin);
    command
        .env_remove("BACKTRAIL_HOME")
        .arg("--store")
        .arg(&made.store)
        .args(["context", made.id.as_str(), "--format", "anthropic"]);
    command
}

/// Returns the peak memory of a process that writes more than a pipe holds.
///
/// It is inspected while it waits for its output to be read: then its work is done, but
/// it has not exited.
fn peak_memory(command: &mut Command) -> Result<u64> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdout = child.stdout.take().ok_or("no stdout")?;
    let mut first = [0; 1];
    stdout.read_exact(&mut first)?;
    let peak = machine::peak_memory(child.id());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest)?;
    let status = child.wait()?;
    if status.success() && rest.len() > TAIL / 2 {
        return peak;
    }
    Err(format!("{command:?} failed: {status}, {} bytes", rest.len()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compacted_session_renders_its_tail_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let made = make_session(dir.path(), 1_000_000).unwrap();
        assert!(render(&made.store, &made.id).is_err());
        compact(&made.store, &made.id).unwrap();
        render(&made.store, &made.id).unwrap();
    }

    #[test]
    fn the_peak_of_a_process_that_waits_for_its_reader_is_seen() {
        let mut much = Command::new("head");
        much.args(["-c", "1000000", "/dev/zero"]);
        let peak = peak_memory(&mut much).unwrap();
        assert!((1..1 << 30).contains(&peak), "{peak}");
        assert!(peak_memory(&mut Command::new("true")).is_err());
    }
}
