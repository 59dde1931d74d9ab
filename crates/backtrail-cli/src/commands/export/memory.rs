//! An export in memory, within limits.

use std::io::{self, Write};

use backtrail::SessionId;

use crate::commands::short;
use crate::error::{CommandError, Result};

/// A larger export is a file.
const MOST: usize = 256 << 20;

/// Bytes that were written, as long as there is room.
#[derive(Debug, Default)]
pub(super) struct Memory {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Memory {
    /// Returns the bytes; fails if there was no room for all.
    pub(super) fn finish(self, id: &SessionId, format: &str) -> Result<Vec<u8>> {
        if !self.is_full {
            return Ok(self.bytes);
        }
        let what = format!("the export is larger than {} MiB", MOST >> 20);
        let command = format!("backtrail export {} --to {format} -o FILE", short(id));
        Err(CommandError::invalid(what).hint(format!("write it to a file: {command}")))
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MOST {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_that_does_not_fit_names_the_command_that_writes_a_file() {
        let mut out = Memory::default();
        let part = vec![b'x'; 64 << 20];
        for _ in 0..4 {
            out.write_all(&part).unwrap();
        }
        assert!(out.write_all(b"x").is_err());
        let id = "0198c0de-0000-7000-8000-000000000000".parse().unwrap();
        let error = out.finish(&id, "html").unwrap_err();
        assert_eq!(error.to_string(), "the export is larger than 256 MiB");
        assert!(error.hints[0].ends_with("--to html -o FILE"), "{error:?}");
    }
}
