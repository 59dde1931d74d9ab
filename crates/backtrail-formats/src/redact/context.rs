//! Secrets that are recognised by their context.

use memchr::{memchr2_iter, memmem};

use super::{Span, is_placeholder};

/// Finds private keys, passwords in URLs, and values whose names say that they are secret.
pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    private_keys(text, spans);
    addresses(text, spans);
    named(text, spans);
}

/// Finds private keys in PEM: from the first line to the last, or as far as it goes if the end
/// is missing.
fn private_keys(text: &str, spans: &mut Vec<Span>) {
    const DASHES: &[u8] = b"-----";
    let bytes = text.as_bytes();
    let mut dashes = memmem::find_iter(bytes, DASHES).peekable();
    let mut taken = 0;
    while let Some(start) = dashes.next() {
        let Some(label) = (start >= taken)
            .then(|| label_at(text, start, "BEGIN "))
            .flatten()
        else {
            continue;
        };
        let body = start + DASHES.len() + "BEGIN ".len() + label + DASHES.len();
        // Skip the dashes after the label.
        while dashes.peek().is_some_and(|at| *at < body) {
            dashes.next();
        }
        let end = match dashes.peek() {
            Some(at) => match label_at(text, *at, "END ") {
                Some(label) => *at + 2 * DASHES.len() + "END ".len() + label,
                None => body + base64_len(&bytes[body..*at]),
            },
            None => body + base64_len(&bytes[body..]),
        };
        let held = bytes[body.min(end)..end].iter();
        let is_key = held.filter(|byte| byte.is_ascii_alphanumeric()).count() >= 40;
        if is_key && text.is_char_boundary(end) {
            taken = end;
            spans.push(Span {
                start,
                end,
                kind: "private key",
                exact: true,
            });
        }
    }
}

/// Returns the length of the label of a private key between dashes.
fn label_at(text: &str, dashes: usize, word: &str) -> Option<usize> {
    /// The longest label.
    const LONGEST: usize = 40;
    let rest = text.get(dashes + 5..)?.strip_prefix(word)?;
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let length = rest.bytes().take(LONGEST).take_while(is_part).count();
    let label = &rest[..length];
    let is_private = label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK");
    (is_private && rest[length..].starts_with("-----")).then_some(length)
}

/// Returns how far Base64 goes, including line breaks and `\n`.
fn base64_len(bytes: &[u8]) -> usize {
    let is_part = |byte: &&u8| {
        byte.is_ascii_alphanumeric()
            || byte.is_ascii_whitespace()
            || matches!(**byte, b'+' | b'/' | b'=' | b'\\')
    };
    bytes.iter().take_while(is_part).count()
}

/// Finds passwords in URLs: `postgres://app:…@db`. Of each URL only the part up to the next
/// slash is searched.
fn addresses(text: &str, spans: &mut Vec<Span>) {
    for at in memmem::find_iter(text.as_bytes(), b"://") {
        let before = text[..at].bytes().next_back();
        if !before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            continue;
        }
        let from = at + 3;
        let is_end = |c: char| {
            c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '\\')
        };
        let rest = &text[from..];
        let authority = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        let Some((login, _)) = authority.rsplit_once('@') else {
            continue;
        };
        let Some((user, password)) = login.split_once(':') else {
            continue;
        };
        let start = from + user.len() + 1;
        if !password.is_empty() && !is_no_password(user, password) {
            spans.push(Span {
                start,
                end: start + password.len(),
                kind: "password",
                exact: false,
            });
        }
    }
}

fn is_no_password(user: &str, password: &str) -> bool {
    const WORDS: [&str; 7] = [
        "password",
        "passwd",
        "pass",
        "pwd",
        "pw",
        "token",
        "x-oauth-basic",
    ];
    let lower = password.to_ascii_lowercase();
    user == password || WORDS.contains(&lower.as_str()) || is_placeholder(password)
}

/// Finds values after `:` or `=` whose names say that they are secret.
fn named(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for at in memchr2_iter(b':', b'=', bytes) {
        let Some(name) = name_before(text, at) else {
            continue;
        };
        let Some(kind) = Named::of(name) else {
            continue;
        };
        let value = value_after(text, at + 1);
        let span = match kind {
            Named::Authorization => authorization(text, value),
            Named::Secret(kind) => secret(text, value, kind),
        };
        spans.extend(span);
    }
}

/// Finds the secret in the value of a field, by its name.
pub(super) fn value_of(name: &str, value: &str) -> Option<Span> {
    match Named::of(name)? {
        Named::Authorization => authorization(value, 0..value.len()),
        Named::Secret(kind) => secret(value, 0..value.len(), kind),
    }
}

/// What a name says about its value.
#[derive(Debug, Clone, Copy)]
enum Named {
    Authorization,
    Secret(&'static str),
}

impl Named {
    fn of(name: &str) -> Option<Self> {
        /// How names of secrets end, without dashes and the like.
        const ENDS: [(&str, &str); 22] = [
            ("secretaccesskey", "aws secret key"),
            ("password", "password"),
            ("passwd", "password"),
            ("passphrase", "password"),
            ("pwd", "password"),
            ("apikey", "api key"),
            ("apisecret", "secret"),
            ("accesskey", "access key"),
            ("accountkey", "access key"),
            ("secretkey", "secret"),
            ("secretkeybase", "secret"),
            ("signingkey", "secret"),
            ("encryptionkey", "secret"),
            ("privatekey", "secret"),
            ("masterkey", "secret"),
            ("authkey", "secret"),
            ("clientsecret", "secret"),
            ("secret", "secret"),
            ("token", "token"),
            ("authtoken", "token"),
            ("cookie", "cookie"),
            ("credential", "secret"),
        ];
        /// Names with such an end whose values are not secret.
        const NOT: [&str; 8] = [
            "pagetoken",
            "nexttoken",
            "continuationtoken",
            "synctoken",
            "canceltoken",
            "cancellationtoken",
            "pagingtoken",
            "resumetoken",
        ];
        // Most names have another end.
        let last = name.bytes().next_back()?.to_ascii_lowercase();
        if !matches!(last, b'n' | b'd' | b'e' | b'y' | b't' | b'l') {
            return None;
        }
        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        if plain.ends_with("authorization") {
            return Some(Self::Authorization);
        }
        if NOT.iter().any(|end| plain.ends_with(end)) {
            return None;
        }
        let found = ENDS.iter().find(|(end, _)| plain.ends_with(end));
        found.map(|(_, kind)| Self::Secret(kind))
    }
}

/// Returns the name before a place, with quotes and blanks between.
fn name_before(text: &str, at: usize) -> Option<&str> {
    /// The longest name.
    const LONGEST: usize = 64;
    let bytes = text.as_bytes();
    let between = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\' | b']');
    let from = at.saturating_sub(8);
    let end = at - bytes[from..at].iter().rev().take_while(between).count();
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let from = end.saturating_sub(LONGEST);
    let start = end - bytes[from..end].iter().rev().take_while(is_name).count();
    text.get(start..end).filter(|name| !name.is_empty())
}

/// Returns the range of a value that starts after a place.
fn value_after(text: &str, at: usize) -> std::ops::Range<usize> {
    /// Longer values are not secrets that someone wrote down.
    const LONGEST: usize = 512;
    let bytes = text.as_bytes();
    let upto = bytes.len().min(at + 8);
    // Also `:=`, `=>` and `==`.
    let between = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'=' | b'>' | b'\\');
    let mut start = at + bytes[at..upto].iter().take_while(between).count();
    let quote = bytes
        .get(start)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    start += usize::from(quote.is_some());
    let is_end = |byte: &&u8| match quote {
        Some(quote) => **byte == quote || matches!(byte, b'\n' | b'\\'),
        None => {
            byte.is_ascii_whitespace()
                || matches!(
                    byte,
                    b'"' | b'\'' | b'`' | b',' | b';' | b'\\' | b')' | b'<' | b'}' | b']'
                )
        }
    };
    let rest = bytes[start..].iter().take(LONGEST + 1);
    let length = rest.take_while(|byte| !is_end(byte)).count();
    if length > LONGEST {
        return start..start;
    }
    match quote {
        Some(_) => start..start + length,
        None => start..start + before_parameter(&bytes[start..start + length]),
    }
}

/// Returns the length of a value that may be in a query: up to `&name=`.
fn before_parameter(value: &[u8]) -> usize {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let begins = |at: &usize| {
        let rest = &value[at + 1..];
        let name = rest.iter().take(64).take_while(is_name).count();
        name > 0 && rest.get(name) == Some(&b'=')
    };
    memchr::memchr_iter(b'&', value)
        .find(begins)
        .unwrap_or(value.len())
}

/// Finds the credentials in a header of this kind.
fn authorization(text: &str, value: std::ops::Range<usize>) -> Option<Span> {
    const SCHEMES: [(&str, &str); 4] = [
        ("bearer ", "bearer token"),
        ("basic ", "basic login"),
        ("token ", "token"),
        ("apikey ", "api key"),
    ];
    /// The shortest credentials.
    const SHORTEST: usize = 12;
    let rest = text.get(value.start..)?;
    let (scheme, kind) = SCHEMES.iter().find(|(scheme, _)| {
        let begin = rest.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    })?;
    let start = value.start + scheme.len();
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'+' | b'/' | b'=')
    };
    let rest = &text[start..];
    let length = rest.bytes().take(8192).take_while(is_part).count();
    let own = &rest[..length];
    let is_secret = length >= SHORTEST && !is_placeholder(own) && !is_code(own);
    is_secret.then_some(Span {
        start,
        end: start + length,
        kind,
        exact: false,
    })
}

/// Returns a value as a secret, if it does not look made up.
fn secret(text: &str, value: std::ops::Range<usize>, kind: &'static str) -> Option<Span> {
    let own = text.get(value.clone())?;
    let is_aws = kind == "aws secret key" && own.len() == 40;
    let is_named = kind == "password" && is_chosen(own);
    let is_secret = !is_placeholder(own) && (is_aws || is_named || is_random(own));
    is_secret.then_some(Span {
        start: value.start,
        end: value.end,
        kind,
        exact: is_aws,
    })
}

/// Returns whether a value with the name of a password may be one.
fn is_chosen(value: &str) -> bool {
    const SHORTEST: usize = 8;
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    value.len() >= SHORTEST
        && value.is_ascii()
        && !value.contains(' ')
        && !is_code(value)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

/// Returns whether a value is long and mixed enough to have been generated or chosen with
/// care.
fn is_random(value: &str) -> bool {
    const SHORTEST: usize = 12;
    if value.len() < SHORTEST || !value.is_ascii() || value.contains(' ') || is_code(value) {
        return false;
    }
    let has = |test: fn(&u8) -> bool| u32::from(value.bytes().any(|byte| test(&byte)));
    let digits = has(u8::is_ascii_digit);
    let classes = has(u8::is_ascii_lowercase)
        + has(u8::is_ascii_uppercase)
        + digits
        + has(u8::is_ascii_punctuation);
    if digits == 0 {
        return false;
    }
    match value.len() {
        12..20 => classes >= 3 && entropy(value) >= 3.0,
        _ => classes >= 2 && entropy(value) >= 3.0,
    }
}

/// Returns whether a value is more likely an expression, a path, a URL, a version or a time.
fn is_code(value: &str) -> bool {
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        let first = bytes.next();
        first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && part.len() < 24
            && part.bytes().filter(u8::is_ascii_digit).count() <= 3
    };
    let is_dotted = value.contains('.') && value.split('.').all(is_part);
    let is_path = value.starts_with(['/', '.', '~', '@', '#', '&'])
        || value.contains("://")
        || value.contains("::");
    is_dotted || is_path || value.contains(['(', ')', '[', '{', '|', '<'])
}

/// Returns the entropy in bits per character.
fn entropy(value: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = value.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}
