//! `backtrail gc`: frees space in the store.

use std::io::Write;
use std::time::Duration;

use backtrail::ErrorKind;
use backtrail::gc::{DroppedStates, GcOptions, GcReport};

use super::{Answer, relative, require_store};
use crate::amount::{read_age, read_bytes};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::progress::while_counted;
use crate::text::{count, size};
use crate::ui::Ui;
use crate::when;

/// Free space: remove unreferenced data
///
/// Without a limit, only data that no checkpoint needs is removed. With a limit, the files of
/// old checkpoints are dropped too: first those around tool calls, then others, oldest first.
/// The checkpoints stay in the log, without their files. Labelled checkpoints and the latest of
/// each session and workspace always keep their files. Other commands can run alongside.
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {
    /// Drop the files of checkpoints older than this: 30d, 12h, 2w
    #[arg(long, value_name = "AGE", value_parser = read_age)]
    older_than: Option<Duration>,

    /// Drop files until the store is no larger than this: 20G, 500M
    #[arg(long, value_name = "SIZE", value_parser = read_bytes)]
    max_size: Option<u64>,

    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &GcArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
    let mut options = GcOptions::new();
    if let Some(age) = args.older_than {
        options = options.older_than(age);
    }
    if let Some(bytes) = args.max_size {
        options = options.max_size(bytes);
    }
    let report = while_counted(ui, "checking snapshots", |progress| {
        let options = match progress {
            Some(progress) => options.progress(progress),
            None => options,
        };
        match args.dry_run {
            true => store.gc_plan(&options).map(|plan| plan.report().clone()),
            false => store.gc(&options),
        }
    });
    let report = report.map_err(|error| stopped(error, ui))?;
    let output = Output {
        report: &report,
        store: &store,
    };
    if ui.json() {
        ui.print_json(&report)?;
    } else {
        output.print(ui)?;
    }
    output.warn(ui);
    let is_damaged = report
        .skipped_packs
        .iter()
        .any(|left| left.damaged.is_some());
    Ok(Answer::no_if(is_damaged || report.over > 0))
}

/// Adds hints to the error that stopped it.
fn stopped(error: backtrail::Error, ui: &Ui) -> CommandError {
    let kind = error.kind();
    let command = CommandError::from(error);
    match kind {
        ErrorKind::Corrupt => command
            .context("gc stopped: some data cannot be read and may need what gc would remove")
            .hint(format!("see what is damaged: {} verify", ui.program())),
        ErrorKind::Locked => command.hint("another gc is running; let it finish"),
        _ => command,
    }
}

/// Prints what was done.
struct Output<'a> {
    report: &'a GcReport,
    store: &'a backtrail::Store,
}

impl Output<'_> {
    fn print(&self, ui: &Ui) -> std::io::Result<()> {
        let report = self.report;
        let mut out = ui.out();
        for states in &report.dropped {
            writeln!(out, "{}", dropped(states, report.dry_run))?;
        }
        if report.packs_removed + report.packs_rewritten == 0 && report.freed == 0 {
            writeln!(out, "nothing to free: everything stored is needed")?;
        } else {
            let freed = match report.dry_run {
                true => "would free",
                false => "freed",
            };
            let packs = self.packs();
            writeln!(out, "{freed} {} ({packs})", size(report.freed))?;
        }
        writeln!(out, "{}", self.remaining())?;
        out.flush()
    }

    fn packs(&self) -> String {
        let report = self.report;
        let mut parts = vec![count(report.objects, "object")];
        if report.packs_removed > 0 {
            parts.push(format!("{} removed", count(report.packs_removed, "pack")));
        }
        if report.packs_rewritten > 0 {
            let packs = count(report.packs_rewritten, "pack");
            parts.push(format!("{packs} rewritten"));
        }
        parts.join("; ")
    }

    fn remaining(&self) -> String {
        let (report, kept) = (self.report, self.report.kept);
        let is = match report.dry_run {
            true => "would be",
            false => "is",
        };
        let mut text = format!("the store {is} {}", size(report.store_bytes));
        if kept.states > 0 {
            text += &format!(" with {}", count(kept.states, "file state"));
        }
        let always = [
            (kept.labelled, "labelled checkpoints"),
            (kept.newest, "the latest of each session and workspace"),
            (kept.in_use, "checkpoints in use"),
        ];
        let always: Vec<String> = always
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{what} ({n})"))
            .collect();
        if !always.is_empty() {
            text += &format!("; always kept: {}", always.join(", "));
        }
        text
    }

    fn warn(&self, ui: &Ui) {
        let report = self.report;
        let verify = format!("see what is damaged: {} verify", ui.program());
        for left in &report.skipped_packs {
            let file = relative(self.store, &left.file).display();
            match left.damaged {
                Some(id) => {
                    let what = format!("kept {file}: object {id} in it is needed and damaged");
                    ui.warning(&what, Some(&verify));
                }
                None => ui.status(&format!("kept {file} for now: it is in use")),
            }
        }
        for skipped in &report.skipped_workspaces {
            let (root, reason) = (tilde(&skipped.root), &skipped.error);
            ui.warning(&format!("dropped nothing in {root}: {reason}"), None);
        }
        if report.missing > 0 {
            let files = count(report.missing, "kept file");
            let what = format!("the content of {files} is missing from the store");
            ui.warning(&what, Some(&verify));
        }
        if report.over > 0 {
            let over = size(report.over);
            let what = format!("the store is still {over} over the limit");
            let hint = "sessions, labelled checkpoints and the latest of each session are always \
                        kept; to free more: delete sessions";
            ui.warning(&what, Some(hint));
        }
    }
}

/// Returns which files were dropped.
fn dropped(states: &DroppedStates, dry_run: bool) -> String {
    let verb = if dry_run { "would drop" } else { "dropped" };
    let files = count(states.checkpoints, "checkpoint");
    let (from, to) = (when::brief(states.oldest), when::brief(states.newest));
    let when = match from == to {
        true => from,
        false => format!("{from} to {to}"),
    };
    format!(
        "{verb} the files of {files} in {} ({when})",
        tilde(&states.root)
    )
}
