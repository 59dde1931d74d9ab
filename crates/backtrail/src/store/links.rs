//! Links inside a store, which are not followed.

use std::path::{Path, PathBuf};

use super::Store;
use super::layout::is_setting;
use crate::error::{Error, IoContext, Result};
use crate::storage::{LinkRefused, names_in};

impl Store {
    /// Returns all symbolic links in the store, sorted. Nothing is opened through them, so
    /// what they point to is missing here. `config.toml` belongs to the user and may be one.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be listed.
    pub fn links(&self) -> Result<Vec<PathBuf>> {
        let mut links = Vec::new();
        let mut ahead = vec![self.root().to_owned()];
        while let Some(dir) = ahead.pop() {
            self.look_for_links(&dir, &mut links, &mut ahead)
                .context("cannot look for links", &dir)?;
        }
        links.sort_unstable();
        Ok(links)
    }

    fn look_for_links(
        &self,
        dir: &Path,
        links: &mut Vec<PathBuf>,
        ahead: &mut Vec<PathBuf>,
    ) -> std::io::Result<()> {
        let storage = self.storage();
        let is_top = dir == self.root();
        for name in names_in(storage, dir)? {
            let path = dir.join(&name);
            if storage.is_dir(&path)? {
                ahead.push(path);
            } else if storage.is_link(&path)? && !(is_top && is_setting(&name)) {
                links.push(path);
            }
        }
        Ok(())
    }

    /// Refuses to continue if the store has links: what must be removed may be behind them.
    pub(crate) fn refuse_links(&self, doing: &str) -> Result<()> {
        match self.links()?.first() {
            Some(link) => Err(Error::io(doing, link, LinkRefused::at(link))),
            None => Ok(()),
        }
    }
}
