//! Which agents delete their own history, and when.
//!
//! Claude Code deletes sessions that were not touched for `cleanupPeriodDays`, 30 unless
//! it is told otherwise; Gemini CLI those that `general.sessionRetention` says, by default
//! after 30 days in newer versions. Codex and pi delete none.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::format::Format;
use crate::formats::{ClaudeCode, GeminiCli};
use crate::json::Object;
use crate::places::Environment;

/// What an agent is set to do with its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// The agent, as it is named on the command line.
    pub agent: &'static str,
    /// The agent, as it calls itself.
    pub title: &'static str,
    /// What it does.
    pub limit: Limit,
    /// The file that says so, or in which it could be said otherwise.
    pub setting: PathBuf,
    /// Nobody said so: it is what the agent does by itself.
    pub default: bool,
    /// How many sessions it has now.
    pub sessions: u64,
    /// When the oldest of them was last written to.
    pub oldest: Option<SystemTime>,
}

/// What an agent does with old sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// It keeps them.
    Kept,
    /// It writes none at all.
    Never,
    /// It deletes those that are older, or more than so many.
    Deleted {
        /// So many days after they were written to last.
        days: Option<u64>,
        /// So many are kept in each project.
        count: Option<u64>,
    },
    /// Its settings cannot be read: this is why.
    Unknown(String),
}

/// Returns what each agent that has sessions here does with them.
pub fn retention(environment: &Environment) -> Vec<Retention> {
    let both = [claude_code(environment), gemini_cli(environment)];
    both.into_iter().flatten().collect()
}

/// A day has so many seconds.
const DAY: u64 = 24 * 60 * 60;

fn claude_code(environment: &Environment) -> Option<Retention> {
    /// What it does by itself.
    const DAYS: u64 = 30;
    let home = environment.directory("CLAUDE_CONFIG_DIR", ".claude")?;
    let is_session = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") && !name.starts_with("agent-")
    };
    let (sessions, oldest) = sessions(&home.join("projects"), is_session)?;
    let mut limit = Limit::Deleted {
        days: Some(DAYS),
        count: None,
    };
    let mut setting = home.join("settings.json");
    let mut default = true;
    // The latter overrides the former.
    for name in ["settings.json", "settings.local.json"] {
        let path = home.join(name);
        let read = match settings(&path) {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            Err(why) => {
                (limit, setting, default) = (Limit::Unknown(why), path, false);
                break;
            }
        };
        if !read.has("cleanupPeriodDays") {
            continue;
        }
        limit = match read.number("cleanupPeriodDays") {
            Some(0) => Limit::Never,
            Some(days) => Limit::Deleted {
                days: Some(days),
                count: None,
            },
            None => Limit::Unknown("cleanupPeriodDays is not a whole number".to_owned()),
        };
        (setting, default) = (path, false);
    }
    Some(Retention {
        agent: ClaudeCode.name(),
        title: ClaudeCode.title(),
        limit,
        setting,
        default,
        sessions,
        oldest,
    })
}

fn gemini_cli(environment: &Environment) -> Option<Retention> {
    // As Gemini CLI has it, the variable names what stands in for the home directory.
    let home = environment.variable("GEMINI_CLI_HOME").map(PathBuf::from);
    let home = home.or_else(|| environment.home().map(Path::to_owned))?;
    let is_session = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_named =
            name.starts_with("session-") && path.parent().is_some_and(|dir| dir.ends_with("chats"));
        is_named && (name.ends_with(".json") || name.ends_with(".jsonl"))
    };
    let (sessions, oldest) = sessions(&home.join(".gemini").join("tmp"), is_session)?;
    let setting = home.join(".gemini").join("settings.json");
    let (limit, default) = match settings(&setting) {
        Ok(read) => gemini_limit(read.as_ref()),
        Err(why) => (Limit::Unknown(why), false),
    };
    Some(Retention {
        agent: GeminiCli.name(),
        title: GeminiCli.title(),
        limit,
        setting,
        default,
        sessions,
        oldest,
    })
}

fn gemini_limit(settings: Option<&Object>) -> (Limit, bool) {
    /// What newer versions do by themselves.
    const DAYS: u64 = 30;
    let general = settings.and_then(|settings| settings.object("general"));
    let Some(set) = general.and_then(|general| general.object("sessionRetention")) else {
        let limit = Limit::Deleted {
            days: Some(DAYS),
            count: None,
        };
        return (limit, true);
    };
    if set
        .get("enabled")
        .is_some_and(|enabled| enabled.as_str() == "false")
    {
        return (Limit::Kept, false);
    }
    let count = set.number("maxCount");
    let days = match set.string("maxAge") {
        Some(age) => match days_of(&age) {
            Some(days) => Some(days),
            // It deletes nothing then, either.
            None => {
                return (
                    Limit::Unknown("maxAge is not a time as 30d".to_owned()),
                    false,
                );
            }
        },
        None => Some(DAYS),
    };
    (Limit::Deleted { days, count }, false)
}

/// Reads a time as `30d`, `24h`, `1w` or `2m`, in whole days.
fn days_of(age: &str) -> Option<u64> {
    let at = age.len().checked_sub(1)?;
    let number: u64 = age.get(..at)?.parse().ok()?;
    let days = match age.get(at..)? {
        "h" => number / 24,
        "d" => number,
        "w" => number.checked_mul(7)?,
        "m" => number.checked_mul(30)?,
        _ => return None,
    };
    (number > 0).then_some(days)
}

/// Reads a file of settings; `None` where there is none.
fn settings(path: &Path) -> Result<Option<Object>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let text = uncommented(&text);
    match text.trim() {
        "" => Ok(None),
        text => Object::parse(text).map(Some),
    }
}

/// Leaves out comments, which some agents allow in their settings.
fn uncommented(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        let step = match c {
            '\\' if in_string => rest.chars().take(2).map(char::len_utf8).sum(),
            '/' if !in_string && rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if !in_string && rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            _ => c.len_utf8(),
        };
        in_string ^= c == '"';
        out.push_str(&rest[..step]);
        rest = &rest[step..];
    }
    out
}

/// Counts the sessions of an agent, and finds when the oldest was last written to; `None`
/// where it has no place for any.
fn sessions(place: &Path, is_session: impl Fn(&Path) -> bool) -> Option<(u64, Option<SystemTime>)> {
    if !place.is_dir() {
        return None;
    }
    let (mut count, mut oldest) = (0, None);
    look(place, 0, &mut |path, written| {
        if is_session(path) {
            count += 1;
            oldest = Some(oldest.map_or(written, |oldest: SystemTime| oldest.min(written)));
        }
    });
    Some((count, oldest))
}

/// Gives the files in a directory to `found`, and not deeper ones than agents have.
fn look(dir: &Path, depth: u32, found: &mut dyn FnMut(&Path, SystemTime)) {
    const DEEPEST: u32 = 2;
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEEPEST => look(&path, depth + 1, found),
            Ok(kind) if kind.is_file() => {
                let written = entry.metadata().and_then(|metadata| metadata.modified());
                written
                    .into_iter()
                    .for_each(|written| found(&path, written));
            }
            _ => {}
        }
    }
}

impl Retention {
    /// Returns how many whole days ago the oldest session was last written to.
    pub fn oldest_days(&self, now: SystemTime) -> Option<u64> {
        let age = now.duration_since(self.oldest?).ok()?;
        Some(age.as_secs() / DAY)
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
