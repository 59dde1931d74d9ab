//! A session engine for AI agents. It stores what agents and users say and do, durably, with
//! the state of the files, and takes both back to any earlier moment.
//!
//! # A tour
//!
//! A [`Store`] is a directory of sessions. Open one, or create it:
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let home = dir.path().join("store");
//! use backtrail::{Block, Compaction, Draft, ForkOptions, Message, SessionOptions, Shape, Store};
//! use backtrail::{ToolResult, ToolUse, Usage};
//!
//! let store = Store::open_or_create(home)?;
//!
//! // A session has one writer. This handle is it, until it is closed or dropped.
//! let session = store.create_session(SessionOptions::new().title("tidy up").agent("mine"))?;
//!
//! // `append` returns the record's seq when the record is on disk.
//! assert_eq!(session.append(Message::user_text("what is in here?"))?, 1);
//!
//! // A draft adds what else is known about a message.
//! let call = ToolUse::new("t1", "bash", &serde_json::json!({"command": "ls"}))?;
//! let reply = Message::assistant([Block::text("Let me look."), call.into()])
//!     .usage(Usage::new(10, 4).cache_read(2));
//! session.append(Draft::from(reply).model("m-1").response_id("r1").duration_ms(1200))?;
//!
//! // In an async agent: queue the message, and await the commit when it matters.
//! let result = ToolResult::ok("src\n").answers("t1", "bash");
//! let commit = session.append_deferred(Message::tool_result(result));
//! assert_eq!(commit.wait()?, 3);
//!
//! // A second writer is refused; the error says who holds the session.
//! let id = session.id().clone();
//! let error = store.open_session(&id).unwrap_err();
//! assert_eq!(error.kind(), backtrail::ErrorKind::Locked);
//! assert_eq!(error.holder().map(|holder| holder.pid), Some(std::process::id()));
//!
//! // Readers need no lock. Each record borrows from the reader's buffer.
//! let reader = store.read_session(&id)?;
//! let mut records = reader.records()?;
//! while let Some(record) = records.next()? {
//!     println!("{} {:?} {} bytes", record.seq(), record.kind(), record.bytes().len());
//!     if let Some(message) = record.message()? {
//!         println!("{}: {}", message.role, message.text());
//!     }
//! }
//! assert!(records.damage().is_empty());
//!
//! // Reading the end costs the same however long the session is.
//! assert_eq!(reader.last_records(1)?[0].seq(), 3);
//!
//! // What to send to a model now, in its provider's format.
//! let context = session.context(Shape::Anthropic)?;
//! assert!(context.as_json().starts_with(r#"{"messages":[{"role":"user","#));
//!
//! // Back to the first record, and forward again. Nothing is ever rewritten.
//! session.rewind_chat(1)?;
//! assert_eq!(session.last_seq(), 1);
//! session.undo()?;
//! assert_eq!(session.last_seq(), 3);
//!
//! // A fork continues from any record as a session of its own. Nothing is copied.
//! let fork = session.fork(&ForkOptions::new().at(1).branch_name("try-2"))?;
//! fork.append(Message::user_text("forget it"))?;
//!
//! // In the context, a summary replaces earlier messages.
//! session.compact(&Compaction::new("They listed the directory.").keep(1))?;
//!
//! // `close` reports errors that `drop` cannot.
//! session.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What an acknowledgement means
//!
//! `append` returns after one `write` of the record and a successful sync. That is
//! [`Durability::Record`], the default. With [`Durability::Batch`], records that wait at
//! the same time share a sync; with [`Durability::Os`], the operating system decides when
//! to sync. With [`Durability::Remote`], `append` returns when the store's
//! [`Remote`](replica::Remote) has the record as well. After a failed sync the handle acknowledges nothing more: drop it and open the
//! session again. A full disk is not fatal: an incomplete record is removed, and the next
//! append may succeed.
//!
//! A record that was not acknowledged may have been written all the same. A caller that
//! retries passes the last seq it knows ([`Draft::expect`]) and gets a
//! [`Conflict`](ErrorKind::Conflict) instead of a duplicate.
//!
//! # Going back
//!
//! [`Session::rewind_chat`], [`undo`](Session::undo), [`redo`](Session::redo) and
//! [`fork`](Session::fork) start a new file that names the record it continues from.
//! They cost the same for ten records as for ten million, and a crash leaves them done or
//! not done. Undo reverses turns, runs, rewinds, restores and compactions;
//! [`Workspace::steps`] lists them, [`SessionReader::steps`] those of a conversation
//! alone.
//!
//! # Context
//!
//! [`SessionReader::context`] renders what to send to a model: the instructions, the last
//! summary, and the messages since. The same history gives the same bytes, and a longer
//! history begins with the bytes of a shorter one. Fixed rules
//! ([`MendRule`](context::MendRule)) correct what a provider would refuse; the log itself
//! never changes.
//!
//! # Files
//!
//! A [`Workspace`] is a directory that an agent works in. [`Workspace::checkpoint`] stores
//! its state. [`Session::begin_turn`] does so before and after a turn: the snapshot runs in
//! the background, and only a tool call waits for it.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let (home, project) = (dir.path().join("store"), dir.path().join("project"));
//! # std::fs::create_dir(&project)?;
//! use backtrail::{Message, Point, Rewind, SessionOptions, Store, ToolResult, ToolUse};
//!
//! let store = Store::open_or_create(home)?;
//! let workspace = store.workspace(&project)?;
//! let session = store.create_session(SessionOptions::new().workspace(&workspace))?;
//!
//! let turn = session.begin_turn(Message::user_text("write a poem"))?;
//! let call = ToolUse::new("t1", "write", &serde_json::json!({"path": "poem.txt"}))?;
//! turn.append(Message::assistant([call.into()]))?;
//! for call in turn.open_tool_calls() {
//!     let tool = turn.begin_tool(&call.id)?;
//!     std::fs::write(project.join("poem.txt"), "roses\n")?;
//!     tool.finish(ToolResult::ok("done"))?;
//! }
//! let checkpoint = turn.end()?;
//! let changes = checkpoint.changes()?;
//! assert_eq!(changes.changes()[0].to_string(), "new poem.txt");
//!
//! // The files as they were before the last turn.
//! let before = workspace.snapshot(&Point::turns_back(1))?;
//! assert!(before.entry("poem.txt")?.is_none());
//!
//! // Back to there, files and conversation in one step, and forward again.
//! let plan = session.rewind_plan(&Point::turns_back(1), Rewind::files_and_chat())?;
//! assert!(plan.outcome().conflicts.is_empty());
//! let outcome = plan.apply()?;
//! assert!(!project.join("poem.txt").exists());
//! assert_eq!(outcome.chat.unwrap().prompt.as_deref(), Some("write a poem"));
//! session.undo()?;
//! assert_eq!(std::fs::read_to_string(project.join("poem.txt"))?, "roses\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Changes by the user or another session since then are a [`Conflict`](rewind::Conflict) and
//! stop it; [`Rewind::keep`], [`Rewind::merge`] and [`Rewind::overwrite`] choose what happens
//! to them. Whatever is replaced or removed is stored first.
//!
//! # Deleting
//!
//! [`Store::delete_plan`] moves sessions to the trash, where their forks can still read
//! them. [`Store::trash`] lists the trash, [`Store::restore_deleted`] restores a session, and
//! [`Store::empty_plan`] removes for good what no fork needs. Nothing is removed on its own.
//! [`Store::purge_plan`] removes every byte of a session; [`SessionReader::gaps`] lists what
//! its forks lack from then on.
//!
//! # Without a store
//!
//! A [`Transcript`] is a session as a plain value, with a file of its own. It also loads files
//! of version 1.
//!
//! # Damage
//!
//! Every record has a checksum. Readers skip damaged records, count them, and report them by
//! [`Records::damage`]; damage never hides what can be read. [`SessionReader::verify`]
//! checks every line, and [`Store::repair_plan`] continues the session without what is
//! damaged.
//!
//! # What can be replaced
//!
//! The store's files, the time and randomness come from [`Storage`], [`Clock`] and
//! [`Randomness`], which are set in [`StoreOptions`]. The engine never prints, never exits
//! and never reads the environment. It is synchronous and needs no runtime.
//!
//! # Conversations only
//!
//! Workspaces, and everything else about files, are in the feature `snapshots`, which is on
//! by default. Without it, `undo`, `redo` and `rewind_chat` move the conversation alone.
//!
//! # Where old names went
//!
//! Backtrail does what two older designs did: a session log (A) and a session
//! history with checkpoints (B). For each of their rows, what it is called now:
//!
//! | row | what it was | what it is called now |
//! |---|---|---|
//! | A1 | a session as a plain value | [`Transcript`]; in a store [`Session`] writes, [`SessionReader`] reads, [`SessionInfo`] has version, times and origin |
//! | A2 | roles | [`Role`]; an unknown one is [`Role::Other`] |
//! | A3 | text, tool use, tool result | [`Block`] with [`TextBlock`], [`ToolUse`], [`ToolResult`] |
//! | A4 | token usage | [`Usage`], [`Usage::total`] |
//! | A5 | constructors of messages | [`Message::system_text`], [`Message::user_text`], [`Message::assistant`], [`Message::assistant_with_usage`], [`Message::tool_result`] |
//! | A6 | push, which persists | [`Transcript::push`] after [`Transcript::with_path`]; in a store [`Session::append`]; `backtrail record` |
//! | A7 | save to a path, load from it | [`Transcript::save_to_path`], [`Transcript::load_from_path`]; a store needs neither |
//! | A8 | JSON lines of version 1 | [`Transcript::load_from_path`]; `backtrail import` |
//! | A9 | the older form, one object | the same as A8 |
//! | A10 | written as version 1 | [`Transcript::write_v1`], [`SessionReader::write_v1`] with [`Losses`](version1::Losses); `backtrail export --to v1` |
//! | A11 | compaction | [`Session::compact`] with [`Compaction`]; [`Transcript::record_compaction`]; `backtrail compact` |
//! | A12 | fork | [`Session::fork`], [`Store::fork_session`] with [`ForkOptions`] and [`ForkOrigin`]; [`Transcript::fork`]; `backtrail fork` |
//! | A13 | rotation | [`StoreOptions::rotation`]; `rotation` in config.toml. The keep count: [`StoreOptions::keep_trails`], `keep_trails`; where history begins: [`SessionReader::gaps`] |
//! | A14 | typed errors | [`Error`] with [`ErrorKind`] and [`Reason`], [`Error::path`], [`Error::line`] |
//! | A15 | references | [`Store::resolve`]; REF of every verb |
//! | B1 | statistics | [`SessionReader::stats`], [`Stats`](conversation::Stats), [`format_duration`](conversation::format_duration); `backtrail stats` |
//! | B2 | history | [`SessionReader::history`], [`SessionReader::prompts`], [`SessionReader::answers`], [`SessionReader::tool_calls`]; cleared by [`Session::rewind_chat`] to 0; `backtrail rewind REF:0 --chat` |
//! | B3 | a file's change | [`Change`], with its bytes by [`Diff::before`](snapshot::Diff::before) and [`Diff::after`](snapshot::Diff::after), its text by [`Diff::text`](snapshot::Diff::text), and when by its [`Checkpoint`]; `backtrail diff` |
//! | B4 | a checkpoint | [`Checkpoint`]: [`Checkpoint::id`], [`Checkpoint::at`], [`Checkpoint::stats`], [`Checkpoint::session`], [`Checkpoint::snapshot`]; the caller's own name is [`Checkpoint::label`] |
//! | B5 | checkpoints saved, loaded, listed | [`Workspace::checkpoint`], [`Workspace::checkpoint_by_id`], [`Workspace::checkpoints`]; `backtrail checkpoint`, `backtrail log` |
//! | B6 | marks before an edit | [`Workspace::mark`], [`Workspace::change_of`] and [`Workspace::changes`] with [`FileChange`](workspace::FileChange), [`Workspace::clear_marks`]; a checkpoint clears them |
//! | B7 | rewinding files | [`Workspace::rewind`], [`Workspace::rewind_plan`], [`Outcome::restored`]; `backtrail rewind`, `backtrail restore`. Old checkpoint files: `backtrail import FILE` |

// Without the feature, some code is compiled and unused where leaving it out would need many
// attributes.
#![cfg_attr(not(feature = "snapshots"), allow(dead_code, unused_imports))]

#[cfg(feature = "snapshots")]
mod blame;
pub mod context;
pub mod conversation;
mod error;
mod escape;
#[cfg(feature = "snapshots")]
pub mod gc;
mod hex;
mod ids;
mod json;
mod log;
mod message;
#[cfg(feature = "snapshots")]
mod objects;
mod random;
pub mod replica;
pub mod rewind;
mod session;
mod short_id;
#[cfg(feature = "snapshots")]
pub mod snapshot;
mod storage;
mod store;
mod sync;
mod time;
mod trail;
mod transcript;
pub mod trash;
pub mod verify;
pub mod version1;
#[cfg(feature = "snapshots")]
pub mod workspace;

pub use context::{Context, Shape};
pub use error::{Error, ErrorKind, Reason, Result};
pub use ids::{CheckpointId, SessionId, WorkspaceId};
pub use json::{Fields, Json, Text};
pub use log::{Commit, Durability, Follower, Holder, Records};
pub use message::{
    Block, Compaction, CompactionSummary, Draft, Media, Message, Role, TextBlock, Thinking,
    ToolResult, ToolUse, Usage,
};
pub use random::{OsRandomness, Randomness};
pub use rewind::Outcome;
#[cfg(feature = "snapshots")]
pub use rewind::{Rewind, RewindPlan};
pub use session::{
    Compacted, ForkOptions, Note, Run, Session, SessionInfo, SessionOptions, SessionReader,
    Spawned, Step, StepKind, Steps,
};
#[cfg(feature = "snapshots")]
pub use session::{Tool, Turn};
#[cfg(feature = "snapshots")]
pub use snapshot::{Change, Snapshot};
pub use storage::{LocalStorage, Storage, StorageFile};
pub use store::{Store, StoreOptions};
pub use time::{Clock, SystemClock, Timestamp};
pub use trail::{
    FORMAT_VERSION, ForkOrigin, Record, RecordKind, RecordRef, SpawnedBy, TrailReason,
};
pub use transcript::Transcript;
#[cfg(feature = "snapshots")]
pub use workspace::{Checkpoint, CheckpointOptions, Point, Workspace};

/// What Backtrail's other crates use. It may change in any version.
#[doc(hidden)]
pub mod plumbing {
    pub use crate::conversation::calls::{CallPlace, CallVisitor, Calls};
    pub use crate::conversation::record::{MessageParts, ReadRecord};
    pub use crate::conversation::responses::ResponseCounter;
    pub use crate::ids::{ObjectId, is_name_like};
    pub use crate::log::{LinePart, OwnedRecords, TrailRecord, TrailRecords};
    pub use crate::message::estimated_tokens;
    #[cfg(feature = "snapshots")]
    pub use crate::session::{
        CallUsage, ImportWriter, ImportWriterOptions, InputLine, KeptSource, Unknown,
    };
    pub use crate::short_id::{ShortIds, named_by};
    pub use crate::storage::LinkRefused;
    pub use crate::store::Staging;
    pub use crate::trail::SourceRecord;
    #[cfg(feature = "snapshots")]
    pub use crate::workspace::git_dir::repository_of;
    #[cfg(feature = "snapshots")]
    pub use crate::workspace::remote::remote_of;

    /// The reader of version 1, for the importer.
    pub mod version1 {
        pub use crate::version1::names::{find_file, is_temporary, original_of, stem};
        pub use crate::version1::object::{V1About, V1Element, V1Flaw, V1Object};
        pub use crate::version1::record::{V1Meta, V1Record, check_message};
    }
}

/// The Rust of README.md, which `cargo test --doc` compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
