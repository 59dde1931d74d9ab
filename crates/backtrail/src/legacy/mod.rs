//! Version 1: session files of the design before this one, read as they lie.
//!
//! Such a file is JSON lines, or one single object with `messages`. It is read
//! in one pass and in constant memory, whatever its form and length. What is
//! damaged costs itself and nothing else, and is counted. Nothing here writes to
//! such a file.

mod index;
mod look;
mod losses;
mod names;
mod scan;
mod survey;
mod write;

pub(crate) use index::{Index, is_object};
pub use losses::{Loss, LossKind, Losses};

pub(crate) use look::{Fork, Found, Looked, Meta, V1Compaction, look};
pub(crate) use names::{
    derived_id, directory, find_file, id_of_content, is_older_copy, is_temporary,
};
pub(crate) use survey::{At, Summary, Visit, survey, walk};
pub(crate) use write::V1Writer;

/// How a version-1 file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One record a line.
    Lines,
    /// One object, whose `messages` are the records.
    Object,
}

/// How much of a file is read at a time.
const CHUNK: usize = 256 << 10;
