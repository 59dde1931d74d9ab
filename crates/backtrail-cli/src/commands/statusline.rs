//! `backtrail statusline`: one line for an agent to show below its prompt.
//!
//! An agent runs it every few hundred milliseconds. So it looks up what the catalogue knew last
//! and reads the end of the workspace's trail: it catches up with nothing, waits for no lock, and
//! whatever is missing or wrong only shortens the line. `input.rs` reads what the agent reports,
//! `figures.rs` finds the figures, `line.rs` puts them into the template, `undo.rs` knows whether
//! undo is ready, and `wrapped.rs` runs the command that the agent ran before.

mod figures;
mod input;
mod line;
mod undo;
mod wrapped;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use backtrail_formats::{StatusReport, status_report};

use self::figures::Figures;
use self::line::Look;
use self::wrapped::Wrapped;
use super::Answer;
use crate::error::Result;
use crate::settings::{Settings, StatusTemplate};
use crate::text::harmless;
use crate::ui::Ui;

/// Print one line for an agent's status line: cost, context, quota and undo
///
/// Reads the agent's JSON on stdin, if there is any (Claude Code's statusLine; `setup claude`
/// installs it). Costs are those that the catalogue knew last: nothing is imported or indexed.
///
/// Figures without a mark are the agent's own. * marks what Backtrail computed from recorded calls
/// and known prices, + a computed lower bound, ~ an estimate. NOT PROTECTED means that what
/// the agent does now cannot be undone.
///
/// The setting statusline.template has the parts; those without a value vanish.
#[derive(Debug, clap::Args)]
pub(crate) struct StatuslineArgs {
    /// Run this shell command first, with the same input, and print its output before the line
    #[arg(long, value_name = "COMMAND")]
    after: Option<String>,
}

pub(crate) fn run(args: &StatuslineArgs, ui: &Ui) -> Result<Answer> {
    // An agent would show whatever goes wrong, or nothing at all.
    std::panic::set_hook(Box::new(|_| {}));
    let input = input::read();
    let command = args.after.as_deref().filter(|_| !ui.json());
    let wrapped = command.and_then(|command| Wrapped::start(command, &input));
    let report = status_report(&input);
    drop(input);
    let settings = ui.store_dir().and_then(|(dir, _)| Settings::read(&dir));
    let (template, wait) = match settings {
        Ok(settings) => (
            settings.statusline_template.value,
            settings.statusline_wait.value,
        ),
        // Other verbs report what is wrong in it.
        Err(_) => (StatusTemplate::default(), Settings::STATUSLINE_WAIT),
    };
    let line = catch_unwind(AssertUnwindSafe(|| printed(&report, &template, ui)));
    if let Some(wrapped) = wrapped {
        print(&wrapped.output(wait));
    }
    if let Ok(line) = line {
        print(line.as_bytes());
    }
    Ok(Answer::Done)
}

/// Returns what is printed: the line, or all figures as JSON.
fn printed(report: &StatusReport, template: &StatusTemplate, ui: &Ui) -> String {
    let figures = Figures::find(report, ui);
    let look = Look::of_environment(ui);
    match ui.json() {
        true => {
            let mut json = figures.as_json();
            json["line"] = line::line(&figures, template, &look.unstyled()).into();
            format!("{}\n", harmless(&json.to_string()))
        }
        false => match line::line(&figures, template, &look) {
            line if line.is_empty() => line,
            line => format!("{line}\n"),
        },
    }
}

/// Prints bytes. An agent that does not listen misses nothing.
fn print(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).ok();
}
