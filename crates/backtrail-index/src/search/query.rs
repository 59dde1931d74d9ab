//! What is looked for, understood.

use crate::error::Result;

/// Words, phrases, prefixes, `and`, `or`, `not` and parentheses, understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedQuery {}

impl ParsedQuery {
    /// Understands what is looked for; what cannot be understood is an `Error::Query`.
    pub(crate) fn parse(_words: &str) -> Result<Self> {
        Ok(Self {})
    }
}
