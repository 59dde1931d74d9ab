//! `backtrail import`: imports sessions from other agents.

mod own;
mod table;

use std::io;
use std::path::{Path, PathBuf};

use backtrail::Store;
use backtrail_formats::{
    Environment, Exclude, Format, ImportOptions, ImportReport, bind_imported, formats, import,
    preview,
};
use serde_json::{Map, Value, json};

use super::agent_arg::AgentArg;
use super::{Answer, open_files_store, open_or_create_store};
use crate::derived;
use crate::error::{CommandError, Result};
use crate::progress;
use crate::settings::Settings;
use crate::text::path_json;
use crate::ui::Ui;
use own::Own;

/// Import sessions from other agents
///
/// Without a path, imports the sessions in the agents' usual directories. Already imported
/// sessions are skipped and grown ones updated, so you can run it as often as you like, even
/// while an agent is writing. The files are only read, and imported sessions stay even if their
/// files are deleted. Damaged lines are skipped and counted.
///
/// An imported session belongs to its agent. Continuing one here creates a fork.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Files and directories to import [default: the agents' usual directories]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Import only this agent's sessions; repeatable
    #[arg(long, value_name = "AGENT", value_parser = agents())]
    from: Vec<String>,

    /// Only show what would be imported
    #[arg(long)]
    dry_run: bool,
}

fn agents() -> AgentArg {
    AgentArg::new(formats().map(Format::name))
}

pub(crate) fn run(args: &ImportArgs, ui: &Ui) -> Result<Answer> {
    let store = match args.dry_run {
        true => open_files_store(ui)?,
        false => Some(open_or_create_store(ui)?),
    };
    let chosen = |format: &&dyn Format| {
        args.from.is_empty() || args.from.iter().any(|name| name == format.name())
    };
    let options = import_options(&ui.store_dir()?.0)?.as_history();
    let mut options = options.formats(formats().filter(chosen).collect());
    if args.dry_run {
        options = options.dry_run();
    }
    // With --from, all files are another agent's.
    let (own, paths) = match args.from.is_empty() {
        true => own::split(&args.paths),
        false => (Vec::new(), args.paths.clone()),
    };
    let only_own = !own.is_empty() && paths.is_empty();
    let report = match only_own {
        true => ImportReport::default(),
        false => import_files(store.as_ref(), &options.paths(paths), ui)?,
    };
    let own = Own::import(store.as_ref(), &own, args.dry_run);
    if let Some(store) = store.as_ref().filter(|_| !args.dry_run) {
        bind_imported(store).map_err(|error| failed(&error))?;
        catch_up(store, &report, ui);
    }
    match ui.json() {
        true => ui.print_json(&as_json(args, &report, &own))?,
        false => table::print(args.dry_run, &report, &own, ui)?,
    }
    let failed = report.agents.iter().any(|agent| !agent.errors.is_empty())
        || !report.errors.is_empty()
        || own.failed();
    Ok(Answer::no_if(failed))
}

/// Returns what is imported from the agents on this machine, without what the user excludes.
pub(super) fn import_options(store: &Path) -> Result<ImportOptions> {
    let environment = Environment::from_variables(std::env::vars_os());
    let exclude = exclude(store, &environment)?;
    Ok(ImportOptions::new(environment).exclude(exclude))
}

/// Returns what the user excludes from imports.
pub(super) fn exclude(store: &Path, environment: &Environment) -> Result<Exclude> {
    let patterns = Settings::read(store)?.import_exclude.value;
    let exclude = Exclude::new(&patterns, environment);
    exclude.map_err(|reason| CommandError::invalid(format!("import.exclude: {reason}")))
}

/// Imports the histories of agents, with progress.
pub(super) fn import_histories(
    store: &Store,
    agents: Vec<&'static dyn Format>,
    ui: &Ui,
) -> Result<ImportReport> {
    let options = import_options(store.root())?.as_history().formats(agents);
    let report = import_files(Some(store), &options, ui)?;
    bind_imported(store).map_err(|error| failed(&error))?;
    catch_up(store, &report, ui);
    Ok(report)
}

/// Imports files, with progress; without a store, only reports what an import would do.
pub(super) fn import_files(
    store: Option<&Store>,
    options: &ImportOptions,
    ui: &Ui,
) -> Result<ImportReport> {
    let report = progress::while_importing(ui, |progress| match store {
        Some(store) => import(store, options, progress),
        None => preview(options, progress),
    });
    report.map_err(|error| failed(&error))
}

/// Updates the catalogue and the search index, so that the next query need not wait.
fn catch_up(store: &Store, report: &ImportReport, ui: &Ui) {
    let has_news = report
        .agents
        .iter()
        .any(|agent| agent.new + agent.updated > 0);
    if has_news && let Err(error) = derived::ask(store, ui, "indexing", |index| index.catch_up()) {
        // The sessions are safe; the next query tries again.
        ui.warning(
            "the imported sessions are not indexed yet",
            Some(&error.to_string()),
        );
    }
}

/// Turns an import error into a command error.
pub(super) fn failed(error: &backtrail_formats::Error) -> CommandError {
    if let Some(store) = error.store() {
        return CommandError::from(store).hint("already imported sessions are safe");
    }
    let cause = std::error::Error::source(error);
    let io = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    let command_error = match io {
        Some(io) if io.kind() == io::ErrorKind::NotFound => {
            CommandError::not_found(error.message()).cause(io.to_string())
        }
        Some(io) => CommandError::io(error.message(), None, io),
        None => CommandError::invalid(error.message()),
    };
    match error.path() {
        Some(path) => command_error.at_path(path),
        None => command_error,
    }
}

fn as_json(args: &ImportArgs, report: &ImportReport, own: &Own) -> Value {
    let error = |error: &backtrail_formats::Error| {
        let command_error = failed(error);
        json!({
            "file": error.path().map(path_json),
            "error": command_error.with_causes(),
            "kind": command_error.kind,
        })
    };
    let mut agents = Map::new();
    for agent in &report.agents {
        let mut value = json!(agent);
        value["unknown_records"] = agent.unknown_records().into();
        value["errors"] = agent.errors.iter().map(error).collect();
        agents.insert(agent.agent.to_owned(), value);
    }
    let mut errors: Vec<Value> = report.errors.iter().map(error).collect();
    errors.extend(own.errors_json());
    json!({
        "agents": agents,
        "own": own.as_json(),
        "other_files": report.other_files.len(),
        "errors": errors,
        "dry_run": args.dry_run,
    })
}
