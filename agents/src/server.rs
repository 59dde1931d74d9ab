//! The server: takes requests, asks the script, holds answers back, and logs everything.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::exchange::{Answer, Exchange, Kind};
use crate::http::{Request, Response};
use crate::script::{Hold, Script, Step};
use crate::tools;
use crate::wire::{self, Protocol};

/// How long an answer is held back at most. After that the agent gets an error, and so does the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the server looks whether a file exists.
const LOOK: Duration = Duration::from_millis(5);

/// What is called with each request for a turn when it arrives, before it is answered: the agent
/// waits, so the files are as they are before the next call.
pub type Observer = Box<dyn Fn(&Kind) + Send + Sync>;

/// A model on loopback that follows a script.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    observer: Observer,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    log: File,
    exchanges: Vec<Exchange>,
    /// How many answers were given, and calls made: their ids are numbers.
    answers: u64,
    calls: u64,
    arrived: Vec<Kind>,
    released: BTreeSet<String>,
    is_closed: bool,
}

impl Server {
    /// Starts a server on a free port of loopback. The log is a new file of JSON lines, one for each
    /// request.
    ///
    /// # Errors
    ///
    /// If the log cannot be created, or there is no port.
    pub fn start(script: Script, log: &Path) -> io::Result<Self> {
        Self::start_observed(script, log, Box::new(|_| {}))
    }

    /// Starts a server that calls an observer with each request.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn start_observed(script: Script, log: &Path, observer: Observer) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = State {
            log: File::create_new(log)?,
            exchanges: Vec::new(),
            answers: 0,
            calls: 0,
            arrived: Vec::new(),
            released: BTreeSet::new(),
            is_closed: false,
        };
        let shared = Arc::new(Shared {
            script,
            observer,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared })
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns what was asked and answered so far.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.lock().exchanges.clone()
    }

    /// Lets the answers go that wait for this name, now and later.
    pub fn release(&self, name: &str) {
        self.shared.release(name);
    }

    /// Waits until a request for this step of a turn has arrived; its answer may be held back.
    /// Returns whether it came in time.
    #[must_use]
    pub fn wait_for(&self, marker: &str, step: usize, patience: Duration) -> bool {
        let marker = marker.to_owned();
        let wanted = Kind::Turn { marker, step };
        let state = self.shared.lock();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, patience, |state| !state.arrived.contains(&wanted));
        let (_state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        // One more connection, so that the thread that accepts them sees that it is over.
        TcpStream::connect(self.address).ok();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.lock().is_closed {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // If the agent hangs up, that is the agent's affair.
            serve(&stream, &shared).ok();
        });
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let Some(request) = Request::read(stream)? else {
        return Ok(());
    };
    let response = match request.path.strip_prefix("/control/release/") {
        Some(name) => {
            shared.release(name);
            wire::json_response(200, &json!({"released": name}))
        }
        None => shared.respond(&request),
    };
    response.write(stream)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, name: &str) {
        self.lock().released.insert(name.to_owned());
        self.changed.notify_all();
    }

    /// Answers a request, and logs both before the answer leaves.
    fn respond(&self, request: &Request) -> Response {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some(protocol) = Protocol::of(&request.method, &request.path) else {
            let found = wire::service(&request.method, &request.path);
            let error = found.is_none().then(|| "unknown path".to_owned());
            let unknown =
                || wire::json_response(404, &json!({"error": {"message": "unknown path"}}));
            self.log(
                request,
                body,
                Kind::Other,
                Conversation::default(),
                None,
                error,
            );
            return found.unwrap_or_else(unknown);
        };
        let conversation = protocol.read(&request.path, &body);
        let (kind, step) = self.choose(&conversation);
        self.arrived(&kind);
        match self.answer(protocol, &conversation, step) {
            Ok(answer) => {
                let response = protocol.write(&conversation, &answer);
                self.log(request, body, kind, conversation, Some(answer), None);
                response
            }
            Err(error) => {
                let response = wire::json_response(400, &json!({"error": {"message": error}}));
                self.log(request, body, kind, conversation, None, Some(error));
                response
            }
        }
    }

    /// Returns what a request is for, and the step that answers it. Without tools it is not a turn:
    /// agents ask for titles with the prompt in the text.
    fn choose(&self, conversation: &Conversation) -> (Kind, Option<&Step>) {
        let next = self.script.next(conversation);
        let Some((turn, step)) = next.filter(|_| !conversation.tools.is_empty()) else {
            return (Kind::Side, None);
        };
        let marker = turn.marker.clone();
        (Kind::Turn { marker, step }, Some(&turn.steps[step]))
    }

    fn answer(
        &self,
        protocol: Protocol,
        request: &Conversation,
        step: Option<&Step>,
    ) -> Result<Answer, String> {
        let aside = Step::say("fine");
        let step = step.unwrap_or(&aside);
        if let Some(hold) = &step.hold {
            self.hold(hold)?;
        }
        let mut state = self.lock();
        let mut calls = Vec::new();
        for action in &step.calls {
            state.calls += 1;
            let id = format!("call_{}", state.calls);
            calls.push(tools::call(action, &request.tools, id)?);
        }
        state.answers += 1;
        Ok(Answer {
            number: state.answers,
            thinking: step.thinking.clone(),
            text: step.text.clone(),
            calls,
            usage: protocol.usage(state.answers, step.thinking.is_some()),
        })
    }

    fn arrived(&self, kind: &Kind) {
        if let Kind::Turn { .. } = kind {
            (self.observer)(kind);
        }
        self.lock().arrived.push(kind.clone());
        self.changed.notify_all();
    }

    fn hold(&self, hold: &Hold) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        let mut state = self.lock();
        while !is_over(hold, &state) {
            if state.is_closed || Instant::now() > end {
                return Err(format!("nobody released {hold:?}"));
            }
            // A release wakes this up; a file does not.
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn log(
        &self,
        request: &Request,
        body: Value,
        kind: Kind,
        conversation: Conversation,
        answer: Option<Answer>,
        error: Option<String>,
    ) {
        let mut state = self.lock();
        let exchange = Exchange {
            number: state.exchanges.len() + 1,
            method: request.method.clone(),
            path: request.path.clone(),
            kind,
            body,
            request: conversation,
            answer,
            error,
        };
        writeln!(state.log, "{}", exchange.to_json()).expect("the log of the tests can be written");
        state.exchanges.push(exchange);
        drop(state);
        self.changed.notify_all();
    }
}

fn is_over(hold: &Hold, state: &State) -> bool {
    match hold {
        Hold::File(path) => path.exists(),
        Hold::Released(name) => state.released.contains(name),
    }
}
