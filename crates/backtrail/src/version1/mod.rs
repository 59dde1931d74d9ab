//! Version 1: session files of the format before this one, read and written.
//!
//! Such a file is JSON lines, or one single object with `messages`. It is read in
//! constant memory, whatever its form and length. Damage costs only itself, and is
//! counted. Nothing here writes to such a file: new ones are exports.
//!
//! There is one reader: [`V1Record`] reads one record and [`V1Object`] takes a single
//! object apart. Transcripts, old stores and the importer use them.

mod losses;
mod names;
mod object;
mod reader;
mod record;
mod writer;

pub use losses::{Loss, LossKind, Losses};
pub use names::{find_file, is_temporary, original_of, stem};
pub use object::{V1About, V1Element, V1Flaw, V1Object};
pub use record::{V1Meta, V1Record, check_message};

pub(crate) use names::{derived_id, id_of_content};
pub(crate) use reader::{V1Index, V1Session, hash, read, scan_object};
pub(crate) use record::{LineContent, V1Line};
pub(crate) use writer::V1Writer;
