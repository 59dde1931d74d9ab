//! The line of history: the trails, and the part of each, that make up a session.
//!
//! The walk goes backwards from the head, and reads only one opener per trail. If a trail
//! claims to continue something impossible, the walk continues with the trail before it,
//! just before its first readable record, and records the damage.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory::LogDir;
use super::gap::{self, GapReason, HistoryGap};
use super::payloads::Payloads;
use super::trail_records::LinePart;
use super::version1::{Direction, V1Trail, is_version_1, second_opener};
use crate::error::{Error, ErrorKind, IoContext, Reason, Result};
use crate::ids::SessionId;
use crate::message::CompactionSummary;
use crate::storage::StorageFile;
use crate::store::Store;
use crate::trail::find::{find_seq, line_after};
use crate::trail::lines::PEEK_BUFFER;
use crate::trail::opener::{Continues, Opener, TrailReason};
use crate::trail::reader::TrailReader;
use crate::trail::record::Position;
use crate::trail::sum::Sum;
use crate::trail::{Damage, DamageReport, Record, RecordKind, Sums};

/// One trail's part of the line.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) trail: u32,
    pub(crate) path: PathBuf,
    files: LogDir,
    /// `None` if it cannot be read.
    pub(crate) opener: Option<Opener>,
    /// The opener's own sum.
    pub(crate) opener_sum: Option<Sum>,
    /// The first seq that can be read, if the opener cannot.
    first_seq: Option<u64>,
    /// The last seq that belongs to the line.
    pub(crate) until: u64,
    /// Whether the trail may still grow: it is the session's head.
    pub(crate) is_head: bool,
    /// Whether the records that it continues are known to be gone.
    severed: bool,
    /// Set if the trail is a file of version 1.
    version_1: Option<V1Trail>,
}

impl Segment {
    /// Opens a trail and reads its opener. A purge may have rewritten a workspace's trail
    /// since it was listed; then this is the head of the new line.
    pub(crate) fn open(files: &LogDir, trail: u32, until: u64) -> Result<Self> {
        match Self::open_there(files, trail, until) {
            Err(error) if error.kind() == ErrorKind::NotFound && files.is_of_workspace() => {
                Self::open_instead(files, trail, until)?.ok_or(error)
            }
            opened => opened,
        }
    }

    /// Opens the head of the line with which a purge replaced a trail.
    fn open_instead(files: &LogDir, trail: u32, until: u64) -> Result<Option<Self>> {
        let mut seen = trail;
        loop {
            let mut newer = files.trails()?;
            newer.retain(|number| *number > trail);
            match newer.last() {
                Some(head) if *head > seen => seen = *head,
                _ => return Ok(None),
            }
            match Self::open_head_after_purge(files, &newer, until) {
                // Another purge followed.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                found => return found,
            }
        }
    }

    fn open_head_after_purge(files: &LogDir, trails: &[u32], until: u64) -> Result<Option<Self>> {
        let mut head = None;
        for trail in trails.iter().rev() {
            let opened = Self::open_there(files, *trail, until)?;
            let opener = opened.opener.as_ref();
            let is_anew = opener.is_some_and(|opener| opener.reason == TrailReason::Purge);
            let head = head.get_or_insert(opened);
            if is_anew {
                return Ok(Some(head.clone()));
            }
        }
        Ok(None)
    }

    /// Returns whether a failure to read the trail means that it was rewritten.
    pub(crate) fn is_replaced(&self, error: &Error) -> bool {
        self.files.is_of_workspace() && error.kind() == ErrorKind::NotFound
    }

    /// Opens the line with which a purge replaced the trail, oldest first.
    pub(crate) fn line_instead(&self, until: u64) -> Result<Vec<Self>> {
        let mut line = vec![Self::open(&self.files, self.trail, until)?];
        while let Some(segment) = line.last()
            && let Some(continues) = segment.opener.as_ref().and_then(|it| it.continues.clone())
            && continues.trail < segment.trail
        {
            let until = continues.seq.min(segment.until);
            let mut before = Self::open(&self.files, continues.trail, until)?;
            before.is_head = false;
            line.push(before);
        }
        line.reverse();
        Ok(line)
    }

    fn open_there(files: &LogDir, trail: u32, until: u64) -> Result<Self> {
        let (path, file) = files.find_trail(trail)?;
        if trail == 0 && is_version_1(files, &file)? {
            return Ok(Self::version_1(files, until));
        }
        let mut reader = TrailReader::forwards(file, &path, 0, PEEK_BUFFER, Sums::Check);
        let mut opener = None;
        let mut opener_sum = None;
        let mut first_seq = None;
        if let Some(record) = reader.next_record()? {
            if record.kind() == RecordKind::Opener {
                opener = Opener::read(&record, files.id(), trail).ok();
                opener_sum = Some(record.sum());
            } else {
                first_seq = Some(record.seq());
            }
        }
        if opener.is_none() && first_seq.is_none() {
            first_seq = reader.next_record()?.map(|record| record.seq());
        }
        Ok(Self {
            trail,
            path,
            files: files.clone(),
            opener,
            opener_sum,
            first_seq,
            until,
            is_head: true,
            severed: false,
            version_1: None,
        })
    }

    /// Returns a session's first trail, which is known to be a file of version 1.
    pub(crate) fn version_1(files: &LogDir, until: u64) -> Self {
        Self {
            trail: 0,
            path: files.trail_path(0),
            files: files.clone(),
            opener: None,
            opener_sum: None,
            first_seq: None,
            until,
            is_head: true,
            severed: false,
            version_1: Some(V1Trail::default()),
        }
    }

    /// Returns the file of version 1 that the trail continues, if that has no record to
    /// refer to.
    pub(crate) fn imported_without_records(&self) -> Option<Self> {
        let opener = self.opener.as_ref()?;
        let imported = opener.reason == TrailReason::Import && opener.continues.is_none();
        imported.then(|| Self::version_1(&self.files, 0))
    }

    /// Returns whether the trail is a file of version 1.
    pub(crate) fn is_version_1(&self) -> bool {
        self.version_1.is_some()
    }

    /// Returns the last compaction of a file of version 1. It counts from the beginning:
    /// the messages that it covers are not in the file.
    pub(crate) fn version_1_compaction(&self) -> Result<Option<CompactionSummary>> {
        match &self.version_1 {
            Some(trail) => trail.compaction(self.file()?.as_ref(), &self.path),
            None => Ok(None),
        }
    }

    /// Opens the trail's file. It is not kept open: a line can have more trails than a
    /// process may have open files.
    pub(crate) fn file(&self) -> Result<Arc<dyn StorageFile>> {
        self.files.open_read(self.trail)
    }

    /// Returns whether the trail is known to begin without instructions. It is not read: a
    /// file of version 1 is long, and would have to be scanned.
    pub(crate) fn is_uninstructed(&self) -> Result<bool> {
        if !self.is_version_1() {
            return Ok(false);
        }
        let imported = second_opener(&self.files)?.and_then(|opener| opener.imported);
        Ok(imported.is_some_and(|imported| imported.uninstructed))
    }

    /// Returns the payloads of its messages.
    pub(crate) fn payloads(&self) -> Payloads {
        Payloads::new(&self.files)
    }

    /// Returns whether the trail is one of this session's own.
    pub(crate) fn is_of(&self, files: &LogDir) -> bool {
        self.files.id() == files.id()
    }

    /// Returns the seq before the trail's own records; `None` if only the records themselves
    /// tell.
    pub(crate) fn after(&self) -> Option<u64> {
        match &self.opener {
            Some(opener) => Some(opener.seq),
            None => self.is_version_1().then_some(0),
        }
    }

    /// Reads the trail from record `first` on, or from its beginning if that is 0. `buffer` is
    /// how much is read at a time.
    pub(crate) fn forwards(&self, first: u64, buffer: usize, sums: Sums) -> Result<TrailReader> {
        let file = self.file()?;
        if let Some(trail) = &self.version_1 {
            return trail.reader(file, &self.path, first..u64::MAX, Direction::Forwards);
        }
        let offset = match first {
            0 => 0,
            first => find_seq(&file, &self.path, first)?,
        };
        let reader = TrailReader::forwards(file, &self.path, offset, buffer, sums);
        Ok(reader.with_payloads(Arc::new(self.payloads())))
    }

    /// Reads the trail backwards from the last record that belongs to the line, or from a
    /// line after it: a damaged line can contain two records.
    pub(crate) fn backwards(&self, sums: Sums) -> Result<TrailReader> {
        let file = self.file()?;
        let beyond = self.until.checked_add(1);
        if let Some(trail) = &self.version_1 {
            let seqs = 1..beyond.unwrap_or(u64::MAX);
            return trail.reader(file, &self.path, seqs, Direction::Backwards);
        }
        let end = match beyond {
            Some(beyond) => {
                let line = find_seq(&file, &self.path, beyond)?;
                line_after(&file, &self.path, line)?
            }
            None => file.len().context("cannot read the trail", &self.path)?,
        };
        let reader = TrailReader::backwards(file, &self.path, end, sums);
        Ok(reader.with_payloads(Arc::new(self.payloads())))
    }

    /// Returns the position after the last record that belongs to the line.
    pub(crate) fn last_position(&self) -> Result<Option<Position>> {
        let mut reader = self.backwards(Sums::Check)?;
        while let Some(record) = reader.next_record()? {
            if record.seq() <= self.until {
                return Ok(Some(Position::after(&record)));
            }
        }
        Ok(None)
    }

    /// Finds one of the trail's own records.
    pub(crate) fn find(&self, seq: u64) -> Result<Option<Record>> {
        let mut reader = self.forwards(seq, PEEK_BUFFER, Sums::Check)?;
        while let Some(record) = reader.next_record()? {
            if record.seq() == seq && record.kind() != RecordKind::Opener {
                return Ok(Some(record.to_owned()));
            }
            if record.seq() > seq {
                break;
            }
        }
        Ok(None)
    }

    /// Returns the link of this trail if it is broken: if the record before is not the one
    /// that this trail continues. `before` has the sums of that record and of its trail's
    /// opener: a trail may continue either.
    pub(crate) fn broken_link(&self, before: &[Option<Sum>]) -> Option<Reason> {
        let continues = self.opener.as_ref()?.continues.as_ref()?;
        if self.until < continues.seq || continues.seq == 0 || self.severed {
            // The line was cut before that record, or nothing precedes it, or the records before
            // it were purged.
            return None;
        }
        let linked = before.contains(&Some(continues.sum));
        (!linked).then(|| Reason::BrokenLink(continues.to_string()))
    }

    /// Returns the last seq that can precede this trail's own records.
    fn before_first(&self) -> u64 {
        match (&self.opener, self.first_seq) {
            (Some(opener), _) => opener.seq,
            (None, Some(first)) => first.saturating_sub(1),
            (None, None) => u64::MAX,
        }
    }
}

/// The trails and parts of trails that make up a line of history, oldest first.
#[derive(Debug)]
pub(crate) struct Line(pub(crate) Vec<LinePart>);

impl Line {
    pub(crate) fn new(segments: &[Segment]) -> Self {
        let part = |segment: &Segment| LinePart {
            session: segment.files.id().clone(),
            trail: segment.trail,
            until: segment.until,
        };
        Self(segments.iter().map(part).collect())
    }

    /// Returns whether record `seq` of a trail is on the line.
    pub(crate) fn holds(&self, session: &SessionId, trail: u32, seq: u64) -> bool {
        let mut parts = self.0.iter();
        parts.any(|part| part.session == *session && part.trail == trail && seq <= part.until)
    }
}

impl Line {
    /// Returns the last record up to `seq` of a trail that is on the line: `seq` itself, or where
    /// the line left that trail or the one that it came from.
    pub(crate) fn last_shared(&self, session: &SessionId, trail: u32, seq: u64) -> u64 {
        let parts = self.0.iter();
        let parts = parts.filter(|part| part.session == *session && part.trail <= trail);
        parts.map(|part| part.until.min(seq)).max().unwrap_or(0)
    }
}

/// Walks from a session's head to its beginning.
#[derive(Debug)]
pub(crate) struct Walk {
    store: Store,
    next: Option<Target>,
    visited: HashSet<(SessionId, u32)>,
    pub(crate) damage: DamageReport,
    /// The records that are gone from the line, or in the trash; the newest first.
    pub(crate) gaps: Vec<HistoryGap>,
    /// The trails that continue missing records.
    severed: Vec<PathBuf>,
}

#[derive(Debug)]
struct Target {
    files: LogDir,
    trail: u32,
    until: u64,
    /// The trail that names this target; `None` for the head.
    named_in: Option<PathBuf>,
}

impl Walk {
    /// Starts at the end of a trail of a session.
    pub(crate) fn new(store: &Store, files: &LogDir, head: u32) -> Self {
        Self::until(store, files, head, u64::MAX)
    }

    /// Starts at record `until` of a line that ends in trail `head`.
    pub(crate) fn until(store: &Store, files: &LogDir, head: u32, until: u64) -> Self {
        Self {
            store: store.clone(),
            next: Some(Target {
                files: files.clone(),
                trail: head,
                until,
                named_in: None,
            }),
            visited: HashSet::new(),
            damage: DamageReport::default(),
            gaps: Vec::new(),
            severed: Vec::new(),
        }
    }

    /// Restarts at a trail that was rewritten.
    pub(crate) fn again_at(&mut self, segment: &Segment) {
        self.visited.clear();
        self.next = Some(Target {
            files: segment.files.clone(),
            trail: segment.trail,
            until: segment.until,
            named_in: None,
        });
    }

    /// Returns the next part of the line, newest first.
    pub(crate) fn next(&mut self) -> Result<Option<Segment>> {
        let Some(target) = self.next.take() else {
            return Ok(None);
        };
        let mut segment = match Segment::open(&target.files, target.trail, target.until) {
            Err(error) if error.kind() == ErrorKind::NotFound && target.named_in.is_some() => {
                return self.go_around_missing(target);
            }
            opened => opened?,
        };
        segment.is_head = target.named_in.is_none();
        self.visited
            .insert((target.files.id().clone(), target.trail));
        self.next = self.before(&target.files, &segment)?;
        self.note_trash(&target.files, &segment);
        Ok(Some(segment))
    }

    /// Collects the rest of the line, oldest first.
    pub(crate) fn collect(mut self) -> Result<(Vec<Segment>, DamageReport)> {
        let mut segments = Vec::new();
        while let Some(segment) = self.next()? {
            segments.push(segment);
        }
        Ok(self.into_line(segments))
    }

    /// Puts the trails of the walk in order, oldest first.
    pub(crate) fn into_line(self, mut segments: Vec<Segment>) -> (Vec<Segment>, DamageReport) {
        segments.reverse();
        for segment in &mut segments {
            segment.severed = self.severed.contains(&segment.path);
        }
        (segments, self.damage)
    }

    /// Decides where the line continues before `segment`.
    fn before(&mut self, files: &LogDir, segment: &Segment) -> Result<Option<Target>> {
        if segment.is_version_1() {
            return Ok(None);
        }
        let Some(opener) = &segment.opener else {
            self.note(&segment.path, Reason::BadOpener);
            let until = segment.before_first().min(segment.until);
            return self.trail_below(files, segment.trail, until, &segment.path);
        };
        let Some(continues) = &opener.continues else {
            return Ok(None);
        };
        let until = continues.seq.min(segment.until);
        if until == 0 {
            // No record comes before the first.
            return Ok(None);
        }
        let own = continues.session_id == *files.id();
        let allowed = if own {
            continues.trail < segment.trail
        } else {
            segment.trail == 0 && !files.is_of_workspace()
        };
        let place = (continues.session_id.clone(), continues.trail);
        if !allowed || self.visited.contains(&place) {
            self.note(&segment.path, Reason::Loop);
            return self.trail_below(files, segment.trail, until, &segment.path);
        }
        Ok(Some(Target {
            files: files.of(&self.store, &continues.session_id),
            trail: continues.trail,
            until,
            named_in: Some(segment.path.clone()),
        }))
    }

    /// Continues with the trail below a missing one, if there is any.
    fn go_around_missing(&mut self, mut target: Target) -> Result<Option<Segment>> {
        let named_in = target.named_in.take().unwrap_or_default();
        if let Some(gone) = gap::look(&target.files, target.trail, target.until)? {
            self.severed.push(named_in.clone());
            self.add_gap(gone.gap);
            self.next = gone.continues.map(|from| Target {
                files: target.files.of(&self.store, &from.session_id),
                trail: from.trail,
                until: from.seq.min(target.until),
                named_in: Some(named_in),
            });
            return self.next();
        }
        let what = format!("trail {} of session {}", target.trail, target.files.id());
        self.note(&named_in, Reason::BrokenLink(what));
        self.next = self.trail_below(&target.files, target.trail, target.until, &named_in)?;
        self.next()
    }

    /// Returns the highest trail of the session below `trail`.
    fn trail_below(
        &mut self,
        files: &LogDir,
        trail: u32,
        until: u64,
        named_in: &Path,
    ) -> Result<Option<Target>> {
        let below = files
            .readable_trails()?
            .into_iter()
            .rev()
            .find(|n| *n < trail);
        Ok(below
            .filter(|below| !self.visited.contains(&(files.id().clone(), *below)))
            .map(|trail| Target {
                files: files.clone(),
                trail,
                until,
                named_in: Some(named_in.to_owned()),
            }))
    }

    /// Records that a trail was read in the trash, which may be emptied.
    fn note_trash(&mut self, files: &LogDir, segment: &Segment) {
        if segment.path.starts_with(files.trails_in_trash()) {
            self.add_gap(HistoryGap {
                session: files.id().clone(),
                from: segment.before_first().saturating_add(1),
                until: segment.until,
                reason: GapReason::InTrash,
            });
        }
    }

    fn add_gap(&mut self, gap: HistoryGap) {
        match self.gaps.last_mut() {
            Some(newer) if newer.joins(&gap) => newer.from = gap.from,
            _ => self.gaps.push(gap),
        }
    }

    fn note(&mut self, file: &Path, reason: Reason) {
        self.damage.add(Damage::at_beginning(file, reason));
    }
}

/// Returns the place that a new trail of this session continues at.
pub(crate) fn continues_at(id: &SessionId, trail: u32, position: &Position) -> Continues {
    Continues {
        session_id: id.clone(),
        trail,
        seq: position.seq,
        sum: position.sum,
    }
}
