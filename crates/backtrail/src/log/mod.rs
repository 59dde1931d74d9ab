//! A log: a chain of trails in its own directory.
//!
//! Every session and every workspace has one. A log is written by one process at a time and
//! read by any number. An append adds a record to its newest trail; everything else begins
//! a new trail that names the record it continues. The modules `session` and `workspace`
//! define what the records mean.

pub(crate) mod chain;
mod commit;
mod deleted;
pub(crate) mod directory;
mod examine;
mod follow;
pub(crate) mod gap;
pub(crate) mod lock;
pub(crate) mod payloads;
pub(crate) mod place;
pub(crate) mod present;
mod queue;
mod reader;
mod records;
mod remote;
mod repair;
mod rewrite;
pub(crate) mod tail;
pub(crate) mod trail_copy;
mod trail_records;
pub(crate) mod verify;
pub(crate) mod version1;
mod writer;
mod writer_remote;

pub use commit::Commit;
pub use follow::{Follower, Moved};
pub use gap::{GapReason, HistoryGap};
pub use lock::Holder;
pub use records::{OwnedRecords, Records};
pub use repair::{RepairPlan, RepairReport};
pub use tail::SetAside;
pub use trail_records::{LinePart, TrailRecord, TrailRecords};
pub use verify::VerifyReport;
pub use writer::Durability;

pub(crate) use chain::Line;
pub(crate) use deleted::{DELETED, PURGED, TRAILS, TRASH, read_deleted};
pub(crate) use directory::{LogDir, copy_aside, create_whole, is_session_file};
pub(crate) use gap::{GONE_TRAILS, GoneTrail, GoneTrails};
pub(crate) use lock::{HeldLock, LockFile, hold_writer, lies_in_store};
pub(crate) use payloads::{PayloadWriter, move_out};
pub(crate) use place::end as end_of_line;
pub(crate) use present::present_at;
pub(crate) use queue::Queue;
pub(crate) use reader::LogReader;
pub(crate) use repair::plan as repair_plan;
pub(crate) use rewrite::{Editor, Rewritten, rewrite_line, rewrite_only_trail};
pub(crate) use tail::{Entry, FileTail, append_entries, append_entry, numbers_in};
pub(crate) use version1::{OPENING, first_opener};
pub(crate) use writer::{LogWriter, WriterOptions};
