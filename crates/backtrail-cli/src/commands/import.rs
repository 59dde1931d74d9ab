//! `backtrail import`: the sessions of other agents.

mod own;
mod table;

use std::io;
use std::path::PathBuf;

use backtrail::Store;
use backtrail_formats::{Environment, Format, ImportOptions, ImportReport, formats, import};
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value, json};

use super::{Answer, open_files_store, open_or_create_store};
use crate::args::Global;
use crate::derived;
use crate::error::{CommandError, Result};
use crate::progress;
use crate::text::{count, path_json};
use crate::ui::Ui;
use own::Own;

/// Take in the sessions of other agents
///
/// Without a path, those that agents keep in their usual places on this machine. What was
/// taken in before is passed by, and what has grown is gone on with; so it can be done as
/// often as you like, also while an agent is writing. The files are only read, and what was
/// taken in stays, whatever becomes of them. Lines that are damaged are passed over and
/// counted.
///
/// A session that was taken in belongs to its agent. Going on with one here makes a fork.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Files, and directories with files in them [default: where agents keep their sessions]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Only the sessions of this agent; may be given several times
    #[arg(long, value_name = "AGENT", value_parser = agents())]
    from: Vec<String>,

    /// Only say what there is to take in
    #[arg(long)]
    dry_run: bool,
}

fn agents() -> PossibleValuesParser {
    PossibleValuesParser::new(formats().map(Format::name))
}

pub(crate) fn run(args: &ImportArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = match args.dry_run {
        true => open_files_store(global)?,
        false => Some(open_or_create_store(global)?),
    };
    let chosen = |format: &&dyn Format| {
        args.from.is_empty() || args.from.iter().any(|name| name == format.name())
    };
    let environment = Environment::from_variables(std::env::vars_os());
    let mut options = ImportOptions::new(environment).from(formats().filter(chosen).collect());
    if args.dry_run {
        options = options.dry_run();
    }
    // Files of our own are no other agent's.
    let (own, paths) = match args.from.is_empty() {
        true => own::part(&args.paths),
        false => (Vec::new(), args.paths.clone()),
    };
    let asked_for_own = !own.is_empty() && paths.is_empty();
    let report = match asked_for_own {
        true => ImportReport::default(),
        false => read(store.as_ref(), &options.paths(paths), ui)?,
    };
    let own = Own::import(store.as_ref(), &own, args.dry_run);
    if let Some(store) = store.as_ref().filter(|_| !args.dry_run) {
        catch_up(store, &report, ui);
    }
    match ui.json() {
        true => ui.print_json(&as_json(args, &report, &own))?,
        false => table::tell(args.dry_run, &report, &own, ui)?,
    }
    let failed = report.agents.iter().any(|agent| !agent.errors.is_empty())
        || !report.errors.is_empty()
        || own.failed();
    Ok(if failed { Answer::No } else { Answer::Done })
}

fn read(store: Option<&Store>, options: &ImportOptions, ui: &Ui) -> Result<ImportReport> {
    let report = progress::while_read(ui, "taking in", |tell| {
        import(store, options, &|at| {
            if let Some(tell) = &tell {
                tell(at.bytes.0, at.bytes.1);
            }
        })
    });
    report.map_err(|error| failed(&error))
}

/// Brings catalogue and search up to date, so that the next question need not wait.
fn catch_up(store: &Store, report: &ImportReport, ui: &Ui) {
    let has_news = report
        .agents
        .iter()
        .any(|agent| agent.new + agent.updated > 0);
    if has_news && let Err(error) = derived::ask(store, ui, "indexing", |index| index.catch_up()) {
        // What was taken in is safe; whoever asks next tries again.
        ui.warning(
            "what was taken in is not indexed yet",
            Some(&error.to_string()),
        );
    }
}

/// Turns an error into one that says what to do.
pub(super) fn failed(error: &backtrail_formats::Error) -> CommandError {
    if let Some(store) = error.store() {
        return CommandError::from(store).hint("what was taken in before is safe");
    }
    let cause = std::error::Error::source(error);
    let io = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    let told = match io {
        Some(io) if io.kind() == io::ErrorKind::NotFound => {
            CommandError::not_found(error.what()).cause(io.to_string())
        }
        Some(io) => CommandError::io(error.what(), None, io),
        None => CommandError::invalid(error.what()),
    };
    match error.path() {
        Some(path) => told.at_path(path),
        None => told,
    }
}

fn as_json(args: &ImportArgs, report: &ImportReport, own: &Own) -> Value {
    let error = |error: &backtrail_formats::Error| {
        let told = failed(error);
        json!({
            "file": error.path().map(path_json),
            "error": in_one_line(&told),
            "kind": told.kind(),
        })
    };
    let mut agents = Map::new();
    for agent in &report.agents {
        let errors: Vec<Value> = agent.errors.iter().map(error).collect();
        let damaged = agent.damaged.iter().map(|(path, line)| {
            json!({"file": path_json(path), "line": line.line, "byte": line.byte,
                "bytes": line.bytes, "reason": line.reason})
        });
        agents.insert(
            agent.agent.to_owned(),
            json!({
                "found": agent.found,
                "new": agent.new,
                "updated": agent.updated,
                "unchanged": agent.unchanged,
                "deleted_here": agent.deleted,
                "damaged_lines": agent.damaged_lines,
                "unknown_records": agent.unknown_records(),
                "unknown_kinds": agent.unknown,
                "unfinished_lines": agent.unfinished,
                "messages": agent.messages,
                "first_damaged": damaged.collect::<Vec<_>>(),
                "errors": errors,
            }),
        );
    }
    let mut errors: Vec<Value> = report.errors.iter().map(error).collect();
    errors.extend(own.errors_json());
    json!({
        "agents": agents,
        "own": own.as_json(),
        "other_files": report.strangers.len(),
        "errors": errors,
        "dry_run": args.dry_run,
    })
}

/// Writes an error and its causes on one line.
fn in_one_line(error: &CommandError) -> String {
    let causes = error.causes().iter();
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Says how many of something.
fn many(n: usize, thing: &str) -> String {
    count(n as u64, thing)
}
