//! Tells what changes in directories, through inotify.
//!
//! Where there is no inotify, or no room for another watch, [`Notifier::watch`] fails and the
//! follower looks by itself from time to time.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// What happened in a watched directory.
#[derive(Debug, PartialEq, Eq)]
pub enum Notice {
    /// A file has another content, or is new.
    File(PathBuf),
    /// A directory is new.
    Directory(PathBuf),
    /// A watched directory was deleted or moved.
    Gone,
    /// Notices were lost.
    Lost,
}

/// Which changes of a directory matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// New files, and other contents.
    Contents,
    /// New directories only.
    NewDirectories,
}

#[cfg(target_os = "linux")]
pub use linux::Notifier;
#[cfg(not(target_os = "linux"))]
pub use other::Notifier;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{BorrowedFd, Interest, Notice, Path, PathBuf, io};

    /// Watches directories.
    #[derive(Debug)]
    pub struct Notifier {
        queue: Option<OwnedFd>,
        directories: HashMap<i32, PathBuf>,
        /// How many directories may be watched, for tests.
        room: usize,
    }

    impl Notifier {
        /// Creates one. If the system refuses, nothing can be watched.
        pub fn new(room: usize) -> Self {
            Self {
                queue: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok(),
                directories: HashMap::new(),
                room,
            }
        }

        /// Returns what can be read from once something happened.
        pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
            self.queue.as_ref().map(AsFd::as_fd)
        }

        /// Watches a directory. Watching it again adds to what matters.
        ///
        /// # Errors
        ///
        /// Fails if the directory cannot be watched.
        pub fn watch(&mut self, directory: &Path, interest: Interest) -> io::Result<()> {
            let Some(queue) = &self.queue else {
                return Err(Errno::MFILE.into());
            };
            if self.directories.len() >= self.room
                && !self.directories.values().any(|known| known == directory)
            {
                return Err(Errno::NOSPC.into());
            }
            let mut flags = WatchFlags::CREATE
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::MASK_ADD;
            if interest == Interest::Contents {
                flags |= WatchFlags::MODIFY;
            }
            let watch = inotify::add_watch(queue, directory, flags)?;
            self.directories.insert(watch, directory.to_owned());
            Ok(())
        }

        /// Stops watching a directory.
        pub fn forget(&mut self, directory: &Path) {
            let watch = self.directories.iter().find(|(_, it)| *it == directory);
            let watch = watch.map(|(watch, _)| *watch);
            if let (Some(watch), Some(queue)) = (watch, &self.queue) {
                self.directories.remove(&watch);
                // It may be gone already.
                inotify::remove_watch(queue, watch).ok();
            }
        }

        /// Returns what happened since the last time. Does not wait.
        ///
        /// # Errors
        ///
        /// Fails if the system does.
        pub fn read(&mut self) -> io::Result<Vec<Notice>> {
            let Some(queue) = &self.queue else {
                return Ok(Vec::new());
            };
            let mut notices = Vec::new();
            let mut gone = Vec::new();
            let mut buffer = [MaybeUninit::uninit(); 16 << 10];
            let mut reader = Reader::new(queue, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
                let flags = event.events();
                if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                    notices.push(Notice::Lost);
                    continue;
                }
                let is_forgotten = !self.directories.contains_key(&event.wd());
                if is_forgotten {
                    continue;
                }
                if flags.intersects(ReadFlags::IGNORED | ReadFlags::MOVE_SELF) {
                    gone.push((event.wd(), flags.contains(ReadFlags::MOVE_SELF)));
                    notices.push(Notice::Gone);
                }
                let Some(name) = event.file_name() else {
                    continue;
                };
                if let Some(directory) = self.directories.get(&event.wd()) {
                    let path = directory.join(OsStr::from_bytes(name.to_bytes()));
                    notices.push(match flags.contains(ReadFlags::ISDIR) {
                        true => Notice::Directory(path),
                        false => Notice::File(path),
                    });
                }
            }
            for (watch, is_moved) in gone {
                self.directories.remove(&watch);
                if is_moved {
                    // It would go on telling about files under their old names.
                    inotify::remove_watch(queue, watch).ok();
                }
            }
            Ok(notices)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::{BorrowedFd, Interest, Notice, Path, io};

    /// Watches nothing.
    #[derive(Debug)]
    pub struct Notifier;

    impl Notifier {
        /// Creates one that refuses to watch.
        pub fn new(_room: usize) -> Self {
            Self
        }

        /// Returns what can be read from once something happened.
        pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        /// Fails.
        pub fn watch(&mut self, _directory: &Path, _interest: Interest) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Returns nothing.
        pub fn read(&mut self) -> io::Result<Vec<Notice>> {
            Ok(Vec::new())
        }

        /// Does nothing.
        pub fn forget(&mut self, _directory: &Path) {}
    }
}
