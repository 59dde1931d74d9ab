//! Many sessions: the first frame with their list, moving in it, searching as one types, and doing
//! nothing.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::screen::{ESC, Screen, Size};
use super::{MEMORY, QUIET, bytes, figure, samples, seconds, typing, ui};
use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::find::corpus;
use crate::measure::{Lane, interleave};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::{backtrail, run};

/// The limit for the first frame, on top of catching up.
const PAINT: f64 = 0.050;
/// The limit for a frame after a key.
const FRAME: f64 = 0.016;
/// How many keys are pressed.
const KEYS: usize = 200;
/// How long nothing is done.
const IDLE: Duration = Duration::from_secs(5);

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("browse", &why)]),
    };
    command::announce(&bin);
    let store = dir.join("store");
    let size = args.pick(
        corpus::Size {
            sessions: 10_000,
            messages_each: 100,
            bytes_each: 1_000,
        },
        corpus::Size {
            sessions: 1_000,
            messages_each: 20,
            bytes_each: 300,
        },
    );
    corpus::make(&store, size)?;
    run(&mut backtrail(&bin, &store, &["rebuild"]))?;
    settle(dir)?;
    let bench = Bench {
        args,
        bin: &bin,
        store: &store,
        dir,
        sessions: size.sessions,
    };
    let mut entries = bench.first_paint()?;
    entries.extend(bench.keys()?);
    Ok(entries)
}

struct Bench<'b> {
    args: &'b Args,
    bin: &'b Path,
    store: &'b Path,
    dir: &'b Path,
    sessions: u64,
}

impl Bench<'_> {
    fn name(&self, what: &str) -> String {
        format!("screen, {} sessions: {what}", self.sessions)
    }

    /// Returns what the list says of its selected session.
    fn place(&self, selected: usize) -> String {
        format!(" {selected} of {} ", self.sessions)
    }

    fn start(&self) -> Result<Screen> {
        Screen::start(&ui(self.bin, self.store, self.dir), Size::WIDE)
    }

    /// Measures the time to the first frame with the list, if nothing is new, and how much of it comes
    /// on top of catching up.
    fn first_paint(&self) -> Result<Vec<Entry>> {
        let mut paint = || {
            let mut screen = self.start()?;
            let painted = screen.wait_for(&self.place(1))?;
            let took = painted.duration_since(screen.began());
            screen.quit()?;
            Ok(took)
        };
        let mut catch_up = || {
            let mut command = backtrail(self.bin, self.store, &["rebuild", "--new"]);
            run_quietly(&mut command)
        };
        let lanes: [Lane<'_>; 2] = [&mut paint, &mut catch_up];
        let [paint, catch_up] = interleave(self.args.pick(20, 5), lanes)?;
        let worst = Quantity::single(paint.greatest(), Unit::Seconds);
        let on_top = (paint.median() - catch_up.median()).max(0.0);
        let baseline = Some(("rebuild --new", seconds(&catch_up)));
        Ok(vec![
            figure(
                self.name("first paint"),
                seconds(&paint),
                baseline,
                Goal::Open,
            ),
            figure(
                self.name("first paint, on top of catching up"),
                Quantity::single(on_top, Unit::Seconds),
                None,
                Goal::AtMost(PAINT),
            ),
            figure(self.name("first paint, worst"), worst, None, Goal::Open),
        ])
    }

    /// Measures one screen in use.
    fn keys(&self) -> Result<Vec<Entry>> {
        let mut screen = self.start()?;
        screen.wait_for(&self.place(1))?;
        screen.settle(QUIET)?;
        let mut entries = self.moves(&mut screen)?;
        entries.extend(typing::measure(&mut screen, |what| self.name(what))?);
        entries.push(figure(
            self.name("peak memory after that"),
            bytes(screen.peak_memory()?),
            None,
            Goal::AtMost(MEMORY),
        ));
        entries.push(self.idle(&mut screen)?);
        screen.quit()?;
        Ok(entries)
    }

    /// Measures the time from a key to the frame in which the next session is selected.
    fn moves(&self, screen: &mut Screen) -> Result<Vec<Entry>> {
        let mut times = Vec::new();
        for n in 0..self.args.pick(KEYS, KEYS / 4) {
            let pressed = screen.press("j")?;
            let moved = screen.wait_for(&self.place(n + 2))?;
            times.push(moved.duration_since(pressed));
        }
        let times = samples(&times);
        let p99 = Quantity::single(times.percentile(99.0), Unit::Seconds);
        let name = self.name("key to new frame");
        Ok(vec![
            figure(name.clone(), seconds(&times), None, Goal::AtMost(FRAME)),
            figure(format!("{name}, p99"), p99, None, Goal::Open),
        ])
    }

    /// Measures the work while nothing happens, which is to be none at all.
    fn idle(&self, screen: &mut Screen) -> Result<Entry> {
        screen.press(ESC)?;
        screen.settle(4 * QUIET)?;
        let before = screen.work()?;
        sleep(IDLE);
        let work = screen.work()?.saturating_sub(before);
        let name = self.name(&format!("work in {} idle seconds", IDLE.as_secs()));
        let work = Quantity::single(work.as_secs_f64(), Unit::Seconds);
        Ok(figure(name, work, None, Goal::AtMost(0.0)))
    }
}
