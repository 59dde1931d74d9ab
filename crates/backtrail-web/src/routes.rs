//! Which address is answered by what.

use crate::answer::Handler;

/// The addresses of data that is only read.
pub(crate) const READS: &[(&str, Handler)] = &[];
