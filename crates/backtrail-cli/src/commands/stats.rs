//! `backtrail stats`: what was said, done and spent.

pub(super) mod bars;
pub(super) mod blocks;
mod plot;
mod session;
mod svg;
pub(super) mod tools;

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use backtrail::SessionId;
use backtrail_formats::agent_title;
use backtrail_index::{Filter, Group, Index, Money, Spending, SpendingReport, UnpricedModel};
use serde_json::{Value, json};

use super::filters::{Filters, at_least_one};
use super::workspace::freshen_at_once;
use super::{Answer, fresh, require_store, resolve, short};
use crate::derived;
use crate::error::{CommandError, Result};
use crate::text::{cost_json, one_line};
use crate::ui::Ui;

/// Show usage and cost, for all sessions or one
///
/// Without a session: what all model calls used and cost, including undone turns. A call
/// that forks share counts once. Estimated tokens are listed separately.
/// A + marks a lower bound: some calls have no known price or under-report tokens.
///
/// --by groups by one or two of: day, week, month, hour (of the day), model, agent, project,
/// session, family, tag, branch, tool. Days and hours are local. A session with two tags counts
/// in both. By tool, calls are counted: tokens cannot be divided among tools.
///
/// With a session: its messages and tool calls, what its conversation used, and what it and
/// its family cost in total.
#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {
    /// A session: its id, a prefix of 4+ characters, or latest [default: all]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Group by one or two, such as day,model
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    by: Vec<By>,

    /// Show blocks of 5 hours, with tokens and cost per hour
    #[arg(long, conflicts_with_all = ["by", "reference"])]
    blocks: bool,

    /// Also draw the groups or blocks into an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Replace the SVG file if it exists
    #[arg(long, requires = "svg")]
    force: bool,

    /// Show at most this many groups [default: 30, or all as JSON]
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    filters: Filters,
}

/// What spending is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum By {
    Day,
    Week,
    Month,
    /// Hour of the day
    Hour,
    Model,
    Agent,
    Project,
    Session,
    /// Sessions together with their forks and sub-agents
    Family,
    Tag,
    /// The git branch at the time of the call
    Branch,
    /// Calls of tools, instead of models
    Tool,
}

impl By {
    pub(super) fn group(self) -> Group {
        match self {
            Self::Day => Group::Day,
            Self::Week => Group::Week,
            Self::Month => Group::Month,
            Self::Hour => Group::Hour,
            Self::Model => Group::Model,
            Self::Agent => Group::Agent,
            Self::Project => Group::Project,
            Self::Session => Group::Session,
            Self::Family => Group::Family,
            Self::Tag => Group::Tag,
            Self::Branch => Group::Branch,
            Self::Tool => Group::Tool,
        }
    }

    pub(super) fn is_time(self) -> bool {
        self.group().is_time()
    }

    /// Returns the name of the group of calls of which it is not known.
    pub(super) fn unknown(self) -> &'static str {
        match self {
            Self::Day | Self::Week | Self::Month | Self::Hour => "no date",
            Self::Model => "no model",
            Self::Agent => "no agent",
            Self::Project => "no project",
            Self::Session | Self::Family => "no session",
            Self::Tag => "no tag",
            Self::Branch => "no branch",
            Self::Tool => "no tool",
        }
    }
}

impl StatsArgs {
    /// Returns what to group by, if that can be done.
    fn groups(&self) -> Result<Vec<Group>> {
        if self.by.len() > 2 {
            return Err(
                CommandError::invalid("--by takes at most two kinds of groups")
                    .hint("for example: backtrail stats --by day,model"),
            );
        }
        if let [first, second] = self.by.as_slice()
            && first == second
        {
            return Err(
                CommandError::invalid("--by names the same kind of group twice")
                    .hint("name two that differ: backtrail stats --by day,model"),
            );
        }
        if self.svg.is_some() && self.by.is_empty() && !self.blocks {
            return Err(CommandError::invalid("--svg needs groups to draw")
                .hint("add --by or --blocks: backtrail stats --by day --svg days.svg"));
        }
        Ok(self.by.iter().map(|by| by.group()).collect())
    }

    /// Returns which of so many first groups are shown: of times the newest.
    fn shown(&self, parts: usize) -> Range<usize> {
        let is_time = self.by.first().is_some_and(|by| by.is_time()) || self.blocks;
        shown(parts, self.limit.unwrap_or(PARTS), is_time)
    }

    /// Returns the rows of the groups that `-n` keeps, the same as in a plot; without it, all.
    fn limited<'a, T>(&self, rows: &'a [T], key: impl Fn(&T) -> &Option<String>) -> &'a [T] {
        if self.limit.is_none() {
            return rows;
        }
        let begins = |n: &usize| *n == 0 || key(&rows[*n]) != key(&rows[*n - 1]);
        let starts: Vec<usize> = (0..rows.len()).filter(begins).collect();
        let start = |group: usize| starts.get(group).copied().unwrap_or(rows.len());
        let shown = self.shown(starts.len());
        &rows[start(shown.start)..start(shown.end)]
    }
}

/// Returns which of so many groups are shown: of times the newest.
pub(super) fn shown(parts: usize, limit: usize, is_time: bool) -> Range<usize> {
    match is_time {
        true => parts - parts.min(limit)..parts,
        false => 0..parts.min(limit),
    }
}

/// How many groups are shown by default.
const PARTS: usize = 30;

pub(crate) fn run(args: &StatsArgs, ui: &Ui) -> Result<Answer> {
    let groups = args.groups()?;
    if let Some(path) = &args.svg {
        svg::check(path, args.force)?;
    }
    let store = require_store(ui)?;
    freshen_at_once(&store);
    fresh::import_new(&store, ui);
    if let Some(reference) = &args.reference {
        if args.filters.is_any() {
            let what = format!("{} cannot be used with a session", args.filters.words());
            return Err(CommandError::invalid(what).hint("omit one of them"));
        }
        let id = resolve(&store, reference)?;
        return session::run(args, &store, &id, ui);
    }
    let filter = args.filters.filter(&store)?;
    if args.blocks {
        return blocks::run(args, &store, &filter, ui);
    }
    if groups.contains(&Group::Tool) {
        return tools::run(args, &store, &filter, &groups, ui);
    }
    let (found, averages) = derived::ask(&store, ui, "reading sessions:", |index| {
        let found = NamedReport::ask(index, &filter, &args.by)?;
        let averages = match groups.is_empty() {
            true => Some(Averages::ask(index, &filter, &found.report)?),
            false => None,
        };
        Ok((found, averages))
    })?;
    if let Some(path) = &args.svg {
        svg::write(
            &found.plot(|groups| args.shown(groups)),
            &bars::title(&found.report),
            path,
            args.force,
            ui,
        )?;
    }
    if ui.json() {
        let mut json = report_json(&found.report, args);
        json["unpriced"] = json!(found.unpriced);
        json["averages"] = json!(averages.map(|averages| averages.json()));
        return ui.answer_json(&json);
    }
    if found.report.total == Spending::default() {
        ui.status(&match args.filters.is_any() {
            true => format!("no usage recorded for {}", args.filters.words()),
            false => "no usage recorded yet".to_owned(),
        });
        return Ok(Answer::Done);
    }
    found.print(args, averages.as_ref(), ui)?;
    Ok(Answer::Done)
}

/// What was spent per day with calls, per session and per prompt.
struct Averages {
    total: Spending,
    days: u64,
    sessions: u64,
    /// `None` if they cannot be told apart by the filter.
    prompts: Option<u64>,
}

impl Averages {
    fn ask(
        index: &Index,
        filter: &Filter,
        report: &SpendingReport,
    ) -> backtrail_index::Result<Self> {
        let days = index.spending_by(filter, &[Group::Day])?.by;
        let has_calls = |spent: &Spending| spent.calls + spent.estimated_calls > 0;
        let days = days
            .iter()
            .filter(|day| day.key.is_some() && has_calls(&day.spending));
        Ok(Self {
            total: report.total,
            days: days.count() as u64,
            sessions: report.sessions,
            prompts: match filter.models.is_empty() {
                true => Some(index.prompts(filter)?),
                false => None,
            },
        })
    }

    /// Returns the averages with their names: cost and tokens, and the number of things.
    fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let all = [
            ("per day", "day", self.days),
            ("per session", "session", self.sessions),
            ("per prompt", "prompt", self.prompts.unwrap_or(0)),
        ];
        all.into_iter().filter(|(_, _, n)| *n > 0)
    }

    fn of(&self, n: u64) -> (Money, u64) {
        let cost = self.total.cost.0 / i64::try_from(n).unwrap_or(i64::MAX).max(1);
        (Money(cost), self.total.tokens() / n.max(1))
    }

    fn json(&self) -> Value {
        let mut json = json!({});
        for (name, _, n) in self.each() {
            let (cost, tokens) = self.of(n);
            let cost = Some(cost).filter(|_| self.total.calls > self.total.unpriced_calls);
            json[name.replace(' ', "_")] = json!({"count": n, "cost_usd": cost, "tokens": tokens});
        }
        json
    }
}

/// What was spent, with names for each group.
pub(super) struct NamedReport {
    pub(super) report: SpendingReport,
    pub(super) names: Vec<[String; 2]>,
    pub(super) unpriced: Vec<UnpricedModel>,
}

impl NamedReport {
    pub(super) fn ask(index: &Index, filter: &Filter, by: &[By]) -> backtrail_index::Result<Self> {
        let groups: Vec<Group> = by.iter().map(|by| by.group()).collect();
        let report = index.spending_by(filter, &groups)?;
        let namer = Namer { index, by };
        let rows = report
            .by
            .iter()
            .map(|row| namer.names(&row.key, &row.second));
        let names = rows.collect::<backtrail_index::Result<_>>()?;
        let unpriced = index.unpriced(filter)?;
        Ok(Self {
            report,
            names,
            unpriced,
        })
    }

    /// Returns the groups that are shown, as a plot.
    fn plot(&self, shown: impl FnOnce(usize) -> Range<usize>) -> plot::Plot {
        let rows = self.names.iter().zip(&self.report.by);
        let rows = rows.map(|(names, row)| (names.clone(), row.spending));
        let mut plot = bars::plot(rows.collect(), &self.report.total);
        plot.keep(shown(plot.groups()));
        plot
    }

    /// Draws some of the groups for a page.
    pub(super) fn picture(&self, shown: Range<usize>) -> String {
        svg::inline(&self.plot(|_| shown), &bars::title(&self.report))
    }

    fn print(&self, args: &StatsArgs, averages: Option<&Averages>, ui: &Ui) -> Result<()> {
        let mut text = bars::head(&bars::title(&self.report), ui.width());
        text += &match args.by.is_empty() {
            false => self.plot(|groups| args.shown(groups)).draw(ui.width()),
            true => bars::totals(&self.report.total, averages, ui.width()),
        };
        text += &bars::remarks(&self.report.total, &self.unpriced, ui.width());
        if args.by.contains(&By::Tag) {
            let note = "a session with several tags counts in each; the total has it once";
            text += &bars::remark(note, ui.width());
        }
        let mut out = ui.out();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        let rows = self.report.by.iter().map(|row| &row.key);
        report_rest(
            args,
            rows.collect::<std::collections::HashSet<_>>().len(),
            ui,
        );
        Ok(())
    }
}

/// Says how many groups are not shown.
fn report_rest(args: &StatsArgs, parts: usize, ui: &Ui) {
    let shown = args.shown(parts).len();
    if shown < parts {
        ui.status(&format!("{shown} of {parts}; -n {parts} for all"));
    }
}

/// Names groups.
struct Namer<'a> {
    index: &'a Index,
    by: &'a [By],
}

impl<'a> Namer<'a> {
    fn names(
        &self,
        first: &Option<String>,
        second: &Option<String>,
    ) -> backtrail_index::Result<[String; 2]> {
        Ok([self.name(0, first)?, self.name(1, second)?])
    }

    fn name(&self, place: usize, key: &Option<String>) -> backtrail_index::Result<String> {
        match (key, self.by.get(place)) {
            (_, None) => Ok(String::new()),
            (Some(key), Some(By::Session | By::Family)) => session_name(self.index, key),
            (Some(key), Some(By::Agent)) => Ok(agent_title(key).to_owned()),
            (Some(key), _) => Ok(key.clone()),
            (None, Some(by)) => Ok(by.unknown().to_owned()),
        }
    }
}

/// Names a session by its id and its title.
fn session_name(index: &Index, key: &str) -> backtrail_index::Result<String> {
    let Ok(id) = key.parse::<SessionId>() else {
        return Ok(key.to_owned());
    };
    let row = derived::session(index, &id)?;
    let id = short(&id);
    let words = row.and_then(|row| row.title.or(row.begins));
    Ok(match words {
        Some(words) => format!("{id} {}", one_line(&words, 60)),
        None => id,
    })
}

/// Returns what was spent, with its groups.
fn report_json(report: &SpendingReport, args: &StatsArgs) -> Value {
    let by: Vec<Value> = args
        .limited(&report.by, |row| &row.key)
        .iter()
        .map(|row| {
            let mut part = numbers(&row.spending);
            part["key"] = json!(row.key);
            if args.by.len() == 2 {
                part["keys"] = json!([row.key, row.second]);
            }
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
