//! What tests put in the place of the machine: disk, clock and chance.
//!
//! - [`MemoryStorage`] is a file system in memory that knows what has been
//!   synced and what has not. Its [`crash`](MemoryStorage::crash) returns the
//!   disk as a power cut might leave it, in one of the ways of [`Loss`].
//! - [`FaultyStorage`] wraps any storage, counts operations, and makes the nth
//!   of them go wrong by a [`Fault`].
//! - [`ManualClock`] and [`SeededRandomness`] make time and ids repeatable.
//!
//! A test of crash safety runs its subject on a faulty storage over a memory
//! storage, for every n until the fault is no longer reached, and each time
//! opens what [`crash`](MemoryStorage::crash) returns:
//!
//! ```
//! use std::path::Path;
//!
//! use backtrail::Storage;
//! use backtrail_testkit::{Fault, FaultyStorage, Loss, MemoryStorage, When};
//!
//! for n in 0.. {
//!     let memory = MemoryStorage::new();
//!     let disk = FaultyStorage::new(memory.clone());
//!     disk.arm(n, Fault::Crash { when: When::Before });
//!     let outcome = (|| {
//!         let file = disk.create_new(Path::new("/log"))?;
//!         disk.sync_dir(Path::new("/"))?;
//!         file.append(b"kept")?;
//!         file.sync()
//!     })();
//!     let after = memory.crash(Loss::Unsynced);
//!     if outcome.is_ok() {
//!         assert_eq!(after.read(Path::new("/log"))?, b"kept");
//!     }
//!     if !disk.fired() {
//!         break;
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! It promises that bytes and names that were synced survive every loss, that
//! anything else may or may not, and that equal seeds give equal results. It
//! leaves out permissions, symbolic links, renames and directories that are
//! removed, since the engine has no use for them, and disks that alter what
//! they had already made durable.

mod faulty;
mod memory;
mod mutex;
mod seams;
mod splitmix;

pub use faulty::{Count, Fault, FaultyStorage, When};
pub use memory::{Loss, MemoryStorage};
pub use seams::{ManualClock, SeededRandomness};

// For unit tests of the engine, to which its own traits are others.
#[doc(hidden)]
pub use backtrail::{Randomness, Storage, StorageFile};
