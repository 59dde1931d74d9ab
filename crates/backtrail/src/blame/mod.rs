//! Which session, turn and prompt wrote each line of a file, and which turn made a commit.
//!
//! Nothing is recorded for this: it follows from the checkpoints of the workspace
//! (`states.rs`, `walk.rs`, `rename.rs`) and from who worked between them (`origin.rs`). Where
//! no turn or run is known, the edits of imported sessions may tell (`imported.rs`,
//! `edits.rs`). Commits are found in git's own logs (`commit.rs`).

mod commit;
mod edits;
mod imported;
mod origin;
mod rename;
mod states;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use self::origin::Origins;
use self::states::{States, Version};
use self::walk::Walk;
use crate::error::{Error, ErrorKind, Result};
use crate::hex::{path_fields, to_hex};
use crate::ids::CheckpointId;
use crate::snapshot::entry::{FileKind, Node};
use crate::snapshot::patch::MAX_BYTES;
use crate::snapshot::text::is_binary;
use crate::snapshot::{Snapshot, shown};
use crate::workspace::path_lookup::{checked_path, path_in};
use crate::workspace::{Checkpoint, Workspace};

pub use crate::workspace::git_log::LoggedCommit;
pub use commit::CommitAuthor;
pub use origin::{LineAuthor, LineOrigin, OriginKind};

/// The lines of a file, and where each comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Blame {
    /// The file, relative to the workspace.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
    /// The checkpoint whose file this is; `None` if it is the file as it is now.
    pub checkpoint: Option<CheckpointId>,
    /// Whether the last line ends with a line end.
    pub ends_with_newline: bool,
    /// Where lines come from.
    pub origins: Vec<LineOrigin>,
    /// The lines, in order.
    pub lines: Vec<BlamedLine>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlamedLine {
    /// Its number, counted from 1.
    pub number: u64,
    /// Its bytes, without the newline.
    pub text: Vec<u8>,
    /// Where it comes from: the position in [`Blame::origins`].
    pub origin: usize,
}

impl Serialize for BlamedLine {
    /// Includes the bytes of a line that is not UTF-8.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            line: u64,
            origin: usize,
            text: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            text_hex: Option<String>,
        }
        let text = String::from_utf8_lossy(&self.text);
        let is_exact = text.len() == self.text.len() && text.as_bytes() == self.text;
        let shown = Shown {
            line: self.number,
            origin: self.origin,
            text: &text,
            text_hex: (!is_exact).then(|| to_hex(&self.text)),
        };
        shown.serialize(serializer)
    }
}

impl Blame {
    /// Returns where a line comes from.
    pub fn origin_of(&self, line: &BlamedLine) -> &LineOrigin {
        &self.origins[line.origin]
    }

    /// Keeps the lines with these numbers, and where they come from.
    #[must_use]
    pub fn only(mut self, numbers: std::ops::RangeInclusive<u64>) -> Self {
        self.lines.retain(|line| numbers.contains(&line.number));
        let mut places = vec![None; self.origins.len()];
        let mut origins = Vec::new();
        for line in &mut self.lines {
            let place = places[line.origin].get_or_insert_with(|| {
                origins.push(self.origins[line.origin].clone());
                origins.len() - 1
            });
            line.origin = *place;
        }
        self.origins = origins;
        self
    }
}

impl Workspace {
    /// Finds where each line of a text file comes from, as the file is now or as it was at a
    /// checkpoint. The path is relative to the workspace, or absolute and in it.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](ErrorKind::Invalid) if the path is not a text file of at most
    /// 16 MiB that Backtrail protects; with [`NotFound`](ErrorKind::NotFound) if there is no
    /// such file, where [`Error::points`] names the last checkpoint that has it; with
    /// [`Dropped`](ErrorKind::Dropped) if the checkpoint's files were dropped; and if the store
    /// or the file cannot be read.
    pub fn blame(&self, path: impl AsRef<Path>, at: Option<&Checkpoint>) -> Result<Blame> {
        let path = checked_path(&path_in(self.root(), path.as_ref())?)?;
        let present = match at {
            Some(_) => None,
            None => Some(self.present_at(&path)?),
        };
        let snapshot = match (at, &present) {
            (Some(at), _) => at.snapshot()?,
            (None, Some(present)) => present.clone(),
            (None, None) => return Err(self.no_checkpoint()),
        };
        let states = States::read(self, at, present)?;
        let text = text_of(&snapshot, &states, &path)?;
        let versions = states.versions(&path)?;
        if let Some(reason) = self.never_protected(&path, &versions)? {
            let what = format!("{} was never protected: {reason}", shown(&path));
            return Err(Error::invalid(what).at_path(&path));
        }
        let Version::File { content, .. } = versions[states.last] else {
            return Err(not_there(&states, &path, &versions));
        };
        let lines = split(&text);
        let walk = Walk::new(
            &states,
            path.clone(),
            versions,
            (content, Arc::clone(&text)),
        );
        let (sources, names) = walk.run(lines.len())?;
        let mut origins = Origins::new(&states, &names, &sources);
        origins.credit_imported(&lines)?;
        let (origins, places) = origins.finish();
        let line = |(n, text): (usize, &[u8])| BlamedLine {
            number: n as u64 + 1,
            text: text.strip_suffix(b"\n").unwrap_or(text).to_vec(),
            origin: places[n],
        };
        Ok(Blame {
            path,
            checkpoint: at.map(Checkpoint::id),
            ends_with_newline: text.last() == Some(&b'\n'),
            origins,
            lines: lines.iter().copied().enumerate().map(line).collect(),
        })
    }

    /// Returns why a file is in no checkpoint, if all of them skipped it.
    fn never_protected(&self, path: &Path, versions: &[Version]) -> Result<Option<String>> {
        let saved = versions.split_last().map_or(versions, |(_, saved)| saved);
        if saved.iter().any(|version| *version != Version::Unknown) {
            return Ok(None);
        }
        let Some(last) = self.last_checkpoint()? else {
            return Ok(None);
        };
        let reason = last.snapshot().and_then(|it| it.skipped_reason(path));
        Ok(reason.ok().flatten().map(|reason| reason.to_string()))
    }
}

/// Reads the file that is blamed.
fn text_of(snapshot: &Snapshot, states: &States, path: &Path) -> Result<Arc<[u8]>> {
    let refused = |why: &str| Err(Error::invalid(format!("{} {why}", shown(path))).at_path(path));
    match snapshot.walk_down(path)? {
        Some(Node::File { size, .. }) if size > MAX_BYTES => {
            refused("is over 16 MiB: too large to blame")
        }
        Some(Node::File { .. }) => {
            let text: Arc<[u8]> = snapshot.read(path)?.unwrap_or_default().into();
            match is_binary(&text) {
                true => refused("is binary: it has no lines"),
                false => Ok(text),
            }
        }
        Some(Node::Link { .. }) => refused("is a symbolic link; name the file that it points to"),
        Some(Node::Dir(_)) => refused("is a directory; name a file in it"),
        Some(Node::Skipped(skipped)) if skipped.kind == FileKind::File => {
            let reason = skipped.reason;
            refused(&format!("was not protected then: {reason}"))
        }
        Some(Node::Skipped(_)) => refused("was not protected then"),
        None => Err(not_there(states, path, &states.versions(path)?)),
    }
}

/// Returns the error for a file that does not exist, with the last checkpoint that has it.
fn not_there(states: &States, path: &Path, versions: &[Version]) -> Error {
    let then = match states.checkpoint(states.last) {
        Some(_) => "did not exist then",
        None => "does not exist",
    };
    let last = versions.iter().rposition(|version| version.is_file());
    let points = last
        .and_then(|n| states.checkpoint(n))
        .map(|it| it.id().prefix(8));
    Error::new(ErrorKind::NotFound, format!("{} {then}", shown(path)))
        .at_path(path)
        .with_points(points.into_iter().collect())
}

/// Splits a text into lines with their line ends.
fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}
