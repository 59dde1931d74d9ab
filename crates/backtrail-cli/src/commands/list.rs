//! `backtrail list`: lists sessions.

mod families;
mod row_json;
mod table;

use std::collections::HashMap;

use backtrail::{SessionId, SessionInfo, Store};
use backtrail_index::{Field, Filter, Index, SessionRow};
use serde_json::{Value, json};

use self::families::{Content, Family};
pub(super) use self::families::{agent_of, title_of};
use self::row_json::ListJson;
pub(super) use self::row_json::row_json;
pub(super) use self::table::SessionLine;
use super::filters::{Filters, Scope, at_least_one, this_workspace};
use super::workspace::freshen_at_once;
use super::{Answer, fresh, how_to_begin, open_store, short};
use crate::derived;
use crate::error::Result;
use crate::text::{count, grouped, path_json};
use crate::ui::Ui;

/// List sessions, pinned first, then newest
///
/// Without a filter: the sessions of this workspace if it has any, else all. Forks and
/// sub-agents are folded under the newest session of their family; FILES, TOKENS and COST are
/// then of the whole family. Runs without a conversation are folded into the last line, and
/// sessions without a prompt are hidden; --json has them all.
///
/// FILES counts the files that changed, known from checkpoints or from the calls that edit.
/// A star marks pinned sessions. Tokens after a ~ are estimated. A + marks a lower bound: some
/// calls have no known price or under-report tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Show forks and sub-agents on their own lines
    #[arg(long)]
    forks: bool,

    /// Show runs without a conversation on their own lines
    #[arg(long)]
    runs: bool,

    /// Show sessions without a prompt
    #[arg(long)]
    empty: bool,

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
    freshen_at_once(&store);
    fresh::import_new(&store, ui);
    let found = find(args, &store, ui)?;
    if ui.json() {
        let mut rows = families::alone(found.rows);
        families::sort(&mut rows, args.sort);
        rows.truncate(args.limit.unwrap_or(usize::MAX));
        return ui.answer_json(&ListJson(&rows, &store));
    }
    if found.all == 0 {
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
    /// How many sessions there are, whether they match or not.
    all: u64,
    /// How many different files families of several sessions changed, by their first session.
    family_files: HashMap<String, u64>,
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
            family_files: match ui.json() {
                true => HashMap::new(),
                false => family_files(index, &rows)?,
            },
            rows,
            all: match ui.json() {
                true => 0,
                false => index.values(Field::Sessions)?.len() as u64,
            },
            only_here,
            hints,
        })
    })
}

/// Returns how many different files families changed, where several members changed some.
fn family_files(
    index: &Index,
    rows: &[SessionRow],
) -> backtrail_index::Result<HashMap<String, u64>> {
    let mut families: HashMap<&str, Vec<&SessionId>> = HashMap::new();
    for row in rows.iter().filter(|row| row.files_changed > 0) {
        families.entry(&row.family.root).or_default().push(&row.id);
    }
    families.retain(|_, ids| ids.len() > 1);
    let count =
        |(root, ids): (&str, Vec<&SessionId>)| Ok((root.to_owned(), index.files_changed(&ids)?));
    families.into_iter().map(count).collect()
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
    let all = count(found.all, "session");
    let program = ui.program();
    ui.status(&format!(
        "no session{here} matches {words}; to see all {all}: {program} list --all"
    ));
    found.hints.iter().for_each(|hint| ui.status(hint));
}

fn print(args: &ListArgs, found: Found, ui: &Ui) -> Result<Answer> {
    let unreadable: Vec<SessionRow> = {
        let bad = found.rows.iter().filter(|row| row.error.is_some());
        bad.cloned().collect()
    };
    let families = families::gather(found.rows, &found.family_files);
    let mut listed = Listed::choose(families, args);
    families::sort(&mut listed.families, args.sort);
    let fitting: u64 = {
        let all = listed.families.iter().chain(&listed.runs);
        all.map(Family::len).sum()
    };
    let mut lines: Vec<SessionLine> = match args.forks {
        true => listed.families.iter().flat_map(Family::tree).collect(),
        false => listed.families.iter().map(Family::folded).collect(),
    };
    let total = lines.len();
    lines.truncate(args.limit.unwrap_or(usize::MAX));
    let shown = lines.len();
    let runs = table::FoldedRuns::of(&listed.runs);
    if !lines.is_empty() {
        table::print(&lines, runs.as_ref(), found.only_here, ui)?;
    }
    match &args.filters {
        _ if shown < total => ui.status(&format!("{shown} of {total} lines; -n {total} for all")),
        filters if found.only_here && filters.is_any() => ui.status(&format!(
            "{} in this workspace; --all for the others",
            count(fitting, "session")
        )),
        _ if found.only_here && fitting + listed.hidden < found.all => ui.status(&format!(
            "{} of {} (this workspace; --all for the rest)",
            grouped(fitting),
            count(found.all, "session")
        )),
        _ => ui.remark(&count(fitting, "session")),
    }
    if runs.is_some() {
        ui.remark("runs without a conversation are folded; --runs lists them");
    }
    if listed.hidden > 0 {
        let sessions = count(listed.hidden, "session");
        ui.status(&format!(
            "{sessions} without a prompt hidden; --empty for all"
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

/// The families that are listed, and those that are not.
struct Listed {
    families: Vec<Family>,
    /// Runs without a conversation, which are folded into one line.
    runs: Vec<Family>,
    /// How many sessions without a prompt are hidden: agents leave many of them behind.
    hidden: u64,
}

impl Listed {
    fn choose(families: Vec<Family>, args: &ListArgs) -> Self {
        let (mut listed, mut runs, mut hidden) = (Vec::new(), Vec::new(), 0);
        for family in families {
            match family.content() {
                Content::Conversation => listed.push(family),
                Content::Runs if args.runs => listed.push(family),
                Content::Runs => runs.push(family),
                Content::Nothing if args.empty => listed.push(family),
                Content::Nothing => hidden += family.len(),
            }
        }
        if listed.is_empty() {
            listed = std::mem::take(&mut runs);
        }
        Self {
            families: listed,
            runs,
            hidden,
        }
    }
}

/// Returns what `each` makes of every session, below the one that it comes from: the families that
/// are pinned first, then the newest. Whether a family has no conversation is told, too.
pub(super) fn trees<T>(
    rows: Vec<SessionRow>,
    each: impl Fn(&SessionLine<'_>, bool) -> T,
) -> Vec<T> {
    let mut families = families::gather(rows, &HashMap::new());
    families::sort(&mut families, Sort::Updated);
    let mut all = Vec::new();
    for family in &families {
        let is_wordless = family.content() != Content::Conversation;
        all.extend(family.tree().iter().map(|line| each(line, is_wordless)));
    }
    all
}

/// Returns the facts about a session; unknown ones are null.
pub(super) fn info_json(info: &SessionInfo) -> Value {
    let mut json = json!(info);
    json["workspace"] = json!(info.workspace_root.as_deref().map(path_json));
    json
}
