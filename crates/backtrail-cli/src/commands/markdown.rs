//! A session as Markdown, to be read.

use std::io::{self, Write};
use std::time::Duration;

use backtrail::{
    Block, Message, RecordKind, RecordRef, Run, SessionInfo, Spawned, Stats, ToolResult,
    format_duration,
};

use super::export::Export;
use super::short;
use super::show::changes::Changes;
use crate::error::Result;
use crate::shell::command_line;
use crate::text::{clean, count, grouped, medium};
use crate::ui::unwritable;
use crate::when;

/// How much is shown of a block that this version does not know: it may hold an
/// image.
const OTHER_SHOWN: usize = 2000;

/// Writes a session; returns what could not be written.
pub(super) fn write(export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<String>> {
    let broken = |error: io::Error| unwritable(&error);
    let info = export.info()?;
    let stats = export.reader.stats()?;
    write_head(out, &info, &stats).map_err(broken)?;
    let changes = Changes::find(export.store, export.reader, &info);
    let mut turn = Turn::default();
    let mut unreadable = 0;
    let mut records = export.reader.records()?;
    while let Some(record) = records.next()? {
        let (message, whole) = match record.kind() {
            RecordKind::Message => export.message(&record),
            _ => (None, true),
        };
        unreadable += u64::from(!whole);
        if message.as_ref().is_some_and(Message::is_prompt) {
            turn.end(out, &changes, export).map_err(broken)?;
            turn.begun = Some(record.seq());
        }
        turn.last = record.seq();
        write_record(out, &record, message, &changes, export).map_err(broken)?;
    }
    turn.end(out, &changes, export).map_err(broken)?;
    unreadable += records.damage().count();
    Ok((unreadable > 0)
        .then(|| {
            format!(
                "{} could not be read, or not whole",
                count(unreadable, "place")
            )
        })
        .into_iter()
        .collect())
}

/// Writes what the session is: its title, where and when it was, and what it came to.
fn write_head(out: &mut dyn Write, info: &SessionInfo, stats: &Stats) -> io::Result<()> {
    let title = super::export::title_of(info);
    let title = title.as_deref().unwrap_or("Session");
    writeln!(out, "# {}\n", one_line(title))?;
    let mut facts = vec![format!("`{}`", info.id)];
    facts.extend(info.created_at.map(when::full));
    facts.extend(info.agent.as_deref().map(one_line));
    facts.extend(info.model.as_deref().map(one_line));
    let root = info.workspace_root.as_ref();
    facts.extend(root.map(|root| format!("`{}`", one_line(&root.to_string_lossy()))));
    writeln!(out, "{}\n", facts.join(" · "))?;
    let mut facts = vec![count(stats.turns, "turn")];
    if stats.tool_calls > 0 {
        facts.push(count(stats.tool_calls, "tool call"));
    }
    if stats.usage.total() > 0 {
        facts.push(format!("{} tokens", grouped(stats.usage.total())));
    }
    facts.extend(stats.cost_usd.map(|cost| format!("${cost:.2}")));
    facts.extend(info.tags.iter().map(|tag| format!("#{}", one_line(tag))));
    writeln!(out, "{}", facts.join(" · "))
}

/// The turn that is being written.
#[derive(Default)]
struct Turn {
    begun: Option<u64>,
    last: u64,
}

impl Turn {
    /// Says which files it changed, where that is known.
    fn end(
        &mut self,
        out: &mut dyn Write,
        changes: &Changes,
        export: &mut Export<'_>,
    ) -> io::Result<()> {
        let Some(from) = self.begun.take() else {
            return Ok(());
        };
        match changes.of_turn(from, self.last).as_str() {
            "" => Ok(()),
            changed => writeln!(out, "\n*{}*", one_line(&export.text(changed))),
        }
    }
}

fn write_record(
    out: &mut dyn Write,
    record: &RecordRef<'_>,
    message: Option<Message>,
    changes: &Changes,
    export: &mut Export<'_>,
) -> io::Result<()> {
    match (record.kind(), message) {
        (RecordKind::Message, Some(message)) => write_message(out, record, &message),
        (RecordKind::Message, None) => {
            writeln!(out, "\n## {} · a message that cannot be read", record.seq())
        }
        (RecordKind::Compaction, _) => write_compaction(out, record, export),
        (RecordKind::Run, _) => match record.run() {
            Ok(Some(run)) => write_run(out, record, &run, changes, export),
            _ => Ok(()),
        },
        (RecordKind::Spawned, _) => {
            let Ok(spawned) = serde_json::from_slice::<Spawned>(record.bytes()) else {
                return Ok(());
            };
            let id = short(&spawned.session_id);
            writeln!(out, "\n*a sub-agent began session `{id}`*")
        }
        _ => Ok(()),
    }
}

fn write_run(
    out: &mut dyn Write,
    record: &RecordRef<'_>,
    run: &Run,
    changes: &Changes,
    export: &mut Export<'_>,
) -> io::Result<()> {
    let words = match (run.exit_code, run.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "how it ended is not known".to_owned(),
    };
    let took = format_duration(Duration::from_millis(run.duration_ms));
    writeln!(out, "\n## {} · run · {words}, {took}\n", record.seq())?;
    fence(out, "sh", &export.text(&command_line(&run.argv)))?;
    match changes.of_run(run.after).as_str() {
        "" => Ok(()),
        changed => writeln!(out, "\n*{}*", one_line(&export.text(changed))),
    }
}

fn write_message(out: &mut dyn Write, record: &RecordRef<'_>, message: &Message) -> io::Result<()> {
    let at = record
        .at()
        .map_or_else(String::new, |at| format!(" · {}", when::full(at)));
    let role = one_line(message.role.as_str());
    writeln!(out, "\n## {} · {role}{at}\n", record.seq())?;
    for (n, block) in message.blocks.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        write_block(out, block)?;
    }
    Ok(())
}

fn write_block(out: &mut dyn Write, block: &Block) -> io::Result<()> {
    match block {
        Block::Text(block) => writeln!(out, "{}", clean(block.text.trim_end())),
        Block::Thinking(block) => {
            if block.thinking.trim().is_empty() {
                return writeln!(out, "*thinking, not shown by its provider*");
            }
            writeln!(out, "> *thinking*\n>")?;
            for line in clean(&block.thinking).trim_end().lines() {
                writeln!(out, "> {line}")?;
            }
            Ok(())
        }
        Block::ToolUse(call) => {
            writeln!(out, "**{}**\n", one_line(&call.name))?;
            fence(out, "json", call.input.as_str())
        }
        Block::ToolResult(result) => write_result(out, result),
        Block::Media(media) => {
            writeln!(out, "*{}*", medium(media))
        }
        Block::Other(json) => {
            let shown: String = json.as_str().chars().take(OTHER_SHOWN).collect();
            let rest = if shown.len() < json.as_str().len() {
                "…"
            } else {
                ""
            };
            fence(out, "json", &format!("{shown}{rest}"))
        }
        _ => Ok(()),
    }
}

fn write_result(out: &mut dyn Write, result: &ToolResult) -> io::Result<()> {
    let name = result.tool_name.as_deref().unwrap_or("tool");
    let failed = if result.is_error { " failed" } else { "" };
    writeln!(out, "**{}**{failed}\n", one_line(name))?;
    match result.output_text() {
        Some(text) => fence(out, "text", &text),
        None => fence(out, "json", result.output.as_str()),
    }
}

fn write_compaction(
    out: &mut dyn Write,
    record: &RecordRef<'_>,
    export: &mut Export<'_>,
) -> io::Result<()> {
    writeln!(out, "\n## {} · compaction\n", record.seq())?;
    match record.compaction() {
        Ok(Some(stored)) => {
            let covered = count(stored.removed_message_count, "message");
            writeln!(out, "*in place of {covered}, the model is told:*\n")?;
            writeln!(out, "{}", clean(export.text(&stored.summary).trim_end()))
        }
        _ => writeln!(out, "*a summary that cannot be read*"),
    }
}

/// Writes text as code, in a fence that is longer than any inside it.
fn fence(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let (mut run, mut longest) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let ticks = "`".repeat((longest + 1).max(3));
    let text = clean(text.strip_suffix('\n').unwrap_or(text));
    writeln!(out, "{ticks}{language}\n{text}\n{ticks}")
}

fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
