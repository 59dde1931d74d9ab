//! A copy of the agent's own session, which ends at a record.

use std::path::PathBuf;

use backtrail::Store;
use backtrail_formats::{CutPoint, NewSession, ResumableAgent, Source};

use super::made::{MadeSession, StagedSession, WriteError};
use super::session::Found;
use crate::commands::export::KeptFile;
use crate::commands::import::failed;
use crate::commands::short;
use crate::error::{CommandError, Result};
use crate::files::StagedFile;
use crate::text::{count, one_line};
use crate::ui::Ui;

/// Writes the copy beside where the agent finds it. `None` if no part of the agent's file is the
/// conversation up to there.
pub(super) fn make(
    store: &Store,
    found: &Found,
    agent: ResumableAgent,
    new: &NewSession<'_>,
    ui: &Ui,
) -> Result<Option<StagedSession>> {
    let Some((source, cut)) = found.cut(store, agent)? else {
        return Ok(None);
    };
    let launcher = agent.launcher();
    let file = launcher.place_of_copy(source.path(), new);
    let file: PathBuf = file.map_err(|error| failed(&error))?;
    let written = StagedFile::write(&file, |out| {
        let written = agent.write_copy(&source, cut, new, out);
        written.map_err(|error| WriteError::Content(failed(&error)))
    });
    let staged = match written {
        Ok(staged) => staged,
        // Not every version of a file can be copied.
        Err(WriteError::Content(error)) => {
            let why = one_line(&error.to_string(), 200);
            ui.status(&format!(
                "note: no copy of the agent's file: {why}; it is written anew"
            ));
            return Ok(None);
        }
        Err(error) => return Err(error.at("cannot make the copy", &file)),
    };
    if cut.damaged > 0 {
        let lines = count(cut.damaged, "damaged line");
        ui.warning(&format!("the copy has {lines}, as the original"), None);
    }
    let (old, title) = (short(found.reader.id()), launcher.title());
    let upto = found.upto();
    let text = format!("copied {title} session {old}{upto} as {}", new.id);
    let made = MadeSession::new(&launcher, new, file);
    Ok(Some(StagedSession::new(made, Some(staged), text)))
}

impl Found {
    /// Finds the agent's file, and where to cut it.
    fn cut(&self, store: &Store, agent: ResumableAgent) -> Result<Option<(Source, CutPoint)>> {
        let files = KeptFile::all(store, &self.reader, self.agent.name())?;
        let is_whole = self.asked.is_none() && files.len() == 1;
        for file in &files {
            let path = &file.source.path;
            let source = agent.open_kept(path, |out| {
                file.write(&self.reader, out)?;
                Ok(())
            });
            let source = source.map_err(|error| self.unreadable(failed(&error)))?;
            let cut = match is_whole && !file.is_held() {
                true => agent.whole(&source).map(Some),
                false => agent.cut(&source, &self.keys),
            };
            if let Some(cut) = cut.map_err(|error| failed(&error))? {
                return Ok(Some((source, cut)));
            }
        }
        Ok(None)
    }

    /// Adds a hint to the error for a file whose bytes cannot be read.
    fn unreadable(&self, error: CommandError) -> CommandError {
        let id = short(self.reader.id());
        error.hint(format!("see what is damaged: backtrail verify {id}"))
    }
}
