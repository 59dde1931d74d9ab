//! A long session: opened at its end, then read backwards. Next to it is a short one.

use std::path::Path;
use std::time::Duration;

use backtrail::{Block, Durability, Message, Store};

use super::screen::{ENTER, PAGE_UP, Screen, Size};
use super::{MEMORY, QUIET, bytes, figure, samples, seconds, ui};
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::measure::{Lane, interleave};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal};
use crate::store::process::{backtrail, run};
use crate::trail::fixture::{Made, make_session};

/// The limit for opening a session.
const OPEN: f64 = 0.100;
/// How many pages are read.
const PAGES: usize = 200;
/// How long nothing comes after a frame that is whole.
const WHOLE: Duration = Duration::from_millis(50);
/// What stands next to the figures of the long session.
const OF_SHORT: &str = "of 10 MB";
/// The last line of each session.
const LAST: &str = "This is the very last line.";
/// What the list says of the only session.
const LISTED: &str = " 1 of 1 ";

pub(super) fn measure(args: &Args, dir: &Path, shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("reading", &why)]),
    };
    command::announce(&bin);
    let long = shared.long(args)?;
    let short = make_session(dir, 10_000_000)?;
    for made in [long, &short] {
        prepare(&bin, made)?;
    }
    settle(dir)?;
    let start = |made: &Made| Screen::start(&ui(&bin, &made.store, dir), Size::NARROW);
    let open = |made: &Made| {
        let mut screen = start(made)?;
        let took = opened(&mut screen)?;
        screen.quit()?;
        Ok(took)
    };
    let (mut in_long, mut in_short) = (|| open(long), || open(&short));
    let lanes: [Lane<'_>; 2] = [&mut in_long, &mut in_short];
    let [in_long, in_short] = interleave(args.pick(20, 5), lanes)?;
    let name = format!("screen, session of {:.0} MB", long.bytes as f64 / 1e6);
    let baseline = Some((OF_SHORT, seconds(&in_short)));
    let mut entries = vec![figure(
        format!("{name}: Enter to its last lines"),
        seconds(&in_long),
        baseline,
        Goal::AtMost(OPEN),
    )];
    entries.extend(pages(&name, start(long)?, start(&short)?)?);
    Ok(entries)
}

/// Gives a session its last line, and brings the catalogue up to date.
fn prepare(bin: &Path, made: &Made) -> Result<()> {
    let session = Store::open(&made.store)?.open_session_with(&made.id, Durability::Os)?;
    session.append(Message::assistant([Block::text(LAST)]))?;
    session.close()?;
    run(&mut backtrail(bin, &made.store, &["rebuild"]))?;
    Ok(())
}

/// Opens the session that the list has. The panel of the conversation is not visible before.
fn opened(screen: &mut Screen) -> Result<Duration> {
    screen.wait_for(LISTED)?;
    screen.settle(QUIET)?;
    let pressed = screen.press(ENTER)?;
    Ok(screen.wait_for(LAST)?.duration_since(pressed))
}

/// What reading a session backwards takes.
struct Read {
    opened: u64,
    read: u64,
    times: Vec<Duration>,
}

/// Measures reading backwards, and the memory that it takes.
fn pages(name: &str, long: Screen, short: Screen) -> Result<Vec<Entry>> {
    let (long, short) = (read(long)?, read(short)?);
    let memory = |what: &str, long, short| {
        let baseline = Some((OF_SHORT, bytes(short)));
        let name = format!("{name}: peak memory, {what}");
        figure(name, bytes(long), baseline, Goal::AtMost(MEMORY))
    };
    let of_short = Some((OF_SHORT, seconds(&samples(&short.times))));
    Ok(vec![
        memory("opened", long.opened, short.opened),
        memory(&format!("{PAGES} pages up"), long.read, short.read),
        figure(
            format!("{name}: a page up"),
            seconds(&samples(&long.times)),
            of_short,
            Goal::Open,
        ),
    ])
}

fn read(mut screen: Screen) -> Result<Read> {
    opened(&mut screen)?;
    screen.settle(QUIET)?;
    let (opened, from) = (screen.peak_memory()?, record(&screen.contents())?);
    let mut times = Vec::new();
    for _ in 0..PAGES {
        times.push(screen.press_and_settle(PAGE_UP, WHOLE)?);
    }
    let (read, to) = (screen.peak_memory()?, record(&screen.contents())?);
    // A record of the fixture takes about a page.
    if to + PAGES as u64 / 2 > from {
        return Err(format!("{PAGES} pages up from record {from} is record {to}").into());
    }
    screen.quit()?;
    Ok(Read {
        opened,
        read,
        times,
    })
}

/// Returns the selected record, which the border of a conversation names.
fn record(contents: &str) -> Result<u64> {
    let place = contents.split_once(" record ");
    let number = place.and_then(|(_, rest)| rest.split(' ').next());
    let number = number.and_then(|number| number.parse().ok());
    Ok(number.ok_or_else(|| format!("no record is selected:\n{contents}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_record_is_named_in_the_border() {
        let shown = "╭ bench ─╮\n│ text   │\n╰─ record 36970 of 37121 · 9,280 turns ╯";
        assert_eq!(record(shown).unwrap(), 36_970);
        assert!(record("opening").is_err());
    }
}
