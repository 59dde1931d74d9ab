//! Choosing what goes back: whole paths, modes, and pieces of texts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::actions::{PathAction, PathActions, named};
use super::api::plan_again;
use super::merge::{Merger, read_present};
use super::outcome::{Conflict, NotRestored, PathOutcome, PathOutcomeKind};
use super::path_change::{PathEntry, is_ignored};
use super::plan::RewindPlan;
use super::target::named_paths;
use crate::error::{Error, Result};
use crate::objects::{ObjectId, Objects};
use crate::snapshot::entry::Node;
use crate::snapshot::patch::MAX_BYTES;
use crate::snapshot::text::is_binary;
use crate::snapshot::text_change::TextChange;
use crate::snapshot::{Snapshot, shown};

/// What goes back of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// All of it.
    Whole,
    /// Some pieces of its text, by their numbers, and its mode or not.
    Pieces {
        /// The pieces, counted from 0.
        pieces: BTreeSet<usize>,
        /// Whether its mode goes back too.
        mode: bool,
    },
}

/// What was chosen, if anything yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Pick {
    chosen: Option<BTreeMap<PathBuf, Choice>>,
}

/// What would happen to one path, as something to choose from.
#[derive(Debug, Clone)]
pub struct Part {
    change: PathOutcome,
    /// The mode now and then, if both are files.
    modes: Option<(u32, u32)>,
    text: Option<TextChange>,
    conflict: Option<Conflict>,
}

impl Part {
    /// Returns its path, relative to the workspace.
    pub fn path(&self) -> &Path {
        &self.change.path
    }

    /// Returns what would happen to it.
    pub fn kind(&self) -> PathOutcomeKind {
        self.change.kind
    }

    /// Returns whether it is a directory itself.
    pub fn is_dir(&self) -> bool {
        self.change.is_dir
    }

    /// Returns the mode now and the one it would get, if a file's mode differs.
    pub fn modes(&self) -> Option<(u32, u32)> {
        self.modes.filter(|(now, then)| now != then)
    }

    /// Returns the conflict, if others changed it too.
    pub fn conflict(&self) -> Option<&Conflict> {
        self.conflict.as_ref()
    }

    /// Returns whether pieces of it can be chosen: it is text before and after.
    pub fn is_in_pieces(&self) -> bool {
        self.modes.is_some() && self.pieces() > 0
    }

    /// Returns how many pieces of its text differ; 0 if it is not text.
    pub fn pieces(&self) -> usize {
        self.text.as_ref().map_or(0, TextChange::len)
    }

    /// Returns the pieces in groups that are shown together with `context` equal lines
    /// around them.
    pub fn groups(&self, context: usize) -> Vec<Range<usize>> {
        let text = self.text.as_ref();
        text.map_or_else(Vec::new, |text| text.groups(context))
    }

    /// Returns consecutive pieces as one hunk of a patch, in the bytes of the texts.
    pub fn shown(&self, pieces: Range<usize>, context: usize) -> Vec<u8> {
        let text = self.text.as_ref();
        text.map_or_else(Vec::new, |text| text.shown(pieces, context))
    }
}

impl Pick {
    /// Returns the paths of which something was chosen.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let chosen = self.chosen.iter().flat_map(BTreeMap::keys);
        chosen.cloned().collect()
    }

    /// Returns whether something was chosen.
    pub(super) fn is_made(&self) -> bool {
        self.chosen
            .as_ref()
            .is_some_and(|chosen| !chosen.is_empty())
    }

    /// Keeps only the actions that were chosen.
    pub(super) fn choose(
        &self,
        actions: &mut PathActions,
        present: &Snapshot,
        merger: &Merger<'_>,
    ) -> Result<()> {
        let Some(chosen) = &self.chosen else {
            return Ok(());
        };
        let shown: BTreeSet<PathBuf> = actions.changes().into_iter().map(|one| one.path).collect();
        let paths: Vec<PathBuf> = actions.by_path.keys().cloned().collect();
        for path in paths {
            let Some(action) = actions.by_path.get_mut(&path) else {
                continue;
            };
            match chosen.get(&named(&path)) {
                Some(Choice::Whole) => {}
                Some(Choice::Pieces { pieces, mode }) => {
                    action.then = some_of(action, &path, present, (pieces, *mode), merger)?;
                    action.merged = None;
                }
                // A directory is deleted with the last entry in it.
                None if action.then.is_none() && !shown.contains(&path) => {}
                None => drop(actions.by_path.remove(&path)),
            }
        }
        actions.kept.clear();
        actions.not_restored.retain(NotRestored::is_damaged);
        Ok(())
    }
}

/// Returns a file with some pieces of its text changed.
fn some_of(
    action: &PathAction,
    path: &Path,
    present: &Snapshot,
    (chosen, mode): (&BTreeSet<usize>, bool),
    merger: &Merger<'_>,
) -> Result<Option<Node>> {
    let not_there = || {
        let what = format!("{} has no such parts", shown(path));
        Error::invalid(what).at_path(path)
    };
    let file = |node: &Option<Node>| PathEntry::of(node.as_ref()?)?.file();
    let (Some(now), Some(then)) = (file(&action.now), file(&action.then)) else {
        return Err(not_there());
    };
    let text = pieces_of(action, path, present, merger.workspace.objects())?.unwrap_or_default();
    if chosen.last().is_some_and(|last| *last >= text.len()) {
        return Err(not_there());
    }
    let bytes = text.apply(|n| chosen.contains(&n));
    // With no piece the content stays as it is, text or not.
    let unchanged = chosen.is_empty();
    let (content, size) = match unchanged {
        true => (now.content, now.size),
        false => (ObjectId::of(&bytes), bytes.len() as u64),
    };
    if let Some(writer) = merger.writer.filter(|_| !unchanged) {
        let stored = writer.put_stream(&mut &bytes[..])?;
        stored.map_err(|error| Error::machine("cannot store what was chosen", error))?;
    }
    Ok(Some(Node::File {
        mode: if mode { then.mode } else { now.mode },
        size,
        content,
        ignored: action.then.as_ref().is_some_and(is_ignored),
    }))
}

/// Compares a file's text now with what it would become; with nothing if it is created or
/// deleted. `None` if it is not text.
fn pieces_of(
    action: &PathAction,
    path: &Path,
    present: &Snapshot,
    objects: &Objects,
) -> Result<Option<TextChange>> {
    let file = |node: &Option<Node>| match node {
        Some(node) => PathEntry::of(node)?.file().map(Some),
        None => Some(None),
    };
    let (Some(now), Some(then)) = (file(&action.now), file(&action.then)) else {
        return Ok(None);
    };
    if now.iter().chain(&then).any(|file| file.size > MAX_BYTES) {
        return Ok(None);
    }
    let before = now.map_or(Ok(Vec::new()), |now| {
        read_present(present, path, &now.content)
    })?;
    let after = then.map_or(Ok(Vec::new()), |then| objects.read(&then.content))?;
    let is_text = !is_binary(&before) && !is_binary(&after);
    Ok(is_text.then(|| TextChange::between(before, after)))
}

impl RewindPlan {
    /// Returns what would be done as parts to choose from, in the order of the paths.
    ///
    /// # Errors
    ///
    /// What reading the contents from the files and the store can fail with.
    pub fn parts(&self) -> Result<Vec<Part>> {
        let Some(files) = &self.planned.files else {
            return Ok(Vec::new());
        };
        let Some(workspace) = &self.workspace else {
            return Ok(Vec::new());
        };
        let objects = workspace.objects();
        let mut parts = Vec::new();
        for change in &self.outcome.changes {
            let path = match change.path == Path::new(".") {
                true => Path::new(""),
                false => &change.path,
            };
            let Some(action) = files.actions.by_path.get(path) else {
                continue;
            };
            let mode = |node: &Option<Node>| Some(PathEntry::of(node.as_ref()?)?.file()?.mode);
            let mut conflicts = files.conflicts.iter();
            parts.push(Part {
                change: change.clone(),
                modes: mode(&action.now).zip(mode(&action.then)),
                text: pieces_of(action, path, &files.present, objects)?,
                conflict: conflicts.find(|one| one.path == change.path).cloned(),
            });
        }
        Ok(parts)
    }

    /// Returns a plan of what was chosen from its [`parts`](Self::parts).
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) if it was not planned
    /// [in parts](super::Rewind::in_parts) or a part does not exist, and
    /// [`Conflict`](crate::ErrorKind::Conflict) if files changed since the plan was made.
    pub fn choose(self, chosen: impl IntoIterator<Item = (PathBuf, Choice)>) -> Result<Self> {
        let pick = Pick {
            chosen: Some(chosen.into_iter().collect()),
        };
        if self.workspace.is_none() || self.options.pick.is_none() {
            return Err(Error::invalid("the plan was not made in parts"));
        }
        let mut plan = self;
        plan.target.about = format!("parts of {}", named_paths(&pick.paths())).into();
        plan.options.pick = Some(pick);
        plan_again(plan)
    }
}
