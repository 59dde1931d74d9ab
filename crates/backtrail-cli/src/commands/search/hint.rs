//! What a similar search would find, for when nothing is found.

use backtrail_index::{Index, Result, SearchQuery};
use serde_json::{Value, json};

use super::SearchArgs;
use crate::shell::quote;
use crate::text::{count, one_line};

/// More words than this are not searched for one by one.
const WORDS: usize = 6;

/// Searches that find something where one found nothing.
#[derive(Debug, Default)]
pub(super) struct Nothing {
    words: String,
    suggestions: Vec<Suggestion>,
    /// Remarks on the words themselves.
    remarks: Vec<String>,
}

/// A search that finds something.
#[derive(Debug)]
enum Suggestion {
    /// Without a filter, as it was typed.
    Without(String, u64),
    /// With other words.
    Words(String, u64),
}

impl Nothing {
    /// Looks for similar searches that find something.
    pub(super) fn look(args: &SearchArgs, query: &SearchQuery, index: &Index) -> Result<Self> {
        let mut found = Self {
            words: query.words.clone(),
            ..Self::default()
        };
        found.look_without_filters(args, query, index)?;
        if !found.suggestions.is_empty() {
            return Ok(found);
        }
        if let Some(words) = index.respelled(&query.words)? {
            let total = total(index, query, &words)?;
            if total > 0 {
                found.suggestions.push(Suggestion::Words(words, total));
                return Ok(found);
            }
        }
        found.look_for_words(args, query, index)?;
        found.remarks.extend(args.filters.unknown_names(index)?);
        Ok(found)
    }

    /// Leaves out each filter alone; if that does not help, all of them.
    fn look_without_filters(
        &mut self,
        args: &SearchArgs,
        query: &SearchQuery,
        index: &Index,
    ) -> Result<()> {
        let filters = args.given_filters(query);
        let mut all = query.clone();
        for (typed, leave_out) in &filters {
            let mut without = query.clone();
            leave_out(&mut without);
            leave_out(&mut all);
            let total = total(index, &without, &without.words)?;
            if total > 0 {
                self.suggestions
                    .push(Suggestion::Without(typed.clone(), total));
            }
        }
        if self.suggestions.is_empty() && filters.len() > 1 {
            let total = total(index, &all, &all.words)?;
            if total > 0 {
                let typed: Vec<&str> = filters.iter().map(|(typed, _)| typed.as_str()).collect();
                self.suggestions
                    .push(Suggestion::Without(typed.join(" "), total));
            }
        }
        Ok(())
    }

    /// Looks for each word alone, or for what begins with the only one.
    fn look_for_words(
        &mut self,
        args: &SearchArgs,
        query: &SearchQuery,
        index: &Index,
    ) -> Result<()> {
        if args.phrase {
            let text = "--phrase matches the words only in this order, next to each other";
            self.remarks.push(text.to_owned());
            return Ok(());
        }
        let Some(words) = plain(&query.words) else {
            return Ok(());
        };
        if let [word] = words.as_slice() {
            let start = format!("{word}*");
            let total = total(index, query, &start)?;
            if total > 0 {
                self.suggestions.push(Suggestion::Words(start, total));
            }
            return Ok(());
        }
        let mut each = Vec::new();
        for word in &words {
            let total = total(index, query, word)?;
            each.push(format!("{} {total}", one_line(word, 30)));
        }
        self.remarks
            .push(format!("matches of each word: {}", each.join(", ")));
        let any = words.join(" or ");
        let total = total(index, query, &any)?;
        if total > 0 {
            self.suggestions.push(Suggestion::Words(any, total));
        }
        Ok(())
    }

    /// Returns lines that say so.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("nothing found: {}", one_line(&self.words, 60))];
        lines.extend(self.remarks.iter().cloned());
        lines.extend(self.suggestions.iter().map(|suggestion| match suggestion {
            Suggestion::Without(typed, total) => {
                format!("{} without {typed}", matches(*total))
            }
            Suggestion::Words(words, total) => format!(
                "did you mean: backtrail search {} ({})",
                quote(words),
                matches(*total)
            ),
        }));
        lines
    }

    /// Returns the suggestions as data.
    pub(super) fn json(&self) -> Value {
        let suggestions = self.suggestions.iter().map(|suggestion| match suggestion {
            Suggestion::Without(typed, total) => json!({"without": typed, "total": total}),
            Suggestion::Words(words, total) => json!({"words": words, "total": total}),
        });
        suggestions.collect()
    }
}

fn matches(total: u64) -> String {
    match total {
        1 => "1 match".to_owned(),
        total => format!("{}es", count(total, "match").trim_end_matches('s')),
    }
}

/// Returns how many messages match other words.
fn total(index: &Index, query: &SearchQuery, words: &str) -> Result<u64> {
    let mut other = query.clone();
    other.words = words.to_owned();
    other.limit = 1;
    Ok(index.search(&other)?.total)
}

/// Leaves out a filter of a query.
type LeaveOut = Box<dyn Fn(&mut SearchQuery)>;

impl SearchArgs {
    /// Returns the filters of a query as they are typed, and how to leave each out.
    fn given_filters(&self, query: &SearchQuery) -> Vec<(String, LeaveOut)> {
        let mut given: Vec<(String, LeaveOut)> = Vec::new();
        let mut add = |typed: String, leave_out: fn(&mut SearchQuery)| {
            if !typed.is_empty() {
                given.push((typed, Box::new(leave_out)));
            }
        };
        let list = |option: &str, values: &[String]| {
            let typed = values
                .iter()
                .map(|value| format!("{option} {}", quote(value)));
            typed.collect::<Vec<_>>().join(" ")
        };
        add(list("--role", &self.roles), |query| query.roles.clear());
        add(list("--tool", &self.tools), |query| query.tools.clear());
        for (typed, leave_out) in self.filters.each() {
            add(typed, leave_out);
        }
        let is_file = |word: &&str| word.to_ascii_lowercase().starts_with("file:");
        let files: Vec<&str> = query.words.split_whitespace().filter(is_file).collect();
        let others = query.words.split_whitespace().filter(|word| !is_file(word));
        let others: Vec<String> = others.map(str::to_owned).collect();
        if !files.is_empty() && !others.is_empty() && !query.words.contains('"') {
            let words = others.join(" ");
            let leave_out = move |query: &mut SearchQuery| query.words.clone_from(&words);
            given.push((files.join(" "), Box::new(leave_out)));
        }
        given
    }
}

/// Returns the words of a query without operators.
fn plain(words: &str) -> Option<Vec<&str>> {
    let is_plain = |word: &&str| {
        let is_operator = ["and", "or", "not"]
            .iter()
            .any(|it| word.eq_ignore_ascii_case(it));
        !is_operator
            && word.starts_with(char::is_alphanumeric)
            && !word.to_ascii_lowercase().starts_with("file:")
            && !word.contains(['"', '*', '(', ')', '|'])
    };
    let words: Vec<&str> = words.split_whitespace().collect();
    let all = words.len() <= WORDS && words.iter().all(is_plain);
    all.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::{matches, plain};

    #[test]
    fn only_plain_words_are_searched_for_one_by_one() {
        assert_eq!(plain("half  cent"), Some(vec!["half", "cent"]));
        assert_eq!(plain("src/foo.rs"), Some(vec!["src/foo.rs"]));
        for query in [
            "a or b",
            "NOT a",
            "\"a b\"",
            "rou*",
            "(a b)",
            "-a",
            "file:a b",
            "a b c d e f g",
        ] {
            assert_eq!(plain(query), None, "{query}");
        }
        assert_eq!(matches(1), "1 match");
        assert_eq!(matches(1200), "1,200 matches");
    }
}
