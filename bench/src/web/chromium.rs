//! Chromium, driven through two pipes in its own protocol.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::Result;

/// Options that keep it off the network, and small.
const OPTIONS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,800",
    "--remote-debugging-pipe",
];

/// A browser with one page.
pub(super) struct Chromium {
    child: Child,
    requests: File,
    answers: BufReader<File>,
    page: Option<String>,
    last: u64,
}

impl Chromium {
    /// Starts it, with everything that it writes in a directory.
    pub(super) fn start(dir: &Path) -> Result<Self> {
        let (requests, answers) = (dir.join("requests"), dir.join("answers"));
        for pipe in [&requests, &answers] {
            fs::remove_file(pipe).ok();
            if !Command::new("mkfifo").arg(pipe).status()?.success() {
                return Err(format!("cannot make {}", pipe.display()).into());
            }
        }
        // It reads from descriptor 3, and writes to 4.
        let script =
            r#"requests=$1; answers=$2; shift 2; exec chromium "$@" 3<"$requests" 4>"$answers""#;
        let child = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([&requests, &answers])
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", dir.join("profile").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut browser = Self {
            child,
            requests: File::options().write(true).open(&requests)?,
            answers: BufReader::new(File::open(&answers)?),
            page: None,
            last: 0,
        };
        let target = browser.ask("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", &attach)?;
        browser.page = attached["sessionId"].as_str().map(str::to_owned);
        Ok(browser)
    }

    /// Goes to an address; returns once its page has begun.
    pub(super) fn go(&mut self, url: &str) -> Result<()> {
        self.ask("Page.navigate", &json!({"url": url}))?;
        Ok(())
    }

    /// Begins to evaluate an expression.
    pub(super) fn begin(&mut self, expression: &str) -> Result<u64> {
        let evaluate = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        self.send("Runtime.evaluate", &evaluate)
    }

    /// Returns the value of an expression, once it is known.
    pub(super) fn finish(&mut self, request: u64) -> Result<Value> {
        let answer = self.answer(request)?;
        match answer.get("exceptionDetails") {
            None => Ok(answer["result"]["value"].clone()),
            Some(why) => Err(format!("the page failed: {why}").into()),
        }
    }

    pub(super) fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let request = self.begin(expression)?;
        self.finish(request)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let request = self.send(method, params)?;
        self.answer(request)
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last += 1;
        let mut request = json!({"id": self.last, "method": method, "params": params});
        if let Some(page) = &self.page {
            request["sessionId"] = json!(page);
        }
        let mut bytes = request.to_string().into_bytes();
        bytes.push(0);
        self.requests.write_all(&bytes)?;
        Ok(self.last)
    }

    fn answer(&mut self, request: u64) -> Result<Value> {
        loop {
            let mut bytes = Vec::new();
            if self.answers.read_until(0, &mut bytes)? == 0 {
                return Err("chromium ended".into());
            }
            bytes.pop();
            let mut answer: Value = serde_json::from_slice(&bytes)?;
            if answer["id"] == request {
                return match answer.get("error") {
                    None => Ok(answer["result"].take()),
                    Some(why) => Err(format!("chromium refused: {why}").into()),
                };
            }
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
