//! Who pushes, for people at other machines.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use crate::files;
use crate::text::one_line;

/// Returns who this process is: a user, a machine and a process, and what makes it unique where
/// containers share all three.
pub(in crate::commands) fn holder() -> String {
    let variable = |name| std::env::var(name).ok().filter(|it| !it.is_empty());
    let user = variable("USER").or_else(|| variable("LOGNAME"));
    let user = user.unwrap_or_else(|| "somebody".to_owned());
    let unique = RandomState::new().hash_one(std::process::id()) as u32;
    let who = one_line(&format!("{user}@{}", machine()), 80);
    format!("{who}, process {} #{unique:08x}", std::process::id())
}

fn machine() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let named = files
        .iter()
        .find_map(|path| files::read(Path::new(path)).ok());
    let named = named.map(|name| name.trim().to_owned());
    let named = named.filter(|name| !name.is_empty());
    named.unwrap_or_else(|| "unknown".to_owned())
}
