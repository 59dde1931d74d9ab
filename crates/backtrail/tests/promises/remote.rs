//! A session that waits for a remote: what was acknowledged is there too, once, and a writer
//! that another machine followed never writes again.

#![allow(
    clippy::disallowed_methods,
    reason = "a project belongs to the user, who changes its files"
)]

mod away;
mod everywhere;
mod files;
mod idle;
mod kit;
mod requests;
mod soak;
mod taken_over;
