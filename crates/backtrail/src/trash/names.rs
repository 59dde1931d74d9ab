//! What a session is called: words that its forks inherit.

use crate::error::Result;
use crate::json::{Fields, Json};
use crate::session::{Editor, Rewritten, SessionFiles, SessionReader, fields_of};
use crate::trail::{RecordKind, RecordRef};

/// The titles and tags that a session ever had.
#[derive(Debug, Default)]
pub(super) struct Names {
    titles: Vec<String>,
    tags: Vec<String>,
}

impl Names {
    pub(super) fn of(files: &SessionFiles) -> Result<Self> {
        let mut names = Self::default();
        for trail in files.trails()? {
            let mut reader = SessionReader::trail_of(files, trail)?;
            while let Some(record) = reader.next_record()? {
                names.add(&record);
            }
        }
        Ok(names)
    }

    fn add(&mut self, record: &RecordRef<'_>) {
        let (title, tags) = said_in(record);
        if let Some(title) = title
            && !self.titles.contains(&title)
        {
            self.titles.push(title);
        }
        for tag in tags {
            if !self.tags.contains(&tag) {
                self.tags.push(tag);
            }
        }
    }

    fn is_in(&self, record: &RecordRef<'_>) -> bool {
        let (title, tags) = said_in(record);
        title.is_some_and(|title| self.titles.contains(&title))
            || tags.iter().any(|tag| self.tags.contains(tag))
    }

    /// Returns whether any trail of a session has one of them.
    pub(super) fn are_in(&self, files: &SessionFiles) -> Result<bool> {
        for trail in files.trails()? {
            let mut reader = SessionReader::trail_of(files, trail)?;
            while let Some(record) = reader.next_record()? {
                if self.is_in(&record) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Returns the title and the tags in an opener or a note.
fn said_in(record: &RecordRef<'_>) -> (Option<String>, Vec<String>) {
    if !matches!(record.kind(), RecordKind::Opener | RecordKind::Note) {
        return (None, Vec::new());
    }
    let Ok(fields) = fields_of(record) else {
        return (None, Vec::new());
    };
    let title = fields.get("title").and_then(|title| title.parse().ok());
    let tags = fields.get("tags").and_then(|tags| tags.parse().ok());
    (title, tags.unwrap_or_default())
}

impl Editor for Names {
    fn edit(&self, record: &RecordRef<'_>) -> Result<Rewritten> {
        if !self.is_in(record) {
            return Ok(Rewritten::AsItIs);
        }
        let Ok(fields) = fields_of(record) else {
            return Ok(Rewritten::AsItIs);
        };
        let mut rest = Fields::default();
        for (name, value) in fields.iter() {
            match name {
                "title" if self.is_title(value) => {}
                "tags" => {
                    let tags: Vec<String> = value.parse().unwrap_or_default();
                    let tags: Vec<&String> =
                        tags.iter().filter(|tag| !self.tags.contains(tag)).collect();
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

impl Names {
    fn is_title(&self, value: &Json) -> bool {
        let title: Option<String> = value.parse().ok();
        title.is_some_and(|title| self.titles.contains(&title))
    }
}
