//! `remote log`: who sent what to a remote, and when.

use std::collections::VecDeque;

use backtrail::Timestamp;
use backtrail::replica::{Answer as Answered, Change, LogOwner, Request};
use serde_json::{Value, json};

use super::list::title_here;
use super::open::{OpenRemote, Readable, open_to_list};
use super::sessions::know_short_ids;
use super::{IdentityArgs, failed};
use crate::commands::{Answer, open_store};
use crate::error::Result;
use crate::layout::{BOLD, Column, Table};
use crate::progress::while_waiting;
use crate::short::short;
use crate::text::one_line;
use crate::ui::Ui;
use crate::when;

/// Show who sent what to a remote, newest first
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    name: String,

    /// Show at most this many
    #[arg(short = 'n', value_name = "COUNT", default_value_t = 20)]
    count: usize,

    #[command(flatten)]
    identity: IdentityArgs,
}

/// How many changes are asked for at once.
const PAGE: u32 = 1000;

/// What one writer sent of one session without another in between.
struct Sent {
    first_at_ms: i64,
    last: Change,
    appends: u64,
}

pub(super) fn run(args: &LogArgs, ui: &Ui) -> Result<Answer> {
    let store = open_store(ui)?;
    let (remote, readable) = open_to_list(&args.name, &args.identity, ui)?;
    let sent = while_waiting(ui, "reading the log", || sent(&remote, args.count))?;
    know_short_ids(store.as_ref(), &[]);
    let title = |sent: &Sent| {
        let id = &sent.last.log.id;
        store.as_ref().and_then(|store| title_here(store, id))
    };
    if ui.json() {
        let rows = sent
            .iter()
            .rev()
            .map(|sent| row_json(sent, readable, title(sent)));
        return ui.answer_json(&rows.collect::<Vec<_>>());
    }
    if sent.is_empty() {
        ui.status(&format!("nothing was sent to the remote {} yet", args.name));
        return Ok(Answer::Done);
    }
    let mut table = Table::new([
        Column::text("WHEN"),
        Column::text("SESSION").style(BOLD),
        Column::number("UP TO"),
        Column::text("WHO").drop(1),
        Column::text("TITLE HERE").between(10, 80),
    ]);
    for sent in sent.iter().rev() {
        let at = Timestamp::from_millis(sent.last.at_ms);
        let id = &sent.last.log.id;
        let shown = match sent.last.log.owner {
            LogOwner::Session => short(id),
            LogOwner::Workspace => format!("workspace {}", one_line(id.as_str(), 8)),
        };
        table.push([
            at.map_or_else(|| "?".to_owned(), when::brief).into(),
            shown.into(),
            sent.last.end.seq.to_string().into(),
            one_line(readable.who(&sent.last.by).unwrap_or("?"), 40).into(),
            one_line(&title(sent).unwrap_or_default(), 80).into(),
        ]);
    }
    ui.print_table(&table, ui.width())?;
    Ok(Answer::Done)
}

/// Reads the whole log, and returns the last `count` entries, oldest first.
fn sent(remote: &OpenRemote, count: usize) -> Result<VecDeque<Sent>> {
    let mut found: VecDeque<Sent> = VecDeque::new();
    let mut after = 0;
    loop {
        let answer = remote.replica.ask(&Request::Changes { after, limit: PAGE });
        let Answered::Changes(page) = answer.map_err(|error| failed(error, remote.name()))? else {
            return Err(remote.database.odd());
        };
        let Some(last) = page.last() else {
            return Ok(found);
        };
        after = last.id;
        for change in page {
            add(&mut found, change);
            if found.len() > count {
                found.pop_front();
            }
        }
    }
}

fn add(found: &mut VecDeque<Sent>, change: Change) {
    match found.back_mut() {
        Some(sent) if sent.last.log == change.log && sent.last.by == change.by => {
            sent.last = change;
            sent.appends += 1;
        }
        _ => found.push_back(Sent {
            first_at_ms: change.at_ms,
            last: change,
            appends: 1,
        }),
    }
}

fn row_json(sent: &Sent, readable: Readable, title: Option<String>) -> Value {
    let Sent {
        first_at_ms,
        last,
        appends,
    } = sent;
    let (session, workspace) = match last.log.owner {
        LogOwner::Session => (Some(&last.log.id), None),
        LogOwner::Workspace => (None, Some(&last.log.id)),
    };
    json!({
        "change": last.id,
        "session": session,
        "workspace": workspace,
        "title": title,
        "by": readable.who(&last.by),
        "from": Timestamp::from_millis(*first_at_ms),
        "at": Timestamp::from_millis(last.at_ms),
        "trail": last.end.trail,
        "seq": last.end.seq,
        "appends": appends,
    })
}
