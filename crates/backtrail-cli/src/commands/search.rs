//! `backtrail search`: searches messages and tool calls.

pub(super) mod groups;
mod hint;
pub(super) mod snippet;

use std::collections::HashMap;

use backtrail::{SessionId, Store};
use backtrail_index::{Hit, Index, Order, SearchAnswer, SearchQuery, SessionRow};
use serde_json::{Value, json};

use super::filters::{Filters, at_least_one};
use super::workspace::freshen_at_once;
use super::{Answer, fresh, require_store, short};
use crate::derived;
use crate::error::{CommandError, Result};
use crate::text::grouped;
use crate::ui::Ui;

/// Search everything that was said or done
///
/// Searches prompts, answers, thinking, paths, and the names, inputs and outputs of tools, in
/// every workspace unless a filter says otherwise. All words must be in one message. Use
/// "quotes" for phrases, a trailing * for prefixes, and `and`, `or`, `not` and parentheses to
/// combine terms: 'round* (cent or "half even") not test'. The shell strips quotes: quote
/// the whole query, or use --phrase.
///
/// foo finds fooBar, foo_bar and src/foo.rs, but fooBar matches only that exact spelling.
/// file:src/auth.rs or file:auth among the words keeps only sessions that touched such a file;
/// without other words it finds the calls that touched it.
///
/// Matches are grouped by session. What people and models said comes before calls and output of
/// tools, and text that an agent inserted comes last. `backtrail show REF:SEQ` opens a match.
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
    freshen_at_once(&store);
    fresh::import_new(&store, ui);
    let query = query(args, &store)?;
    let found = derived::ask(&store, ui, "indexing sessions:", |index| {
        Found::find(args, &query, index)
    })?;
    if ui.json() {
        ui.print_json(&found.json())?;
    } else if !found.answer.hits.is_empty() {
        found.print(ui)?;
    }
    if found.answer.hits.is_empty() {
        found
            .nothing
            .lines()
            .iter()
            .for_each(|line| ui.status(line));
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

/// The matches and their sessions.
struct Found {
    answer: SearchAnswer,
    sessions: HashMap<SessionId, SessionRow>,
    /// What was found instead, if nothing was.
    nothing: hint::Nothing,
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
        let nothing = match answer.hits.is_empty() {
            true => hint::Nothing::look(args, query, index)?,
            false => hint::Nothing::default(),
        };
        Ok(Self {
            answer,
            sessions,
            nothing,
        })
    }

    /// Returns the reference of a hit: what `show` opens.
    fn reference(hit: &Hit) -> String {
        format!("{}:{}", short(&hit.session), hit.seq)
    }

    fn print(&self, ui: &Ui) -> Result<()> {
        ui.page(&groups::draw(self, ui))?;
        let (shown, total) = (self.answer.hits.len() as u64, self.answer.total);
        if shown < total {
            let (shown, all) = (grouped(shown), grouped(total));
            ui.status(&format!(
                "{shown} of {all} matches (-n {total} for all, or add words)"
            ));
        }
        if let Some(hit) = self.answer.hits.first() {
            let (program, reference) = (ui.program(), Self::reference(hit));
            ui.status(&format!("to read one: {program} show {reference}"));
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let hits: Vec<Value> = self
            .answer
            .hits
            .iter()
            .map(|hit| self.hit_json(hit))
            .collect();
        json!({
            "total": self.answer.total,
            "hits": hits,
            "suggestions": self.nothing.json(),
        })
    }

    fn hit_json(&self, hit: &Hit) -> Value {
        let row = self.sessions.get(&hit.session);
        let project = row.and_then(|row| row.project.as_ref());
        let mut json = json!(hit);
        json["ref"] = Self::reference(hit).into();
        json["agent"] = json!(row.and_then(groups::agent));
        json["project"] = json!(project.map(|project| project.name.as_str()));
        json["title"] = json!(row.and_then(groups::title));
        json["score"] = json!((f64::from(hit.score) * 1e4).round() / 1e4);
        json["snippet"] = json!(hit.snippet.text);
        json["highlights"] = json!(snippet::characters(&hit.snippet));
        json
    }
}
