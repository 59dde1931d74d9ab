//! `remote list`: the remotes, or the sessions at one.

use backtrail::replica::LogStatus;
use backtrail::{SessionId, Store, Timestamp};
use serde_json::{Value, json};

use super::open::{Readable, open_to_list};
use super::sessions::{know_short_ids, sessions};
use super::{IdentityArgs, remote_json};
use crate::commands::{Answer, open_store};
use crate::error::Result;
use crate::layout::{BOLD, Column, Table};
use crate::progress::while_waiting;
use crate::settings::{Encryption, RemoteSettings, Settings};
use crate::short::short;
use crate::text::{count, one_line, size};
use crate::ui::Ui;
use crate::when;

/// List the remotes, or the sessions at one
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// List the sessions at this remote
    #[arg(value_name = "REMOTE")]
    name: Option<String>,

    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(args: &ListArgs, ui: &Ui) -> Result<Answer> {
    match &args.name {
        None => remotes(ui),
        Some(name) => sessions_of(name, &args.identity, ui),
    }
}

/// Lists the remotes.
pub(super) fn remotes(ui: &Ui) -> Result<Answer> {
    let (dir, _) = ui.store_dir()?;
    let remotes = Settings::read(&dir)?.remotes.value;
    if ui.json() {
        let row = |remote: &RemoteSettings| {
            let mut row = remote_json(remote);
            row["name"] = remote.name.as_str().into();
            row
        };
        return ui.answer_json(&remotes.iter().map(row).collect::<Vec<_>>());
    }
    if remotes.is_empty() {
        ui.status(&format!(
            "no remotes; add one: {} remote add NAME URL",
            ui.program()
        ));
        return Ok(Answer::Done);
    }
    let mut table = Table::new([
        Column::text("NAME").style(BOLD),
        Column::text("READS"),
        Column::text("DATABASE").between(20, 80),
        Column::text("BLOBS").drop(1),
    ]);
    for remote in &remotes {
        let reads = match remote.encryption {
            Encryption::Plaintext => "everything",
            Encryption::For(_) => "nothing",
        };
        let blobs = remote.blobs.as_ref().map(ToString::to_string);
        table.push([
            remote.name.clone().into(),
            reads.into(),
            one_line(&remote.url.to_string(), 200).into(),
            one_line(&blobs.unwrap_or_default(), 80).into(),
        ]);
    }
    ui.print_table(&table, ui.width())?;
    Ok(Answer::Done)
}

fn sessions_of(name: &str, identity: &IdentityArgs, ui: &Ui) -> Result<Answer> {
    let store = open_store(ui)?;
    let (remote, readable) = open_to_list(name, identity, ui)?;
    let mut found = while_waiting(ui, "listing", || sessions(&*remote.replica, name))?;
    know_short_ids(store.as_ref(), &found);
    found.sort_by_key(|(_, status)| std::cmp::Reverse(status.changed_at_ms));
    let title = |id: &SessionId| store.as_ref().and_then(|store| title_here(store, id));
    if ui.json() {
        let rows = found
            .iter()
            .map(|(id, status)| row_json(id, status, readable, title(id)));
        return ui.answer_json(&rows.collect::<Vec<_>>());
    }
    let mut table = Table::new([
        Column::text("ID").style(BOLD),
        Column::text("CHANGED"),
        Column::number("SIZE"),
        Column::text("WRITER").drop(1),
        Column::text("TITLE HERE").between(10, 80),
    ]);
    for (id, status) in &found {
        let at = Timestamp::from_millis(status.changed_at_ms);
        let writer = status.lease.as_ref();
        let writer = writer.map(|lease| readable.who(&lease.holder).unwrap_or("?"));
        let about = match (status.deleted_at_ms, title(id)) {
            (Some(_), _) => "[in the trash there]".to_owned(),
            (None, title) => one_line(&title.unwrap_or_default(), 80),
        };
        table.push([
            short(id).into(),
            at.map_or_else(|| "?".to_owned(), when::brief).into(),
            size(status.bytes).into(),
            one_line(writer.unwrap_or_default(), 40).into(),
            about.into(),
        ]);
    }
    if found.is_empty() {
        ui.status(&format!("the remote {name} has no sessions"));
        return Ok(Answer::Done);
    }
    ui.print_table(&table, ui.width())?;
    let bytes = found.iter().map(|(_, status)| status.bytes).sum();
    ui.remark(&format!(
        "{}, {}",
        count(found.len(), "session"),
        size(bytes)
    ));
    Ok(Answer::Done)
}

/// Returns the title of a session, if it is here.
pub(super) fn title_here(store: &Store, id: &SessionId) -> Option<String> {
    store.read_session(id).ok()?.title().ok().flatten()
}

fn row_json(
    id: &SessionId,
    status: &LogStatus,
    readable: Readable,
    title: Option<String>,
) -> Value {
    let lease = status.lease.as_ref();
    json!({
        "id": id,
        "changed_at": Timestamp::from_millis(status.changed_at_ms),
        "bytes": status.bytes,
        "writer": lease.and_then(|lease| readable.who(&lease.holder)),
        "deleted_at": status.deleted_at_ms.and_then(Timestamp::from_millis),
        "encrypted": !status.wrapped_key.is_empty(),
        "title": title,
    })
}
