//! Two words that follow each other, as words or as parts of a name: finds in one pass
//! what two phrases would.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings as _, SegmentPostings};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

use super::tokens::{APART, JOINED};

/// The greatest distance between the words: no word is between them.
const FARTHEST: u32 = APART as u32;

/// The smallest distance.
const NEAREST: u32 = JOINED as u32;

/// A query for two words, the second right after the first.
#[derive(Debug, Clone)]
pub(super) struct WordPair {
    pub(super) first: Term,
    pub(super) second: Term,
}

impl Query for WordPair {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let bm25 = match scoring {
            EnableScoring::Enabled {
                statistics_provider,
                ..
            } => {
                let terms = [self.first.clone(), self.second.clone()];
                Some(Bm25Weight::for_terms(statistics_provider, &terms)?)
            }
            EnableScoring::Disabled { .. } => None,
        };
        let pair = self.clone();
        Ok(Box::new(WordPairWeight { pair, bm25 }))
    }
}

struct WordPairWeight {
    pair: WordPair,
    bm25: Option<Bm25Weight>,
}

impl WordPairWeight {
    fn pair_scorer(
        &self,
        segment: &SegmentReader,
        boost: Score,
    ) -> tantivy::Result<Option<WordPairScorer>> {
        let index = segment.inverted_index(self.pair.first.field())?;
        let read = |term| index.read_postings(term, IndexRecordOption::WithFreqsAndPositions);
        let (Some(first), Some(second)) = (read(&self.pair.first)?, read(&self.pair.second)?)
        else {
            return Ok(None);
        };
        let norms = segment.get_fieldnorms_reader(self.pair.first.field())?;
        let mut scorer = WordPairScorer {
            first,
            second,
            norms,
            bm25: self.bm25.as_ref().map(|bm25| bm25.boost_by(boost)),
            places: [Vec::new(), Vec::new()],
            count: 0,
        };
        scorer.settle();
        Ok(Some(scorer))
    }
}

impl Weight for WordPairWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(match self.pair_scorer(segment, boost)? {
            Some(scorer) => Box::new(scorer),
            None => Box::new(EmptyScorer),
        })
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        if let Some(mut scorer) = self.pair_scorer(segment, 1.0)?
            && scorer.seek(doc) == doc
        {
            let what = "two words that follow each other";
            return Ok(Explanation::new(what, scorer.score()));
        }
        let what = "it does not fit".to_owned();
        Err(TantivyError::InvalidArgument(what))
    }
}

/// Iterates over the records with both words.
struct WordPairScorer {
    first: SegmentPostings,
    second: SegmentPostings,
    norms: FieldNormReader,
    bm25: Option<Bm25Weight>,
    /// The positions of the words in the current record.
    places: [Vec<u32>; 2],
    /// How often they follow each other there.
    count: u32,
}

impl WordPairScorer {
    /// Advances to the next match, unless the current record is one.
    fn settle(&mut self) -> DocId {
        loop {
            let doc = self.first.doc();
            if doc == TERMINATED {
                return TERMINATED;
            }
            let other = match self.second.doc() {
                before if before < doc => self.second.seek(doc),
                there => there,
            };
            if other == doc {
                self.count = self.count_here();
                if self.count > 0 {
                    return doc;
                }
                self.first.advance();
            } else if other == TERMINATED {
                return self.first.seek(TERMINATED);
            } else {
                self.first.seek(other);
            }
        }
    }

    /// Counts how often the second word follows the first.
    fn count_here(&mut self) -> u32 {
        let [first, second] = &mut self.places;
        self.first.positions(first);
        self.second.positions(second);
        let mut count = 0;
        let mut behind = second.iter().peekable();
        for place in first.iter() {
            while behind.next_if(|at| **at < place + NEAREST).is_some() {}
            count += u32::from(behind.peek().is_some_and(|at| *at - place <= FARTHEST));
        }
        count
    }
}

impl DocSet for WordPairScorer {
    fn advance(&mut self) -> DocId {
        self.first.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc() < target {
            self.first.seek(target);
            return self.settle();
        }
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.first.doc()
    }

    fn size_hint(&self) -> u32 {
        self.first.size_hint().min(self.second.size_hint())
    }
}

impl Scorer for WordPairScorer {
    fn score(&mut self) -> Score {
        let norm = self.norms.fieldnorm_id(self.doc());
        let bm25 = self.bm25.as_ref();
        bm25.map_or(1.0, |bm25| bm25.score(norm, self.count))
    }
}
