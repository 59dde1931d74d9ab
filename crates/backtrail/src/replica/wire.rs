//! What is said between a client and a replica.
//!
//! Every request is answered in one transaction, or not at all. All of them can be asked again
//! after an answer was lost.

use std::fmt;

use crate::ids::SessionId;

/// Whose trails they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogOwner {
    /// A session's.
    Session,
    /// A workspace's.
    Workspace,
}

/// The name of a log: a session or workspace, which has trails.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogKey {
    /// Whose trails they are.
    pub owner: LogOwner,
    /// The id of the session or workspace.
    pub id: SessionId,
}

/// The last line of a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct End {
    /// The trail's number.
    pub trail: u32,
    /// The seq of its last line.
    pub seq: u64,
    /// The sum of that line; keyed, if the replica is encrypted.
    pub sum: [u8; 8],
}

/// A line of a trail, without its newline.
#[derive(Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number. The opener has the one that it continues at; every other line of a trail
    /// has a higher one than the line before.
    pub seq: u64,
    /// Its sum, as in [`End::sum`].
    pub sum: [u8; 8],
    /// The line as it is here, or encrypted.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, sum, bytes } = self;
        let sum = u64::from_be_bytes(*sum);
        write!(f, "Line({seq}, {sum:016x}, {} bytes)", bytes.len())
    }
}

/// A number that grows with every lease of a log: the highest one may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// Who may write to a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The writer, in words for people: machine, program and process.
    pub holder: String,
    /// For how long, by the replica's clock.
    pub left_ms: u64,
}

/// A trail of a log, as it is at a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailStatus {
    /// Its first line.
    pub opener: Line,
    /// Its last line.
    pub end: End,
}

/// A log, as it is at a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStatus {
    /// The end of its newest trail; `None` before the first.
    pub head: Option<End>,
    /// The newest fence; 0 if nobody ever held a lease.
    pub fence: Fence,
    /// The lease, unless it has run out.
    pub lease: Option<Lease>,
    /// When something was appended last, in milliseconds since 1970 by the replica's clock;
    /// before that, when it was created.
    pub changed_at_ms: i64,
    /// How many bytes its lines have.
    pub bytes: u64,
    /// When it was moved to the trash, in milliseconds since 1970.
    pub deleted_at_ms: Option<i64>,
    /// The data key of an encrypted log, wrapped for its recipients; empty if it is not
    /// encrypted.
    pub wrapped_key: Vec<u8>,
}

/// What kind of bytes a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlobKind {
    /// A payload of a session.
    Payload,
    /// Objects of snapshots, one after another, after 16 random bytes: so no name is used twice,
    /// and a pack that is being removed is never the one that is being stored.
    Pack,
}

/// The name of a blob: large bytes that never change. Payloads belong to a log, and are named by
/// their hash; packs are shared by all logs of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobName {
    /// What it is.
    pub kind: BlobKind,
    /// The BLAKE3 hash of its bytes; keyed, if the replica is encrypted.
    pub hash: [u8; 32],
}

/// Where an object is: its bytes are a part of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectPlace {
    /// The object's id; keyed, if the replica is encrypted.
    pub id: [u8; 32],
    /// The hash that names the pack.
    pub pack: [u8; 32],
    /// Its first byte in the pack.
    pub from: u64,
    /// How many bytes it has there.
    pub bytes: u64,
}

/// A pack, as it is at a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackStatus {
    /// The hash that names it.
    pub pack: [u8; 32],
    /// How many bytes it has.
    pub bytes: u64,
    /// How many objects are read from it. Those that another pack has now do not count.
    pub objects: u32,
    /// Grows with every seal and every append that relies on the pack.
    pub uses: u64,
    /// How long ago it was condemned; `None` if it was not.
    pub condemned_ms: Option<u64>,
}

/// In which order lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the opener on.
    Forwards,
    /// From the last line back.
    Backwards,
}

/// Something that was appended to a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its number in the replica. Numbers grow, and may have gaps.
    pub id: u64,
    /// The log.
    pub log: LogKey,
    /// The end of the log since then.
    pub end: End,
    /// When, in milliseconds since 1970 by the replica's clock.
    pub at_ms: i64,
    /// The holder of the lease under which it was appended.
    pub by: String,
}

/// What a client asks of a replica.
///
/// Where nothing else is said, a request about a log that is not there is answered by
/// [`Answer::Absent`], and one about a purged log by [`Answer::Purged`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// How is a log? Answered by [`Answer::Log`].
    Status {
        /// The log.
        log: LogKey,
    },
    /// Takes the right to write, with a new fence. A log that is absent is created without a
    /// trail. A lease that has not run out can be taken by its own holder alone, which fences
    /// that holder's older handle. Answered by [`Answer::Leased`], [`Answer::Held`] or
    /// [`Answer::Purged`].
    Lease {
        /// The log.
        log: LogKey,
        /// The writer: unique, and in words for people.
        holder: String,
        /// For how long.
        ttl_ms: u64,
        /// For a log that is created: see [`LogStatus::wrapped_key`].
        wrapped_key: Vec<u8>,
    },
    /// Prolongs a lease, also one that has run out, as long as nobody else took it. Answered by
    /// [`Answer::Renewed`] or [`Answer::Fenced`].
    Renew {
        /// The log.
        log: LogKey,
        /// The fence of the lease.
        fence: Fence,
        /// For how long from now.
        ttl_ms: u64,
    },
    /// Ends a lease, as if it had run out now. Answered by [`Answer::Renewed`]; a lease that
    /// somebody else has stays.
    Release {
        /// The log.
        log: LogKey,
        /// The fence of the lease.
        fence: Fence,
    },
    /// Appends lines to the newest trail. Checked in this order: lines that are all there
    /// already, in the trail that `after` names and with the same sums, are answered as the first
    /// time, whatever the fence and whatever came behind them, for the answer may have been lost;
    /// another fence is [`Answer::Fenced`]; another end is [`Answer::Moved`]. Otherwise the
    /// answer is [`Answer::Appended`]. An append also prolongs the lease.
    Append {
        /// The log.
        log: LogKey,
        /// The fence of the lease.
        fence: Fence,
        /// The end after which the lines come.
        after: End,
        /// The lines, at least one.
        lines: Vec<Line>,
        /// The packs that hold what the lines name. A condemned one is taken back in the same
        /// transaction; if one was removed, nothing is appended and the answer is
        /// [`Answer::PacksGone`].
        relies_on: Vec<[u8; 32]>,
        /// For how long the lease is prolonged.
        ttl_ms: u64,
    },
    /// Begins a trail, which has to have a higher number than the head. Checked as in `Append`,
    /// and answered likewise.
    Begin {
        /// The log.
        log: LogKey,
        /// The fence of the lease.
        fence: Fence,
        /// The end of the head; `None` if there is no trail yet.
        head: Option<End>,
        /// The number of the new trail.
        trail: u32,
        /// Its first line.
        opener: Line,
        /// As in `Append`.
        relies_on: Vec<[u8; 32]>,
        /// For how long the lease is prolonged.
        ttl_ms: u64,
    },
    /// Which trails does a log have? Answered by [`Answer::Trails`], lowest first.
    Trails {
        /// The log.
        log: LogKey,
    },
    /// Reads lines of a trail. Answered by [`Answer::Lines`].
    Read {
        /// The log.
        log: LogKey,
        /// The trail's number.
        trail: u32,
        /// Forwards, only lines after this seq, the opener not counted; backwards, only lines
        /// before it. `None` for all.
        beyond: Option<u64>,
        /// In which order.
        order: Order,
        /// About how many bytes at most, and at least one line.
        max_bytes: u64,
    },
    /// Lists logs by id. Answered by [`Answer::Logs`].
    List {
        /// Only logs after this one.
        after: Option<LogKey>,
        /// How many at most.
        limit: u32,
    },
    /// What was appended since? Answered by [`Answer::Changes`], oldest first.
    Changes {
        /// Only changes with a higher number.
        after: u64,
        /// How many at most.
        limit: u32,
    },
    /// Moves a log to the trash, or out of it. Answered by [`Answer::Done`] or
    /// [`Answer::Absent`].
    Delete {
        /// The log.
        log: LogKey,
        /// Whether it is in the trash afterwards.
        deleted: bool,
    },
    /// Removes everything of a log but its id, which is never accepted again. Answered by
    /// [`Answer::Done`], also if there was nothing.
    Purge {
        /// The log.
        log: LogKey,
    },
    /// Where are these objects? Answered by [`Answer::Objects`] with those that are known, in
    /// packs that are not condemned where there is a choice.
    Locate {
        /// The log whose lines name them: its key hides their ids, if the replica is encrypted.
        log: LogKey,
        /// Their ids.
        ids: Vec<[u8; 32]>,
    },
    /// Records what is in a pack whose bytes were stored before. Objects that are in another pack
    /// already are read from this one from now on. Answered by [`Answer::Done`], or by
    /// [`Answer::PacksGone`] if the bytes are not there.
    SealPack {
        /// As in `Locate`.
        log: LogKey,
        /// The objects in it; all name the same pack.
        objects: Vec<ObjectPlace>,
    },
    /// Lists packs by name. Answered by [`Answer::Packs`].
    Packs {
        /// Only packs after this one.
        after: Option<[u8; 32]>,
        /// How many at most.
        limit: u32,
    },
    /// Condemns packs that no line needs: they are removed after a waiting time. A pack stays if
    /// its number of uses is another one, for a line may name it by now. Answered by
    /// [`Answer::Packs`] with those that are condemned.
    Condemn {
        /// The packs, with the uses that they had before the lines were read.
        packs: Vec<([u8; 32], u64)>,
    },
    /// Removes packs, with their bytes, that were condemned at least this long ago. Answered by
    /// [`Answer::Packs`] with those that were removed.
    RemovePacks {
        /// For how long they have to have been condemned.
        condemned_ms: u64,
        /// How many at most.
        limit: u32,
    },
}

/// What a replica answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The log.
    Log(LogStatus),
    /// There is no such log or trail.
    Absent,
    /// The log was purged, at this time in milliseconds since 1970.
    Purged(i64),
    /// The lease was granted.
    Leased {
        /// The new fence.
        fence: Fence,
        /// The log, at the moment of the lease.
        log: LogStatus,
    },
    /// Somebody else has the lease.
    Held(Lease),
    /// The lease was prolonged, or ended.
    Renewed,
    /// The lines are there, once; the last one of the request is this.
    Appended(End),
    /// The fence is not the newest; this is, and who took it.
    Fenced {
        /// The newest fence.
        fence: Fence,
        /// Its holder, if its lease has not run out.
        lease: Option<Lease>,
    },
    /// The log does not end where the request said, but here.
    Moved(Option<End>),
    /// The trails.
    Trails(Vec<TrailStatus>),
    /// Lines, in the order that was asked for.
    Lines {
        /// The lines.
        lines: Vec<Line>,
        /// Whether there are more.
        more: bool,
    },
    /// Logs, by id.
    Logs(Vec<(LogKey, LogStatus)>),
    /// What was appended.
    Changes(Vec<Change>),
    /// The places of objects.
    Objects(Vec<ObjectPlace>),
    /// Packs.
    Packs(Vec<PackStatus>),
    /// These packs were removed. Nothing was appended or recorded.
    PacksGone(Vec<[u8; 32]>),
    /// It is done.
    Done,
}

/// Why a replica did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicaErrorKind {
    /// It could not be reached, or the answer was lost: the request may have been carried out.
    Away,
    /// It refuses this client: a wrong password, a missing right.
    Denied,
    /// It is not set up, or was set up by a newer version.
    Unfit,
    /// It answered with something that cannot be right.
    Corrupt,
}

/// A failure to get an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaError {
    /// What went wrong.
    pub kind: ReplicaErrorKind,
    /// What was attempted and why it failed, without passwords.
    pub message: String,
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReplicaError {}

/// A second home of trails, payloads and objects.
pub trait Replica: fmt::Debug + Send + Sync {
    /// Answers a request.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer.
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError>;

    /// Returns which blobs are there. Payloads are those of `log`.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer.
    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError>;

    /// Stores a blob, durably, unless it is there. A line may name it afterwards. Of a log that was
    /// purged nothing is stored, or left behind, and the append that follows says so.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer.
    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError>;

    /// Returns a blob, or `bytes` of it from byte `from`; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, or if what is there does not match its name.
    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError>;
}
