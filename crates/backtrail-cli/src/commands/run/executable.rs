//! Whether the system can execute a command: its file, its mode and its interpreter.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::files;
use crate::home::search_path;

/// The system reads no more of a script's first line.
const LONGEST_LINE: u64 = 256;
/// How often the interpreter of a script may be a script.
const DEEPEST: u32 = 4;
/// The longest path that is read from a program.
const LONGEST_PATH: usize = 4096;

/// Finds the file that the system would execute, and checks that it can. What only the system
/// knows is not an error here.
pub(super) fn find(program: &OsStr) -> rustix::io::Result<()> {
    let path = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return check(path, 0);
    }
    let mut refused = Errno::NOENT;
    for dir in search_path() {
        match check(&dir.join(path), 0) {
            Ok(()) => return Ok(()),
            Err(Errno::ACCESS) => refused = Errno::ACCESS,
            // The system looks on, in the next directory.
            Err(_) => {}
        }
    }
    Err(refused)
}

fn check(path: &Path, depth: u32) -> rustix::io::Result<()> {
    if rustix::fs::stat(path)?.st_mode & 0o170_000 != 0o100_000 {
        return Err(Errno::ACCESS);
    }
    rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)?;
    // What may be executed need not be readable.
    let Ok(file) = files::open(path) else {
        return Ok(());
    };
    if let Some(interpreter) = script_interpreter(&file).filter(|_| depth < DEEPEST) {
        return check(&interpreter, depth + 1);
    }
    match elf_interpreter(&file) {
        Ok(Some(interpreter)) => rustix::fs::stat(&interpreter).map(drop),
        _ => Ok(()),
    }
}

/// Returns the interpreter in the first line of a script.
fn script_interpreter(file: &File) -> Option<PathBuf> {
    let mut first = Vec::new();
    file.take(LONGEST_LINE).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let interpreter = words.find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(interpreter)))
}

/// Returns the interpreter that a program names, which loads its libraries.
fn elf_interpreter(file: &File) -> io::Result<Option<PathBuf>> {
    const PT_INTERP: u64 = 3;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0)?;
    let is_long = match head {
        // Other machines' programs are left to the system.
        [0x7f, b'E', b'L', b'F', class @ 1..=2, 1, ..] => class == 2,
        _ => return Ok(None),
    };
    let number = |bytes: &[u8], at: usize, len: usize| {
        let bytes = bytes[at..at + len].iter().rev();
        bytes.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte))
    };
    let (table, size, count) = match is_long {
        true => (
            number(&head, 32, 8),
            number(&head, 54, 2),
            number(&head, 56, 2),
        ),
        false => (
            number(&head, 28, 4),
            number(&head, 42, 2),
            number(&head, 44, 2),
        ),
    };
    for n in 0..count {
        let mut entry = [0; 56];
        let entry = &mut entry[..if is_long { 56 } else { 32 }];
        file.read_exact_at(entry, table.saturating_add(n * size))?;
        if number(entry, 0, 4) != PT_INTERP {
            continue;
        }
        let (at, length) = match is_long {
            true => (number(entry, 8, 8), number(entry, 32, 8)),
            false => (number(entry, 4, 4), number(entry, 16, 4)),
        };
        let mut path = vec![0; (length as usize).min(LONGEST_PATH)];
        file.read_exact_at(&mut path, at)?;
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        return Ok(Some(PathBuf::from(OsStr::from_bytes(path))));
    }
    Ok(None)
}
