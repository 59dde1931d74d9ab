//! Remotes, as the engine sees them: a *replica* is a second home of trails.
//!
//! A session is written here first, always. A replica keeps the same lines, payloads and
//! objects, and decides one thing alone: who may write. It does so with a *lease*, which
//! another writer can take once it has run out, and a *fence*, a number that grows with every
//! lease. A writer that was asleep while another one took over has an old fence and is refused
//! for good.
//!
//! This module has no I/O and no dependencies. [`Request`] and [`Answer`] are what is said, and
//! [`Replica`] is whoever answers: a database, a model in memory, or a simulation. The machines
//! that decide what to ask are values as well: answers go in, requests come out, so tests and
//! simulations drive the code that runs.

mod compare;
pub(crate) mod local;
mod pull;
mod push;
mod refusal;
mod remote;
mod transfer;
mod wire;
mod writer;

pub use refusal::{LastCommon, Refusal};
pub use remote::{Remote, WhenAway};
pub use transfer::{
    Depth, LinePlace, LinePlaces, OnProgress, PullOptions, PushOptions, PushedFork, ReplicaReport,
    Role, SessionTransfer, Transfer, TransferProgress, Transferred, delete_there, purge_there,
    restore_there, sessions_there,
};
pub use wire::{
    Answer, BlobKind, BlobName, Change, End, Fence, Lease, Line, LogKey, LogOwner, LogStatus,
    ObjectPlace, Order, PackStatus, Replica, ReplicaError, ReplicaErrorKind, Request, TrailStatus,
};
pub use writer::{Unsent, Writer, WriterStep};
