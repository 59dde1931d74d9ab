//! Keys that are recognised by their shape.

use super::{Span, is_placeholder};

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

/// A kind of key: its name, its prefix, and what follows.
struct Shape {
    kind: &'static str,
    prefix: &'static str,
    body: Body,
    /// The minimum and maximum length of what follows.
    least: usize,
    most: usize,
}

const fn shape(
    kind: &'static str,
    prefix: &'static str,
    body: Body,
    least: usize,
    most: usize,
) -> Shape {
    Shape {
        kind,
        prefix,
        body,
        least,
        most,
    }
}

/// Any length.
const ANY: usize = 4096;

/// Longer prefixes are before the shorter ones that they start with.
const SHAPES: [Shape; 64] = [
    shape("anthropic key", "sk-ant-", Body::Word, 24, ANY),
    shape("openrouter key", "sk-or-v1-", Body::Hex, 40, ANY),
    shape("openai key", "sk-proj-", Body::Word, 32, ANY),
    shape("openai key", "sk-svcacct-", Body::Word, 32, ANY),
    shape("openai key", "sk-admin-", Body::Word, 32, ANY),
    shape("langfuse key", "sk-lf-", Body::Word, 32, 40),
    shape("api key", "sk-", Body::Alnum, 32, 128),
    shape("google key", "AIza", Body::Word, 35, 35),
    shape("google oauth secret", "GOCSPX-", Body::Word, 24, 40),
    shape("aws key id", "AKIA", Body::Base32, 16, 16),
    shape("aws key id", "ASIA", Body::Base32, 16, 16),
    shape("aws key id", "ABIA", Body::Base32, 16, 16),
    shape("aws key id", "ACCA", Body::Base32, 16, 16),
    shape("github token", "github_pat_", Body::Word, 36, ANY),
    shape("github token", "ghp_", Body::Alnum, 36, 255),
    shape("github token", "gho_", Body::Alnum, 36, 255),
    shape("github token", "ghu_", Body::Alnum, 36, 255),
    shape("github token", "ghs_", Body::Word, 36, ANY),
    shape("github token", "ghr_", Body::Alnum, 36, 255),
    shape("gitlab token", "glpat-", Body::Word, 20, 300),
    shape("gitlab token", "gldt-", Body::Word, 20, 300),
    shape("gitlab token", "glrt-", Body::Word, 20, 300),
    shape("gitlab token", "glcbt-", Body::Word, 20, 300),
    shape("gitlab token", "glptt-", Body::Word, 20, 300),
    shape("slack token", "xoxb-", Body::Word, 20, 300),
    shape("slack token", "xoxp-", Body::Word, 20, 300),
    shape("slack token", "xoxa-", Body::Word, 20, 300),
    shape("slack token", "xoxr-", Body::Word, 20, 300),
    shape("slack token", "xoxs-", Body::Word, 20, 300),
    shape("slack token", "xoxe-", Body::Word, 20, 300),
    shape("slack token", "xapp-", Body::Word, 30, 300),
    shape("stripe key", "sk_live_", Body::Alnum, 16, 250),
    shape("stripe key", "rk_live_", Body::Alnum, 16, 250),
    shape("stripe key", "sk_test_", Body::Alnum, 24, 250),
    shape("stripe key", "rk_test_", Body::Alnum, 24, 250),
    shape("stripe key", "whsec_", Body::Alnum, 32, 250),
    shape("npm token", "npm_", Body::Alnum, 36, 36),
    shape("pypi token", "pypi-AgEI", Body::Word, 50, ANY),
    shape("hugging face token", "hf_", Body::Alnum, 30, 60),
    shape("twilio key", "SK", Body::Hex, 32, 32),
    shape("digitalocean token", "dop_v1_", Body::Hex, 64, 64),
    shape("digitalocean token", "doo_v1_", Body::Hex, 64, 64),
    shape("databricks token", "dapi", Body::Hex, 32, 34),
    shape("shopify token", "shpat_", Body::Hex, 32, 32),
    shape("shopify token", "shpss_", Body::Hex, 32, 32),
    shape("grafana token", "glsa_", Body::Word, 40, 60),
    shape("grafana token", "glc_", Body::Word, 50, ANY),
    shape("linear key", "lin_api_", Body::Alnum, 32, 64),
    shape("groq key", "gsk_", Body::Alnum, 40, 64),
    shape("replicate token", "r8_", Body::Alnum, 37, 40),
    shape("xai key", "xai-", Body::Alnum, 70, 100),
    shape("perplexity key", "pplx-", Body::Alnum, 40, 64),
    shape("nvidia key", "nvapi-", Body::Word, 50, 90),
    shape("supabase key", "sbp_", Body::Hex, 40, 40),
    shape("supabase key", "sb_secret_", Body::Word, 24, 64),
    shape("notion token", "ntn_", Body::Alnum, 40, 60),
    shape("docker token", "dckr_pat_", Body::Word, 20, 60),
    shape("rubygems key", "rubygems_", Body::Hex, 48, 48),
    shape("crates.io token", "cio", Body::Alnum, 32, 32),
    shape("langsmith key", "lsv2_pt_", Body::Word, 32, 64),
    shape("atlassian token", "ATATT3", Body::Word, 100, 300),
    shape("postman key", "PMAK-", Body::Word, 50, 70),
    shape("figma token", "figd_", Body::Word, 36, 60),
    shape("airtable token", "patAirt", Body::Word, 60, 100),
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
    let shape = SHAPES.iter().find(|shape| shape.fits(run))?;
    let own = &run[shape.prefix.len()..];
    let words = shape.body == Body::Word && is_words(own);
    (!is_placeholder(own) && !words).then_some((shape.kind, start, end))
}

impl Shape {
    fn fits(&self, run: &str) -> bool {
        let Some(own) = run.strip_prefix(self.prefix) else {
            return false;
        };
        (self.least..=self.most).contains(&own.len()) && own.bytes().all(|byte| self.body.has(byte))
    }
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
