//! Shared test support: records without a store.

use std::path::Path;

use backtrail::conversation::Details;
use backtrail::plumbing::ReadRecord;
use backtrail::{Block, Message, RecordKind, Timestamp};

use super::*;
use crate::feed::{End, FedRecord, FedResult, Sink, TrailPlace};
use crate::trail_dirs::TrailFile;

/// A trail with messages, one second apart.
#[derive(Debug, Clone)]
pub(super) struct TestTrail {
    pub(super) session: &'static str,
    pub(super) number: u32,
    pub(super) messages: Vec<Message>,
    pub(super) model: Option<String>,
}

impl TestTrail {
    pub(super) fn new(session: &'static str, messages: Vec<Message>) -> Self {
        Self {
            session,
            number: 0,
            messages,
            model: None,
        }
    }

    pub(super) fn of_texts(session: &'static str, texts: &[&str]) -> Self {
        let message = |text: &&str| Message::user_text(*text);
        Self::new(session, texts.iter().map(message).collect())
    }

    /// Feeds the messages from `from` on. Each takes a hundred bytes.
    pub(super) fn feed(&self, from: usize, sink: &mut dyn Sink) {
        sink.begin(&self.place(from)).expect("begun");
        for seq in from..self.messages.len() {
            self.feed_one(seq, sink);
        }
        let end = End {
            byte: 100 * self.messages.len() as u64,
            sum: *b"checksum",
        };
        sink.end(Some(end)).expect("ended");
    }

    pub(super) fn place(&self, from: usize) -> TrailPlace {
        TrailPlace {
            session: self.session.parse().expect("an id"),
            trail: TrailFile {
                number: self.number,
                bytes: 100 * self.messages.len() as u64,
                modified: 7,
            },
            from: 100 * from as u64,
        }
    }

    pub(super) fn feed_one(&self, seq: usize, sink: &mut dyn Sink) {
        let mut details = Details::default();
        details.model = self.model.clone();
        let blocks = self
            .messages
            .get(seq)
            .map(|message| message.blocks.as_slice());
        let results: Vec<FedResult> = blocks
            .unwrap_or_default()
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult(result) => Some(result.tool_name.as_ref()),
                _ => None,
            })
            .map(|name| FedResult {
                call: None,
                tool: name.map(|name| name.as_str().to_owned()),
            })
            .collect();
        let read = ReadRecord {
            kind: RecordKind::Message,
            seq: seq as u64,
            at: Timestamp::from_millis(1_700_000_000_000 + 1000 * seq as i64),
            bytes: b"",
            message: self.messages.get(seq).cloned(),
            is_incomplete: false,
            details,
            usage: None,
            summary: None,
        };
        let record = FedRecord {
            read: &read,
            byte: 100 * seq as u64,
            results: &results,
        };
        sink.record(&record).expect("indexed");
    }
}

/// Builds an index of trails on disk.
pub(super) fn built(derived: &Path, trails: &[TestTrail]) -> SearchIndex {
    let mut writer = SearchWriter::rebuild(derived).expect("a writer");
    for trail in trails {
        trail.feed(0, &mut writer);
    }
    writer.commit().expect("committed")
}

/// Opens an index that must be sound.
pub(super) fn opened(derived: &Path) -> SearchIndex {
    match SearchIndex::open(derived).expect("opened") {
        Opened::Ready(dir) => dir,
        other => panic!("{other:?}"),
    }
}

/// A search for words everywhere.
pub(super) fn wanted(words: &str) -> SearchRequest {
    let mut query = SearchQuery::new(words);
    query.limit = 1000;
    SearchRequest::new(&query).expect(words)
}

/// Searches all of an index.
pub(super) fn search(dir: &SearchIndex, wanted: &SearchRequest) -> FoundRecords {
    let allowed = AllowedTrails::of(dir.known(), |_| true);
    find(wanted, &[(dir, &allowed)]).expect("searched")
}
