//! What names a person: home directories and e-mail addresses.

use super::Span;

/// How directories of people are written before a name; the last is how agents write a path as
/// the name of a directory.
pub(super) const HOMES: [&str; 6] = [
    "/home/",
    "/users/",
    r"\users\",
    r"\documents and settings\",
    "-home-",
    "-users-",
];

/// The home directory of the system's owner.
pub(super) const ROOT: &str = "/root";

/// Finds the home directory whose beginning is at a place.
pub(super) fn home(text: &str, at: usize, length: usize) -> Option<Span> {
    /// The longest name.
    const LONGEST: usize = 64;
    let bytes = text.as_bytes();
    let is_dashed = bytes[at] == b'-';
    let from = at + length;
    let is_part = |c: &(usize, char)| match is_dashed {
        true => c.1.is_alphanumeric() || c.1 == '_',
        false => c.1.is_alphanumeric() || matches!(c.1, '.' | '_' | '-' | '+' | '@'),
    };
    let rest = text.get(from..)?;
    let name: usize = rest
        .char_indices()
        .take(LONGEST)
        .take_while(is_part)
        .map(|(_, c)| c.len_utf8())
        .sum();
    let name = rest[..name].trim_end_matches(['.', '-']).len();
    if name == 0 || matches!(&rest[..name], "Shared" | "Public" | "Default") {
        return None;
    }
    // A dash is the beginning of a path only at the beginning of a name.
    if is_dashed && !begins(bytes, at) {
        return None;
    }
    Some(span(drive(bytes, at), from + name, "home path"))
}

/// Finds `/root` at a place.
pub(super) fn root(text: &str, at: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let end = at + ROOT.len();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let ends = !bytes.get(end).is_some_and(is_name);
    let is_exact = text.get(at..end) == Some(ROOT);
    (ends && is_exact && begins(bytes, at)).then(|| span(at, end, "home path"))
}

/// Finds a directory that the caller named.
pub(super) fn given(text: &str, home: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for at in memchr::memmem::find_iter(bytes, home.as_bytes()) {
        let end = at + home.len();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !bytes.get(end).is_some_and(is_name) {
            spans.push(span(at, end, "home path"));
        }
    }
}

fn begins(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| bytes[before]);
    !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// Includes the drive, or the directories above `home`.
fn drive(bytes: &[u8], at: usize) -> usize {
    const ABOVE: [&[u8]; 5] = [b"/var", b"/export", b"/usr", b"/data", b"/mnt/c"];
    let head = &bytes[..at];
    if let Some(above) = ABOVE.iter().find(|above| head.ends_with(above)) {
        return at - above.len();
    }
    match head {
        [.., letter, b':'] if letter.is_ascii_alphabetic() => at - 2,
        [.., letter, b':', b'\\'] if letter.is_ascii_alphabetic() => at - 3,
        _ => at,
    }
}

/// Finds the e-mail address whose `@` is at a place.
pub(super) fn address(text: &str, at: usize) -> Option<Span> {
    /// The longest name, and the longest domain.
    const NAME: usize = 64;
    const DOMAIN: usize = 253;
    let bytes = text.as_bytes();
    let is_name =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-');
    let before = bytes[at.saturating_sub(NAME)..at].iter().rev();
    let start = at - before.take_while(is_name).count();
    let name = text.get(start..at)?.trim_start_matches(['.', '-', '_']);
    let start = at - name.len();
    let is_domain = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let after = bytes.get(at + 1..)?.iter();
    let length = after.take(DOMAIN).take_while(is_domain).count();
    let domain = text
        .get(at + 1..at + 1 + length)?
        .trim_end_matches(['.', '-']);
    let (rest, top) = domain.rsplit_once('.')?;
    let is_top =
        (2..=24).contains(&top.len()) && top.bytes().all(|byte| byte.is_ascii_alphabetic());
    // Every clone over SSH has this user.
    let is_person = !name.is_empty() && name != "git" && !rest.is_empty();
    (is_top && is_person).then(|| span(start, at + 1 + domain.len(), "e-mail"))
}

fn span(start: usize, end: usize, kind: &'static str) -> Span {
    Span {
        start,
        end,
        kind,
        exact: false,
    }
}
