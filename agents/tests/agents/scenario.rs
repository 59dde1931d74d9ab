//! A project, an agent with an empty home, its scripted model, and Backtrail with an empty store.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};

use backtrail_agent_tests::{Exchange, Kind, Observer, Script, Server};
use serde_json::Value;
use tempfile::TempDir;

use crate::agent::{Agent, Place, Start};
use crate::program::{Ran, finish, variable};
use crate::settings;
use crate::tree::Tree;

/// How long an agent may take for a prompt.
const PATIENCE_SECONDS: &str = "180";

/// An agent at work.
pub(crate) struct Scenario<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) place: Place,
    pub(crate) server: Server,
    /// The prompts so far.
    pub(crate) turns: Vec<Done>,
    states: Arc<Mutex<Vec<State>>>,
    /// What a second agent needs.
    environment: Vec<(&'static str, String)>,
    dir: TempDir,
}

/// A prompt that was answered.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) prompt: String,
    /// The files before and after it.
    pub(crate) before: Tree,
    pub(crate) after: Tree,
    /// What `run --report` wrote; null without `run`.
    pub(crate) report: Value,
}

/// `backtrail watch`, which runs until this is dropped.
pub(crate) struct Watch {
    child: Child,
    /// Kept, as it may write more.
    _stderr: BufReader<ChildStderr>,
}

impl Watch {
    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The files when the model was asked for a step, which is before the calls of that step.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) step: Kind,
    pub(crate) tree: Tree,
}

/// What protects the files while an agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    /// `backtrail run`.
    Run,
    /// The hooks that `backtrail setup` installed.
    Hooks,
    /// `backtrail watch`, beside it.
    Watch,
}

impl<'a> Scenario<'a> {
    /// Makes the project and starts the model. The script knows the project's directory.
    pub(crate) fn new(agent: &'a Agent, script: impl FnOnce(&Path) -> Script) -> Self {
        let dir = tempfile::Builder::new().prefix("agent-").tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [home, project] = ["home", "project"].map(|name| root.join(name));
        for dir in [&home, &project] {
            std::fs::create_dir(dir).unwrap();
        }
        let states = Arc::new(Mutex::new(Vec::new()));
        let observer = observer(&states, &project);
        let log = root.join("requests.jsonl");
        let server = Server::start_observed(script(&project), &log, observer).unwrap();
        let port = server.port();
        let place = Place {
            home,
            project,
            port,
        };
        settings::write(agent, &place);
        let environment = settings::environment(agent, &place);
        Self {
            agent,
            place,
            server,
            turns: Vec::new(),
            states,
            environment,
            dir,
        }
    }

    /// Makes it possible to start another agent too.
    pub(crate) fn add_agent(&mut self, other: &Agent) {
        settings::write(other, &self.place);
        for (name, value) in settings::environment(other, &self.place) {
            match self
                .environment
                .iter_mut()
                .find(|(known, _)| *known == name)
            {
                Some((_, known)) if name == "PATH" => *known = format!("{value}:{known}"),
                Some(_) => {}
                None => self.environment.push((name, value)),
            }
        }
    }

    /// Returns the files of the project.
    pub(crate) fn tree(&self) -> Tree {
        Tree::read(&self.place.project)
    }

    /// Returns the files as they were before each step of each turn.
    pub(crate) fn states(&self) -> Vec<State> {
        self.states.lock().unwrap().clone()
    }

    /// Returns a path in the project.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.place.project.join(name)
    }

    /// Returns a path beside the project.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.place.project.with_file_name(name)
    }

    /// Gives the agent a prompt and waits until it is done.
    pub(crate) fn prompt(&mut self, under: Under, start: &Start, prompt: &str) -> &Done {
        self.prompt_while(under, start, prompt, |_| {})
    }

    /// Gives another agent a prompt and waits until it is done.
    pub(crate) fn prompt_as(&mut self, agent: &Agent, under: Under, start: &Start, prompt: &str) {
        let words = agent.command(under, start, prompt);
        self.run_prompt(words, under, prompt, |_| {});
    }

    /// Gives the agent a prompt, does something while it works, and waits until it is done.
    pub(crate) fn prompt_while(
        &mut self,
        under: Under,
        start: &Start,
        prompt: &str,
        meanwhile: impl FnOnce(&Self),
    ) -> &Done {
        let words = self.agent.command(under, start, prompt);
        self.run_prompt(words, under, prompt, meanwhile)
    }

    fn run_prompt(
        &mut self,
        mut words: Vec<OsString>,
        under: Under,
        prompt: &str,
        meanwhile: impl FnOnce(&Self),
    ) -> &Done {
        let before = self.tree();
        let asked = self.server.exchanges().len();
        let report = self.beside(&format!("report-{}.json", self.turns.len()));
        if under == Under::Run {
            words.splice(..0, run_words(&report));
        }
        let ran = std::thread::scope(|scope| {
            let agent = scope.spawn(|| self.start(&words));
            meanwhile(self);
            agent.join().unwrap()
        });
        let exchanges = self.server.exchanges();
        assert_eq!(ran.code, 0, "{}: {ran:#?}", self.agent.name);
        assert_answered(prompt, &exchanges[asked..], &ran);
        let report = std::fs::read(report).map(|bytes| serde_json::from_slice(&bytes).unwrap());
        self.turns.push(Done {
            prompt: prompt.to_owned(),
            before,
            after: self.tree(),
            report: report.unwrap_or_default(),
        });
        self.turns.last().expect("a turn was just added")
    }

    /// Runs a command as the agent would be: in the project, with its home and environment.
    pub(crate) fn start(&self, words: &[OsString]) -> Ran {
        let limit = ["timeout", "--kill-after=10", PATIENCE_SECONDS].map(OsString::from);
        finish(&mut self.command(&[&limit, words].concat()))
    }

    /// Runs Backtrail in the project.
    pub(crate) fn backtrail(&self, words: &[&str]) -> Ran {
        self.start(&backtrail_words(words))
    }

    /// Starts `backtrail watch` in the project, and waits until it watches.
    pub(crate) fn watch(&self) -> Watch {
        let mut command = self.command(&backtrail_words(&["watch"]));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("watching") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "watch ended");
        }
        Watch {
            child,
            _stderr: stderr,
        }
    }

    fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.place.project)
            .env_clear();
        command.envs(self.environment.iter().cloned());
        command.env("BACKTRAIL_HOME", self.beside("store"));
        command
    }

    /// Whether the program has a verb.
    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        let ran = self.backtrail(&[verb, "--help"]);
        let is_unknown = ran.stderr.contains("unrecognized subcommand");
        assert!(ran.code == 0 || is_unknown, "{ran:#?}");
        !is_unknown
    }
}

fn backtrail_words(words: &[&str]) -> Vec<OsString> {
    let program = OsString::from(variable("BACKTRAIL_PROGRAM"));
    let words = words.iter().map(OsString::from);
    std::iter::once(program).chain(words).collect()
}

fn run_words(report: &Path) -> Vec<OsString> {
    backtrail_words(&["run", "--report", &report.to_string_lossy(), "--"])
}

fn observer(states: &Arc<Mutex<Vec<State>>>, project: &Path) -> Observer {
    let (states, project) = (Arc::clone(states), project.to_owned());
    Box::new(move |step| {
        let (step, tree) = (step.clone(), Tree::read(&project));
        states.lock().unwrap().push(State { step, tree });
    })
}

/// Fails unless the model was asked for the last step of a turn whose marker the prompt has.
fn assert_answered(prompt: &str, exchanges: &[Exchange], ran: &Ran) {
    let errors: Vec<_> = exchanges
        .iter()
        .filter_map(|exchange| exchange.error.as_ref())
        .collect();
    let last = exchanges
        .iter()
        .rev()
        .find_map(|exchange| match &exchange.kind {
            Kind::Turn { marker, .. } if prompt.contains(marker) => exchange.answer.as_ref(),
            _ => None,
        });
    let is_done = last.is_some_and(|answer| answer.calls.is_empty());
    assert!(
        is_done,
        "{prompt:?} was not answered to its end; {errors:?}; {ran:#?}"
    );
}

impl Drop for Scenario<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("BACKTRAIL_TEST_KEEP").is_some() {
            self.dir.disable_cleanup(true);
            println!(
                "AGENT {}: kept {}",
                self.agent.name,
                self.dir.path().display()
            );
        }
    }
}
