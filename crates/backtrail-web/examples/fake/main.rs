//! Serves the pages with made-up data, to work on their script and style.
//!
//! `cargo run -p backtrail-web --example fake -- [--write] [--port N] [--sessions N] [--live]`. With
//! `--live` the first session grows every second.

#[expect(dead_code, reason = "some of it is for tests")]
#[path = "site.rs"]
mod site;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use backtrail_view::library::Change;
use backtrail_web::{Options, start};
use site::Fake;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let has = |name: &str| words.iter().any(|word| word == name);
    let number = |name: &str| {
        let at = words.iter().position(|word| word == name);
        at.and_then(|at| words.get(at + 1)).map(|word| word.parse())
    };
    let fake = Fake::new(number("--sessions").transpose()?.unwrap_or(60));
    let options = Options {
        write: has("--write"),
        port: number("--port").transpose()?.unwrap_or(0).try_into()?,
        ..Options::default()
    };
    let server = start(Arc::new(fake.clone()), options)?;
    println!("{}", server.url("/"));
    loop {
        thread::sleep(Duration::from_secs(1));
        if has("--live") {
            fake.grow();
            fake.report(&Change::Session(site::session_id(0)));
            fake.report(&Change::Sessions);
        }
    }
}
