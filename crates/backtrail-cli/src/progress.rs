//! How far long work is, on a terminal.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use backtrail::{Progress, ScanProgress, ScanStage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::grouped;
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

#[derive(Debug)]
struct Shown {
    bar: ProgressBar,
    begun: std::time::Instant,
}

impl Shown {
    fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(Some(0), target);
        bar.set_style(looking());
        Self {
            bar,
            begun: std::time::Instant::now(),
        }
    }
}

fn looking() -> ProgressStyle {
    style("{msg}")
}

fn reading() -> ProgressStyle {
    style("{msg}, {bytes} of {total_bytes}, {binary_bytes_per_sec}")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant")
}

impl Progress for Shown {
    fn update(&self, at: ScanProgress) {
        if self.begun.elapsed() < PATIENCE {
            return;
        }
        match at.stage {
            ScanStage::Reading => {
                if self.bar.length() != Some(at.total_bytes) {
                    self.bar.set_style(reading());
                    self.bar.set_length(at.total_bytes);
                }
                let files = (grouped(at.files), grouped(at.total_files));
                self.bar
                    .set_message(format!("keeping {} of {} files", files.0, files.1));
                self.bar.set_position(at.bytes);
            }
            _ => {
                let files = grouped(at.files);
                self.bar.set_message(format!("looking at {files} files"));
            }
        }
    }
}
