//! The project of a directory: the remote of its git repository.
//!
//! It is read from git's own files, without git and without writing them. The result only
//! names a place: credentials (a user, a password, a token, a query) are cut off, and a form
//! in which they cannot be recognised is not accepted as a remote.

use std::path::Path;

use super::git_dir::{GitDir, without_dots};

/// The longest configuration that is read.
const LONGEST_CONFIG: u64 = 1 << 20;
/// The longest remote that is accepted: every note of the workspace repeats it.
const LONGEST_REMOTE: usize = 512;

/// The remote of a directory's repository.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remote {
    /// The repository has this remote.
    Is(String),
    /// The repository has no remote.
    None,
    /// There is no repository, or it cannot be read.
    Unknown,
}

/// Reads the remote of a directory's repository from its `.git/config`:
/// `github.com/acme/shop`, without scheme, port and credentials. `origin` is preferred,
/// then the first remote. `None` if the directory is not the root of a repository.
pub fn remote_of(root: &Path) -> Option<String> {
    match read(root) {
        Remote::Is(remote) => Some(remote),
        Remote::None | Remote::Unknown => None,
    }
}

pub(super) fn read(root: &Path) -> Remote {
    let Some(config) = config_of(root) else {
        return Remote::Unknown;
    };
    match url_in(&config).and_then(|url| normal(&url, root)) {
        Some(remote) => Remote::Is(remote),
        None => Remote::None,
    }
}

/// Reads the configuration of a directory's repository.
fn config_of(root: &Path) -> Option<String> {
    let config = GitDir::of(root)?.read_common("config", LONGEST_CONFIG);
    String::from_utf8(config?).ok()
}

/// Returns the URL of `origin`, else of the first remote.
fn url_in(config: &str) -> Option<String> {
    let mut first = None;
    let mut remote: Option<String> = None;
    let mut whole = String::new();
    let mut lines = config.lines().peekable();
    while let Some(line) = lines.next() {
        whole.push_str(line);
        // A backslash at the end continues a line, unless another one escapes it.
        let escapes = line.bytes().rev().take_while(|b| *b == b'\\').count();
        if escapes % 2 == 1 && lines.peek().is_some() {
            whole.pop();
            continue;
        }
        let line = std::mem::take(&mut whole);
        let mut line = line.trim();
        if line.starts_with('[') {
            let (section, rest) = section(line);
            remote = section;
            line = rest.trim();
        }
        let (Some(name), Some((key, value))) = (&remote, line.split_once('=')) else {
            continue;
        };
        if key.trim().eq_ignore_ascii_case("url") {
            let value = value_of(value);
            if name == "origin" {
                return Some(value);
            }
            first.get_or_insert(value);
        }
    }
    first
}

/// Splits a section header off a line; returns the name of the remote if the section is
/// about one, and the rest of the line.
fn section(line: &str) -> (Option<String>, &str) {
    let inner = &line[1..];
    let Some(quote) = inner.find(['"', ']']) else {
        return (None, "");
    };
    let name = inner[..quote].trim();
    if inner[quote..].starts_with(']') {
        return (None, &inner[quote + 1..]);
    }
    let mut sub = String::new();
    let mut chars = inner[quote + 1..].char_indices();
    let end = loop {
        match chars.next() {
            None => return (None, ""),
            Some((at, '"')) => break quote + 1 + at + 1,
            Some((_, '\\')) => sub.extend(chars.next().map(|(_, c)| c)),
            Some((_, c)) => sub.push(c),
        }
    };
    let rest = inner[end..].trim_start();
    let rest = rest.strip_prefix(']').unwrap_or(rest);
    let about = name.eq_ignore_ascii_case("remote").then_some(sub);
    (about, rest)
}

/// Returns a value without its quotes, escapes and comment.
fn value_of(text: &str) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut chars = text.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') | None => {}
                Some(other) => value.push(other),
            },
            c => value.push(c),
        }
    }
    value.trim_end().to_owned()
}

/// Normalises a URL to host and path, without user or password.
fn normal(url: &str, root: &Path) -> Option<String> {
    let url = url.trim();
    if url.chars().any(char::is_control) || is_helper(url) {
        return None;
    }
    let place = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => file(rest)?,
        Some((scheme, rest)) if is_scheme(scheme) => {
            let ssh = scheme.to_ascii_lowercase().contains("ssh");
            with_scheme(rest, ssh)?
        }
        Some(_) => return None,
        None => match scp(url) {
            Some(place) => place?,
            None => local(url, root)?,
        },
    };
    (place.len() <= LONGEST_REMOTE).then_some(place)
}

fn is_scheme(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
    !text.is_empty() && text.bytes().all(plain)
}

/// Returns whether a URL is passed to a program (`ext::sh -c …`): the rest is for that
/// program, and may contain anything.
fn is_helper(url: &str) -> bool {
    url.split_once("::")
        .is_some_and(|(name, _)| is_scheme(name))
}

/// Removes the user, the password and the query.
fn bare(text: &str) -> Option<&str> {
    let (place, asked) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    // A password may contain any character, even `/` and `@`: only the part after the last
    // `@` is certainly not part of it. An `@` after a `?` may end a password that contains a
    // `?`, or be part of the query.
    (!asked.contains('@')).then(|| place.rsplit('@').next().unwrap_or(place))
}

/// Parses the part after `scheme://`.
fn with_scheme(rest: &str, ssh: bool) -> Option<String> {
    let rest = bare(rest)?;
    let (authority, path) = rest.split_once('/')?;
    let (host, port) = host_and_port(authority);
    // `ssh://git@github.com:acme/shop` is a common mistake.
    let slipped = ssh && !port.is_empty() && !is_number(port);
    match slipped {
        true => at_host(host, &format!("{port}/{path}")),
        false => at_host(host, path),
    }
}

fn host_and_port(authority: &str) -> (&str, &str) {
    let behind = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[behind..].rfind(':') {
        Some(at) => (&authority[..behind + at], &authority[behind + at + 1..]),
        None => (authority, ""),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Parses the short form of ssh, `git@github.com:acme/shop.git`; `None` if it is a path
/// instead.
fn scp(url: &str) -> Option<Option<String>> {
    let is_path = url.starts_with(['/', '.', '~']) || is_drive(url);
    let colon = url.find(':').filter(|_| !is_path)?;
    if url[..colon].contains('/') {
        return None;
    }
    Some(scp_place(url))
}

fn scp_place(url: &str) -> Option<String> {
    let (host, path) = match url.find('[') {
        // `[git@host:22]:path`, or an IPv6 address in brackets
        Some(open) if !url[..open].contains(':') => {
            let (inside, path) = url[open + 1..].split_once("]:")?;
            let inside = bare(inside)?;
            match inside.matches(':').count() {
                0 | 1 => (host_and_port(inside).0.to_owned(), path),
                _ => (format!("[{inside}]"), path),
            }
        }
        _ => {
            let (host, path) = bare(url)?.split_once(':')?;
            (host.to_owned(), path)
        }
    };
    let path = bare(path)?;
    // A port is not part of this form, but some write it.
    let path = match path.trim_start_matches('/').split_once('/') {
        Some((port, rest)) if is_number(port) && rest.trim_matches('/').contains('/') => rest,
        _ => path,
    };
    at_host(&host, path)
}

fn is_drive(url: &str) -> bool {
    let bytes = url.as_bytes();
    bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && b"\\/".contains(&bytes[2])
}

fn at_host(host: &str, path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let path = without_git(&parts.join("/"));
    let is_host = !host.is_empty() && !host.contains(char::is_whitespace);
    (is_host && !path.is_empty()).then(|| format!("{}/{path}", host.to_lowercase()))
}

fn without_git(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let bare = path.strip_suffix(".git").unwrap_or(path);
    bare.trim_end_matches('/').to_owned()
}

/// Parses the part after `file://`.
fn file(rest: &str) -> Option<String> {
    match rest.find('/')? {
        0 => local(rest, Path::new("/")),
        at if rest[..at].eq_ignore_ascii_case("localhost") => local(&rest[at..], Path::new("/")),
        _ => with_scheme(rest, false),
    }
}

/// Parses a path on this machine.
fn local(path: &str, root: &Path) -> Option<String> {
    let path = path.split('?').next().unwrap_or_default();
    // A path with a user in it was meant to name another machine.
    let meant = path.starts_with(['/', '.', '~']) || !path.contains(['@', '[']);
    if path.is_empty() || !meant {
        return None;
    }
    if is_drive(path) || path.starts_with('~') {
        return Some(without_git(&path.replace('\\', "/")));
    }
    let clean = without_dots(&root.join(path));
    let place = without_git(clean.to_str()?);
    (!place.is_empty()).then_some(place)
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
