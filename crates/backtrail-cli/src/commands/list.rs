//! `backtrail list`: lists sessions.

mod families;
mod table;

use backtrail::{SessionInfo, SessionReader, Store};
use backtrail_index::{Field, Filter, Index, SessionRow, Spending};
use serde_json::{Value, json};

use self::families::Family;
use super::filters::{Filters, Scope, at_least_one, this_workspace};
use super::workspace::freshen;
use super::{Answer, how_to_begin, open_store, short};
use crate::derived;
use crate::error::Result;
use crate::text::{cost_json, count, grouped, path_json};
use crate::ui::Ui;

/// List sessions, pinned first, then newest
///
/// Without a filter: the sessions of this workspace if it has any, else all. Forks and
/// sub-agents are folded under the newest session of their family; FILES, TOKENS and COST then
/// add up the whole family.
///
/// A star marks pinned sessions. Tokens after a ~ are estimated. A + marks a lower bound: some
/// calls have no known price or under-report tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Show forks and sub-agents on their own lines
    #[arg(long)]
    forks: bool,

    /// Sort order
    #[arg(long, value_name = "BY", default_value = "updated")]
    sort: Sort,

    /// List at most this many
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    filters: Filters,
}

/// The order of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Pinned first, then last active
    Updated,
    /// Newest first
    Created,
    /// Most expensive first
    Cost,
    /// Most tokens first
    Tokens,
    /// Most turns first
    Turns,
    /// Alphabetically
    Title,
}

pub(crate) fn run(args: &ListArgs, ui: &Ui) -> Result<Answer> {
    let Some(store) = open_store(ui)? else {
        return nothing_yet(ui);
    };
    freshen(&store);
    let found = find(args, &store, ui)?;
    if ui.json() {
        let mut rows = families::alone(found.rows);
        families::sort(&mut rows, args.sort);
        let rows = rows.iter().take(args.limit.unwrap_or(usize::MAX));
        let rows = rows.map(|family| row_json(family.head(), &store));
        return ui.answer_json(&rows.collect::<Vec<_>>());
    }
    if found.ids.is_empty() && found.rows.is_empty() {
        return nothing_yet(ui);
    }
    if found.rows.is_empty() {
        report_no_match(args, &found, ui);
        return Ok(Answer::Done);
    }
    print(args, found, ui)
}

/// Reports an empty store, and how to fill it.
fn nothing_yet(ui: &Ui) -> Result<Answer> {
    if ui.json() {
        ui.print_json(&[(); 0])?;
    } else {
        ui.status(&format!("no sessions yet; {}", how_to_begin(ui.program())));
    }
    Ok(Answer::Done)
}

/// The catalogue's answer.
struct Found {
    rows: Vec<SessionRow>,
    /// The ids of all sessions there are, in order.
    ids: Vec<String>,
    /// Whether only this workspace was searched, by default.
    only_here: bool,
    /// Hints for when nothing matches.
    hints: Vec<String>,
}

fn find(args: &ListArgs, store: &Store, ui: &Ui) -> Result<Found> {
    let mut filter = args.filters.filter(store)?;
    let here = match args.filters.scope() {
        // JSON does not depend on the current directory.
        Scope::Default if !ui.json() => this_workspace(store).ok(),
        _ => None,
    };
    derived::ask(store, ui, "indexing sessions:", |index| {
        let mut only_here = false;
        let mut rows = Vec::new();
        if let Some(here) = here {
            filter.workspace = Some(here);
            rows = index.sessions(&filter)?;
            only_here = rows.iter().any(is_placed) || has_sessions(index, &filter)?;
            if !only_here {
                filter.workspace = None;
            }
        }
        if !only_here {
            rows = index.sessions(&filter)?;
        }
        let hints = match rows.is_empty() {
            true => args.filters.unknown_names(index)?,
            false => Vec::new(),
        };
        Ok(Found {
            rows,
            // JSON has whole ids.
            ids: match ui.json() {
                true => Vec::new(),
                false => index.values(Field::Sessions)?,
            },
            only_here,
            hints,
        })
    })
}

/// Returns whether the workspace of a filter has sessions at all.
fn has_sessions(index: &Index, filter: &Filter) -> backtrail_index::Result<bool> {
    let mut here = Filter::default();
    if *filter == here {
        return Ok(false);
    }
    here.workspace = filter.workspace.clone();
    Ok(index.sessions(&here)?.iter().any(is_placed))
}

/// Returns whether the workspace of a session is known. An unreadable one is listed
/// everywhere.
fn is_placed(row: &SessionRow) -> bool {
    (row.error.is_none() && row.damaged == 0) || row.workspace.is_some()
}

/// Reports that no session matches, and how to see more.
fn report_no_match(args: &ListArgs, found: &Found, ui: &Ui) {
    let here = if found.only_here {
        " in this workspace"
    } else {
        ""
    };
    let words = args.filters.words();
    let all = count(found.ids.len(), "session");
    let program = ui.program();
    ui.status(&format!(
        "no session{here} matches {words}; to see all {all}: {program} list --all"
    ));
    found.hints.iter().for_each(|hint| ui.status(hint));
}

fn print(args: &ListArgs, mut found: Found, ui: &Ui) -> Result<Answer> {
    let empty = remove_empty(&mut found.rows);
    let (fitting, all) = (found.rows.len() as u64, found.ids.len() as u64);
    let unreadable: Vec<SessionRow> = {
        let bad = found.rows.iter().filter(|row| row.error.is_some());
        bad.cloned().collect()
    };
    let mut families = families::gather(found.rows);
    families::sort(&mut families, args.sort);
    let mut lines: Vec<table::SessionLine> = match args.forks {
        true => families.iter().flat_map(Family::tree).collect(),
        false => families.iter().map(Family::folded).collect(),
    };
    let total = lines.len();
    lines.truncate(args.limit.unwrap_or(usize::MAX));
    let shown = lines.len();
    table::print(&lines, &found.ids, ui)?;
    match &args.filters {
        _ if shown < total => ui.status(&format!("{shown} of {total} lines; -n {total} for all")),
        filters if found.only_here && filters.is_any() => ui.status(&format!(
            "{} in this workspace; --all for the others",
            count(fitting, "session")
        )),
        _ if found.only_here && fitting < all => ui.status(&format!(
            "{} of {} (this workspace; --all for the rest)",
            grouped(fitting),
            count(all, "session")
        )),
        _ => ui.remark(&count(fitting, "session")),
    }
    if empty > 0 {
        let sessions = count(empty, "session");
        ui.remark(&format!(
            "{sessions} from other agents hidden: no messages (see --json)"
        ));
    }
    if let [first, ..] = unreadable.as_slice() {
        let sessions = count(unreadable.len(), "session");
        let hint = format!(
            "see what is damaged: {} verify {}",
            ui.program(),
            short(&first.id)
        );
        ui.warning(&format!("{sessions} cannot be read"), Some(&hint));
    }
    Ok(Answer::Done)
}

/// Removes sessions of other agents without messages, unless there are no others, and returns
/// how many: agents leave many such files behind.
fn remove_empty(rows: &mut Vec<SessionRow>) -> u64 {
    let is_empty = |row: &SessionRow| {
        let readable = row.error.is_none() && row.damaged == 0;
        readable && row.messages == 0 && row.belongs_to.is_some() && row.title.is_none()
    };
    let all = rows.len();
    if rows.iter().all(is_empty) {
        return 0;
    }
    rows.retain(|row| !is_empty(row));
    (all - rows.len()) as u64
}

/// Returns the beginning of a session's first prompt.
pub(super) fn first_words(reader: &SessionReader) -> Option<String> {
    /// A session without a prompt for so long is not read to its end.
    const LOOKED_AT: usize = 50;
    let mut records = reader.records().ok()?;
    for _ in 0..LOOKED_AT {
        let message = records.next().ok()??.stored_message();
        if let Ok(Some(message)) = message
            && message.is_prompt()
        {
            return Some(message.text().chars().take(200).collect());
        }
    }
    None
}

/// Returns a session as JSON: with its counts and costs, or the reason that it cannot be read.
pub(super) fn row_json(row: &SessionRow, store: &Store) -> Value {
    if let Some(error) = &row.error {
        return json!({"id": row.id, "error": error});
    }
    let forked_from = row.family.forked_from.as_ref().map(|(parent, seq)| {
        json!({"parent_session_id": parent, "branch_name": row.family.branch, "seq": seq})
    });
    let spawned_by = row.family.spawned_by.as_ref().map(|parent| {
        // Only the session knows which call it was.
        let info = store.read_session(&row.id).and_then(|reader| reader.info());
        let call = info.ok().and_then(|info| info.spawned_by);
        call.map_or_else(|| json!({"session_id": parent}), |call| json!(call))
    });
    let (project, spent) = (row.project.as_ref(), &row.spending);
    json!({
        "id": row.id,
        "title": row.title,
        "begins": row.begins,
        "agent": row.agent,
        "model": row.model,
        "tags": row.tags,
        "pinned": row.pinned,
        "workspace": row.workspace.as_deref().map(path_json),
        "project": project.map(|project| &project.name),
        "remote": project.and_then(|project| project.remote.as_ref()),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "times_from_file": row.times_from_file,
        "messages": row.messages,
        "turns": row.turns,
        "tool_calls": row.tool_calls,
        "files_changed": row.files_changed,
        "tokens": tokens_json(spent),
        "cost_usd": cost_json(spent),
        "unpriced_calls": spent.unpriced_calls,
        "last_seq": row.last_seq,
        "damaged": row.damaged,
        "forked_from": forked_from,
        "spawned_by": spawned_by,
        "belongs_to": row.belongs_to,
        "original_id": row.original_id,
    })
}

/// Returns the tokens of a session; null if no call says what it used.
fn tokens_json(spent: &Spending) -> Value {
    if spent.calls == 0 {
        return Value::Null;
    }
    json!({
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cache_write_tokens": spent.cache_write_tokens,
        "cache_read_tokens": spent.cache_read_tokens,
        "reasoning_tokens": spent.reasoning_tokens,
        "total": spent.tokens(),
    })
}

/// Returns the facts about a session; unknown ones are null.
pub(super) fn info_json(info: &SessionInfo) -> Value {
    let mut json = json!(info);
    json["workspace"] = json!(info.workspace_root.as_deref().map(path_json));
    json
}
