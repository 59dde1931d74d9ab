//! A session that waits for a remote: what was acknowledged is there too, once, and a writer
//! that another machine followed never writes again.

mod away;
mod everywhere;
mod files;
mod idle;
mod kit;
mod requests;
mod soak;
mod taken_over;
