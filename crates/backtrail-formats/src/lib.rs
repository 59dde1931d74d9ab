//! Reads the session files of other agents into Backtrail's messages.
//!
//! A [`Format`] knows where an agent keeps its sessions, recognises a file of its own,
//! and reads one: what it says goes to a [`Sink`], in the order of the conversation.
//! Reading is tolerant: a line that is damaged is passed over and counted, a record of
//! a kind that is not known is counted and left in the file. Nothing here writes to the
//! files that it reads.
//!
//! ```no_run
//! use backtrail_formats::{Format, Gathered, Source, formats};
//!
//! let source = Source::open("rollout-2026-08-03T10-48-56-019fc8be.jsonl".as_ref())?;
//! let format = formats().find(|format| format.recognises(&source)).ok_or("nobody's")?;
//! let mut told = Gathered::default();
//! let report = format.read(&source, None, &mut told)?;
//! println!("{}: {} messages", report.session, told.messages().count());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "the files are other programs', and are only read"
)]

mod error;
mod format;
mod formats;
mod gathered;
mod import;
mod json;
mod lines;
mod packed;
mod places;
mod reading;
mod redact;
mod retention;
mod source;
#[doc(hidden)]
pub mod testing;
mod told;

pub use error::{Error, Result};
pub use format::{Format, ReadError, Resume, Support, formats};
pub use formats::{CheckpointFiles, ClaudeCode, ClawCode, Codex, GeminiCli, Pi};
pub use gathered::{Gathered, GatheredThread};
pub use import::{AgentReport, ImportOptions, ImportProgress, ImportReport, import, recognised};
pub use lines::{Line, Lines, MAX_LINE};
pub use packed::{Unpacked, unpack};
pub use places::Environment;
pub use redact::{Finding, JsonRedactor, Redactor};
pub use retention::{Limit, Retention, retention};
pub use source::Source;
pub use told::{
    About, After, DamagedLine, Damages, Item, Origin, Said, Sink, Summarised, Thread, Told, Used,
    Which, agent_name,
};
