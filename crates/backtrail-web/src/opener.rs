//! A file that opens a page in a browser, so that the token is in no process's arguments.

#![expect(
    clippy::disallowed_methods,
    reason = "the file is not part of a store, and lives for a second"
)]

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use maud::{DOCTYPE, html};

use crate::guard::random_hex;

/// A file that leads a browser to an address. It is removed when this is dropped.
pub(crate) struct Opener {
    directory: PathBuf,
    file: PathBuf,
}

impl Opener {
    /// Writes the file, in a directory of its own that only this user can enter.
    pub(crate) fn write(parent: &Path, address: &str) -> io::Result<Self> {
        let directory = parent.join(format!("backtrail-{}", random_hex::<8>()?));
        DirBuilder::new().mode(0o700).create(&directory)?;
        let file = directory.join("open.html");
        let opener = Self { directory, file };
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&opener.file)?;
        file.write_all(page(address).as_bytes())?;
        Ok(opener)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        fs::remove_file(&self.file).ok();
        fs::remove_dir(&self.directory).ok();
    }
}

fn page(address: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="referrer" content="no-referrer";
                meta http-equiv="refresh" content=(format!("0;url={address}"));
                title { "Backtrail" }
            }
            body { a href=(address) { "Open Backtrail" } }
        }
    };
    page.into_string()
}
