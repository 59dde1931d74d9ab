//! Replacements for disk, clock and randomness in tests.
//!
//! - [`MemoryStorage`] is a file system in memory that tracks what was synced. Its
//!   [`crash`](MemoryStorage::crash) returns the disk as a power cut might leave it, in
//!   one of the ways of [`Loss`].
//! - [`FaultyStorage`] wraps any storage, counts operations, and makes the nth fail with
//!   a [`Fault`].
//! - [`replica`] is a remote in memory, one that fails, and what every remote promises.
//! - [`ManualClock`] and [`SeededRandomness`] make times and ids repeatable.
//!
//! A test of crash safety runs its subject on a faulty storage over a memory storage, for
//! every n until the fault is no longer reached, and each time opens what
//! [`crash`](MemoryStorage::crash) returns:
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
//! Bytes and names that were synced survive every loss, anything else may or may not, and
//! equal seeds give equal results. Not modelled are permissions, symbolic links, and
//! disks that alter durable data.

mod faulty;
mod lock;
mod memory;
pub mod replica;
mod splitmix;
mod time_and_randomness;

pub use faulty::{Count, Fault, FaultyStorage, When};
pub use memory::{Loss, MemoryStorage};
pub use time_and_randomness::{ManualClock, SeededRandomness};

// For unit tests of the engine, whose own traits are different types.
#[doc(hidden)]
pub use backtrail::{Randomness, Storage, StorageFile};
