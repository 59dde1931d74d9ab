//! Progress of long work, on a terminal.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backtrail::snapshot::{Diff, Progress, ScanProgress, ScanStage};
use backtrail::{CheckpointOptions, Snapshot, Workspace};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::{grouped, size};
use crate::ui::Ui;

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_millis(300);

/// Does work that reports progress, and shows it on a terminal.
pub(crate) fn while_shown<T>(ui: &Ui, work: impl FnOnce(Option<Arc<dyn Progress>>) -> T) -> T {
    if ui.json() || !io::stderr().is_terminal() {
        return work(None);
    }
    let display = Arc::new(Display::new());
    let done = work(Some(Arc::clone(&display) as Arc<dyn Progress>));
    display.bar.finish_and_clear();
    done
}

/// Does work that reads many bytes, and shows on a terminal how many of how many.
pub(crate) fn while_read<T>(
    ui: &Ui,
    doing: &'static str,
    work: impl FnOnce(Option<Box<dyn Fn(u64, u64) + Send + Sync>>) -> T,
) -> T {
    if ui.json() || !io::stderr().is_terminal() {
        return work(None);
    }
    let display = Arc::new(Display::new());
    let updated = Arc::clone(&display);
    let done = work(Some(Box::new(move |read, all| {
        let elapsed = updated.started.elapsed();
        if elapsed >= PATIENCE {
            let message = format!("{doing} {}", amount(read, all, elapsed));
            updated.bar.set_message(message);
            updated.bar.tick();
        }
    })));
    display.bar.finish_and_clear();
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

#[derive(Debug)]
struct Display {
    bar: ProgressBar,
    started: Instant,
}

impl Display {
    fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(None, target);
        // Cut at the width of the terminal.
        let style = ProgressStyle::with_template("{wide_msg}");
        bar.set_style(style.expect("the template is a constant"));
        Self {
            bar,
            started: Instant::now(),
        }
    }
}

impl Progress for Display {
    fn update(&self, at: ScanProgress) {
        let elapsed = self.started.elapsed();
        if elapsed < PATIENCE && at.stage != ScanStage::Waiting {
            return;
        }
        self.bar.set_message(message(&at, elapsed));
        self.bar.tick();
    }
}

/// Returns how much is done of how much: `224 of 335 MiB (67 %, 1 s left)`.
fn amount(done: u64, all: u64, elapsed: Duration) -> String {
    let (done_size, all_size) = (size(done), size(all));
    // One unit is enough where both have the same.
    let done_size = match (done_size.rsplit_once(' '), all_size.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number.to_owned(),
        _ => done_size,
    };
    if done == 0 || all == 0 {
        return format!("{done_size} of {all_size}");
    }
    let share = done.min(all) as f64 / all as f64;
    let left = elapsed.as_secs_f64() * (1.0 - share) / share;
    let left = match left.round() as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    };
    format!(
        "{done_size} of {all_size} ({:.0} %, {left} left)",
        share * 100.0
    )
}

fn message(at: &ScanProgress, elapsed: Duration) -> String {
    match at.stage {
        ScanStage::Reading => {
            format!(
                "saving {} of {} files, {}",
                grouped(at.files),
                grouped(at.total_files),
                amount(at.bytes, at.total_bytes, elapsed)
            )
        }
        ScanStage::Moving => format!("writing {} paths", grouped(at.total_files)),
        ScanStage::Waiting => "waiting for another snapshot of this workspace".to_owned(),
        _ => format!("checking {} files", grouped(at.files)),
    }
}
