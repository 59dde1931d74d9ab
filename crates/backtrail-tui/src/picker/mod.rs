//! Pickers: a few rows below the command line in which something is chosen by typing a part of it.
//!
//! They are drawn on stderr, so that stdout stays data, and are gone when something was chosen.

mod areas;
mod choices;
mod draw;
mod rows;
mod state;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

pub use self::choices::{
    Choice, Choices, Files, Matches, PointPreview, Points, Preview, Sessions, Ways, restore_plan,
    rewind_plan,
};

use self::rows::Rows;
use self::state::{Outcome, PickerState, Question, Told};
use crate::event::Input;
use crate::input::InputThread;
use crate::look::Look;
use crate::queue::{Queue, Waiting};
use crate::request::Event;
use crate::signals::{self, SignalThread};
use crate::surroundings;

/// Lets the user choose; `None` if nothing was chosen. A signal ends the process.
///
/// Signals are received from now on, so the process should end or become another program after it.
///
/// # Errors
///
/// The terminal cannot be used, or does not tell where its cursor is.
pub fn pick(
    title: &str,
    choices: Arc<dyn Choices>,
    look: Option<Look>,
) -> io::Result<Option<String>> {
    let question = match look {
        Some(_) => None,
        None => surroundings::question(surroundings::look()),
    };
    let look = look.unwrap_or_else(surroundings::look);
    let (to, messages) = channel();
    let signals = to.clone();
    // If it fails, the caller goes on, and signals must mean what they did.
    let mut rows = Rows::enter()?;
    SignalThread::start(move |signal| {
        // Nobody listens any more when something was chosen.
        signals.send(Message::Signal(signal)).ok();
    })?;
    let mut state = PickerState::new(title, look, choices.is_search(), rows.size());
    rows.draw(&state)?;
    if let Some(question) = question {
        rows.write(question)?;
    }
    let input = InputThread::start(to.clone())?;
    let workers = Workers::start(&choices, &to)?;
    let mut outcome = Outcome::Continues;
    while outcome == Outcome::Continues {
        state.questions().into_iter().for_each(|it| workers.ask(it));
        rows.draw(&state)?;
        // It cannot fail: a sender is ours.
        let Ok(message) = messages.recv() else { break };
        outcome = match message {
            Message::Input(input) => match input? {
                Input::Event(Event::Resize(columns, height)) => {
                    rows.resize(columns, height)?;
                    state.resize(rows.size())
                }
                Input::Event(event) => state.update(event),
                Input::Background(background) => state.set_background(background),
            },
            Message::Told(told) => state.take(told),
            Message::Signal(signal) if signals::ends(signal) => {
                drop(rows);
                return signals::end_by(signal).map(|()| None);
            }
            Message::Signal(_) => rows.hold_again().map(|()| Outcome::Continues)?,
        };
    }
    input.pause();
    Ok(match outcome {
        Outcome::Chosen => state.chosen(),
        Outcome::Continues | Outcome::Cancelled => None,
    })
}

/// Something for the loop.
#[derive(Debug)]
enum Message {
    Input(io::Result<Input>),
    Told(Told),
    Signal(i32),
}

impl From<io::Result<Input>> for Message {
    fn from(input: io::Result<Input>) -> Self {
        Self::Input(input)
    }
}

/// The threads that answer questions: a slow list keeps no preview waiting. Of the questions that
/// wait, only the newest is answered.
struct Workers {
    lists: Arc<Queue<Question>>,
    previews: Arc<Queue<Question>>,
}

impl Workers {
    fn start(choices: &Arc<dyn Choices>, to: &Sender<Message>) -> io::Result<Self> {
        Ok(Self {
            lists: start("lists", choices, to)?,
            previews: start("previews", choices, to)?,
        })
    }

    fn ask(&self, question: Question) {
        let queue = match question {
            Question::List(_) => &self.lists,
            Question::Preview(..) => &self.previews,
        };
        queue.push(question, |_| true);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.lists.close(Waiting::Dropped);
        self.previews.close(Waiting::Dropped);
    }
}

fn start(
    name: &str,
    choices: &Arc<dyn Choices>,
    to: &Sender<Message>,
) -> io::Result<Arc<Queue<Question>>> {
    let queue = Arc::new(Queue::<Question>::new());
    let (questions, choices, to) = (Arc::clone(&queue), Arc::clone(choices), to.clone());
    let work = move || {
        while let Some(question) = questions.pop() {
            let told = question.answer(choices.as_ref());
            if to.send(Message::Told(told)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(queue)
}

#[cfg(test)]
#[path = "picker_tests.rs"]
mod tests;
