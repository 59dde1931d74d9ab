//! Emptying the staging directory. Nothing is removed that the store does not have; what
//! somebody wrote meanwhile goes back to its path, or beside it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;

use super::super::path_change::PathEntry;
use super::compare::{errno, is_link};
use super::in_batches;
use super::mover::{CHANGED, Mover};
use super::root_dir::{SplitPath, is_gone, is_unsupported};
use super::staging_dir::{NEW, OLD, hash_of};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::FileKind;
use crate::snapshot::name::shown;
use crate::snapshot::scan::split;
use crate::snapshot::scan::sys::{self, Seen};

/// The suffix of a file that is saved beside its path.
const SAVED: &str = ".backtrail-saved";
const LONGEST_NAME: usize = 255;
/// A shorter file is always read again before it is removed.
const SHORT: u64 = 256 * 1024;

/// What a staged file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StagedKind {
    /// The old file, which the store has.
    Old,
    /// The new file, or a beginning of it that we wrote.
    New,
    /// A file that somebody else changed.
    Foreign,
}

impl Mover<'_> {
    /// Returns the staged names, and the numbers of their items.
    pub(super) fn staged_names(&self) -> Result<Vec<(String, usize)>> {
        let hashes = self.work.items.iter().map(|item| hash_of(&item.path));
        let numbers: HashMap<String, usize> = hashes.zip(0..).collect();
        let names = self.staging.names(&self.root_dir)?.into_iter();
        let found = names.filter_map(|name| {
            let hash = name.strip_prefix(NEW).or_else(|| name.strip_prefix(OLD))?;
            let number = *numbers.get(hash)?;
            Some((name, number))
        });
        Ok(found.collect())
    }

    /// Removes all that the store has, and saves what it does not have. A failure does not
    /// stop the rest.
    pub(super) fn sweep(&mut self) -> Result<()> {
        let names = self.staged_names()?;
        let foreign = in_batches(&names, &self.root_dir, |names| {
            let swept = names.iter().map(|(name, n)| -> Result<bool> {
                let is_foreign = self.staged_kind(name, *n)? == StagedKind::Foreign;
                if !is_foreign {
                    self.staging.unlink(&self.root_dir, name, self.path(*n))?;
                }
                Ok(is_foreign)
            });
            Ok(swept.collect())
        })?;
        let mut all = Ok(());
        for ((name, n), is_foreign) in names.iter().zip(foreign) {
            let swept = match is_foreign {
                Ok(true) => self.rescue(name, *n),
                swept => swept.map(drop),
            };
            all = all.and(swept);
        }
        all
    }

    /// Finds out what a staged file is.
    pub(super) fn staged_kind(&self, name: &str, n: usize) -> Result<StagedKind> {
        let read = self
            .root_dir
            .call("read", self.path(n), || self.examine(name, n));
        let failed = |error| self.failed("read a staged file", "read", n, error);
        match read.map_err(failed)? {
            Some(staged_kind) => Ok(staged_kind),
            None => self.beginning(name, n),
        }
    }

    /// `None` may be a beginning of what is new.
    fn examine(&self, name: &str, n: usize) -> rustix::io::Result<Option<StagedKind>> {
        let item = &self.work.items[n];
        let seen = sys::seen_at(&self.staging.fd, name)?;
        match seen.kind {
            FileKind::Link => {
                let leads = |entry: &Option<PathEntry>| match entry {
                    Some(PathEntry::Link { target }) => {
                        is_link(&self.staging.fd, name.as_bytes(), target)
                    }
                    _ => Ok(false),
                };
                Ok(Some(match (leads(&item.old)?, leads(&item.new)?) {
                    (true, _) => StagedKind::Old,
                    (_, true) => StagedKind::New,
                    _ => StagedKind::Foreign,
                }))
            }
            FileKind::File => self.examine_file(name, n, &seen),
            _ => Ok(Some(StagedKind::Foreign)),
        }
    }

    fn examine_file(
        &self,
        name: &str,
        n: usize,
        seen: &Seen,
    ) -> rustix::io::Result<Option<StagedKind>> {
        let (item, prepared) = (&self.work.items[n], &self.prepared[n]);
        if prepared
            .staged
            .is_some_and(|staged| staged.seen.stamp == seen.stamp)
        {
            return Ok(Some(StagedKind::New));
        }
        let is_known = prepared.known.is_some_and(|known| known.is_still(seen));
        if is_known && seen.stamp.size > SHORT {
            return Ok(Some(StagedKind::Old));
        }
        let [old, new] = [&item.old, &item.new].map(|entry| entry.as_ref()?.file());
        let size = seen.stamp.size;
        if old.iter().chain(&new).any(|own| own.size == size) {
            let file = File::from(sys::open_file(&self.staging.fd, name)?);
            let found = ObjectId::of_reader(&file).map_err(errno)?;
            if old.is_some_and(|old| old.content == found) {
                return Ok(Some(StagedKind::Old));
            }
            if new.is_some_and(|new| new.content == found) {
                return Ok(Some(StagedKind::New));
            }
        }
        let may_begin = name.starts_with(NEW) && new.is_some_and(|new| size <= new.size);
        Ok((!may_begin).then_some(StagedKind::Foreign))
    }

    /// Compares a file with the beginning of the new one. After a power cut the last bytes
    /// may be NULs.
    fn beginning(&self, name: &str, n: usize) -> Result<StagedKind> {
        let Some(PathEntry::File(new)) = &self.work.items[n].new else {
            return Ok(StagedKind::Foreign);
        };
        let failed = |error| self.failed("read a staged file", "read", n, error);
        let mut file = File::from(sys::open_file(&self.staging.fd, name).map_err(failed)?);
        let mut rest = sys::seen(&file).map_err(failed)?.len();
        let (mut lost, mut foreign) = (false, false);
        let compared = self.work.objects.read_to(&new.content, &mut |piece| {
            let mut found = Vec::with_capacity(piece.len());
            let read = (&mut file).take(piece.len() as u64).read_to_end(&mut found);
            read.map_err(|error| failed(errno(error)))?;
            for (a, b) in found.iter().zip(piece) {
                lost |= a != b;
                foreign |= lost && *a != 0;
            }
            rest = rest.saturating_sub(found.len() as u64);
            // The result is known.
            match rest == 0 || foreign {
                true => Err(Error::new(ErrorKind::Conflict, "compared")),
                false => Ok(()),
            }
        });
        match compared {
            _ if foreign => Ok(StagedKind::Foreign),
            _ if rest == 0 => Ok(StagedKind::New),
            Ok(()) => Ok(StagedKind::Foreign),
            Err(error) => Err(error),
        }
    }

    /// Puts back what somebody wrote to a file while it was moved.
    pub(super) fn rescue(&mut self, name: &str, n: usize) -> Result<()> {
        let place = SplitPath::of(self.path(n));
        self.touched.insert(place.dir_path());
        if self.bring_back(place, name, n)? {
            self.prepared[n].left = Some(CHANGED.to_owned());
            // The file that came out in exchange is ours.
            let again = sys::seen_at(&self.staging.fd, name).is_ok();
            if again && self.staged_kind(name, n)? != StagedKind::Foreign {
                self.staging.unlink(&self.root_dir, name, place.path)?;
            }
            return Ok(());
        }
        let saved = self.save_beside(place, name, n)?;
        self.prepared[n].left = Some(format!("{CHANGED}; it was saved as {}", shown(&saved)));
        Ok(())
    }

    fn bring_back(&self, place: SplitPath<'_>, name: &str, n: usize) -> Result<bool> {
        let failed = |error| self.failed("put a file back", "renameat2", n, error);
        let stands = self.root_dir.look(place.path).map_err(failed)?;
        let moved = match (stands, &self.work.items[n].new) {
            (None, _) => self.root_dir.put(&self.staging.fd, name, place, None),
            (Some(_), Some(new))
                if !new.is_dir() && self.root_dir.is_at(place, new).map_err(failed)? =>
            {
                let dir = self.root_dir.exchange(&self.staging.fd, name, place);
                dir.map(|_| ())
            }
            _ => return Ok(false),
        };
        match moved {
            Ok(()) => Ok(true),
            Err(error) if is_gone(error) || is_unsupported(error) => Ok(false),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Moves a staged file to a free name beside its path, or in the nearest directory above
    /// that exists, and returns where.
    fn save_beside(&self, place: SplitPath<'_>, name: &str, n: usize) -> Result<PathBuf> {
        let mut dir = place.dir;
        let mut number = 1_u32;
        loop {
            let suffix = match number {
                1 => SAVED.to_owned(),
                number => format!("{SAVED}-{number}"),
            };
            let kept = place.name.len().min(LONGEST_NAME - suffix.len());
            let beside = [&place.name[..kept], suffix.as_bytes()].concat();
            let to = SplitPath {
                path: place.path,
                dir,
                name: &beside,
            };
            match self.root_dir.put(&self.staging.fd, name, to, None) {
                Ok(()) => return Ok(to.dir_path().join(OsStr::from_bytes(&beside))),
                Err(Errno::EXIST) => number += 1,
                Err(error) if is_gone(error) && !dir.is_empty() => dir = split(dir).0,
                Err(error) => return Err(self.failed("save a file", "renameat2", n, error)),
            }
        }
    }
}
