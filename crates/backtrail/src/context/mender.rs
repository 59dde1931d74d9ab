//! Applies the rules to one message after another.

use std::borrow::Cow;

use super::calls::{BlockFate, Calls, Matched};
use super::mend::{Mend, MendRule};
use super::output::{self, Piece};
use super::parts::{
    Author, ContextItem, ContextTurn, Medium, Mended, SentCall, SentResult, TurnPart, join,
};
use super::rules::MediaPlace;
use super::shape::Shape;
use super::{ContextInput, ContextMessage, input};
use crate::message::{Block, Role, Thinking, ToolResult, ToolUse};

/// The result given to a call that has none.
pub(super) const INTERRUPTED: &str =
    "The call was interrupted before a result was recorded; its outcome is unknown.";

/// The user message put before an assistant message that comes first.
const OPENING: &str = "(The conversation continues from here.)";

/// The text before the summary of a compaction.
const SUMMARY: &str = "This is a summary of the conversation up to this point:";

/// The deepest nesting of an object inside a request: parsers give up at about 128, and
/// the request itself adds levels.
const MAX_DEPTH: usize = 100;

pub(super) fn mend(shape: Shape, input: &ContextInput) -> Mended<'_> {
    let mut mender = Mender {
        shape,
        seq: 0,
        first: 0,
        items: Vec::new(),
        mends: Vec::new(),
        held: Vec::new(),
    };
    let front = input.instructions.iter();
    let front = front.filter_map(|said| mender.instruction(said)).collect();
    mender.summary(input.summary.as_deref());
    let calls = Calls::find(shape, &input.messages);
    for (said, fates) in input.messages.iter().zip(&calls.fates) {
        mender.message(said, fates, &calls.calls);
    }
    mender.drop_held();
    let Mender {
        items, mut mends, ..
    } = mender;
    mends.sort_by_key(|mend| mend.seq);
    Mended {
        front,
        items,
        mends,
    }
}

struct Mender<'a> {
    shape: Shape,
    /// The record of the current block.
    seq: u64,
    /// The first record of the current message.
    first: u64,
    items: Vec<ContextItem<'a>>,
    mends: Vec<Mend>,
    /// Thinking at the end of an assistant message, with its record. It is sent with the
    /// assistant's next message: providers refuse it alone, and adding it to a message
    /// that was already written would change that message.
    held: Vec<(u64, TurnPart<'a>)>,
}

/// A message under construction.
struct DraftTurn<'a> {
    author: Author,
    place: MediaPlace,
    model: Option<&'a str>,
    parts: Vec<TurnPart<'a>>,
    /// Parts that must become the user's, whichever message they were in.
    aside: Vec<TurnPart<'a>>,
    /// Each with its record.
    calls: Vec<(u64, usize)>,
    /// Whether it contains anything besides calls and results.
    is_plain: bool,
}

impl<'a> DraftTurn<'a> {
    fn new(said: &'a ContextMessage, author: Author) -> Self {
        Self {
            author,
            place: match author {
                Author::User => MediaPlace::User,
                Author::System | Author::Assistant => MediaPlace::Elsewhere,
            },
            model: said.model.as_deref(),
            parts: Vec::new(),
            aside: Vec::new(),
            calls: Vec::new(),
            is_plain: false,
        }
    }
}

impl<'a> Mender<'a> {
    fn note(&mut self, rule: MendRule) {
        let seq = self.seq;
        self.mends.push(Mend { seq, rule });
    }

    /// Converts a message at the beginning, which contains no calls.
    fn instruction(&mut self, said: &'a ContextMessage) -> Option<ContextTurn<'a>> {
        self.seq = said.seq;
        let mut draft = DraftTurn::new(said, Author::System);
        if said.message.blocks.is_empty() {
            self.note(MendRule::EmptyMessage);
        }
        for block in &said.message.blocks {
            match block {
                Block::ToolUse(call) => self.misplaced(&mut draft, call),
                Block::ToolResult(result) => {
                    let parts = self.orphan(result, MediaPlace::Elsewhere);
                    draft.parts.extend(parts);
                }
                block => self.plain(&mut draft, block),
            }
        }
        (!draft.parts.is_empty()).then(|| ContextTurn {
            seq: said.seq,
            author: Author::System,
            role: said.message.role.as_str(),
            parts: draft.parts,
        })
    }

    fn summary(&mut self, summary: Option<&'a str>) {
        if let Some(summary) = summary.filter(|summary| !summary.trim().is_empty()) {
            let text = TurnPart::Text(Cow::Owned(format!("{SUMMARY}\n\n{summary}")));
            self.turn(Author::User, "user", vec![text]);
        }
    }

    fn message(
        &mut self,
        said: &'a ContextMessage,
        fates: &[BlockFate<'a>],
        calls: &[Matched<'a>],
    ) {
        self.seq = said.seq;
        self.first = said.seq;
        if fates.is_empty() {
            self.note(MendRule::EmptyMessage);
        }
        let mut draft = DraftTurn::new(said, author_of(&said.message.role));
        for (n, fate) in fates.iter().enumerate() {
            self.seq = said.seq_of(n);
            self.block(&mut draft, fate, calls);
        }
        let mut answers = Vec::new();
        for &(seq, number) in &draft.calls {
            self.seq = seq;
            answers.push(self.answer(&calls[number]));
        }
        let role = self.role(&said.message.role, &draft);
        self.turn(draft.author, role, draft.parts);
        if !answers.is_empty() {
            self.items.push(ContextItem::Results(answers));
        }
        self.turn(Author::User, "user", draft.aside);
    }

    /// Returns the role to show, and records a mend if it differs.
    fn role(&mut self, role: &'a Role, draft: &DraftTurn<'a>) -> &'a str {
        let changes = match role {
            Role::Tool => true,
            Role::Other(_) => draft.author == Author::User && self.shape != Shape::Neutral,
            _ => false,
        };
        if changes && draft.is_plain {
            self.note(MendRule::OtherRole);
        }
        match changes {
            true => "user",
            false => role.as_str(),
        }
    }

    fn block(&mut self, draft: &mut DraftTurn<'a>, fate: &BlockFate<'a>, calls: &[Matched<'a>]) {
        match *fate {
            BlockFate::Plain(block) => self.plain(draft, block),
            BlockFate::Call(number) => {
                let call = self.call(&calls[number]);
                draft.parts.push(call);
                draft.calls.push((self.seq, number));
            }
            BlockFate::Misplaced(call) => self.misplaced(draft, call),
            BlockFate::Orphan(result) => {
                let parts = self.orphan(result, MediaPlace::User);
                match draft.author {
                    Author::User => draft.parts.extend(parts),
                    Author::System | Author::Assistant => draft.aside.extend(parts),
                }
            }
            BlockFate::Duplicate => self.note(MendRule::DuplicateResult),
            BlockFate::Answers { late: true } => self.note(MendRule::LateResult),
            BlockFate::Answers { late: false } => {}
        }
    }

    fn plain(&mut self, draft: &mut DraftTurn<'a>, block: &'a Block) {
        let is_blank = matches!(block, Block::Text(text) if text.text.trim().is_empty());
        let part = match block {
            _ if is_blank => self.drop_block(MendRule::EmptyText),
            block if self.shape == Shape::Neutral => Some(TurnPart::Own(block)),
            Block::Text(block) => {
                Some(self.text(Cow::Borrowed(&block.text), block.text.is_lossy()))
            }
            Block::Thinking(thinking) => self.thinking(draft, thinking),
            Block::Media(media) => Some(self.medium(output::own_medium(media), draft.place)),
            Block::Other(json) => self.other(draft, json.as_str()),
            Block::ToolUse(_) | Block::ToolResult(_) => None,
        };
        draft.is_plain |= part.is_some();
        draft.parts.extend(part);
    }

    fn drop_block(&mut self, rule: MendRule) -> Option<TurnPart<'a>> {
        self.note(rule);
        None
    }

    fn text(&mut self, text: Cow<'a, str>, lossy: bool) -> TurnPart<'a> {
        if lossy && self.shape != Shape::Neutral {
            self.note(MendRule::LoneSurrogate);
        }
        TurnPart::Text(text)
    }

    fn medium(&mut self, medium: Medium<'a>, place: MediaPlace) -> TurnPart<'a> {
        if self.shape.takes_medium(&medium, place) {
            return TurnPart::Medium(medium);
        }
        self.note(MendRule::MediaPlaceholder);
        TurnPart::Text(Cow::Owned(output::placeholder(&medium)))
    }

    fn piece(&mut self, piece: Piece<'a>, place: MediaPlace) -> TurnPart<'a> {
        match piece {
            Piece::Text { text, lossy } => self.text(text, lossy),
            Piece::Medium(medium) => self.medium(medium, place),
        }
    }

    fn takes_thinking(&self, draft: &DraftTurn<'a>) -> bool {
        draft.author == Author::Assistant && self.shape.takes_thinking_of(draft.model)
    }

    fn thinking(&mut self, draft: &DraftTurn<'a>, thinking: &'a Thinking) -> Option<TurnPart<'a>> {
        let text = &thinking.thinking;
        // Anthropic must get exactly what it signed; OpenAI reads only the signature.
        let is_whole = self.shape == Shape::OpenAi || !text.is_lossy();
        let signature = thinking.signature.as_ref();
        let signature = signature.filter(|it| !it.is_empty() && !it.is_lossy());
        match signature {
            Some(signature) if is_whole && self.takes_thinking(draft) => {
                if text.is_lossy() {
                    self.note(MendRule::LoneSurrogate);
                }
                Some(TurnPart::Thought { text, signature })
            }
            _ => self.drop_block(MendRule::Thinking),
        }
    }

    /// Converts an unknown block: some are a provider's form of a known one.
    fn other(&mut self, draft: &DraftTurn<'a>, json: &'a str) -> Option<TurnPart<'a>> {
        if let Some(data) = output::redacted_thinking(json) {
            let takes = self.shape == Shape::Anthropic && self.takes_thinking(draft);
            return match takes {
                true => Some(TurnPart::Redacted(data)),
                false => self.drop_block(MendRule::Thinking),
            };
        }
        match output::piece(json) {
            Some(Piece::Text { text, .. }) if text.trim().is_empty() => {
                self.drop_block(MendRule::EmptyText)
            }
            Some(piece) => Some(self.piece(piece, draft.place)),
            None => self.drop_block(MendRule::UnknownBlock),
        }
    }

    fn call(&mut self, call: &Matched<'a>) -> TurnPart<'a> {
        if let Some(rule) = call.id_mend {
            self.note(rule);
        }
        let block = call.block;
        let (name, input) = match self.shape {
            Shape::Neutral => (Cow::Borrowed(block.name.as_str()), Cow::Borrowed("")),
            _ => (self.name(block), self.input(block)),
        };
        let id = call.id.clone();
        TurnPart::Call(SentCall {
            id,
            name,
            input,
            block,
        })
    }

    fn name(&mut self, block: &'a ToolUse) -> Cow<'a, str> {
        let name = self.shape.name(&block.name);
        if name != block.name.as_str() {
            self.note(MendRule::RefusedName);
        }
        name
    }

    fn input(&mut self, block: &'a ToolUse) -> Cow<'a, str> {
        let max_depth = match self.shape {
            Shape::Anthropic => MAX_DEPTH,
            // In this shape it is a string, so its depth does not matter.
            _ => usize::MAX,
        };
        let input = input::object(&block.input, max_depth);
        if input.wrapped {
            self.note(MendRule::WrappedInput);
        }
        if input.lossy {
            self.note(MendRule::LoneSurrogate);
        }
        input.object
    }

    fn answer(&mut self, call: &Matched<'a>) -> SentResult<'a> {
        let (parts, is_error, given) = match call.result {
            Some((seq, result)) => (
                self.result_parts(seq, result),
                result.is_error,
                Some(result),
            ),
            None => {
                self.note(MendRule::DanglingCall);
                (vec![TurnPart::Text(Cow::Borrowed(INTERRUPTED))], true, None)
            }
        };
        SentResult {
            id: call.id.clone(),
            parts,
            is_error,
            block: call.block,
            given,
        }
    }

    fn result_parts(&mut self, seq: u64, result: &'a ToolResult) -> Vec<TurnPart<'a>> {
        if self.shape == Shape::Neutral {
            return Vec::new();
        }
        let place = MediaPlace::Result {
            is_error: result.is_error,
        };
        let outer = std::mem::replace(&mut self.seq, seq);
        let parts = self.output(result, place);
        self.seq = outer;
        parts
    }

    /// Splits an output into parts. A string may be blank if the shape sends it as a
    /// string.
    fn output(&mut self, result: &'a ToolResult, place: MediaPlace) -> Vec<TurnPart<'a>> {
        let has_strings = matches!(self.shape, Shape::OpenAi | Shape::OpenAiChat);
        let is_string = result.output.as_str().starts_with('"');
        let keeps_blank = has_strings && is_string && matches!(place, MediaPlace::Result { .. });
        let mut parts = Vec::new();
        for piece in output::pieces(&result.output) {
            match &piece {
                Piece::Text { text, .. } if is_string && text.is_empty() => {}
                Piece::Text { text, .. } if !keeps_blank && text.trim().is_empty() => {
                    self.note(MendRule::EmptyText);
                }
                _ => parts.push(self.piece(piece, place)),
            }
        }
        parts
    }

    fn orphan(&mut self, result: &'a ToolResult, place: MediaPlace) -> Vec<TurnPart<'a>> {
        self.note(MendRule::OrphanResult);
        let outcome = match result.is_error {
            true => "Error",
            false => "Result",
        };
        let tool = match &result.tool_name {
            Some(name) => format!("the tool `{name}`"),
            None => "a tool".to_owned(),
        };
        let id = &result.tool_use_id;
        let head = format!("{outcome} of {tool} (call `{id}`, which is not in this context):");
        let mut parts = vec![TurnPart::Text(Cow::Owned(head))];
        parts.extend(self.output(result, place));
        parts
    }

    fn misplaced(&mut self, draft: &mut DraftTurn<'a>, call: &'a ToolUse) {
        self.note(MendRule::MisplacedCall);
        let ToolUse {
            id, name, input, ..
        } = call;
        let text = format!("Call of the tool `{name}` (call `{id}`): {input}");
        draft.parts.push(TurnPart::Text(Cow::Owned(text)));
    }

    /// Adds a message if it has any parts.
    fn turn(&mut self, author: Author, role: &'a str, parts: Vec<TurnPart<'a>>) {
        let mut parts = parts;
        if author == Author::Assistant {
            parts = self.hold(parts);
        } else if !parts.is_empty() {
            self.drop_held();
        }
        if parts.is_empty() {
            return;
        }
        let (author, parts) = self.in_the_middle(author, parts);
        if self.shape == Shape::Anthropic && author == Author::Assistant && self.items.is_empty() {
            self.note(MendRule::FirstNotUser);
            self.turn_of(
                Author::User,
                "user",
                vec![TurnPart::Text(Cow::Borrowed(OPENING))],
            );
        }
        self.turn_of(author, role, parts);
    }

    fn turn_of(&mut self, author: Author, role: &'a str, parts: Vec<TurnPart<'a>>) {
        self.items.push(ContextItem::Turn(ContextTurn {
            seq: self.first,
            author,
            role,
            parts,
        }));
    }

    /// Puts held thinking before the parts of an assistant message, and holds thinking at
    /// their end.
    fn hold(&mut self, parts: Vec<TurnPart<'a>>) -> Vec<TurnPart<'a>> {
        let is_thought =
            |part: &TurnPart<'a>| matches!(part, TurnPart::Thought { .. } | TurnPart::Redacted(_));
        let said = parts.iter().rposition(|part| !is_thought(part));
        let mut parts = parts.into_iter();
        let mut out = Vec::new();
        if let Some(last) = said {
            out.extend(self.held.drain(..).map(|(_, part)| part));
            out.extend(parts.by_ref().take(last + 1));
        }
        let seq = self.seq;
        self.held.extend(parts.map(|part| (seq, part)));
        out
    }

    fn drop_held(&mut self) {
        let dropped = self.held.drain(..).map(|(seq, _)| Mend {
            seq,
            rule: MendRule::UnfinishedThinking,
        });
        self.mends.extend(dropped);
    }

    /// Anthropic allows no system messages among the others.
    fn in_the_middle(
        &mut self,
        author: Author,
        parts: Vec<TurnPart<'a>>,
    ) -> (Author, Vec<TurnPart<'a>>) {
        if author != Author::System || self.shape != Shape::Anthropic {
            return (author, parts);
        }
        self.note(MendRule::MiddleSystem);
        let text = join(&parts, "\n");
        let text = format!("<system_message>\n{text}\n</system_message>");
        (Author::User, vec![TurnPart::Text(Cow::Owned(text))])
    }
}

fn author_of(role: &Role) -> Author {
    match role {
        Role::System => Author::System,
        Role::Assistant => Author::Assistant,
        Role::Other(name) if name == "developer" => Author::System,
        Role::User | Role::Tool | Role::Other(_) => Author::User,
    }
}
