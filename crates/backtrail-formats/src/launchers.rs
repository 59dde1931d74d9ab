//! The agents that can be started on a session.

use std::path::{Path, PathBuf};

use backtrail::Timestamp;

use crate::convert;
use crate::cut::launch_of_copies;
use crate::error::{Error, Result};
use crate::format::{Format, formats};
use crate::formats::{Cline, Goose, OpenCode};
use crate::launch::place::sessions;
use crate::launch::{Launch, Launcher, NewSession};
use crate::tables::contained_file;

/// Returns how an agent is started. `None` if it cannot be started on a session.
pub fn launcher(agent: &str) -> Option<Launcher> {
    let launch: &'static dyn Launch = match agent {
        "cline" => &ClineLaunch,
        "opencode" => &OpenCodeLaunch,
        "goose" => &GooseLaunch,
        _ => launch_of_copies(agent)?,
    };
    let format = formats().find(|format| format.name() == agent)?;
    Some(Launcher::new(format, launch))
}

struct ClineLaunch;

impl Launch for ClineLaunch {
    fn program(&self) -> &'static str {
        "cline"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec!["--id".to_owned(), id.to_owned(), "-i".to_owned()]
    }

    fn new_id(&self, at: Timestamp, random: [u8; 16]) -> String {
        convert::cline::session_id(at, random)
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        let sessions = Cline.directories(new.environment).into_iter().next();
        let Some(sessions) = sessions else {
            let what = "cannot find where Cline keeps its sessions";
            return Err(Error::invalid(what, old));
        };
        let name = format!("{}.messages.json", new.id);
        Ok(sessions.join(&new.id).join(name))
    }
}

struct OpenCodeLaunch;

impl Launch for OpenCodeLaunch {
    fn program(&self) -> &'static str {
        "opencode"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec!["--session".to_owned(), id.to_owned()]
    }

    fn new_id(&self, at: Timestamp, random: [u8; 16]) -> String {
        convert::opencode::session_id(at, random)
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        in_database(&OpenCode, "opencode.db", old, new)
    }

    fn import_arguments(&self) -> Option<&'static [&'static str]> {
        Some(&["import"])
    }
}

struct GooseLaunch;

impl Launch for GooseLaunch {
    fn program(&self) -> &'static str {
        "goose"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        ["session", "--resume", "--session-id", id]
            .map(str::to_owned)
            .to_vec()
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        in_database(&Goose, "sessions.db", old, new)
    }

    fn import_arguments(&self) -> Option<&'static [&'static str]> {
        Some(&["session", "import"])
    }

    /// The agent gives its own: the day and a number, as `20261116_1`.
    fn imported_id(&self, printed: &str, _new: &NewSession<'_>) -> Option<String> {
        let is_id = |word: &&str| {
            word.split_once('_').is_some_and(|(day, number)| {
                let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                day.len() == 8 && !number.is_empty() && are_digits(day) && are_digits(number)
            })
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut words = printed.split(|c| !is_word(c));
        words.find(is_id).map(str::to_owned)
    }
}

/// Returns the path that an import gives to a session in a database: in the directory that has
/// one, else in the first.
fn in_database(
    format: &dyn Format,
    name: &str,
    old: &Path,
    new: &NewSession<'_>,
) -> Result<PathBuf> {
    let database = sessions(format, old, new)?.join(name);
    Ok(contained_file(&database, &new.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn gooses_id_is_in_what_it_prints() {
        let environment = Environment::default();
        let new = NewSession {
            id: "x".to_owned(),
            at: Timestamp::from_millis(0).unwrap(),
            directory: PathBuf::new(),
            environment: &environment,
        };
        let id = |printed: &str| GooseLaunch.imported_id(printed, &new);
        assert_eq!(
            id("Session imported successfully:\n  ID: 20261116_1\n").as_deref(),
            Some("20261116_1")
        );
        assert_eq!(id("in 2026_1 (1234567_8) done"), None);
    }
}
