//! Which pieces of a file some hunks of its difference are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use backtrail::RewindPlan;
use backtrail::rewind::{Choice, Part};
use backtrail_view::library::Between;

use super::super::StoreLibrary;
use super::super::diff_lines::{Piece, pieces};
use super::super::{changes, plain};
use crate::commands::diff::CONTEXT;
use crate::error::{CommandError, Result};

/// Some hunks of the difference of a file, as it was shown.
pub(super) struct ChosenHunks {
    path: String,
    /// The pieces that were chosen, from the earlier state to the later one.
    pieces: Vec<Piece>,
    /// Whether those are all.
    is_whole: bool,
}

impl ChosenHunks {
    /// Finds the hunks, which count from 0.
    pub(super) fn find(
        library: &StoreLibrary,
        between: &Between,
        path: &str,
        hunks: &[usize],
    ) -> Result<Self> {
        let diff = changes::compare(library, between)?;
        let change = changes::change_of(&diff, path);
        let change = change.ok_or_else(|| gone(path))?;
        let mut all = pieces(diff.text(change, CONTEXT)?.unified());
        let chosen: BTreeSet<usize> = hunks.iter().copied().collect();
        match chosen.last() {
            None => return Err(CommandError::invalid("choose at least one hunk")),
            Some(last) if *last >= all.len().max(1) => return Err(gone(path)),
            Some(_) => {}
        }
        let is_whole = chosen.len() >= all.len();
        let mut number = 0;
        all.retain(|_| {
            number += 1;
            chosen.contains(&(number - 1))
        });
        Ok(Self {
            path: path.to_owned(),
            pieces: all.into_iter().flatten().collect(),
            is_whole,
        })
    }

    /// Plans to reverse them, and nothing else.
    pub(super) fn choose_from(&self, plan: RewindPlan) -> Result<RewindPlan> {
        let parts = plan.parts()?;
        let part = parts
            .iter()
            .find(|part| part.path().to_string_lossy() == self.path);
        let part = part.ok_or_else(|| gone(&self.path))?;
        let choice = (part.path().to_owned(), self.choice(part)?);
        let chosen: Vec<(PathBuf, Choice)> = vec![choice];
        Ok(plan.choose(chosen)?)
    }

    fn choice(&self, part: &Part) -> Result<Choice> {
        if !part.is_in_pieces() {
            return match self.is_whole {
                true => Ok(Choice::Whole),
                false => Err(gone(&self.path)),
            };
        }
        let mut chosen = BTreeSet::new();
        let shown: Vec<Option<Piece>> = (0..part.pieces())
            .map(|n| pieces(&part.shown(n..n + 1, 0)).pop()?.pop())
            .collect();
        for piece in &self.pieces {
            let is_it = |now: &Option<Piece>| now.as_ref().is_some_and(|now| reverses(now, piece));
            let found = shown.iter().position(is_it);
            chosen.insert(found.ok_or_else(|| gone(&self.path))?);
        }
        Ok(Choice::Pieces {
            mode: self.is_whole && part.modes().is_some(),
            pieces: chosen,
        })
    }
}

/// Returns whether a piece, from now to the earlier state, takes back exactly another, from that
/// state to the later one.
fn reverses(now: &Piece, piece: &Piece) -> bool {
    now.new_at == piece.old_at && now.new == piece.old && now.old == piece.new
}

/// The error of a hunk that is not in the file any more.
fn gone(path: &str) -> CommandError {
    let what = format!("{} has changed there since", plain(path));
    CommandError::invalid(what).hint("compare it with now, and choose there")
}
