//! The store's `config.toml`.
//!
//! It is read only from the store, never from a workspace: a cloned repository must not change
//! how sessions are stored.

mod prices;

use std::path::{Path, PathBuf};

use backtrail::{Durability, StoreOptions};
use backtrail_index::Price;

use crate::error::{CommandError, Result};

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

const NAMES: [&str; 5] = [
    "durability",
    "rotation",
    "keep_trails",
    "snapshot_cap",
    "prices",
];
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
            prices: Setting::default(Vec::new()),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the settings belong to the command"
        )]
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(settings),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                return Ok(settings);
            }
            Err(error) => {
                return Err(CommandError::io(
                    "cannot read the settings",
                    Some(&path),
                    &error,
                ));
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
        match name {
            "durability" => {
                let text = value.as_str().unwrap_or_default();
                let value = text.parse().map_err(|_| {
                    CommandError::invalid("durability must be \"record\", \"batch\" or \"os\"")
                })?;
                self.durability = Setting { value, file };
            }
            "rotation" => {
                let value = read_size(value).filter(|size| *size >= SHORTEST_ROTATION);
                let value = value.ok_or_else(|| {
                    CommandError::invalid("rotation must be a size like \"64 MiB\", 1 KiB or more")
                })?;
                self.rotation = Setting { value, file };
            }
            "keep_trails" => {
                let value = read_keep(value).ok_or_else(|| {
                    CommandError::invalid(
                        "keep_trails must be a whole number, 1 or more, or \"all\"",
                    )
                })?;
                self.keep_trails = Setting { value, file };
            }
            "snapshot_cap" => {
                let value = read_size(value).ok_or_else(|| {
                    CommandError::invalid("snapshot_cap must be a size like \"256 MiB\"")
                })?;
                self.snapshot_cap = Setting { value, file };
            }
            "prices" => {
                let value = prices::read(value)?;
                self.prices = Setting { value, file };
            }
            unknown => return Err(unknown_setting(unknown)),
        }
        Ok(())
    }
}

fn unknown_setting(name: &str) -> CommandError {
    let shown = crate::text::one_line(name, 60);
    let error = CommandError::invalid(format!("unknown setting \"{shown}\""));
    nearest(error, name, &NAMES, "known settings:")
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

/// Parses a number of bytes: a whole number, or text with a unit.
fn read_size(value: &toml::Value) -> Option<u64> {
    if let Some(bytes) = value.as_integer() {
        return u64::try_from(bytes).ok();
    }
    let text = value.as_str()?.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::read_size;

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        let size = |text: &str| read_size(&toml::Value::String(text.to_owned()));
        assert_eq!(size("64 MiB"), Some(64 << 20));
        assert_eq!(size("256KiB"), Some(256 << 10));
        assert_eq!(size("2 GB"), Some(2_000_000_000));
        assert_eq!(size("4096"), Some(4096));
        assert_eq!(size("-1 MiB"), None);
        assert_eq!(size("99999999999 GiB"), None);
        assert_eq!(size("64 bananas"), None);
        assert_eq!(read_size(&toml::Value::Integer(-5)), None);
    }
}
