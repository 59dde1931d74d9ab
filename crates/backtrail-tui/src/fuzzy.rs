//! Finding texts by a few typed letters.

use frizbee::{Config, Matcher, Scoring};

/// Returns the texts that match what was typed, best first; those that match equally well stay in
/// their order.
pub(crate) fn matching(typed: &str, texts: &[String]) -> Vec<usize> {
    // A title is as likely to have the word in its middle.
    let scoring = Scoring {
        prefix_bonus: 0,
        ..Scoring::default()
    };
    let config = Config::default().scoring(scoring);
    let found = Matcher::from_query(typed, &config).match_list(texts);
    found
        .into_iter()
        .map(|found| found.index as usize)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_with_the_word_comes_first() {
        let texts = ["fix the parser", "port the cart", "carpet art"].map(str::to_owned);
        assert_eq!(matching("cart", &texts).first(), Some(&1));
        assert!(matching("zzzz", &texts).is_empty());
    }
}
