//! `backtrail pull`: gets sessions from a remote.

use backtrail::SessionId;
use backtrail::replica::{LogStatus, PullOptions};

use super::remote::IdentityArgs;
use super::remote::failure::with_hints;
use super::remote::open::open;
use super::remote::sessions::{know_short_ids, resolve_there, sessions};
use super::remote::transfer::{Direction, report, while_transferring};
use super::{Answer, open_or_create_store};
use crate::error::Result;
use crate::progress::while_waiting;
use crate::ui::Ui;

/// Get sessions from a remote
///
/// Gets what is missing here, with the sessions that they were forked from and those of their
/// sub-agents. What is pulled is a session like others: show, search, fork and continue it. It can
/// be stopped at any time. Exits 1 if a session was refused.
#[derive(Debug, clap::Args)]
#[command(override_usage = "backtrail pull [OPTIONS] <REMOTE> <REF...|--all>")]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub(crate) struct PullArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    remote: String,

    /// Sessions there: ids or prefixes of 4+ characters; `remote list REMOTE` lists them
    #[arg(value_name = "REF", group = "which")]
    references: Vec<String>,

    /// Get all sessions that are not in the trash there
    #[arg(long, group = "which")]
    all: bool,

    /// Get these sessions even if they were purged here
    #[arg(long, conflicts_with = "all")]
    even_purged: bool,

    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(args: &PullArgs, ui: &Ui) -> Result<Answer> {
    let remote = open(&args.remote, &args.identity, ui)?;
    let store = open_or_create_store(ui)?;
    let there = while_waiting(ui, "listing", || sessions(&*remote.replica, remote.name()))?;
    know_short_ids(Some(&store), &there);
    let ids = named(args, &there)?;
    let options = match args.even_purged {
        true => PullOptions::new().even_purged(),
        false => PullOptions::new(),
    };
    let pulled = while_transferring(Direction::Pull, ids.len(), ui, |progress| {
        store.pull(&ids, &*remote.replica, &options, progress)
    });
    let pulled = pulled.map_err(|error| with_hints(error, remote.name()))?;
    if args.all && ids.is_empty() {
        ui.status(&format!("the remote {} has no sessions", args.remote));
    }
    report(Direction::Pull, pulled, remote.name(), &ids, &[], ui)
}

fn named(args: &PullArgs, there: &[(SessionId, LogStatus)]) -> Result<Vec<SessionId>> {
    if args.all {
        let whole = there.iter().filter(|(_, it)| it.deleted_at_ms.is_none());
        return Ok(whole.map(|(id, _)| id.clone()).collect());
    }
    let ids = args.references.iter();
    ids.map(|it| resolve_there(it, there, &args.remote))
        .collect()
}
