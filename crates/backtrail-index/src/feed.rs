//! What is read of trails, for whoever derives something from it.

use std::collections::HashMap;

use backtrail::{
    Block, Details, ErrorKind, Message, RecordKind, RecordRef, SessionId, SessionReader, Timestamp,
    ToolResult,
};

use crate::error::Result;

/// A trail that is about to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrailPlace {
    pub(crate) session: SessionId,
    pub(crate) number: u32,
    /// The byte that is read from: 0, or where the last look ended.
    pub(crate) from: u64,
    /// How long the file was, and when it was written, before it was read.
    pub(crate) bytes: u64,
    pub(crate) modified: i64,
}

/// A record, as it is read of a trail.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) kind: RecordKind<'a>,
    pub(crate) seq: u64,
    /// Where the record begins in the file.
    pub(crate) byte: u64,
    pub(crate) at: Option<Timestamp>,
    /// The message, as far as it can be read. Large texts are there, media are references.
    pub(crate) message: Option<&'a Message>,
    /// For each block of the message that is the result of a tool, the name of the tool,
    /// where that is known.
    pub(crate) tools: &'a [Option<String>],
    pub(crate) details: &'a Details,
    /// The whole line.
    pub(crate) bytes: &'a [u8],
}

/// Where a trail was read up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// The byte behind the last record.
    pub(crate) byte: u64,
    /// The sum of that record.
    pub(crate) sum: [u8; 8],
}

/// Whoever derives something from trails.
pub(crate) trait Sink {
    /// A trail begins, or goes on where the last look ended.
    fn begin(&mut self, place: &TrailPlace) -> Result<()>;

    /// A record of it, openers included.
    fn record(&mut self, said: &Said<'_>) -> Result<()>;

    /// So many places could not be read: up to the last record, and behind it. What is
    /// behind it is read again next time.
    fn damage(&mut self, _before: u64, _behind: u64) {}

    /// The trail was read. `None`: no record was found from where it was read.
    fn end(&mut self, end: Option<End>) -> Result<()>;
}

/// Reads a trail from the lowest byte that anybody wants, and tells each what is new to
/// it. Returns how many bytes were read.
pub(crate) fn feed(
    reader: &SessionReader,
    sinks: &mut [(TrailPlace, &mut dyn Sink)],
) -> Result<u64> {
    let Some((first, _)) = sinks.first() else {
        return Ok(0);
    };
    let number = first.number;
    let from = sinks.iter().map(|(place, _)| place.from).min().unwrap_or(0);
    // A trail that cannot be opened changes nothing for anybody.
    let mut records = reader.trail_records(number, from)?;
    for (place, sink) in sinks.iter_mut() {
        sink.begin(place)?;
    }
    let is_legacy = records.is_legacy();
    let mut names = ToolNames::new(reader, from > 0 || number > 0);
    let mut end: Option<End> = None;
    let mut before = 0;
    while let Some(found) = records.next()? {
        let record = found.record;
        let (stored, details) = record.stored_message_and_details();
        let message = with_large_texts(&record, stored)?;
        let tools = names.take_in(message.as_ref());
        let said = Said {
            kind: record.kind(),
            seq: record.seq(),
            byte: found.byte,
            at: record.at(),
            message: message.as_ref(),
            tools: &tools,
            details: &details,
            bytes: record.bytes(),
        };
        for (place, sink) in sinks.iter_mut() {
            if is_legacy || found.byte >= place.from {
                sink.record(&said)?;
            }
        }
        end = Some(End {
            byte: found.end,
            sum: record.sum_bytes(),
        });
        before = found.damaged;
    }
    let mut behind = records.damage().count() - before;
    if end.is_none() && from == 0 {
        // A trail begins with a record as soon as it is there.
        behind = behind.max(1);
    }
    for (_, sink) in sinks.iter_mut() {
        sink.damage(before, behind);
        sink.end(end)?;
    }
    Ok(end.map_or(0, |end| end.byte.saturating_sub(from)))
}

/// Returns a message with its large texts; media stay references.
fn with_large_texts(record: &RecordRef<'_>, stored: Option<Message>) -> Result<Option<Message>> {
    let Some(stored) = stored else {
        return Ok(None);
    };
    if !stored.blocks.iter().any(lacks_text) {
        return Ok(Some(stored));
    }
    match record.message() {
        Ok(whole) => Ok(whole),
        // A part is lost: what stands in the line is still there.
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Some(stored)),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a text of the block may stand in the payload file.
fn lacks_text(block: &Block) -> bool {
    match block {
        Block::ToolUse(call) => call.input.as_str().contains("\"payload\""),
        Block::ToolResult(result) => result.output.as_str().contains("\"payload\""),
        Block::Media(_) => false,
        // A text that is not a string is kept as another block.
        Block::Other(other) => other.as_str().contains("\"payload\""),
        _ => false,
    }
}

/// Which tool a call was of, for those that wait for their result.
#[derive(Debug)]
struct ToolNames<'a> {
    waiting: HashMap<String, String>,
    reader: &'a SessionReader,
    /// Whether calls may have been made before what is read now.
    goes_on: bool,
}

/// A session that never answers its calls must not fill the memory.
const WAITING: usize = 10_000;
/// How many records back a call is looked for.
const FAR: usize = 1_000;

impl<'a> ToolNames<'a> {
    fn new(reader: &'a SessionReader, goes_on: bool) -> Self {
        Self {
            waiting: HashMap::new(),
            reader,
            goes_on,
        }
    }

    /// Takes in a message; returns the tools of the results in it, one after the other.
    fn take_in(&mut self, message: Option<&Message>) -> Vec<Option<String>> {
        let mut tools = Vec::new();
        for block in message.iter().flat_map(|message| &message.blocks) {
            match block {
                Block::ToolUse(call) => {
                    if self.waiting.len() >= WAITING {
                        self.waiting.clear();
                    }
                    let (id, name) = (call.id.as_str(), call.name.as_str());
                    self.waiting.insert(id.to_owned(), name.to_owned());
                }
                Block::ToolResult(result) => tools.push(self.tool_of(result)),
                _ => {}
            }
        }
        tools
    }

    fn tool_of(&mut self, result: &ToolResult) -> Option<String> {
        let id = result.tool_use_id.as_str();
        let called = self.waiting.remove(id);
        if let Some(name) = &result.tool_name {
            return Some(name.as_str().to_owned());
        }
        called.or_else(|| self.goes_on.then(|| find_call(self.reader, id))?)
    }
}

/// Looks for the call of a tool before what is read now. One that cannot be found has no
/// name: that is all that depends on it.
fn find_call(reader: &SessionReader, id: &str) -> Option<String> {
    let mut back = reader.records_back().ok()?;
    for _ in 0..FAR {
        let Ok(Some(message)) = back.next().ok()??.stored_message() else {
            continue;
        };
        let call = message.blocks.iter().find_map(|block| match block {
            Block::ToolUse(call) if call.id.as_str() == id => Some(call),
            _ => None,
        });
        if let Some(call) = call {
            return Some(call.name.as_str().to_owned());
        }
    }
    None
}
