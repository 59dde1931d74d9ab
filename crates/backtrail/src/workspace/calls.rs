//! The tool calls of a turn.

use super::checkpoint::{Checkpoint, CheckpointReason};

/// Returns the tool calls among the checkpoints of a turn, by where they began and ended. `own`
/// are its checkpoints after the first. A call without an end lasts as long as the turn, and one
/// without a beginning may have begun right after the checkpoint before it.
pub(crate) fn calls_of(
    checkpoints: &[Checkpoint],
    start: usize,
    own: impl IntoIterator<Item = usize>,
) -> Vec<(usize, usize)> {
    let call = |n: usize| checkpoints[n].agent().map(|it| (&it.call, &it.tool));
    let mut open: Vec<usize> = Vec::new();
    let (mut calls, mut before) = (Vec::new(), start);
    for n in own {
        match checkpoints[n].reason() {
            CheckpointReason::ToolStart => open.push(n),
            CheckpointReason::ToolEnd => {
                let began = open.iter().position(|start| call(*start) == call(n));
                calls.push((began.map_or(before, |at| open.remove(at)), n));
            }
            _ => {}
        }
        before = n;
    }
    calls.extend(open.into_iter().map(|start| (start, usize::MAX)));
    calls
}
