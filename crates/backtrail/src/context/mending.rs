//! The rules, applied to one message after the other.

use std::borrow::Cow;

use super::calls::{Calls, Fate, Matched};
use super::mend::{Mend, MendRule};
use super::output::{self, Piece};
use super::parts::{Answer, Call, Item, Medium, Mended, Part, Turn, Who, join};
use super::rules::Place;
use super::shape::Shape;
use super::{ContextInput, Said, input};
use crate::message::{Block, Role, Thinking, ToolResult, ToolUse};

/// What a call without a result is answered with.
pub(super) const INTERRUPTED: &str =
    "The call was interrupted before a result was recorded; its outcome is unknown.";

/// What is said before an assistant message that comes first.
const OPENING: &str = "(The conversation goes on from here.)";

/// What is said before the summary of a compaction.
const SUMMARY: &str = "This is a summary of the conversation up to this point:";

/// How deep an object may be nested inside a request: parsers give up at about
/// 128, and the request has levels of its own.
const MAX_DEPTH: usize = 100;

/// Applies the rules of a shape.
pub(super) fn mend(shape: Shape, input: &ContextInput) -> Mended<'_> {
    let mut mender = Mender {
        shape,
        seq: 0,
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
    /// The record of the message at hand.
    seq: u64,
    items: Vec<Item<'a>>,
    mends: Vec<Mend>,
    /// Thinking at the end of an assistant message, and its record. It goes out
    /// with the assistant's next message: on its own it would be refused, and to
    /// add to a message that is out already would change it.
    held: Vec<(u64, Part<'a>)>,
}

/// A message as its parts come together.
struct Sketch<'a> {
    who: Who,
    place: Place,
    model: Option<&'a str>,
    parts: Vec<Part<'a>>,
    /// What must be said by the user, whoever's message it was in.
    aside: Vec<Part<'a>>,
    calls: Vec<usize>,
    /// Whether there is something in it that has nothing to do with calls.
    is_plain: bool,
}

impl<'a> Sketch<'a> {
    fn new(said: &'a Said, who: Who) -> Self {
        Self {
            who,
            place: match who {
                Who::User => Place::User,
                Who::System | Who::Assistant => Place::Elsewhere,
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

    /// Takes a message at the beginning, in which nothing is a call.
    fn instruction(&mut self, said: &'a Said) -> Option<Turn<'a>> {
        self.seq = said.seq;
        let mut sketch = Sketch::new(said, Who::System);
        if said.message.blocks.is_empty() {
            self.note(MendRule::EmptyMessage);
        }
        for block in &said.message.blocks {
            match block {
                Block::ToolUse(call) => self.misplaced(&mut sketch, call),
                Block::ToolResult(result) => {
                    let parts = self.orphan(result, Place::Elsewhere);
                    sketch.parts.extend(parts);
                }
                block => self.plain(&mut sketch, block),
            }
        }
        (!sketch.parts.is_empty()).then(|| Turn {
            who: Who::System,
            role: said.message.role.as_str(),
            parts: sketch.parts,
        })
    }

    fn summary(&mut self, summary: Option<&'a str>) {
        if let Some(summary) = summary.filter(|summary| !summary.trim().is_empty()) {
            let text = Part::Text(Cow::Owned(format!("{SUMMARY}\n\n{summary}")));
            self.turn(Who::User, "user", vec![text]);
        }
    }

    fn message(&mut self, said: &'a Said, fates: &[Fate<'a>], calls: &[Matched<'a>]) {
        self.seq = said.seq;
        if fates.is_empty() {
            self.note(MendRule::EmptyMessage);
        }
        let mut sketch = Sketch::new(said, who(&said.message.role));
        for fate in fates {
            self.block(&mut sketch, fate, calls);
        }
        let answers = sketch.calls.iter().map(|&number| &calls[number]);
        let answers: Vec<_> = answers.map(|call| self.answer(call)).collect();
        let role = self.role(&said.message.role, &sketch);
        self.turn(sketch.who, role, sketch.parts);
        if !answers.is_empty() {
            self.items.push(Item::Results(answers));
        }
        self.turn(Who::User, "user", sketch.aside);
    }

    /// Returns the role to show, and notes it if it is not the one there was.
    fn role(&mut self, role: &'a Role, sketch: &Sketch<'a>) -> &'a str {
        let changes = match role {
            Role::Tool => true,
            Role::Other(_) => sketch.who == Who::User && self.shape != Shape::Neutral,
            _ => false,
        };
        if changes && sketch.is_plain {
            self.note(MendRule::OtherRole);
        }
        match changes {
            true => "user",
            false => role.as_str(),
        }
    }

    fn block(&mut self, sketch: &mut Sketch<'a>, fate: &Fate<'a>, calls: &[Matched<'a>]) {
        match *fate {
            Fate::Plain(block) => self.plain(sketch, block),
            Fate::Call(number) => {
                let call = self.call(&calls[number]);
                sketch.parts.push(call);
                sketch.calls.push(number);
            }
            Fate::Misplaced(call) => self.misplaced(sketch, call),
            Fate::Orphan(result) => {
                let parts = self.orphan(result, Place::User);
                match sketch.who {
                    Who::User => sketch.parts.extend(parts),
                    Who::System | Who::Assistant => sketch.aside.extend(parts),
                }
            }
            Fate::Duplicate => self.note(MendRule::DuplicateResult),
            Fate::Answers { late: true } => self.note(MendRule::LateResult),
            Fate::Answers { late: false } => {}
        }
    }

    fn plain(&mut self, sketch: &mut Sketch<'a>, block: &'a Block) {
        let is_blank = matches!(block, Block::Text(text) if text.text.trim().is_empty());
        let part = match block {
            _ if is_blank => self.left_out(MendRule::EmptyText),
            block if self.shape == Shape::Neutral => Some(Part::Own(block)),
            Block::Text(block) => {
                Some(self.text(Cow::Borrowed(&block.text), block.text.is_lossy()))
            }
            Block::Thinking(thinking) => self.thinking(sketch, thinking),
            Block::Media(media) => Some(self.medium(output::own_medium(media), sketch.place)),
            Block::Other(json) => self.other(sketch, json.as_str()),
            Block::ToolUse(_) | Block::ToolResult(_) => None,
        };
        sketch.is_plain |= part.is_some();
        sketch.parts.extend(part);
    }

    fn left_out(&mut self, rule: MendRule) -> Option<Part<'a>> {
        self.note(rule);
        None
    }

    fn text(&mut self, text: Cow<'a, str>, lossy: bool) -> Part<'a> {
        if lossy && self.shape != Shape::Neutral {
            self.note(MendRule::LoneSurrogate);
        }
        Part::Text(text)
    }

    fn medium(&mut self, medium: Medium<'a>, place: Place) -> Part<'a> {
        if self.shape.takes_medium(&medium, place) {
            return Part::Medium(medium);
        }
        self.note(MendRule::MediaPlaceholder);
        Part::Text(Cow::Owned(output::placeholder(&medium)))
    }

    fn piece(&mut self, piece: Piece<'a>, place: Place) -> Part<'a> {
        match piece {
            Piece::Text { text, lossy } => self.text(text, lossy),
            Piece::Medium(medium) => self.medium(medium, place),
        }
    }

    fn takes_thinking(&self, sketch: &Sketch<'a>) -> bool {
        sketch.who == Who::Assistant && self.shape.takes_thinking_of(sketch.model)
    }

    fn thinking(&mut self, sketch: &Sketch<'a>, thinking: &'a Thinking) -> Option<Part<'a>> {
        let text = &thinking.thinking;
        // What Anthropic signed must be what it gets; OpenAI reads only the
        // signature.
        let is_whole = self.shape == Shape::OpenAi || !text.is_lossy();
        let signature = thinking.signature.as_ref();
        let signature = signature.filter(|it| !it.is_empty() && !it.is_lossy());
        match signature {
            Some(signature) if is_whole && self.takes_thinking(sketch) => {
                if text.is_lossy() {
                    self.note(MendRule::LoneSurrogate);
                }
                Some(Part::Thought { text, signature })
            }
            _ => self.left_out(MendRule::Thinking),
        }
    }

    /// Takes a block that is none of ours: some are a provider's form of one.
    fn other(&mut self, sketch: &Sketch<'a>, json: &'a str) -> Option<Part<'a>> {
        if let Some(data) = output::redacted_thinking(json) {
            let takes = self.shape == Shape::Anthropic && self.takes_thinking(sketch);
            return match takes {
                true => Some(Part::Redacted(data)),
                false => self.left_out(MendRule::Thinking),
            };
        }
        match output::piece(json) {
            Some(Piece::Text { text, .. }) if text.trim().is_empty() => {
                self.left_out(MendRule::EmptyText)
            }
            Some(piece) => Some(self.piece(piece, sketch.place)),
            None => self.left_out(MendRule::UnknownBlock),
        }
    }

    fn call(&mut self, call: &Matched<'a>) -> Part<'a> {
        if let Some(rule) = call.id_mend {
            self.note(rule);
        }
        let block = call.block;
        let (name, input) = match self.shape {
            Shape::Neutral => (Cow::Borrowed(block.name.as_str()), Cow::Borrowed("")),
            _ => (self.name(block), self.input(block)),
        };
        let id = call.id.clone();
        Part::Call(Call {
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
            // There it is a text, which is as deep as any other.
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

    fn answer(&mut self, call: &Matched<'a>) -> Answer<'a> {
        let (parts, is_error, given) = match call.result {
            Some((seq, result)) => (
                self.result_parts(seq, result),
                result.is_error,
                Some(result),
            ),
            None => {
                self.note(MendRule::DanglingCall);
                (vec![Part::Text(Cow::Borrowed(INTERRUPTED))], true, None)
            }
        };
        Answer {
            id: call.id.clone(),
            parts,
            is_error,
            block: call.block,
            given,
        }
    }

    fn result_parts(&mut self, seq: u64, result: &'a ToolResult) -> Vec<Part<'a>> {
        if self.shape == Shape::Neutral {
            return Vec::new();
        }
        let place = Place::Result {
            is_error: result.is_error,
        };
        let outer = std::mem::replace(&mut self.seq, seq);
        let parts = self.output(result, place);
        self.seq = outer;
        parts
    }

    /// Takes an output apart. One that is a string may be blank where the shape
    /// has it as a string.
    fn output(&mut self, result: &'a ToolResult, place: Place) -> Vec<Part<'a>> {
        let has_strings = matches!(self.shape, Shape::OpenAi | Shape::OpenAiChat);
        let is_string = result.output.as_str().starts_with('"');
        let keeps_blank = has_strings && is_string && matches!(place, Place::Result { .. });
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

    fn orphan(&mut self, result: &'a ToolResult, place: Place) -> Vec<Part<'a>> {
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
        let mut parts = vec![Part::Text(Cow::Owned(head))];
        parts.extend(self.output(result, place));
        parts
    }

    fn misplaced(&mut self, sketch: &mut Sketch<'a>, call: &'a ToolUse) {
        self.note(MendRule::MisplacedCall);
        let ToolUse {
            id, name, input, ..
        } = call;
        let text = format!("Call of the tool `{name}` (call `{id}`): {input}");
        sketch.parts.push(Part::Text(Cow::Owned(text)));
    }

    /// Adds a message, if anything is left of it.
    fn turn(&mut self, who: Who, role: &'a str, parts: Vec<Part<'a>>) {
        let mut parts = parts;
        if who == Who::Assistant {
            parts = self.hold(parts);
        } else if !parts.is_empty() {
            self.drop_held();
        }
        if parts.is_empty() {
            return;
        }
        let (who, parts) = self.in_the_middle(who, parts);
        if self.shape == Shape::Anthropic && who == Who::Assistant && self.items.is_empty() {
            self.note(MendRule::FirstNotUser);
            self.turn_of(Who::User, "user", vec![Part::Text(Cow::Borrowed(OPENING))]);
        }
        self.turn_of(who, role, parts);
    }

    fn turn_of(&mut self, who: Who, role: &'a str, parts: Vec<Part<'a>>) {
        self.items.push(Item::Turn(Turn { who, role, parts }));
    }

    /// Puts the thinking that was held before the parts of an assistant message,
    /// and holds what thinking they end with.
    fn hold(&mut self, parts: Vec<Part<'a>>) -> Vec<Part<'a>> {
        let is_thought = |part: &Part<'a>| matches!(part, Part::Thought { .. } | Part::Redacted(_));
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

    /// Anthropic has no system messages among the others.
    fn in_the_middle(&mut self, who: Who, parts: Vec<Part<'a>>) -> (Who, Vec<Part<'a>>) {
        if who != Who::System || self.shape != Shape::Anthropic {
            return (who, parts);
        }
        self.note(MendRule::MiddleSystem);
        let text = join(&parts, "\n");
        let text = format!("<system_message>\n{text}\n</system_message>");
        (Who::User, vec![Part::Text(Cow::Owned(text))])
    }
}

fn who(role: &Role) -> Who {
    match role {
        Role::System => Who::System,
        Role::Assistant => Who::Assistant,
        Role::Other(name) if name == "developer" => Who::System,
        Role::User | Role::Tool | Role::Other(_) => Who::User,
    }
}
