//! Writes a session in the form of an agent that it did not come from.

use std::io::Write;
use std::time::SystemTime;

use backtrail::context::HandOverOptions;
use backtrail::{OsRandomness, Randomness as _, Timestamp};
use backtrail_formats::{Environment, NewSession, agent_title, launcher, target};

use super::super::short;
use super::{Export, ExportLoss};
use crate::error::{CommandError, Result};
use crate::text::{Filtered, harmless};

/// Writes the session. Returns what has no place there.
pub(super) fn write(
    export: &Export<'_>,
    agent: &str,
    out: &mut dyn Write,
) -> Result<Vec<ExportLoss>> {
    let reader = export.reader;
    let Some(target) = target(agent) else {
        return Err(no_target(export, agent)?);
    };
    let info = reader.info()?;
    let environment = Environment::default();
    let at = Timestamp::from(SystemTime::now());
    let mut random = [0; 16];
    let filled = OsRandomness.fill(&mut random);
    filled.map_err(|error| CommandError::io("cannot make an id", None, &error))?;
    let directory = match &info.workspace_root {
        Some(directory) => directory.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let id = match launcher(agent) {
        Some(launcher) => launcher.new_id(at, random),
        None => reader.id().to_string(),
    };
    let new = NewSession {
        id,
        at,
        directory,
        environment: &environment,
    };
    let conversation = reader.hand_over(HandOverOptions::new(export.extent, None))?;
    let title = reader.title()?.unwrap_or_default();
    let (session, losses) = target.prepare(conversation, &title, None, &new);
    // It is JSON, which means the same without control characters.
    let mut out = Filtered::new(out, harmless);
    target.write(&session, &mut out)?;
    out.flush()?;
    Ok(losses.rows().into_iter().map(Into::into).collect())
}

/// Returns the error for an agent for which no sessions can be written.
fn no_target(export: &Export<'_>, agent: &str) -> Result<CommandError> {
    let (id, title) = (short(export.reader.id()), agent_title(agent));
    let what =
        format!("session {id} was not imported from {title}, and none can be written for it");
    let error = CommandError::invalid(what);
    let source = export.reader.sources()?.into_iter().next();
    Ok(match source {
        Some(source) => error.hint(format!(
            "it was imported from {}: use --to {}",
            agent_title(&source.agent),
            source.agent
        )),
        None => error.hint("export it as html, markdown or json"),
    })
}
