//! The file names of packs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::format::Salt;

/// A pack's name: a random stem, and whether the pack is sealed.
///
/// A pack is `<16 hexadecimal digits>.open` until its seal is durable. Only then is it
/// linked to the name with `.pack`, so a pack with that name needs no sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackName {
    pub(super) stem: u64,
    pub(super) is_sealed: bool,
}

impl PackName {
    pub(super) fn open(stem: u64) -> Self {
        let is_sealed = false;
        Self { stem, is_sealed }
    }

    pub(super) fn sealed(self) -> Self {
        let is_sealed = true;
        Self { is_sealed, ..self }
    }

    pub(super) fn parse(name: &OsStr) -> Option<Self> {
        let (digits, suffix) = name.to_str()?.split_once('.')?;
        let is_sealed = match suffix {
            "pack" => true,
            "open" => false,
            _ => return None,
        };
        let stem = u64::from_str_radix(digits, 16).ok()?;
        let name = Self { stem, is_sealed };
        (name.digits() == digits).then_some(name)
    }

    pub(super) fn path(self, dir: &Path) -> PathBuf {
        let suffix = if self.is_sealed { "pack" } else { "open" };
        dir.join(format!("{}.{suffix}", self.digits()))
    }

    pub(super) fn salt(self) -> Salt {
        self.stem.to_be_bytes()
    }

    fn digits(self) -> String {
        format!("{:016x}", self.stem)
    }
}
