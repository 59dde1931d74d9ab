//! A program that serves pages, and requests to it.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::PATIENCE;
use crate::store::process::backtrail;
use crate::ui::at_home;
use crate::{Result, machine};

/// A running program that serves pages. It ends when this is dropped.
pub(super) struct Served {
    child: Child,
    began: Instant,
    port: u16,
    token: Option<String>,
}

impl Served {
    /// Starts ours, and waits until it says where it is.
    pub(super) fn ours(bin: &Path, store: &Path, home: &Path) -> Result<Self> {
        let command = backtrail(bin, store, &["web", "--no-open"]);
        let mut command = at_home(command, home);
        command.stdout(Stdio::piped());
        let (began, mut child) = start(command)?;
        let out = child.stdout.take().ok_or("there is no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line)?;
        let url = told["url"].as_str().ok_or("there is no url")?;
        let wrong = || format!("not an address: {url}");
        let (address, token) = url.split_once("/#token=").ok_or_else(wrong)?;
        let port = address.rsplit(':').next().ok_or_else(wrong)?;
        Ok(Self {
            child,
            began,
            port: port.parse()?,
            token: Some(token.to_owned()),
        })
    }

    /// Starts another program on a port.
    pub(super) fn other(command: Command, port: u16) -> Result<Self> {
        let (began, child) = start(command)?;
        Ok(Self {
            child,
            began,
            port,
            token: None,
        })
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Returns the address of a page, with the token.
    pub(super) fn url(&self, path: &str) -> String {
        let token = self.token.as_deref().unwrap_or_default();
        format!("http://127.0.0.1:{}{path}#token={token}", self.port)
    }

    /// Returns the body of an answer, if it is there and good.
    pub(super) fn get(&self, path: &str) -> Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let token = self.token.as_ref();
        let token = token.map(|token| format!("x-backtrail-token: {token}\r\n"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{}\r\n",
            self.port,
            token.unwrap_or_default()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        match answer.starts_with(b"HTTP/1.1 200") {
            true => Ok(answer),
            false => {
                let first = answer.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
                Err(format!("{path}: {}", String::from_utf8_lossy(first)).into())
            }
        }
    }

    /// Returns whether an answer has a text. One that is not there yet has none.
    pub(super) fn says(&self, path: &str, text: &str) -> bool {
        let has = |answer: Vec<u8>| {
            let mut parts = answer.windows(text.len());
            parts.any(|part| part == text.as_bytes())
        };
        self.get(path).is_ok_and(has)
    }

    pub(super) fn peak_memory(&self) -> Result<u64> {
        machine::peak_memory(self.child.id())
    }

    pub(super) fn work(&self) -> Result<Duration> {
        machine::work(self.child.id())
    }
}

fn start(mut command: Command) -> Result<(Instant, Child)> {
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok((began, child))
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
