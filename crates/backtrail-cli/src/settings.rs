//! The store's `config.toml`.
//!
//! It is read only from the store, never from a workspace: a cloned repository must not change
//! how sessions are stored.

mod edit;
mod prices;
mod remotes;
mod status_template;
mod table;

use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::{Durability, StoreOptions};
use backtrail_formats::{Environment, Exclude};
use backtrail_index::Price;

pub(crate) use self::edit::{Edit, edited};
pub(crate) use self::remotes::{
    Encryption, RemoteSettings, check_name, with_remote, without_remote,
};
pub(crate) use self::status_template::{Piece, Placeholder, StatusTemplate};
pub(crate) use self::table::{SETTINGS, SettingInfo};
use crate::amount::read_bytes;
use crate::error::{CommandError, Result};
use crate::files;
use crate::text::one_line;

/// Every setting, with its value and source.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) durability: Setting<Durability>,
    /// In bytes.
    pub(crate) rotation: Setting<u64>,
    /// How many trails of a session stay out of the trash; `None`: all.
    pub(crate) keep_trails: Setting<Option<u32>>,
    /// In bytes: snapshots skip larger files.
    pub(crate) snapshot_cap: Setting<u64>,
    /// In bytes: larger included directories are not included.
    pub(crate) include_cap: Setting<u64>,
    /// How long an agent waits for a snapshot.
    pub(crate) hook_wait: Setting<Duration>,
    /// Whether agents are told what was undone.
    pub(crate) tell_agents: Setting<bool>,
    /// Whether what is new is imported without asking.
    pub(crate) auto_import: Setting<bool>,
    /// Patterns of what is never imported.
    pub(crate) import_exclude: Setting<Vec<String>>,
    /// What `backtrail` alone does on a terminal.
    pub(crate) default_command: Setting<DefaultCommand>,
    /// Whether the screen uses the mouse.
    pub(crate) mouse: Setting<bool>,
    /// The parts of the status line.
    pub(crate) statusline_template: Setting<StatusTemplate>,
    /// How long the status line waits for the command before it.
    pub(crate) statusline_wait: Setting<Duration>,
    /// The user's own prices of models.
    pub(crate) prices: Setting<Vec<Price>>,
    /// The remotes that were added.
    pub(crate) remotes: Setting<Vec<RemoteSettings>>,
}

/// What `backtrail` alone does on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultCommand {
    Overview,
    Ui,
}

impl DefaultCommand {
    fn read(value: &toml::Value) -> Option<Self> {
        let all = [Self::Overview, Self::Ui];
        all.into_iter()
            .find(|it| value.as_str() == Some(it.as_str()))
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Ui => "ui",
        }
    }
}

/// A value, and the file that sets it (`None`: the default).
#[derive(Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) file: Option<PathBuf>,
}

impl<T> Setting<T> {
    fn default(value: T) -> Self {
        Self { value, file: None }
    }
}

/// How long an agent waits for a snapshot at most, unless it is set.
const HOOK_WAIT: Duration = Duration::from_secs(2);
/// A shorter trail would consist mostly of headers.
const SHORTEST_ROTATION: u64 = 1024;

/// The tables of settings; of all others, a table is one setting's value.
const TABLES: [&str; 2] = ["import", "statusline"];

impl Settings {
    /// How long the status line waits for the command before it, unless it is set.
    pub(crate) const STATUSLINE_WAIT: Duration = Duration::from_secs(5);

    /// Reads the settings of a store; without a file, the defaults.
    pub(crate) fn read(store: &Path) -> Result<Self> {
        let path = store.join("config.toml");
        match files::read(&path) {
            Ok(text) => Self::parse(&text, &path),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(Self::defaults()),
            Err(error) => {
                let what = "cannot read the settings";
                Err(CommandError::io(what, Some(&path), &error))
            }
        }
    }

    fn defaults() -> Self {
        Self {
            durability: Setting::default(Durability::default()),
            rotation: Setting::default(StoreOptions::DEFAULT_ROTATION),
            keep_trails: Setting::default(None),
            snapshot_cap: Setting::default(StoreOptions::DEFAULT_SNAPSHOT_CAP),
            include_cap: Setting::default(StoreOptions::DEFAULT_INCLUDE_CAP),
            hook_wait: Setting::default(HOOK_WAIT),
            tell_agents: Setting::default(true),
            auto_import: Setting::default(true),
            import_exclude: Setting::default(Vec::new()),
            default_command: Setting::default(DefaultCommand::Overview),
            mouse: Setting::default(true),
            statusline_template: Setting::default(StatusTemplate::default()),
            statusline_wait: Setting::default(Self::STATUSLINE_WAIT),
            prices: Setting::default(Vec::new()),
            remotes: Setting::default(Vec::new()),
        }
    }

    /// Reads settings from the text of a file.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self> {
        let mut settings = Self::defaults();
        for (name, value) in &parse_table(text).map_err(|error| error.at_path(path))? {
            settings
                .set_all(name, value, path)
                .map_err(|error| error.at_path(path))?;
        }
        Ok(settings)
    }

    /// Sets a value, or those of a table of settings.
    fn set_all(&mut self, name: &str, value: &toml::Value, path: &Path) -> Result<()> {
        let (true, Some(table)) = (TABLES.contains(&name), value.as_table()) else {
            return self.set(name, value, path);
        };
        table
            .iter()
            .try_for_each(|(inner, value)| self.set(&format!("{name}.{inner}"), value, path))
    }

    fn set(&mut self, name: &str, value: &toml::Value, path: &Path) -> Result<()> {
        let file = Some(path.to_owned());
        let Some(info) = table::find(name) else {
            return Err(unknown(name));
        };
        let wrong = || CommandError::invalid(format!("{name} must be {}", info.allowed));
        match name {
            "durability" => {
                let value = value.as_str().unwrap_or_default().parse();
                let value = value.map_err(|_| wrong())?;
                self.durability = Setting { value, file };
            }
            "rotation" => {
                let value = read_size(value).filter(|size| *size >= SHORTEST_ROTATION);
                let value = value.ok_or_else(wrong)?;
                self.rotation = Setting { value, file };
            }
            "keep_trails" => {
                let value = read_keep(value);
                let value = value.ok_or_else(wrong)?;
                self.keep_trails = Setting { value, file };
            }
            "snapshot_cap" => {
                let value = read_size(value);
                let value = value.ok_or_else(wrong)?;
                self.snapshot_cap = Setting { value, file };
            }
            "include_cap" => {
                let value = read_size(value);
                let value = value.ok_or_else(wrong)?;
                self.include_cap = Setting { value, file };
            }
            "hook_wait" => {
                let value = read_wait(value);
                let value = value.ok_or_else(wrong)?;
                self.hook_wait = Setting { value, file };
            }
            "tell_agents" => {
                let value = read_switch(value).ok_or_else(wrong)?;
                self.tell_agents = Setting { value, file };
            }
            "auto_import" => {
                let value = read_switch(value).ok_or_else(wrong)?;
                self.auto_import = Setting { value, file };
            }
            "import.exclude" => {
                let value = read_patterns(value).ok_or_else(wrong)?;
                // The home directory does not matter here.
                let environment = Environment::new("/");
                if let Err(reason) = Exclude::new(&value, &environment) {
                    return Err(CommandError::invalid(format!("{name}: {reason}")));
                }
                self.import_exclude = Setting { value, file };
            }
            "default_command" => {
                let value = DefaultCommand::read(value).ok_or_else(wrong)?;
                self.default_command = Setting { value, file };
            }
            "mouse" => {
                let value = read_switch(value).ok_or_else(wrong)?;
                self.mouse = Setting { value, file };
            }
            "statusline.template" => {
                let text = value.as_str().ok_or_else(wrong)?;
                let value = StatusTemplate::parse(text).map_err(|reason| {
                    CommandError::invalid(format!("{name}: {}", one_line(&reason, 300)))
                })?;
                self.statusline_template = Setting { value, file };
            }
            "statusline.wait" => {
                let value = read_wait(value).ok_or_else(wrong)?;
                self.statusline_wait = Setting { value, file };
            }
            "prices" => {
                let value = prices::read(value)?;
                self.prices = Setting { value, file };
            }
            "remotes" => {
                let value = remotes::read(value)?;
                self.remotes = Setting { value, file };
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }
}

/// Parses the text of a file.
fn parse_table(text: &str) -> Result<toml::Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error
            .span()
            .map_or("", |span| text.get(..span.start).unwrap_or(""));
        let line = before.lines().count().max(1);
        let what = format!(
            "the settings are not valid TOML at line {line}: {}",
            error.message()
        );
        CommandError::invalid(what)
    })
}

/// Returns the error about a setting that does not exist.
fn unknown(name: &str) -> CommandError {
    let shown = one_line(name, 60);
    let error = CommandError::invalid(format!("unknown setting \"{shown}\""));
    let names = SETTINGS.map(|setting| setting.name);
    nearest(error, name, &names, "known settings:")
}

/// Adds the known name that is most similar to a wrong one, or else all of them.
fn nearest(error: CommandError, name: &str, known: &[&str], all: &str) -> CommandError {
    let nearest = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), *known))
        .min();
    match nearest {
        Some((distance, known)) if distance <= known.len() / 2 => {
            error.hint(format!("did you mean {known}?"))
        }
        _ => error.hint(format!("{all} {}", known.join(", "))),
    }
}

/// Parses true or false, also as on or off.
fn read_switch(value: &toml::Value) -> Option<bool> {
    match value.as_str() {
        Some("on") => Some(true),
        Some("off") => Some(false),
        _ => value.as_bool(),
    }
}

/// Parses a list of patterns.
fn read_patterns(value: &toml::Value) -> Option<Vec<String>> {
    let pattern = |value: &toml::Value| value.as_str().map(str::to_owned);
    value.as_array()?.iter().map(pattern).collect()
}

/// Parses a number of trails, or "all".
fn read_keep(value: &toml::Value) -> Option<Option<u32>> {
    match value {
        toml::Value::String(text) if text == "all" => Some(None),
        toml::Value::Integer(count) => {
            let count = u32::try_from(*count).ok().filter(|count| *count > 0)?;
            Some(Some(count))
        }
        _ => None,
    }
}

/// Parses a time in seconds or milliseconds, of a minute at most.
fn read_wait(value: &toml::Value) -> Option<Duration> {
    let text = value.as_str()?;
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s')?, 1000),
    };
    let ms = number.trim().parse::<u64>().ok()?.checked_mul(unit)?;
    (ms <= 60_000).then(|| Duration::from_millis(ms))
}

/// Parses a number of bytes: a whole number, or text with a unit.
fn read_size(value: &toml::Value) -> Option<u64> {
    match value.as_integer() {
        Some(bytes) => u64::try_from(bytes).ok(),
        None => read_bytes(value.as_str()?).ok(),
    }
}
