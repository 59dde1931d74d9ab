//! Sessions with anything in them, for the tests of what is shown of conversations.

use backtrail::{
    Block, Compaction, Draft, Message, Note, Role, Session, Timestamp, ToolResult, Usage,
};
use proptest::prelude::*;

use super::testing::{answer, call, result};

/// Something that is added to a session.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Prompt(usize),
    Answer(usize),
    Thinking(usize),
    /// Calls, with the number of lines of each command.
    Calls(usize),
    /// The result of the oldest call that has none, and its number of lines.
    Result(usize),
    /// A prompt that brings the results of the last calls.
    PromptWithResults,
    Injected(usize),
    Title(u8),
    Compaction,
    /// The conversation goes back by a few records.
    Rewind(u64),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..9usize).prop_map(Step::Prompt),
        4 => (1..60usize).prop_map(Step::Answer),
        1 => (1..4usize).prop_map(Step::Thinking),
        4 => (1..4usize).prop_map(Step::Calls),
        5 => (1..80usize).prop_map(Step::Result),
        1 => Just(Step::PromptWithResults),
        1 => (1..4usize).prop_map(Step::Injected),
        1 => any::<u8>().prop_map(Step::Title),
        1 => Just(Step::Compaction),
        1 => (1..4u64).prop_map(Step::Rewind),
    ]
}

/// Adds steps to a session, and the calls that they leave open.
pub(super) struct Player {
    pub(super) session: Session,
    open: Vec<String>,
    calls: usize,
    /// Seconds since the first message; `None` if nothing has a time or a cost.
    clock: Option<i64>,
}

impl Player {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session,
            open: Vec::new(),
            calls: 0,
            clock: None,
        }
    }

    /// Makes a player whose messages have times, and whose answers have costs.
    pub(super) fn measured(session: Session) -> Self {
        Self {
            clock: Some(0),
            ..Self::new(session)
        }
    }

    pub(super) fn play(&mut self, step: &Step) {
        let lines = |what: &str, n: usize| vec![what; n].join("\n\n");
        let message = match step {
            Step::Prompt(n) => Message::user_text(lines("please", *n)),
            Step::Answer(n) => answer(&lines("done **this**", *n)),
            Step::Thinking(n) => Message::assistant([Block::thinking(lines("hm", *n))]),
            Step::Calls(n) => Message::assistant((0..*n).map(|_| self.call()).collect::<Vec<_>>()),
            Step::Result(n) => match self.open.is_empty() {
                true => result("nobody", "late"),
                false => result(&self.open.remove(0), &lines("output", *n)),
            },
            Step::PromptWithResults => {
                let results = std::mem::take(&mut self.open).into_iter();
                let results = results.map(|id| ToolResult::ok("so").answers(id, "bash").into());
                let blocks = results.chain([Block::text("stop")]);
                Message::new(Role::User, blocks.collect::<Vec<_>>())
            }
            Step::Injected(n) => {
                let text = lines("remember", *n);
                Message::user_text(format!("<system-reminder>\n{text}\n</system-reminder>"))
            }
            Step::Title(n) => {
                self.session
                    .note(&Note::new().title(format!("t{n}")))
                    .unwrap();
                return;
            }
            Step::Compaction => {
                // There may be nothing to compact.
                self.session.compact(&Compaction::new("what was")).ok();
                return;
            }
            Step::Rewind(n) => {
                let last = self.session.last_seq();
                if last > *n {
                    self.session.rewind_chat(last - n).unwrap();
                }
                return;
            }
        };
        let draft = self.draft(message);
        self.session.append(draft).unwrap();
    }

    /// Adds the time of a message, and what an answer used.
    fn draft(&mut self, message: Message) -> Draft {
        let Some(clock) = &mut self.clock else {
            return Draft::from(message);
        };
        *clock += 7;
        let at = Timestamp::from_millis(1_760_000_000_000 + *clock * 1000).unwrap();
        let is_answer = message.role == Role::Assistant;
        match is_answer {
            true => {
                let message = message.usage(Usage::new(1000, 100));
                let draft = Draft::from(message).model("m-1");
                draft.cost_usd(0.25 * *clock as f64).at(at)
            }
            false => Draft::from(message).at(at),
        }
    }

    fn call(&mut self) -> Block {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        self.open.push(id.clone());
        call(&id, "make all")
    }
}
