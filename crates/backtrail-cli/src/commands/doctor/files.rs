//! What the files of a store show without being read: permissions, locks, leftovers, and
//! free space.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Check;
use crate::files;
use crate::home::tilde;
use crate::shell::quote_path;
use crate::text::{count, size, some_of, visible_path};
use crate::ui::Ui;

/// Less free space than this is a problem.
const LITTLE: u64 = 512 << 20;
/// The most files that are named.
const NAMED: usize = 3;

/// The files of a store.
#[derive(Default)]
pub(super) struct Files {
    bytes: u64,
    derived: u64,
    /// Those that other users may read or write.
    open: Vec<PathBuf>,
    unreadable: Vec<PathBuf>,
    /// Those that cannot be written.
    fixed: Vec<PathBuf>,
    /// Whether that is because the file system is mounted read-only.
    is_mounted_read_only: bool,
    /// Symbolic links, which are not followed.
    links: Vec<PathBuf>,
    /// Leftovers of interrupted work.
    left: Vec<PathBuf>,
    /// Damaged derived files.
    damaged: Vec<PathBuf>,
    /// By device and inode.
    locks: BTreeMap<(u64, u64), PathBuf>,
}

impl Files {
    pub(super) fn look(dir: &Path) -> Self {
        let mut files = Self::default();
        files.enter(dir, dir);
        files
    }

    fn enter(&mut self, dir: &Path, store: &Path) {
        self.see(dir, store);
        let Ok(entries) = files::entries(dir) else {
            self.unreadable.push(dir.to_owned());
            return;
        };
        let mut paths: Vec<PathBuf> = entries.collect();
        paths.sort();
        for path in paths {
            let kind = path.symlink_metadata().map(|metadata| metadata.file_type());
            match kind {
                Ok(kind) if kind.is_dir() => self.enter(&path, store),
                Ok(kind) if kind.is_file() => self.see(&path, store),
                // The settings are the user's own file.
                Ok(kind) if kind.is_symlink() && path != store.join("config.toml") => {
                    self.links.push(path);
                }
                _ => {}
            }
        }
    }

    fn see(&mut self, path: &Path, store: &Path) {
        let Ok(metadata) = path.symlink_metadata() else {
            return;
        };
        let inside = path.strip_prefix(store).unwrap_or(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let derived = inside.starts_with("derived");
        // The settings are the user's own file.
        if metadata.permissions().mode() & 0o077 != 0 && inside != Path::new("config.toml") {
            self.open.push(path.to_owned());
        }
        if inside != Path::new("config.toml") {
            self.try_write(path);
        }
        if is_left(&name) && !derived {
            self.left.push(path.to_owned());
        }
        if metadata.is_dir() {
            return;
        }
        self.bytes += metadata.len();
        if derived {
            self.derived += metadata.len();
            if is_damaged_database(path, &name) {
                self.damaged.push(path.to_owned());
            }
        }
        if name.ends_with("lock") || name.starts_with("active-") {
            let file = (metadata.dev(), metadata.ino());
            self.locks.insert(file, path.to_owned());
        }
    }

    /// Asks whether a file or directory can be written; nothing is.
    fn try_write(&mut self, path: &Path) {
        use rustix::io::Errno;
        match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
            Err(Errno::ROFS) => {
                self.is_mounted_read_only = true;
                self.fixed.push(path.to_owned());
            }
            Err(Errno::ACCESS | Errno::PERM) => self.fixed.push(path.to_owned()),
            _ => {}
        }
    }

    pub(super) fn checks(&self, dir: &Path, ui: &Ui) -> Vec<Check> {
        vec![
            self.permissions(dir, ui),
            self.links(dir),
            self.locks(dir),
            self.derived(dir, ui),
            self.left(dir, ui),
            self.disk(dir, ui),
        ]
    }

    fn permissions(&self, dir: &Path, ui: &Ui) -> Check {
        if !self.unreadable.is_empty() {
            let what = format!("cannot be read: {}", named(&self.unreadable, dir));
            let hint = format!("chmod -R u+rwX {}", quote_path(dir));
            return Check::found("permissions", what, hint);
        }
        if !self.fixed.is_empty() {
            let reason = match self.is_mounted_read_only {
                true => " (read-only file system)",
                false => "",
            };
            let what = format!("cannot be written: {}{reason}", named(&self.fixed, dir));
            let hint = match self.is_mounted_read_only {
                true => format!(
                    "mount it for writing, or use another store: {} --store DIR",
                    ui.program()
                ),
                false => format!("chmod -R u+rwX {}", quote_path(dir)),
            };
            return Check::found("permissions", what, hint);
        }
        match self.open.len() as u64 {
            0 => Check::fine("permissions", "only you can read the store"),
            n => {
                let what = format!(
                    "other users can read {}: {}",
                    count(n, "file").replace("files", "files or directories"),
                    named(&self.open, dir)
                );
                let hint = format!("chmod -R go= {}", quote_path(dir));
                Check::found("permissions", what, hint)
            }
        }
    }

    fn links(&self, dir: &Path) -> Check {
        let Some(link) = self.links.first() else {
            return Check::fine("links", "none");
        };
        let what = format!("not followed: {}", named(&self.links, dir));
        let hint = format!(
            "put what it points to in its place, or remove it: rm {}",
            quote_path(link)
        );
        Check::found("links", what, hint)
    }

    /// A held lock is not a problem: somebody is at work.
    fn locks(&self, dir: &Path) -> Check {
        let held: Vec<String> = held_locks()
            .into_iter()
            .filter_map(|(file, pid)| Some((self.locks.get(&file)?, pid)))
            .map(|(path, pid)| format!("{} by process {pid}", inside(path, dir)))
            .collect();
        Check::fine(
            "locks",
            match held.as_slice() {
                [] => "none held".to_owned(),
                held => format!("held: {}", held.join(", ")),
            },
        )
    }

    fn derived(&self, dir: &Path, ui: &Ui) -> Check {
        if !self.damaged.is_empty() {
            let what = format!("damaged: {}", named(&self.damaged, dir));
            return Check::found("derived", what, format!("{} rebuild", ui.program()));
        }
        match self.derived {
            0 => Check::fine("derived", "none yet; built on the first query"),
            bytes => Check::fine("derived", size(bytes)),
        }
    }

    fn left(&self, dir: &Path, ui: &Ui) -> Check {
        if self.left.is_empty() {
            return Check::fine("leftovers", "none");
        }
        let what = format!("from interrupted work: {}", named(&self.left, dir));
        let trash = dir.join("trash");
        let in_trash = self.left.iter().any(|path| path.starts_with(&trash));
        let hint = match in_trash {
            true => format!("{} trash empty", ui.program()),
            false => format!(
                "harmless; removed by the next write there; see: {} verify",
                ui.program()
            ),
        };
        Check::found("leftovers", what, hint)
    }

    fn disk(&self, dir: &Path, ui: &Ui) -> Check {
        let used = size(self.bytes);
        match rustix::fs::statvfs(dir) {
            Ok(disk) => {
                let free = disk.f_bavail.saturating_mul(disk.f_frsize);
                let what = format!("store {used}, {} free", size(free));
                match free < LITTLE {
                    true => Check::found(
                        "disk",
                        what,
                        format!("see what can be freed: {} gc --dry-run", ui.program()),
                    ),
                    false => Check::fine("disk", what),
                }
            }
            Err(_) => Check::fine("disk", format!("store {used}")),
        }
    }
}

/// Returns whether a name is that of unfinished work.
fn is_left(name: &str) -> bool {
    let begun = [".emptying", ".trails-emptying", ".purging", ".purged-new"];
    matches!(name, "new-trail" | "gone-trails-new")
        || begun.iter().any(|end| name.ends_with(end))
        || name.contains(".aside")
}

/// Returns whether a file is named as a database but is not one.
fn is_damaged_database(path: &Path, name: &str) -> bool {
    let is_database = [".db", ".sqlite", ".sqlite3"]
        .iter()
        .any(|end| name.ends_with(end));
    if !is_database {
        return false;
    }
    let mut begin = [0; 16];
    let read = files::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut begin));
    // A new one is empty.
    !matches!(read, Ok(0)) && begin != *b"SQLite format 3\0"
}

/// Returns which files are locked by which process, if the system has a list.
fn held_locks() -> Vec<((u64, u64), u32)> {
    let text = files::read(Path::new("/proc/locks")).unwrap_or_default();
    text.lines().filter_map(held_lock).collect()
}

/// Reads a line like `1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF`.
fn held_lock(line: &str) -> Option<((u64, u64), u32)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "FLOCK")?;
    // This one waits for a lock.
    if words.contains(&"->") {
        return None;
    }
    let pid = words.get(at + 3)?.parse().ok()?;
    let mut file = words.get(at + 4)?.split(':');
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    let device = rustix::fs::makedev(hex(file.next()?)?, hex(file.next()?)?);
    let inode = file.next()?.parse().ok()?;
    Some(((device, inode), pid))
}

fn inside(path: &Path, dir: &Path) -> String {
    match path.strip_prefix(dir) {
        Ok(inside) if !inside.as_os_str().is_empty() => visible_path(inside),
        _ => tilde(path),
    }
}

fn named(paths: &[PathBuf], dir: &Path) -> String {
    some_of(
        paths.iter().map(|path| inside(path, dir)),
        NAMED,
        paths.len(),
    )
}
