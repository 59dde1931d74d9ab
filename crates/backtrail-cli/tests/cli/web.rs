//! `backtrail web`, the real program over HTTP: it shows what the commands show, to nobody else
//! (F40), changes nothing without `--write`, and what it began to do to files is done as a whole
//! or not at all, however it ends (F15, F37).

mod changes;
mod client;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use self::client::{Pages, wait_until};
use crate::find::{fill, ok};
use crate::kit::{Cli, Recording, finish};

#[test]
fn without_a_store_it_says_how_to_begin_and_creates_nothing() {
    let cli = Cli::new();
    let ran = cli.run(&["web", "--no-open"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(ran.stderr.contains("backtrail run -- COMMAND"), "{ran:#?}");
    assert!(!cli.store().exists());
}

#[test]
fn a_port_that_is_in_use_is_named() {
    let cli = Cli::new();
    cli.new_session("hello");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ran = cli.run(&["web", "--no-open", "--port", &port.to_string()]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let message = format!("port {port} is in use");
    assert!(ran.stderr.contains(&message), "{ran:#?}");
    assert!(ran.stderr.contains("leave out --port"), "{ran:#?}");
}

#[test]
fn it_serves_until_a_signal_ends_it_in_order() {
    let cli = Cli::new();
    cli.new_session("hello");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let pages = Pages::start(&cli, &[]);
        let hello = pages.get("/api/hello");
        assert_eq!(hello["can_write"], false, "{hello}");
        let mut events = pages.events(None);
        events.wait_for("event: ready");
        assert_eq!(pages.end(signal), 0, "{signal:?}");
        let told = events.rest();
        assert!(told.contains("event: bye"), "{signal:?}: {told}");
    }
}

#[test]
fn the_address_is_a_line_of_stdout_for_people_too() {
    let cli = Cli::new();
    cli.new_session("hello");
    let (pages, line) = Pages::start_plain(&cli);
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    assert!(line.contains("/#token="), "{line}");
    assert_eq!(pages.end(Signal::TERM), 0);
}

/// A program that stands for the desktop's: it copies what it is told to open, and how.
fn fake_browser(cli: &Cli, exit: u8) -> (std::path::PathBuf, std::path::PathBuf) {
    let bin = cli.work().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let seen = cli.work().join("seen");
    let script = format!(
        "#!/bin/sh\nout='{0}'\nprintf '%s' \"$*\" > \"$out.args\"\n\
         stat -c %a \"$1\" > \"$out.mode\"\ncp \"$1\" \"$out.page\"\nexit {exit}\n",
        seen.display()
    );
    let program = bin.join("xdg-open");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (bin, seen)
}

#[test]
fn the_browser_gets_the_token_through_a_file_that_only_this_user_can_read() {
    let cli = Cli::new();
    cli.new_session("hello");
    let (bin, seen) = fake_browser(&cli, 0);
    let pages = Pages::start_opening(&cli, &bin);
    let page = seen.with_extension("page");
    wait_until("the browser is opened", || page.exists());
    let opened = fs::read_to_string(seen.with_extension("args")).unwrap();
    assert!(!opened.contains(&pages.token), "{opened}");
    let mode = fs::read_to_string(seen.with_extension("mode")).unwrap();
    assert_eq!(mode.trim(), "600");
    wait_until("the page is copied", || {
        fs::read_to_string(&page).is_ok_and(|page| page.contains(&pages.token))
    });
    let file = std::path::PathBuf::from(opened);
    assert!(file.exists());
    // A page that has the token needs the file no more.
    pages.get("/api/hello");
    assert!(!file.exists());
    assert_eq!(pages.end(Signal::TERM), 0);
}

#[test]
fn without_a_browser_the_address_is_printed() {
    let cli = Cli::new();
    cli.new_session("hello");
    let (bin, _) = fake_browser(&cli, 3);
    let pages = Pages::start_opening_for_people(&cli, &bin);
    let told = pages.wait_for_stderr("#token=");
    assert!(told.contains("no browser could be opened"), "{told}");
    assert_eq!(pages.end(Signal::INT), 0);
}

/// F40, on the real program; crates/backtrail-web proves every check and every route.
#[test]
fn f40_nothing_is_told_to_another_origin_host_name_or_without_the_token() {
    let cli = Cli::new();
    cli.new_session("the secret of the shelf");
    let pages = Pages::start(&cli, &[]);
    let host = format!("127.0.0.1:{}", pages.port);
    let token = pages.token.clone();
    let wrong = token.replace(|c: char| c.is_ascii_digit(), "a");
    let path = "/api/sessions";
    for (name, headers) in [
        ("no token", vec![("Host", host.as_str())]),
        (
            "a guessed token",
            vec![("Host", &host), ("X-Backtrail-Token", &wrong)],
        ),
        ("a cookie", vec![("Host", &host), ("Cookie", &token)]),
        (
            "another origin",
            vec![
                ("Host", &host),
                ("X-Backtrail-Token", &token),
                ("Origin", "http://localhost:3000"),
            ],
        ),
        (
            "another site",
            vec![
                ("Host", &host),
                ("X-Backtrail-Token", &token),
                ("Sec-Fetch-Site", "cross-site"),
            ],
        ),
        (
            "a name that was rebound",
            vec![("Host", "evil.example"), ("X-Backtrail-Token", &token)],
        ),
    ] {
        let answer = pages.request("GET", path, &headers, "");
        assert!(answer.status >= 400, "{name}: {answer:?}");
        assert!(!answer.text.contains("shelf"), "{name}: {answer:?}");
    }
    let shell = pages.request("GET", "/", &[("Host", &host)], "");
    assert_eq!(shell.status, 200);
    assert!(!shell.text.contains("shelf") && !shell.text.contains(&token));
    wait_until("whoever has the token is told", || {
        pages
            .get(path)
            .to_string()
            .contains("the secret of the shelf")
    });
    assert_eq!(pages.end(Signal::TERM), 0);
}

#[test]
fn the_pages_have_the_numbers_of_the_commands() {
    let cli = Cli::new();
    fill(&cli);
    let list = ok(cli.run(&["list", "--json"])).json();
    let list = list.as_array().unwrap();
    let pages = Pages::start(&cli, &[]);
    wait_until("the catalogue is there", || {
        pages.get("/api/sessions")["all"] == list.len()
    });
    let stats = ok(cli.run(&["stats", "--by", "model", "-n", "1000"])).stdout;
    let costs = pages.get("/api/spending?by=model")["html"].to_string();
    let totals = ok(cli.run(&["stats", "--json"])).json()["totals"].clone();
    let calls = totals["calls"].as_u64().unwrap();
    assert!(calls > 0 && !stats.is_empty());
    let dollars = totals["cost_usd"].as_f64().unwrap();
    let cents = format!("{:.2}", dollars);
    let (whole, part) = cents.split_once('.').unwrap();
    assert!(
        costs.contains(&format!("{whole}.{part}")),
        "{cents}: {costs}"
    );
    for row in list.iter().filter(|row| row["turns"] != 0) {
        let id = row["id"].as_str().unwrap();
        let session = pages.get(&format!("/api/session?ref={id}"));
        assert_eq!(session["id"], id);
        assert_eq!(session["end"], row["last_seq"], "{id}");
        let turns = row["turns"].as_u64().unwrap();
        let outline = pages.get(&format!("/api/outline?session={id}"));
        let links = outline["html"].as_str().unwrap();
        let listed = links.matches("href=\"#r").count() as u64;
        assert_eq!(listed, turns, "{id}: {links}");
        assert_eq!(ranges(&pages, id), exported(&cli, id), "{id}");
    }
    assert_eq!(pages.end(Signal::TERM), 0);
}

/// Returns the records of a session as the pages get them.
fn ranges(pages: &Pages, id: &str) -> String {
    let (mut html, mut first) = (String::new(), 0);
    loop {
        let last = first + 6;
        let range = pages.get(&format!(
            "/api/records?session={id}&first={first}&last={last}"
        ));
        html += range["html"].as_str().unwrap();
        if last >= range["end"].as_u64().unwrap() {
            return html;
        }
        first = last + 1;
    }
}

/// Returns the conversation of an exported page.
fn exported(cli: &Cli, id: &str) -> String {
    let page = ok(cli.run(&["export", id, "--to", "html"])).stdout;
    let (_, page) = page.split_once("<header class=\"head\">").unwrap();
    let (_, body) = page.split_once("</header>\n").unwrap();
    body.split_once("</main>\n<nav").unwrap().0.to_owned()
}

#[test]
fn what_another_process_writes_is_told_and_a_reader_that_comes_again_misses_nothing() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let pages = Pages::start(&cli, &[]);
    pages.get(&format!("/api/records?session={id}&first=0&last=9"));
    let mut events = pages.events(None);
    let seen = events.wait_for("event: ready");
    let mut recording = Recording::start(cli.command(&["record", "--session", &id]));
    recording.say("one more");
    events.wait_for(&format!("\"session\":\"{id}\""));
    drop(events);
    recording.say("and another");
    assert_eq!(recording.end(), 0);
    // From the last one that was seen.
    let mut again = pages.events(Some(&seen));
    again.wait_for(&format!("\"session\":\"{id}\""));
    let records = pages.get(&format!("/api/records?session={id}&first=0&last=9"));
    assert!(records["html"].as_str().unwrap().contains("and another"));
    assert_eq!(pages.end(Signal::TERM), 0);
}

#[test]
fn a_new_session_comes_into_the_list_by_itself() {
    let cli = Cli::new();
    cli.new_session("hello");
    let pages = Pages::start(&cli, &[]);
    let mut events = pages.events(None);
    events.wait_for("event: ready");
    wait_until("the first one is listed", || {
        pages.get("/api/sessions")["all"] == 1
    });
    let other = cli.new_session("another shelf");
    loop {
        let list = pages.get("/api/sessions")["html"].to_string();
        if list.contains(&other) && list.contains("another shelf") {
            break;
        }
        events.wait_for("event: session");
    }
    assert_eq!(pages.end(Signal::TERM), 0);
}

#[test]
fn without_write_nothing_is_planned_or_done() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let pages = Pages::start(&cli, &[]);
    let body = format!("{{\"action\": {{\"do\": \"delete\", \"session\": \"{id}\"}}}}");
    for (path, body) in [
        ("/api/plan", body.as_str()),
        ("/api/apply", "{\"token\": \"1\"}"),
    ] {
        let answer = pages.post(path, body);
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(answer.text.contains("backtrail web --write"), "{answer:?}");
    }
    assert_eq!(pages.end(Signal::TERM), 0);
    assert_eq!(
        ok(cli.run(&["list", "--json"]))
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn it_works_outside_of_any_workspace() {
    let cli = Cli::new();
    cli.new_session("hello");
    let mut command = cli.command(&["web", "--no-open", "--json"]);
    command.current_dir("/");
    let pages = Pages::start_command(command);
    assert_eq!(pages.get("/api/hello")["workspace"], "");
    let timeline = pages.get("/api/timeline");
    assert!(timeline["html"].is_string(), "{timeline}");
    assert_eq!(pages.end(Signal::TERM), 0);
}

#[test]
fn help_shows_it_beside_the_screens() {
    let ran = finish(&mut Cli::new().command(&["help"]), b"");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let ui = lines
        .iter()
        .position(|line| line.trim_start().starts_with("ui"));
    assert!(
        lines[ui.unwrap() + 1].trim_start().starts_with("web"),
        "{ran:#?}"
    );
}
