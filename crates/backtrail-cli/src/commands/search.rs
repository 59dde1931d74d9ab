//! `backtrail search`: searches messages and tool calls.

mod hint;
mod snippet;

use std::collections::HashMap;
use std::fmt::Write as _;

use backtrail::{SessionId, Store};
use backtrail_index::{Field, Hit, Index, Order, SearchAnswer, SearchQuery, SessionRow};
use serde_json::{Value, json};

use super::filters::{Filters, at_least_one};
use super::workspace::freshen;
use super::{Answer, require_store};
use crate::derived::{self, prefix};
use crate::error::{CommandError, Result};
use crate::layout::{BOLD, DIM};
use crate::text::{grouped, one_line};
use crate::ui::Ui;
use crate::when;

/// Search everything that was said or done
///
/// Searches prompts, answers, thinking, paths, and the names, inputs and outputs of tools, in
/// every workspace unless a filter says otherwise. All words must be in one message. Use
/// "quotes" for phrases, a trailing * for prefixes, and `and`, `or`, `not` and parentheses to
/// combine terms: 'round* (cent or "half even") not test'. The shell strips quotes: quote
/// the whole query, or use --phrase.
///
/// foo finds fooBar, foo_bar and src/foo.rs, but fooBar matches only that exact spelling.
/// Exits 1 if nothing is found.
#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// The words to search for
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,

    /// Match the words as a phrase
    #[arg(long)]
    phrase: bool,

    /// Only messages of this role
    #[arg(long = "role", value_name = "ROLE", help_heading = "Filters")]
    #[arg(value_parser = ["user", "assistant", "tool", "system"])]
    roles: Vec<String>,

    /// Only calls of this tool and their results
    #[arg(long = "tool", value_name = "NAME", help_heading = "Filters")]
    tools: Vec<String>,

    /// Sort order
    #[arg(long, value_name = "BY", default_value = "best")]
    sort: Sort,

    /// Short for --sort newest
    #[arg(long, conflicts_with = "sort")]
    newest: bool,

    /// Show at most this many
    #[arg(long, short = 'n', value_name = "COUNT", default_value = "20")]
    #[arg(value_parser = at_least_one)]
    limit: usize,

    #[command(flatten)]
    filters: Filters,
}

/// The order of matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Best match first
    Best,
    /// Newest first
    Newest,
}

pub(crate) fn run(args: &SearchArgs, ui: &Ui) -> Result<Answer> {
    let store = require_store(ui)?;
    freshen(&store);
    let query = query(args, &store)?;
    let found = derived::ask(&store, ui, "indexing sessions:", |index| {
        Found::find(args, &query, index)
    })?;
    if ui.json() {
        let hits = found.answer.hits.iter().map(|hit| found.json(hit));
        ui.print_json(&hits.collect::<Vec<_>>())?;
    } else if !found.answer.hits.is_empty() {
        found.print(ui)?;
    }
    if found.answer.hits.is_empty() {
        found.hints.iter().for_each(|hint| ui.status(hint));
        return Ok(Answer::No);
    }
    Ok(Answer::Done)
}

/// Returns the query of the arguments.
fn query(args: &SearchArgs, store: &Store) -> Result<SearchQuery> {
    let words = args.words.join(" ");
    if words.trim().is_empty() {
        return Err(CommandError::invalid("nothing to search for")
            .hint("give some words: backtrail search currency rounding"));
    }
    let words = match args.phrase {
        true => format!("\"{}\"", words.replace('"', " ")),
        false => words,
    };
    let mut query = SearchQuery::new(words);
    query.filter = args.filters.filter(store)?;
    query.roles = args.roles.clone();
    query.tools = args.tools.clone();
    query.order = match args.newest || args.sort == Sort::Newest {
        true => Order::Newest,
        false => Order::Best,
    };
    query.limit = args.limit;
    Ok(query)
}

impl SearchArgs {
    /// Returns the filters as they are typed.
    fn filter_words(&self) -> String {
        let roles = self.roles.iter().map(|role| format!("--role {role}"));
        let tools = self.tools.iter();
        let tools = tools.map(|tool| format!("--tool {}", crate::shell::quote(tool)));
        let others = Some(self.filters.words()).filter(|words| !words.is_empty());
        let words: Vec<String> = roles.chain(tools).chain(others).collect();
        words.join(" ")
    }
}

/// The matches and their sessions.
struct Found {
    answer: SearchAnswer,
    sessions: HashMap<SessionId, SessionRow>,
    /// The ids of all sessions, in order.
    ids: Vec<String>,
    /// Hints for when nothing is found.
    hints: Vec<String>,
}

impl Found {
    fn find(
        args: &SearchArgs,
        query: &SearchQuery,
        index: &Index,
    ) -> backtrail_index::Result<Self> {
        let answer = index.search(query)?;
        let mut sessions = HashMap::new();
        for hit in &answer.hits {
            if !sessions.contains_key(&hit.session)
                && let Some(row) = derived::session(index, &hit.session)?
            {
                sessions.insert(hit.session.clone(), row);
            }
        }
        let hints = match answer.hits.is_empty() {
            true => hint::nothing(args, query, index)?,
            false => Vec::new(),
        };
        Ok(Self {
            answer,
            sessions,
            ids: index.values(Field::Sessions)?,
            hints,
        })
    }

    /// Returns the project of a hit.
    fn project(&self, hit: &Hit) -> Option<&str> {
        let project = self.sessions.get(&hit.session)?.project.as_ref();
        project.map(|project| project.name.as_str())
    }

    fn print(&self, ui: &Ui) -> Result<()> {
        let hits = self.answer.hits.iter().map(|hit| self.draw(hit, ui));
        ui.page(&hits.collect::<Vec<_>>().join("\n"))?;
        let (shown, total) = (self.answer.hits.len() as u64, self.answer.total);
        if shown < total {
            let (shown, all) = (grouped(shown), grouped(total));
            ui.status(&format!(
                "{shown} of {all} matches (-n {total} for all, or add words)"
            ));
        }
        Ok(())
    }

    /// Draws a hit: where it is, the text, and the command that shows it.
    fn draw(&self, hit: &Hit, ui: &Ui) -> String {
        let width = ui.width();
        let id = prefix(hit.session.as_str(), &self.ids);
        let mut out = String::new();
        let places = self.places(hit, id);
        let line = match width {
            Some(width) => one_line(&places.join(" · "), width),
            None => one_line(&places.join(" · "), usize::MAX),
        };
        // The id is bold unless it was cut off.
        let line = match line.split_once(&format!("{id} · ")) {
            Some((before, after)) => format!("{before}{BOLD}{id}{BOLD:#} · {after}"),
            None => line,
        };
        writeln!(out, "{line}").ok();
        let room = width.map(|width| width.saturating_sub(2).max(8));
        for line in snippet::lines(&hit.snippet, room) {
            writeln!(out, "  {line}").ok();
        }
        let program = ui.program();
        let command = match hit.turn {
            Some(turn) => format!("{program} show {id} --turn {turn}"),
            None => format!("{program} show {id}:{}", hit.seq),
        };
        writeln!(out, "  {DIM}{command}{DIM:#}").ok();
        out
    }

    /// Returns where a hit is, in the order in which it is shown.
    fn places(&self, hit: &Hit, id: &str) -> Vec<String> {
        let project = self.project(hit).map(|name| one_line(name, 30));
        let mut places: Vec<String> = project.into_iter().collect();
        places.push(id.to_owned());
        places.push(match hit.turn {
            Some(turn) => format!("turn {turn}"),
            None => format!("record {}", hit.seq),
        });
        places.extend(hit.at.map(when::brief));
        places.push(role(hit));
        places
    }

    fn json(&self, hit: &Hit) -> Value {
        let title = self
            .sessions
            .get(&hit.session)
            .and_then(|row| row.title.as_ref());
        let mut json = json!(hit);
        json["project"] = json!(self.project(hit));
        json["title"] = json!(title);
        json["score"] = json!((f64::from(hit.score) * 1e4).round() / 1e4);
        json["snippet"] = json!(hit.snippet.text);
        json["highlights"] = json!(snippet::characters(&hit.snippet));
        json
    }
}

/// Returns the role of a hit and its tools.
fn role(hit: &Hit) -> String {
    let tools = one_line(&hit.tools.join(", "), 40);
    let role = one_line(&hit.role, 20);
    match (hit.role.as_str(), tools.is_empty()) {
        (_, true) => role,
        ("tool", false) => format!("tool {tools}"),
        (_, false) => format!("{role} → {tools}"),
    }
}
