//! The chats of a file, each as a file of its own.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::blocks::{Kind, RawLines, kind_of};
use super::{name_of, started_at};
use crate::container::{ContainedSession, Container, Contents, FileStamp, Spool};
use crate::error::Result;
use crate::formats::keys::{UniqueKeys, short_hash};
use crate::source::Source;

/// The chats of a file.
#[derive(Debug)]
pub(super) struct Chats {
    source: Source,
    chats: Vec<Chat>,
    /// Where they are in the file, by their names.
    ranges: HashMap<String, Range<u64>>,
}

/// A chat of a file.
#[derive(Debug)]
struct Chat {
    name: String,
    range: Range<u64>,
    has_prompt: bool,
}

impl Chats {
    /// Finds the chats of a file. What is before the first belongs to it.
    pub(super) fn read(source: Source) -> Result<Self> {
        let mut chats: Vec<Chat> = Vec::new();
        let mut names = UniqueKeys::default();
        let mut lines = RawLines::new(&source, 0);
        while let Some(line) = lines.next()? {
            if let Some(started) = started_at(&line.text) {
                let from = match chats.last_mut() {
                    Some(last) => {
                        last.range.end = line.range.start;
                        line.range.start
                    }
                    None => 0,
                };
                chats.push(Chat {
                    name: names.unique(name_of(started)).replace('~', "-"),
                    range: from..source.len(),
                    has_prompt: false,
                });
            } else if let Some(last) = chats.last_mut() {
                last.has_prompt |= kind_of(&line.text, None).0 == Some(Kind::Prompt);
            }
        }
        let range = |chat: &Chat| (chat.name.clone(), chat.range.clone());
        Ok(Self {
            source,
            ranges: chats.iter().map(range).collect(),
            chats,
        })
    }

    fn session(&self, chat: &Chat) -> Result<ContainedSession> {
        let bytes = self.source.read_range(chat.range.clone())?;
        let stamp = FileStamp {
            len: chat.range.end - chat.range.start,
            modified_ns: 0,
            inode: u64::from_le_bytes(short_hash(&bytes)),
        };
        Ok(ContainedSession {
            path: self.source.path().join(format!("{}.md", chat.name)),
            stamp,
            is_sub_agent: false,
        })
    }
}

impl Container for Chats {
    /// Lists the chats in which the user wrote something.
    fn contents(&self) -> Result<Contents> {
        let (asked, empty): (Vec<&Chat>, Vec<&Chat>) =
            self.chats.iter().partition(|chat| chat.has_prompt);
        let sessions = asked.into_iter().map(|chat| self.session(chat));
        let mut others = BTreeMap::new();
        if !empty.is_empty() {
            let without = "chat without a prompt".to_owned();
            others.insert(without, empty.len() as u64);
        }
        Ok(Contents {
            sessions: sessions.collect::<Result<_>>()?,
            others,
            damaged: 0,
        })
    }

    fn write(&self, session: &ContainedSession, out: &mut Spool) -> Result<bool> {
        let name = session.path.file_stem().and_then(|name| name.to_str());
        let Some(range) = name.and_then(|name| self.ranges.get(name)) else {
            return Ok(false);
        };
        let bytes = self.source.read_range(range.clone())?;
        out.add(&bytes)?;
        Ok(true)
    }
}
