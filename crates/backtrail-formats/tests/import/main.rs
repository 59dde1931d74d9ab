//! What import promises, with a format made for it: nothing is lost and nothing comes twice,
//! in whatever order files come, grow, are rewritten or cut off.

mod promises;
mod random;
mod toy;
