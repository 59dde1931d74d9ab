//! Taking back what some did to a path, and keeping what others did to it as well.
//!
//! The changes that led to what is there are gone through from the last to the first.
//! Each of those that are taken back is undone in what is there by then: three ways,
//! with the state after it as the base, what is there on one side and the state before
//! it on the other. Changes of the same people that follow each other count as one.
//! Text is merged by line, and modes by themselves; all else goes only where one side
//! left it as it was, or both made the same of it.

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
    /// The state of the workspace that all is counted from.
    pub(super) since: usize,
    /// The last state of the workspace that what is taken back led to.
    pub(super) until: usize,
    pub(super) present: &'a Snapshot,
    pub(super) objects: &'a Objects,
    pub(super) store: &'a Store,
    /// Where new contents are stored; `None` where nothing will be touched.
    pub(super) writer: Option<&'a ObjectWriter>,
}

/// What a path comes to.
pub(super) enum MergeResult {
    /// What it was at the point: nothing of anybody else's is left in it.
    AsItWas,
    /// Something else, or nothing, with how many lines go and how many come back.
    Node(Option<Node>, LineCounts),
    /// What it is.
    Kept,
    Stopped(Unmerged),
}

/// How many lines a merge takes away and brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LineCounts {
    pub(super) removed: u64,
    pub(super) returned: u64,
}

impl MergeResult {
    pub(super) fn told(&self) -> Merge {
        match self {
            Self::AsItWas | Self::Node(..) => Merge::Merged,
            Self::Kept => Merge::Kept,
            Self::Stopped(unmerged) => Merge::Stopped(unmerged.clone()),
        }
    }
}

/// What stands at a path while it is merged, with its bytes where no object has them.
#[derive(Debug, Clone)]
struct MergeVersion {
    state: PathState,
    bytes: Option<Vec<u8>>,
}

/// Changes that are taken back as one.
struct ChangeGroup<'a> {
    before: &'a PathState,
    after: &'a PathState,
    words: Option<&'a Description>,
}

/// Why it stops.
type Stop = Unmerged;

impl Merger<'_> {
    /// Merges what is at a path with what it was at the point.
    pub(super) fn merge(
        &self,
        path: &Path,
        now: Option<&Node>,
        then: Option<&Node>,
    ) -> Result<MergeResult> {
        let present = PathState::of(now);
        let merged = if self.histories.is_stored(path) || present == PathState::Unknown {
            Err(stop("no snapshot had what is there now"))
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

    /// Undoes what is taken back, the last first.
    fn undone(
        &self,
        path: &Path,
        present: &PathState,
        then: &PathState,
    ) -> Result<Result<MergeVersion, Stop>> {
        let mut ours = MergeVersion {
            state: present.clone(),
            bytes: None,
        };
        if matches!(self.authors, Authors::Nobody) {
            let base = self.histories.base(path);
            let group = ChangeGroup {
                before: then,
                after: &base,
                words: None,
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

    /// Returns the changes that led to what is there, the last first, from where others
    /// last brought it back to what it was at the point.
    fn in_effect(&self, path: &Path) -> Vec<&AuthoredChange> {
        let base = self.histories.base(path);
        let chain = self.histories.chain(path).into_iter();
        let brought_back =
            |link: &&AuthoredChange| link.after == base && self.is_own(link) != Ok(true);
        chain.take_while(|link| !brought_back(link)).collect()
    }

    /// Returns who else changed a path last that those whose work is taken back changed,
    /// too, even if nothing shows of it any more.
    pub(super) fn other(&self, path: &Path) -> Option<&Author> {
        let chain = self.in_effect(path);
        if !chain.iter().any(|link| self.is_own(link) != Ok(false)) {
            return None;
        }
        let others = chain.iter().filter(|link| self.is_own(link) != Ok(true));
        others.filter_map(|link| link.by.last()).next()
    }

    /// Puts the changes together that are taken back, the last first.
    fn groups<'c>(&self, chain: &[&'c AuthoredChange]) -> Result<Vec<ChangeGroup<'c>>, Stop> {
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
                    words: link.by.last().and_then(|author| author.words.as_ref()),
                }),
                _ => {}
            }
            goes_on = is_own;
        }
        Ok(groups)
    }

    /// Returns whether a change is taken back. One that is some of these people's and
    /// of others as well is nobody's to take.
    fn is_own(&self, link: &AuthoredChange) -> Result<bool, Stop> {
        if link.is_gone || link.n > self.until {
            return Ok(false);
        }
        if link.by.is_empty() {
            // What Backtrail did is taken back with the rest where it went too far.
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
            _ => Err(stop("several changed it at the same time")),
        }
    }

    /// Takes changes out of what is there.
    fn without(
        &self,
        path: &Path,
        ours: MergeVersion,
        group: &ChangeGroup<'_>,
    ) -> Result<Result<MergeVersion, Stop>> {
        let (base, theirs) = (group.after, group.before);
        if ours.state == *theirs || base == theirs {
            return Ok(Ok(ours));
        }
        if *base == PathState::Unknown || *theirs == PathState::Unknown {
            return Ok(Err(stop("a state of it in between was not captured")));
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
            return Ok(Err(stop("its mode was changed by both")));
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
            return Ok(Err(stop("it is over 16 MiB")));
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
                let by = group.words.and_then(|words| words.read(self.store));
                Err(overlapping(clashes, by.as_deref()))
            }
        })
    }

    /// Reads the base, what is there, and the other side.
    fn texts(
        &self,
        path: &Path,
        ours: MergeVersion,
        [base, theirs]: [ObjectId; 2],
    ) -> Result<Result<[Vec<u8>; 3], Stop>> {
        let read = || -> Result<[Vec<u8>; 3]> {
            let ours = self.bytes_of(path, &ours)?;
            Ok([self.objects.read(&base)?, ours, self.objects.read(&theirs)?])
        };
        match read() {
            Ok(texts) if texts.iter().any(|text| is_binary(text)) => Ok(Err(stop("it is no text"))),
            Ok(texts) => Ok(Ok(texts)),
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Dropped) => {
                Ok(Err(stop("a state of it in between cannot be read")))
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

    /// Stores what a path comes to, and counts the lines that differ.
    fn store(&self, path: &Path, present: &PathState, merged: &MergeVersion) -> Result<LineCounts> {
        if let (Some(writer), Some(bytes)) = (self.writer, &merged.bytes) {
            let stored = writer.put_stream(&mut &bytes[..])?;
            stored.map_err(|error| Error::machine("cannot store what was merged", error))?;
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

/// Returns what comes of a value that two sides may have changed.
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

/// Makes the node of what a path comes to. Whether ignore rules name it is as it was.
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
        // What is in it is another matter: of a directory only the mode is looked at.
        PathEntry::Dir { mode } => Node::Dir(Dir {
            mode: *mode,
            listing: ObjectId::of(&[]),
            totals: Totals::default(),
        }),
    }
}

fn stop(why: &str) -> Stop {
    Unmerged {
        why: why.to_owned(),
        overlaps: Vec::new(),
    }
}

/// Says why something that is no file on all sides is not merged.
fn not_files(base: &PathState, ours: &PathState, theirs: &PathState) -> Stop {
    let is_link = |state: &PathState| matches!(state, PathState::There(PathEntry::Link { .. }));
    stop(match (base, ours, theirs) {
        (_, PathState::Absent, _) => "it was changed, and then deleted by someone else",
        (_, _, PathState::Absent) => "it was made, and then changed by someone else",
        (PathState::Absent, ..) => "it was deleted, and then made again by someone else",
        _ if [base, ours, theirs].into_iter().any(is_link) => "it is a link, or was one",
        _ => "it is no file, or was none",
    })
}

fn overlapping(clashes: Vec<Clash>, by: Option<&str>) -> Stop {
    let overlaps = clashes.into_iter().map(|clash| Overlap {
        line: clash.line,
        now: clash.ours,
        left: clash.base,
        was: clash.theirs,
        by: by.map(ToOwned::to_owned),
    });
    Unmerged {
        why: "both changed the same lines".to_owned(),
        overlaps: overlaps.collect(),
    }
}
