//! A session file of version 1 becomes a session like any other, and stays as it
//! was (A8, A9, A14, F2, F7, F8, F11).
//!
//! Files of both forms are put on a disk in memory beside the store and taken in,
//! whole and damaged in every way, with the machine stopping at every operation.
//! Each time the same is asked: that the file itself is untouched, that all of it
//! can be read through every door, and that the session goes on.

pub(crate) mod desk;

mod crash;
mod damage;
mod goes_on;
mod ids;
mod odd;
mod whole;
