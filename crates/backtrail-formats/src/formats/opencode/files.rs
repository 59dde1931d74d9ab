//! The files of older versions, to 1.1: `storage/session/<project>/<session>.json`,
//! `storage/message/<session>/<message>.json` and `storage/part/<message>/<part>.json`.
//!
//! A session is written out as one line for each file, with the file's path below `storage`
//! and its text: `{"file":"message/ses_1/msg_1.json","text":"…"}`. So each file can be made
//! again as it was. One that is not UTF-8 has `bytes` in Base64, and one that cannot be read
//! says why (`damaged`). The parts of a message follow it, and the session comes last.

use std::fs;
use std::path::{Component, Path, PathBuf};

use backtrail::{LocalStorage, Storage as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::container::{ContainedSession, Container, Contents, FileStamp, Spool};
use crate::error::{Error, Result};
use crate::json::Object;
use crate::source::{Source, file_name};

/// A session that is spread over many files.
pub(super) struct SessionFiles {
    /// The file of the session.
    path: PathBuf,
    /// The directory `storage`.
    storage: PathBuf,
    id: String,
    is_sub_agent: bool,
}

/// Returns whether a file is that of a session, by its path.
pub(super) fn is_session_path(path: &Path) -> bool {
    let folder = path.ancestors().nth(2).map(file_name);
    folder == Some("session") && file_name(path).ends_with(".json")
}

/// Returns whether a file is a message or a part, by its path.
pub(super) fn is_part_path(path: &Path) -> bool {
    let above = |levels| path.ancestors().nth(levels);
    let is_in = |levels: usize, names: &[&str]| {
        let folder = above(levels).map(file_name).unwrap_or_default();
        names.contains(&folder)
            && above(levels + 1).is_some_and(|storage| storage.join("session").is_dir())
    };
    file_name(path).ends_with(".json")
        && (is_in(2, &["message", "part"]) || is_in(1, &["part", "project", "session_diff"]))
}

/// Returns whether a value is that of a session.
pub(super) fn is_session(fields: &[String]) -> bool {
    let has = |name: &str| fields.iter().any(|field| field == name);
    ["id", "projectID", "directory", "title", "version", "time"]
        .into_iter()
        .all(has)
        && !has("messages")
}

impl SessionFiles {
    /// Opens a session. `None` if the file is not that of one.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        let Some(storage) = path.ancestors().nth(3).filter(|_| is_session_path(path)) else {
            return Ok(None);
        };
        let text = Source::open(path)?.read_value()?;
        let info = Object::parse(&text).unwrap_or_default();
        let stem = file_name(path).trim_end_matches(".json");
        let id = info.trimmed("id").filter(|id| is_name(id));
        Ok(Some(Self {
            path: path.to_owned(),
            storage: storage.to_owned(),
            id: id.unwrap_or_else(|| stem.to_owned()),
            is_sub_agent: info.has("parentID"),
        }))
    }

    /// Returns the messages, in the order in which they were made.
    fn messages(&self) -> Vec<Message> {
        let folder = self.storage.join("message").join(&self.id);
        let mut messages: Vec<Message> = files_in(&folder)
            .into_iter()
            .map(|path| {
                let text = read(&path).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let value = Object::parse(&text).unwrap_or_default();
                let stem = file_name(&path).trim_end_matches(".json").to_owned();
                let time = value.object("time").unwrap_or_default();
                Message {
                    created: time.number("created").unwrap_or(u64::MAX),
                    id: value.trimmed("id").unwrap_or(stem),
                    path,
                }
            })
            .collect();
        messages.sort_by(|a, b| (a.created, &a.path).cmp(&(b.created, &b.path)));
        messages
    }

    /// Returns the parts of a message, in the order in which they were made.
    fn parts(&self, message: &Message, loose: &[(String, PathBuf)]) -> Vec<PathBuf> {
        let mut parts = match is_name(&message.id) {
            true => files_in(&self.storage.join("part").join(&message.id)),
            false => Vec::new(),
        };
        let own = loose.iter().filter(|(of, _)| *of == message.id);
        parts.extend(own.map(|(_, path)| path.clone()));
        parts
    }

    /// Returns the parts that are in no folder, with their messages.
    fn loose_parts(&self) -> Vec<(String, PathBuf)> {
        let folder = self.storage.join("part");
        // Usually there are only folders, and very many of them.
        const LOOKED_AT: usize = 16;
        let mut first = entries_of(&folder).into_iter().take(LOOKED_AT);
        if !first.all(|path| is_file(&path)) {
            return Vec::new();
        }
        let message = |path: PathBuf| {
            let text = read(&path).ok()?;
            let text = String::from_utf8_lossy(&text);
            let message = Object::parse(&text).ok()?.trimmed("messageID")?;
            Some((message, path))
        };
        files_in(&folder).into_iter().filter_map(message).collect()
    }

    /// Passes on all files in the order in which they are written out.
    fn each_file(&self, mut each: impl FnMut(&Path) -> Result<()>) -> Result<()> {
        let loose = self.loose_parts();
        for message in self.messages() {
            each(&message.path)?;
            for part in self.parts(&message, &loose) {
                each(&part)?;
            }
        }
        each(&self.path)
    }

    fn stamp(&self) -> Result<FileStamp> {
        let mut stamp = FileStamp::default();
        let mut files = 0;
        self.each_file(|path| {
            files += 1;
            if let Ok(metadata) = fs::metadata(path) {
                use std::os::unix::fs::MetadataExt as _;
                let seconds = i128::from(metadata.mtime());
                let modified = seconds * 1_000_000_000 + i128::from(metadata.mtime_nsec());
                stamp.len += metadata.len();
                stamp.modified_ns = stamp.modified_ns.max(modified);
            }
            Ok(())
        })?;
        stamp.inode = files;
        Ok(stamp)
    }
}

/// The file of a message.
struct Message {
    id: String,
    /// When it was made, in milliseconds.
    created: u64,
    path: PathBuf,
}

impl Container for SessionFiles {
    fn contents(&self) -> Result<Contents> {
        let session = ContainedSession {
            path: self.path.join(format!("{}.jsonl", self.id)),
            stamp: self.stamp()?,
            is_sub_agent: self.is_sub_agent,
        };
        Ok(Contents {
            sessions: vec![session],
            ..Contents::default()
        })
    }

    fn write(&self, _: &ContainedSession, out: &mut Spool) -> Result<bool> {
        self.each_file(|path| {
            let name = path.strip_prefix(&self.storage).unwrap_or(path);
            let name = json_string(&name.to_string_lossy());
            let (field, value) = match read(path).map(String::from_utf8) {
                Ok(Ok(text)) => ("text", text),
                Ok(Err(error)) => ("bytes", STANDARD.encode(error.as_bytes())),
                Err(error) => ("damaged", error.message().to_owned()),
            };
            let value = json_string(&value);
            let line = format!("{{\"file\":{name},\"{field}\":{value}}}\n");
            out.add(line.as_bytes())
        })?;
        Ok(true)
    }
}

fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

/// Returns whether an id is the name of one file or folder.
fn is_name(id: &str) -> bool {
    let mut parts = Path::new(id).components();
    matches!(parts.next(), Some(Component::Normal(name)) if name == id) && parts.next().is_none()
}

/// Returns the JSON files in a folder, by their names. There are none if there is no folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths = entries_of(folder);
    paths.retain(|path| file_name(path).ends_with(".json") && is_file(path));
    paths.sort();
    paths
}

fn entries_of(folder: &Path) -> Vec<PathBuf> {
    let names = LocalStorage.list(folder).unwrap_or_default().into_iter();
    names.map(|name| folder.join(name)).collect()
}

/// Returns whether it is a file, and no link to one.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let source = Source::open(path)?;
    const MAX: u64 = 64 << 20;
    if source.len() > MAX {
        return Err(Error::invalid("the file is larger than 64 MiB", path));
    }
    source.read_range(0..source.len())
}
