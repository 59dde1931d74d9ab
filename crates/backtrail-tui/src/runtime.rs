//! The loop that reads events, asks the library on other threads, and draws.
//!
//! It waits on one channel and costs nothing while nothing happens. All that is waiting is taken
//! before a frame is drawn, so that a burst of events costs one frame.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use ratatui::Frame;

use crate::app::App;
use crate::clipboard::Clipboard;
use crate::draw;
use crate::event::Input;
use crate::input::InputThread;
use crate::lanes::Lanes;
use crate::look::{Background, Look};
use crate::options::Options;
use crate::queue::Waiting;
use crate::request::{Effect, Event, Reply, Request};
use crate::signals::{self, SignalThread};
use crate::surroundings;
use crate::terminal::{self, Screen};
use backtrail_view::library::{Change, Library, Place};

/// As many messages are taken before a frame is drawn.
const BATCH: usize = 256;

/// Shows the screens until the user leaves them, or a signal ends the process.
///
/// # Errors
///
/// The terminal cannot be used.
pub fn run(library: Arc<dyn Library>, options: &Options) -> io::Result<()> {
    let look = options.look.unwrap_or_else(surroundings::look);
    let question = match options.look {
        Some(_) => None,
        None => surroundings::question(look),
    };
    run_state(library, options.mouse, question, |size| {
        App::new(options.scope, look, size)
    })
}

/// What the loop shows and changes.
trait State {
    /// Changes the state by an event; returns what is to be done.
    fn update(&mut self, event: Event) -> Vec<Effect>;
    /// Draws the whole screen.
    fn draw(&self, frame: &mut Frame<'_>);
    /// Returns how it looks.
    fn look(&self) -> Look;
    /// Sets the background, which the terminal told later; returns what is to be done.
    fn set_background(&mut self, background: Background) -> Vec<Effect>;
}

impl State for App {
    fn update(&mut self, event: Event) -> Vec<Effect> {
        self.update(event)
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(self, frame);
    }

    fn look(&self) -> Look {
        self.look
    }

    fn set_background(&mut self, background: Background) -> Vec<Effect> {
        self.set_background(background)
    }
}

/// Shows a state. The first frame is drawn before anything is asked, the terminal included.
fn run_state<S: State>(
    library: Arc<dyn Library>,
    uses_mouse: bool,
    question: Option<&str>,
    make: impl FnOnce((u16, u16)) -> (S, Vec<Effect>),
) -> io::Result<()> {
    let (to, messages) = channel();
    // From here on no signal leaves the terminal in disorder.
    let signals = SignalThread::start(teller(to.clone(), Message::Signal))?;
    let mut screen = Screen::enter(uses_mouse)?;
    let size = screen.size()?;
    let (mut state, effects) = make(size);
    screen.draw(|frame| state.draw(frame))?;
    if let Some(question) = question {
        screen.write(question)?;
    }
    let mut runtime = Runtime {
        lanes: lanes(Arc::clone(&library), to.clone()),
        input: InputThread::start(to.clone())?,
        clipboard: Clipboard::new(teller(to.clone(), Message::NotCopied)),
        has_answers: false,
        wakes: BTreeSet::new(),
        library,
        screen,
        messages,
        signals,
        size,
    };
    let ended = runtime.go(&mut state, effects, to);
    runtime.end(ended)
}

/// Something for the loop.
#[derive(Debug)]
enum Message {
    Input(io::Result<Input>),
    Reply(Box<Request>, Reply),
    Changed(Change),
    Signal(i32),
    /// The desktop's clipboard did not take a text.
    NotCopied(String),
}

impl From<io::Result<Input>> for Message {
    fn from(input: io::Result<Input>) -> Self {
        Self::Input(input)
    }
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Quit,
    Signal(i32),
}

/// Whether the loop goes on.
type Flow = Option<End>;

struct Runtime {
    library: Arc<dyn Library>,
    screen: Screen,
    messages: Receiver<Message>,
    lanes: Lanes,
    input: InputThread,
    signals: SignalThread,
    clipboard: Clipboard,
    /// Whether the library answered anything yet.
    has_answers: bool,
    /// When to wake the state.
    wakes: BTreeSet<Instant>,
    size: (u16, u16),
}

impl Runtime {
    /// Runs until something ends it.
    fn go(
        &mut self,
        state: &mut impl State,
        effects: Vec<Effect>,
        to: Sender<Message>,
    ) -> io::Result<End> {
        let mut flow = self.perform(state, effects)?;
        if flow.is_none() {
            // The size may have changed before anybody watched it.
            flow = self.resize(state, self.screen.size()?)?;
        }
        let mut watching = None;
        while flow.is_none() {
            self.screen.draw(|frame| state.draw(frame))?;
            flow = self.take_batch(state)?;
            // What is shown first is not kept waiting by what is only needed later.
            if watching.is_none() && self.has_answers {
                watching = Some(watch(Arc::clone(&self.library), to.clone())?);
            }
        }
        drop(watching);
        Ok(flow.unwrap_or(End::Quit))
    }

    /// Gives the terminal back, and waits for what must not be left half done.
    fn end(self, ended: io::Result<End>) -> io::Result<()> {
        self.input.pause();
        drop(self.screen);
        let waiting = match ended {
            Ok(End::Quit) => Waiting::Done,
            _ => Waiting::Dropped,
        };
        self.lanes.end(waiting);
        match ended? {
            End::Quit => Ok(()),
            End::Signal(signal) => signals::end_by(signal),
        }
    }

    /// Waits for something to happen, and takes it with all that happened meanwhile.
    fn take_batch(&mut self, state: &mut impl State) -> io::Result<Flow> {
        let Some(first) = self.wait() else {
            let effects = state.update(Event::Woken);
            return self.perform(state, effects);
        };
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(message) = next else { break };
            if let Some(end) = self.take(state, message)? {
                return Ok(Some(end));
            }
            next = self.messages.try_recv().ok();
        }
        // The batch is full, and this one was taken out already.
        match next {
            Some(message) => self.take(state, message),
            None => Ok(None),
        }
    }

    /// Returns the next message, or `None` when it is time to wake the state.
    fn wait(&mut self) -> Option<Message> {
        let Some(wake) = self.wakes.first() else {
            return self.messages.recv().ok();
        };
        let left = wake.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(left) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                self.wakes.pop_first();
                None
            }
        }
    }

    fn take(&mut self, state: &mut impl State, message: Message) -> io::Result<Flow> {
        let event = match message {
            Message::Input(input) => match input? {
                // What was read may be old by now.
                Input::Event(Event::Resize(..)) => return self.resize(state, self.screen.size()?),
                Input::Event(event) => event,
                Input::Background(background) => {
                    let effects = state.set_background(background);
                    return self.perform(state, effects);
                }
            },
            Message::Reply(request, reply) => {
                self.has_answers = true;
                Event::Reply(request, reply)
            }
            Message::Changed(change) => Event::Changed(change),
            Message::Signal(signal) if signals::ends(signal) => {
                return Ok(Some(End::Signal(signal)));
            }
            Message::Signal(_) => {
                self.screen.enter_again()?;
                let size = self.screen.size()?;
                return self.resize(state, size);
            }
            Message::NotCopied(text) => return self.copy_by_terminal(state, &text),
        };
        let effects = state.update(event);
        self.perform(state, effects)
    }

    fn resize(&mut self, state: &mut impl State, size: (u16, u16)) -> io::Result<Flow> {
        if self.size == size {
            return Ok(None);
        }
        self.size = size;
        let effects = state.update(Event::Resize(size.0, size.1));
        self.perform(state, effects)
    }

    fn perform(&mut self, state: &mut impl State, effects: Vec<Effect>) -> io::Result<Flow> {
        for effect in effects {
            let flow = match effect {
                Effect::Ask(request) => self.lanes.ask(request, state.look()).map(|()| None)?,
                Effect::Wake(after) => {
                    self.wakes.insert(Instant::now() + after);
                    None
                }
                Effect::Copy(text) => self.copy(state, text)?,
                Effect::Continue(place, agent) => self.continue_in(state, &place, &agent)?,
                Effect::Redraw => self.screen.redraw().map(|()| None)?,
                Effect::Suspend => self.suspend(state)?,
                Effect::Quit => Some(End::Quit),
            };
            if flow.is_some() {
                return Ok(flow);
            }
        }
        Ok(None)
    }

    fn copy(&mut self, state: &mut impl State, text: String) -> io::Result<Flow> {
        match self.clipboard.copy(text) {
            Ok(Some(sequence)) => self.screen.write(&sequence).map(|()| None),
            Ok(None) => Ok(None),
            Err(message) => self.tell(state, Some(message)),
        }
    }

    fn copy_by_terminal(&mut self, state: &mut impl State, text: &str) -> io::Result<Flow> {
        match self.clipboard.by_terminal(text) {
            Ok(sequence) => self.screen.write(&sequence).map(|()| None),
            Err(message) => self.tell(state, Some(message)),
        }
    }

    fn continue_in(
        &mut self,
        state: &mut impl State,
        place: &Place,
        agent: &str,
    ) -> io::Result<Flow> {
        let command = self.library.continue_command(place, agent);
        self.run_command(state, agent, &command)
    }

    /// Gives the terminal to a command, and takes it back when that ended.
    fn run_command(
        &mut self,
        state: &mut impl State,
        name: &str,
        command: &[OsString],
    ) -> io::Result<Flow> {
        self.go_away();
        let message = problem_of(name, command);
        match self.come_back(state)? {
            None => self.tell(state, message),
            end => Ok(end),
        }
    }

    /// Stops as Ctrl-Z does, until the shell continues us.
    fn suspend(&mut self, state: &mut impl State) -> io::Result<Flow> {
        self.go_away();
        self.signals.stop()?;
        self.come_back(state)
    }

    /// Leaves the terminal to another program.
    fn go_away(&mut self) {
        self.input.pause();
        self.signals.set_away(true);
        terminal::leave();
    }

    /// Takes the terminal again, which may have another size by now.
    fn come_back(&mut self, state: &mut impl State) -> io::Result<Flow> {
        self.screen.enter_again()?;
        self.signals.set_away(false);
        self.input.resume();
        self.resize(state, self.screen.size()?)
    }

    fn tell(&mut self, state: &mut impl State, message: Option<String>) -> io::Result<Flow> {
        let effects = state.update(Event::Returned(message));
        self.perform(state, effects)
    }
}

/// Watches the library until the returned sender is dropped. To begin may take a while, and may
/// fail: then nothing is live, and everything else works.
fn watch(library: Arc<dyn Library>, to: Sender<Message>) -> io::Result<Sender<()>> {
    let (watching, ends) = channel();
    let work = move || {
        let watch = library.watch(Box::new(teller(to, Message::Changed)));
        // Nothing is ever sent.
        ends.recv().ok();
        drop(watch);
    };
    let thread = thread::Builder::new().name("watch".to_owned());
    thread.spawn(work).map(|_| watching)
}

fn lanes(library: Arc<dyn Library>, to: Sender<Message>) -> Lanes {
    Lanes::new(library, move |request, reply| {
        // Nobody listens any more when the screens are left.
        to.send(Message::Reply(Box::new(request), reply)).ok();
    })
}

/// Returns a function that sends what it is given as a message.
fn teller<T: 'static>(
    to: Sender<Message>,
    message: fn(T) -> Message,
) -> impl Fn(T) + Send + 'static {
    move |it| {
        // As above.
        to.send(message(it)).ok();
    }
}

/// Runs a command; returns what went wrong with what people know it as.
fn problem_of(name: &str, command: &[OsString]) -> Option<String> {
    let Some((program, args)) = command.split_first() else {
        return Some("there is no command to run".to_owned());
    };
    match Command::new(program).args(args).status() {
        Ok(status) if is_fine(status) => None,
        Ok(status) => Some(format!("{name} ended with {status}")),
        Err(error) => Some(format!("cannot run {name}: {error}")),
    }
}

/// Programs that were left with Ctrl-C end with 130.
fn is_fine(status: ExitStatus) -> bool {
    status.success() || matches!(status.code(), Some(130))
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
