//! The piece of a message that shows why it was found.

use backtrail::{Message, RecordRef};

use super::Snippet;
use super::query::ParsedQuery;

/// Makes the snippet of a message.
pub(crate) fn snippet(_message: &Message, _query: &ParsedQuery) -> Snippet {
    Snippet::default()
}

/// Makes the snippet of a record: a message, a summary or a run.
pub(crate) fn snippet_of_record(_record: &RecordRef<'_>, _query: &ParsedQuery) -> Snippet {
    Snippet::default()
}
