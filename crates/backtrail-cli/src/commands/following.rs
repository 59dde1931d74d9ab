//! Follows agents while they work: what they write is imported, and a checkpoint is made as each
//! prompt appears, after tool calls, and at the end of a turn.
//!
//! One thread imports, so that the store has a record at once; another one takes snapshots, one
//! at a time, and of those that are due only the newest. Where hooks report the same, they are more
//! exact, and only the places of their checkpoints are found here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use backtrail::workspace::{AgentPlace, AgentTurn, Process};
use backtrail::{CheckpointId, CheckpointOptions, SessionId, Store, Workspace};
use backtrail_formats::{
    Environment, FollowOptions, Followed, FollowedKind, Follower, Format, StopHandle, Wake,
};

use super::import::{exclude, failed};
use super::setup::fired_file;
use super::workspace::too_wide;
use crate::error::{CommandError, Result};

/// How long the end waits for another process that is importing.
const LAST_TRIES: Duration = Duration::from_millis(500);

/// What is followed, and where its checkpoints go.
pub(super) struct FollowTarget {
    pub(super) store: Store,
    /// The agents.
    pub(super) formats: Vec<&'static dyn Format>,
    /// The workspace, and the directory in it; `None` for that of each session.
    pub(super) workspace: Option<(Workspace, PathBuf)>,
    /// The run that the turns are in.
    pub(super) run: Option<CheckpointId>,
    /// Called for each session that is added to.
    pub(super) report: Option<Reporter>,
}

/// Gets each session that is added to.
pub(super) type Reporter = Box<dyn Fn(&Followed) + Send>;

/// Follows agents until it is finished.
pub(super) struct Following {
    stop: StopHandle,
    importing: JoinHandle<Result<()>>,
    keeping: JoinHandle<FollowedWork>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct FollowedWork {
    /// The sessions that were added to.
    pub(super) sessions: BTreeSet<SessionId>,
    /// What went wrong, each thing once.
    pub(super) problems: Vec<CommandError>,
}

impl Following {
    /// Begins to follow.
    pub(super) fn start(target: FollowTarget) -> Result<Self> {
        let environment = Environment::from_variables(std::env::vars_os());
        let exclude = exclude(target.store.root(), &environment)?;
        let options = FollowOptions::new(environment).formats(target.formats);
        let mut options = options.exclude(exclude);
        if let Some((_, directory)) = &target.workspace {
            options = options.directory(directory);
        }
        let follower = Follower::start(&target.store, &options).map_err(|error| failed(&error))?;
        let (wishes, due) = channel();
        let keeper = Keeper {
            store: target.store,
            workspace: target.workspace.map(|(workspace, _)| workspace),
            run: target.run,
            since: SystemTime::now(),
            turns: HashMap::new(),
            open: HashMap::new(),
            own: HashSet::new(),
            work: FollowedWork::default(),
        };
        let stop = follower.stop_handle();
        let report = target.report;
        let spawn_failed = |error| CommandError::io("cannot follow the agent", None, &error);
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let keeping = thread("backtrail-keep").spawn(move || keeper.keep(&due));
        let importing =
            thread("backtrail-follow").spawn(move || follow(follower, &wishes, report.as_deref()));
        Ok(Self {
            stop,
            importing: importing.map_err(spawn_failed)?,
            keeping: keeping.map_err(spawn_failed)?,
        })
    }

    /// Returns a handle that ends following.
    pub(super) fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Imports what is left, makes the last checkpoints, and ends.
    pub(super) fn finish(self) -> FollowedWork {
        self.stop.stop();
        self.wait()
    }

    /// Waits until following is ended by its handle.
    pub(super) fn wait(self) -> FollowedWork {
        let imported = self.importing.join();
        let mut work = self.keeping.join().unwrap_or_default();
        let died = || CommandError::invalid("following the agent failed");
        if let Err(error) = imported.unwrap_or_else(|_| Err(died())) {
            work.problems.push(error);
        }
        work
    }
}

/// What a keeper is told.
enum News {
    Session(Box<Followed>),
    Problem(CommandError),
}

/// Imports until it is stopped, and passes on what came.
fn follow(
    mut follower: Follower,
    news: &Sender<News>,
    report: Option<&(dyn Fn(&Followed) + Send)>,
) -> Result<()> {
    let pass_on = |wake: Wake| {
        for followed in wake.sessions {
            if let Some(report) = report {
                report(&followed);
            }
            // The keeper ends after us.
            news.send(News::Session(Box::new(followed))).ok();
        }
        for problem in wake.problems {
            news.send(News::Problem(failed(&problem))).ok();
        }
    };
    loop {
        let wake = follower.wait(None).map_err(|error| failed(&error))?;
        if wake.is_stopped {
            break;
        }
        pass_on(wake);
    }
    let last = follower.catch_up(Instant::now() + LAST_TRIES);
    pass_on(last.map_err(|error| failed(&error))?);
    Ok(())
}

/// Makes the checkpoints.
struct Keeper {
    store: Store,
    workspace: Option<Workspace>,
    run: Option<CheckpointId>,
    since: SystemTime,
    /// The turns that began here, by agent and session.
    turns: HashMap<(String, String), AgentTurn>,
    /// Those of them whose end was not seen.
    open: HashMap<(String, String), AgentPlace>,
    own: HashSet<CheckpointId>,
    work: FollowedWork,
}

/// A checkpoint that is due.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    TurnStart { prompt: u64 },
    ToolEnd { call: String, tool: Option<String> },
    TurnEnd,
}

impl Keeper {
    /// Makes checkpoints until there is no more news.
    fn keep(mut self, news: &Receiver<News>) -> FollowedWork {
        while let Ok(first) = news.recv() {
            // What came meanwhile makes older wishes unnecessary.
            for (followed, wishes) in self.sort(std::iter::once(first).chain(news.try_iter())) {
                if let Err(error) = self.satisfy(&followed, wishes) {
                    self.note(error);
                }
            }
        }
        if self.run.is_some() {
            self.end_open_turns();
        }
        self.work
    }

    /// Ends the turns whose end the agent did not write: the command has ended, and the files are
    /// still as the agent left them.
    fn end_open_turns(&mut self) {
        for (key, place) in std::mem::take(&mut self.open) {
            let Some(turn) = self.turns.get(&key) else {
                continue;
            };
            let ended = turn.clone().end(&place, CheckpointOptions::new());
            if let Err(error) = ended {
                self.note(error.into());
            }
        }
    }

    fn note(&mut self, error: CommandError) {
        let text = error.to_string();
        if !self.work.problems.iter().any(|it| it.to_string() == text) {
            self.work.problems.push(error);
        }
    }

    /// Returns the wishes by session, in order.
    fn sort(&mut self, news: impl Iterator<Item = News>) -> Vec<(Followed, Vec<Wish>)> {
        let mut all: Vec<(Followed, Vec<Wish>)> = Vec::new();
        for one in news {
            let followed = match one {
                News::Session(followed) => *followed,
                News::Problem(error) => {
                    self.note(error);
                    continue;
                }
            };
            let wishes = wishes(&followed);
            match all
                .iter_mut()
                .find(|(it, _)| it.session == followed.session)
            {
                Some((_, known)) => known.extend(wishes),
                None => all.push((followed, wishes)),
            }
        }
        for (_, wishes) in &mut all {
            keep_newest(wishes);
        }
        all
    }

    fn satisfy(&mut self, followed: &Followed, wishes: Vec<Wish>) -> Result<()> {
        let Some(workspace) = self.workspace_of(followed)? else {
            return Ok(());
        };
        self.work.sessions.insert(followed.session.clone());
        let mut place = AgentPlace::new(followed.agent, &*followed.agent_session_id);
        place.source = followed.source.to_str().map(str::to_owned);
        // A sub-agent works within its parent's turn.
        if followed.spawned_by.is_none() && !self.has_hooks(&workspace, &place)? {
            for wish in wishes {
                self.make(&workspace, &place, followed, wish)?;
            }
        }
        workspace.bind_session(&place, &followed.session)?;
        Ok(())
    }

    /// Returns the workspace of a session; `None` for a directory that is not protected.
    fn workspace_of(&self, followed: &Followed) -> Result<Option<Workspace>> {
        if let Some(workspace) = &self.workspace {
            return Ok(Some(workspace.clone()));
        }
        let Some(directory) = followed.directory.as_deref().filter(|it| it.is_dir()) else {
            return Ok(None);
        };
        let root = self.store.workspace_root(directory)?;
        match too_wide(&root) {
            Some(_) => Ok(None),
            None => Ok(Some(self.store.workspace(&root)?)),
        }
    }

    /// Returns whether hooks report what the agent does.
    fn has_hooks(&self, workspace: &Workspace, place: &AgentPlace) -> Result<bool> {
        let fired = fired_file(self.store.root(), &place.name);
        if modified(&fired).is_some_and(|at| at >= self.since) {
            return Ok(true);
        }
        let turn = workspace.agent_turn(place)?;
        Ok(turn.is_some_and(|turn| !self.own.contains(&turn.start())))
    }

    fn make(
        &mut self,
        workspace: &Workspace,
        place: &AgentPlace,
        followed: &Followed,
        wish: Wish,
    ) -> Result<()> {
        let key = (place.name.clone(), place.session.clone());
        let options = CheckpointOptions::new();
        match (wish, self.turns.get(&key)) {
            // A session that continues may be reported with what came just before.
            (Wish::TurnStart { prompt }, _)
                if workspace.has_turn(place, &followed.session, prompt)? => {}
            (Wish::TurnStart { prompt }, _) => {
                let options = self.turn_options(followed, prompt)?;
                // We end it, also if its agent is gone.
                let process = Process::running(std::process::id());
                let turn = workspace.begin_agent_turn(place, options, process)?;
                self.own.insert(turn.start());
                self.open.insert(key.clone(), place.clone());
                self.turns.insert(key, turn);
            }
            (Wish::ToolEnd { call, tool }, Some(turn)) => {
                let mut place = place.clone().call(call);
                place.tool = tool;
                turn.end_tool(&place, options)?;
            }
            (Wish::TurnEnd, Some(turn)) => {
                turn.clone().end(place, options)?;
                self.open.remove(&key);
            }
            // The turn began before we did.
            (Wish::ToolEnd { .. } | Wish::TurnEnd, None) => {}
        }
        Ok(())
    }

    fn turn_options(&self, followed: &Followed, prompt: u64) -> Result<CheckpointOptions> {
        let mut options = CheckpointOptions::new();
        if let Some(run) = self.run {
            options = options.begun_by(run);
        }
        let record = self.store.read_session(&followed.session)?.record(prompt)?;
        let message = record.and_then(|record| record.as_ref().message().ok().flatten());
        Ok(match message {
            Some(message) => options.agent_prompt(message.text()),
            None => options,
        })
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata().ok()?.modified().ok()
}

/// Returns the checkpoints that are due for what was added to a session.
fn wishes(followed: &Followed) -> Vec<Wish> {
    let mut tools: HashMap<&str, &str> = HashMap::new();
    let mut wishes = Vec::new();
    for record in &followed.records {
        match &record.kind {
            FollowedKind::Prompt => wishes.push(Wish::TurnStart { prompt: record.seq }),
            FollowedKind::Call { id, name } => drop(tools.insert(id, name)),
            FollowedKind::Result { id, .. } => wishes.push(Wish::ToolEnd {
                tool: tools.get(id.as_str()).map(|&name| name.to_owned()),
                call: id.clone(),
            }),
            FollowedKind::TurnEnd => wishes.push(Wish::TurnEnd),
            _ => {}
        }
    }
    wishes
}

/// Keeps the wishes that still make a difference: of several calls in a row only the last, and
/// none before the end of its turn.
fn keep_newest(wishes: &mut Vec<Wish>) {
    let all = std::mem::take(wishes);
    let mut all = all.into_iter().peekable();
    while let Some(wish) = all.next() {
        let is_tool = matches!(wish, Wish::ToolEnd { .. });
        let is_outdated = is_tool && !matches!(all.peek(), None | Some(Wish::TurnStart { .. }));
        if !is_outdated {
            wishes.push(wish);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(call: &str) -> Wish {
        Wish::ToolEnd {
            call: call.to_owned(),
            tool: None,
        }
    }

    #[test]
    fn of_the_checkpoints_that_are_due_only_the_newest_are_made() {
        let mut wishes = vec![
            Wish::TurnStart { prompt: 1 },
            tool("a"),
            tool("b"),
            Wish::TurnEnd,
            Wish::TurnStart { prompt: 6 },
            tool("c"),
            tool("d"),
        ];
        keep_newest(&mut wishes);
        let expected = [
            Wish::TurnStart { prompt: 1 },
            Wish::TurnEnd,
            Wish::TurnStart { prompt: 6 },
            tool("d"),
        ];
        assert_eq!(wishes, expected);
    }
}
