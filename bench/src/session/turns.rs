//! Many turns of a conversation compared with few: the cost of a turn must not grow with
//! the history. Also compared with rewriting the whole file every turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::{
    Block, Compaction, Draft, Durability, Message, Session, Shape, Store, ToolResult, ToolUse,
    Usage,
};
use serde_json::json;

use crate::Result;
use crate::args::Args;
use crate::measure::{Samples, interleave, time};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::trail::fixture::{session, text};

/// The number of turns after which a model's window is full.
const COMPACTED_AFTER: u64 = 50;
const KEPT: u64 = 6;

/// A file system in memory.
const IN_MEMORY: &str = "/dev/shm";

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let few = args.pick(1_000, 100);
    let mut entries = vec![ten_times(few, dir, Durability::Os)?];
    match tempfile::tempdir_in(IN_MEMORY) {
        Ok(dir) => entries.push(ten_times(few, dir.path(), Durability::Record)?),
        Err(error) => {
            let why = format!("cannot write to {IN_MEMORY}: {error}");
            entries.push(Entry::skipped("turns in memory", &why));
        }
    }
    entries.push(against_rewriting(args, dir, few)?);
    Ok(entries)
}

/// Compares ten stretches of one conversation with ten conversations of one stretch, in
/// turns so that both run under the same conditions.
fn ten_times(few: u64, dir: &Path, durability: Durability) -> Result<Entry> {
    let store = Store::open_or_create(dir.join("store"))?;
    let said = Turn::all()?;
    let long = session(&store, durability)?;
    let (mut stretches, mut short) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        stretches.push(time(|| talk(&long, &said, few))?.as_secs_f64());
        short.push(converse(&store, &said, few, durability)?.as_secs_f64());
    }
    remove(&long)?;
    let place = match durability {
        Durability::Os => "OS mode",
        _ => "each record synced, in memory",
    };
    Ok(Entry::Figure(Figure {
        name: format!("{} turns with their contexts, {place}", 10 * few),
        ours: Quantity::single(stretches.iter().sum(), Unit::Seconds),
        baseline: Some((
            "a tenth of the turns, mean of 10",
            Quantity::single(Samples::new(short).mean(), Unit::Seconds),
        )),
        goal: Goal::CostAtMost(11.0),
    }))
}

fn against_rewriting(args: &Args, dir: &Path, turns: u64) -> Result<Entry> {
    let store = Store::open_or_create(dir.join("store"))?;
    let said = Turn::all()?;
    let mut ours = || converse(&store, &said, turns, Durability::Os);
    let mut naive = || rewrite(&dir.join("naive.json"), turns);
    let [ours, naive] = interleave(args.pick(5, 3), [&mut ours, &mut naive])?;
    Ok(Entry::Figure(Figure {
        name: format!("{turns} turns with their contexts, OS mode"),
        ours: Quantity::of(&ours, Unit::Seconds),
        baseline: Some((
            "the whole file every turn, no contexts",
            Quantity::of(&naive, Unit::Seconds),
        )),
        goal: Goal::Open,
    }))
}

/// Runs a conversation in a new session, then removes it.
fn converse(store: &Store, said: &[Turn], turns: u64, durability: Durability) -> Result<Duration> {
    let session = session(store, durability)?;
    let took = time(|| talk(&session, said, turns))?;
    remove(&session)?;
    Ok(took)
}

/// Removes a session before it is closed, which would sync it.
fn remove(session: &Session) -> Result<()> {
    Ok(fs::remove_dir_all(session.reader().dir())?)
}

/// Runs this many turns: messages, the context for the model, and a compaction when that
/// has grown.
pub(crate) fn talk(session: &Session, said: &[Turn], turns: u64) -> Result<()> {
    if session.last_seq() == 0 {
        session.append(Message::system_text("You write parsers."))?;
    }
    for (n, turn) in (1..=turns).zip(said.iter().cycle()) {
        session.append(turn.prompt.clone())?;
        session.append(
            Draft::from(turn.reply.clone())
                .model("claude-opus-5")
                .duration_ms(1200),
        )?;
        session.append(turn.result.clone())?;
        let context = session.context(Shape::Anthropic)?;
        if !context.mends().is_empty() || context.skipped() > 0 {
            return Err(format!("the context of turn {n} had to be mended").into());
        }
        if n % COMPACTED_AFTER == 0 {
            session.compact(&Compaction::new(text(2000, 3)).keep(KEPT))?;
        }
    }
    Ok(())
}

/// The messages of a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    prompt: Message,
    reply: Message,
    result: Message,
}

impl Turn {
    /// Returns turns to choose from. Within a context no call's id repeats.
    pub(crate) fn all() -> Result<Vec<Self>> {
        (0..2 * COMPACTED_AFTER as usize).map(Self::new).collect()
    }

    fn new(n: usize) -> Result<Self> {
        let call = format!("toolu_{n:024}");
        let input = json!({"command": text(200, n)});
        let reply = Message::assistant([
            Block::text(text(600, n + 3)),
            ToolUse::new(call.as_str(), "bash", &input)?.into(),
        ]);
        let reply = reply.usage(Usage::new(1200, 340).cache_read(80_000));
        let result = ToolResult::ok(text(2000, n + 5)).answers(call, "bash");
        Ok(Self {
            prompt: Message::user_text(text(300, n)),
            reply,
            result: Message::tool_result(result),
        })
    }

    fn values(&self) -> Result<[serde_json::Value; 3]> {
        let value = |message: &Message| serde_json::to_value(message);
        Ok([
            value(&self.prompt)?,
            value(&self.reply)?,
            value(&self.result)?,
        ])
    }
}

/// Keeps the same conversation as programs without an engine often do: as one value,
/// rewritten every turn.
fn rewrite(path: &Path, turns: u64) -> Result<Duration> {
    let said: Vec<_> = Turn::all()?
        .iter()
        .map(Turn::values)
        .collect::<Result<_>>()?;
    let mut messages = Vec::new();
    let aside: PathBuf = path.with_extension("tmp");
    time(|| {
        for (_, turn) in (1..=turns).zip(said.iter().cycle()) {
            messages.extend(turn.iter().cloned());
            let whole = serde_json::to_vec(&json!({"version": 1, "messages": &messages}))?;
            fs::write(&aside, whole)?;
            fs::rename(&aside, path)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_compacted_and_needs_no_mending() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let session = session(&store, Durability::Os).unwrap();
        let turns = 2 * COMPACTED_AFTER + 10;
        talk(&session, &Turn::all().unwrap(), turns).unwrap();
        assert_eq!(session.last_seq(), 1 + 3 * turns + 2);
        // The last ten turns and the kept messages, with the summary.
        let context = session.context(Shape::Neutral).unwrap();
        let len = context.as_json().len();
        assert!((30_000..60_000).contains(&len), "{len}");
    }

    #[test]
    fn the_naive_file_holds_what_was_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("naive.json");
        rewrite(&path, 5).unwrap();
        let whole: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(whole["messages"].as_array().map(Vec::len), Some(15));
    }
}
