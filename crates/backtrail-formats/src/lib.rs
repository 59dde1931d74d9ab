//! Reads the session files of other agents, and imports them.
//!
//! A [`Format`] knows where an agent keeps its sessions, recognises its files and opens them:
//! an [`OpenFile`] tells the session and sends the events of the file to an [`EventSink`], in
//! the order of the conversation. Damaged lines are skipped and counted; records of unknown
//! types are counted and left in the file. [`import`] compares the events with the sessions of
//! a store and adds what is new. Nothing here writes to the files that it reads.
//!
//! ```no_run
//! use backtrail_formats::{EventCollector, Format, Source, formats};
//!
//! let source = Source::open("rollout-2026-08-03T10-48-56-019fc8be.jsonl".as_ref())?;
//! let format = formats().find(|format| format.recognises(&source)).ok_or("unknown format")?;
//! let mut events = EventCollector::default();
//! events.read(format.open(&source)?)?;
//! println!("{}: {} messages", events.session, events.messages().count());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "the files belong to other programs and are only read"
)]

mod bind;
mod collector;
mod compressed;
mod container;
mod convert;
mod cut;
mod environment;
mod error;
mod escapes;
mod event;
mod exclude;
mod follow;
mod format;
mod formats;
mod hooks;
mod import;
mod json;
mod json_lines;
mod launch;
mod launchers;
mod lines;
mod names;
mod programs;
mod redact;
mod retention;
mod source;
mod sqlite;
mod tables;
#[doc(hidden)]
pub mod testing;

pub use bind::{agent_session, bind_imported, bind_new, sessions_of};
pub use collector::{CollectedThread, EventCollector};
pub use compressed::{Decompressed, decompress};
pub use container::{ContainedSession, Container, Contents, FileStamp, Spool};
pub use convert::{Loss, Losses, OutgoingSession, Target, target, targets};
pub use cut::{CompleteEnd, CutPoint, ResumableAgent, resumable};
pub use environment::Environment;
pub use error::{Error, Result};
pub use escapes::escape_len;
pub use event::{
    DamagedLine, DamagedLines, Details, Event, EventSink, ForkPoint, MessageEvent, Origin,
    ReadReport, SummaryEvent, Thread, ThreadId, UsageEvent, sub_agent_name,
};
pub use exclude::Exclude;
pub use follow::{
    FollowOptions, Followed, FollowedKind, FollowedRecord, Follower, Interest, Notice, Notifier,
    Stop, StopHandle, Wake,
};
pub use format::{Agent, Format, OpenFile, Resume, formats};
pub use formats::{
    Aider, Antigravity, Atif, CheckpointFiles, ClaudeCode, ClawCode, Cline, Codex, CopilotCli,
    Crush, Cursor, Droid, GeminiCli, Goose, GrokCli, Hermes, HfTraces, KiloCode, KimiCli, OpenClaw,
    OpenCode, Pi, QwenCode, RooCode, SentRequest, WhichRequest, sent_request,
};
pub use hooks::{
    HookError, HookEvent, HookKind, MAX_HOOK_PAYLOAD, MAX_HOOK_PROMPT, StartSource, StatusReport,
    ToolEffect, UsageLimit, context_at_end, hook_agents, hook_answer, hook_event, hook_shows,
    hook_takes_context, status_report,
};
pub use import::{
    AgentReport, DamagedFileLine, HandOver, ImportOptions, ImportProgress, ImportReport, NewReport,
    PausedImports, SkippedFile, forgetting_sessions, hand_over, import, import_checkpoint_files,
    import_new, is_database_file, is_handed_over, preview, recognise,
};
pub use launch::{Launcher, NewSession};
pub use launchers::launcher;
pub use lines::{Line, Lines, MAX_LINE};
pub use names::{agent_called, agent_names, agent_title};
pub use programs::{ProgramFile, recognise_agent};
pub use redact::{Finding, JsonRedactor, Redactor};
pub use retention::{Limit, Retention, retention};
pub use source::Source;
pub use tables::{Below, Rows, Sessions, Tables, contained_file};
