//! Undoing what some authors did to a path, and keeping what others did to it.
//!
//! The changes of the path are visited from the last to the first. Each change to undo is
//! undone in the present content by a three-way merge: the state after it is the base, the
//! present content is one side, and the state before it is the other. Consecutive changes
//! of the same authors count as one. Text is merged by line, and modes on their own;
//! anything else only if one side did not change it, or both made the same change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::authors::{Author, AuthorKind, WhoseWork};
use super::outcome::{Overlap, Unmerged};
use super::path_change::{FileEntry, PathEntry, is_ignored};
use super::path_history::{AuthoredChange, PathHistories, PathState};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, ObjectWriter};
use crate::session::Program;
use crate::snapshot::Snapshot;
use crate::snapshot::entry::{Dir, Node, Totals};
use crate::snapshot::merge::{Clash, merge};
use crate::snapshot::patch::MAX_BYTES;
use crate::snapshot::text::is_binary;
use crate::snapshot::text_change::TextChange;
use crate::workspace::{Description, Workspace};

/// Finds and merges the conflicts of one plan.
pub(super) struct Merger<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) histories: &'a PathHistories,
    pub(super) authors: &'a WhoseWork,
    /// The paths that changed since the step to undo.
    pub(super) moved_on: &'a BTreeSet<PathBuf>,
    /// The paths that differ from the target.
    pub(super) wanted: &'a BTreeSet<PathBuf>,
    /// The files that are named, which is consent to replace them.
    pub(super) named_files: &'a [PathBuf],
    /// The index of the state that changes are counted from.
    pub(super) since: usize,
    /// The index of the last state of the work to undo.
    pub(super) until: usize,
    pub(super) present: &'a Snapshot,
    /// Whether paths stay as they are of which a version is damaged.
    pub(super) skips_damaged: bool,
    /// Stores new contents; `None` if nothing will be touched.
    pub(super) writer: Option<&'a ObjectWriter>,
}

/// What a merge makes of a path.
pub(super) enum MergeResult {
    /// Its state at the point: nothing of others is left in it.
    AsItWas,
    /// Another state or nothing, with how many lines change.
    Node(Option<Node>, LineCounts),
    /// Its present state.
    Kept,
    Stopped(Unmerged),
    /// A version that it needs is damaged.
    Damaged,
}

/// How many lines a merge removes and returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LineCounts {
    pub(super) removed: u64,
    pub(super) returned: u64,
}

/// The reason why a merge ends early.
enum Stop {
    /// The path cannot be merged.
    Unmerged(Unmerged),
    Damaged,
    Failed(Error),
}

impl From<Unmerged> for Stop {
    fn from(unmerged: Unmerged) -> Self {
        Self::Unmerged(unmerged)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A path while it is merged, with its bytes if no object has them.
#[derive(Debug, Clone)]
struct MergeVersion {
    state: PathState,
    bytes: Option<Vec<u8>>,
}

/// Changes that are undone as one.
struct ChangeGroup<'a> {
    before: &'a PathState,
    after: &'a PathState,
    step: Option<&'a Description>,
}

impl Merger<'_> {
    /// Merges the present state of a path with its state at the point.
    pub(super) fn merge(
        &self,
        path: &Path,
        now: Option<&Node>,
        then: Option<&Node>,
    ) -> Result<MergeResult> {
        let present = PathState::of(now);
        let is_stored = self.histories.stored.contains_key(path);
        let merged = match is_stored || present == PathState::Unknown {
            true => Err(unmerged("its current content is not saved").into()),
            false => self.undone(path, &present, &PathState::of(then)),
        };
        let merged = match merged {
            Ok(merged) => merged,
            Err(Stop::Unmerged(unmerged)) => return Ok(MergeResult::Stopped(unmerged)),
            Err(Stop::Damaged) => return Ok(MergeResult::Damaged),
            Err(Stop::Failed(error)) => return Err(error),
        };
        Ok(match &merged.state {
            state if *state == present => MergeResult::Kept,
            state if *state == PathState::of(then) => MergeResult::AsItWas,
            PathState::Absent if self.histories.born_ignored(path) == Some(true) => {
                MergeResult::Kept
            }
            PathState::There(entry) => {
                let lines = self.store(path, &present, &merged)?;
                MergeResult::Node(Some(node(entry, [now, then])), lines)
            }
            PathState::Absent | PathState::Unknown => {
                MergeResult::Node(None, LineCounts::default())
            }
        })
    }

    /// Undoes the changes, the last first.
    fn undone(
        &self,
        path: &Path,
        present: &PathState,
        then: &PathState,
    ) -> Result<MergeVersion, Stop> {
        let mut ours = MergeVersion {
            state: present.clone(),
            bytes: None,
        };
        if matches!(self.authors, WhoseWork::Nobody) {
            let base = self.histories.base(path);
            let group = ChangeGroup {
                before: then,
                after: &base,
                step: None,
            };
            return self.without(path, ours, &group);
        }
        for group in &self.groups(path, &self.in_effect(path))? {
            ours = self.without(path, ours, group)?;
        }
        Ok(ours)
    }

    /// Returns the changes that led to the present state, the last first, back to where
    /// others last restored the state at the point.
    fn in_effect(&self, path: &Path) -> Vec<&AuthoredChange> {
        let base = self.histories.base(path);
        let chain = self.histories.chain(path).into_iter();
        let brought_back =
            |link: &&AuthoredChange| link.after == base && self.is_own(path, link) != Ok(true);
        chain.take_while(|link| !brought_back(link)).collect()
    }

    /// Returns the last other author of a path that the work to undo changed too, even if
    /// nothing of that author's change is left.
    pub(super) fn other(&self, path: &Path) -> Option<&Author> {
        let chain = self.in_effect(path);
        let is_own = |link: &AuthoredChange| self.is_own(path, link);
        if !chain.iter().any(|link| is_own(link) != Ok(false)) {
            return None;
        }
        let others = chain.iter().filter(|link| is_own(link) != Ok(true));
        others.filter_map(|link| link.by.last()).next()
    }

    /// Groups the changes to undo, the last first.
    fn groups<'c>(
        &self,
        path: &Path,
        chain: &[&'c AuthoredChange],
    ) -> Result<Vec<ChangeGroup<'c>>, Unmerged> {
        let mut groups: Vec<ChangeGroup<'c>> = Vec::new();
        // Whether the change after this one belongs to the last group.
        let mut goes_on = false;
        for link in chain {
            let is_own = self.is_own(path, link)?;
            match groups.last_mut().filter(|_| is_own && goes_on) {
                Some(group) if *group.before == link.after => group.before = &link.before,
                _ if is_own => groups.push(ChangeGroup {
                    before: &link.before,
                    after: &link.after,
                    step: link.by.last().and_then(|author| author.step.as_ref()),
                }),
                _ => {}
            }
            goes_on = is_own;
        }
        Ok(groups)
    }

    /// Returns whether a change is to be undone. One by these authors and by others at the
    /// same time cannot be merged.
    fn is_own(&self, path: &Path, link: &AuthoredChange) -> Result<bool, Unmerged> {
        if link.is_gone || link.n > self.until {
            return Ok(false);
        }
        if link.by.is_empty() {
            // A restore is undone with the rest if it went back too far.
            return Ok(link.is_behind(self.since));
        }
        let by = link.by.iter();
        let by = by.map(|author| self.histories.by_now(path, author));
        let own = by.filter(|author| self.authors.is_own(author)).count();
        match own {
            0 => Ok(false),
            all if all == link.by.len() => Ok(true),
            _ if link
                .by
                .iter()
                .any(|author| author.kind == AuthorKind::Person) =>
            {
                let is_agents = |it: &Author| matches!(it.program, Some(Program::Agent(_)));
                Err(unmerged(match link.by.iter().any(is_agents) {
                    true => "it was changed by you or the agent",
                    false => "it was changed by you or the run",
                }))
            }
            _ => Err(unmerged("it changed while turns or runs overlapped")),
        }
    }

    /// Returns who else changed a path: "you", or "others".
    fn other_name(&self, path: &Path) -> &'static str {
        let by = self.histories.by(path).iter();
        let other = by.rev().find(|author| !self.authors.is_own(author));
        match other.map_or(&AuthorKind::Person, |other| &other.kind) {
            AuthorKind::Person => "you",
            _ => "others",
        }
    }

    /// Undoes a group of changes in the present content.
    fn without(
        &self,
        path: &Path,
        ours: MergeVersion,
        group: &ChangeGroup<'_>,
    ) -> Result<MergeVersion, Stop> {
        let (base, theirs) = (group.after, group.before);
        if ours.state == *theirs || base == theirs {
            return Ok(ours);
        }
        if *base == PathState::Unknown || *theirs == PathState::Unknown {
            return Err(unmerged("a version in between was skipped").into());
        }
        if ours.state == *base {
            return Ok(MergeVersion {
                state: theirs.clone(),
                bytes: None,
            });
        }
        let files = [base, &ours.state, theirs].map(PathState::file);
        let [Some(base_file), Some(our_file), Some(their_file)] = files else {
            return Err(not_files(base, &ours.state, theirs, self.other_name(path)).into());
        };
        let Some(mode) = three_ways(base_file.mode, our_file.mode, their_file.mode) else {
            let who = self.other_name(path);
            return Err(unmerged(&format!("{who} also changed its mode")).into());
        };
        let merged = |(content, size), bytes| MergeVersion {
            state: PathState::There(PathEntry::File(FileEntry {
                mode,
                size,
                content,
            })),
            bytes,
        };
        let contents = [base_file, our_file, their_file].map(|file| (file.content, file.size));
        if let Some(content) = three_ways(contents[0], contents[1], contents[2]) {
            let bytes = ours.bytes.filter(|_| content == contents[1]);
            return Ok(merged(content, bytes));
        }
        if contents.iter().any(|(_, size)| *size > MAX_BYTES) {
            return Err(unmerged("it is larger than 16 MiB").into());
        }
        let [base, ours, theirs] = self.texts(path, ours, [contents[0].0, contents[2].0])?;
        match merge(&base, &ours, &theirs) {
            Ok(bytes) => {
                let content = (ObjectId::of(&bytes), bytes.len() as u64);
                Ok(merged(content, Some(bytes)))
            }
            Err(clashes) => {
                let by = group.step;
                let by = by.and_then(|step| step.read(self.workspace.store()));
                Err(overlapping(clashes, by.as_deref(), self.other_name(path)).into())
            }
        }
    }

    /// Reads the base, the present content, and the other side.
    fn texts(
        &self,
        path: &Path,
        ours: MergeVersion,
        [base, theirs]: [ObjectId; 2],
    ) -> Result<[Vec<u8>; 3], Stop> {
        let objects = self.workspace.objects();
        let read = || -> Result<[Vec<u8>; 3]> {
            let ours = self.bytes_of(path, &ours)?;
            Ok([objects.read(&base)?, ours, objects.read(&theirs)?])
        };
        match read() {
            Ok(texts) if texts.iter().any(|text| is_binary(text)) => {
                Err(unmerged("it is not text").into())
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => Err(Stop::Damaged),
            Err(error) if error.kind() == ErrorKind::Dropped => {
                Err(unmerged("a version in between was dropped").into())
            }
            read => Ok(read?),
        }
    }

    fn bytes_of(&self, path: &Path, version: &MergeVersion) -> Result<Vec<u8>> {
        if let Some(bytes) = &version.bytes {
            return Ok(bytes.clone());
        }
        match version.state.file() {
            Some(file) => read_present(self.present, path, &file.content),
            None => Ok(Vec::new()),
        }
    }

    /// Stores the merged content, and counts the lines that differ.
    fn store(&self, path: &Path, present: &PathState, merged: &MergeVersion) -> Result<LineCounts> {
        if let (Some(writer), Some(bytes)) = (self.writer, &merged.bytes) {
            let stored = writer.put_stream(&mut &bytes[..])?;
            stored.map_err(|error| Error::machine("cannot store the merged file", error))?;
        }
        let files = [present, &merged.state].map(PathState::file);
        let is_same = files[0].map(|file| file.content) == files[1].map(|file| file.content);
        let is_large = files.iter().flatten().any(|file| file.size > MAX_BYTES);
        if is_same || is_large {
            return Ok(LineCounts::default());
        }
        let present = MergeVersion {
            state: present.clone(),
            bytes: None,
        };
        let [before, after] = [&present, merged].map(|version| self.bytes_of(path, version));
        let (before, after) = (before?, after?);
        if is_binary(&before) || is_binary(&after) {
            return Ok(LineCounts::default());
        }
        let (removed, returned) = TextChange::between(before, after).counts();
        Ok(LineCounts { removed, returned })
    }
}

/// Merges a value that two sides may have changed.
fn three_ways<T: PartialEq>(base: T, ours: T, theirs: T) -> Option<T> {
    match () {
        () if ours == theirs || base == theirs => Some(ours),
        () if base == ours => Some(theirs),
        () => None,
    }
}

/// Reads a file of the present state.
pub(super) fn read_present(present: &Snapshot, path: &Path, content: &ObjectId) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    present.source().content(path, content, &mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(bytes)
}

/// Makes the node of a merged path. Whether ignore rules match it is as it was.
fn node(entry: &PathEntry, like: [Option<&Node>; 2]) -> Node {
    let ignored = like.into_iter().flatten().any(is_ignored);
    match entry {
        PathEntry::File(file) => Node::File {
            mode: file.mode,
            size: file.size,
            content: file.content,
            ignored,
        },
        PathEntry::Link { target } => Node::Link {
            target: target.clone(),
            ignored,
        },
        // Of a directory only the mode is merged.
        PathEntry::Dir { mode } => Node::Dir(Dir {
            mode: *mode,
            listing: ObjectId::of(&[]),
            totals: Totals::default(),
        }),
    }
}

pub(super) fn unmerged(reason: &str) -> Unmerged {
    Unmerged::new(reason, Vec::new())
}

/// Returns the reason why a path that is not a file on all sides is not merged.
fn not_files(base: &PathState, ours: &PathState, theirs: &PathState, who: &str) -> Unmerged {
    let is_link = |state: &PathState| matches!(state, PathState::There(PathEntry::Link { .. }));
    unmerged(&match (base, ours, theirs) {
        (_, PathState::Absent, _) => format!("it was changed, then {who} deleted it"),
        (_, _, PathState::Absent) => format!("it was created, then {who} changed it"),
        (PathState::Absent, ..) => format!("it was deleted, then {who} created it again"),
        _ if [base, ours, theirs].into_iter().any(is_link) => "it is or was a link".to_owned(),
        _ => "it is not a file, or was not one".to_owned(),
    })
}

fn overlapping(clashes: Vec<Clash>, by: Option<&str>, who: &str) -> Unmerged {
    let overlaps = clashes.into_iter().map(|clash| Overlap {
        by: by.map(ToOwned::to_owned),
        ..Overlap::new(clash.line, clash.ours, clash.base, clash.theirs)
    });
    Unmerged::new(format!("{who} changed the same lines"), overlaps.collect())
}
