//! The fields of the index, and records to be added to it.

use std::sync::Arc;

use backtrail::{Block, Message, RecordKind, Role};
use tantivy::schema::document::{Document, ReferenceValue, ReferenceValueLeaf, Value};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{RawTokenizer, TextAnalyzer, TokenizerManager};

use super::record_text::{self, TextSink};
use super::tokens::Words;
use super::touched::touched_by;
use crate::feed::FedRecord;

// The fields, in the order of `schema`.
/// The text of a record.
pub(super) const TEXT: Field = Field::from_field_id(0);
/// The tools that it calls or has results of, in lower case.
pub(super) const TOOL: Field = Field::from_field_id(1);
/// The model, in lower case.
pub(super) const MODEL: Field = Field::from_field_id(2);
/// The files that its calls touch, as they are written.
pub(super) const FILE: Field = Field::from_field_id(3);
const TRAIL: Field = Field::from_field_id(4);
const SEQ: Field = Field::from_field_id(5);
const BYTE: Field = Field::from_field_id(6);
const AT: Field = Field::from_field_id(7);
const ROLE: Field = Field::from_field_id(8);
const TIER: Field = Field::from_field_id(9);

/// The names of the numeric fields of a hit.
pub(super) const NUMBERS: [&str; 6] = ["trail", "seq", "byte", "at", "role", "tier"];

pub(super) fn schema() -> Schema {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer("words")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let name = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    schema.add_text_field("text", TextOptions::default().set_indexing_options(words));
    for names in ["tool", "model", "file"] {
        let options = TextOptions::default().set_indexing_options(name.clone());
        schema.add_text_field(names, options);
    }
    let number = NumericOptions::default().set_fast();
    for name in NUMBERS {
        match name {
            "at" => schema.add_i64_field(name, number.clone()),
            _ => schema.add_u64_field(name, number.clone()),
        };
    }
    schema.build()
}

/// Returns the tokenizers of the fields.
pub(super) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::new();
    tokenizers.register("words", TextAnalyzer::from(Words::default()));
    // The last one is requested for fields that are not text.
    for name in ["raw", "default"] {
        tokenizers.register(name, TextAnalyzer::from(RawTokenizer::default()));
    }
    tokenizers
}

/// The roles as stored in the index.
pub(super) const ROLES: [&str; 7] = [
    "user",
    "assistant",
    "tool",
    "system",
    "summary",
    "run",
    "other",
];

/// Returns the number of a role; what is no role of ours is another one.
fn role_of(record: &FedRecord<'_>) -> u8 {
    match (&record.read.message, record.read.kind) {
        (Some(message), _) => match message.role {
            Role::User => 0,
            Role::Assistant => 1,
            Role::Tool => 2,
            Role::System => 3,
            _ => 6,
        },
        (None, RecordKind::Compaction) => 4,
        (None, RecordKind::Run) => 5,
        (None, _) => 6,
    }
}

/// Where a record is among the matches: what people and models said comes first, then calls of
/// tools and their output, then what the agent inserted.
pub(crate) fn tier(kind: RecordKind<'_>, message: Option<&Message>) -> u8 {
    let Some(message) = message else {
        // Summaries are written by models, runs are like calls.
        return u8::from(kind != RecordKind::Compaction);
    };
    let is_said = |block: &Block| match block {
        Block::Text(block) => !block.text.trim().is_empty(),
        Block::Thinking(block) => !block.thinking.trim().is_empty(),
        _ => false,
    };
    let says = message.blocks.iter().any(is_said);
    match message.role {
        Role::System => 2,
        Role::User if message.is_meta() => 2,
        Role::User | Role::Assistant if says => 0,
        _ => 1,
    }
}

/// Records to be added to the index.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// All text, one piece after the other.
    text: String,
    /// The field of each piece, and where it ends.
    spans: Vec<(Field, usize)>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The first of its spans, which extend to the first one of the next record.
    first_span: usize,
    trail: u32,
    seq: u64,
    byte: u64,
    at: Option<i64>,
    role: u8,
    tier: u8,
}

impl TextSink for Batch {
    fn add(&mut self, text: &str) {
        self.add_written(|out| out.push_str(text));
    }

    fn add_written(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.spans.push((TEXT, self.text.len()));
    }
}

/// How many characters of a tool or model name are kept.
const LONGEST_NAME: usize = 200;

impl Batch {
    /// Adds a record, if it has any text.
    pub(super) fn add_record(&mut self, trail: u32, record: &FedRecord<'_>) -> bool {
        let (first_span, begin) = (self.spans.len(), self.text.len());
        let read = record.read;
        record_text::add_record(read.kind, read.message.as_ref(), read.bytes, self);
        if self.text.len() == begin {
            self.spans.truncate(first_span);
            return false;
        }
        for tool in read.message.iter().flat_map(called) {
            self.add_name(TOOL, tool);
        }
        for tool in record.results.iter().flat_map(|it| &it.tool) {
            self.add_name(TOOL, tool);
        }
        if let Some(model) = &read.details.model {
            self.add_name(MODEL, model);
        }
        if let Some(message) = &read.message {
            touched_by(message, &mut |path| {
                self.text.push_str(path);
                self.spans.push((FILE, self.text.len()));
            });
        }
        self.entries.push(Entry {
            first_span,
            trail,
            seq: read.seq,
            byte: record.byte,
            at: read.at.map(|at| at.as_millis()),
            role: role_of(record),
            tier: tier(read.kind, read.message.as_ref()),
        });
        true
    }

    fn add_name(&mut self, field: Field, name: &str) {
        let begin = name.chars().take(LONGEST_NAME);
        self.text.extend(begin.flat_map(char::to_lowercase));
        self.spans.push((field, self.text.len()));
    }

    /// Returns the length of the text.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the records.
    pub(super) fn records(self) -> impl Iterator<Item = BatchRecord> {
        let batch = Arc::new(self);
        (0..batch.entries.len()).map(move |entry| BatchRecord {
            batch: Arc::clone(&batch),
            entry,
        })
    }
}

/// Returns the tools that a message calls.
fn called(message: &Message) -> impl Iterator<Item = &str> {
    message.blocks.iter().filter_map(|block| match block {
        Block::ToolUse(call) => Some(call.name.as_str()),
        _ => None,
    })
}

/// One record of a batch.
#[derive(Debug)]
pub(super) struct BatchRecord {
    batch: Arc<Batch>,
    entry: usize,
}

impl Document for BatchRecord {
    type Value<'a> = FieldValue<'a>;
    type FieldsValuesIter<'a> = Box<dyn Iterator<Item = (Field, FieldValue<'a>)> + 'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        let batch = &*self.batch;
        let Some(entry) = batch.entries.get(self.entry) else {
            return Box::new(std::iter::empty());
        };
        let next = batch.entries.get(self.entry + 1);
        let last_span = next.map_or(batch.spans.len(), |next| next.first_span);
        let spans = (entry.first_span..last_span).filter_map(|span| {
            let (field, end) = *batch.spans.get(span)?;
            let begin = match span.checked_sub(1) {
                Some(before) => batch.spans.get(before)?.1,
                None => 0,
            };
            Some((field, FieldValue::Str(batch.text.get(begin..end)?)))
        });
        let numbers = [
            (TRAIL, FieldValue::U64(entry.trail.into())),
            (SEQ, FieldValue::U64(entry.seq)),
            (BYTE, FieldValue::U64(entry.byte)),
            (ROLE, FieldValue::U64(entry.role.into())),
            (TIER, FieldValue::U64(entry.tier.into())),
        ];
        let at = entry.at.map(|at| (AT, FieldValue::I64(at)));
        Box::new(spans.chain(numbers).chain(at))
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldValue<'a> {
    Str(&'a str),
    U64(u64),
    I64(i64),
}

impl<'a> Value<'a> for FieldValue<'a> {
    type ArrayIter = std::iter::Empty<Self>;
    type ObjectIter = std::iter::Empty<(&'a str, Self)>;

    fn as_value(&self) -> ReferenceValue<'a, Self> {
        ReferenceValue::Leaf(match *self {
            Self::Str(text) => ReferenceValueLeaf::Str(text),
            Self::U64(number) => ReferenceValueLeaf::U64(number),
            Self::I64(number) => ReferenceValueLeaf::I64(number),
        })
    }
}
