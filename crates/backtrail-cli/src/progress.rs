//! How far long work is, on a terminal.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backtrail::{CheckpointOptions, Progress, ScanProgress, ScanStage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::{grouped, size};
use crate::ui::Ui;

/// Work that is done before this is not worth a line.
const PATIENCE: Duration = Duration::from_millis(300);

/// Does something that takes a while, and tells on a terminal how far it is.
pub(crate) fn while_shown<T>(ui: &Ui, work: impl FnOnce(Option<Arc<dyn Progress>>) -> T) -> T {
    if ui.json() || !io::stderr().is_terminal() {
        return work(None);
    }
    let shown = Arc::new(Shown::new());
    let done = work(Some(Arc::clone(&shown) as Arc<dyn Progress>));
    shown.bar.finish_and_clear();
    done
}

/// Reads through something long, and tells on a terminal how many bytes of how many
/// were read.
pub(crate) fn while_read<T>(
    ui: &Ui,
    doing: &'static str,
    work: impl FnOnce(Option<Box<dyn Fn(u64, u64) + Send + Sync>>) -> T,
) -> T {
    if ui.json() || !io::stderr().is_terminal() {
        return work(None);
    }
    let shown = Arc::new(Shown::new());
    let telling = Arc::clone(&shown);
    let done = work(Some(Box::new(move |read, all| {
        let elapsed = telling.begun.elapsed();
        if elapsed >= PATIENCE {
            let rate = size((read as f64 / elapsed.as_secs_f64()) as u64);
            let words = format!("{doing} {} of {}, {rate}/s", size(read), size(all));
            telling.bar.set_message(words);
            telling.bar.tick();
        }
    })));
    shown.bar.finish_and_clear();
    done
}

/// Makes a checkpoint, and tells on a terminal how far it is.
pub(crate) fn keep<T>(
    ui: &Ui,
    options: CheckpointOptions,
    work: impl FnOnce(CheckpointOptions) -> T,
) -> T {
    while_shown(ui, |progress| match progress {
        Some(progress) => work(options.progress(progress)),
        None => work(options),
    })
}

#[derive(Debug)]
struct Shown {
    bar: ProgressBar,
    begun: Instant,
}

impl Shown {
    fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(None, target);
        // Cut where the terminal ends.
        let style = ProgressStyle::with_template("{wide_msg}");
        bar.set_style(style.expect("the template is a constant"));
        Self {
            bar,
            begun: Instant::now(),
        }
    }
}

impl Progress for Shown {
    fn update(&self, at: ScanProgress) {
        let elapsed = self.begun.elapsed();
        if elapsed < PATIENCE && at.stage != ScanStage::Waiting {
            return;
        }
        self.bar.set_message(words(&at, elapsed));
        self.bar.tick();
    }
}

/// Says how far it is: files, bytes and how fast.
fn words(at: &ScanProgress, elapsed: Duration) -> String {
    match at.stage {
        ScanStage::Reading => {
            let rate = (at.bytes as f64 / elapsed.as_secs_f64()) as u64;
            format!(
                "keeping {} of {} files, {} of {}, {}/s",
                grouped(at.files),
                grouped(at.total_files),
                size(at.bytes),
                size(at.total_bytes),
                size(rate)
            )
        }
        ScanStage::Moving => format!("moving {} paths", grouped(at.total_files)),
        ScanStage::Waiting => {
            "another snapshot of this workspace is under way; waiting for it".to_owned()
        }
        _ => format!("looking at {} files", grouped(at.files)),
    }
}
