//! A page of hostile text in a real browser: nothing of it runs, nothing is fetched, and
//! the page's own script does. Where there is no Chromium, this says so and proves nothing.

use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use crate::export::{HOSTILE, hostile_session};
use crate::kit::Cli;
use crate::show::recorded;

fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|path| path.is_file());
    // One that cannot even show an empty page says nothing about ours.
    let starts = |path: &PathBuf| {
        let dir = tempfile::tempdir().unwrap();
        shown(path, dir.path(), "about:blank").is_ok()
    };
    let found = found.filter(starts);
    if found.is_none() {
        eprintln!("SKIPPED: needs chromium; the page was not tried in a browser");
    }
    found
}

/// Opens a page and returns what became of it.
fn dom(chromium: &Path, cli: &Cli, address: &str) -> String {
    match shown(chromium, &cli.work().join("profile"), address) {
        Ok(dom) => dom,
        Err(why) => panic!("{why}"),
    }
}

/// Opens a page, and returns what became of it, or what the browser says is wrong.
fn shown(chromium: &Path, profile: &Path, address: &str) -> Result<String, String> {
    // A browser that hangs must not hang the tests.
    let output = Command::new("timeout")
        .arg("180")
        .arg(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(address)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    match dom.contains("</html>") {
        true => Ok(dom),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Counts the connections to a port of this machine.
fn listen() -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream.map(|mut stream| stream.read(&mut [0; 64])));
        }
    });
    (port, seen)
}

#[test]
fn a_hostile_page_does_nothing_in_a_browser() {
    let Some(chromium) = chromium() else {
        return;
    };
    let (port, seen) = listen();
    let cli = Cli::new();
    let pieces = HOSTILE.map(|piece| piece.replace("PORT", &port.to_string()));
    let id = hostile_session(&cli, &pieces);
    let ran = cli.run(&["export", &id, "--to", "html", "-o", "page.html"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let file = cli.work().join("page.html");
    let dom = dom(&chromium, &cli, &format!("file://{}#r5", file.display()));
    let title = dom
        .split("<title>")
        .nth(1)
        .unwrap()
        .split("</title>")
        .next()
        .unwrap();
    assert!(
        title.starts_with("x&lt;script&gt;"),
        "the title was changed to {title}"
    );
    for banned in [
        "<iframe",
        "<svg",
        "<math",
        "<link",
        "<base",
        "<noscript",
        "<object",
        "<embed",
        "<use",
        " onerror=",
        " onload=",
    ] {
        let in_markup = dom.split('<').any(|tag| {
            let tag = format!("<{}", tag.split('>').next().unwrap_or_default());
            let unquoted: String = tag.split('"').step_by(2).collect();
            unquoted.contains(banned)
        });
        assert!(!in_markup, "{banned}");
    }
    assert_eq!(dom.matches("<script").count(), 1);
    assert_eq!(dom.matches("<style").count(), 1);
    assert_eq!(dom.matches("<form").count(), 1);
    assert_eq!(seen.load(Ordering::SeqCst), 0, "somebody was called");
    // The page's own script runs: its digest is right.
    assert!(
        dom.contains("<body class=\"script"),
        "the script did not run"
    );
}

#[test]
fn a_link_to_a_record_unfolds_what_it_is_in() {
    let Some(chromium) = chromium() else {
        return;
    };
    let cli = Cli::new();
    let id = cli.talk();
    assert_eq!(
        cli.run(&["export", &id, "--to", "html", "-o", "page.html"])
            .code,
        0
    );
    let file = cli.work().join("page.html");
    let plain = dom(&chromium, &cli, &format!("file://{}", file.display()));
    assert!(
        plain.contains("<details class=\"tool\">"),
        "folded at first"
    );
    let there = dom(&chromium, &cli, &format!("file://{}#r4", file.display()));
    assert!(
        there.contains("<details class=\"tool\" open=\"\">"),
        "{there}"
    );
    assert!(
        !there.contains(" UTC</time>"),
        "times are those of the reader"
    );
}

/// Opens the page of a session and searches it for words, then for the next place; returns what
/// became of it, with what was found in its title. The page lets no other script run, so the test
/// takes that away from its own copy, and types in the place of a person.
fn searched(chromium: &Path, cli: &Cli, id: &str, words: &str) -> String {
    let page = cli.run(&["export", id, "--to", "html"]).stdout;
    let (before, policy) = page.split_once("<meta http-equiv").unwrap();
    let (_, after) = policy.split_once('>').unwrap();
    let typing = format!(
        "<script>\
        document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '/', bubbles: true}}));\
        const field = document.activeElement;\
        field.value = '{words}';\
        field.dispatchEvent(new Event('input'));\
        setTimeout(() => {{\
            field.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}));\
            document.title = [...CSS.highlights.get('found')].map(String).join('|');\
        }}, 1000);\
        </script></body>"
    );
    let page = format!("{before}{after}").replace("</body>", &typing);
    let file = cli.work().join("search.html");
    std::fs::write(&file, page).unwrap();
    dom(chromium, cli, &format!("file://{}", file.display()))
}

#[test]
fn search_counts_marks_and_continues() {
    let Some(chromium) = chromium() else {
        return;
    };
    let cli = Cli::new();
    let dom = searched(&chromium, &cli, &cli.talk(), "SRC");
    // It is in the line of a call, in its output, which unfolds, and in the answer.
    assert!(dom.contains("<output>2 / 3</output>"), "{dom}");
    assert!(
        dom.contains("<details class=\"tool matches\" open=\"\">"),
        "{dom}"
    );
    assert!(dom.contains("<article class=\"answer matches\""), "{dom}");
}

#[test]
fn search_finds_words_of_code_that_its_colours_divide() {
    let Some(chromium) = chromium() else {
        return;
    };
    let cli = Cli::new();
    let text = "So:\n\n```rust\nfn main() {\n    let one = \"1\";\n    let one = \"2\";\n}\n```\n";
    let lines = [
        json!({"role": "user", "text": "how?"}),
        json!({"role": "assistant", "text": text}),
    ];
    let id = recorded(&cli, &lines);
    let dom = searched(&chromium, &cli, &id, "let one = \"");
    assert!(dom.contains("</span> one "), "the words are divided: {dom}");
    assert!(dom.contains("<output>2 / 2</output>"), "{dom}");
    let found = "<title>let one = \"|let one = \"</title>";
    assert!(dom.contains(found), "{dom}");
}
