//! Hints for when nothing is found.

use backtrail_index::{Index, Result, SearchQuery};

use super::SearchArgs;
use crate::shell::quote;
use crate::text::{count, one_line};

/// More words than this are not searched for one by one.
const WORDS: usize = 6;

/// Returns that nothing was found, and what a wider search would find.
pub(super) fn nothing(
    args: &SearchArgs,
    query: &SearchQuery,
    index: &Index,
) -> Result<Vec<String>> {
    let shown = one_line(&query.words, 60);
    let mut hints = vec![format!("nothing found: {shown}")];
    let filters = args.filter_words();
    if !filters.is_empty() {
        let mut wider = SearchQuery::new(query.words.clone());
        wider.limit = 1;
        let total = index.search(&wider)?.total;
        hints.push(format!("without {filters}: {}", count(total, "message")));
        if total > 0 {
            return Ok(hints);
        }
    }
    if args.phrase {
        hints.push("--phrase matches the words only in this order, next to each other".to_owned());
        return Ok(hints);
    }
    let Some(words) = plain(&query.words) else {
        return Ok(hints);
    };
    match words.as_slice() {
        [word] => {
            let start = format!("{word}*");
            let total = found(index, query, &start)?;
            if total > 0 {
                let start = quote(&start);
                hints.push(format!("{start} matches {}", count(total, "message")));
            }
        }
        words => {
            let mut totals = Vec::new();
            for word in words {
                let total = found(index, query, word)?;
                totals.push(format!("{} {total}", one_line(word, 30)));
            }
            hints.push(format!("messages with each word: {}", totals.join(", ")));
            let any = quote(&words.join(" or "));
            hints.push(format!("to match any of them: backtrail search {any}"));
        }
    }
    Ok(hints)
}

/// Returns how many messages match other words.
fn found(index: &Index, query: &SearchQuery, words: &str) -> Result<u64> {
    let mut other = query.clone();
    other.words = words.to_owned();
    other.limit = 1;
    Ok(index.search(&other)?.total)
}

/// Returns the words of a query without operators.
fn plain(words: &str) -> Option<Vec<&str>> {
    let is_plain = |word: &&str| {
        let is_operator = ["and", "or", "not"]
            .iter()
            .any(|it| word.eq_ignore_ascii_case(it));
        !is_operator
            && word.starts_with(char::is_alphanumeric)
            && !word.contains(['"', '*', '(', ')', '|'])
    };
    let words: Vec<&str> = words.split_whitespace().collect();
    let all = words.len() <= WORDS && words.iter().all(is_plain);
    all.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::plain;

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
            "a b c d e f g",
        ] {
            assert_eq!(plain(query), None, "{query}");
        }
    }
}
