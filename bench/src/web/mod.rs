//! The pages: the real program, asked over HTTP and looked at in a browser.

mod beside;
mod browser;
mod chromium;
mod pages;
mod served;

use std::time::{Duration, Instant};

use crate::Result;
use crate::parts::Part;

/// The measured parts.
pub(crate) const PARTS: [Part; 3] = [
    Part {
        name: "pages",
        also: &[],
        measure: pages::measure,
    },
    Part {
        name: "browser",
        also: &[],
        measure: browser::measure,
    },
    Part {
        name: "agentsview-pages",
        also: &[],
        measure: beside::measure,
    },
];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing is done.
const IDLE: Duration = Duration::from_secs(5);

/// Asks again and again until the answer is yes; returns when that was.
fn wait_until(mut ask: impl FnMut() -> Result<bool>) -> Result<Instant> {
    const PAUSE: Duration = Duration::from_millis(2);
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if ask()? {
            return Ok(Instant::now());
        }
        std::thread::sleep(PAUSE);
    }
    Err("what was waited for did not come".into())
}
