//! A workspace with a long past.

use std::fs;
use std::path::Path;

use backtrail::workspace::AgentPlace;
use backtrail::{CheckpointOptions, Message, SessionOptions, StoreOptions, Workspace};

use crate::Result;
use crate::session::storage::{CountedStorage, Syncs};

/// How many tool calls a turn has; each has a checkpoint before and one after it.
const CALLS: usize = 4;
/// How many checkpoints a turn has.
const IN_TURN: usize = 2 * CALLS + 2;
/// How many turns a session has.
const TURNS: usize = 50;

/// Makes checkpoints of a directory with one file as agents' hooks do, in turns with tool calls,
/// each bound to a session. Leaves no directory, but the workspace in the store.
pub(super) fn make(store: &Path, root: &Path, count: usize) -> Result<()> {
    let storage = CountedStorage::new(Syncs::Skipped);
    let store = StoreOptions::new().storage(storage).open_or_create(store)?;
    fs::create_dir(root)?;
    fs::write(root.join("file"), "text\n")?;
    let workspace = store.workspace(root)?;
    let session = store.create_session(SessionOptions::new().workspace(&workspace))?;
    session.append(Message::user_text("add a test"))?;
    for turn in 0..count / IN_TURN {
        let agent_session = format!("past-{}", turn / TURNS);
        let made = make_turn(&workspace, &agent_session, turn)?;
        workspace.bind_here(&made, session.id())?;
    }
    session.close()?;
    Ok(fs::remove_dir_all(root)?)
}

fn make_turn(
    workspace: &Workspace,
    session: &str,
    turn: usize,
) -> Result<Vec<backtrail::CheckpointId>> {
    let place = AgentPlace::new("claude-code", session);
    let options = CheckpointOptions::new;
    let prompt = options().agent_prompt(format!("prompt {turn}"));
    let begun = workspace.begin_agent_turn(&place, prompt, None)?;
    let mut made = vec![begun.start()];
    for call in 0..CALLS {
        let place = place
            .clone()
            .call(format!("past_{turn}_{call}"))
            .tool("Bash");
        made.push(begun.begin_tool(&place, options())?.id());
        made.push(begun.end_tool(&place, options())?.id());
    }
    made.push(begun.end(&place, options())?.id());
    Ok(made)
}
