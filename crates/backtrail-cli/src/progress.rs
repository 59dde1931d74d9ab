//! Progress of long work, on a terminal: one line for all phases of a command, with a bar, the share
//! that is done and the time that is left. Nothing is shown in the first second.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use backtrail::snapshot::{Diff, Progress, ScanProgress, ScanStage};
use backtrail::{CheckpointOptions, Snapshot, Workspace};
use backtrail_formats::ImportProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::{grouped, size};
use crate::ui::Ui;

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(200);
/// How wide the bar is.
const CELLS: usize = 20;

const IMPORTING: &str = "importing";
const ANOTHER_IMPORT: &str = "waiting for another import";

/// Whether an earlier phase was shown: the next ones follow on the same line at once.
static WAS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Gets how much is done of how much.
type Report = Box<dyn Fn(u64, u64) + Send + Sync>;

/// Does work that reports progress, and shows it on a terminal.
pub(crate) fn while_shown<T>(ui: &Ui, work: impl FnOnce(Option<Arc<dyn Progress>>) -> T) -> T {
    let Some(display) = Display::start(ui, Work::Plain("working")) else {
        return work(None);
    };
    let done = work(Some(Arc::clone(&display.state) as Arc<dyn Progress>));
    drop(display);
    done
}

/// Does work that reads many bytes, and shows on a terminal how many of how many.
pub(crate) fn while_read<T>(
    ui: &Ui,
    doing: &'static str,
    work: impl FnOnce(Option<Report>) -> T,
) -> T {
    while_reported(ui, work, move |done, all| Work::Bytes { doing, done, all })
}

/// Does work on many things, and shows on a terminal how many of how many.
pub(crate) fn while_counted<T>(
    ui: &Ui,
    doing: &'static str,
    work: impl FnOnce(Option<Report>) -> T,
) -> T {
    while_reported(ui, work, move |done, all| Work::Things { doing, done, all })
}

/// Does work that does not tell how far it is, and shows on a terminal how long it takes.
pub(crate) fn while_waiting<T>(ui: &Ui, doing: &'static str, work: impl FnOnce() -> T) -> T {
    let display = Display::start(ui, Work::Plain(doing));
    let done = work();
    drop(display);
    done
}

/// Imports, and shows on a terminal how much of how much, or that another process imports.
pub(crate) fn while_importing<T>(
    ui: &Ui,
    work: impl FnOnce(&(dyn Fn(ImportProgress) + Sync)) -> T,
) -> T {
    let Some(display) = Display::start(ui, Work::Plain(IMPORTING)) else {
        return work(&|_| {});
    };
    let done = work(&|at| display.state.set(importing(at)));
    drop(display);
    done
}

/// Waits until no other process imports, and shows that on a terminal.
pub(crate) fn while_paused<T>(ui: &Ui, wait: impl FnOnce() -> T) -> T {
    while_waiting(ui, ANOTHER_IMPORT, wait)
}

fn importing(at: ImportProgress) -> Work {
    match at.waits {
        true => Work::Plain(ANOTHER_IMPORT),
        false => Work::Bytes {
            doing: IMPORTING,
            done: at.bytes,
            all: at.bytes_total,
        },
    }
}

fn while_reported<T>(
    ui: &Ui,
    work: impl FnOnce(Option<Report>) -> T,
    at: impl Fn(u64, u64) -> Work + Send + Sync + 'static,
) -> T {
    let Some(display) = Display::start(ui, at(0, 0)) else {
        return work(None);
    };
    let state = Arc::clone(&display.state);
    let done = work(Some(Box::new(move |done, all| state.set(at(done, all)))));
    drop(display);
    done
}

/// Makes a checkpoint and shows its progress.
pub(crate) fn checkpoint<T>(
    ui: &Ui,
    options: CheckpointOptions,
    work: impl FnOnce(CheckpointOptions) -> T,
) -> T {
    while_shown(ui, |progress| match progress {
        Some(progress) => work(options.progress(progress)),
        None => work(options),
    })
}

/// Compares the files of a workspace with a snapshot, and shows the progress.
pub(crate) fn changes_since(
    ui: &Ui,
    workspace: &Workspace,
    before: &Snapshot,
) -> backtrail::Result<Diff> {
    let compared = while_shown(ui, |progress| {
        workspace.changes_since_with(before, progress)
    });
    compared.map(|(diff, _)| diff)
}

/// What is being done, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Plain(&'static str),
    Bytes {
        doing: &'static str,
        done: u64,
        all: u64,
    },
    Things {
        doing: &'static str,
        done: u64,
        all: u64,
    },
    Scan(ScanProgress),
}

/// What is shown, by a thread that draws it.
#[derive(Debug)]
struct State {
    /// The work, and since when its stage lasts.
    work: Mutex<(Work, Instant)>,
    is_over: Mutex<bool>,
    over: Condvar,
}

/// Shows progress until it is dropped.
struct Display {
    state: Arc<State>,
    drawing: Option<JoinHandle<()>>,
}

impl Display {
    /// Begins to show work; `None` if there is no terminal.
    fn start(ui: &Ui, work: Work) -> Option<Self> {
        if ui.json() || ui.is_quiet() || !io::stderr().is_terminal() {
            return None;
        }
        let state = Arc::new(State {
            work: Mutex::new((work, Instant::now())),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        });
        let drawn = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("backtrail-progress".to_owned());
        let drawing = thread.spawn(move || drawn.draw()).ok();
        Some(Self { state, drawing })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        *lock(&self.state.is_over) = true;
        self.state.over.notify_all();
        if let Some(drawing) = self.drawing.take() {
            // The line is gone before anything else is printed.
            drawing.join().ok();
        }
    }
}

impl State {
    fn set(&self, work: Work) {
        let mut current = lock(&self.work);
        let since = match stage(&current.0) == stage(&work) {
            true => current.1,
            false => Instant::now(),
        };
        *current = (work, since);
    }

    /// Waits; returns whether the work is over.
    fn wait(&self, time: Duration) -> bool {
        let is_over = lock(&self.is_over);
        let waited = self.over.wait_timeout_while(is_over, time, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Draws until the work is over.
    fn draw(&self) {
        let patience = match WAS_SHOWN.load(Ordering::Relaxed) {
            true => TICK,
            false => PATIENCE,
        };
        if self.wait(patience) {
            return;
        }
        WAS_SHOWN.store(true, Ordering::Relaxed);
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        // Cut at the width of the terminal.
        let style = ProgressStyle::with_template("{wide_msg}");
        bar.set_style(style.expect("the template is a constant"));
        loop {
            let (work, since) = *lock(&self.work);
            bar.set_message(line(&work, since.elapsed()));
            bar.tick();
            if self.wait(TICK) {
                break;
            }
        }
        bar.finish_and_clear();
    }
}

impl Progress for State {
    fn update(&self, at: ScanProgress) {
        self.set(Work::Scan(at));
    }
}

/// Locks a mutex; what a panicking thread left is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what lasts while the numbers change: the time that is left depends on it.
fn stage(work: &Work) -> (&'static str, Option<ScanStage>) {
    match work {
        Work::Plain(doing) | Work::Bytes { doing, .. } | Work::Things { doing, .. } => {
            (doing, None)
        }
        Work::Scan(at) => ("", Some(at.stage)),
    }
}

/// Returns the line that shows the progress of work that began so long ago.
fn line(work: &Work, elapsed: Duration) -> String {
    match work {
        Work::Plain(doing) => format!("{doing} ({})", time(elapsed.as_secs_f64())),
        Work::Bytes { doing, done, all } => {
            let doing = doing.trim_end_matches(':');
            format!(
                "{doing} {}",
                amount((*done, *all), pair(*done, *all), elapsed)
            )
        }
        Work::Things { doing, done, all } => {
            let counts = (grouped(*done), grouped(*all));
            format!("{doing} {}", amount((*done, *all), counts, elapsed))
        }
        Work::Scan(at) => scan_line(at, elapsed),
    }
}

fn scan_line(at: &ScanProgress, elapsed: Duration) -> String {
    match at.stage {
        ScanStage::Reading => {
            let sizes = pair(at.bytes, at.total_bytes);
            let amount = amount((at.bytes, at.total_bytes), sizes, elapsed);
            let files = grouped(at.total_files);
            format!("saving {files} files {amount}")
        }
        ScanStage::Moving => {
            let paths = grouped(at.total_files);
            format!("writing {paths} paths ({})", time(elapsed.as_secs_f64()))
        }
        ScanStage::Waiting => "waiting for another snapshot of this workspace".to_owned(),
        _ => format!("checking {} files", grouped(at.files)),
    }
}

/// Returns two sizes; one unit is enough where both have the same.
fn pair(done: u64, all: u64) -> (String, String) {
    let (done, all) = (size(done), size(all));
    let done = match (done.rsplit_once(' '), all.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number.to_owned(),
        _ => done,
    };
    (done, all)
}

/// Returns how much is done of how much: `[#####...] 224 of 335 MiB (67 %, 1 s left)`.
fn amount((done, all): (u64, u64), shown: (String, String), elapsed: Duration) -> String {
    let (done_shown, all_shown) = shown;
    if all == 0 {
        return format!("({})", time(elapsed.as_secs_f64()));
    }
    let share = done.min(all) as f64 / all as f64;
    let full = (share * CELLS as f64) as usize;
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(CELLS - full));
    if done == 0 {
        return format!("[{bar}] {done_shown} of {all_shown}");
    }
    let left = time(elapsed.as_secs_f64() * (1.0 - share) / share);
    // All that is left is not nothing before it is done.
    let percent = (share * 100.0).floor();
    format!("[{bar}] {done_shown} of {all_shown} ({percent} %, {left} left)")
}

fn time(seconds: f64) -> String {
    match seconds.round() as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_line_has_a_bar_the_share_and_the_time_that_is_left() {
        let at = |done: u64, all: u64| Work::Bytes {
            doing: "importing",
            done: done * MIB,
            all: all * MIB,
        };
        let line = |work: &Work, seconds: u64| line(work, Duration::from_secs(seconds));
        assert_eq!(
            line(&at(225, 300), 3),
            "importing [###############.....] 225 of 300 MiB (75 %, 1 s left)"
        );
        assert_eq!(
            line(&at(1, 1000), 2),
            "importing [....................] 1 of 1000 MiB (0 %, 33 min left)"
        );
        assert_eq!(
            line(&at(0, 300), 2),
            "importing [....................] 0 bytes of 300 MiB"
        );
        // What turns out to be more than there was is all of it.
        assert_eq!(
            line(&at(301, 300), 3),
            "importing [####################] 301 of 300 MiB (100 %, 0 s left)"
        );
        // Before anything is known, it is the time that passed.
        assert_eq!(line(&at(0, 0), 4), "importing (4 s)");
        assert_eq!(line(&Work::Plain("exporting"), 61), "exporting (61 s)");
        let things = Work::Things {
            doing: "checking snapshots",
            done: 500,
            all: 2000,
        };
        assert_eq!(
            line(&things, 10),
            "checking snapshots [#####...............] 500 of 2,000 (25 %, 30 s left)"
        );
    }

    #[test]
    fn the_time_of_a_stage_begins_with_it() {
        let state = State {
            work: Mutex::new((Work::Plain("one"), Instant::now())),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        };
        let since = || lock(&state.work).1;
        let first = since();
        state.set(Work::Plain("one"));
        assert_eq!(since(), first);
        state.set(Work::Plain("two"));
        assert!(since() >= first);
        assert_eq!(lock(&state.work).0, Work::Plain("two"));
    }
}
