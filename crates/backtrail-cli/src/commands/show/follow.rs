//! `show --follow`: a session as it grows.

use std::io::{self, Write};
use std::time::Duration;

use backtrail::conversation::Item;
use serde_json::json;

use super::data::{self, write_json};
use super::sheet::Sheet;
use super::writer::{ShowOptions, ShowWriter};
use super::{View, head, palette};
use crate::commands::conversation::changes::Changes;
use crate::commands::conversation::session_prices;
use crate::error::Result;

/// How often a follower looks for something new.
const INTERVAL: Duration = Duration::from_millis(100);

impl View<'_> {
    /// Prints the conversation as it grows, as text.
    pub(super) fn follow_text(&self) -> Result<()> {
        let mut out = self.ui.out();
        let info = self.reader.info()?;
        let mut sheet = Sheet::new(self.ui.width());
        let title = self.reader.title()?;
        head::write(&mut sheet, title.as_deref(), &info, None);
        let options = ShowOptions {
            full: self.full,
            live: true,
            turns_before: Some(0),
            palette: palette(self.ui),
            ..ShowOptions::default()
        };
        let prices = session_prices(self.store, &info)?;
        let paths = self.reader.relative_paths(info.workspace_root.as_deref())?;
        let changes = Changes::default();
        let mut writer = ShowWriter::new(sheet, options, &changes, prices, paths);
        let mut conversation = self.reader.follow_conversation()?;
        let mut warned = 0;
        loop {
            let item = conversation.poll()?;
            match &item {
                Some(Item::Moved(moved)) => {
                    writer.print(&mut out)?;
                    out.flush()?;
                    self.ui.status(&format!(
                        "the conversation went back to record {} ({})",
                        moved.seq,
                        moved.reason.as_str()
                    ));
                }
                Some(item) => writer.item(item),
                None => {}
            }
            writer.print(&mut out)?;
            let unreadable = writer.take_unreadable();
            let damage = conversation.damage();
            if damage.count() > warned || !unreadable.is_empty() {
                warned = damage.count();
                self.warn(damage, &unreadable);
            }
            if item.is_none() {
                out.flush()?;
                wait(INTERVAL)?;
            }
        }
    }

    /// Prints records as they come, a JSON object a line.
    pub(super) fn follow_json(&self) -> Result<()> {
        let mut out = self.ui.out();
        let mut follower = self.reader.follow()?;
        let mut warned = 0;
        loop {
            let mut unreadable = Vec::new();
            let mut found = Vec::new();
            let mut is_new = false;
            if let Some(record) = follower.poll()? {
                if let Some(compaction) = data::compaction(&record) {
                    writeln!(found, "{}", json!({"compaction": compaction}))?;
                }
                if let Some(run) = data::run(&record) {
                    writeln!(found, "{}", json!({"run": run}))?;
                }
                if write_json(&mut found, &record, "", &mut unreadable)? {
                    writeln!(found)?;
                }
                is_new = true;
            }
            if let Some(moved) = follower.take_moved() {
                let line = json!({"moved": {"reason": moved.reason.as_str(), "to": moved.seq}});
                writeln!(out, "{line}")?;
            }
            out.write_all(&found)?;
            if follower.damage().count() > warned || !unreadable.is_empty() {
                warned = follower.damage().count();
                self.warn(follower.damage(), &unreadable);
            }
            if !is_new {
                out.flush()?;
                wait(INTERVAL)?;
            }
        }
    }
}

/// Waits a while, or until standard output is closed: a follower of a quiet session
/// would notice that only with the next record.
#[cfg(unix)]
fn wait(interval: Duration) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let interval = Timespec::try_from(interval).map_err(io::Error::other)?;
    match poll(&mut watched, Some(&interval)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
        Ok(_) => Err(io::ErrorKind::BrokenPipe.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn wait(interval: Duration) -> io::Result<()> {
    std::thread::sleep(interval);
    Ok(())
}
