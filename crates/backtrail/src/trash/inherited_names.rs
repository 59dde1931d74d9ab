//! Titles and tags that forks inherit, and that a purge removes there.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::ObjectId;
use crate::json::{Fields, Json};
use crate::log::{Editor, LogDir, LogReader, Rewritten};

use crate::trail::{RecordKind, RecordRef};

/// The hashes of all titles and tags that a session ever had. They are kept as long as
/// forks have some of them; the text itself must not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NameHashes {
    #[serde(default)]
    titles: HashSet<ObjectId>,
    #[serde(default)]
    tags: HashSet<ObjectId>,
}

impl NameHashes {
    pub(super) fn of(files: &LogDir) -> Result<Self> {
        let mut names = Self::default();
        each_record(files, |record| {
            let (title, tags) = said_in(record);
            names.titles.extend(title.map(|title| hash(&title)));
            names.tags.extend(tags.iter().map(|tag| hash(tag)));
        })?;
        Ok(names)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.titles.is_empty() && self.tags.is_empty()
    }

    /// Returns those that a fork has inherited.
    pub(super) fn inherited_by(&self, files: &LogDir) -> Result<Inherited> {
        let mut inherited = Inherited::default();
        each_record(files, |record| inherited.look(self, record))?;
        Ok(inherited)
    }
}

fn hash(word: &str) -> ObjectId {
    ObjectId::of(word.as_bytes())
}

fn each_record(files: &LogDir, mut look: impl FnMut(&RecordRef<'_>)) -> Result<()> {
    for trail in files.trails()? {
        let mut reader = LogReader::trail_of(files, trail)?;
        while let Some(record) = reader.next_record()? {
            look(&record);
        }
    }
    Ok(())
}

/// The title and tags that a fork began with, and the last record that has each of them.
/// Notes repeat everything; a tag that was removed and set again is the fork's own.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    titles: HashMap<String, u64>,
    tags: HashMap<String, u64>,
    /// What the last opener or note had.
    title_now: Option<String>,
    tags_now: Vec<String>,
}

impl Inherited {
    pub(super) fn is_empty(&self) -> bool {
        self.titles.is_empty() && self.tags.is_empty()
    }

    fn look(&mut self, names: &NameHashes, record: &RecordRef<'_>) {
        let begins = record.kind() == RecordKind::Opener;
        if !begins && record.kind() != RecordKind::Note {
            return;
        }
        let first = begins && self.title_now.is_none() && self.tags_now.is_empty();
        let (title, tags) = said_in(record);
        let title = title.filter(|title| {
            let named = names.titles.contains(&hash(title));
            named && (first || self.title_now.as_ref() == Some(title))
        });
        let goes_on = |tag: &String| {
            let named = names.tags.contains(&hash(tag));
            named && (first || self.tags_now.contains(tag))
        };
        let tags: Vec<String> = tags.into_iter().filter(goes_on).collect();
        let seq = record.seq();
        self.titles.extend(title.iter().map(|it| (it.clone(), seq)));
        self.tags.extend(tags.iter().map(|it| (it.clone(), seq)));
        self.title_now = title;
        self.tags_now = tags;
    }

    fn has_title(&self, title: &str, seq: u64) -> bool {
        self.titles.get(title).is_some_and(|last| seq <= *last)
    }

    fn has_tag(&self, tag: &str, seq: u64) -> bool {
        self.tags.get(tag).is_some_and(|last| seq <= *last)
    }

    fn is_in(&self, record: &RecordRef<'_>) -> bool {
        let (title, tags) = said_in(record);
        let seq = record.seq();
        title.is_some_and(|title| self.has_title(&title, seq))
            || tags.iter().any(|tag| self.has_tag(tag, seq))
    }
}

/// Returns the title and the tags in an opener or a note.
fn said_in(record: &RecordRef<'_>) -> (Option<String>, Vec<String>) {
    if !matches!(record.kind(), RecordKind::Opener | RecordKind::Note) {
        return (None, Vec::new());
    }
    let Ok(fields) = record.parse::<Fields>() else {
        return (None, Vec::new());
    };
    let title = fields.get("title").and_then(|title| title.parse().ok());
    let tags = fields.get("tags").and_then(|tags| tags.parse().ok());
    (title, tags.unwrap_or_default())
}

impl Editor for Inherited {
    fn edit(&self, record: &RecordRef<'_>) -> Result<Rewritten> {
        if !self.is_in(record) {
            return Ok(Rewritten::AsItIs);
        }
        let Ok(fields) = record.parse::<Fields>() else {
            return Ok(Rewritten::AsItIs);
        };
        let seq = record.seq();
        let mut rest = Fields::default();
        for (name, value) in fields.iter() {
            match name {
                "title" if self.is_title(value, seq) => {}
                "tags" => {
                    let mut tags: Vec<String> = value.parse().unwrap_or_default();
                    tags.retain(|tag| !self.has_tag(tag, seq));
                    if !tags.is_empty() {
                        rest.push(name, Json::from_value(&tags)?);
                    }
                }
                _ => rest.push(name, value.clone()),
            }
        }
        Ok(Rewritten::Fields(rest))
    }

    fn may_stay(&self, _bytes: &[u8]) -> bool {
        true
    }
}

impl Inherited {
    fn is_title(&self, value: &Json, seq: u64) -> bool {
        let title: Option<String> = value.parse().ok();
        title.is_some_and(|title| self.has_title(&title, seq))
    }
}
