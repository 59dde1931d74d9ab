//! Checking every object.

use std::io;
use std::path::PathBuf;

use super::entry::{Entry, proven_id, read_entry};
use super::format::{PACK_HEADER, Record};
use super::name::PackName;
use super::pack::{Look, Pack, Rest, is_header, read_range};
use super::{ObjectId, Objects};
use crate::error::{Error, Result};
use crate::storage::StorageFile;

/// What was checked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) packs: u64,
    /// Copies of objects that are right; an object in two packs counts twice.
    pub(crate) objects: u64,
    /// How long the packs are together.
    pub(crate) bytes: u64,
    pub(crate) damages: u64,
    /// How many packs have something at their end that a crash left, or that is
    /// being written just now. Nobody was told that it is stored.
    pub(crate) leftovers: u64,
}

/// Something in a pack that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) path: PathBuf,
    pub(crate) byte: u64,
    /// The object that it concerns, where that is known.
    pub(crate) object: Option<ObjectId>,
    pub(crate) what: &'static str,
}

/// Who is told how far the check is, with what was found there.
type Visit<'a> = &'a mut dyn FnMut(&Verified, Option<&Damage>);

impl Objects {
    /// Reads and checks every copy of every object.
    ///
    /// `visit` hears of each pack before it is read and of each damage as it is
    /// found. Objects that turn out to be damaged are stored again by the next
    /// writer that is given their content.
    pub(crate) fn verify(&self, visit: Visit<'_>) -> Result<Verified> {
        let mut check = Check {
            objects: self,
            verified: Verified::default(),
            visit,
        };
        let shelf = &self.0.shelf;
        shelf.refresh()?;
        for name in shelf.names()? {
            match check.pack(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                checked => checked.map_err(|error| {
                    let path = name.path(&shelf.dir);
                    Error::io("cannot verify a pack of objects", &path, error)
                })?,
            }
        }
        Ok(check.verified)
    }
}

struct Check<'a> {
    objects: &'a Objects,
    verified: Verified,
    visit: Visit<'a>,
}

impl Check<'_> {
    fn pack(&mut self, name: PackName) -> io::Result<()> {
        let shelf = &self.objects.0.shelf;
        let file = shelf.file(name)?;
        let file = file.as_ref();
        let pack = match Pack::look(file, name, &shelf.codec)? {
            Look::Pack(pack) => pack,
            Look::Empty => {
                self.verified.leftovers += 1;
                return Ok(());
            }
            Look::Newer => {
                self.damaged(name, 0, None, "a pack of a version that is not known here");
                return Ok(());
            }
            Look::Foreign => {
                self.damaged(name, 0, None, "not a pack");
                return Ok(());
            }
        };
        self.verified.packs += 1;
        self.verified.bytes += pack.len;
        (self.visit)(&self.verified, None);
        if !is_header(&read_range(file, 0, PACK_HEADER as u64)?) {
            self.damaged(name, 0, None, "the pack's header is damaged");
        }
        for byte in &pack.damage {
            self.damaged(name, *byte, None, "the index is damaged");
        }
        let closely = pack.look_closely(file, &shelf.codec)?;
        if let (Some(_), true, true) = (&closely, pack.is_sealed(), pack.damage.is_empty()) {
            let at = pack.last.map_or(0, |last| last.at.into());
            self.damaged(name, at, None, "the index is damaged");
        }
        self.records(file, &pack)
    }

    fn records(&mut self, file: &dyn StorageFile, pack: &Pack) -> io::Result<()> {
        let mut records = pack.records(file)?;
        records.sort_unstable_by_key(|record| record.at);
        let mut has_leftover = pack.rest != Rest::Nothing;
        for record in records {
            match self.record(file, pack, record)? {
                None => self.verified.objects += 1,
                // What is in doubt may be what a power cut left of a commit.
                Some(_) if u64::from(record.at) >= pack.durable() => has_leftover = true,
                Some(what) => {
                    self.damaged(pack.name, record.at.into(), Some(record.id), what);
                }
            }
        }
        self.verified.leftovers += u64::from(has_leftover);
        Ok(())
    }

    /// Returns what is wrong with an entry, if anything is.
    fn record(
        &self,
        file: &dyn StorageFile,
        pack: &Pack,
        Record { id, at }: Record,
    ) -> io::Result<Option<&'static str>> {
        let shelf = &self.objects.0.shelf;
        let entry = read_entry(file, pack.salt(), at.into(), &shelf.codec)?;
        let entry = entry.filter(|entry| proven_id(entry) == id);
        Ok(match entry {
            None => {
                shelf.mark_broken(pack, at);
                Some("an object is damaged")
            }
            Some(Entry::Piece(_)) => None,
            Some(Entry::List(list)) => {
                let read = self.objects.read_list(&list, super::DEPTH, &mut |_| Ok(()));
                read.is_err()
                    .then_some("an object is damaged in one of its chunks")
            }
        })
    }

    fn damaged(&mut self, name: PackName, byte: u64, object: Option<ObjectId>, what: &'static str) {
        self.verified.damages += 1;
        let path = name.path(&self.objects.0.shelf.dir);
        let damage = Damage {
            path,
            byte,
            object,
            what,
        };
        (self.visit)(&self.verified, Some(&damage));
    }
}
