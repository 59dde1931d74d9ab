//! A long session that continues in another agent: `export --to` and `resume --agent --print` as
//! whole processes, against a copy of as many bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use backtrail::{Message, SessionOptions, Store, ToolResult, ToolUse};
use serde_json::json;

use crate::Result;
use crate::args::Args;
use crate::command;
use crate::measure::{interleave, time};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

/// The messages of a usual session.
const USUAL: usize = 400;

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("resume in another agent", &why)]),
    };
    command::announce(&bin);
    let work = dir.join("work");
    fs::create_dir_all(&work)?;
    let messages = args.pick(10_000, 1_000);
    let session = make_session(&dir.join("store"), &work, messages)?;
    let usual = make_session(&dir.join("store"), &work, USUAL)?;
    settle(dir)?;
    let backtrail = |words: &[&str]| {
        let mut command = Command::new(&bin);
        command.arg("--store").arg(dir.join("store")).args(words);
        command.current_dir(&work).env("HOME", dir.join("home"));
        command.env_remove("CODEX_HOME");
        command
    };
    let file = dir.join("exported.jsonl");
    let name = file.to_string_lossy().into_owned();
    let words = ["export", &session, "--to", "codex", "--force", "-o", &name];
    command::run_quietly(&mut backtrail(&words))?;
    let copy = dir.join("copy.jsonl");
    let resume = |session: &str| {
        let words = ["resume", session, "--agent", "codex", "--print"];
        command::run_quietly(&mut backtrail(&words))
    };
    let [exported, resumed, resumed_usual, floor] = interleave(
        args.pick(10, 3),
        [
            &mut || {
                let words = ["export", &session, "--to", "codex", "--force", "-o", &name];
                command::run_quietly(&mut backtrail(&words))
            },
            &mut || resume(&session),
            &mut || resume(&usual),
            &mut || {
                time(|| {
                    fs::copy(&file, &copy)?;
                    Ok(())
                })
            },
        ],
    )?;
    let floor = Quantity::of(&floor, Unit::Seconds);
    let bytes = fs::metadata(&file)?.len() / 1_000_000;
    let figure = |name: String, ours, goal| {
        Entry::Figure(Figure {
            name,
            ours: Quantity::of(ours, Unit::Seconds),
            baseline: Some(("a copy of the file", floor.clone())),
            goal,
        })
    };
    Ok(vec![
        figure(
            format!("export of {messages} messages ({bytes} MB) to Codex"),
            &exported,
            Goal::AtMost(1.0),
        ),
        figure(
            format!("resume of {messages} messages, before Codex starts"),
            &resumed,
            Goal::Open,
        ),
        figure(
            format!("resume of {USUAL} messages, before Codex starts"),
            &resumed_usual,
            Goal::AtMost(0.1),
        ),
    ])
}

/// Makes a session of prompts, calls, results and answers.
fn make_session(store: &Path, work: &Path, messages: usize) -> Result<String> {
    let store = Store::open_or_create(store)?;
    let session = store.create_session(SessionOptions::new().workspace_root(work))?;
    let output = "src/cart.rs: a line of output\n".repeat(40);
    for n in 0..messages / 4 {
        let id = format!("call_{n}");
        let call = ToolUse::new(id.as_str(), "bash", &json!({"command": "ls -l src"}))?;
        session.append(Message::user_text(format!("prompt {n}: look at the cart")))?;
        session.append(Message::assistant([call.into()]))?;
        let result = ToolResult::ok(output.as_str()).answers(id.as_str(), "bash");
        session.append(Message::tool_result(result))?;
        session.append(Message::assistant([backtrail::Block::text("Done.")]))?;
    }
    let id = session.id().to_string();
    session.close()?;
    Ok(id)
}
