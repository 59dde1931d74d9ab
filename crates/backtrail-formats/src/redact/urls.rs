//! Logins in URLs and connection strings.

use super::Span;
use super::values::{is_placeholder, is_random, is_words};

/// Finds the login of the URL whose `://` is at a place: `postgres://app:…@db`, `https://…@host`.
/// Only the part up to the next slash is searched.
pub(super) fn login(text: &str, at: usize) -> Option<Span> {
    /// The longest part.
    const LONGEST: usize = 2048;
    let before = text[..at].bytes().next_back();
    if !before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let from = at + 3;
    let rest = &text[from..];
    let is_end = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(
                byte,
                b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\'
            )
    };
    let end = rest.as_bytes().iter().take(LONGEST).position(is_end);
    let authority = rest.get(..end.unwrap_or_else(|| rest.len().min(LONGEST)))?;
    let (login, _) = authority.rsplit_once('@')?;
    let (start, own) = match login.split_once(':') {
        Some((user, password)) if is_empty(password) && is_token(user) => (from, user),
        Some((user, password)) if is_password(user, password) => (from + user.len() + 1, password),
        Some(_) => return None,
        None if is_token(login) => (from, login),
        None => return None,
    };
    Some(Span {
        start,
        end: start + own.len(),
        kind: "password",
        exact: false,
    })
}

/// Finds the password before `@tcp(` in the connection string of a Go program.
pub(super) fn driver(text: &str, at: usize) -> Option<Span> {
    let before = &text.as_bytes()[at.saturating_sub(128)..at];
    let is_part = |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`');
    let start = at - before.iter().rev().take_while(is_part).count();
    let (user, password) = text.get(start..at)?.split_once(':')?;
    is_password(user, password).then_some(Span {
        start: start + user.len() + 1,
        end: at,
        kind: "password",
        exact: false,
    })
}

/// Returns whether a login has no password of its own: the user is a token.
fn is_empty(password: &str) -> bool {
    matches!(password, "" | "x-oauth-basic" | "x" | "@")
}

fn is_token(user: &str) -> bool {
    let user = user.strip_prefix("oauth2:").unwrap_or(user);
    let is_mixed = user.bytes().any(|byte| byte.is_ascii_digit())
        && user.bytes().any(|byte| byte.is_ascii_alphabetic());
    !is_placeholder(user)
        && (is_random(user)
            || (user.len() >= 10 && is_mixed)
            || (user.len() >= 20 && !is_words(user)))
}

fn is_password(user: &str, password: &str) -> bool {
    const NOT: [&str; 9] = [
        "password",
        "passwd",
        "pass",
        "pwd",
        "pw",
        "token",
        "secret",
        "x-oauth-basic",
        "x",
    ];
    let lower = password.to_ascii_lowercase();
    !password.is_empty()
        && user != password
        && !NOT.contains(&lower.as_str())
        && !is_placeholder(password)
}
