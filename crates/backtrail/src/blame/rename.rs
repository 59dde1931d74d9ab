//! The name that a file had before it was renamed: that of a deleted file with the same content
//! or, if the file changed as well, with most of its lines.

use std::path::{Path, PathBuf};

use super::states::States;
use crate::error::{ErrorKind, Result};
use crate::snapshot::common_lines::common_lines;
use crate::snapshot::text::is_binary;
use crate::snapshot::{Change, ChangeKind, Diff, FileKind};

/// How many deleted files are compared.
const MAX_COMPARED: usize = 100;
/// The largest file that is compared.
const MAX_BYTES: u64 = 1 << 20;
/// How much of the larger file both must have, in percent.
const ALIKE: u64 = 50;

/// Returns the path that a file of the later of two states had in the earlier one, where it is
/// new. A state that cannot be read has no answer.
pub(super) fn renamed_from(
    states: &States,
    (before, after): (usize, usize),
    path: &Path,
) -> Result<Option<PathBuf>> {
    match search(states, (before, after), path) {
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Dropped) => Ok(None),
        found => found,
    }
}

fn search(
    states: &States,
    (before, after): (usize, usize),
    path: &Path,
) -> Result<Option<PathBuf>> {
    let diff = states.open(before)?.diff(&states.open(after)?)?;
    let Some(new) = diff.iter().find(|change| change.path == path) else {
        return Ok(None);
    };
    match new.kind {
        ChangeKind::Renamed => Ok(new.from.clone()),
        ChangeKind::Added | ChangeKind::Kind => most_alike(&diff, new),
        _ => Ok(None),
    }
}

/// Returns the deleted file that has most in common with a new one.
fn most_alike(diff: &Diff, new: &Change) -> Result<Option<PathBuf>> {
    let size = new.after.as_ref().map_or(0, |state| state.bytes);
    if size == 0 || size > MAX_BYTES {
        return Ok(None);
    }
    let Some(text) = diff.after(new)?.filter(|text| !is_binary(text)) else {
        return Ok(None);
    };
    let is_candidate = |change: &&Change| {
        change.kind == ChangeKind::Deleted
            && change.before.as_ref().is_some_and(|state| {
                let (small, large) = (size.min(state.bytes), size.max(state.bytes));
                state.kind == FileKind::File && small * 100 >= large * ALIKE
            })
    };
    let mut best: Option<(u64, bool, PathBuf)> = None;
    for change in diff.iter().filter(is_candidate).take(MAX_COMPARED) {
        let old = diff.before(change)?.unwrap_or_default();
        let alike = percent_alike(&old, &text);
        let same_name = change.path.file_name() == new.path.file_name();
        let is_better =
            |(most, named, _): &(u64, bool, PathBuf)| (alike, same_name) > (*most, *named);
        if alike >= ALIKE && best.as_ref().is_none_or(is_better) {
            best = Some((alike, same_name, change.path.clone()));
        }
    }
    Ok(best.map(|(.., path)| path))
}

/// Returns how many of the larger text's bytes are in lines that both texts have, in percent.
fn percent_alike(old: &[u8], new: &[u8]) -> u64 {
    let lines: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
    let runs = common_lines(old, new);
    let common = runs
        .iter()
        .flat_map(|run| &lines[run.after..run.after + run.len]);
    let bytes: usize = common.map(|line| line.len()).sum();
    bytes as u64 * 100 / old.len().max(new.len()).max(1) as u64
}
