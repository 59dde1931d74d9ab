//! Reads trails once, for everything that is derived from them.

use backtrail::plumbing::{CallPlace, CallVisitor, Calls, MessageParts, ReadRecord};
use backtrail::{
    Block, Message, RecordKind, RecordRef, SessionId, SessionReader, ToolResult, ToolUse,
};

use crate::error::Result;
use crate::trail_dirs::TrailFile;

/// A trail that is about to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrailPlace {
    pub(crate) session: SessionId,
    /// Its file, as it was before it was read.
    pub(crate) trail: TrailFile,
    /// The byte that it is read from: 0, or where the last reading ended.
    pub(crate) from: u64,
}

/// A record of a trail.
#[derive(Debug)]
pub(crate) struct FedRecord<'a> {
    /// The record. Large texts of its message are there, media are references.
    pub(crate) read: &'a ReadRecord<'a>,
    /// Where the record begins in the file.
    pub(crate) byte: u64,
    /// For each result of a tool in the message, in order, what it answers.
    pub(crate) results: &'a [FedResult],
}

/// What the result of a tool answers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FedResult {
    /// The call, if there is one that waits for it.
    pub(crate) call: Option<CallPlace>,
    /// The name of the tool, if that is known.
    pub(crate) tool: Option<String>,
}

/// Where a trail was read up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// The byte behind the last record.
    pub(crate) byte: u64,
    /// The sum of that record.
    pub(crate) sum: [u8; 8],
}

/// Derives something from trails.
pub(crate) trait Sink {
    /// A trail begins, or continues where the last reading ended.
    fn begin(&mut self, place: &TrailPlace) -> Result<()>;

    /// A record of it, openers included.
    fn record(&mut self, record: &FedRecord<'_>) -> Result<()>;

    /// Whether to read the file that a session was imported from, by its agent.
    fn wants_source(&self, _agent: &str) -> bool {
        false
    }

    /// The next bytes of that file, and its agent. Returns whether more are wanted.
    fn source(&mut self, _agent: &str, _bytes: &[u8]) -> bool {
        false
    }

    /// The last bytes of a reading of that file were given.
    fn source_end(&mut self) {}

    /// So many places could not be read: up to the last record, and behind it. What is
    /// behind it is read again next time.
    fn damage(&mut self, _before: u64, _behind: u64) {}

    /// The trail was read. `None`: it has no new record.
    fn end(&mut self, end: Option<End>) -> Result<()>;
}

/// How many bytes of a trail are read before it is told how far it is.
const STRETCH: u64 = 1 << 20;

/// Reads a trail from the lowest byte that a sink wants, and gives each sink what is new
/// to it. Calls `tell` with the bytes that were read so far. Returns how many were read.
pub(crate) fn feed(
    reader: &SessionReader,
    sinks: &mut [(TrailPlace, &mut dyn Sink)],
    tell: &dyn Fn(u64),
) -> Result<u64> {
    let Some((first, _)) = sinks.first() else {
        return Ok(0);
    };
    let number = first.trail.number;
    let from = sinks.iter().map(|(place, _)| place.from).min().unwrap_or(0);
    // A trail that cannot be opened changes nothing for any sink.
    let mut records = reader.trail_records(number, from)?;
    for (place, sink) in sinks.iter_mut() {
        sink.begin(place)?;
    }
    let is_version_1 = records.is_version_1();
    let mut calls = CallReader::new(reader, number, from > 0 || number > 0);
    let mut end: Option<End> = None;
    let mut before = 0;
    let mut told = from;
    while let Some(found) = records.next()? {
        let record = found.record;
        let read = ReadRecord::of(&record, MessageParts::Texts)?;
        calls.read(read.seq, read.message.as_ref());
        let fed = FedRecord {
            read: &read,
            byte: found.byte,
            results: &calls.results,
        };
        for (place, sink) in sinks.iter_mut() {
            if is_version_1 || found.byte >= place.from {
                if read.kind == RecordKind::Source {
                    feed_source(reader, &record, *sink);
                }
                sink.record(&fed)?;
            }
        }
        end = Some(End {
            byte: found.end,
            sum: record.sum_bytes(),
        });
        before = found.damaged;
        if found.end >= told + STRETCH {
            told = found.end;
            tell(told - from);
        }
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

/// Gives a sink the bytes of the file that a session was imported from, if it wants them.
fn feed_source(reader: &SessionReader, record: &RecordRef<'_>, sink: &mut dyn Sink) {
    let Some(source) = record.source().filter(|it| sink.wants_source(&it.agent)) else {
        return;
    };
    // Bytes that are lost tell nothing.
    let each = &mut |bytes: &[u8]| sink.source(&source.agent, bytes);
    reader.read_source(&source, each).ok();
    sink.source_end();
}

/// Finds the calls that results answer.
#[derive(Debug)]
struct CallReader<'a> {
    reader: &'a SessionReader,
    trail: u32,
    calls: Calls<CallPlace>,
    /// Whether calls may wait that were made before what is read now.
    may_have_earlier: bool,
    seq: u64,
    /// How many calls of the record were read.
    n: u32,
    results: Vec<FedResult>,
}

impl<'a> CallReader<'a> {
    fn new(reader: &'a SessionReader, trail: u32, may_have_earlier: bool) -> Self {
        Self {
            reader,
            trail,
            calls: Calls::default(),
            may_have_earlier,
            seq: 0,
            n: 0,
            results: Vec::new(),
        }
    }

    /// Reads a message, and finds what its results answer.
    fn read(&mut self, seq: u64, message: Option<&Message>) {
        self.results.clear();
        (self.seq, self.n) = (seq, 0);
        let Some(message) = message else {
            return;
        };
        self.find_earlier(message);
        let mut calls = std::mem::take(&mut self.calls);
        calls.read(message, self);
        self.calls = calls;
    }

    /// Looks for the calls before what is read now, once, if a result may answer one.
    fn find_earlier(&mut self, message: &Message) {
        let is_unknown = |block: &Block| match block {
            Block::ToolResult(result) => !self.calls.has_waiting(&result.tool_use_id),
            _ => false,
        };
        if !self.may_have_earlier || !message.blocks.iter().any(is_unknown) {
            return;
        }
        self.may_have_earlier = false;
        // If they cannot be read, the result answers nothing: that is all that depends
        // on it.
        if let Ok(calls) = self.reader.calls_before(self.trail, self.seq) {
            self.calls = calls;
        }
    }
}

impl CallVisitor for CallReader<'_> {
    type Call = CallPlace;

    fn prompt(&mut self) {
        self.may_have_earlier = false;
    }

    fn call(&mut self, call: &ToolUse) -> CallPlace {
        self.n += 1;
        CallPlace {
            seq: self.seq,
            n: self.n - 1,
            name: call.name.clone(),
        }
    }

    fn result(&mut self, call: Option<CallPlace>, result: &ToolResult) {
        let name = result.tool_name.as_ref();
        let name = name.or(call.as_ref().map(|call| &call.name));
        self.results.push(FedResult {
            tool: name.map(|name| name.as_str().to_owned()),
            call,
        });
    }
}
