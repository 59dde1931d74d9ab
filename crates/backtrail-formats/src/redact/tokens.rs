//! Keys that are recognised by their shape.

use super::{Span, is_placeholder};
use Body::{Alnum, Base32, Hex, Word};

/// What follows a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `-` and `_`.
    Word,
    /// Lower-case hexadecimal digits.
    Hex,
    /// Upper-case letters and the digits 2 to 7.
    Base32,
}

/// A kind of key: its name, its prefix, what follows, and the minimum and maximum length of that.
type Shape = (&'static str, &'static str, Body, usize, usize);

/// Any length.
const ANY: usize = 4096;

/// Longer prefixes are before the shorter ones that they start with.
const SHAPES: [Shape; 64] = [
    ("anthropic key", "sk-ant-", Word, 24, ANY),
    ("openrouter key", "sk-or-v1-", Hex, 40, ANY),
    ("openai key", "sk-proj-", Word, 32, ANY),
    ("openai key", "sk-svcacct-", Word, 32, ANY),
    ("openai key", "sk-admin-", Word, 32, ANY),
    ("langfuse key", "sk-lf-", Word, 32, 40),
    ("api key", "sk-", Alnum, 32, 128),
    ("google key", "AIza", Word, 35, 35),
    ("google oauth secret", "GOCSPX-", Word, 24, 40),
    ("aws key id", "AKIA", Base32, 16, 16),
    ("aws key id", "ASIA", Base32, 16, 16),
    ("aws key id", "ABIA", Base32, 16, 16),
    ("aws key id", "ACCA", Base32, 16, 16),
    ("github token", "github_pat_", Word, 36, ANY),
    ("github token", "ghp_", Alnum, 36, 255),
    ("github token", "gho_", Alnum, 36, 255),
    ("github token", "ghu_", Alnum, 36, 255),
    ("github token", "ghs_", Word, 36, ANY),
    ("github token", "ghr_", Alnum, 36, 255),
    ("gitlab token", "glpat-", Word, 20, 300),
    ("gitlab token", "gldt-", Word, 20, 300),
    ("gitlab token", "glrt-", Word, 20, 300),
    ("gitlab token", "glcbt-", Word, 20, 300),
    ("gitlab token", "glptt-", Word, 20, 300),
    ("slack token", "xoxb-", Word, 20, 300),
    ("slack token", "xoxp-", Word, 20, 300),
    ("slack token", "xoxa-", Word, 20, 300),
    ("slack token", "xoxr-", Word, 20, 300),
    ("slack token", "xoxs-", Word, 20, 300),
    ("slack token", "xoxe-", Word, 20, 300),
    ("slack token", "xapp-", Word, 30, 300),
    ("stripe key", "sk_live_", Alnum, 16, 250),
    ("stripe key", "rk_live_", Alnum, 16, 250),
    ("stripe key", "sk_test_", Alnum, 24, 250),
    ("stripe key", "rk_test_", Alnum, 24, 250),
    ("stripe key", "whsec_", Alnum, 32, 250),
    ("npm token", "npm_", Alnum, 36, 36),
    ("pypi token", "pypi-AgEI", Word, 50, ANY),
    ("hugging face token", "hf_", Alnum, 30, 60),
    ("twilio key", "SK", Hex, 32, 32),
    ("digitalocean token", "dop_v1_", Hex, 64, 64),
    ("digitalocean token", "doo_v1_", Hex, 64, 64),
    ("databricks token", "dapi", Hex, 32, 34),
    ("shopify token", "shpat_", Hex, 32, 32),
    ("shopify token", "shpss_", Hex, 32, 32),
    ("grafana token", "glsa_", Word, 40, 60),
    ("grafana token", "glc_", Word, 50, ANY),
    ("linear key", "lin_api_", Alnum, 32, 64),
    ("groq key", "gsk_", Alnum, 40, 64),
    ("replicate token", "r8_", Alnum, 37, 40),
    ("xai key", "xai-", Alnum, 70, 100),
    ("perplexity key", "pplx-", Alnum, 40, 64),
    ("nvidia key", "nvapi-", Word, 50, 90),
    ("supabase key", "sbp_", Hex, 40, 40),
    ("supabase key", "sb_secret_", Word, 24, 64),
    ("notion token", "ntn_", Alnum, 40, 60),
    ("docker token", "dckr_pat_", Word, 20, 60),
    ("rubygems key", "rubygems_", Hex, 48, 48),
    ("crates.io token", "cio", Alnum, 32, 32),
    ("langsmith key", "lsv2_pt_", Word, 32, 64),
    ("atlassian token", "ATATT3", Word, 100, 300),
    ("postman key", "PMAK-", Word, 50, 70),
    ("figma token", "figd_", Word, 36, 60),
    ("airtable token", "patAirt", Word, 60, 100),
];

/// The length of the shortest key.
const SHORTEST: usize = 20;

/// Finds keys. Each run of letters, digits, `-` and `_` is examined once, so the time is linear
/// in the length of any text.
pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = run_end(bytes, at);
        if end == at {
            at += 1;
            continue;
        }
        let start = beginning(bytes, at, end);
        let next = match found(text, start, end) {
            Some((kind, start, end)) => {
                spans.push(Span {
                    start,
                    end,
                    kind,
                    exact: true,
                });
                end
            }
            None => end,
        };
        at = next.max(end);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn run_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes[from..].iter();
    from + rest.take_while(|byte| is_word(**byte)).count()
}

/// Returns where a run really starts: not with a dash, and not with the letter of an escape
/// such as `\n` in JSON within a text.
fn beginning(bytes: &[u8], mut start: usize, end: usize) -> usize {
    let escaped = start > 0 && bytes[start - 1] == b'\\';
    if escaped && matches!(bytes[start], b'n' | b'r' | b't') {
        start += 1;
    }
    while start < end && matches!(bytes[start], b'-' | b'_') {
        start += 1;
    }
    start
}

fn found(text: &str, start: usize, end: usize) -> Option<(&'static str, usize, usize)> {
    let run = text.get(start..end)?;
    if let Some(end) = dotted(text, start, end) {
        return Some((end.0, start, end.1));
    }
    if run.bytes().all(|byte| byte.is_ascii_digit()) {
        return telegram(text, start, end);
    }
    if run.len() < SHORTEST {
        return None;
    }
    let fits = |(kind, prefix, body, least, most): &Shape| {
        let own = run.strip_prefix(prefix)?;
        let is_key =
            (*least..=*most).contains(&own.len()) && own.bytes().all(|byte| body.has(byte));
        is_key.then_some((*kind, own, *body))
    };
    let (kind, own, body) = SHAPES.iter().find_map(fits)?;
    let words = body == Word && is_words(own);
    (!is_placeholder(own) && !words).then_some((kind, start, end))
}

impl Body {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => is_word(byte),
            Self::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
            Self::Base32 => byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7'),
        }
    }
}

/// Returns whether it is lower-case words with dashes between them, as in names.
fn is_words(own: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_';
    own.bytes().all(is_plain) && own.contains(['-', '_'])
}

/// Finds keys with several parts separated by dots.
fn dotted(text: &str, start: usize, end: usize) -> Option<(&'static str, usize)> {
    let bytes = text.as_bytes();
    let first = &text[start..end];
    if bytes.get(end) != Some(&b'.') {
        return None;
    }
    // Most texts have none.
    let is_jwt = first.starts_with("eyJ") && is_jwt_header(first);
    let known = is_jwt || matches!(first, "SG" | "ya29" | "hvs" | "hvb");
    if !known {
        return None;
    }
    let second_end = run_end(bytes, end + 1);
    let second = second_end - end - 1;
    match first {
        "ya29" if second >= 30 => return Some(("google oauth token", second_end)),
        "hvs" | "hvb" if second >= 24 => return Some(("vault token", second_end)),
        "ya29" | "hvs" | "hvb" => return None,
        _ => {}
    }
    if bytes.get(second_end) != Some(&b'.') {
        return None;
    }
    let mut last = run_end(bytes, second_end + 1);
    let third = last - second_end - 1;
    match first {
        "SG" => (second == 22 && third == 43).then_some(("sendgrid key", last)),
        _ if second < 4 || third < 16 => None,
        _ => {
            // An encrypted one has five parts.
            for _ in 0..2 {
                let end = run_end(bytes, (last + 1).min(bytes.len()));
                if bytes.get(last) == Some(&b'.') && end > last + 1 {
                    last = end;
                }
            }
            Some(("json web token", last))
        }
    }
}

/// Returns whether it is the header of a JSON web token: Base64 of an object with an algorithm.
fn is_jwt_header(part: &str) -> bool {
    /// The longest header.
    const LONGEST: usize = 4096;
    if part.len() > LONGEST {
        return false;
    }
    let Some(header) = decode(part) else {
        return false;
    };
    let Ok(header) = String::from_utf8(header) else {
        return false;
    };
    crate::json::Object::parse(&header).is_ok_and(|header| header.string("alg").is_some())
}

/// Decodes URL-safe Base64; `None` if it is not that.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(out)
}

/// Finds the token of a Telegram bot: `123456789:AA…`, 35 characters after the colon.
fn telegram(text: &str, start: usize, end: usize) -> Option<(&'static str, usize, usize)> {
    let bytes = text.as_bytes();
    let is_id = (8..=10).contains(&(end - start)) && bytes.get(end) == Some(&b':');
    if !is_id || !text[end + 1..].starts_with("AA") {
        return None;
    }
    let last = run_end(bytes, end + 1);
    (last - end - 1 == 35).then_some(("telegram token", start, last))
}
