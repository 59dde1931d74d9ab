//! `backtrail stats`: what was said, done and spent.

mod bars;
mod session;

use std::io::Write;

use backtrail::SessionId;
use backtrail_index::{Field, Filter, Group, Index, Spending, SpendingReport, UnpricedModel};
use serde_json::{Value, json};

use super::filters::{Filters, at_least_one};
use super::workspace::freshen;
use super::{Answer, require_store, resolve};
use crate::derived::{self, prefix};
use crate::error::{CommandError, Result};
use crate::text::{cost_json, one_line};
use crate::ui::Ui;

/// Show usage and cost, for all sessions or one
///
/// Without a session: what all model calls used and cost, including undone turns. A call
/// that forks share counts once. Estimated tokens are listed separately.
/// A + marks a lower bound: some calls have no known price or under-report tokens.
///
/// With a session: its messages and tool calls, what its conversation used, and what it and
/// its family cost in total.
#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {
    /// A session: its id, a prefix of 4+ characters, or latest [default: all]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Group by
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,

    /// Show at most this many groups [default: 30, or all as JSON]
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    filters: Filters,
}

/// What spending is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Day,
    Month,
    Model,
    Agent,
    Project,
    Session,
    /// Sessions together with their forks and sub-agents
    Family,
}

impl By {
    fn group(self) -> Group {
        match self {
            Self::Day => Group::Day,
            Self::Month => Group::Month,
            Self::Model => Group::Model,
            Self::Agent => Group::Agent,
            Self::Project => Group::Project,
            Self::Session => Group::Session,
            Self::Family => Group::Family,
        }
    }

    /// Returns the name of the group of calls of which it is not known.
    fn unknown(self) -> &'static str {
        match self {
            Self::Day | Self::Month => "no date",
            Self::Model => "no model",
            Self::Agent => "no agent",
            Self::Project => "no project",
            Self::Session | Self::Family => "no session",
        }
    }
}

/// How many groups are shown by default.
const PARTS: usize = 30;

pub(crate) fn run(args: &StatsArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
    freshen(&store);
    if let Some(reference) = &args.reference {
        if args.filters.is_any() {
            let what = format!("{} cannot be used with a session", args.filters.words());
            return Err(CommandError::invalid(what).hint("omit one of them"));
        }
        let id = resolve(&store, reference)?;
        return session::run(args, &store, &id, ui);
    }
    let filter = args.filters.filter(&store)?;
    let by = args.by;
    let found = derived::ask(&store, ui, "reading sessions:", |index| {
        NamedReport::ask(index, &filter, by)
    })?;
    if ui.json() {
        let mut json = report_json(&found.report, args.limit);
        json["unpriced"] = json!(found.unpriced);
        return ui.answer_json(&json);
    }
    if found.report.total == Spending::default() {
        ui.status(&match args.filters.is_any() {
            true => format!("no usage recorded for {}", args.filters.words()),
            false => "no usage recorded yet".to_owned(),
        });
        return Ok(Answer::Done);
    }
    found.print(args, ui)?;
    Ok(Answer::Done)
}

/// What was spent, with a name for each group.
struct NamedReport {
    report: SpendingReport,
    names: Vec<String>,
    unpriced: Vec<UnpricedModel>,
}

impl NamedReport {
    fn ask(index: &Index, filter: &Filter, by: Option<By>) -> backtrail_index::Result<Self> {
        let report = match by {
            Some(by) => index.spending_by(filter, by.group())?,
            None => index.spending(filter)?,
        };
        let ids: Vec<String> = match by {
            Some(By::Session | By::Family) => index.values(Field::Sessions)?,
            _ => Vec::new(),
        };
        let name = |key: &Option<String>| match (key, by) {
            (Some(key), Some(By::Session | By::Family)) => session_name(index, key, &ids),
            (Some(key), _) => Ok(key.clone()),
            (None, by) => Ok(by.map_or("", By::unknown).to_owned()),
        };
        let names = report.by.iter().map(|row| name(&row.key));
        let names = names.collect::<backtrail_index::Result<_>>()?;
        let unpriced = index.unpriced(filter)?;
        Ok(Self {
            report,
            names,
            unpriced,
        })
    }

    fn print(&self, args: &StatsArgs, ui: &Ui) -> Result<()> {
        let mut text = bars::head(&self.report);
        let parts = self.report.by.len();
        let shown = parts.min(args.limit.unwrap_or(PARTS));
        text += &match args.by {
            Some(by) => {
                let range = match by {
                    // The newest days matter most.
                    By::Day | By::Month => parts - shown..parts,
                    _ => 0..shown,
                };
                let (names, rows) = (&self.names[range.clone()], &self.report.by[range]);
                bars::draw(names, rows, &self.report, ui.width())
            }
            None => bars::totals(&self.report.total, ui.width()),
        };
        text += &bars::remarks(&self.report.total, &self.unpriced);
        let mut out = ui.out();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        if shown < parts {
            ui.status(&format!("{shown} of {parts}; -n {parts} for all"));
        }
        Ok(())
    }
}

/// Names a session by its id and its title.
fn session_name(index: &Index, key: &str, ids: &[String]) -> backtrail_index::Result<String> {
    let id = prefix(key, ids).to_owned();
    let row = match key.parse::<SessionId>() {
        Ok(id) => derived::session(index, &id)?,
        Err(_) => None,
    };
    let words = row.and_then(|row| row.title.or(row.begins));
    Ok(match words {
        Some(words) => format!("{id} {}", one_line(&words, 60)),
        None => id,
    })
}

/// Returns what was spent, with its groups.
fn report_json(report: &SpendingReport, limit: Option<usize>) -> Value {
    let parts = report.by.iter().take(limit.unwrap_or(usize::MAX));
    let by: Vec<Value> = parts
        .map(|row| {
            let mut part = numbers(&row.spending);
            part["key"] = json!(row.key);
            part["sessions"] = json!(row.sessions);
            part
        })
        .collect();
    let (first_at, last_at) = report.span.unzip();
    json!({
        "totals": numbers(&report.total),
        "by": by,
        "sessions": report.sessions,
        "first_at": first_at,
        "last_at": last_at,
        "estimated": {
            "calls": report.total.estimated_calls,
            "tokens": report.total.estimated_tokens,
        },
        "lower_bound_calls": report.total.lower_bound_calls,
    })
}

/// Returns the numbers of what was measured; the cost is null if nothing has a price.
fn numbers(spending: &Spending) -> Value {
    let mut json = json!(spending);
    json["cost_usd"] = cost_json(spending);
    for apart in ["estimated_calls", "estimated_tokens", "lower_bound_calls"] {
        json.as_object_mut().and_then(|json| json.remove(apart));
    }
    json
}
