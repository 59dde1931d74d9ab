//! The store's `config.toml`.
//!
//! It is read only from the store, never from a workspace: a cloned repository must not change
//! how sessions are stored.

mod prices;

use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::{Durability, StoreOptions};
use backtrail_index::Price;

use crate::amount::read_bytes;
use crate::error::{CommandError, Result};
use crate::files;

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
    /// The user's own prices of models.
    pub(crate) prices: Setting<Vec<Price>>,
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

const NAMES: [&str; 8] = [
    "durability",
    "rotation",
    "keep_trails",
    "snapshot_cap",
    "include_cap",
    "hook_wait",
    "tell_agents",
    "prices",
];
/// How long an agent waits for a snapshot at most, unless it is set.
const HOOK_WAIT: Duration = Duration::from_secs(2);
/// A shorter trail would consist mostly of headers.
const SHORTEST_ROTATION: u64 = 1024;

impl Settings {
    /// Reads the settings of a store; without a file, the defaults.
    pub(crate) fn read(store: &Path) -> Result<Self> {
        let path = store.join("config.toml");
        let mut settings = Self {
            durability: Setting::default(Durability::default()),
            rotation: Setting::default(StoreOptions::DEFAULT_ROTATION),
            keep_trails: Setting::default(None),
            snapshot_cap: Setting::default(StoreOptions::DEFAULT_SNAPSHOT_CAP),
            include_cap: Setting::default(StoreOptions::DEFAULT_INCLUDE_CAP),
            hook_wait: Setting::default(HOOK_WAIT),
            tell_agents: Setting::default(true),
            prices: Setting::default(Vec::new()),
        };
        let text = match files::read(&path) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(settings),
            Err(error) => {
                let what = "cannot read the settings";
                return Err(CommandError::io(what, Some(&path), &error));
            }
        };
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error
                .span()
                .map_or("", |span| text.get(..span.start).unwrap_or(""));
            let line = before.lines().count().max(1);
            let what = format!(
                "the settings are not valid TOML at line {line}: {}",
                error.message()
            );
            CommandError::invalid(what).at_path(&path)
        })?;
        for (name, value) in &table {
            settings
                .set(name, value, &path)
                .map_err(|error| error.at_path(&path))?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &toml::Value, path: &Path) -> Result<()> {
        let file = Some(path.to_owned());
        let wrong = |what: &str| CommandError::invalid(format!("{name} must be {what}"));
        match name {
            "durability" => {
                let value = value.as_str().unwrap_or_default().parse();
                let value = value.map_err(|_| wrong("\"record\", \"batch\" or \"os\""))?;
                self.durability = Setting { value, file };
            }
            "rotation" => {
                let value = read_size(value).filter(|size| *size >= SHORTEST_ROTATION);
                let value = value.ok_or_else(|| wrong("a size like \"64 MiB\", 1 KiB or more"))?;
                self.rotation = Setting { value, file };
            }
            "keep_trails" => {
                let value = read_keep(value);
                let value = value.ok_or_else(|| wrong("a whole number, 1 or more, or \"all\""))?;
                self.keep_trails = Setting { value, file };
            }
            "snapshot_cap" => {
                let value = read_size(value);
                let value = value.ok_or_else(|| wrong("a size like \"256 MiB\""))?;
                self.snapshot_cap = Setting { value, file };
            }
            "include_cap" => {
                let value = read_size(value);
                let value = value.ok_or_else(|| wrong("a size like \"1 GiB\""))?;
                self.include_cap = Setting { value, file };
            }
            "hook_wait" => {
                let value = read_wait(value);
                let value = value.ok_or_else(|| wrong("a time like \"2s\" or \"500ms\""))?;
                self.hook_wait = Setting { value, file };
            }
            "tell_agents" => {
                let value = value.as_bool();
                let value = value.ok_or_else(|| wrong("true or false"))?;
                self.tell_agents = Setting { value, file };
            }
            "prices" => {
                let value = prices::read(value)?;
                self.prices = Setting { value, file };
            }
            unknown => {
                let shown = crate::text::one_line(unknown, 60);
                let error = CommandError::invalid(format!("unknown setting \"{shown}\""));
                return Err(nearest(error, name, &NAMES, "known settings:"));
            }
        }
        Ok(())
    }
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
