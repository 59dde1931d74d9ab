//! Which agents delete their own history, and when.
//!
//! Claude Code deletes sessions that did not change for `cleanupPeriodDays`, 30 by default.
//! Gemini CLI follows `general.sessionRetention`, in newer versions 30 days by default; after a
//! resume it also deletes the session itself. Codex and pi delete none.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use backtrail::{LocalStorage, Storage as _};
use serde::Serialize;

use crate::environment::Environment;
use crate::format::Format;
use crate::formats::{ClaudeCode, GeminiCli};
use crate::json::Object;
use crate::source::Source;

/// What an agent does with its old sessions, by its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Retention {
    /// The agent's name on the command line.
    pub agent: &'static str,
    /// The agent's name for people.
    pub title: &'static str,
    /// What it does.
    pub limit: Limit,
    /// The settings file that says so, or could.
    pub setting: PathBuf,
    /// Whether this is the agent's default.
    pub default: bool,
    /// How many sessions it has now.
    pub sessions: u64,
    /// When the oldest of them was last modified.
    pub oldest: Option<SystemTime>,
    /// The sessions that it deletes at its next start, however new they are.
    pub deleted_next: Vec<PathBuf>,
}

/// What an agent does with old sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// It keeps them.
    Kept,
    /// It does not write sessions at all.
    Never,
    /// It deletes old ones.
    Deleted {
        /// After so many days without a change.
        days: Option<u64>,
        /// If there are more than so many in a project.
        count: Option<u64>,
    },
    /// Its settings cannot be read, for this reason.
    Unknown(String),
}

/// Returns what each agent does with its sessions on this machine.
pub fn retention(environment: &Environment) -> Vec<Retention> {
    let both = [claude_code(environment), gemini_cli(environment)];
    both.into_iter().flatten().collect()
}

/// Seconds in a day.
const DAY: u64 = 24 * 60 * 60;

/// After how many days both delete sessions by default.
const DEFAULT_DAYS: u64 = 30;

fn claude_code(environment: &Environment) -> Option<Retention> {
    let home = environment.directory("CLAUDE_CONFIG_DIR", ".claude")?;
    let is_session =
        |path: &Path| ClaudeCode.is_session_file(path) && !ClaudeCode.is_sub_agent_file(path);
    let found = sessions(&ClaudeCode, &home.join("projects"), is_session)?;
    // The latter overrides the former.
    let files = ["settings.json", "settings.local.json"].map(|name| home.join(name));
    Some(found.with_settings(&files, |settings| {
        if !settings.has("cleanupPeriodDays") {
            return None;
        }
        Some(match settings.number("cleanupPeriodDays") {
            Some(0) => Limit::Never,
            Some(days) => Limit::Deleted {
                days: Some(days),
                count: None,
            },
            None => Limit::Unknown("cleanupPeriodDays is not a whole number".to_owned()),
        })
    }))
}

fn gemini_cli(environment: &Environment) -> Option<Retention> {
    // In Gemini CLI the variable replaces the home directory.
    let home = environment
        .directory("GEMINI_CLI_HOME", "")?
        .join(".gemini");
    let directory = home.join("tmp");
    let found = sessions(&GeminiCli, &directory, is_gemini_session)?;
    let mut found = found.with_settings(&[home.join("settings.json")], |settings| {
        let set = settings.object("general")?.object("sessionRetention")?;
        if set.get("enabled") == Some("false") {
            return Some(Limit::Kept);
        }
        let age = set.string("maxAge");
        Some(
            match age.map_or(Some(DEFAULT_DAYS), |age| parse_days(&age)) {
                None => Limit::Unknown("maxAge is not a time such as 30d".to_owned()),
                days => Limit::Deleted {
                    days,
                    count: set.number("maxCount"),
                },
            },
        )
    });
    if found.limit != Limit::Kept {
        found.deleted_next = sessions_beside_stubs(&directory);
    }
    Some(found)
}

fn is_gemini_session(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_named =
        name.starts_with("session-") && path.parent().is_some_and(|dir| dir.ends_with("chats"));
    is_named && (name.ends_with(".json") || name.ends_with(".jsonl"))
}

/// Returns the sessions of Gemini CLI that have a second file without a conversation. A resume
/// creates it (`session-<minute>-<id>.jsonl`); when Gemini CLI starts again, it takes the two
/// for one session and deletes the older file.
fn sessions_beside_stubs(directory: &Path) -> Vec<PathBuf> {
    let mut by_id: BTreeMap<(PathBuf, String), Vec<PathBuf>> = BTreeMap::new();
    visit_files(directory, 0, &mut |path, _| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if let Some((_, id)) = stem.rsplit_once('-').filter(|_| is_gemini_session(path)) {
            let chats = path.parent().unwrap_or(directory).to_owned();
            let files = by_id.entry((chats, id.to_owned())).or_default();
            files.push(path.to_owned());
        }
    });
    let mut found = Vec::new();
    for files in by_id.into_values().filter(|files| files.len() > 1) {
        let (sessions, stubs): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|path| has_conversation(path));
        if !stubs.is_empty() {
            found.extend(sessions);
        }
    }
    found
}

fn has_conversation(path: &Path) -> bool {
    let Ok(source) = Source::open(path) else {
        return false;
    };
    let opened = GeminiCli.open(&source);
    opened.is_ok_and(|opened| opened.session().is_some())
}

/// Parses a time such as `30d`, `24h`, `1w` or `2m` into whole days.
fn parse_days(age: &str) -> Option<u64> {
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

/// Reads a file of settings as JSON; an empty object if there is none.
pub(crate) fn read_settings(path: &Path) -> Result<String, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => without_comments(&text),
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.to_string()),
    };
    Ok(match text.trim() {
        "" => "{}".to_owned(),
        text => text.to_owned(),
    })
}

/// Removes comments, which some agents allow in their settings.
fn without_comments(text: &str) -> String {
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

/// Finds an agent's sessions in a directory; `None` if there is no such directory.
fn sessions(
    format: &dyn Format,
    directory: &Path,
    is_session: impl Fn(&Path) -> bool,
) -> Option<Retention> {
    if !directory.is_dir() {
        return None;
    }
    let mut found = Retention {
        agent: format.name(),
        title: format.title(),
        limit: Limit::Deleted {
            days: Some(DEFAULT_DAYS),
            count: None,
        },
        setting: PathBuf::new(),
        default: true,
        sessions: 0,
        oldest: None,
        deleted_next: Vec::new(),
    };
    visit_files(directory, 0, &mut |path, written| {
        if is_session(path) {
            found.sessions += 1;
            found.oldest = Some(found.oldest.map_or(written, |oldest| oldest.min(written)));
        }
    });
    Some(found)
}

/// Calls `visit` for the files in a directory, as deep as agents nest them.
fn visit_files(dir: &Path, depth: u32, visit: &mut dyn FnMut(&Path, SystemTime)) {
    const MAX_DEPTH: u32 = 2;
    for name in LocalStorage.list(dir).unwrap_or_default() {
        let path = dir.join(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() && depth < MAX_DEPTH => {
                visit_files(&path, depth + 1, visit);
            }
            Ok(found) if found.is_file() => {
                let written = found.modified();
                written
                    .into_iter()
                    .for_each(|written| visit(&path, written));
            }
            _ => {}
        }
    }
}

impl Retention {
    /// Applies the settings in files; `limit` returns what one of them sets.
    fn with_settings(
        mut self,
        files: &[PathBuf],
        limit: impl Fn(&Object<'_>) -> Option<Limit>,
    ) -> Self {
        self.setting = files.first().cloned().unwrap_or_default();
        for path in files {
            let text = read_settings(path);
            let settings = text.as_deref().map_err(String::clone);
            let settings = settings.and_then(Object::parse);
            let is_readable = settings.is_ok();
            let limit =
                settings.map_or_else(|reason| Some(Limit::Unknown(reason)), |it| limit(&it));
            if let Some(limit) = limit {
                (self.limit, self.setting, self.default) = (limit, path.clone(), false);
            }
            if !is_readable {
                break;
            }
        }
        self
    }

    /// Returns how many whole days ago the oldest session was last modified.
    pub fn oldest_days(&self, now: SystemTime) -> Option<u64> {
        let age = now.duration_since(self.oldest?).ok()?;
        Some(age.as_secs() / DAY)
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
