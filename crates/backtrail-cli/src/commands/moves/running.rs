//! Who works in the files that move.

use backtrail::{Activity, CheckpointReason, Timestamp, Workspace};

use crate::text::{one_line, visible};
use crate::when;

/// A turn or run that is under way.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) name: String,
    pub(super) since: Timestamp,
    pub(super) pid: u32,
}

/// Returns who is at work: a run by its command, a turn by its program.
pub(super) fn running(active: &[Activity], workspace: &Workspace) -> Vec<Running> {
    let name = |activity: &Activity| {
        let start = workspace.checkpoint_by_id(activity.checkpoint);
        let is_run = |why: &CheckpointReason| *why == CheckpointReason::RunStart;
        let run = start
            .ok()
            .flatten()
            .is_some_and(|start| is_run(start.reason()));
        let named = match run {
            true => activity.about.as_deref(),
            false => activity.holder.program.as_deref(),
        };
        one_line(&visible(named.unwrap_or("an agent")), 40)
    };
    let all = active.iter().map(|activity| Running {
        name: name(activity),
        since: activity.holder.since,
        pid: activity.holder.pid,
    });
    all.collect()
}

impl Running {
    /// Says that files move under who works in them.
    pub(super) fn words(&self) -> String {
        let Self { name, since, pid } = self;
        let since = when::brief(*since);
        format!(
            "{name} is running here since {since} (process {pid}); it does not know that its files moved"
        )
    }
}
