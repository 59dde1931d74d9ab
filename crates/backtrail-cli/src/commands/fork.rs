//! `backtrail fork`: a new session that continues another.

mod into;
mod worktree;

use std::path::{Path, PathBuf};

use backtrail::plumbing::is_name_like;
use backtrail::{CheckpointOptions, ForkOptions, Point};
use serde_json::json;

use super::workspace::WorkspaceArgs;
use super::{Answer, require_store, resolve, short, split_place};
use crate::error::{CommandError, Result};
use crate::shell::quote;
use crate::text::one_line;
use crate::ui::Ui;
use into::ForkIntoRequest;
pub(super) use into::PlannedFork;

/// Start a new session that continues another one from any record
///
/// Nothing is copied, and the original stays as it is. With --into, the new session gets its
/// own directory with the files as they were at that point, ready for another agent.
#[derive(Debug, clap::Args)]
pub(crate) struct ForkArgs {
    /// A session and the last record to share, as REF:SEQ; without :SEQ, all of it. With
    /// --into, also a checkpoint or record id, a label, last or last~N (see: help diff)
    #[arg(value_name = "POINT")]
    point: String,

    /// Write the files as they were to this empty or new directory, and continue there
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,

    /// Make the directory a detached git worktree, at the commit that HEAD named then; git status
    /// there shows what differs
    #[arg(long, requires = "into")]
    git: bool,

    /// Name the fork; commands accept the name as REF
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Only show what would be done
    #[arg(long, requires = "into")]
    dry_run: bool,

    /// Leave out files that are damaged in the store
    #[arg(long, requires = "into")]
    skip_damaged: bool,

    #[command(flatten)]
    here: WorkspaceArgs,
}

/// Refuses a name that already means a session.
fn check_name(name: &str, ui: &Ui) -> Result<()> {
    let name = name.trim();
    // A blank name is none.
    if name.is_empty() {
        return Ok(());
    }
    if !is_name_like(name) {
        let what = format!("{} cannot be used as a name for a session", quote(name));
        let hint = "pick a name of letters, digits, spaces, dots, - and _";
        return Err(CommandError::invalid(what).hint(hint));
    }
    // What is a point, such as last~1, would not mean the fork.
    CheckpointOptions::new().label(name).check().map_err(|_| {
        let what = format!("{} is reserved for points", quote(name));
        CommandError::invalid(what).hint("pick another name")
    })?;
    match require_store(ui)?.resolve(name) {
        Ok(taken) => {
            let what = format!("{} already means session {}", quote(name), short(&taken));
            Err(CommandError::invalid(what).hint("pick another name"))
        }
        Err(_) => Ok(()),
    }
}

pub(crate) fn run(args: &ForkArgs, ui: &Ui) -> Result<Answer> {
    if let Some(name) = &args.name {
        check_name(name, ui)?;
    }
    if let Some(dir) = &args.into {
        return ForkIntoRequest { args, dir, ui }.run();
    }
    if args.here.is_named() {
        let what = "--workspace needs --into: a fork without it has no files";
        return Err(CommandError::invalid(what).hint("pick a directory for the files: --into DIR"));
    }
    let (reference, seq) = split_place(&args.point)?;
    let store = require_store(ui)?;
    let parent = resolve(&store, reference)?;
    let mut options = ForkOptions::new();
    if let Some(seq) = seq {
        options = options.at(seq);
    }
    if let Some(name) = &args.name {
        options = options.branch_name(name.as_str());
    }
    let fork = store.fork_session(&parent, &options)?;
    let id = fork.id().clone();
    let origin = fork.reader().info()?.forked_from;
    fork.close()?;
    let seq = origin.as_ref().and_then(|origin| origin.seq).unwrap_or(0);
    let name = origin.and_then(|origin| origin.branch_name);
    if ui.json() {
        return ui.answer_json(&json!({
            "session": id,
            "parent": parent,
            "seq": seq,
            "branch_name": name,
        }));
    }
    let called = name.map_or_else(String::new, |name| format!(" \"{}\"", one_line(&name, 60)));
    let (id, parent) = (short(&id), short(&parent));
    let from = match seq {
        0 => format!("{parent}, before its first message"),
        seq => format!("record {seq} of {parent}"),
    };
    ui.print_line(&format!("created session {id}{called} (from {from})"))?;
    let program = ui.program();
    ui.status(&format!("to continue: {program} record --session {id}"));
    Ok(Answer::Done)
}

/// Plans a fork into a directory of its own, as `fork POINT --into DIR` does. Nothing is touched.
pub(super) fn plan_into(
    point: &Point,
    dir: &Path,
    here: WorkspaceArgs,
    ui: &Ui,
) -> Result<PlannedFork> {
    let args = ForkArgs {
        point: point.to_string(),
        into: Some(dir.to_owned()),
        git: false,
        name: None,
        dry_run: false,
        skip_damaged: false,
        here,
    };
    let (args, dir) = (&args, dir);
    ForkIntoRequest { args, dir, ui }.plan(None)
}
