//! The size of files on disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Result;

/// The size of the files below a directory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// The sum of their lengths.
    pub(super) bytes: u64,
    /// The allocated space, including directories.
    pub(super) on_disk: u64,
}

impl Size {
    /// Adds up everything below `dir`, without its entry `leave_out`.
    pub(super) fn of(dir: &Path, leave_out: Option<&str>) -> Result<Self> {
        let mut size = Self::default();
        let mut left = vec![dir.to_owned()];
        while let Some(at) = left.pop() {
            size.on_disk += fs::symlink_metadata(&at)?.blocks() * 512;
            for entry in fs::read_dir(&at)? {
                let entry = entry?;
                let path = entry.path();
                if leave_out.is_some_and(|name| path == dir.join(name)) {
                    continue;
                }
                let metadata = entry.metadata()?;
                if metadata.is_dir() {
                    left.push(path);
                } else {
                    size.bytes += metadata.len();
                    size.on_disk += metadata.blocks() * 512;
                }
            }
        }
        Ok(size)
    }

    /// Returns the increase since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            on_disk: self.on_disk.saturating_sub(before.on_disk),
        }
    }

    /// Returns the size multiplied by a factor.
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            bytes: (self.bytes as f64 * factor) as u64,
            on_disk: (self.on_disk as f64 * factor) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_add_up_and_skipped_entries_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["derived", "kept", "kept/derived"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("file"), [1; 1_000]).unwrap();
        }
        let bytes = |leave_out| Size::of(dir.path(), leave_out).unwrap().bytes;
        assert_eq!((bytes(None), bytes(Some("derived"))), (3_000, 2_000));
    }
}
