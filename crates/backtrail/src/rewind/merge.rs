//! Undoing what some authors did to a path, and keeping what others did to it.
//!
//! The changes of the path are visited from the last to the first. Each change to undo is
//! undone in the present content by a three-way merge: the state after it is the base, the
//! present content is one side, and the state before it is the other. Consecutive changes
//! of the same authors count as one. Text is merged by line, and modes on their own;
//! anything else only if one side did not change it, or both made the same change.

use std::path::Path;

use super::authors::{Author, Authors};
use super::outcome::{Merge, Overlap, Unmerged};
use super::path_change::PathEntry;
use super::path_history::PathHistories;
use super::path_history::{AuthoredChange, PathState};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, ObjectWriter, Objects};
use crate::snapshot::Snapshot;
use crate::snapshot::entry::{Dir, Node, Totals};
use crate::snapshot::merge::{Clash, merge};
use crate::snapshot::patch::MAX_BYTES;
use crate::snapshot::text::is_binary;
use crate::snapshot::text_change::TextChange;
use crate::store::Store;
use crate::workspace::Description;

/// Merges the paths of one plan.
pub(super) struct Merger<'a> {
    pub(super) histories: &'a PathHistories,
    pub(super) authors: &'a Authors,
    /// The index of the state that changes are counted from.
    pub(super) since: usize,
    /// The index of the last state of the work to undo.
    pub(super) until: usize,
    pub(super) present: &'a Snapshot,
    pub(super) objects: &'a Objects,
    pub(super) store: &'a Store,
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
}

/// How many lines a merge removes and returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LineCounts {
    pub(super) removed: u64,
    pub(super) returned: u64,
}

impl MergeResult {
    pub(super) fn merge(&self) -> Merge {
        match self {
            Self::AsItWas | Self::Node(..) => Merge::Merged,
            Self::Kept => Merge::Kept,
            Self::Stopped(unmerged) => Merge::Stopped(unmerged.clone()),
        }
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
        let merged = if self.histories.is_stored(path) || present == PathState::Unknown {
            Err(unmerged("no snapshot has its present content"))
        } else {
            self.undone(path, &present, &PathState::of(then))?
        };
        let merged = match merged {
            Ok(merged) => merged,
            Err(stopped) => return Ok(MergeResult::Stopped(stopped)),
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
    ) -> Result<Result<MergeVersion, Unmerged>> {
        let mut ours = MergeVersion {
            state: present.clone(),
            bytes: None,
        };
        if matches!(self.authors, Authors::Nobody) {
            let base = self.histories.base(path);
            let group = ChangeGroup {
                before: then,
                after: &base,
                step: None,
            };
            return self.without(path, ours, &group);
        }
        let chain = self.in_effect(path);
        let groups = match self.groups(&chain) {
            Ok(groups) => groups,
            Err(stopped) => return Ok(Err(stopped)),
        };
        for group in &groups {
            ours = match self.without(path, ours, group)? {
                Ok(ours) => ours,
                Err(stopped) => return Ok(Err(stopped)),
            };
        }
        Ok(Ok(ours))
    }

    /// Returns the changes that led to the present state, the last first, back to where
    /// others last restored the state at the point.
    fn in_effect(&self, path: &Path) -> Vec<&AuthoredChange> {
        let base = self.histories.base(path);
        let chain = self.histories.chain(path).into_iter();
        let brought_back =
            |link: &&AuthoredChange| link.after == base && self.is_own(link) != Ok(true);
        chain.take_while(|link| !brought_back(link)).collect()
    }

    /// Returns the last other author of a path that the work to undo changed too, even if
    /// nothing of that author's change is left.
    pub(super) fn other(&self, path: &Path) -> Option<&Author> {
        let chain = self.in_effect(path);
        if !chain.iter().any(|link| self.is_own(link) != Ok(false)) {
            return None;
        }
        let others = chain.iter().filter(|link| self.is_own(link) != Ok(true));
        others.filter_map(|link| link.by.last()).next()
    }

    /// Groups the changes to undo, the last first.
    fn groups<'c>(&self, chain: &[&'c AuthoredChange]) -> Result<Vec<ChangeGroup<'c>>, Unmerged> {
        let mut groups: Vec<ChangeGroup<'c>> = Vec::new();
        // Whether the change after this one belongs to the last group.
        let mut goes_on = false;
        for link in chain {
            let is_own = self.is_own(link)?;
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
    fn is_own(&self, link: &AuthoredChange) -> Result<bool, Unmerged> {
        if link.is_gone || link.n > self.until {
            return Ok(false);
        }
        if link.by.is_empty() {
            // A restore is undone with the rest if it went back too far.
            return Ok(link.is_behind(self.since));
        }
        let is_saved = link.n <= self.histories.saved();
        let is_own = |author: &Author| {
            let author = Author {
                unsaved: author.unsaved && !is_saved,
                ..author.clone()
            };
            self.authors.is_own(&author)
        };
        let own = link.by.iter().filter(|author| is_own(author)).count();
        match own {
            0 => Ok(false),
            all if all == link.by.len() => Ok(true),
            _ => Err(unmerged("several authors changed it at the same time")),
        }
    }

    /// Undoes a group of changes in the present content.
    fn without(
        &self,
        path: &Path,
        ours: MergeVersion,
        group: &ChangeGroup<'_>,
    ) -> Result<Result<MergeVersion, Unmerged>> {
        let (base, theirs) = (group.after, group.before);
        if ours.state == *theirs || base == theirs {
            return Ok(Ok(ours));
        }
        if *base == PathState::Unknown || *theirs == PathState::Unknown {
            return Ok(Err(unmerged("a state in between was not captured")));
        }
        if ours.state == *base {
            return Ok(Ok(MergeVersion {
                state: theirs.clone(),
                bytes: None,
            }));
        }
        let file = |state: &PathState| match state {
            PathState::There(PathEntry::File { mode, content, .. }) => Some((*mode, *content)),
            _ => None,
        };
        let (Some(base_file), Some(our_file), Some(their_file)) =
            (file(base), file(&ours.state), file(theirs))
        else {
            return Ok(Err(not_files(base, &ours.state, theirs)));
        };
        let Some(mode) = three_ways(base_file.0, our_file.0, their_file.0) else {
            return Ok(Err(unmerged("both changed its mode")));
        };
        let content = three_ways(base_file.1, our_file.1, their_file.1);
        let state = |content, size| {
            PathState::There(PathEntry::File {
                mode,
                size,
                content,
            })
        };
        if let Some(content) = content {
            let (size, bytes) = match content == our_file.1 {
                true => (size_of(&ours.state), ours.bytes),
                false => (size_of(theirs), None),
            };
            return Ok(Ok(MergeVersion {
                state: state(content, size),
                bytes,
            }));
        }
        let sizes = [base, &ours.state, theirs].map(size_of);
        if sizes.iter().any(|size| *size > MAX_BYTES) {
            return Ok(Err(unmerged("it is larger than 16 MiB")));
        }
        let texts = match self.texts(path, ours, [base_file.1, their_file.1])? {
            Ok(texts) => texts,
            Err(stopped) => return Ok(Err(stopped)),
        };
        let [base, ours, theirs] = &texts;
        Ok(match merge(base, ours, theirs) {
            Ok(bytes) => Ok(MergeVersion {
                state: state(ObjectId::of(&bytes), bytes.len() as u64),
                bytes: Some(bytes),
            }),
            Err(clashes) => {
                let by = group.step.and_then(|step| step.read(self.store));
                Err(overlapping(clashes, by.as_deref()))
            }
        })
    }

    /// Reads the base, the present content, and the other side.
    fn texts(
        &self,
        path: &Path,
        ours: MergeVersion,
        [base, theirs]: [ObjectId; 2],
    ) -> Result<Result<[Vec<u8>; 3], Unmerged>> {
        let read = || -> Result<[Vec<u8>; 3]> {
            let ours = self.bytes_of(path, &ours)?;
            Ok([self.objects.read(&base)?, ours, self.objects.read(&theirs)?])
        };
        match read() {
            Ok(texts) if texts.iter().any(|text| is_binary(text)) => {
                Ok(Err(unmerged("it is not text")))
            }
            Ok(texts) => Ok(Ok(texts)),
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Dropped) => {
                Ok(Err(unmerged("a state in between cannot be read")))
            }
            Err(error) => Err(error),
        }
    }

    fn bytes_of(&self, path: &Path, version: &MergeVersion) -> Result<Vec<u8>> {
        if let Some(bytes) = &version.bytes {
            return Ok(bytes.clone());
        }
        match &version.state {
            PathState::There(PathEntry::File { content, .. }) => {
                let mut bytes = Vec::new();
                let source = self.present.source();
                source.content(path, content, &mut |piece| {
                    bytes.extend_from_slice(piece);
                    Ok(())
                })?;
                Ok(bytes)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Stores the merged content, and counts the lines that differ.
    fn store(&self, path: &Path, present: &PathState, merged: &MergeVersion) -> Result<LineCounts> {
        if let (Some(writer), Some(bytes)) = (self.writer, &merged.bytes) {
            let stored = writer.put_stream(&mut &bytes[..])?;
            stored.map_err(|error| Error::machine("cannot store the merged file", error))?;
        }
        let content = |state: &PathState| match state {
            PathState::There(PathEntry::File { content, .. }) => Some(*content),
            _ => None,
        };
        let is_large = |state: &PathState| size_of(state) > MAX_BYTES;
        let is_same = content(present) == content(&merged.state);
        if is_same || is_large(present) || is_large(&merged.state) {
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

fn size_of(state: &PathState) -> u64 {
    match state {
        PathState::There(PathEntry::File { size, .. }) => *size,
        _ => 0,
    }
}

/// Makes the node of a merged path. Whether ignore rules match it is as it was.
fn node(entry: &PathEntry, like: [Option<&Node>; 2]) -> Node {
    let is_ignored = like.iter().flatten().any(|node| match node {
        Node::File { ignored, .. } | Node::Link { ignored, .. } => *ignored,
        _ => false,
    });
    match entry {
        PathEntry::File {
            mode,
            size,
            content,
        } => Node::File {
            mode: *mode,
            size: *size,
            content: *content,
            ignored: is_ignored,
        },
        PathEntry::Link { target } => Node::Link {
            target: target.clone(),
            ignored: is_ignored,
        },
        // Of a directory only the mode is merged.
        PathEntry::Dir { mode } => Node::Dir(Dir {
            mode: *mode,
            listing: ObjectId::of(&[]),
            totals: Totals::default(),
        }),
    }
}

fn unmerged(reason: &str) -> Unmerged {
    Unmerged {
        reason: reason.to_owned(),
        overlaps: Vec::new(),
    }
}

/// Returns the reason why a path that is not a file on all sides is not merged.
fn not_files(base: &PathState, ours: &PathState, theirs: &PathState) -> Unmerged {
    let is_link = |state: &PathState| matches!(state, PathState::There(PathEntry::Link { .. }));
    unmerged(match (base, ours, theirs) {
        (_, PathState::Absent, _) => "it was changed, then deleted by others",
        (_, _, PathState::Absent) => "it was created, then changed by others",
        (PathState::Absent, ..) => "it was deleted, then created again by others",
        _ if [base, ours, theirs].into_iter().any(is_link) => "it is or was a link",
        _ => "it is not or was not a file",
    })
}

fn overlapping(clashes: Vec<Clash>, by: Option<&str>) -> Unmerged {
    let overlaps = clashes.into_iter().map(|clash| Overlap {
        line: clash.line,
        now: clash.ours,
        left: clash.base,
        was: clash.theirs,
        by: by.map(ToOwned::to_owned),
    });
    Unmerged {
        reason: "both changed the same lines".to_owned(),
        overlaps: overlaps.collect(),
    }
}
