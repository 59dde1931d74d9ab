//! A file of another program, opened for reading.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use backtrail::{LocalStorage, Storage as _};

use crate::error::{Error, Result};

/// A file to read from, with access to the files beside it.
///
/// It ends where the file ended when it was opened, even if its agent appends to it.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    content: Content,
    len: u64,
    /// Whether each line is known to be a JSON object.
    has_checked_lines: bool,
}

#[derive(Debug)]
enum Content {
    File(File),
    Bytes(Vec<u8>),
}

/// The largest file that is read beside a session.
const MAX_BESIDE: u64 = 64 << 20;
/// The largest file that is read as one JSON value.
const MAX_VALUE: u64 = 1 << 30;
/// How much of a file is read to recognise it.
const HEAD: usize = 256 << 10;

impl Source {
    /// Opens a regular file; anything else may never end.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is not a regular file.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error| Error::io("cannot read the file", path, error);
        let is_file = std::fs::metadata(path).map_err(failed)?.is_file();
        if !is_file {
            return Err(Error::invalid("not a regular file", path));
        }
        Self::from_file(path, File::open(path).map_err(failed)?)
    }

    /// Creates one from content in memory.
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self {
            path: path.into(),
            len: bytes.len() as u64,
            content: Content::Bytes(bytes),
            has_checked_lines: false,
        }
    }

    /// Creates one from content that `write` writes to a temporary file.
    ///
    /// # Errors
    ///
    /// Fails if the content cannot be written.
    pub fn from_written(
        path: impl Into<PathBuf>,
        write: impl FnOnce(&mut dyn Write) -> backtrail::Result<()>,
    ) -> Result<Self> {
        let path = path.into();
        let mut file = tempfile::tempfile()
            .map_err(|error| Error::io("cannot create a temporary file", &path, error))?;
        write(&mut file)?;
        Self::from_file(path, file)
    }

    /// Creates one from an open file that replaces the named one, such as its
    /// decompressed content.
    ///
    /// # Errors
    ///
    /// Fails if the length of the file cannot be read.
    pub fn from_file(path: impl Into<PathBuf>, file: File) -> Result<Self> {
        let path = path.into();
        let len = file
            .metadata()
            .map_err(|error| Error::io("cannot read the file", &path, error))?
            .len();
        Ok(Self {
            path,
            content: Content::File(file),
            len,
            has_checked_lines: false,
        })
    }

    /// Makes it one whose lines are known to be JSON objects, because they were written here.
    pub(crate) fn with_checked_lines(mut self) -> Self {
        self.has_checked_lines = true;
        self
    }

    /// Returns whether each line is known to be a JSON object.
    pub(crate) fn has_checked_lines(&self) -> bool {
        self.has_checked_lines
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's name without its last extension; empty if it is not UTF-8.
    pub fn stem(&self) -> &str {
        let stem = self.path.file_stem().and_then(|stem| stem.to_str());
        stem.unwrap_or_default()
    }

    /// Returns how long the file was when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether it was empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads at `offset`: as much as there is, up to the length of `buffer`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let buffer = &mut buffer[..wanted];
        match &self.content {
            Content::Bytes(bytes) => {
                // `left` is what follows `offset`, so this is in range.
                let from = bytes.len() - left.min(bytes.len());
                buffer.copy_from_slice(&bytes[from..from + wanted]);
                Ok(wanted)
            }
            Content::File(file) => {
                read_full(file, buffer, offset).map_err(|error| self.failed(error))
            }
        }
    }

    /// Reads a part of the file; shorter if the file is.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn read_range(&self, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        let end = range.end.min(self.len);
        let len = usize::try_from(end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        let read = self.read_at(&mut bytes, range.start)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Returns the file's beginning, as a file that ends there.
    pub(crate) fn beginning(&self, len: u64) -> Result<Self> {
        let len = len.min(self.len);
        let content = match &self.content {
            Content::File(file) => {
                Content::File(file.try_clone().map_err(|error| self.failed(error))?)
            }
            // It is not longer than the bytes.
            Content::Bytes(bytes) => Content::Bytes(bytes[..len as usize].to_vec()),
        };
        Ok(Self {
            // The last line may be cut off.
            has_checked_lines: false,
            path: self.path.clone(),
            content,
            len,
        })
    }

    /// Returns whether a line starts at a byte.
    pub(crate) fn begins_line(&self, at: u64) -> bool {
        let mut before = [b'\n'];
        let Some(offset) = at.checked_sub(1) else {
            return true;
        };
        self.read_at(&mut before, offset).is_err() || before == *b"\n"
    }

    /// Returns whether a file that was read up to a byte can be read from there: nothing was
    /// added to a line that had no line break then.
    pub fn can_resume_at(&self, read_to: u64) -> bool {
        if self.begins_line(read_to) {
            return true;
        }
        let mut rest = [0; 4096];
        let Ok(read) = self.read_at(&mut rest, read_to) else {
            return false;
        };
        let rest = &rest[..read];
        let end = rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        match end {
            Some(end) => rest[end] == b'\n',
            None => read_to + read as u64 >= self.len,
        }
    }

    /// Reads a line again, as text.
    pub(crate) fn line_at(&self, range: std::ops::Range<u64>) -> Result<String> {
        let bytes = self.read_range(range)?;
        Ok(String::from_utf8_lossy(trim(&bytes)).into_owned())
    }

    /// Returns all of a file that is one JSON value, without line breaks between its tokens.
    pub(crate) fn read_value(&self) -> Result<String> {
        if self.len > MAX_VALUE {
            let message = "the file is a single JSON value over 1 GiB, too large to read";
            return Err(Error::invalid(message, &self.path));
        }
        let bytes = self.read_range(0..self.len)?;
        let text = String::from_utf8_lossy(trim(&bytes));
        // JSON strings contain no line breaks, so all of them are between tokens.
        Ok(text.replace(['\n', '\r'], " "))
    }

    /// Reads a file in a directory so many levels above this one.
    pub(crate) fn read_above(&self, levels: usize, name: &str) -> Option<Vec<u8>> {
        if let Content::Bytes(_) = self.content {
            return None;
        }
        let directory = self.path.ancestors().nth(levels + 1)?;
        read_small(&directory.join(name))
    }

    /// Finds a file in one of the directories in a folder so many levels above this one.
    /// `relative` is where it is in that directory.
    pub(crate) fn find_above(
        &self,
        levels: usize,
        folder: &str,
        relative: &Path,
    ) -> Option<PathBuf> {
        use std::path::Component::Normal;
        let is_within = relative.components().all(|part| matches!(part, Normal(_)));
        if matches!(self.content, Content::Bytes(_)) || !is_within {
            return None;
        }
        let folder = self.path.ancestors().nth(levels + 1)?.join(folder);
        let names = LocalStorage.list(&folder).ok()?.into_iter();
        let mut found = names.map(|name| folder.join(name).join(relative));
        found.find(|path| path.is_file())
    }

    /// Reads a file that [`find_above`](Self::find_above) finds.
    pub(crate) fn read_found_above(
        &self,
        levels: usize,
        folder: &str,
        relative: &Path,
    ) -> Option<Vec<u8>> {
        read_small(&self.find_above(levels, folder, relative)?)
    }

    /// Returns the beginning of the file, to recognise it.
    pub fn head(&self) -> Vec<u8> {
        self.read_range(0..HEAD as u64).unwrap_or_default()
    }

    /// Reads a file beside this one. `None` if there is none or it is too large to belong to
    /// a session. `relative` must not lead out of the directory.
    pub fn read_beside(&self, relative: &Path) -> Option<Vec<u8>> {
        use std::path::Component::Normal;
        if let Content::Bytes(_) = self.content {
            return None;
        }
        if !relative.components().all(|part| matches!(part, Normal(_))) {
            return None;
        }
        read_small(&self.path.parent()?.join(relative))
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("cannot read the file", &self.path, error)
    }
}

/// Returns the name of a file; empty if it is not UTF-8.
pub(crate) fn file_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str());
    name.unwrap_or_default()
}

/// Returns whether a file has one JSON value per line, by its name.
pub(crate) fn is_json_lines(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

/// Returns whether a file still exists, or the container that it is in.
pub(crate) fn is_there(path: &Path) -> bool {
    path.exists() || path.parent().is_some_and(Path::is_file)
}

/// Reads a file that accompanies a session.
fn read_small(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BESIDE {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BESIDE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

pub(crate) fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Removes blanks and NUL bytes from both ends, and a byte order mark from the beginning.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let Some(first) = bytes.iter().position(|byte| !is_blank(byte)) else {
        return &bytes[..0];
    };
    let last = bytes.iter().rposition(|byte| !is_blank(byte));
    &bytes[first..=last.unwrap_or(first)]
}

/// Returns bytes as text. Invalid UTF-8 shows as U+FFFD.
pub(crate) fn lossy_text(bytes: &[u8]) -> Cow<'_, str> {
    // Nearly all bytes are UTF-8, and checking that is far faster than repairing them. Lines
    // are checked several times, so the check is a fast one.
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
