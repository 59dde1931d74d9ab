//! One moment of an agent's work: what is stored for it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use backtrail::workspace::{AgentPlace, AgentTurn, CheckpointReason, Process};
use backtrail::{Checkpoint, CheckpointOptions, Workspace};
use backtrail_formats::{HookEvent, HookKind, ToolEffect, bind_new, hook_takes_context};

use super::HookArgs;
use super::agent_process::agent_process;
use super::background::Background;
use crate::commands::import::{failed, import_options};
use crate::commands::setup::{fired_file, last_failure};
use crate::commands::workspace::{run_around, too_wide};
use crate::commands::{open_files_store, open_or_create_store};
use crate::error::{CommandError, Result};
use crate::files;
use crate::home::{current_dir, tilde};
use crate::settings::Settings;
use crate::text::one_line;
use crate::ui::Ui;

/// When an import is tried again: agents write the end of a turn a moment after they report it.
const TRIES: [Duration; 3] = [
    Duration::from_millis(150),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// How long the agent waits for the record that it did not wait for a snapshot.
const MARK_WAIT: Duration = Duration::from_millis(250);

/// How many checkpoints back an agent's session is looked for. What was undone before so many of
/// others matters no more, and a new session must not read the whole trail.
const LOOK_BACK: usize = 200;
/// How many checkpoints back a turn of a session may have begun that has later ones.
const LONGEST_TURN: usize = 5000;

/// What the agent is to show or to pass on.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// A line for the user.
    pub(super) shown: Option<String>,
    /// A line for the model.
    pub(super) context: Option<String>,
}

/// A moment of an agent's work.
pub(super) struct Moment<'a> {
    args: &'a HookArgs,
    payload: &'a [u8],
    event: &'a HookEvent,
    ui: &'a Ui,
}

impl<'a> Moment<'a> {
    pub(super) fn new(
        args: &'a HookArgs,
        payload: &'a [u8],
        event: &'a HookEvent,
        ui: &'a Ui,
    ) -> Self {
        Self {
            args,
            payload,
            event,
            ui,
        }
    }

    /// Stores what is due, and adds what to tell, which is told even if storing fails.
    pub(super) fn act(&self, lines: &mut Lines) -> Result<()> {
        let directory = self.directory()?;
        if let Some(what) = too_wide(&directory) {
            self.refuse(&what, lines);
            return Ok(());
        }
        match &self.event.kind {
            HookKind::SessionStart { .. } => self.session_starts(&directory, lines),
            HookKind::Prompt { .. } => self.work(&directory, lines),
            HookKind::ToolStart { effect, .. } | HookKind::ToolEnd { effect, .. } => match effect {
                ToolEffect::MayChangeFiles => self.work(&directory, lines),
                ToolEffect::ReadsOnly => self.sign(&directory),
            },
            HookKind::TurnEnd | HookKind::SessionEnd => self.turn_ends(&directory, lines),
            _ => self.sign(&directory),
        }
    }

    /// Does what an earlier call left to the background.
    pub(super) fn in_background(&self, what: Background) -> Result<()> {
        let workspace = self.workspace(&self.directory()?)?;
        match what {
            Background::First => {
                if workspace.last_checkpoint()?.is_none() {
                    let first = CheckpointOptions::new().reason(CheckpointReason::First);
                    workspace.checkpoint(first)?;
                }
                Ok(())
            }
            Background::Late => self.checkpoint(&workspace, CheckpointOptions::new().late()),
            Background::Missed => {
                self.mark_missed(&workspace, self.settings()?.hook_wait.value)?;
                self.checkpoint(&workspace, CheckpointOptions::new().late())
            }
            Background::Import => self.import(&workspace),
        }
    }

    /// Returns the directory that the agent works in, which may be one within a workspace.
    fn directory(&self) -> Result<PathBuf> {
        match &self.event.directory {
            Some(directory) => Ok(directory.clone()),
            None => current_dir(),
        }
    }

    /// Opens the workspace around a directory, creating it if it is new.
    fn workspace(&self, directory: &Path) -> Result<Workspace> {
        let store = open_or_create_store(self.ui)?;
        let root = store.workspace_root(directory)?;
        match too_wide(&root) {
            Some(what) => Err(CommandError::invalid(what)),
            None => Ok(store.workspace(&root)?),
        }
    }

    /// Opens the workspace around a directory, if it is known.
    fn known_workspace(&self, directory: &Path) -> Result<Option<Workspace>> {
        let Some(store) = open_files_store(self.ui)? else {
            return Ok(None);
        };
        let root = store.workspace_root(directory)?;
        Ok(store.find_workspace(&root)?)
    }

    /// Tells once for each session that the directory is not protected.
    fn refuse(&self, what: &str, lines: &mut Lines) {
        let is_start = matches!(self.event.kind, HookKind::SessionStart { .. });
        let shown = format!("backtrail: {what}; start the agent in a project to be able to undo");
        lines.shown = is_start.then_some(shown);
    }

    /// Begins the first snapshot in the background, so that the first prompt need not wait.
    fn session_starts(&self, directory: &Path, lines: &mut Lines) -> Result<()> {
        let known = self.known_workspace(directory)?;
        let (store, _) = self.ui.store_dir()?;
        let shown = match known {
            Some(workspace) if workspace.last_checkpoint()?.is_some() => {
                let failure = last_failure(&store, self.event.agent);
                failure.map_or_else(
                    || "backtrail: undo ready".to_owned(),
                    |reason| format!("backtrail: the last call failed: {reason}"),
                )
            }
            _ => {
                self.workspace(directory)?;
                Background::First.start(self.args, self.payload, self.ui)?;
                format!(
                    "backtrail: taking the first snapshot of {}",
                    tilde(directory)
                )
            }
        };
        lines.shown = Some(shown);
        Ok(())
    }

    /// A prompt came, or a tool that may change files runs or has run.
    fn work(&self, directory: &Path, lines: &mut Lines) -> Result<()> {
        let workspace = self.workspace(directory)?;
        lines.context = self.undone(&workspace)?;
        self.protect(&workspace, lines)
    }

    fn turn_ends(&self, directory: &Path, lines: &Lines) -> Result<()> {
        let Some(workspace) = self.known_workspace(directory)? else {
            return Ok(());
        };
        self.protect(&workspace, lines)?;
        Background::Import.start(self.args, self.payload, self.ui)
    }

    /// Notes that the agent is at work.
    fn sign(&self, directory: &Path) -> Result<()> {
        let place = self.place()?;
        if let Some(workspace) = self.known_workspace(directory)?
            && let Some(turn) = workspace.agent_turn(&place)?
        {
            turn.sign();
        }
        Ok(())
    }

    /// Makes the checkpoint of this moment, and waits for it for a moment only. If it takes
    /// longer, that is recorded, and a later one is made in the background.
    fn checkpoint_in_time(&self, workspace: &Workspace, lines: &Lines) -> Result<()> {
        let wait = self.settings()?.hook_wait.value;
        let (done, result) = channel();
        let made = thread::scope(|scope| -> Result<Option<()>> {
            let work = || {
                let made = self.checkpoint(workspace, CheckpointOptions::new());
                done.send(made).ok();
            };
            let spawned = thread::Builder::new().spawn_scoped(scope, work);
            if spawned.is_err() {
                return self
                    .checkpoint(workspace, CheckpointOptions::new())
                    .map(Some);
            }
            match result.recv_timeout(wait) {
                Ok(made) => made.map(Some),
                Err(RecvTimeoutError::Timeout) => self.give_up(workspace, wait, lines),
                Err(RecvTimeoutError::Disconnected) => Ok(None),
            }
        })?;
        made.ok_or_else(|| CommandError::invalid("the snapshot's thread died"))
    }

    /// Makes the checkpoint of this moment. If that fails, the turn is marked.
    fn protect(&self, workspace: &Workspace, lines: &Lines) -> Result<()> {
        let made = self.checkpoint_in_time(workspace, lines);
        if let (Err(error), Ok(place)) = (&made, self.place()) {
            // The failure itself is noted elsewhere, too.
            let reason = one_line(&error.with_causes(), 200);
            workspace.record_missed(&place, &reason).ok();
        }
        made
    }

    /// Lets the agent continue without the snapshot.
    fn give_up(&self, workspace: &Workspace, wait: Duration, lines: &Lines) -> ! {
        // Another process may hold the lock of the trail for however long.
        let (done, marked) = channel();
        thread::scope(|scope| {
            let mark = || drop(done.send(self.mark_missed(workspace, wait)));
            let spawned = thread::Builder::new().spawn_scoped(scope, mark);
            let is_marked = spawned.is_ok() && marked.recv_timeout(MARK_WAIT).is_ok();
            let rest = match is_marked {
                true => Background::Late,
                false => Background::Missed,
            };
            rest.start(self.args, self.payload, self.ui).ok();
            super::answer(self.event, lines);
            // The snapshot in this process is abandoned: nothing names what it stored.
            std::process::exit(0)
        })
    }

    /// Records that the agent did not wait for this moment's snapshot.
    fn mark_missed(&self, workspace: &Workspace, wait: Duration) -> Result<()> {
        let reason = format!("the snapshot took longer than {wait:?}");
        Ok(workspace.record_missed(&self.place()?, &reason)?)
    }

    /// Makes the checkpoint of this moment.
    fn checkpoint(&self, workspace: &Workspace, options: CheckpointOptions) -> Result<()> {
        let place = self.place()?;
        let open = workspace.agent_turn(&place)?;
        match &self.event.kind {
            HookKind::Prompt { text } => {
                self.begin_turn(workspace, &place, options, text.as_deref())?;
            }
            HookKind::ToolStart { .. } => {
                let turn = self.open_turn(workspace, &place, open)?;
                turn.begin_tool(&place, options)?;
            }
            // Without its beginning, a turn or call has no end.
            HookKind::ToolEnd { .. } => {
                if let Some(turn) = open {
                    turn.end_tool(&place, options)?;
                }
            }
            _ => {
                if let Some(turn) = open {
                    turn.end(&place, options)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the turn that is running. Hooks may have been installed in the middle of one.
    fn open_turn(
        &self,
        workspace: &Workspace,
        place: &AgentPlace,
        open: Option<AgentTurn>,
    ) -> Result<AgentTurn> {
        if let Some(turn) = open {
            return Ok(turn);
        }
        // Another hook of this session may begin it at this moment. Without the lock, at worst
        // the calls are in two turns.
        let (store, _) = self.ui.store_dir()?;
        let _held = files::hold(&fired_file(&store, self.event.agent));
        match workspace.agent_turn(place)? {
            Some(turn) => Ok(turn),
            None => self.begin_turn(workspace, place, CheckpointOptions::new(), None),
        }
    }

    fn begin_turn(
        &self,
        workspace: &Workspace,
        place: &AgentPlace,
        mut options: CheckpointOptions,
        prompt: Option<&str>,
    ) -> Result<AgentTurn> {
        if let Some(prompt) = prompt {
            options = options.agent_prompt(prompt);
        }
        if let Some(run) = run_around(workspace)? {
            options = options.begun_by(run);
        }
        let mut place = place.clone();
        (place.call, place.tool) = (None, None);
        // In the background the agent is not above us any more.
        let process = match self.args.agent_process {
            Some(pid) => Process::running(pid),
            None => agent_process(),
        };
        Ok(workspace.begin_agent_turn(&place, options, process)?)
    }

    /// Returns the place in the agent's session that this moment is at.
    fn place(&self) -> Result<AgentPlace> {
        let event = self.event;
        let session = event.session.as_deref();
        let session = session.ok_or_else(|| CommandError::invalid("the agent names no session"))?;
        let mut place = AgentPlace::new(event.agent, session);
        place.source = event
            .transcript
            .as_ref()
            .and_then(|it| it.to_str().map(str::to_owned));
        match &event.kind {
            HookKind::ToolStart { call, name, .. } | HookKind::ToolEnd { call, name, .. } => {
                place.call.clone_from(call);
                place.tool = (!name.is_empty()).then(|| name.clone());
            }
            _ => {}
        }
        Ok(place)
    }

    fn settings(&self) -> Result<Settings> {
        let (dir, _) = self.ui.store_dir()?;
        Settings::read(&dir)
    }

    /// Imports what the agent wrote, and binds the checkpoints to it.
    fn import(&self, workspace: &Workspace) -> Result<()> {
        let options = import_options(workspace.store().root())?;
        let place = [self.place()?];
        bind_new(workspace, &place, &options).map_err(|error| failed(&error))?;
        for pause in TRIES {
            if !workspace.has_unbound(&place[0])? {
                break;
            }
            thread::sleep(pause);
            bind_new(workspace, &place, &options).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Returns a line about what was undone since the agent was last told, so that it does not do
    /// it again; none if it is not told in this event.
    fn undone(&self, workspace: &Workspace) -> Result<Option<String>> {
        let is_told = hook_takes_context(self.event.agent, &self.event.kind);
        if !is_told || !self.settings()?.tell_agents.value {
            return Ok(None);
        }
        // The same event told it last.
        let last = match self.event.kind {
            HookKind::ToolStart { .. } => CheckpointReason::ToolStart,
            _ => CheckpointReason::TurnStart,
        };
        let moves = since_last(&last, workspace, &self.place()?)?;
        let mut undone: Vec<String> = Vec::new();
        for checkpoint in moves.iter().rev() {
            let about = checkpoint
                .about()
                .map(|about| one_line(&about.to_string(), 120));
            match checkpoint.reason() {
                CheckpointReason::Undo | CheckpointReason::Rewind | CheckpointReason::Restore => {
                    undone.extend(about);
                }
                CheckpointReason::Redo => drop(undone.pop()),
                _ => {}
            }
        }
        let what = match undone.as_slice() {
            [] => return Ok(None),
            all => all.join("; "),
        };
        Ok(Some(format!(
            "The user undid this since your last turn: {what}. The files are as they were before \
             it; do not do it again unless asked."
        )))
    }
}

/// Returns the checkpoints since the last one of an agent's session with this reason, newest
/// first; none if the session has no checkpoint here lately.
fn since_last(
    reason: &CheckpointReason,
    workspace: &Workspace,
    place: &AgentPlace,
) -> Result<Vec<Checkpoint>> {
    let mut since = Vec::new();
    let mut is_known = false;
    for checkpoint in workspace.checkpoints_back()? {
        let checkpoint = checkpoint?;
        let agent = checkpoint.agent();
        let is_own = agent.is_some_and(|it| it.is_in_session_of(place));
        if is_own && checkpoint.reason() == reason {
            return Ok(since);
        }
        is_known |= is_own;
        since.push(checkpoint);
        let most = if is_known { LONGEST_TURN } else { LOOK_BACK };
        if since.len() >= most {
            break;
        }
    }
    Ok(Vec::new())
}
