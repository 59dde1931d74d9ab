//! The verbs, one file each.

pub(crate) mod cat;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
mod filters;
pub(crate) mod fork;
pub(crate) mod gc;
mod here;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod man;
mod markdown;
mod moves;
mod page;
pub(crate) mod pin;
pub(crate) mod rebuild;
pub(crate) mod record;
mod recovery;
pub(crate) mod redo;
pub(crate) mod relink;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod steps;
pub(crate) mod tag;
pub(crate) mod title;
pub(crate) mod trash;
pub(crate) mod undo;
pub(crate) mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backtrail::{
    Durability, ErrorKind, ForkOptions, GapReason, HistoryGap, Session, SessionId, Store,
    StoreOptions,
};

use crate::args::{Args, Command, Global};
use crate::error::{CommandError, Result};
use crate::home;
use crate::settings::Settings;
use crate::text::{count, one_line};
use crate::ui::Ui;
use crate::when;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is done.
    Done,
    /// The answer is no, or the user must act.
    No,
    /// A command was run, and this is its exit code.
    Code(u8),
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

/// Runs the verb that was asked for.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Answer> {
    let global = &args.global;
    let Some(command) = &args.command else {
        return page::run(global, ui);
    };
    match command {
        Command::Run(args) => run::run(args, global, ui),
        Command::Record(args) => record::run(args, global, ui),
        Command::List(args) => list::run(args, global, ui),
        Command::Show(args) => show::run(args, global, ui),
        Command::Fork(args) => fork::run(args, global, ui),
        Command::Rewind(args) => rewind::run(args, global, ui),
        Command::Restore(args) => restore::run(args, global, ui),
        Command::Undo(args) => undo::run(args, global, ui),
        Command::Redo(args) => redo::run(args, global, ui),
        Command::Steps(args) => steps::run(args, global, ui),
        Command::Compact(args) => compact::run(args, global, ui),
        Command::Context(args) => context::run(args, global, ui),
        Command::Title(args) => title::run(args, global, ui),
        Command::Tag(args) => tag::run(args, global, ui),
        Command::Pin(args) => pin::run(args, global, ui),
        Command::Stats(args) => stats::run(args, global, ui),
        Command::Import(args) => import::run(args, global, ui),
        Command::Export(args) => export::run(args, global, ui),
        Command::Verify(args) => verify::run(args, global, ui),
        Command::Repair(args) => repair::run(args, global, ui),
        Command::Gc(args) => gc::run(args, global, ui),
        Command::Delete(args) => delete::run(args, global, ui),
        Command::Trash(args) => trash::run(args, global, ui),
        Command::Config(args) => config::run(args, global, ui),
        Command::Checkpoint(args) => checkpoint::run(args, global, ui),
        Command::Log(args) => log::run(args, global, ui),
        Command::Diff(args) => diff::run(args, global, ui),
        Command::Cat(args) => cat::run(args, global, ui),
        Command::Status(args) => status::run(args, global, ui),
        Command::Search(args) => search::run(args, global, ui),
        Command::Relink(args) => relink::run(args, global, ui),
        Command::Doctor(args) => doctor::run(args, global, ui),
        Command::Rebuild(args) => rebuild::run(args, global, ui),
        Command::Completions(args) => completions::run(args, global, ui),
        Command::Man(args) => man::run(args, global, ui),
    }
}

/// Returns the options that the store's settings ask for, and its directory.
fn store_options(global: &Global) -> Result<(StoreOptions, PathBuf)> {
    let (dir, _) = home::store_dir(global.store.as_deref())?;
    let settings = Settings::read(&dir)?;
    let options = StoreOptions::new()
        .durability(settings.durability.value)
        .rotation(settings.rotation.value)
        .snapshot_cap(settings.snapshot_cap.value)
        .program("backtrail");
    let options = match settings.keep_trails.value {
        Some(count) => options.keep_trails(count),
        None => options,
    };
    Ok((options, dir))
}

/// Returns the options for who looks at files: with the ignore rules that git is
/// set to use everywhere.
fn files_options(global: &Global) -> Result<(StoreOptions, PathBuf)> {
    let (options, dir) = store_options(global)?;
    Ok(match home::global_excludes() {
        Some(path) => (options.global_excludes(path), dir),
        None => (options, dir),
    })
}

/// Opens the store, making it where there is none.
fn open_or_create_store(global: &Global) -> Result<Store> {
    let (options, dir) = files_options(global)?;
    Ok(options.open_or_create(dir)?)
}

/// Opens the store if there is one. To look for something makes nothing.
fn open_store(global: &Global) -> Result<Option<Store>> {
    open_if_there(store_options(global)?)
}

/// Opens the store, if there is one, to look at files.
fn open_files_store(global: &Global) -> Result<Option<Store>> {
    open_if_there(files_options(global)?)
}

fn open_if_there((options, dir): (StoreOptions, PathBuf)) -> Result<Option<Store>> {
    match options.open(dir) {
        Ok(store) => Ok(Some(store)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens the store that a reference is looked up in.
fn require_store(global: &Global) -> Result<Store> {
    required(open_store(global)?, global)
}

/// Opens the store that a reference is looked up in, to look at files as well.
fn require_files_store(global: &Global) -> Result<Store> {
    required(open_files_store(global)?, global)
}

fn required(store: Option<Store>, global: &Global) -> Result<Store> {
    match store {
        Some(store) => Ok(store),
        None => {
            let (dir, _) = home::store_dir(global.store.as_deref())?;
            let what = format!("there is no store in {}", dir.display());
            Err(CommandError::not_found(what)
                .at_path(&dir)
                .hint("record something first: backtrail record --text hello"))
        }
    }
}

/// A place in a session: `REF`, or `REF:SEQ`.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    reference: String,
    pub(crate) seq: Option<u64>,
}

impl std::str::FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((reference, seq)) = text.split_once(':') else {
            return Ok(Self {
                reference: text.to_owned(),
                seq: None,
            });
        };
        match seq.parse() {
            Ok(seq) => Ok(Self {
                reference: reference.to_owned(),
                seq: Some(seq),
            }),
            Err(_) => Err("write it as REF:SEQ, where SEQ is the number of a record".to_owned()),
        }
    }
}

impl Point {
    pub(crate) fn resolve(&self, store: &Store) -> Result<SessionId> {
        resolve(store, &self.reference)
    }
}

/// Returns what is enough to name a session: ours are random from the first
/// digit, those of other programs are often not.
fn short(id: &SessionId) -> &str {
    let is_uuid = id.as_str().len() == 36 && id.as_str().split('-').count() == 5;
    if is_uuid { id.prefix(8) } else { id.as_str() }
}

/// Opens a session to speak in it. One that another agent keeps goes on in a fork.
fn speak_in(
    store: &Store,
    id: &SessionId,
    durability: Option<Durability>,
    ui: &Ui,
) -> backtrail::Result<Session> {
    recovery::before_speaking(store, id, ui);
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
        "session {} belongs to {}; this goes on in a fork of it: {}",
        short(id),
        one_line(&agent, 60),
        fork.id()
    ));
    Ok(fork)
}

/// Finds the session that a reference means; a wrong one brings up the nearest.
fn resolve(store: &Store, reference: &str) -> Result<SessionId> {
    // Which workspace this is matters to `latest` alone, and costs a look at all.
    let root = (reference == "latest").then(|| home::workspace_root(store));
    let root = root.flatten();
    store.resolve(reference, root.as_deref()).map_err(|error| {
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
                Some(id) => format!("nearest: {}", describe(store, &id)),
                None => "see what there is: backtrail list".to_owned(),
            }),
            _ => command,
        }
    })
}

/// Says how to get at a session that is in the trash.
fn deleted(error: backtrail::Error, id: &SessionId) -> CommandError {
    let id = short(id);
    CommandError::from(error).hint(format!("bring it back: backtrail trash restore {id}"))
}

/// Says what a session's history has no more, or only in the trash.
fn say_gaps(gaps: &[HistoryGap], ui: &Ui) {
    for gap in gaps {
        let next = gap.until + 1;
        let session = short(&gap.session);
        match gap.reason {
            GapReason::Purged { .. } => {
                let were = if gap.count() == 1 { "was" } else { "were" };
                ui.status(&format!(
                    "history begins at record {next}; {} before it {were} purged with session {session}",
                    count(gap.count(), "record")
                ));
            }
            GapReason::InTrash => ui.status(&format!(
                "history begins at record {next}; older trails are in the trash, and are read there \
                 until it is emptied: {gap}"
            )),
            _ => ui.status(&format!("history begins at record {next}; {gap}")),
        }
    }
}

/// Returns the session whose id is most like a reference, if one is like it at
/// all.
fn nearest(store: &Store, reference: &str) -> Option<SessionId> {
    let shared = |id: &SessionId| {
        let pairs = id.as_str().bytes().zip(reference.bytes());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let ids = store.sessions().ok()?.into_iter();
    ids.filter(|id| shared(id) > 0).max_by_key(shared)
}

/// Writes a session as one tells it from others: what it begins with, its title
/// and when it was last spoken in.
fn describe(store: &Store, id: &SessionId) -> String {
    let info = store.read_session(id).and_then(|reader| reader.info());
    let Ok(info) = info else {
        return id.to_string();
    };
    let title = one_line(info.title.as_deref().unwrap_or("untitled"), 40);
    let at = info
        .updated_at
        .map_or_else(String::new, |at| format!(", {}", when::brief(at)));
    format!("{} ({title}{at})", short(id))
}

/// Says what else can be done with a session that somebody else speaks in.
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
    let message = format!("session {id} is open for writing in process {pid} ({by})");
    CommandError::from(error)
        .message(message)
        .hint(format!("read it with: backtrail show {id} --follow"))
        .hint(format!("go your own way: backtrail fork {id}"))
}

/// Writes a file of the store as seen from the store.
fn relative<'a>(store: &Store, path: &'a Path) -> &'a Path {
    path.strip_prefix(store.root()).unwrap_or(path)
}
