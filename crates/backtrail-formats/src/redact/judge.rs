//! Whether a value is what its name says.

use std::ops::Range;

use super::names::Named;
use super::pattern::Pattern;
use super::values::{
    entropy, is_chosen, is_code, is_opaque, is_phrase, is_placeholder, is_random, is_word, is_words,
};
use super::{Span, base64};

/// How a value is written: how likely it is all of a value, and not code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// In quotes, an element of XML, or a field of JSON.
    Quoted,
    /// `NAME="value"`, with a name in capitals.
    Constant,
    /// `NAME=value` in a shell, a query or a file of settings, or an option of a command.
    Setting,
    /// At the end of a line that begins with the name.
    Line,
    Bare,
}

/// Finds the secret in the value of a field of JSON, by what its name says and the services that
/// it names.
pub(super) fn value_of(
    name: &str,
    value: &str,
    named: Option<Named>,
    services: &[&Pattern],
) -> Option<Span> {
    let found = named.and_then(|named| judge(name, named, value, Style::Quoted, true));
    let found = found.or_else(|| {
        let is_key = services.iter().any(|pattern| pattern.is_all_of(value))
            && !is_placeholder(value)
            && entropy(value) >= 2.5;
        is_key.then_some((0..value.len(), "api key"))
    });
    let found = found.or_else(|| {
        // The private numbers of a JSON web key.
        let is_number = matches!(name, "d" | "p" | "q" | "dp" | "dq" | "qi");
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_key = value.len() >= 40 && value.bytes().all(is_part) && is_random(value);
        (is_number && is_key).then_some((0..value.len(), "private key"))
    });
    found.map(|(part, kind)| Span {
        start: part.start,
        end: part.end,
        kind,
        exact: false,
    })
}

/// Decides whether a value is what its name says; returns the secret part and its kind.
pub(super) fn judge(
    name: &str,
    named: Named,
    own: &str,
    style: Style,
    is_field: bool,
) -> Option<(Range<usize>, &'static str)> {
    let all = 0..own.len();
    match named {
        Named::Authorization => authorization(own),
        Named::Cookie => {
            let is_cookie = own.contains('=') && !is_placeholder(own) && own.len() >= 8;
            let is_code = own.contains(['(', '{', '$']);
            (is_cookie && !is_code).then_some((all, "cookie"))
        }
        Named::Login => {
            let is_login = base64::decode_login(own).is_some();
            let is_auth = name.ends_with("_auth") && own.len() >= 8 && is_random(own);
            (is_login || is_auth).then_some((all, "login"))
        }
        _ if own.is_empty() || is_placeholder(own) || own.eq_ignore_ascii_case(name) => None,
        Named::Password => is_password(own, style, is_field).then_some((all, "password")),
        Named::Secret(kind) => is_secret(own, style, kind).then_some((all, kind)),
        Named::Key(kind) => {
            let is_set = matches!(style, Style::Setting | Style::Constant);
            let is_setting = is_set && is_chosen(own, 8);
            let says_more = name.len() > 3 || is_capitals(name.as_bytes());
            let is_key = is_random(own) && (own.len() >= 16 || style != Style::Bare);
            (says_more && (is_setting || is_key)).then_some((all, kind))
        }
    }
}

fn is_password(own: &str, style: Style, is_field: bool) -> bool {
    let shortest = if style == Style::Bare { 8 } else { 6 };
    is_chosen(own, shortest)
        || (style != Style::Bare && is_word(own))
        || (is_field && is_phrase(own))
}

fn is_secret(own: &str, style: Style, kind: &str) -> bool {
    let is_aws = kind == "aws secret key" && own.len() == 40;
    let is_quoted = matches!(style, Style::Quoted | Style::Constant);
    let is_set = matches!(style, Style::Setting | Style::Constant);
    let is_setting = is_set && (is_chosen(own, 6) || (own.len() >= 8 && is_word(own)));
    is_aws || is_setting || is_random(own) || (is_quoted && is_opaque(own))
}

/// Finds the credentials in an `Authorization` header.
fn authorization(own: &str) -> Option<(Range<usize>, &'static str)> {
    const SCHEMES: [(&str, &str); 12] = [
        ("bearer", "bearer token"),
        ("basic", "login"),
        ("token", "token"),
        ("bot", "token"),
        ("apikey", "api key"),
        ("api-key", "api key"),
        ("key", "api key"),
        ("digest", "login"),
        ("negotiate", "login"),
        ("ntlm", "login"),
        ("sharedkey", "access key"),
        ("aws4-hmac-sha256", "signature"),
    ];
    /// The shortest credentials.
    const SHORTEST: usize = 8;
    let word = own.find([' ', '+', '\n']).unwrap_or(0);
    let scheme = &own[..word];
    let known = SCHEMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(scheme));
    let (start, kind) = match known {
        Some((_, kind)) => {
            let rest = own[word + 1..].trim_start();
            (own.len() - rest.len(), *kind)
        }
        None => (0, "token"),
    };
    let rest = &own[start..];
    // Digest and signatures have several parts; the others are one word.
    let has_parts = matches!(kind, "login" | "signature") && rest.contains(['=', ',']);
    let is_part = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '~' | '+' | '/' | '=' | ':' | '%' | '|')
    };
    let end = match has_parts && rest.contains(' ') {
        true => rest.len(),
        false => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
    };
    let credentials = &rest[..end];
    let is_secret = credentials.len() >= SHORTEST
        && !is_placeholder(credentials)
        && !is_code(credentials)
        && (known.is_some() || is_random(credentials))
        && (credentials.len() >= 16 && !is_words(credentials)
            || credentials.bytes().any(|byte| byte.is_ascii_digit())
            || kind == "login");
    is_secret.then_some((start..start + end, kind))
}

/// Returns whether a name is in capitals, as variables of a shell are.
pub(super) fn is_capitals(name: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    name.iter().all(is_part)
}
