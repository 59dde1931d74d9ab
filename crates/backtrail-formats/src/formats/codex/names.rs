//! The ids in the names of files, and the index of titles.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use uuid::Uuid;

use crate::json::Object;
use crate::source::file_name;

/// The most that is read of the index.
const MAX_INDEX: u64 = 64 << 20;

/// The titles of threads, by their ids.
pub(crate) type Titles = BTreeMap<String, String>;

/// Returns the thread and the rollout of a file, by its name:
/// `rollout-2026-09-02T09-10-00-<thread>[_<rollout>].jsonl`.
pub(super) fn ids_in(path: &Path) -> (Option<String>, Option<String>) {
    let name = file_name(path);
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let stem = name.strip_suffix(".jsonl").or(name.strip_suffix(".json"));
    let stem = stem.unwrap_or(name);
    match stem.rsplit_once('_') {
        Some((stem, rollout)) if is_uuid(rollout) => (last_uuid(stem), Some(rollout.to_owned())),
        _ => (last_uuid(stem), None),
    }
}

fn last_uuid(stem: &str) -> Option<String> {
    let from = stem.len().checked_sub(36)?;
    let id = stem.get(from..)?;
    is_uuid(id).then(|| id.to_owned())
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Returns the title of the thread that the rollout `path` belongs to, from the index.
pub(super) fn title(path: &Path, thread: &str) -> Option<String> {
    cached_titles(home(path)?).get(thread).cloned()
}

/// Returns Codex's directory, in which a file is.
fn home(path: &Path) -> Option<&Path> {
    let is_place = |dir: &&Path| {
        dir.file_name()
            .is_some_and(|name| name == "sessions" || name == "archived_sessions")
    };
    path.ancestors().skip(1).find(is_place)?.parent()
}

/// Reads the index of titles in Codex's directory. The last title of a thread counts.
pub(crate) fn read_titles(home: &Path) -> Titles {
    let mut text = Vec::new();
    let Ok(file) = File::open(home.join("session_index.jsonl")) else {
        return Titles::new();
    };
    // A part of it is better than nothing.
    file.take(MAX_INDEX).read_to_end(&mut text).ok();
    let mut titles = Titles::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Ok(object) = Object::parse(&line) else {
            continue;
        };
        if let (Some(id), Some(name)) = (object.string("id"), object.trimmed("thread_name")) {
            titles.insert(id.into_owned(), name);
        }
    }
    titles
}

/// An index, with the time and length of its file.
struct Cached {
    home: PathBuf,
    file: Option<(SystemTime, u64)>,
    titles: Arc<Titles>,
}

/// Returns the titles. They are read once for thousands of rollouts in a directory.
fn cached_titles(home: &Path) -> Arc<Titles> {
    static LAST: Mutex<Option<Cached>> = Mutex::new(None);
    let metadata = std::fs::metadata(home.join("session_index.jsonl")).ok();
    let file = metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*last
        && known.home == home
        && known.file == file
    {
        return known.titles.clone();
    }
    let titles = Arc::new(match file {
        Some(_) => read_titles(home),
        None => Titles::new(),
    });
    *last = Some(Cached {
        home: home.to_owned(),
        file,
        titles: titles.clone(),
    });
    titles
}
