//! Version 1: reads and writes session files of the previous format.
//!
//! Such a file is JSON lines, or one single object with `messages`. It is read in
//! constant memory, whatever its form and length. Damage costs only itself, and is
//! counted. Existing files are never written to; exports are new files.
//!
//! There is one reader: `record.rs` parses one record and `object.rs` scans a single
//! object. Transcripts, old stores and the importer use them.

mod losses;
pub(crate) mod names;
pub(crate) mod object;
mod reader;
pub(crate) mod record;
mod writer;

pub use losses::{Loss, LossKind, Losses};

pub(crate) use names::{derived_id, find_file, id_of_content};
pub(crate) use reader::{V1Index, V1Session, hash, read, scan_object};
pub(crate) use record::{V1Line, V1Meta, V1Record};
pub(crate) use writer::V1Writer;
