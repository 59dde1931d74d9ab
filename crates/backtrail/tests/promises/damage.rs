//! Damage costs the bytes it hit and no others.
//!
//! A small session is written to a disk in memory, its files are damaged in
//! every way that power cuts, bad disks and other programs have, and each time
//! the same is asked: what is shown, forwards, backwards and by number; what is
//! said about the rest; and whether the session continues.

pub(crate) mod lab;

mod cuts;
mod flips;
mod lines;
mod links;
mod long;
mod newer;
mod odd;
mod repair;
