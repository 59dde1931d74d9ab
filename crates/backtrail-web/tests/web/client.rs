//! A client that writes bytes: it is as impolite as a test wants it to be.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use backtrail_web::{Limits, Options, Server, start};

use crate::site::Fake;

/// No test waits longer.
const DEADLINE: Duration = Duration::from_secs(30);

/// What a site without its data says, and no refusal may.
const DATA: &str = "parser";

/// A server with a made-up site.
pub(crate) struct Web {
    pub(crate) fake: Fake,
    pub(crate) server: Server,
}

/// Starts a server that only reads.
pub(crate) fn reading() -> Web {
    with(Options::default())
}

/// Starts a server that writes, too.
pub(crate) fn writing() -> Web {
    with(Options {
        write: true,
        ..Options::default()
    })
}

/// Starts a server that waits for nobody for long.
pub(crate) fn hasty() -> Web {
    let short = Duration::from_millis(200);
    with(Options {
        write: true,
        limits: Limits {
            head_time: short,
            body_time: short,
            stall_time: short,
            ..Limits::default()
        },
        ..Options::default()
    })
}

pub(crate) fn with(options: Options) -> Web {
    let fake = Fake::new(60);
    let server = start(Arc::new(fake.clone()), options).unwrap();
    Web { fake, server }
}

impl Web {
    pub(crate) fn token(&self) -> String {
        let url = self.server.url("/");
        url.split_once("#token=").unwrap().1.to_owned()
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.server.port())
    }

    /// Writes a request as it is on the wire: lines end as they must, `HOST`, `PORT` and `TOKEN` are
    /// ours.
    pub(crate) fn text(&self, request: &str) -> String {
        let port = self.server.port().to_string();
        let text = request.replace("HOST", &self.host()).replace("PORT", &port);
        text.replace("TOKEN", &self.token()).replace('\n', "\r\n")
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        let read = Vec::new();
        Client { stream, read }
    }

    /// Asks on a connection of its own.
    pub(crate) fn ask(&self, request: &str) -> Answer {
        self.ask_bytes(self.text(request).as_bytes())
    }

    pub(crate) fn ask_bytes(&self, request: &[u8]) -> Answer {
        let mut client = self.connect();
        client.send(request);
        client.answer()
    }

    /// Asks for data as a page of ours does.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\n\n"
        ))
    }

    /// Sends JSON as a page of ours does.
    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        let mut client = self.connect();
        client.send(self.post_text(path, body).as_bytes());
        client.answer()
    }

    pub(crate) fn post_text(&self, path: &str, body: &str) -> String {
        let length = body.len();
        let head = self.text(&format!(
            "POST {path} HTTP/1.1\nHost: HOST\nX-Backtrail-Token: TOKEN\nContent-Type: application/json\n\
             Content-Length: {length}\n\n"
        ));
        head + body
    }

    /// Asserts that the server still answers.
    pub(crate) fn assert_answers(&self) {
        assert_eq!(self.get("/api/hello").status, 200);
    }

    /// Returns how many connections the server has, as the system sees it.
    pub(crate) fn connections(&self) -> usize {
        let port = format!(":{:04X}", self.server.port());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let rows = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        // Established, or closed by the other side only.
        let open = |row: &Vec<&str>| row[1].ends_with(&port) && ["01", "08"].contains(&row[3]);
        rows.filter(open).count()
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        thread::yield_now();
    }
}

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// What was read, and is no answer yet.
    read: Vec<u8>,
}

impl Client {
    /// Sends bytes. That the server does not want the rest is seen in its answer.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    /// Reads more; returns whether there was any.
    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        let length = match self.stream.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing came: {error}"),
        };
        self.read.extend_from_slice(&buffer[..length]);
        length > 0
    }

    /// Reads until a text has come; returns everything up to its end.
    #[track_caller]
    pub(crate) fn read_to(&mut self, end: &str) -> String {
        loop {
            let found = self
                .read
                .windows(end.len())
                .position(|part| part == end.as_bytes());
            if let Some(at) = found {
                let rest = self.read.split_off(at + end.len());
                let whole = std::mem::replace(&mut self.read, rest);
                return String::from_utf8(whole).unwrap();
            }
            let so_far = self.read.len();
            assert!(
                self.read_more(),
                "closed before {end:?}, after {so_far} bytes"
            );
        }
    }

    /// Reads until the server closes the connection.
    pub(crate) fn read_to_end(&mut self) -> String {
        while self.read_more() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    /// Reads the head of an answer, which must be as every head is.
    pub(crate) fn head(&mut self) -> Answer {
        let head = self.read_to("\r\n\r\n");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let answer = Answer {
            status,
            head: head.to_lowercase(),
            body: String::new(),
        };
        answer.check_head();
        answer
    }

    /// Reads an answer, which must be as every answer is.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.header("content-length").unwrap_or("0".to_owned());
        let length: usize = length.parse().unwrap();
        while self.read.len() < length {
            assert!(self.read_more(), "the answer is cut off");
        }
        let rest = self.read.split_off(length);
        let body = std::mem::replace(&mut self.read, rest);
        answer.body = String::from_utf8(body).unwrap();
        answer
    }
}

/// What the server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
    }

    /// Asserts what is true of every answer: nothing is shared with other sites, and nothing is left
    /// behind in the browser.
    fn check_head(&self) {
        assert!(!self.head.contains("set-cookie"), "{}", self.head);
        assert!(!self.head.contains("access-control"), "{}", self.head);
        // What is not HTTP at all is answered by the library, with nothing.
        if [400, 431].contains(&self.status) && self.header("content-type").is_none() {
            assert_eq!(self.header("content-length").as_deref(), Some("0"));
            return;
        }
        for (name, value) in STRICT {
            assert_eq!(
                self.header(name).as_deref(),
                Some(value),
                "{name}: {}",
                self.head
            );
        }
        assert!(["no-store", "no-cache"].contains(&&*self.header("cache-control").unwrap()));
    }

    /// Asserts that nothing was given.
    #[track_caller]
    pub(crate) fn assert_refused(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(!self.body.contains(DATA), "{self:?}");
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

const STRICT: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types backtrail",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "deny"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];
