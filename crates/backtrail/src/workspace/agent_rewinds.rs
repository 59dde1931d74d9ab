//! Where an agent went back in its own session between two turns.
//!
//! Some agents can restore files when they do that. The session shows that it happened, but not
//! whether files were restored.

use std::collections::HashMap;

use super::checkpoint::{Checkpoint, CheckpointReason};
use super::spans::state_before;

/// An agent went back in its own session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentRewind {
    /// The agent's last checkpoint before it.
    pub(crate) from: usize,
    /// The start of the next turn.
    pub(crate) until: usize,
    /// The state before the first of the turns that it removed from its session.
    pub(crate) to: usize,
}

/// Finds where agents went back, in order.
pub(crate) fn agent_rewinds(checkpoints: &[Checkpoint]) -> Vec<AgentRewind> {
    let mut found = Vec::new();
    let mut sessions: HashMap<(&str, &str), Turns> = HashMap::new();
    for (n, checkpoint) in checkpoints.iter().enumerate() {
        let Some(agent) = checkpoint
            .agent()
            .filter(|_| checkpoint.session().is_some())
        else {
            continue;
        };
        let turns = sessions.entry((&agent.name, &agent.session)).or_default();
        if *checkpoint.reason() == CheckpointReason::TurnStart {
            found.extend(turns.begin(checkpoints, n));
        }
        turns.last = Some(n);
    }
    found
}

/// The turns of a session, as far as the agent did not go back over them.
#[derive(Default)]
struct Turns {
    starts: Vec<usize>,
    last: Option<usize>,
}

impl Turns {
    /// Adds a turn, and returns how the agent went back before it, if it did.
    fn begin(&mut self, checkpoints: &[Checkpoint], n: usize) -> Option<AgentRewind> {
        let from = self.last;
        let place = checkpoints[n].session()?;
        let went_back = |from: &usize| {
            let before = checkpoints[*from].session();
            // A move begins a new trail.
            before.is_some_and(|it| {
                it.id == place.id && it.trail != place.trail && place.seq < it.seq
            })
        };
        let is_gone = |start: &usize| {
            let prompt = checkpoints[*start].record.prompt.as_ref();
            prompt.is_some_and(|it| it.seq > place.seq)
        };
        let found = from.filter(went_back).and_then(|from| {
            let gone = self.starts.iter().position(is_gone)?;
            let to = state_before(checkpoints, self.starts[gone]);
            self.starts.truncate(gone);
            Some(AgentRewind { from, until: n, to })
        });
        self.starts.push(n);
        found
    }
}
