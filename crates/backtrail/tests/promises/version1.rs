//! Sessions of version 1 stay readable: as transcripts, and in old stores (A8-A10, A14,
//! F2, F7, F8, F11).
//!
//! Earlier versions imported a file of version 1 byte for byte as a session's first
//! trail. Files of both forms, whole and damaged in every way, are put in that place.
//! Each time the same is checked: the file itself is untouched, all of it can be read
//! through every door, and the session continues. `fixtures` are stores that such a
//! version wrote.

pub(crate) mod disk;
pub(crate) mod transcript;

mod continued;
mod damage;
mod fixtures;
mod interrupted;
mod odd;
mod strict;
mod whole;
