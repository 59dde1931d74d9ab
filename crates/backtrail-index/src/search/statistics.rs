//! How rare words are, which determines scores.
//!
//! Words are counted over everything that is searched, on disk and in memory, without
//! removed trails. So the answer does not depend on how the index was built.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, Searcher, TERMINATED, Term};

use super::commit::IndexedTrail;
use super::document::NUMBERS;

/// The average number of words in a record. It is fixed, so that no record changes the
/// scores of others by its length.
const AVERAGE_WORDS: u64 = 150;

/// A part of what is searched.
pub(super) struct Counted<'a> {
    searcher: &'a Searcher,
    /// The number of records of known trails.
    docs: u64,
    /// Which trail numbers are known, if there are records of others.
    live: Option<Vec<bool>>,
}

impl<'a> Counted<'a> {
    pub(super) fn new(searcher: &'a Searcher, known: &[IndexedTrail]) -> Self {
        let docs = known.iter().map(|trail| u64::from(trail.docs)).sum();
        let live = (searcher.num_docs() != docs).then(|| {
            let most = known.iter().map(|trail| trail.ordinal).max().unwrap_or(0);
            let mut live = vec![false; most as usize + 1];
            for trail in known {
                live[trail.ordinal as usize] = true;
            }
            live
        });
        Self {
            searcher,
            docs,
            live,
        }
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let Some(live) = &self.live else {
            return self.searcher.doc_freq(term);
        };
        let mut count = 0;
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(term.field())?;
            let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
                continue;
            };
            let trails = segment.fast_fields().u64(NUMBERS[0])?;
            let mut doc = postings.doc();
            while doc != TERMINATED {
                let trail = trails.first(doc).and_then(|trail| live.get(trail as usize));
                count += u64::from(trail == Some(&true));
                doc = postings.advance();
            }
        }
        Ok(count)
    }
}

/// The counts over all parts.
pub(super) struct Statistics<'a> {
    pub(super) parts: Vec<Counted<'a>>,
    seen: Mutex<HashMap<Term, u64>>,
}

impl<'a> Statistics<'a> {
    pub(super) fn new(parts: Vec<Counted<'a>>) -> Self {
        Self {
            parts,
            seen: Mutex::default(),
        }
    }

    fn docs(&self) -> u64 {
        // With no records, everything is as rare as possible.
        self.parts.iter().map(|part| part.docs).sum::<u64>().max(1)
    }
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, _field: Field) -> tantivy::Result<u64> {
        Ok(self.docs() * AVERAGE_WORDS)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.docs())
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = seen.get(term) {
            return Ok(known);
        }
        let mut count = 0;
        for part in &self.parts {
            count += part.doc_freq(term)?;
        }
        let count = count.min(self.docs());
        seen.insert(term.clone(), count);
        Ok(count)
    }
}
