//! The verbs, one file each.

mod agent_arg;
pub(crate) mod blame;
pub(crate) mod cat;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
mod conversation;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
mod filters;
mod following;
pub(crate) mod fork;
mod fresh;
pub(crate) mod gc;
pub(crate) mod help;
pub(crate) mod hook;
pub(crate) mod import;
mod library;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod man;
mod markdown;
mod moves;
mod overview;
pub(crate) mod pin;
mod protection;
pub(crate) mod pull;
pub(crate) mod push;
pub(crate) mod rebuild;
pub(crate) mod record;
mod recovery;
pub(crate) mod redo;
pub(crate) mod relink;
pub(crate) mod remote;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod statusline;
pub(crate) mod tag;
pub(crate) mod title;
pub(crate) mod trash;
pub(crate) mod ui;
pub(crate) mod undo;
pub(crate) mod verify;
pub(crate) mod version;
pub(crate) mod watch;
pub(crate) mod web;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backtrail::verify::{GapReason, HistoryGap};
use backtrail::{
    Durability, ErrorKind, ForkOptions, Session, SessionId, SessionInfo, Store, StoreOptions,
};
use backtrail_formats::agent_title;
use serde::Serialize;

use self::conversation::NO_TITLE;
use crate::args::Args;
use crate::error::{CommandError, Result};
use crate::home;
use crate::settings::Settings;
use crate::shell::quote;
use crate::short::{self, short};
use crate::text::{count, one_line, plural};
use crate::ui::Ui;
use crate::when;

/// The result of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done.
    Done,
    /// The answer is no, or the user must act.
    No,
    /// The exit code of a command that was run.
    Code(u8),
}

impl Answer {
    /// Returns no if there is something to act on.
    fn no_if(wrong: bool) -> Self {
        match wrong {
            true => Self::No,
            false => Self::Done,
        }
    }
}

impl From<Answer> for ExitCode {
    fn from(answer: Answer) -> Self {
        Self::from(match answer {
            Answer::Done => 0,
            Answer::No => 1,
            Answer::Code(code) => code,
        })
    }
}

impl Ui {
    /// Prints the data of a command that is done.
    fn answer_json(&self, value: &impl Serialize) -> Result<Answer> {
        self.print_json(value)?;
        Ok(Answer::Done)
    }
}

/// Runs a verb; without one, shows an overview.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Answer> {
    match &args.command {
        Some(command) => command.run(ui),
        None if ui::is_default(ui)? => ui::run(&ui::UiArgs::default(), ui),
        None => overview::run(ui),
    }
}

/// Returns the store's options, from its settings, and its directory.
fn store_options(ui: &Ui) -> Result<(StoreOptions, PathBuf)> {
    let (dir, _) = ui.store_dir()?;
    let settings = Settings::read(&dir)?;
    let options = StoreOptions::new()
        .durability(settings.durability.value)
        .rotation(settings.rotation.value)
        .snapshot_cap(settings.snapshot_cap.value)
        .include_cap(settings.include_cap.value)
        .program("backtrail");
    let options = match settings.keep_trails.value {
        Some(count) => options.keep_trails(count),
        None => options,
    };
    Ok((options, dir))
}

/// Returns the store's options for work with files: with git's global ignore rules.
fn files_options(ui: &Ui) -> Result<(StoreOptions, PathBuf)> {
    let (options, dir) = store_options(ui)?;
    Ok(match home::global_excludes() {
        Some(path) => (options.global_excludes(path), dir),
        None => (options, dir),
    })
}

/// Opens the store, creating it if there is none.
fn open_or_create_store(ui: &Ui) -> Result<Store> {
    let (options, dir) = files_options(ui)?;
    let store = options.open_or_create(dir)?;
    short::use_store(&store);
    Ok(store)
}

/// Opens the store if there is one. Looking creates nothing.
fn open_store(ui: &Ui) -> Result<Option<Store>> {
    open_if_there(store_options(ui)?)
}

/// Opens the store, if there is one, to work with files.
fn open_files_store(ui: &Ui) -> Result<Option<Store>> {
    open_if_there(files_options(ui)?)
}

fn open_if_there((options, dir): (StoreOptions, PathBuf)) -> Result<Option<Store>> {
    match options.open(dir) {
        Ok(store) => {
            short::use_store(&store);
            Ok(Some(store))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens the store; fails if there is none.
fn require_store(ui: &Ui) -> Result<Store> {
    required(open_store(ui)?, ui)
}

/// Opens the store to work with files; fails if there is none.
fn require_files_store(ui: &Ui) -> Result<Store> {
    required(open_files_store(ui)?, ui)
}

fn required(store: Option<Store>, ui: &Ui) -> Result<Store> {
    match store {
        Some(store) => Ok(store),
        None => {
            let (dir, _) = ui.store_dir()?;
            let what = format!("no store in {}", dir.display());
            Err(CommandError::not_found(what)
                .at_path(&dir)
                .hint(how_to_begin("backtrail")))
        }
    }
}

/// Returns the commands that put the first sessions into a store.
fn how_to_begin(program: &str) -> String {
    format!("start with: {program} run -- COMMAND, or {program} import")
}

/// Splits `REF:SEQ`; without a record the whole session is meant.
fn split_place(text: &str) -> Result<(&str, Option<u64>)> {
    let Some((reference, seq)) = text.rsplit_once(':') else {
        return Ok((text, None));
    };
    match seq.parse() {
        Ok(seq) => Ok((reference, Some(seq))),
        Err(_) => {
            let what = format!("{} is not a record of a session", quote(text));
            let way = "write REF:SEQ, where SEQ is the number of a record";
            Err(CommandError::invalid(what).hint(way))
        }
    }
}

/// Opens a session to write to it. A session of another agent continues in a fork.
fn open_to_write(
    store: &Store,
    id: &SessionId,
    durability: Option<Durability>,
    ui: &Ui,
) -> backtrail::Result<Session> {
    recovery::before_writing(store, id, ui);
    let Some(agent) = store.read_session(id)?.info()?.belongs_to else {
        return match durability {
            Some(durability) => store.open_session_with(id, durability),
            None => store.open_session(id),
        };
    };
    let options = match durability {
        Some(durability) => ForkOptions::new().durability(durability),
        None => ForkOptions::new(),
    };
    let fork = store.fork_session(id, &options)?;
    ui.status(&format!(
        "session {} belongs to {}; continuing in a fork: {}",
        short(id),
        one_line(agent_title(&agent), 60),
        fork.id()
    ));
    Ok(fork)
}

/// Finds the session that a reference means; the error for a wrong one names the nearest.
fn resolve(store: &Store, reference: &str) -> Result<SessionId> {
    workspace::freshen(store);
    // Only `latest` depends on the workspace, and finding it takes time.
    let root = (reference == "latest").then(|| home::workspace_root(store));
    let found = match root.flatten() {
        Some(root) => store.resolve_in(reference, &root),
        None => store.resolve(reference),
    };
    found.map_err(|error| unresolved(store, reference, error))
}

/// Adds what a reference to no session may have meant.
fn unresolved(store: &Store, reference: &str, error: backtrail::Error) -> CommandError {
    let candidates = error.candidates().to_vec();
    if let Some(id) = error.in_trash().cloned() {
        return deleted(error, &id);
    }
    let kind = error.kind();
    let command = CommandError::from(error);
    match kind {
        ErrorKind::Ambiguous => {
            let ids = candidates.iter().take(5);
            ids.fold(command, |command, id| command.hint(describe(store, id)))
        }
        ErrorKind::NotFound => command.hint(match nearest(store, reference) {
            Some(id) => format!("did you mean {}?", describe(store, &id)),
            None => "see all sessions: backtrail list --all".to_owned(),
        }),
        _ => command,
    }
}

/// Opens the store and finds the session that a reference means.
fn find_session(reference: &str, ui: &Ui) -> Result<(Store, SessionId)> {
    let store = require_store(ui)?;
    let id = resolve(&store, reference)?;
    Ok((store, id))
}

/// Adds how to restore a session that is in the trash.
fn deleted(error: backtrail::Error, id: &SessionId) -> CommandError {
    let id = short(id);
    CommandError::from(error).hint(format!("restore it: backtrail trash restore {id}"))
}

/// Reports which part of a session's history is purged or in the trash.
fn report_gaps(gaps: &[HistoryGap], ui: &Ui) {
    for gap in gaps {
        let next = gap.until + 1;
        let session = short(&gap.session);
        match gap.reason {
            GapReason::Purged { .. } => {
                let were = plural(gap.count(), "was", "were");
                ui.status(&format!(
                    "history starts at record {next}; {} before it {were} purged with session {session}",
                    count(gap.count(), "record")
                ));
            }
            GapReason::InTrash => ui.status(&format!(
                "history starts at record {next}; {gap} until it is emptied"
            )),
            _ => ui.status(&format!("history starts at record {next}; {gap}")),
        }
    }
}

/// Returns the session whose id or short id shares the longest prefix with a reference, at least
/// half of it.
fn nearest(store: &Store, reference: &str) -> Option<SessionId> {
    let shared = |id: &str| {
        let pairs = id.bytes().zip(reference.bytes());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let shared = |id: &SessionId| shared(id.as_str()).max(shared(&id.short()));
    let ids = store.sessions().ok()?.into_iter();
    ids.filter(|id| shared(id) * 2 >= reference.len())
        .max_by_key(shared)
}

/// Describes a session by its short id, its title and when it was last active.
fn describe(store: &Store, id: &SessionId) -> String {
    let info = store.read_session(id).and_then(|reader| reader.info());
    info.map_or_else(
        |_| id.to_string(),
        |info| describe_info(&titled(store, info)),
    )
}

/// Sets a title that everyone sees: that of the rule.
fn titled(store: &Store, mut info: SessionInfo) -> SessionInfo {
    let title = store
        .read_session(&info.id)
        .and_then(|reader| reader.title());
    info.title = title.ok().flatten();
    info
}

fn describe_info(info: &SessionInfo) -> String {
    let title = one_line(info.title.as_deref().unwrap_or(NO_TITLE), 40);
    let at = info
        .updated_at
        .map_or_else(String::new, |at| format!(", {}", when::brief(at)));
    format!("{} ({title}{at})", short(&info.id))
}

/// Names the process that is writing to a session, and what to do instead.
fn locked_hint(error: backtrail::Error, id: &SessionId) -> CommandError {
    let id = short(id);
    let Some(holder) = error.holder() else {
        return error.into();
    };
    let since = when::brief(holder.since);
    let by = match &holder.program {
        Some(program) => format!("{}, since {since}", one_line(program, 40)),
        None => format!("since {since}"),
    };
    let pid = holder.pid;
    let message = format!("process {pid} is writing to session {id} ({by})");
    CommandError::from(error)
        .message(message)
        .hint(format!("to follow it: backtrail show {id} --follow"))
        .hint(format!("to continue separately: backtrail fork {id}"))
}

/// Returns the path of a file relative to the store.
fn relative<'a>(store: &Store, path: &'a Path) -> &'a Path {
    path.strip_prefix(store.root()).unwrap_or(path)
}
