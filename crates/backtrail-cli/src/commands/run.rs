//! `backtrail run`: runs a command and reports what it did to the files.

mod child;
mod executable;
mod git_moved;
mod left;
mod messages;
mod report;
mod signals;
mod summary;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use backtrail::workspace::{Active, CheckpointReason, LeftProcess};
use backtrail::{
    Checkpoint, CheckpointOptions, Note, Run, SessionId, SessionOptions, Store, Timestamp,
    Workspace,
};
use backtrail_formats::{Format, ProgramFile, formats, recognise_agent};

pub(crate) use self::child::FAILED;
use self::child::{Ended, NotRun};
use self::git_moved::GitMoved;
use self::messages::{NotClosed, Suggestions};
use super::agent_arg::AgentArg;
use super::checkpoint::too_much;
use super::following::{FollowTarget, Following};
use super::protection::{
    IncludeArgs, kept_ignored_line, lost_warning, unprotected_line, warn_over_cap,
};
use super::recovery::Finish;
use super::workspace::{RUN_VARIABLE, SESSION_VARIABLE, WorkspaceArgs, joined_session, run_around};
use super::{Answer, open_or_create_store, resolve};
use crate::error::Result;
use crate::progress;
use crate::shell::command_line;
use crate::ui::Ui;

/// Run a command and report what it did to the files
///
/// The command inherits stdin, stdout, stderr and the terminal. BACKTRAIL_SESSION holds its
/// session id; nested backtrail commands use the same session. If the command is an agent that is
/// known, its own session is followed instead, and each prompt is a step.
///
/// The exit code is the command's: 128+n after signal n, 126 if it cannot be executed, 127
/// if it is not found. 125 means that Backtrail itself failed, before or after the command.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Give the session a title [default: the command]
    #[arg(long)]
    title: Option<String>,

    /// Label the checkpoint made afterwards
    #[arg(long)]
    label: Option<String>,

    /// Continue this session instead of a new one [default: $BACKTRAIL_SESSION, if set]
    #[arg(long, value_name = "REF")]
    session: Option<String>,

    /// Follow this agent's session, or none [default: by the command's name]
    #[arg(long, value_name = "AGENT", value_parser = agent_names())]
    agent: Option<String>,

    /// Write a JSON report to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Run the command even if no checkpoint can be made first
    #[arg(long)]
    unprotected: bool,

    /// Allow a first snapshot of any size, and of / or the home directory
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    include: IncludeArgs,

    #[command(flatten)]
    here: WorkspaceArgs,

    /// The command, with its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,

    /// Where it runs, if that is not the current directory.
    #[arg(skip)]
    directory: Option<PathBuf>,
}

impl RunArgs {
    /// Returns the arguments that run a command in a directory of a workspace.
    pub(super) fn of_command(
        command: Vec<OsString>,
        directory: PathBuf,
        here: WorkspaceArgs,
    ) -> Self {
        Self {
            title: None,
            label: None,
            session: None,
            agent: None,
            report: None,
            unprotected: false,
            yes: false,
            include: IncludeArgs::default(),
            here,
            command,
            directory: Some(directory),
        }
    }
}

/// Returns whether the system finds a program and can execute it.
pub(super) fn can_start(program: &str) -> bool {
    executable::find(OsStr::new(program)).is_ok()
}

/// The name that stands for no agent.
const NO_AGENT: &str = "none";

/// Returns the names that `--agent` takes.
fn agent_names() -> AgentArg {
    AgentArg::new(formats().map(Format::name).chain([NO_AGENT]))
}

/// Runs the command. Failures are reported here: the exit code belongs to the command.
pub(crate) fn run(args: &RunArgs, ui: &Ui) -> Result<Answer> {
    let running = Running {
        args,
        ui,
        line: command_line(&args.command),
    };
    let code = running.run().unwrap_or_else(|not_run| {
        ui.error(&not_run.error);
        not_run.code
    });
    Ok(Answer::Code(code))
}

struct Running<'a> {
    args: &'a RunArgs,
    ui: &'a Ui,
    /// The command as typed.
    line: String,
}

/// The state before the command starts.
struct Begun {
    /// The workspace and its files as they were; `None` if no checkpoint could be made.
    before: Option<(Workspace, Checkpoint)>,
    /// `None` if it could not be created, or the agent's own session is followed instead.
    session: Option<(Store, SessionId)>,
    /// Follows the agent.
    following: Option<Following>,
    /// Whether the session was created for this run.
    is_new: bool,
    /// Held to mark the command as running.
    _active: Option<Active>,
}

impl Begun {
    fn start(&self) -> Option<&Checkpoint> {
        self.before.as_ref().map(|(_, start)| start)
    }
}

/// What a run's checkpoints belong to.
#[derive(Clone, Copy)]
enum RunOwner<'a> {
    /// A session that was named.
    Session(&'a SessionId),
    /// A session of its own.
    NewSession,
    /// The agent's own session, which comes later.
    Agent,
}

/// Returns whether an agent's turn began within a run.
fn has_turns(workspace: &Workspace, run: &Checkpoint) -> Result<bool> {
    for checkpoint in workspace.checkpoints_back()? {
        let checkpoint = checkpoint?;
        if checkpoint.id() == run.id() {
            break;
        }
        if checkpoint.agent().is_some() && checkpoint.reason() == &CheckpointReason::TurnStart {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How the command ended.
struct Finished {
    ended: Ended,
    /// Whether the system refused to start it.
    refused: bool,
    started_at: Timestamp,
    took: Duration,
    directory: PathBuf,
}

impl<'a> Running<'a> {
    fn run(&self) -> Result<u8, NotRun> {
        self.check().map_err(messages::refused)?;
        child::check(&self.args.command)?;
        let mut begun = self.begin()?;
        let start = begun.start().map(|start| start.id().to_string());
        let mut env = Vec::new();
        env.extend(start.as_ref().map(|id| (RUN_VARIABLE, OsStr::new(id))));
        // Absolute, so that the command can change its directory.
        let store = self.ui.store_dir();
        if let Ok((store, _)) = &store {
            env.push(("BACKTRAIL_HOME", store.as_os_str()));
        }
        if let Some((_, session)) = &begun.session {
            env.push((SESSION_VARIABLE, OsStr::new(session.as_str())));
        }
        let directory = self.args.directory.clone();
        let directory = directory.or_else(|| std::env::current_dir().ok());
        left::adopt_orphans();
        let started_at = Timestamp::from(SystemTime::now());
        let began = Instant::now();
        let (ended, not_run) = match child::run(&self.args.command, &env, directory.as_deref()) {
            Ok(ended) => (ended, None),
            // Nothing ran; that is reported after the run is closed.
            Err(not_run) => (Ended::Code(not_run.code), Some(not_run)),
        };
        let finished = Finished {
            ended,
            refused: not_run.is_some(),
            started_at,
            took: began.elapsed(),
            directory: directory.unwrap_or_default(),
        };
        let closed = self
            .end_following(&mut begun)
            .and_then(|()| self.close(&begun, &finished));
        match (not_run, closed) {
            (Some(not_run), _) => Err(not_run),
            (None, Err(failed)) => Err(failed.report(ended, &self.suggestions())),
            (None, Ok(())) => Ok(ended.code()),
        }
    }

    /// Returns how suggested commands begin and end.
    fn suggestions(&self) -> Suggestions<'a> {
        Suggestions {
            program: self.ui.program(),
            workspace: self.args.here.flag(),
        }
    }

    /// Refuses arguments that would fail only after the command has ended.
    fn check(&self) -> Result<()> {
        if let Some(label) = &self.args.label {
            CheckpointOptions::new().label(label.as_str()).check()?;
        }
        self.args.report.as_deref().map_or(Ok(()), report::check)
    }

    /// Makes the checkpoint before the command, in its session.
    fn begin(&self) -> Result<Begun, NotRun> {
        match self.protect() {
            Ok(begun) => Ok(begun),
            // A command would find a mixture of two states, and change it.
            Err(error) if self.is_rewind_open() => Err(messages::not_started(error)),
            Err(error) if self.args.include.may_be_wrong(&error) => Err(messages::refused(error)),
            Err(error) if self.args.unprotected => {
                self.ui.warning(&messages::runs_unprotected(&error), None);
                let session = self.session_alone().ok();
                Ok(Begun {
                    before: None,
                    is_new: session.as_ref().is_some_and(|(.., is_new)| *is_new),
                    session: session.map(|(store, id, _)| (store, id)),
                    following: None,
                    _active: None,
                })
            }
            Err(error) => Err(messages::not_protected(
                error,
                &self.suggestions(),
                &self.line,
            )),
        }
    }

    /// Returns whether a rewind is half done here.
    fn is_rewind_open(&self) -> bool {
        let found = self.args.here.find(self.ui, Finish::Never);
        let unfinished = found.map(|found| found.and_then(|it| it.unfinished().ok().flatten()));
        unfinished.is_ok_and(|unfinished| unfinished.is_some())
    }

    fn protect(&self) -> Result<Begun> {
        let here = &self.args.here;
        let workspace = here.open_or_create(self.args.yes, self.ui)?;
        let named = self.named_session(workspace.store())?;
        let agent = self.agent().filter(|_| named.is_none());
        let owner = match (&named, agent) {
            (Some(id), _) => RunOwner::Session(id),
            (None, Some(_)) => RunOwner::Agent,
            (None, None) => RunOwner::NewSession,
        };
        let (start, session) = self.first_checkpoint(&workspace, owner)?;
        self.say_what_is_protected(&workspace, &start);
        let following = agent.and_then(|agent| self.follow(&workspace, &start, agent));
        Ok(Begun {
            // Marking it as running is a courtesy.
            _active: workspace.activate(&start).ok(),
            session: session.map(|session| (workspace.store().clone(), session)),
            following,
            is_new: named.is_none(),
            before: Some((workspace, start)),
        })
    }

    /// Returns the agent that the command starts.
    fn agent(&self) -> Option<&'static dyn Format> {
        if let Some(name) = &self.args.agent {
            return formats().find(|format| format.name() == name);
        }
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let directory = std::env::current_dir().unwrap_or_default();
        let find = |name: &OsStr| ProgramFile::find(name, &paths, &directory);
        recognise_agent(&self.args.command, &find)
    }

    /// Begins to follow the agent. Without that, the run is protected as a whole.
    fn follow(
        &self,
        workspace: &Workspace,
        start: &Checkpoint,
        agent: &'static dyn Format,
    ) -> Option<Following> {
        let target = FollowTarget {
            store: workspace.store().clone(),
            formats: vec![agent],
            workspace: Some((workspace.clone(), workspace.root().to_owned())),
            run: Some(start.id()),
            report: None,
        };
        match Following::start(target) {
            Ok(following) => Some(following),
            Err(error) => {
                let what = format!("cannot follow {}: {}", agent.title(), error.with_causes());
                self.ui.warning(&what, Some("this run is one step"));
                None
            }
        }
    }

    /// Ends following. If no session of the agent appeared, the run gets one of its own.
    fn end_following(&self, begun: &mut Begun) -> Result<(), NotClosed> {
        let work = begun.following.take().map(Following::finish);
        let Some((workspace, start)) = &begun.before else {
            return Ok(());
        };
        if begun.session.is_some() {
            return Ok(());
        }
        let work = work.unwrap_or_default();
        for problem in work.problems {
            let what = format!("while following the agent: {}", problem.with_causes());
            self.ui.warning(&what, None);
        }
        let session = || -> Result<Option<SessionId>> {
            if !work.sessions.is_empty() || has_turns(workspace, start)? {
                return Ok(None);
            }
            let options = self.session_options().workspace(workspace);
            let session = workspace.store().create_session(options)?.id().clone();
            workspace.bind_here(&[start.id()], &session)?;
            Ok(Some(session))
        };
        let session = session().map_err(NotClosed::NotRecorded)?;
        begun.session = session.map(|session| (workspace.store().clone(), session));
        Ok(())
    }

    /// Reports what is not protected before the first run in a workspace, and what a first
    /// snapshot keeps.
    fn say_what_is_protected(&self, workspace: &Workspace, start: &Checkpoint) {
        let Some(protection) = start.protection() else {
            return;
        };
        warn_over_cap(protection, self.ui);
        if is_first_run(workspace)
            && let Some(line) = unprotected_line(protection)
        {
            self.ui.status(&format!("backtrail: {line}"));
        }
        if let Some(line) = kept_ignored_line(protection) {
            self.ui.status(&format!("backtrail: {line}"));
        }
    }

    /// Returns the session of a command that runs without a checkpoint, and whether it is new.
    fn session_alone(&self) -> Result<(Store, SessionId, bool)> {
        let store = open_or_create_store(self.ui)?;
        let named = self.named_session(&store)?;
        let is_new = named.is_none();
        let id = match named {
            Some(id) => id,
            None => store.create_session(self.session_options())?.id().clone(),
        };
        Ok((store, id, is_new))
    }

    /// Returns the session that is named, or the one around us.
    fn named_session(&self, store: &Store) -> Result<Option<SessionId>> {
        match &self.args.session {
            Some(reference) => resolve(store, reference).map(Some),
            None => joined_session(store),
        }
    }

    fn first_checkpoint(
        &self,
        workspace: &Workspace,
        owner: RunOwner<'_>,
    ) -> Result<(Checkpoint, Option<SessionId>)> {
        let mut options = CheckpointOptions::new()
            .reason(CheckpointReason::RunStart)
            .about(&self.line);
        // A run within a run of this workspace is a part of that.
        if let Some(around) = run_around(workspace)? {
            options = options.begun_by(around);
        }
        let options = if self.args.yes {
            options.unlimited()
        } else {
            options
        };
        let options = self.args.include.add_to(options, workspace.root())?;
        let made = progress::checkpoint(self.ui, options, |options| {
            match owner {
                RunOwner::Session(id) => {
                    let checkpoint = workspace.checkpoint(options.session(id))?;
                    Ok((checkpoint, Some(id.clone())))
                }
                RunOwner::NewSession => {
                    let session = self.session_options();
                    let made = workspace.checkpoint_in_new_session(options, session)?;
                    // The session is not locked while the command runs: the command may
                    // write to it.
                    Ok((made.0, Some(made.1.id().clone())))
                }
                RunOwner::Agent => Ok((workspace.checkpoint(options)?, None)),
            }
        });
        made.map_err(|error| self.args.include.explain(too_much(error)))
    }

    fn session_options(&self) -> SessionOptions {
        let title = self.args.title.as_deref().unwrap_or(&self.line);
        SessionOptions::new().title(title)
    }

    /// Makes the checkpoint after the command, records the run in its session, and reports
    /// what changed.
    fn close(&self, begun: &Begun, finished: &Finished) -> Result<(), NotClosed> {
        let left = left::left_running();
        let end = self.last_checkpoint(begun, finished, left.clone());
        let run = self.record(begun, finished, end.as_ref().ok().and_then(Option::as_ref));
        let recorded = match &begun.session {
            Some((store, session)) => store.record_run(session, &run).map(drop),
            None => Ok(()),
        };
        self.mark_failed(begun, finished);
        let end = end.map_err(NotClosed::NoCheckpoint)?;
        recorded.map_err(|error| NotClosed::NotRecorded(error.into()))?;
        let changes = end.as_ref().map(Checkpoint::changes).transpose();
        let changes = changes.map_err(|error| NotClosed::NotCompared(error.into()))?;
        let git = begun.before.as_ref().zip(end.as_ref());
        let git = git.and_then(|((workspace, start), end)| {
            GitMoved::between(workspace.root(), start.git_head(), end.git_head())
        });
        let reported = self.args.report.as_ref().map_or(Ok(()), |path| {
            let outcome = report::Outcome {
                run: &run,
                end: end.as_ref(),
                changes: changes.as_ref(),
                git: git.as_ref(),
            };
            report::write(path, begun, &outcome)
        });
        let lines = match (&begun.before, &end, &changes) {
            (Some((workspace, _)), Some(end), Some(changes)) => {
                let root = workspace.root();
                let mut summary = summary::Summary::new(root, changes, end, finished.took);
                summary.git = git;
                summary.lines(&self.suggestions(), self.ui.remark_width())
            }
            _ => vec![summary::unprotected(finished.took)],
        };
        let lost = end.as_ref().map(Checkpoint::unprotected);
        if let Some(text) = lost.and_then(lost_warning) {
            let hint = "protect ignored paths from now on: --include-ignored PATH";
            self.ui.warning(&text, Some(hint));
        }
        if let Some((what, hint)) = left::warning(&left) {
            self.ui.warning(&what, Some(&hint));
        }
        self.ui.summary(&lines);
        reported.map_err(NotClosed::NotReported)
    }

    /// Marks a session whose only command could not be started. That it has no record of what
    /// a command did is then no surprise.
    fn mark_failed(&self, begun: &Begun, finished: &Finished) {
        if let Some((store, session)) = &begun.session
            && begun.is_new
            && finished.refused
        {
            let title = self.args.title.as_deref().unwrap_or(&self.line);
            let note = Note::new().title(format!("{title} (failed: not started)"));
            // The record of the run has it, too.
            store.note(session, &note).ok();
        }
    }

    /// Makes the checkpoint after the command, if there is one before it.
    fn last_checkpoint(
        &self,
        begun: &Begun,
        finished: &Finished,
        left: Vec<LeftProcess>,
    ) -> Result<Option<Checkpoint>> {
        let Some((workspace, start)) = &begun.before else {
            return Ok(None);
        };
        let mut options = CheckpointOptions::new()
            .reason(CheckpointReason::RunEnd)
            .begun_by(start.id())
            .ending(finished.ended.ending())
            .left_running(left)
            .about(&self.line);
        if let Some((_, session)) = &begun.session {
            options = options.session(session);
        }
        if let Some(label) = &self.args.label {
            options = options.label(label.as_str());
        }
        // A rewind from elsewhere may have been interrupted while the command ran.
        Finish::ToWrite.finish(workspace, self.ui)?;
        let made = progress::checkpoint(self.ui, options, |options| workspace.checkpoint(options));
        Ok(Some(made?))
    }

    fn record(&self, begun: &Begun, finished: &Finished, end: Option<&Checkpoint>) -> Run {
        let (exit_code, signal) = finished.ended.code_or_signal();
        Run {
            argv: self.args.command.clone(),
            directory: finished.directory.clone(),
            started_at: finished.started_at,
            duration_ms: u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX),
            exit_code,
            signal,
            before: begun.start().map(Checkpoint::id),
            after: end.map(Checkpoint::id),
        }
    }
}

/// Returns whether the run that has just begun is the first in its workspace.
fn is_first_run(workspace: &Workspace) -> bool {
    let Ok(checkpoints) = workspace.checkpoints_back() else {
        return false;
    };
    let is_start = |it: &Checkpoint| *it.reason() == CheckpointReason::RunStart;
    checkpoints.flatten().filter(is_start).nth(1).is_none()
}
