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
use std::time::Instant;

use crate::app::App;
use crate::clipboard::Clipboard;
use crate::draw::draw;
use crate::event::Input;
use crate::input::InputThread;
use crate::lanes::{Lanes, Waiting};
use crate::library::{Change, Library, Place, Watch};
use crate::options::Options;
use crate::request::{Effect, Event, Reply, Request};
use crate::signals::{self, SignalThread};
use crate::surroundings;
use crate::terminal::{self, Screen};

/// As many messages are taken before a frame is drawn.
const BATCH: usize = 256;

/// Shows the screens until the user leaves them, or a signal ends the process.
///
/// # Errors
///
/// The terminal cannot be used.
pub fn run(library: Arc<dyn Library>, options: &Options) -> io::Result<()> {
    let look = options.look.unwrap_or_else(surroundings::look);
    let mut screen = Screen::enter(options.mouse)?;
    let (mut app, effects) = App::new(options.scope, look, screen.size()?);
    screen.draw(|frame| draw(&app, frame))?;
    let mut runtime = Runtime::start(library, screen)?;
    let ended = runtime.go(&mut app, effects);
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
    /// When to wake the state.
    wakes: BTreeSet<Instant>,
    size: (u16, u16),
    /// Without it nothing is live; everything else works.
    _watch: Option<Box<dyn Watch>>,
}

impl Runtime {
    fn start(library: Arc<dyn Library>, screen: Screen) -> io::Result<Self> {
        let (to, messages) = channel::<Message>();
        let signals = SignalThread::start(teller(to.clone(), Message::Signal))?;
        let input = InputThread::start(to.clone())?;
        let replies = to.clone();
        let lanes = Lanes::new(Arc::clone(&library), move |request, reply| {
            replies.send(Message::Reply(Box::new(request), reply)).ok();
        });
        let watch = library
            .watch(Box::new(teller(to.clone(), Message::Changed)))
            .ok();
        Ok(Self {
            size: screen.size()?,
            library,
            screen,
            messages,
            lanes,
            input,
            signals,
            clipboard: Clipboard::new(teller(to.clone(), Message::NotCopied)),
            wakes: BTreeSet::new(),
            _watch: watch,
        })
    }

    /// Runs until something ends it.
    fn go(&mut self, app: &mut App, effects: Vec<Effect>) -> io::Result<End> {
        if let Some(end) = self.perform(app, effects)? {
            return Ok(end);
        }
        // The size may have changed before anybody watched it.
        let resized = self.resize(app, self.screen.size()?)?;
        if let Some(end) = resized {
            return Ok(end);
        }
        loop {
            if let Some(end) = self.take_batch(app)? {
                return Ok(end);
            }
            self.screen.draw(|frame| draw(app, frame))?;
        }
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
    fn take_batch(&mut self, app: &mut App) -> io::Result<Flow> {
        let Some(first) = self.wait() else {
            let effects = app.update(Event::Woken);
            return self.perform(app, effects);
        };
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(message) = next else { break };
            if let Some(end) = self.take(app, message)? {
                return Ok(Some(end));
            }
            next = self.messages.try_recv().ok();
        }
        // The batch is full, and this one was taken out already.
        match next {
            Some(message) => self.take(app, message),
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

    fn take(&mut self, app: &mut App, message: Message) -> io::Result<Flow> {
        let event = match message {
            Message::Input(input) => match input? {
                Input::Event(Event::Resize(columns, rows)) => {
                    return self.resize(app, (columns, rows));
                }
                Input::Event(event) => event,
                Input::Background(background) => {
                    app.look.background = background;
                    return Ok(None);
                }
            },
            Message::Reply(request, reply) => Event::Reply(request, reply),
            Message::Changed(change) => Event::Changed(change),
            Message::Signal(signal) if signals::ends(signal) => {
                return Ok(Some(End::Signal(signal)));
            }
            Message::Signal(_) => {
                self.screen.enter_again()?;
                let size = self.screen.size()?;
                return self.resize(app, size);
            }
            Message::NotCopied(text) => return self.copy_by_terminal(app, &text),
        };
        let effects = app.update(event);
        self.perform(app, effects)
    }

    fn resize(&mut self, app: &mut App, size: (u16, u16)) -> io::Result<Flow> {
        if self.size == size {
            return Ok(None);
        }
        self.size = size;
        let effects = app.update(Event::Resize(size.0, size.1));
        self.perform(app, effects)
    }

    fn perform(&mut self, app: &mut App, effects: Vec<Effect>) -> io::Result<Flow> {
        for effect in effects {
            let flow = match effect {
                Effect::Ask(request) => self.lanes.ask(request, app.look).map(|()| None)?,
                Effect::Wake(after) => {
                    self.wakes.insert(Instant::now() + after);
                    None
                }
                Effect::Copy(text) => self.copy(app, text)?,
                Effect::Continue(place, agent) => self.continue_in(app, &place, &agent)?,
                Effect::Run(command) => self.run_command(app, &command)?,
                Effect::Redraw => self.screen.redraw().map(|()| None)?,
                Effect::Suspend => self.suspend(app)?,
                Effect::Quit => Some(End::Quit),
            };
            if flow.is_some() {
                return Ok(flow);
            }
        }
        Ok(None)
    }

    fn copy(&mut self, app: &mut App, text: String) -> io::Result<Flow> {
        match self.clipboard.copy(text) {
            Ok(Some(sequence)) => self.screen.write(&sequence).map(|()| None),
            Ok(None) => Ok(None),
            Err(message) => self.tell(app, Some(message)),
        }
    }

    fn copy_by_terminal(&mut self, app: &mut App, text: &str) -> io::Result<Flow> {
        match self.clipboard.by_terminal(text) {
            Ok(sequence) => self.screen.write(&sequence).map(|()| None),
            Err(message) => self.tell(app, Some(message)),
        }
    }

    fn continue_in(&mut self, app: &mut App, place: &Place, agent: &str) -> io::Result<Flow> {
        let command = self.library.continue_command(place, agent);
        self.run_command(app, &command)
    }

    /// Gives the terminal to a command, and takes it back when that ended.
    fn run_command(&mut self, app: &mut App, command: &[OsString]) -> io::Result<Flow> {
        let message = self.away(|| problem_of(command))?;
        if let Some(end) = self.resize(app, self.screen.size()?)? {
            return Ok(Some(end));
        }
        self.tell(app, message)
    }

    /// Stops as Ctrl-Z does, until the shell continues us.
    fn suspend(&mut self, app: &mut App) -> io::Result<Flow> {
        self.away(signals::stop)??;
        let size = self.screen.size()?;
        self.resize(app, size)
    }

    /// Does something while the terminal is not ours.
    fn away<T>(&mut self, something: impl FnOnce() -> T) -> io::Result<T> {
        self.input.pause();
        self.signals.set_away(true);
        terminal::leave();
        let done = something();
        self.screen.enter_again()?;
        self.signals.set_away(false);
        self.input.resume();
        Ok(done)
    }

    fn tell(&mut self, app: &mut App, message: Option<String>) -> io::Result<Flow> {
        let effects = app.update(Event::Returned(message));
        self.perform(app, effects)
    }
}

/// Returns a function that sends what it is given as a message.
fn teller<T: 'static>(
    to: Sender<Message>,
    message: fn(T) -> Message,
) -> impl Fn(T) + Send + 'static {
    move |it| {
        // Nobody listens any more when the screens are left.
        to.send(message(it)).ok();
    }
}

/// Runs a command; returns what went wrong.
fn problem_of(command: &[OsString]) -> Option<String> {
    let Some((program, args)) = command.split_first() else {
        return Some("there is no command to run".to_owned());
    };
    let name = program.to_string_lossy();
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
