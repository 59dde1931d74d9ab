//! A session engine for AI agents.

mod error;
mod ids;
mod json;
mod message;
mod random;
mod session;
mod storage;
mod store;
mod time;
mod trail;

pub use error::{Error, ErrorKind, Reason, Result};
pub use ids::SessionId;
pub use json::{Fields, Json, Text};
pub use message::{
    Block, Draft, Media, Message, Role, TextBlock, Thinking, ToolResult, ToolUse, Usage,
};
pub use random::{OsRandomness, Randomness};
pub use session::{
    Commit, Durability, Follower, Holder, Moved, Note, OwnedRecords, Records, RepairPlan,
    RepairReport, Session, SessionInfo, SessionOptions, SessionReader, SetAside, VerifyReport,
};
pub use storage::{LocalStorage, Storage, StorageFile};
pub use store::{Store, StoreOptions};
pub use time::{Clock, SystemClock, Timestamp};
pub use trail::{
    Because, Damage, DamageReport, FORMAT_VERSION, Record, RecordKind, RecordRef, Sums,
};
