//! What a person waits for, in Chromium: a long session that can be read, and a new message on the
//! screen.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backtrail::{Message, Session, Store};

use super::chromium::Chromium;
use super::served::Served;
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::find::corpus;
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal};
use crate::store::process::{backtrail, run};
use crate::ui::{figure, samples, seconds};

/// The limit for a long session that can be read.
const INTERACTIVE: f64 = 0.300;
/// The limit for a message to the screen.
const MESSAGE: f64 = 0.150;

/// When a message is there, and a frame was drawn with it, since the page was asked for.
const SHOWN: &str = "new Promise(done => {
    const look = () => document.querySelector('main article')
        ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))
        : requestAnimationFrame(look);
    look();
})";

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let has_chromium = Command::new("chromium")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if has_chromium.is_err() {
        return Ok(vec![Entry::skipped("browser", "chromium is missing")]);
    }
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("browser", &why)]),
    };
    command::announce(&bin);
    let (store, home) = (dir.join("store"), dir.join("home"));
    std::fs::create_dir(&home)?;
    let messages = args.pick(10_000, 1_000);
    let size = corpus::Size {
        sessions: 1,
        messages_each: messages,
        bytes_each: 500,
    };
    corpus::make(&store, size)?;
    run(&mut backtrail(&bin, &store, &["rebuild"]))?;
    settle(dir)?;
    let opened = Store::open(&store)?;
    let id = opened.sessions()?.pop().ok_or("there is no session")?;
    let session = opened.open_session(&id)?;
    let served = Served::ours(&bin, &store, &home)?;
    let mut browser = Chromium::start(dir)?;
    // Nobody opens the first page of a browser again and again.
    browser.go(&served.url("/"))?;
    let mut opened = Vec::new();
    for _ in 0..args.pick(20, 5) {
        browser.go("about:blank")?;
        browser.go(&served.url(&format!("/session/{id}")))?;
        let ms = browser.evaluate(SHOWN)?.as_f64().ok_or("not a time")?;
        opened.push(Duration::from_secs_f64(ms / 1000.0));
    }
    let name = format!("browser, a session of {messages} messages");
    Ok(vec![
        figure(
            format!("{name}: can be read"),
            seconds(&samples(&opened)),
            None,
            Goal::AtMost(INTERACTIVE),
        ),
        figure(
            format!("{name}: a new message is on the screen"),
            seconds(&samples(&new_messages(args, &mut browser, &session)?)),
            None,
            Goal::AtMost(MESSAGE),
        ),
    ])
}

/// Measures the time from before a message is appended until it is drawn, at the end of the page.
fn new_messages(args: &Args, browser: &mut Chromium, session: &Session) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut seen = |word: &str| -> Result<Duration> {
        let waiting = browser.begin(&appears(word))?;
        let began = SystemTime::now();
        session.append(Message::user_text(word))?;
        let at = browser.finish(waiting)?.as_f64().ok_or("not a time")?;
        let began = began.duration_since(UNIX_EPOCH)?.as_secs_f64();
        Ok(Duration::from_secs_f64((at / 1000.0 - began).max(0.0)))
    };
    for n in 0..args.pick(20, 5) {
        times.push(seen(&format!("brandnew{n}"))?);
    }
    Ok(times)
}

/// Returns an expression whose value is the time at which a frame with a word was drawn.
fn appears(word: &str) -> String {
    format!(
        "new Promise(done => {{
            scrollTo(0, document.documentElement.scrollHeight);
            const look = () => {{
                const articles = document.querySelectorAll('main article');
                const last = [...articles].slice(-3).map(it => it.textContent).join();
                if (last.includes('{word}'))
                    requestAnimationFrame(() => done(performance.timeOrigin + performance.now()));
                else requestAnimationFrame(look);
            }};
            look();
        }})"
    )
}
