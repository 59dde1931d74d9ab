//! The engine's side of a deed.

use backtrail::{
    Block, Compacted, Compaction, Draft, Error, ForkOptions, Message, Note, Outcome, Result, Role,
    Session, SessionId, SessionOptions, Store, ToolResult, ToolUse,
};

use super::state::{Answer, Change, Cover, Deed, Talk, Went};

/// The result of a deed.
#[derive(Debug)]
pub(crate) struct Performed {
    pub(crate) answer: Result<Answer>,
    /// The session that it created.
    pub(crate) child: Option<Session>,
    /// The trail that a move created.
    pub(crate) trail: Option<u32>,
    /// For several messages: the seq of each that was acknowledged.
    pub(crate) acknowledged: Vec<Option<u64>>,
}

impl Performed {
    pub(crate) fn of(answer: Result<Answer>) -> Self {
        Self {
            answer,
            child: None,
            trail: None,
            acknowledged: Vec::new(),
        }
    }

    fn seq(answer: Result<u64>) -> Self {
        Self::of(answer.map(|seq| Answer::Seqs(vec![seq])))
    }

    fn moved(answer: Result<Option<Outcome>>) -> Self {
        let chat = |outcome: &Outcome| outcome.chat.clone().expect("the conversation moved");
        let trail = match &answer {
            Ok(Some(outcome)) => chat(outcome).trail,
            _ => None,
        };
        let went = |outcome: Outcome| Went {
            from: chat(&outcome).from,
            to: chat(&outcome).to,
            kind: outcome.step.expect("a step").kind,
        };
        Self {
            trail,
            ..Self::of(answer.map(|moved| Answer::Moved(moved.map(went))))
        }
    }

    fn begun(answer: Result<Session>) -> Self {
        let (answer, child) = match answer {
            Ok(session) => (Ok(Answer::Begun), Some(session)),
            Err(error) => (Err(error), None),
        };
        Self {
            child,
            ..Self::of(answer)
        }
    }

    fn batch(outcomes: Vec<Result<u64>>) -> Self {
        let acknowledged = outcomes.iter().map(|o| o.as_ref().ok().copied()).collect();
        let seqs: Result<Vec<u64>> = outcomes.into_iter().collect();
        Self {
            acknowledged,
            ..Self::of(seqs.map(Answer::Seqs))
        }
    }
}

impl Deed {
    /// Returns whether only the writer can perform it.
    pub(crate) fn is_spoken(&self) -> bool {
        !matches!(self, Self::Note(_) | Self::Fork { .. } | Self::Spawn(_))
    }

    /// Performs it as the writer.
    pub(crate) fn perform(&self, session: &Session) -> Performed {
        match self {
            Self::Say { talk, word, expect } => {
                let draft = Draft::from(message(talk, word));
                Performed::seq(session.append(match expect {
                    Some(seq) => draft.expect(*seq),
                    None => draft,
                }))
            }
            Self::Batch(all) => {
                let messages = all.iter().map(|(talk, word)| message(talk, word));
                Performed::batch(session.append_batch(messages))
            }
            Self::Note(change) => Performed::seq(session.note(&note(change))),
            Self::Rewind(to) => Performed::moved(session.rewind_chat(*to)),
            Self::Undo => Performed::moved(session.undo()),
            Self::Redo => Performed::moved(session.redo()),
            Self::Compact { keep, summary } => {
                let compaction = Compaction::new(summary.as_str()).keep(*keep);
                Performed::of(session.compact(&compaction).map(compacted))
            }
            Self::Fork { at, name } => {
                Performed::begun(session.fork(&fork_options(*at, name.as_deref())))
            }
            Self::Spawn(call) => Performed::begun(session.spawn(call, SessionOptions::new())),
        }
    }

    /// Performs it as another process that does not write to the session.
    pub(crate) fn perform_outside(&self, store: &Store, id: &SessionId) -> Performed {
        match self {
            Self::Note(change) => Performed::seq(store.note(id, &note(change))),
            Self::Fork { at, name } => {
                let options = fork_options(*at, name.as_deref());
                Performed::begun(store.fork_session(id, &options))
            }
            Self::Spawn(call) => {
                Performed::begun(store.spawn_session(id, call, SessionOptions::new()))
            }
            _ => match store.open_session(id) {
                Ok(session) => self.perform(&session),
                Err(error) => Performed::of(Err(error)),
            },
        }
    }
}

/// Returns the errors of a handle that acknowledges nothing any more; `None` if an
/// operation succeeds.
pub(crate) fn refusals(session: &Session) -> Option<Vec<Error>> {
    let refused = [
        session.append(Message::user_text("no")).err(),
        session.rewind_chat(0).err(),
        session.undo().err(),
        session.redo().err(),
        session.compact(&Compaction::new("no")).err(),
        session.note(&Note::new().title("no")).err(),
    ];
    refused.into_iter().collect()
}

fn compacted(done: Compacted) -> Answer {
    Answer::Compacted {
        seq: done.seq,
        cover: Cover {
            count: done.count,
            removed: done.removed_message_count,
            keeps_from: done.keeps_from,
        },
        kept: done.kept,
    }
}

fn fork_options(at: Option<u64>, name: Option<&str>) -> ForkOptions {
    let options = match at {
        Some(seq) => ForkOptions::new().at(seq),
        None => ForkOptions::new(),
    };
    match name {
        Some(name) => options.branch_name(name),
        None => options,
    }
}

fn note(change: &Change) -> Note {
    match change {
        Change::Title(title) => Note::new().title(title.as_str()),
        Change::Tags(tags) => Note::new().tags(tags.iter().cloned()),
        Change::Pinned(pinned) => Note::new().pinned(*pinned),
    }
}

/// Creates the message of a talk, with the word in each of its blocks.
fn message(talk: &Talk, word: &str) -> Message {
    let role = match talk.role.as_str() {
        "system" => Role::System,
        "user" => Role::User,
        "tool" => Role::Tool,
        _ => Role::Assistant,
    };
    let text = talk.speaks.then(|| Block::text(word));
    let call = |id: &String| {
        let call = ToolUse::new(id.as_str(), "bash", word);
        Block::from(call.expect("a string is always JSON"))
    };
    let result = |id: &String| Block::from(ToolResult::ok(word).answers(id.as_str(), "bash"));
    let blocks = text
        .into_iter()
        .chain(talk.calls.iter().map(call))
        .chain(talk.results.iter().map(result));
    Message::new(role, blocks)
}
