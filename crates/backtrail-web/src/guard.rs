//! Who may have what: every request passes here before anything else looks at it.
//!
//! Shells and their script hold no data, so anybody on this machine may load them by one of our
//! names. Everything else, unknown addresses included, needs the token of this start and a page
//! of ours that asks.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io;
use std::net::IpAddr;

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};

use crate::shell;

/// The header with the token.
pub(crate) const TOKEN: &str = "x-backtrail-token";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types backtrail";

/// Sent with every answer.
const STRICT: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// 128 random bits, as hexadecimal digits.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// Makes a token that nobody can guess.
    pub(crate) fn random() -> io::Result<Self> {
        random_hex::<16>().map(Self)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on how much is right.
    fn is(&self, given: &[u8]) -> bool {
        let ours = self.0.as_bytes();
        let pairs = ours.iter().zip(given);
        let differing = pairs.fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
        ours.len() == given.len() && black_box(differing) == 0
    }
}

/// Returns random bytes as hexadecimal digits.
pub(crate) fn random_hex<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").map_err(io::Error::other)?;
    }
    Ok(text)
}

/// What a request that passed may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Shells, script and style.
    Shell,
    /// Everything.
    Data,
}

/// Why a request gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: &'static str,
    pub(crate) hint: Option<&'static str>,
}

impl Refusal {
    const fn new(status: StatusCode, message: &'static str) -> Self {
        Self {
            status,
            message,
            hint: None,
        }
    }

    const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// The parts of a request that are checked.
pub(crate) struct Asked<'a> {
    pub(crate) peer: IpAddr,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

/// Checks requests against the names, the origins and the token of this start.
pub(crate) struct Guard {
    hosts: [String; 3],
    token: Token,
}

impl Guard {
    pub(crate) fn new(port: u16, token: Token) -> Self {
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        Self { hosts, token }
    }

    /// Checks a request in the order of docs/design/0015-pages.md.
    pub(crate) fn check(&self, asked: &Asked<'_>) -> Result<Access, Refusal> {
        check_peer(asked.peer)?;
        self.check_host(asked)?;
        check_method(asked.method)?;
        check_body(asked)?;
        if shell::is_public(asked.uri.path()) {
            return Ok(Access::Shell);
        }
        check_fetch_site(asked.headers)?;
        self.check_origin(asked.headers)?;
        self.check_token(asked.headers)?;
        Ok(Access::Data)
    }

    fn check_host(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        const WRONG: Refusal = Refusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this is not the host that the request names",
        );
        let given = only(asked.headers, header::HOST).ok_or(WRONG)?;
        if !self.hosts.iter().any(|host| host.as_bytes() == given) {
            return Err(WRONG);
        }
        // A proxy's form of address names the host a second time.
        let named = asked.uri.authority().is_none_or(|authority| {
            authority.as_str().as_bytes() == given && asked.uri.scheme_str() == Some("http")
        });
        named.then_some(()).ok_or(WRONG)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        const WRONG: Refusal =
            Refusal::new(StatusCode::FORBIDDEN, "the request is from another origin");
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let given = only(headers, header::ORIGIN).ok_or(WRONG)?;
        let host = given.strip_prefix(b"http://").ok_or(WRONG)?;
        let ours = self.hosts.iter().any(|ours| ours.as_bytes() == host);
        ours.then_some(()).ok_or(WRONG)
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        const WRONG: Refusal = Refusal::new(
            StatusCode::UNAUTHORIZED,
            "the request does not have the token of this start",
        )
        .hint("run backtrail web in a terminal and use the address that it opens");
        let name = HeaderName::from_static(TOKEN);
        let given = only(headers, name).ok_or(WRONG)?;
        self.token.is(given).then_some(()).ok_or(WRONG)
    }
}

/// Returns the value of a header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

fn check_peer(peer: IpAddr) -> Result<(), Refusal> {
    let wrong = Refusal::new(StatusCode::FORBIDDEN, "only this machine is served");
    peer.is_loopback().then_some(()).ok_or(wrong)
}

fn check_method(method: &Method) -> Result<(), Refusal> {
    let wrong = Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "only GET and POST are served",
    );
    let known = *method == Method::GET || *method == Method::POST;
    known.then_some(()).ok_or(wrong)
}

/// Refuses bodies where none is expected.
fn check_body(asked: &Asked<'_>) -> Result<(), Refusal> {
    let wrong = Refusal::new(StatusCode::BAD_REQUEST, "no body is expected here");
    let length = asked.headers.get(header::CONTENT_LENGTH);
    let empty = length.is_none_or(|length| length == "0");
    let none = empty && !asked.headers.contains_key(header::TRANSFER_ENCODING);
    (none || *asked.method == Method::POST)
        .then_some(())
        .ok_or(wrong)
}

/// Refuses what a browser sends for a page that is not ours.
fn check_fetch_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let wrong = Refusal::new(StatusCode::FORBIDDEN, "the request is from another site");
    let name = HeaderName::from_static("sec-fetch-site");
    let mut given = headers.get_all(name).iter();
    let ours = given.all(|site| site == "same-origin" || site == "none");
    ours.then_some(()).ok_or(wrong)
}

/// Adds the headers that every answer has.
pub(crate) fn add_strict_headers(headers: &mut HeaderMap) {
    for (name, value) in STRICT {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let none = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(none);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Checks a request with a token for a page or data.
    fn check(peer: IpAddr, path: &'static str) -> Result<Access, Refusal> {
        let token = Token::random().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:7"));
        headers.insert(TOKEN, HeaderValue::from_str(token.as_str()).unwrap());
        let asked = Asked {
            peer,
            method: &Method::GET,
            uri: &Uri::from_static(path),
            headers: &headers,
        };
        Guard::new(7, token).check(&asked)
    }

    #[test]
    fn only_peers_on_loopback_are_served() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(check(here, "/"), Ok(Access::Shell));
        assert_eq!(check(here, "/api/hello"), Ok(Access::Data));
        for path in ["/", "/api/hello"] {
            let refused = check(Ipv4Addr::new(192, 168, 0, 7).into(), path);
            assert_eq!(
                refused.map_err(|refusal| refusal.status),
                Err(StatusCode::FORBIDDEN)
            );
        }
    }

    #[test]
    fn a_token_is_128_random_bits() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.as_str().len(), 2 * 128 / 8);
        assert_ne!(one.as_str(), other.as_str());
        assert!(one.is(one.as_str().as_bytes()));
        assert!(!one.is(other.as_str().as_bytes()));
        assert!(!one.is(b"") && !one.is(&one.as_str().as_bytes()[..31]));
    }
}
