//! `backtrail remote`: second homes of sessions, on PostgreSQL and object storage.

mod add;
mod check;
pub(super) mod failure;
mod init;
mod list;
mod log;
pub(super) mod open;
mod password;
mod plain;
mod purge;
pub(super) mod sessions;
pub(super) mod transfer;

use serde_json::{Value, json};

use super::Answer;
use crate::error::Result;
use crate::settings::{Encryption, RemoteSettings};
use crate::ui::Ui;

pub(super) use self::failure::failed;

/// Add and manage remotes: second homes of sessions
///
/// A remote is a PostgreSQL database, and a bucket for what is large. `push` sends sessions there
/// and `pull` gets them. Nothing is sent unless a remote was added and is named. Without a command
/// it lists the remotes.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct RemoteArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Add(add::AddArgs),
    Init(init::InitArgs),
    List(list::ListArgs),
    Check(check::CheckArgs),
    Log(log::LogArgs),
    Delete(purge::DeleteArgs),
    Restore(purge::RestoreArgs),
    Purge(purge::PurgeArgs),
    Remove(add::RemoveArgs),
}

/// The options that open what is encrypted.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct IdentityArgs {
    /// Decrypt with the keys in this file [default: $BACKTRAIL_IDENTITY, else the remote's
    /// identity in config.toml]
    #[arg(long, value_name = "FILE")]
    pub(super) identity: Option<String>,
}

pub(crate) fn run(args: &RemoteArgs, ui: &Ui) -> Result<Answer> {
    match &args.verb {
        None => list::remotes(ui),
        Some(Verb::Add(args)) => add::add(args, ui),
        Some(Verb::Init(args)) => init::run(args, ui),
        Some(Verb::List(args)) => list::run(args, ui),
        Some(Verb::Check(args)) => check::run(args, ui),
        Some(Verb::Log(args)) => log::run(args, ui),
        Some(Verb::Delete(args)) => purge::delete(args, ui),
        Some(Verb::Restore(args)) => purge::restore(args, ui),
        Some(Verb::Purge(args)) => purge::purge(args, ui),
        Some(Verb::Remove(args)) => add::remove(args, ui),
    }
}

/// Returns a remote as JSON, without its secrets.
pub(super) fn remote_json(remote: &RemoteSettings) -> Value {
    let recipients = match &remote.encryption {
        Encryption::Plaintext => None,
        Encryption::For(recipients) => Some(recipients),
    };
    json!({
        "url": remote.url.to_string(),
        "blobs": remote.blobs.as_ref().map(ToString::to_string),
        "encrypt": recipients,
        "identity": remote.identity,
        "password_command": remote.password_command,
        "schema": remote.schema,
    })
}
