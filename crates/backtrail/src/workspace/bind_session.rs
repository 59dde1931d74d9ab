//! Finds the places of an agent's checkpoints in the session that was imported from it.
//!
//! A checkpoint knows the agent's id of a call, or a hash of the prompt; the session has the
//! messages. Within a session places never go back, since checkpoints are made in order.

use std::collections::HashSet;

use super::Workspace;
use super::agent_place::AgentPlace;
use super::bindings::{Binding, began};
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace};
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::message::{Block, Message};
use crate::session::{Note, SessionReader, append_note};
use crate::time::Timestamp;

/// How much older than its turn a prompt may be: the turn's snapshot takes a while, and its agent
/// may note the time before it reports the prompt.
const PATIENCE_MS: i64 = 60_000;

impl Workspace {
    /// Gives the checkpoints of an agent's session their places in the session that was imported
    /// from it, as far as it has their messages. Returns how many got one.
    ///
    /// # Errors
    ///
    /// Fails if the session or the workspace's trail cannot be read, and if the store cannot be
    /// written.
    pub fn bind_session(&self, agent: &AgentPlace, session: &SessionId) -> Result<usize> {
        let reader = self.store().read_session(session)?;
        let (unbound, since) = self.unbound_in(agent, began(&reader)?)?;
        if unbound.is_empty() {
            return Ok(0);
        }
        let line = reader.log.line()?;
        let prompt = |turn: &Checkpoint| {
            let prompt = turn.record.prompt.clone();
            prompt.filter(|it| it.id == *session)
        };
        let last = since.as_ref().and_then(prompt);
        let is_held = last
            .as_ref()
            .is_some_and(|it| line.holds(&it.id, it.trail, it.seq));
        let since_seq = last.map_or(0, |it| line.last_shared(&it.id, it.trail, it.seq));
        // A turn that the agent went back over is not on the line any more.
        let (turn, since) = (since.filter(|_| is_held), since_seq);
        let here = self.store().session_place(session)?;
        let mut places = Places {
            here,
            moments: moments(&reader, since)?,
            prompt: since,
            floor: since,
            claimed: HashSet::new(),
            calls: HashSet::new(),
            unread: HashSet::new(),
            open: HashSet::new(),
        };
        places.claim(&unbound);
        let mut bindings: Vec<Binding> = unbound.iter().filter_map(|it| places.find(it)).collect();
        bindings.extend(turn.and_then(|turn| places.late_after_all(&turn)));
        let late = bindings.iter().filter(|it| it.late && it.prompt.is_some());
        let runs: Vec<Binding> = late
            .filter_map(|it| self.run_before(it).transpose())
            .collect::<Result<_>>()?;
        bindings.extend(runs);
        if !bindings.is_empty() {
            self.adopt(&reader)?;
            self.bind(&bindings)?;
        }
        Ok(bindings.len())
    }

    /// Returns the binding of the run that a late turn is the first thing in: the run began with
    /// the files as they were before the prompt.
    fn run_before(&self, turn: &Binding) -> Result<Option<Binding>> {
        let Some(start) = self.checkpoint_by_id(turn.checkpoint)? else {
            return Ok(None);
        };
        let before = self.checkpoint_before(start.seq())?;
        let run = before.filter(|before| Some(before.id()) == start.begun_by());
        Ok(run.map(|run| Binding::new(run.id(), turn.session.clone())))
    }

    /// Records that a session works in this workspace, unless it says so already.
    fn adopt(&self, reader: &SessionReader) -> Result<()> {
        let mut workspace = match reader.log.present()?.workspace {
            Some(workspace) if workspace.id.is_some() => return Ok(()),
            Some(workspace) => workspace,
            None => self.reference(),
        };
        // Its directory may be one within the workspace.
        workspace.id = Some(self.id().clone());
        let note = Note::new().workspace(workspace);
        append_note(self.store(), &self.store().files(reader.id()), &note).map(drop)
    }
}

/// What a message of a session is to a checkpoint.
struct Moment {
    seq: u64,
    at: Option<Timestamp>,
    /// The text, if it is a prompt.
    prompt: Option<String>,
    /// The ids and names of its tool calls.
    calls: Vec<(String, String)>,
    /// The ids of the calls that it answers.
    results: Vec<String>,
}

/// Reads the messages of a session after a record.
fn moments(reader: &SessionReader, since: u64) -> Result<Vec<Moment>> {
    let mut moments = Vec::new();
    let mut records = reader.records_from(since + 1)?;
    while let Some(record) = records.next()? {
        // What cannot be read has no place; `verify` reports it.
        if let Ok(Some(message)) = record.message() {
            moments.push(Moment::new(record.seq(), record.at(), &message));
        }
    }
    Ok(moments)
}

impl Moment {
    fn new(seq: u64, at: Option<Timestamp>, message: &Message) -> Self {
        let mut moment = Self {
            seq,
            at,
            prompt: message.is_prompt().then(|| message.text().into_owned()),
            calls: Vec::new(),
            results: Vec::new(),
        };
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => {
                    let call = (call.id.to_string(), call.name.to_string());
                    moment.calls.push(call);
                }
                Block::ToolResult(result) => moment.results.push(result.tool_use_id.to_string()),
                _ => {}
            }
        }
        moment
    }
}

/// Returns whether a message may be the prompt of a turn, by its time.
fn is_not_much_older(start: &Checkpoint) -> impl Fn(&Moment) -> bool {
    let least = start.at().as_millis() - PATIENCE_MS;
    move |it| it.at.is_none_or(|at| at.as_millis() >= least)
}

/// Finds the places of checkpoints, which come in order.
struct Places {
    /// The end of the session.
    here: SessionPlace,
    moments: Vec<Moment>,
    /// The prompt of the turn, or the last record that is not read.
    prompt: u64,
    /// The place of the last checkpoint.
    floor: u64,
    /// The prompts that are known by their text.
    claimed: HashSet<u64>,
    /// The calls of agents without ids that have a checkpoint: the seq, the position in its
    /// message, and whether it is the one after it.
    calls: HashSet<(u64, usize, bool)>,
    /// The turns whose prompt the session does not have yet.
    unread: HashSet<CheckpointId>,
    /// The turns with a call that it does not have yet.
    open: HashSet<CheckpointId>,
}

impl Places {
    fn find(&mut self, checkpoint: &Checkpoint) -> Option<Binding> {
        let turn = checkpoint.begun_by();
        if turn.is_some_and(|turn| self.unread.contains(&turn)) {
            return None;
        }
        match checkpoint.reason() {
            CheckpointReason::TurnStart => {
                let found = self.of_turn(checkpoint);
                if found.is_none() {
                    self.unread.insert(checkpoint.id());
                }
                found
            }
            CheckpointReason::ToolStart | CheckpointReason::ToolEnd => {
                let found = self.of_tool(checkpoint);
                if found.is_none() {
                    self.open.extend(turn);
                }
                found
            }
            reason if reason.ends() => {
                let is_open = turn.is_some_and(|turn| self.open.contains(&turn));
                if (is_open || self.has_open_call()) && !self.is_over() {
                    return None;
                }
                let seq = self.end_of_turn()?;
                Some(self.bind(checkpoint, seq))
            }
            _ => None,
        }
    }

    /// Finds the call that a checkpoint was made before or after.
    fn of_tool(&mut self, checkpoint: &Checkpoint) -> Option<Binding> {
        let is_end = *checkpoint.reason() == CheckpointReason::ToolEnd;
        let seq = self.of_call(checkpoint.agent()?, is_end)?;
        // The next call may have begun before the snapshot.
        let is_late = is_end && self.asked_before(seq, checkpoint.at());
        let binding = self.bind(checkpoint, seq);
        Some(if is_late { binding.late() } else { binding })
    }

    /// Returns a binding to a record, or to the place of the last checkpoint if that is later.
    fn bind(&mut self, checkpoint: &Checkpoint, seq: u64) -> Binding {
        self.floor = self.floor.max(seq);
        Binding::new(checkpoint.id(), self.at(self.floor))
    }

    fn at(&self, seq: u64) -> SessionPlace {
        SessionPlace {
            seq,
            ..self.here.clone()
        }
    }

    /// Finds the prompt of a turn: by its text, or else by its time.
    fn of_turn(&mut self, start: &Checkpoint) -> Option<Binding> {
        let seq = self.prompt_by_text(start, self.prompt);
        let seq = seq.or_else(|| self.prompt_by_time(start))?;
        let is_late = self.asked_before(seq, start.at());
        let missed = self.missed_before(seq);
        let before = self.bind(start, seq - 1);
        (self.prompt, self.floor) = (seq, seq);
        let mut binding = before.prompt(self.at(seq));
        binding.missed = missed;
        Some(if is_late { binding.late() } else { binding })
    }

    /// Returns the prompts between the turn before and a prompt that no turn began with. Those
    /// without a tool call changed nothing; what came before the first turn was not watched.
    fn missed_before(&self, prompt: u64) -> Vec<SessionPlace> {
        let between = self.moments.iter();
        let between = between.filter(|it| self.prompt < it.seq && it.seq < prompt);
        let has_calls = |it: &&Moment| self.turn_of(it.seq).any(|it| !it.calls.is_empty());
        let missed = between.filter(|it| self.prompt > 0 && it.prompt.is_some());
        let missed = missed.filter(|it| !self.claimed.contains(&it.seq));
        missed.filter(has_calls).map(|it| self.at(it.seq)).collect()
    }

    /// Finds the first prompt after a record with the text that a turn began with.
    fn prompt_by_text(&self, start: &Checkpoint, after: u64) -> Option<u64> {
        let is_it = |text: &str| {
            // opencode quotes a prompt that comes from its command line.
            let unquoted = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let mut texts = [Some(text), unquoted].into_iter().flatten();
            texts.any(|text| start.is_prompted_by(text) == Some(true))
        };
        let is_then = is_not_much_older(start);
        let mut after = self.moments.iter().filter(|it| it.seq > after);
        let found = after.find(|it| is_then(it) && it.prompt.as_deref().is_some_and(is_it));
        found.map(|it| it.seq)
    }

    /// Finds the first prompt that is not much older than a turn, and not known to be that of
    /// another one.
    fn prompt_by_time(&self, start: &Checkpoint) -> Option<u64> {
        let is_then = is_not_much_older(start);
        let mut prompts = self.moments.iter().filter(|it| it.prompt.is_some());
        let is_free = |it: &Moment| it.seq > self.prompt && !self.claimed.contains(&it.seq);
        prompts
            .find(|it| is_free(it) && is_then(it))
            .map(|it| it.seq)
    }

    /// Notes the prompts that turns can be told by.
    fn claim(&mut self, unbound: &[Checkpoint]) {
        let mut after = self.prompt;
        for start in unbound.iter().filter(|it| it.reason().begins()) {
            if let Some(seq) = self.prompt_by_text(start, after) {
                self.claimed.insert(seq);
                after = seq;
            }
        }
    }

    /// Binds the start of a turn again if it turns out to be late: some agents write a call only
    /// with its result.
    fn late_after_all(&self, start: &Checkpoint) -> Option<Binding> {
        let prompt = start.record.prompt.clone()?;
        let is_late = !start.is_late() && self.asked_before(prompt.seq, start.at());
        let binding = Binding::new(start.id(), start.session()?.clone());
        is_late.then(|| binding.prompt(prompt).late())
    }

    /// Returns whether the model asked for a call after a record of the turn and before some time.
    fn asked_before(&self, seq: u64, at: Timestamp) -> bool {
        let mut calls = self.turn_of(seq).filter(|it| !it.calls.is_empty());
        let next = calls.next();
        next.is_some_and(|it| it.at.is_some_and(|asked| asked <= at))
    }

    /// Returns the messages after a prompt, up to the next one.
    fn turn_of(&self, prompt: u64) -> impl Iterator<Item = &Moment> {
        let after = self.moments.iter().skip_while(move |it| it.seq <= prompt);
        after.take_while(|it| it.prompt.is_none())
    }

    /// Finds the message with a tool call of the turn, or with its result.
    fn of_call(&mut self, agent: &AgentPlace, is_end: bool) -> Option<u64> {
        let id = match &agent.call {
            Some(id) => id.clone(),
            None => self.next_call(agent.tool.as_deref()?, is_end)?,
        };
        let mut turn = self.turn_of(self.prompt);
        let is_call = |it: &Moment| it.calls.iter().any(|(call, _)| *call == id);
        let is_result = |it: &Moment| it.results.contains(&id);
        let found = turn.find(|it| if is_end { is_result(it) } else { is_call(it) });
        found.map(|it| it.seq)
    }

    /// Returns the id of the next call of a tool in the turn, for agents that do not tell it.
    fn next_call(&mut self, tool: &str, is_end: bool) -> Option<String> {
        let calls = self.turn_of(self.prompt).flat_map(|it| {
            let calls = it.calls.iter().enumerate();
            calls.map(|(n, (id, name))| ((it.seq, n, is_end), id, name))
        });
        let mut calls = calls.filter(|(key, _, name)| *name == tool && !self.calls.contains(key));
        let found = calls.next().map(|(key, id, _)| (key, id.clone()));
        drop(calls);
        let (key, id) = found?;
        self.calls.insert(key);
        Some(id)
    }

    /// Returns whether the session has a later prompt, so that the turn has all its records.
    fn is_over(&self) -> bool {
        let mut prompts = self.moments.iter().filter(|it| it.prompt.is_some());
        prompts.any(|it| it.seq > self.prompt)
    }

    /// Returns whether a call of the turn has no result yet: the session was read before the turn
    /// ended, and the files at its end are not those of the last record.
    fn has_open_call(&self) -> bool {
        let turn = || self.turn_of(self.prompt);
        let answered: HashSet<&String> = turn().flat_map(|it| &it.results).collect();
        let mut calls = turn().flat_map(|it| &it.calls);
        calls.any(|(id, _)| !answered.contains(id))
    }

    /// Returns the last message of the turn.
    fn end_of_turn(&self) -> Option<u64> {
        let last = self.turn_of(self.prompt).last().map(|it| it.seq);
        last.or((self.prompt > 0).then_some(self.prompt))
    }
}
