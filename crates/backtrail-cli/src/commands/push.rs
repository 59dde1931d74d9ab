//! `backtrail push`: sends sessions to a remote.

mod holder;
mod redacted;

use backtrail::replica::{PushOptions, Refusal, SessionTransfer, Transfer};
use backtrail::{SessionId, Store};
use serde_json::json;

use self::holder::holder;
use self::redacted::{Copies, RedactedCopy};
use super::export::Redact;
use super::remote::IdentityArgs;
use super::remote::failure::with_hints;
use super::remote::open::{OpenRemote, open};
use super::remote::transfer::{Direction, MadeFork, report, while_transferring};
use super::{Answer, require_store, resolve};
use crate::error::Result;
use crate::short::short;
use crate::text::count;
use crate::ui::Ui;

/// Send sessions to a remote
///
/// Sends what the remote lacks, with the sessions that they were forked from, those of their
/// sub-agents, and what is large. Files are not sent. It can be stopped at any time; the next push
/// sends the rest. A session that was continued both here and there is refused, for sessions are
/// never merged. Exits 1 if a session was refused.
#[derive(Debug, clap::Args)]
#[command(override_usage = "backtrail push [OPTIONS] <REMOTE> <REF...|--all>")]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub(crate) struct PushArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    remote: String,

    /// Sessions: ids, prefixes of 4+ characters, or latest
    #[arg(value_name = "REF", group = "which")]
    references: Vec<String>,

    /// Send all sessions of the store
    #[arg(long, group = "which")]
    all: bool,

    /// Where a session was continued here and there, send what is here as a fork of what both
    /// have
    #[arg(long, conflicts_with = "redact")]
    as_fork: bool,

    /// Send a copy under its own id, without keys, tokens, passwords and private keys. `people`
    /// also removes home directories and e-mail addresses
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "secrets")]
    redact: Option<Redact>,

    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(args: &PushArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
    let ids = named(&store, args)?;
    let remote = open(&args.remote, &args.identity, ui)?;
    match args.redact {
        Some(redact) => push_redacted(&store, &ids, redact, &remote, ui),
        None if args.as_fork => push_forks(&store, &ids, &remote, ui),
        None => push(&store, &ids, &remote, ui),
    }
}

fn named(store: &Store, args: &PushArgs) -> Result<Vec<SessionId>> {
    if args.all {
        let mut ids = store.sessions()?;
        ids.sort_unstable();
        return Ok(ids);
    }
    let ids = args.references.iter().map(|it| resolve(store, it));
    ids.collect()
}

fn push(store: &Store, ids: &[SessionId], remote: &OpenRemote, ui: &Ui) -> Result<Answer> {
    let pushed = send(store, ids, remote, ui)?;
    report(Direction::Push, pushed, remote.name(), ids, &[], ui)
}

fn send(store: &Store, ids: &[SessionId], remote: &OpenRemote, ui: &Ui) -> Result<Transfer> {
    let options = PushOptions::new(holder());
    let pushed = while_transferring(Direction::Push, ids.len(), ui, |progress| {
        store.push(ids, &*remote.replica, &options, progress)
    });
    pushed.map_err(|error| with_hints(error, remote.name()))
}

/// Pushes, and what diverged as forks.
fn push_forks(store: &Store, ids: &[SessionId], remote: &OpenRemote, ui: &Ui) -> Result<Answer> {
    let mut pushed = send(store, ids, remote, ui)?;
    let diverged = |session: &SessionTransfer| {
        let error = session.outcome.as_ref().err();
        let refusal = error.and_then(|error| error.refusal());
        matches!(refusal, Some(Refusal::Diverged { .. }))
    };
    let forked: Vec<SessionId> = pushed
        .sessions
        .extract_if(.., |session| diverged(session))
        .map(|session| session.id)
        .collect();
    let mut forks = Vec::new();
    for id in forked {
        let options = PushOptions::new(holder());
        let fork = while_transferring(Direction::Push, 1, ui, |progress| {
            store.push_as_fork(&id, &*remote.replica, &options, progress)
        });
        let fork = fork.map_err(|error| with_hints(error, remote.name()))?;
        // The session itself comes along as an ancestor, and is refused again.
        let others = fork.transfer.sessions.into_iter();
        pushed
            .sessions
            .extend(others.filter(|session| session.id != id));
        forks.push(MadeFork {
            of: id,
            fork: fork.fork,
            after: fork.common.map(|common| common.seq),
        });
    }
    report(Direction::Push, pushed, remote.name(), ids, &forks, ui)
}

/// Pushes copies without secrets, each under an id of its own.
fn push_redacted(
    store: &Store,
    ids: &[SessionId],
    redact: Redact,
    remote: &OpenRemote,
    ui: &Ui,
) -> Result<Answer> {
    let copies = Copies::make(store, ids, redact)?;
    for copy in &copies.made {
        report_copy(copy, ui);
    }
    let ids: Vec<SessionId> = copies.made.iter().map(|copy| copy.id.clone()).collect();
    push(&copies.store, &ids, remote, ui)
}

fn report_copy(copy: &RedactedCopy, ui: &Ui) {
    ui.status_json(&json!({"redacted": {
        "session": copy.of,
        "copy": copy.id,
        "removed": copy.removed,
        "unreadable": copy.unreadable,
    }}));
    let removed = count(copy.removed, "secret");
    ui.status(&format!(
        "{} is pushed as {}, with {removed} removed",
        short(&copy.of),
        copy.id
    ));
    if copy.unreadable > 0 {
        let messages = count(copy.unreadable, "message");
        let of = short(&copy.of);
        let what = format!("{messages} of {of} cannot be read, and the copy lacks them");
        ui.warning(&what, None);
    }
}
