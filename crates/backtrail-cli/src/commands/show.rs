//! `backtrail show`: what was said in a session.

use std::io::{self, Write};
use std::time::Duration;

use backtrail::{
    Block, DamageReport, RecordRef, Run, SessionInfo, SessionReader, Store, format_duration,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::list::info_json;
use super::{Answer, relative, require_store, resolve, say_gaps, short};
use crate::args::Global;
use crate::error::Result;
use crate::shell::command_line;
use crate::text::{clean, count, medium, one_line, path_json, size};
use crate::ui::{BOLD, DIM, Ui, unwritable};
use crate::when;

/// Show what was said in a session
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session: its id, the first 4 or more characters of it, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// Go on as the session grows, until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// Show the output of tools whole
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let id = resolve(&store, &args.reference)?;
    let reader = store.read_session(&id)?;
    let view = View {
        ui,
        store: &store,
        reader: &reader,
        full: args.full,
    };
    match (args.follow, ui.json()) {
        (true, _) => view.follow()?,
        (false, true) => view.print_json()?,
        (false, false) => view.print_text()?,
    }
    Ok(Answer::Done)
}

struct View<'a> {
    ui: &'a Ui,
    store: &'a Store,
    reader: &'a SessionReader,
    full: bool,
}

/// How often a follower looks for something new.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);

impl View<'_> {
    fn print_text(&self) -> Result<()> {
        let mut out = self.ui.out();
        let broken = |error: io::Error| unwritable(&error);
        write_header(&mut out, &self.reader.info()?).map_err(broken)?;
        say_gaps(&self.reader.gaps()?, self.ui);
        let mut records = self.reader.records()?;
        let mut unreadable = Vec::new();
        while let Some(record) = records.next()? {
            self.write_record(&mut out, &record, &mut unreadable)
                .map_err(broken)?;
        }
        out.flush().map_err(broken)?;
        self.warn(records.damage(), &unreadable);
        self.warn_unfinished(records.unfinished_bytes());
        Ok(())
    }

    /// Writes one object, message by message: a session can be larger than
    /// memory.
    fn print_json(&self) -> Result<()> {
        let mut out = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
        let broken = |error: io::Error| unwritable(&error);
        let info = info_json(&self.reader.info()?).to_string();
        let open = info.strip_suffix('}').unwrap_or(&info);
        write!(out, "{open},\"messages\":[").map_err(broken)?;
        let mut records = self.reader.records()?;
        let mut unreadable = Vec::new();
        let mut compactions = Vec::new();
        let mut runs = Vec::new();
        let mut separator = "";
        while let Some(record) = records.next()? {
            compactions.extend(compaction_json(&record));
            runs.extend(run_json(&record));
            if write_json(&mut out, &record, separator, &mut unreadable).map_err(broken)? {
                separator = ",";
            }
        }
        let damaged = records.damage().count() + unreadable.len() as u64;
        let (compactions, runs) = (Value::from(compactions), Value::from(runs));
        let gaps = json!(self.reader.gaps()?);
        writeln!(
            out,
            "],\"compactions\":{compactions},\"runs\":{runs},\"damaged\":{damaged},\"gaps\":{gaps}}}"
        )
        .map_err(broken)?;
        out.flush().map_err(broken)?;
        self.warn(records.damage(), &unreadable);
        self.warn_unfinished(records.unfinished_bytes());
        Ok(())
    }

    /// Prints records as they come, a JSON object a line or as text.
    fn follow(&self) -> Result<()> {
        let broken = |error: io::Error| unwritable(&error);
        let mut out = self.ui.out();
        if !self.ui.json() {
            write_header(&mut out, &self.reader.info()?).map_err(broken)?;
        }
        let mut follower = self.reader.follow()?;
        let mut warned = 0;
        let mut last = 0;
        loop {
            let mut unreadable = Vec::new();
            let mut found = false;
            if let Some(record) = follower.poll()? {
                found = true;
                last = record.seq();
                if self.ui.json() {
                    if let Some(compaction) = compaction_json(&record) {
                        let line = json!({"compaction": compaction});
                        writeln!(out, "{line}").map_err(broken)?;
                    }
                    if let Some(run) = run_json(&record) {
                        writeln!(out, "{}", json!({"run": run})).map_err(broken)?;
                    }
                    if write_json(&mut out, &record, "", &mut unreadable).map_err(broken)? {
                        writeln!(out).map_err(broken)?;
                    }
                } else {
                    self.write_record(&mut out, &record, &mut unreadable)
                        .map_err(broken)?;
                }
            }
            let moved = follower.take_moved();
            if let Some(moved) = moved.as_ref().filter(|_| self.ui.json()) {
                let line = json!({"moved": {
                    "because": moved.because.as_str(),
                    "to": moved.seq,
                    "before": last,
                }});
                writeln!(out, "{line}").map_err(broken)?;
            } else if let Some(moved) = moved {
                self.ui.status(&format!(
                    "the conversation went back to record {} ({})",
                    moved.seq,
                    moved.because.as_str()
                ));
            }
            if follower.damage().count() > warned || !unreadable.is_empty() {
                warned = follower.damage().count();
                self.warn(follower.damage(), &unreadable);
            }
            if !found {
                out.flush().map_err(broken)?;
                wait(FOLLOW_INTERVAL).map_err(broken)?;
            }
        }
    }

    fn write_record(
        &self,
        out: &mut impl Write,
        record: &RecordRef<'_>,
        unreadable: &mut Vec<u64>,
    ) -> io::Result<()> {
        if let Ok(Some(compaction)) = record.compaction() {
            write_heading(out, record, "compaction")?;
            return write_indented(out, &compaction.summary);
        }
        if let Ok(Some(run)) = record.run() {
            write_heading(out, record, "run")?;
            return write_indented(out, &run_text(&run));
        }
        let message = match record.message() {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(()),
            Err(_) => {
                unreadable.push(record.seq());
                // Where only a part of it is lost, the rest is shown.
                match record.stored_message() {
                    Ok(Some(message)) => message,
                    _ => return Ok(()),
                }
            }
        };
        write_heading(out, record, &one_line(message.role.as_str(), 40))?;
        for block in &message.blocks {
            self.write_block(out, block)?;
        }
        Ok(())
    }

    fn write_block(&self, out: &mut impl Write, block: &Block) -> io::Result<()> {
        match block {
            Block::Text(block) => write_indented(out, &block.text),
            Block::Thinking(block) if block.thinking.is_empty() => {
                writeln!(
                    out,
                    "      {DIM}(thinking, not shown by its provider){DIM:#}"
                )
            }
            Block::Thinking(block) => {
                writeln!(out, "      {DIM}thinking:{DIM:#}")?;
                write_indented(out, &block.thinking)
            }
            Block::ToolUse(call) => {
                let input = one_line(call.input.as_str(), 400);
                writeln!(out, "      → {} {input}", one_line(&call.name, 60))
            }
            Block::ToolResult(result) => {
                let name = result.tool_name.as_deref().unwrap_or("tool");
                let failed = if result.is_error { " failed" } else { "" };
                writeln!(out, "      ← {}{failed}", one_line(name, 60))?;
                match result.output_text() {
                    Some(text) => self.write_output(out, &text),
                    None => self.write_output(out, result.output.as_str()),
                }
            }
            Block::Media(media) => {
                writeln!(out, "      [{}]", medium(media))
            }
            Block::Other(json) => writeln!(out, "      {}", one_line(json.as_str(), 400)),
            _ => Ok(()),
        }
    }

    /// Writes a tool's output, which is often long and seldom read.
    fn write_output(&self, out: &mut impl Write, text: &str) -> io::Result<()> {
        const SHOWN: usize = 20;
        let lines = text.lines().count();
        if self.full || lines <= SHOWN {
            return write_indented(out, text);
        }
        let shown: Vec<&str> = text.lines().take(SHOWN).collect();
        write_indented(out, &shown.join("\n"))?;
        let more = count((lines - SHOWN) as u64, "more line");
        writeln!(out, "      {DIM}… {more}; --full shows all{DIM:#}")
    }

    fn warn(&self, damage: &DamageReport, unreadable: &[u64]) {
        let hint = format!("backtrail verify {}", short(self.reader.id()));
        if let Some(first) = damage.first().first() {
            let n = damage.count();
            let line = first
                .line
                .map_or_else(String::new, |line| format!(", line {line}"));
            let text = format!(
                "{} skipped; the first: {} in {}{line}; the rest is intact",
                count(n, "damaged place"),
                first.reason,
                relative(self.store, &first.file).display(),
            );
            self.ui.warning(&text, Some(&hint));
        }
        if let Some(first) = unreadable.first() {
            let n = count(unreadable.len() as u64, "message");
            let text =
                format!("{n} of an unknown shape or incomplete; the first is record {first}");
            self.ui.warning(&text, Some(&hint));
        }
    }

    /// Speaks of an unfinished line only if nobody is about to finish it.
    fn warn_unfinished(&self, bytes: u64) {
        if bytes > 0 && matches!(self.reader.speaker(), Ok(None)) {
            let text = format!(
                "the last line is unfinished ({}, never acknowledged); \
                 the next record sets it aside",
                size(bytes)
            );
            self.ui.warning(&text, None);
        }
    }
}

/// Waits a while, or until nobody reads standard output any more: a follower of
/// a quiet session would find that out only with the next record.
#[cfg(unix)]
fn wait(interval: Duration) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let interval = Timespec::try_from(interval).map_err(io::Error::other)?;
    match poll(&mut watched, Some(&interval)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
        Ok(_) => Err(io::ErrorKind::BrokenPipe.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn wait(interval: Duration) -> io::Result<()> {
    std::thread::sleep(interval);
    Ok(())
}

fn write_header(out: &mut impl Write, info: &SessionInfo) -> io::Result<()> {
    let title = one_line(info.title.as_deref().unwrap_or("untitled"), 200);
    writeln!(out, "{BOLD}{title}{BOLD:#}")?;
    let mut facts = vec![info.id.to_string()];
    facts.extend(info.created_at.map(when::full));
    facts.extend(info.agent.as_deref().map(|agent| one_line(agent, 60)));
    facts.extend(info.model.as_deref().map(|model| one_line(model, 60)));
    let root = info.workspace_root.as_ref();
    facts.extend(root.map(|root| one_line(&root.to_string_lossy(), 200)));
    writeln!(out, "{DIM}{}{DIM:#}", facts.join(" · "))?;
    if let Some(origin) = &info.forked_from {
        let at = origin
            .seq
            .map_or_else(String::new, |seq| format!(" at record {seq}"));
        let name = origin.branch_name.as_deref().unwrap_or_default();
        let called = if name.is_empty() {
            String::new()
        } else {
            format!(" as {}", one_line(name, 60))
        };
        let parent = one_line(&origin.parent_session_id, 60);
        writeln!(out, "{DIM}forked from {parent}{at}{called}{DIM:#}")?;
    }
    if let Some(by) = &info.spawned_by {
        let call = one_line(&by.tool_use_id, 60);
        writeln!(
            out,
            "{DIM}begun by the tool call {call} of {} (record {}){DIM:#}",
            by.session_id, by.seq
        )?;
    }
    Ok(())
}

fn write_indented(out: &mut impl Write, text: &str) -> io::Result<()> {
    for line in clean(text).lines() {
        writeln!(out, "      {line}")?;
    }
    Ok(())
}

fn write_heading(out: &mut impl Write, record: &RecordRef<'_>, who: &str) -> io::Result<()> {
    let at = record.at().map_or_else(String::new, when::full);
    let seq = record.seq();
    writeln!(
        out,
        "\n{DIM}{seq:>4}{DIM:#}  {BOLD}{who}{BOLD:#}  {DIM}{at}{DIM:#}"
    )
}

/// Writes a compaction with what is known of its record.
fn compaction_json(record: &RecordRef<'_>) -> Option<Value> {
    let stored = record.compaction().ok()??;
    Some(json!({
        "seq": record.seq(),
        "at": record.at(),
        "count": stored.count,
        "removed_message_count": stored.removed_message_count,
        "keeps_from": stored.keeps_from,
        "summary": stored.summary,
    }))
}

/// Writes a run with what is known of its record.
fn run_json(record: &RecordRef<'_>) -> Option<Value> {
    let run = record.run().ok()??;
    let argv: Vec<_> = run.argv.iter().map(|arg| arg.to_string_lossy()).collect();
    Some(json!({
        "seq": record.seq(),
        "at": record.at(),
        "argv": argv,
        "directory": path_json(&run.directory),
        "started_at": run.started_at,
        "duration_ms": run.duration_ms,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "before": run.before,
        "after": run.after,
    }))
}

/// Writes a command as it was typed, and how it ended.
fn run_text(run: &Run) -> String {
    let ended = match (run.exit_code, run.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "how it ended is not known".to_owned(),
    };
    let took = format_duration(Duration::from_millis(run.duration_ms));
    format!("{}\n{ended}, {took}", command_line(&run.argv))
}

/// Writes a message with what is known of it, after `separator`; returns whether
/// there was one.
fn write_json(
    out: &mut impl Write,
    record: &RecordRef<'_>,
    separator: &str,
    unreadable: &mut Vec<u64>,
) -> io::Result<bool> {
    let json = match record.message_json() {
        Ok(Some(json)) => json,
        Ok(None) => return Ok(false),
        Err(_) => {
            unreadable.push(record.seq());
            match record.stored_message_json() {
                Some(json) => json.into(),
                None => return Ok(false),
            }
        }
    };
    let Ok(message) = serde_json::from_str::<MessageParts<'_>>(&json) else {
        unreadable.push(record.seq());
        return Ok(false);
    };
    let beside = Beside::of(record);
    write!(out, "{separator}{{\"seq\":{}", record.seq())?;
    let parts = [
        ("id", beside.id),
        ("at", beside.at),
        ("role", Some(message.role)),
        ("blocks", Some(message.blocks)),
        ("usage", message.usage),
        ("model", beside.model),
        ("response_id", beside.response_id),
        ("duration_ms", beside.duration_ms),
        ("cost_usd", beside.cost_usd),
    ];
    for (name, value) in parts {
        let value = value.map_or("null", RawValue::get);
        write!(out, ",\"{name}\":{value}")?;
    }
    out.write_all(b"}")?;
    Ok(true)
}

/// What stands beside a message in its record, as the JSON it is on disk.
#[derive(Deserialize, Default)]
struct Beside<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    at: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    response_id: Option<&'a RawValue>,
    #[serde(borrow)]
    duration_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    cost_usd: Option<&'a RawValue>,
}

impl<'a> Beside<'a> {
    fn of(record: &RecordRef<'a>) -> Self {
        serde_json::from_slice(record.bytes()).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct MessageParts<'a> {
    #[serde(borrow)]
    role: &'a RawValue,
    #[serde(borrow)]
    blocks: &'a RawValue,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}
