//! How agents are started on a session, and where they look for it.

pub(crate) mod place;

use std::path::{Path, PathBuf};

use backtrail::Timestamp;

use crate::environment::Environment;
use crate::error::Result;
use crate::format::Format;

/// A session that is made for an agent.
#[derive(Debug, Clone)]
pub struct NewSession<'e> {
    /// Its id.
    pub id: String,
    /// When it is made.
    pub at: Timestamp,
    /// The directory that it continues in.
    pub directory: PathBuf,
    /// Where the agent keeps its files.
    pub environment: &'e Environment,
}

/// What is particular to how one agent is started.
pub(crate) trait Launch: Sync {
    /// Returns the program, as it is typed.
    fn program(&self) -> &'static str;

    /// Returns the arguments with which the program continues a session.
    fn arguments(&self, id: &str) -> Vec<String>;

    /// Makes the id of a new session.
    fn new_id(&self, at: Timestamp, random: [u8; 16]) -> String {
        let _ = at;
        let id = uuid::Builder::from_random_bytes(random).into_uuid();
        id.hyphenated().to_string()
    }

    /// Returns where the agent finds the file of a session. `old` is the file that it is a copy
    /// of, or empty. For an agent that keeps its sessions in a database, the path is the one that
    /// an import gives to the session there.
    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf>;

    /// Returns the arguments of the agent's own command that imports a file, if it has to be
    /// imported; the file comes last.
    fn import_arguments(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Returns the id of an imported session from what that command printed.
    fn imported_id(&self, printed: &str, new: &NewSession<'_>) -> Option<String> {
        let _ = printed;
        Some(new.id.clone())
    }
}

/// An agent that can be started on a session.
#[derive(Clone, Copy)]
pub struct Launcher {
    format: &'static dyn Format,
    launch: &'static dyn Launch,
}

impl Launcher {
    pub(crate) fn new(format: &'static dyn Format, launch: &'static dyn Launch) -> Self {
        Self { format, launch }
    }

    /// Returns the agent's name on the command line and in sessions.
    pub fn name(&self) -> &'static str {
        self.format.name()
    }

    /// Returns the agent's name for people.
    pub fn title(&self) -> &'static str {
        self.format.title()
    }

    /// Returns the program, as it is typed.
    pub fn program(&self) -> &'static str {
        self.launch.program()
    }

    /// Returns the command that continues a session.
    pub fn command(&self, id: &str) -> Vec<String> {
        let mut command = vec![self.program().to_owned()];
        command.extend(self.launch.arguments(id));
        command
    }

    /// Makes the id of a new session.
    pub fn new_id(&self, at: Timestamp, random: [u8; 16]) -> String {
        self.launch.new_id(at, random)
    }

    /// Returns where the agent finds a session that is a copy of the file `old`.
    ///
    /// # Errors
    ///
    /// Fails if there is no place where the agent would find it.
    pub fn place_of_copy(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        self.launch.place(old, new)
    }

    /// Returns where the agent finds a new session, or where an import finds it in the agent's
    /// database.
    ///
    /// # Errors
    ///
    /// Fails if there is no place where the agent would find it.
    pub fn place(&self, new: &NewSession<'_>) -> Result<PathBuf> {
        self.launch.place(Path::new(""), new)
    }

    /// Returns the command with which the agent itself imports a file. `None` if it finds files.
    pub fn import_command(&self, file: &Path) -> Option<Vec<std::ffi::OsString>> {
        let arguments = self.launch.import_arguments()?;
        let mut command = vec![self.program().into()];
        command.extend(arguments.iter().map(Into::into));
        command.push(file.into());
        Some(command)
    }

    /// Returns the id of an imported session from what the import command printed. `None` if it
    /// does not say.
    pub fn imported_id(&self, printed: &str, new: &NewSession<'_>) -> Option<String> {
        self.launch.imported_id(printed, new)
    }
}

impl std::fmt::Debug for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Launcher").field(&self.name()).finish()
    }
}

/// Makes an id that contains the time.
pub(crate) fn timed_uuid(at: Timestamp, random: [u8; 16]) -> String {
    let [.., a, b, c, d, e, f, g, h, i, j] = random;
    let millis = u64::try_from(at.as_millis()).unwrap_or(0);
    let id = uuid::Builder::from_unix_timestamp_millis(millis, &[a, b, c, d, e, f, g, h, i, j]);
    id.into_uuid().hyphenated().to_string()
}
