//! A program that serves pages, and a small client that reads them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kit::Cli;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(super) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "not so: {what}");
        std::thread::yield_now();
    }
}

/// A program that serves pages.
pub(super) struct Pages {
    child: Child,
    stderr: Arc<Mutex<String>>,
    pub(super) port: u16,
    pub(super) token: String,
    /// The other end must stay open.
    _stdout: BufReader<ChildStdout>,
}

/// What a request was answered with.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Answered {
    pub(super) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }
}

impl Pages {
    /// Starts it with options, without a browser.
    pub(super) fn start(cli: &Cli, options: &[&str]) -> Self {
        let args = [&["web", "--no-open", "--json"], options].concat();
        Self::start_command(cli.command(&args))
    }

    /// Starts a command that prints its address as JSON.
    pub(super) fn start_command(command: Command) -> Self {
        let (mut pages, line) = Self::spawn(command);
        let line: Value = serde_json::from_str(&line).unwrap();
        pages.take_address(line["url"].as_str().unwrap());
        pages
    }

    /// Starts it as people do, without a browser; returns the line that it prints.
    pub(super) fn start_plain(cli: &Cli) -> (Self, String) {
        let (mut pages, line) = Self::spawn(cli.command(&["web", "--no-open"]));
        pages.take_address(line.trim());
        (pages, line)
    }

    /// Starts it with programs that open a browser.
    pub(super) fn start_opening(cli: &Cli, programs: &Path) -> Self {
        let mut command = cli.command(&["web", "--json"]);
        command.env("PATH", path_with(programs));
        Self::start_command(command)
    }

    /// Does the same as people do: it prints no address.
    pub(super) fn start_opening_for_people(cli: &Cli, programs: &Path) -> Self {
        let mut command = cli.command(&["web"]);
        command.env("PATH", path_with(programs));
        Self::without_address(command)
    }

    fn spawn(command: Command) -> (Self, String) {
        let mut pages = Self::without_address(command);
        let mut line = String::new();
        pages._stdout.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{}", pages.stderr.lock().unwrap());
        (pages, line)
    }

    fn without_address(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr: Arc<Mutex<String>> = Arc::default();
        let (kept, from) = (Arc::clone(&stderr), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &format!("{line}\n");
            }
        });
        Self {
            _stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            stderr,
            port: 0,
            token: String::new(),
        }
    }

    fn take_address(&mut self, url: &str) {
        let (address, token) = url.split_once("/#token=").unwrap();
        let port = address.strip_prefix("http://127.0.0.1:").unwrap();
        self.port = port.parse().unwrap();
        self.token = token.to_owned();
    }

    /// Waits for a text on stderr; returns all of it so far.
    pub(super) fn wait_for_stderr(&self, text: &str) -> String {
        let told = || self.stderr.lock().unwrap().clone();
        wait_until(text, || told().contains(text));
        told()
    }

    /// Reads data.
    pub(super) fn get(&self, path: &str) -> Value {
        self.request("GET", path, &self.headers(), "").json()
    }

    /// Sends an order.
    pub(super) fn post(&self, path: &str, body: &str) -> Answered {
        let mut headers = self.headers();
        headers.push(("Content-Type", "application/json"));
        self.request("POST", path, &headers, body)
    }

    fn headers(&self) -> Vec<(&'static str, &str)> {
        vec![("X-Backtrail-Token", &self.token)]
    }

    /// Sends a request with these headers; the host is ours unless one of them names another.
    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let mut stream = self.send(method, path, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect(&text);
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let text = body.to_owned();
        Answered { status, text }
    }

    /// Sends a request without waiting for its answer.
    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
            .write_all(format!("{head}\r\n{body}").as_bytes())
            .unwrap();
        stream
    }

    /// Sends an order without waiting for its answer.
    pub(super) fn send_order(&self, path: &str, body: &str) -> TcpStream {
        let mut headers = self.headers();
        headers.push(("Content-Type", "application/json"));
        self.send("POST", path, &headers, body)
    }

    /// Reads what changes: from now on, or after what was seen.
    pub(super) fn events(&self, seen: Option<&str>) -> Events {
        let mut headers = self.headers();
        headers.extend(seen.map(|seen| ("Last-Event-ID", seen)));
        let stream = self.send("GET", "/api/events", &headers, "");
        Events {
            lines: BufReader::new(stream),
            id: String::new(),
        }
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Ends the program by a signal; returns its exit code, or -1.
    pub(super) fn end(mut self, signal: Signal) -> i32 {
        self.signal(signal);
        self.wait()
    }

    /// Waits for the end of the program.
    pub(super) fn wait(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn path_with(programs: &Path) -> String {
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", programs.display())
}

/// A stream of changes.
pub(super) struct Events {
    lines: BufReader<TcpStream>,
    /// The id of the last event.
    id: String,
}

impl Events {
    /// Waits for a line with a text; returns the id of its event.
    pub(super) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "the stream ended before: {text}");
            if let Some(id) = line.strip_prefix("id: ") {
                self.id = id.trim().to_owned();
            }
            if line.contains(text) {
                return self.id.clone();
            }
        }
    }

    /// Returns the rest of the stream, once it ends.
    pub(super) fn rest(mut self) -> String {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        rest
    }
}
