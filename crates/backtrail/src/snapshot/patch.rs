//! Formats changes as a git patch. `git apply` accepts it unless a changed file is binary
//! or too large; such files are only named.

use std::io::Write;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::change::{Change, ChangeKind, FileState};
use super::diff::Diff;
use super::entry::FileKind;
use super::name::{bytes_of, quoted_for_patch};
use super::text::{Hunks, compare, is_binary};
use crate::error::Result;

/// Larger files are not compared line by line.
pub(crate) const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// One change as part of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextDiff {
    /// A comparison line by line, or only names and modes.
    Text {
        /// The patch, with lines in their original bytes.
        #[serde(serialize_with = "lossy_text")]
        unified: Vec<u8>,
        /// The number of added lines.
        added: u64,
        /// The number of removed lines.
        removed: u64,
    },
    /// One side is not text.
    Binary {
        /// The patch, which only says so.
        #[serde(serialize_with = "lossy_text")]
        unified: Vec<u8>,
        /// The length before, or `None` if there was no file.
        before: Option<u64>,
        /// The length after, or `None` if there is no file.
        after: Option<u64>,
    },
    /// One side is over 16 MiB.
    TooLarge {
        /// The patch, which only says so.
        #[serde(serialize_with = "lossy_text")]
        unified: Vec<u8>,
        /// The length before, or `None` if there was no file.
        before: Option<u64>,
        /// The length after, or `None` if there is no file.
        after: Option<u64>,
    },
}

/// Serializes bytes as text.
fn lossy_text<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    String::from_utf8_lossy(bytes).serialize(serializer)
}

impl TextDiff {
    /// Returns the patch with its headers.
    pub fn unified(&self) -> &[u8] {
        match self {
            Self::Text { unified, .. }
            | Self::Binary { unified, .. }
            | Self::TooLarge { unified, .. } => unified,
        }
    }

    /// Returns the sizes before and after, if known.
    fn sizes(&self) -> [Option<u64>; 2] {
        match *self {
            Self::Binary { before, after, .. } | Self::TooLarge { before, after, .. } => {
                [before, after]
            }
            Self::Text { .. } => [None, None],
        }
    }
}

/// One side of a patch: a file or a link.
struct PatchSide {
    name: String,
    mode: &'static str,
    bytes: u64,
}

impl PatchSide {
    fn new(prefix: &str, path: &Path, state: Option<&FileState>) -> Option<Self> {
        let state = state.filter(|state| state.kind != FileKind::Dir)?;
        Some(Self {
            name: quoted_for_patch(prefix, bytes_of(path)),
            mode: match state.mode {
                // Git knows only these two modes.
                Some(mode) if mode & 0o100 != 0 => "100755",
                Some(_) => "100644",
                None => "120000",
            },
            bytes: state.bytes,
        })
    }
}

pub(super) fn text(diff: &Diff, change: &Change, context: usize) -> Result<TextDiff> {
    if change.is_dir() {
        return Ok(plain(in_words(change)));
    }
    if change.kind != ChangeKind::Kind {
        return one(diff, change, context);
    }
    // A changed kind is shown as a deletion and an addition.
    let mut gone = change.clone();
    gone.after = None;
    let mut made = change.clone();
    made.before = None;
    let gone = one(diff, &gone, context)?;
    let made = one(diff, &made, context)?;
    Ok(join(gone, made))
}

fn plain(unified: Vec<u8>) -> TextDiff {
    TextDiff::Text {
        unified,
        added: 0,
        removed: 0,
    }
}

/// Formats a change whose existing sides are of the same kind.
fn one(diff: &Diff, change: &Change, context: usize) -> Result<TextDiff> {
    let before = PatchSide::new("a/", change.old_path(), change.before.as_ref());
    let after = PatchSide::new("b/", &change.path, change.after.as_ref());
    if before.is_none() && after.is_none() {
        return Ok(plain(Vec::new()));
    }
    let mut unified = header(change, &before, &after);
    if matches!(change.kind, ChangeKind::Mode | ChangeKind::Renamed) {
        return Ok(plain(unified));
    }
    let sizes = [&before, &after].map(|side| side.as_ref().map(|side| side.bytes));
    if sizes.iter().flatten().any(|bytes| *bytes > MAX_BYTES) {
        let [name, new_name] = labels([&before, &after]);
        writeln!(unified, "Files {name} and {new_name} differ").ok();
        writeln!(unified, "(over 16 MiB: not compared line by line)").ok();
        let [before, after] = sizes;
        return Ok(TextDiff::TooLarge {
            unified,
            before,
            after,
        });
    }
    let old = diff.before(change)?.unwrap_or_default();
    let new = diff.after(change)?.unwrap_or_default();
    if is_binary(&old) || is_binary(&new) {
        let [name, new_name] = labels([&before, &after]);
        writeln!(unified, "Binary files {name} and {new_name} differ").ok();
        let [before, after] = sizes;
        return Ok(TextDiff::Binary {
            unified,
            before,
            after,
        });
    }
    let hunks = compare(&old, &new, context);
    Ok(with_hunks(unified, labels([&before, &after]), &hunks))
}

fn with_hunks(mut unified: Vec<u8>, labels: [String; 2], hunks: &Hunks) -> TextDiff {
    if !hunks.bytes.is_empty() {
        for (sign, label) in ["---", "+++"].iter().zip(&labels) {
            // A tab terminates a name with spaces, for other tools that read patches.
            let tab = if label.contains(' ') { "\t" } else { "" };
            writeln!(unified, "{sign} {label}{tab}").ok();
        }
        unified.extend_from_slice(&hunks.bytes);
    }
    TextDiff::Text {
        unified,
        added: hunks.added,
        removed: hunks.removed,
    }
}

/// Returns the names of both sides above the hunks.
fn labels(sides: [&Option<PatchSide>; 2]) -> [String; 2] {
    sides.map(|side| match side {
        Some(side) => side.name.clone(),
        None => "/dev/null".to_owned(),
    })
}

/// Writes the lines before the hunks: names, modes and the old path.
fn header(change: &Change, before: &Option<PatchSide>, after: &Option<PatchSide>) -> Vec<u8> {
    let old = quoted_for_patch("a/", bytes_of(change.old_path()));
    let new = quoted_for_patch("b/", bytes_of(&change.path));
    let mut lines: Vec<String> = mode_in_words(change).into_iter().collect();
    let same_for_git = match (before, after) {
        (Some(before), Some(after)) => before.mode == after.mode,
        _ => false,
    };
    if change.kind != ChangeKind::Mode || !same_for_git {
        lines.push(format!("diff --git {old} {new}"));
    }
    match (before, after) {
        (Some(before), Some(after)) if before.mode != after.mode => {
            lines.push(format!("old mode {}", before.mode));
            lines.push(format!("new mode {}", after.mode));
        }
        (None, Some(after)) => lines.push(format!("new file mode {}", after.mode)),
        (Some(before), None) => lines.push(format!("deleted file mode {}", before.mode)),
        _ => {}
    }
    if change.kind == ChangeKind::Renamed {
        let [from, to] =
            [change.old_path(), &change.path].map(|path| quoted_for_patch("", bytes_of(path)));
        lines.push("similarity index 100%".to_owned());
        lines.push(format!("rename from {from}"));
        lines.push(format!("rename to {to}"));
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text.into_bytes()
}

/// Describes modes that git cannot express. The line is before the header, where tools
/// that read patches ignore it.
fn mode_in_words(change: &Change) -> Option<String> {
    let name = quoted_for_patch("", bytes_of(&change.path));
    let mode = |state: &Option<FileState>| state.as_ref().and_then(|state| state.mode);
    let known = |mode: u32| matches!(mode, 0o644 | 0o755);
    match (mode(&change.before), mode(&change.after)) {
        (Some(before), Some(after)) if before != after && !(known(before) && known(after)) => {
            Some(format!("mode of {name} {before:03o} → {after:03o}"))
        }
        // Bits removed by a umask are not worth a line; set-user-ID and the like are.
        (None, Some(after)) if after & 0o7000 != 0 => Some(format!("mode of {name} {after:03o}")),
        _ => None,
    }
}

/// Describes a change of a directory itself.
fn in_words(change: &Change) -> Vec<u8> {
    let name = quoted_for_patch("", bytes_of(&change.path));
    let mode = |state: &Option<FileState>| state.as_ref().and_then(|state| state.mode).unwrap_or(0);
    let line = match change.kind {
        ChangeKind::Added => format!("new directory {name}"),
        ChangeKind::Deleted => format!("deleted directory {name}"),
        _ => format!(
            "mode of directory {name} {:03o} → {:03o}",
            mode(&change.before),
            mode(&change.after)
        ),
    };
    format!("{line}\n").into_bytes()
}

/// Joins the deletion and the addition at one path.
fn join(gone: TextDiff, made: TextDiff) -> TextDiff {
    let unified = [gone.unified(), made.unified()].concat();
    let (before, after) = (gone.sizes()[0], made.sizes()[1]);
    match (gone, made) {
        (TextDiff::Text { removed, .. }, TextDiff::Text { added, .. }) => TextDiff::Text {
            unified,
            added,
            removed,
        },
        (TextDiff::TooLarge { .. }, _) | (_, TextDiff::TooLarge { .. }) => TextDiff::TooLarge {
            unified,
            before,
            after,
        },
        _ => TextDiff::Binary {
            unified,
            before,
            after,
        },
    }
}
