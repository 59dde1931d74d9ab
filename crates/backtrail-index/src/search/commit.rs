//! The commit: one file with the segments, the state of their files, and the trails in
//! them.
//!
//! It is replaced atomically, so a reader sees one state or the next. A process that dies
//! leaves files that no commit names, which the next writer removes.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use backtrail::SessionId;

use crate::error::{Error, Result};
use crate::files::create_file;
use crate::seal::Seal;
use crate::trail_dirs::{KnownTrail, TrailFile};

/// The name of the file.
pub(super) const NAME: &str = "commit";
/// The temporary name.
const ASIDE: &str = "commit-new";
/// The first bytes; the number is the version.
const HEAD: &[u8] = b"backtrail search 1\n";

/// A trail in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedTrail {
    pub(crate) session: SessionId,
    pub(crate) known: KnownTrail,
    /// The number of the trail in the index.
    pub(crate) ordinal: u32,
    /// How many of its records are in the index.
    pub(crate) docs: u32,
}

/// The content of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    /// The segments, as tantivy's metadata.
    pub(super) meta: Vec<u8>,
    /// The state of their files.
    pub(super) seal: Seal,
    /// The number for the next new trail.
    pub(super) next_ordinal: u32,
    /// The number of records, including those of removed trails.
    pub(super) docs: u64,
    /// The trails by session and number.
    pub(super) trails: Vec<IndexedTrail>,
}

impl Commit {
    /// Reads the commit of a directory; `Ok(None)` if there is none, `Ok(Some(Err))` if
    /// it is invalid.
    pub(super) fn read(dir: &Path) -> Result<Option<Result<Self, &'static str>>> {
        let path = dir.join(NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if is_missing(&error) => return Ok(None),
            // Something else is in its place.
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                return Ok(Some(Err("its commit is a directory")));
            }
            Err(error) => return Err(Error::io("cannot read", &path, error)),
        };
        Ok(Some(Self::parse(&bytes)))
    }

    /// Replaces the commit durably. The files that it names must be durable.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let aside = dir.join(ASIDE);
        let failed = |error| Error::io("cannot write", &aside, error);
        let bytes = self.to_bytes().map_err(failed)?;
        let mut file = create_file(&aside).map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        let path = dir.join(NAME);
        fs::rename(&aside, &path).map_err(|error| Error::io("cannot replace", &path, error))?;
        sync_dir(dir)
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let seal = self.seal.to_text()?;
        let mut body = Vec::with_capacity(self.meta.len() + seal.len() + 96 * self.trails.len());
        put_slice(&mut body, &self.meta);
        put_slice(&mut body, seal.as_bytes());
        body.extend(self.next_ordinal.to_le_bytes());
        body.extend(self.docs.to_le_bytes());
        body.extend((self.trails.len() as u32).to_le_bytes());
        for trail in &self.trails {
            put_slice(&mut body, trail.session.as_str().as_bytes());
            let KnownTrail { seen, read_to, sum } = trail.known;
            body.extend(seen.number.to_le_bytes());
            body.extend(seen.bytes.to_le_bytes());
            body.extend(seen.modified.to_le_bytes());
            body.extend(read_to.to_le_bytes());
            body.extend(sum);
            body.extend(trail.ordinal.to_le_bytes());
            body.extend(trail.docs.to_le_bytes());
        }
        let mut bytes = Vec::with_capacity(HEAD.len() + 32 + body.len());
        bytes.extend(HEAD);
        bytes.extend(blake3::hash(&body).as_bytes());
        bytes.extend(body);
        Ok(bytes)
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let rest = bytes.strip_prefix(HEAD);
        let rest = rest.ok_or("it has another version")?;
        let (check, body) = rest.split_at_checked(32).ok_or("its commit is truncated")?;
        if blake3::hash(body).as_bytes() != check {
            return Err("its commit is damaged");
        }
        let mut fields = FieldReader { rest: body };
        Self::read_fields(&mut fields).ok_or("its commit is invalid")
    }

    fn read_fields(fields: &mut FieldReader<'_>) -> Option<Self> {
        let meta = fields.slice()?.to_owned();
        let seal = Seal::parse(std::str::from_utf8(fields.slice()?).ok()?)?;
        let next_ordinal = u32::from_le_bytes(fields.take()?);
        let docs = u64::from_le_bytes(fields.take()?);
        let count = u32::from_le_bytes(fields.take()?);
        // The minimum size of each, so that a wrong count allocates no memory.
        let mut trails = Vec::with_capacity((count as usize).min(fields.rest.len() / 48));
        for _ in 0..count {
            trails.push(fields.trail()?);
        }
        fields.rest.is_empty().then_some(Self {
            meta,
            seal,
            next_ordinal,
            docs,
            trails,
        })
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> Result<()> {
    let synced = fs::File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| Error::io("cannot sync", dir, error))
}

/// Returns whether the error means that the file does not exist.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn put_slice(out: &mut Vec<u8>, slice: &[u8]) {
    out.extend((slice.len() as u32).to_le_bytes());
    out.extend(slice);
}

struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn slice(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn trail(&mut self) -> Option<IndexedTrail> {
        let session = std::str::from_utf8(self.slice()?).ok()?;
        Some(IndexedTrail {
            session: session.parse().ok()?,
            known: KnownTrail {
                seen: TrailFile {
                    number: u32::from_le_bytes(self.take()?),
                    bytes: u64::from_le_bytes(self.take()?),
                    modified: i64::from_le_bytes(self.take()?),
                },
                read_to: u64::from_le_bytes(self.take()?),
                sum: self.take()?,
            },
            ordinal: u32::from_le_bytes(self.take()?),
            docs: u32::from_le_bytes(self.take()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit() -> Commit {
        let trail = |number| IndexedTrail {
            session: "7f3a".parse().expect("an id"),
            known: KnownTrail {
                seen: TrailFile {
                    number,
                    bytes: 1000,
                    modified: 5,
                },
                read_to: 990,
                sum: *b"12345678",
            },
            ordinal: 3 + number,
            docs: 9,
        };
        Commit {
            meta: b"{}".to_vec(),
            seal: Seal::default(),
            next_ordinal: 9,
            docs: 20,
            trails: vec![trail(0), trail(1)],
        }
    }

    #[test]
    fn a_commit_comes_back_as_it_was() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(Commit::read(dir.path()).expect("read").is_none());
        commit().write(dir.path()).expect("written");
        assert_eq!(Commit::read(dir.path()).expect("read"), Some(Ok(commit())));
    }

    #[test]
    fn damage_to_any_byte_of_a_commit_is_seen() {
        let whole = commit().to_bytes().expect("bytes");
        assert_eq!(Commit::parse(&whole), Ok(commit()));
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            assert!(Commit::parse(&bad).is_err(), "byte {at}");
            assert!(Commit::parse(&whole[..at]).is_err(), "cut at {at}");
        }
    }
}
