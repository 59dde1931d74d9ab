//! Damage affects only the bytes that it hit.
//!
//! A small session is written to a disk in memory, and its files are damaged in every way
//! that power cuts, bad disks and other programs do. Each time the same is checked: what
//! is shown, forwards, backwards and by number; what is reported about the rest; and
//! whether the session continues.

pub(crate) mod lab;

mod cuts;
mod flips;
mod lines;
mod links;
mod long;
mod newer;
mod odd;
mod repair;
