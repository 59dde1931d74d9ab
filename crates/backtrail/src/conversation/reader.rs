//! Reads conversations.
//!
//! The reader goes through the records once and yields items. A tool call comes with its
//! result, so the call and the items after it wait for the result, within bounds; nothing
//! else is held in memory.

mod part;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::calls::{CallVisitor, Calls};
use super::item::{
    Answer, Attachment, CompactionItem, DamageItem, ForkItem, InjectedMessage, Item, NoteChange,
    NoteItem, OtherItem, Prompt, Reply, RunItem, SpawnedItem, SpendingItem, ThinkingItem, ToolCall,
    ToolOutcome, ToolResultItem, TurnEnd, UnreadableItem,
};
use super::record::{MessageParts, ReadRecord, is_answer};
use super::responses::{Response, ResponseCounter};
use crate::error::Result;
use crate::json::Text;
use crate::log::{Follower, Moved, Records, TrailRecords};
use crate::message::{
    Block, InjectedKind, Message, Role, ToolResult, ToolUse, is_added, without_tags,
};
use crate::session::SessionReader;
use crate::time::Timestamp;
use crate::trail::present::Present;
use crate::trail::{DamageReport, ForkOrigin, RecordKind, RecordRef};

/// The memory limit for waiting items: beyond it, calls are returned without their results,
/// which then come as separate items.
const MOST_HELD: usize = 64 << 20;

impl SessionReader {
    /// Reads the conversation from its beginning.
    ///
    /// A call is returned when its result is known, and later items wait for it: until the
    /// next prompt, for 1,000 messages or 64 MiB, or until the history ends, whichever comes
    /// first. Only waiting items are held in memory.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn conversation(&self) -> Result<Conversation> {
        let mut assembler = Assembler::new(Order::AsWritten);
        assembler.known = self.log.present_before(0)?;
        assembler.fork = self.info()?.forked_from;
        for gap in self.gaps()? {
            assembler.push(Item::Gap(gap));
        }
        Ok(Conversation::new(Source::Line(self.records()?), assembler))
    }

    /// Reads the turns whose records are `first` to `last`. Both are as
    /// [`Stats`](crate::conversation::Stats) count them: `first` is a prompt, and `last` is
    /// followed by another or by nothing; or `first` is 0, for the records before the first turn.
    ///
    /// Results that come with the next prompt are included with their calls.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn turns(&self, first: u64, last: u64) -> Result<Conversation> {
        let mut assembler = Assembler::new(Order::AsWritten);
        assembler.known = self.log.present_before(first)?;
        assembler.fork = self.info()?.forked_from;
        assembler.skips_results = first > 0;
        let records = match first {
            0 => self.records()?,
            first => self.records_from(first)?,
        };
        let mut turns = Conversation::new(Source::Line(records), assembler);
        turns.last = last;
        Ok(turns)
    }

    /// Reads the last `count` turns. The cost does not depend on the length of the
    /// session.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn last_turns(&self, count: usize) -> Result<Conversation> {
        let mut first = u64::MAX;
        let mut prompts = 0;
        let mut back = self.records_back()?;
        while prompts < count
            && let Some(record) = back.next()?
        {
            first = record.seq();
            prompts += usize::from(is_prompt(&record));
        }
        // If there are fewer, all of them.
        if prompts < count {
            return self.conversation();
        }
        self.turns(first, u64::MAX)
    }

    /// Reads the turn that contains a record of one of the session's own trails, whether it is
    /// on the line of history or undone. Only the part of the turn in that trail is
    /// read.
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be read.
    pub fn turn_in_trail(&self, trail: u32, seq: u64) -> Result<Conversation> {
        let turn = self.turn_records_in_trail(trail, seq)?;
        let records = self.trail_records(trail, 0)?;
        let assembler = Assembler::new(Order::AsWritten);
        let mut conversation = Conversation::new(Source::Trail(records), assembler);
        (conversation.first, conversation.last) = (*turn.start(), *turn.end());
        Ok(conversation)
    }

    /// Returns the seqs of the records that [`turn_in_trail`](Self::turn_in_trail)
    /// reads.
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be read.
    pub fn turn_records_in_trail(&self, trail: u32, seq: u64) -> Result<RangeInclusive<u64>> {
        let (mut first, mut last) = (0, 0);
        let mut records = self.trail_records(trail, 0)?;
        while let Some(found) = records.next()? {
            let here = found.record.seq();
            last = last.max(here);
            match is_prompt(&found.record) {
                true if here <= seq => first = here,
                true => return Ok(first..=here - 1),
                false => {}
            }
        }
        Ok(first..=last)
    }

    /// Reads the conversation from its beginning, and continues as it grows.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn follow_conversation(&self) -> Result<LiveConversation> {
        let mut assembler = Assembler::new(Order::AsWritten);
        assembler.holds = false;
        assembler.known = self.log.present_before(0)?;
        assembler.fork = self.info()?.forked_from;
        Ok(LiveConversation {
            follower: self.follow()?,
            assembler,
            mentioned: 0,
        })
    }

    /// Reads the conversation for a [`History`](crate::conversation::History).
    pub(super) fn plain_conversation(&self) -> Result<Conversation> {
        let assembler = Assembler::new(Order::AnswerFirst);
        Ok(Conversation::new(Source::Line(self.records()?), assembler))
    }
}

fn is_prompt(record: &RecordRef<'_>) -> bool {
    matches!(record.stored_message(), Ok(Some(message)) if message.is_prompt())
}

/// The items of a conversation, in order. An error ends the iteration.
#[derive(Debug)]
pub struct Conversation {
    source: Source,
    assembler: Assembler,
    /// The range of records to return.
    first: u64,
    last: u64,
    /// How many damaged places were reported.
    mentioned: u64,
    incomplete: u64,
    is_at_end: bool,
}

#[derive(Debug)]
enum Source {
    Line(Records),
    Trail(TrailRecords),
}

impl Conversation {
    fn new(source: Source, assembler: Assembler) -> Self {
        Self {
            source,
            assembler,
            first: 0,
            last: u64::MAX,
            mentioned: 0,
            incomplete: 0,
            is_at_end: false,
        }
    }

    /// Returns how many places could not be read so far, including messages of unknown shape
    /// or with a lost part.
    pub fn damaged(&self) -> u64 {
        self.damage().count() + self.incomplete
    }

    /// Returns the damage in the trails so far.
    pub fn damage(&self) -> &DamageReport {
        match &self.source {
            Source::Line(records) => records.damage(),
            Source::Trail(records) => records.damage(),
        }
    }

    /// Returns the length of an unfinished last line, if there is one: its record is being
    /// written, or its writer died.
    pub fn unfinished_bytes(&self) -> u64 {
        match &self.source {
            Source::Line(records) => records.unfinished_bytes(),
            Source::Trail(_) => 0,
        }
    }

    /// Reads one more record.
    fn read_on(&mut self) -> Result<()> {
        let record = match &mut self.source {
            Source::Line(records) => records.next()?,
            Source::Trail(records) => records.next()?.map(|found| found.record),
        };
        let Some(record) = record else {
            self.end();
            return Ok(());
        };
        let seq = record.seq();
        if seq < self.first || record.kind() == RecordKind::Opener {
            return Ok(());
        }
        let read = ReadRecord::of(&record, MessageParts::All)?;
        if seq > self.last {
            self.assembler.add_results_of(&read);
            self.is_at_end = true;
            self.assembler.end();
            return Ok(());
        }
        self.incomplete += u64::from(read.is_incomplete);
        self.assembler.add(&record, &read);
        self.mention_damage(seq, false);
        Ok(())
    }

    fn mention_damage(&mut self, seq: u64, is_at_end: bool) {
        let places = self.damage().count() - self.mentioned;
        if places > 0 && self.assembler.order == Order::AsWritten {
            self.mentioned += places;
            self.assembler.push(Item::Damage(DamageItem {
                seq,
                is_at_end,
                places,
            }));
        }
    }

    fn end(&mut self) {
        self.is_at_end = true;
        self.mention_damage(self.assembler.last.unwrap_or(0), true);
        self.assembler.end();
    }
}

impl Iterator for Conversation {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.assembler.pop() {
                return Some(Ok(item));
            }
            if self.is_at_end {
                return None;
            }
            if let Err(error) = self.read_on() {
                self.is_at_end = true;
                self.assembler.queue.clear();
                return Some(Err(error));
            }
        }
    }
}

/// Reads a conversation while it is written. Nothing waits: a call comes without its result,
/// and the result comes separately.
#[derive(Debug)]
pub struct LiveConversation {
    follower: Follower,
    assembler: Assembler,
    /// How many damaged places were reported.
    mentioned: u64,
}

impl LiveConversation {
    /// Returns the next item, or `None` if there is none yet.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn poll(&mut self) -> Result<Option<Item>> {
        loop {
            if let Some(item) = self.assembler.pop() {
                return Ok(Some(item));
            }
            let Some(record) = self.follower.poll()?.map(|record| record.to_owned()) else {
                return Ok(None);
            };
            if let Some(moved) = self.follower.take_moved() {
                self.assembler.continue_at(moved);
            }
            let places = self.follower.damage().count() - self.mentioned;
            if places > 0 {
                self.mentioned += places;
                self.assembler.push(Item::Damage(DamageItem {
                    seq: record.seq(),
                    is_at_end: false,
                    places,
                }));
            }
            let record = record.as_ref();
            let read = ReadRecord::of(&record, MessageParts::All)?;
            self.assembler.add(&record, &read);
        }
    }

    /// Returns the damage so far.
    pub fn damage(&self) -> &DamageReport {
        self.follower.damage()
    }
}

/// The order of the items of one assistant message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Block by block.
    AsWritten,
    /// All its text as one answer, then its calls. Only prompts, answers and calls are
    /// returned.
    AnswerFirst,
}

/// Turns records into items.
#[derive(Debug)]
struct Assembler {
    order: Order,
    /// Whether calls wait for their results.
    holds: bool,
    calls: Calls<Made>,
    queue: VecDeque<Queued>,
    /// How many items were returned.
    given: u64,
    held_bytes: usize,
    /// Beyond this, calls are returned without their results.
    most_held: usize,
    is_at_end: bool,
    counter: ResponseCounter,
    /// The response whose records are being read, and as it was last reported.
    response: Option<(String, Option<Response>)>,
    /// The title, tags and other details, as of the last note.
    known: Present,
    /// The session that it was forked from, until that part ends.
    fork: Option<ForkOrigin>,
    turn: Option<OpenTurn>,
    has_reply: bool,
    /// The last record so far.
    last: Option<u64>,
    /// Whether results in the first record belong to an earlier turn.
    skips_results: bool,
}

#[derive(Debug)]
struct OpenTurn {
    first: u64,
    /// Whether its beginning was cut off by a compaction.
    is_cut: bool,
}

#[derive(Debug)]
struct Queued {
    item: Item,
    /// The number of the message with the call, if the item is one.
    message: u64,
}

/// A call in the queue, until its result comes.
#[derive(Debug)]
struct Made {
    /// How many items came before it.
    index: u64,
    seq: u64,
    name: Text,
}

impl Assembler {
    fn new(order: Order) -> Self {
        Self {
            order,
            holds: true,
            calls: Calls::default(),
            queue: VecDeque::new(),
            given: 0,
            held_bytes: 0,
            most_held: MOST_HELD,
            is_at_end: false,
            counter: ResponseCounter::default(),
            response: None,
            known: Present::default(),
            fork: None,
            turn: None,
            has_reply: false,
            last: None,
            skips_results: false,
        }
    }

    /// Removes and returns the next item that does not wait.
    fn pop(&mut self) -> Option<Item> {
        if self.queue.front().is_some_and(|first| self.waits(first)) {
            return None;
        }
        let Queued { item, .. } = self.queue.pop_front()?;
        self.given += 1;
        self.held_bytes = self.held_bytes.saturating_sub(item.weight());
        Some(item)
    }

    fn waits(&self, queued: &Queued) -> bool {
        let is_open = matches!(&queued.item, Item::ToolCall(call) if call.result.is_none());
        is_open
            && self.holds
            && !self.is_at_end
            && self.held_bytes <= self.most_held
            && self.calls.waits(queued.message)
    }

    fn push(&mut self, item: Item) {
        self.push_of(0, item);
    }

    fn push_of(&mut self, message: u64, item: Item) {
        self.held_bytes += item.weight();
        self.queue.push_back(Queued { item, message });
    }

    /// Adds a record.
    fn add(&mut self, record: &RecordRef<'_>, read: &ReadRecord<'_>) {
        let (seq, at) = (read.seq, read.at);
        if self.order == Order::AnswerFirst {
            if let Some(message) = &read.message {
                self.add_message(seq, at, message);
            }
            return;
        }
        self.pass_fork(seq);
        if read.is_incomplete {
            let in_part = read.message.is_some();
            self.push(Item::Unreadable(UnreadableItem { seq, in_part }));
        }
        match (read.kind, &read.message) {
            (RecordKind::Message, Some(message)) => {
                if message.role == Role::Assistant && !message.is_stand_in() {
                    self.begin_response(read.details.response_id.as_deref());
                    self.begin_reply(seq, at, &read.details.model);
                }
                self.add_message(seq, at, message);
                self.spend(read);
            }
            (RecordKind::Message | RecordKind::Usage, _) => self.spend(read),
            (RecordKind::Compaction, _) => self.add_compaction(record, read),
            (kind, _) => self.add_other(record, kind),
        }
        self.last = Some(seq);
    }

    /// Adds the results in the prompt after the last turn to return.
    fn add_results_of(&mut self, read: &ReadRecord<'_>) {
        let Some(message) = read.message.as_ref().filter(|message| message.is_prompt()) else {
            return;
        };
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        let results = message.blocks.iter().filter(|block| is_result(block));
        let results = Message::new(Role::Tool, results.cloned());
        self.read_blocks(read.seq, read.at, &results, false);
    }

    fn add_message(&mut self, seq: u64, at: Option<Timestamp>, message: &Message) {
        if self.order == Order::AnswerFirst && is_answer(message) {
            let text = message.text().into_owned();
            self.push(Item::Answer(Answer { seq, at, text }));
        }
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        let is_alone = message.blocks.iter().all(is_result) && !message.is_meta();
        self.read_blocks(seq, at, message, is_alone);
        if !is_alone && self.order == Order::AsWritten {
            self.add_injected(seq, at, message);
        }
    }

    /// Adds what an agent put into a message, or all of one that is not dialogue.
    fn add_injected(&mut self, seq: u64, at: Option<Timestamp>, message: &Message) {
        let role = &message.role;
        let mut add = |kind, text: &str, attachments: Vec<Block>| {
            let text = without_tags(text, kind);
            // The output of a command that printed nothing.
            if text.is_empty() && attachments.is_empty() {
                return;
            }
            self.push(Item::Injected(InjectedMessage {
                seq,
                at,
                role: role.clone(),
                kind,
                text,
                attachments,
            }));
        };
        if is_instruction(role) {
            let (text, attachments) = (message.text(), attachments(message));
            return add(InjectedKind::Instructions, &text, attachments);
        }
        let is_prompt = message.is_prompt();
        let mut attachments = match role {
            Role::User if !is_prompt => attachments(message),
            _ => Vec::new(),
        };
        for part in message.said().injected {
            add(part.kind, part.text, std::mem::take(&mut attachments));
        }
        add(InjectedKind::Other, "", attachments);
    }

    fn read_blocks(&mut self, seq: u64, at: Option<Timestamp>, message: &Message, is_alone: bool) {
        let mut calls = std::mem::take(&mut self.calls);
        let mut reading = ConversationReading {
            skips_results: self.skips_results && self.last.is_none(),
            assembler: self,
            message,
            number: calls.messages() + 1,
            seq,
            at,
            is_alone,
        };
        calls.read(message, &mut reading);
        self.calls = calls;
    }

    /// Reports the previous response if another one begins.
    fn begin_response(&mut self, id: Option<&str>) {
        let is_same = |(before, _): &(String, _)| Some(before.as_str()) == id;
        if self.response.as_ref().is_some_and(is_same) {
            return;
        }
        self.end_response();
        self.response = id.map(|id| (id.to_owned(), self.counter.get(id).cloned()));
    }

    fn end_response(&mut self) {
        let Some((id, already)) = self.response.take() else {
            return;
        };
        let response = self.counter.get(&id).cloned();
        if let Some(response) = response.filter(|now| already.as_ref() != Some(now)) {
            let already = already.map(Box::new);
            self.push(Item::Spending(SpendingItem { response, already }));
        }
    }

    /// Counts the usage and cost in a record.
    fn spend(&mut self, read: &ReadRecord<'_>) {
        let id = read.details.response_id.as_deref();
        let is_open = self
            .response
            .as_ref()
            .is_some_and(|(open, _)| Some(open.as_str()) == id);
        let before = id
            .filter(|_| !is_open)
            .and_then(|id| self.counter.get(id).cloned());
        self.counter.add(read);
        // Those with an id are reported when they end.
        for response in self.counter.take_finished() {
            if response.id.is_none() {
                let already = None;
                self.push(Item::Spending(SpendingItem { response, already }));
            }
        }
        let now = id
            .filter(|_| !is_open)
            .and_then(|id| self.counter.get(id).cloned());
        if let Some(response) = now.filter(|now| before.as_ref() != Some(now)) {
            let already = before.map(Box::new);
            self.push(Item::Spending(SpendingItem { response, already }));
        }
    }

    fn begin_reply(&mut self, seq: u64, at: Option<Timestamp>, model: &Option<String>) {
        if !std::mem::replace(&mut self.has_reply, true) {
            let model = model.clone();
            self.push(Item::Reply(Reply { seq, at, model }));
        }
    }

    fn end_turn(&mut self) {
        self.end_response();
        self.has_reply = false;
        let Some((OpenTurn { first, is_cut }, last)) = self.turn.take().zip(self.last) else {
            return;
        };
        if !is_cut || last > first {
            self.push(Item::TurnEnd(TurnEnd { first, last }));
        }
    }

    /// Reports the end of the part that was forked from another session.
    fn pass_fork(&mut self, seq: u64) {
        let is_passed = |fork: &mut ForkOrigin| fork.seq.is_some_and(|end| seq > end);
        let Some(origin) = self.fork.take_if(is_passed) else {
            return;
        };
        if self.last.is_some() {
            self.end_turn();
            let seq = origin.seq.unwrap_or(0);
            self.push(Item::Fork(ForkItem { seq, origin }));
        }
    }

    fn add_compaction(&mut self, record: &RecordRef<'_>, read: &ReadRecord<'_>) {
        let seq = record.seq();
        self.end_response();
        self.spend(read);
        let is_cut = self.turn.is_some();
        self.end_turn();
        self.push(Item::Compaction(CompactionItem {
            seq,
            at: record.at(),
            stored: record.compaction().ok().flatten(),
        }));
        // The turn continues after it, unless it is over.
        self.turn = is_cut.then_some(OpenTurn { first: seq, is_cut });
    }

    fn add_other(&mut self, record: &RecordRef<'_>, kind: RecordKind<'_>) {
        let (seq, at) = (record.seq(), record.at());
        match kind {
            RecordKind::Run => {
                let run = record.run().ok().flatten();
                self.push(Item::Run(RunItem { seq, at, run }));
            }
            RecordKind::Note => {
                let changes = self.learn(record);
                if !changes.is_empty() {
                    self.push(Item::Note(NoteItem { seq, at, changes }));
                }
            }
            RecordKind::Spawned => {
                let spawned = record.parse().ok();
                self.push(Item::Spawned(SpawnedItem { seq, spawned }));
            }
            // The source of an import is not part of the conversation.
            RecordKind::Source => {}
            kind => {
                let kind = kind.as_str().to_owned();
                self.push(Item::Other(OtherItem { seq, kind }));
            }
        }
    }

    /// Returns the changes that a note makes.
    fn learn(&mut self, record: &RecordRef<'_>) -> Vec<NoteChange> {
        let Ok(now) = record.parse::<Present>() else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut self.known, now);
        let now = &self.known;
        // An import notes at its end what the agent's file says: that did not happen there.
        let is_ours = now.belongs_to.is_none();
        let has_title = is_ours && now.title != before.title;
        let has_model = is_ours && now.model != before.model;
        let changes = [
            has_title.then(|| NoteChange::Title(now.title.clone())),
            (now.tags != before.tags).then(|| NoteChange::Tags(now.tags.clone())),
            (now.agent != before.agent).then(|| NoteChange::Agent(now.agent.clone())),
            has_model.then(|| NoteChange::Model(now.model.clone())),
            (now.pinned != before.pinned).then_some(NoteChange::Pinned(now.pinned)),
        ];
        changes.into_iter().flatten().collect()
    }

    /// Continues the conversation from an earlier record.
    fn continue_at(&mut self, moved: Moved) {
        self.end_turn();
        self.calls = Calls::default();
        self.push(Item::Moved(moved));
    }

    fn end(&mut self) {
        self.is_at_end = true;
        if self.order == Order::AsWritten {
            self.end_turn();
        }
    }
}

/// A message that is being turned into items.
struct ConversationReading<'a> {
    assembler: &'a mut Assembler,
    message: &'a Message,
    seq: u64,
    at: Option<Timestamp>,
    /// The message's number among all messages.
    number: u64,
    /// Whether the message contains only results.
    is_alone: bool,
    skips_results: bool,
}

impl CallVisitor for ConversationReading<'_> {
    type Call = Made;

    fn prompt(&mut self) {
        let (seq, at) = (self.seq, self.at);
        self.skips_results = false;
        if self.assembler.order == Order::AsWritten {
            self.assembler.end_turn();
            let is_cut = false;
            self.assembler.turn = Some(OpenTurn { first: seq, is_cut });
        }
        self.assembler.push(Item::Prompt(Prompt {
            seq,
            at,
            text: self.message.said().text.into_owned(),
            attachments: attachments(self.message),
        }));
    }

    fn call(&mut self, call: &ToolUse) -> Made {
        let (seq, at) = (self.seq, self.at);
        let index = self.assembler.given + self.assembler.queue.len() as u64;
        let item = Item::ToolCall(ToolCall {
            seq,
            at,
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.input.clone(),
            result: None,
            success: None,
        });
        self.assembler.push_of(self.number, item);
        let name = call.name.clone();
        Made { index, seq, name }
    }

    fn result(&mut self, call: Option<Made>, result: &ToolResult) {
        if self.skips_results {
            return;
        }
        let outcome = ToolOutcome {
            seq: self.seq,
            at: self.at,
            output: result.output.clone(),
            is_alone: self.is_alone,
        };
        let assembler = &mut *self.assembler;
        let queued = call.as_ref().and_then(|made| {
            let index = made.index.checked_sub(assembler.given)?;
            assembler.queue.get_mut(usize::try_from(index).ok()?)
        });
        if let Some(Queued {
            item: Item::ToolCall(call),
            ..
        }) = queued
        {
            assembler.held_bytes += outcome.output.as_str().len();
            call.success = Some(!result.is_error);
            call.result = Some(outcome);
            return;
        }
        if assembler.order == Order::AnswerFirst {
            return;
        }
        let name = result.tool_name.clone();
        assembler.push(Item::ToolResult(ToolResultItem {
            seq: self.seq,
            id: result.tool_use_id.clone(),
            name: name.or(call.as_ref().map(|made| made.name.clone())),
            call: call.map(|made| made.seq),
            result: outcome,
            success: !result.is_error,
        }));
    }

    fn other(&mut self, block: &Block) {
        let (seq, at) = (self.seq, self.at);
        let is_shown = self.assembler.order == Order::AsWritten
            && matches!(self.message.role, Role::Assistant | Role::Tool);
        if !is_shown {
            return;
        }
        match block {
            // What an agent added comes after the message.
            Block::Text(text) if is_added(&self.message.role, &text.text) => {}
            Block::Text(text) if self.message.role == Role::Assistant => {
                self.answer(&text.text);
            }
            Block::Thinking(thought) => {
                let text = thought.thinking.to_string();
                let item = ThinkingItem { seq, at, text };
                self.assembler.push(Item::Thinking(item));
            }
            block => {
                let block = block.clone();
                let item = Attachment { seq, at, block };
                self.assembler.push(Item::Attachment(item));
            }
        }
    }
}

impl ConversationReading<'_> {
    /// Adds a text of the assistant. Some models write their thinking before it, in a tag.
    fn answer(&mut self, text: &str) {
        let (seq, at) = (self.seq, self.at);
        let thought = text.trim_start().strip_prefix("<thinking>");
        let (thought, text) = match thought.and_then(|text| text.split_once("</thinking>")) {
            Some((thought, text)) => (Some(thought.trim().to_owned()), text.trim_start()),
            None => (None, text),
        };
        if let Some(text) = thought {
            let item = ThinkingItem { seq, at, text };
            self.assembler.push(Item::Thinking(item));
        }
        if !text.trim().is_empty() {
            let text = text.to_owned();
            self.assembler.push(Item::Answer(Answer { seq, at, text }));
        }
    }
}

/// Returns whether messages of a role are not part of the dialogue.
fn is_instruction(role: &Role) -> bool {
    !matches!(role, Role::User | Role::Assistant | Role::Tool)
}

/// Returns the blocks that are neither text, nor calls, nor results.
fn attachments(message: &Message) -> Vec<Block> {
    let is_attachment = |block: &&Block| {
        !matches!(
            block,
            Block::Text(_) | Block::ToolUse(_) | Block::ToolResult(_)
        )
    };
    message
        .blocks
        .iter()
        .filter(is_attachment)
        .cloned()
        .collect()
}
