//! A session as Markdown, to be read.

use std::io::{self, Write};

use backtrail::{Block, Message, RecordKind, RecordRef, SessionReader, ToolResult};

use crate::error::Result;
use crate::text::{clean, count, medium};
use crate::ui::unwritable;
use crate::when;

/// How much is shown of a block that this version does not know: it may hold an
/// image.
const OTHER_SHOWN: usize = 2000;

/// Writes a session; returns what could not be written.
pub(super) fn write(reader: &SessionReader, out: &mut dyn Write) -> Result<Vec<String>> {
    let broken = |error: io::Error| unwritable(&error);
    let info = reader.info()?;
    let title = info.title.as_deref().unwrap_or("Session");
    writeln!(out, "# {}\n", one_line(title)).map_err(broken)?;
    let mut facts = vec![format!("`{}`", info.id)];
    facts.extend(info.created_at.map(when::full));
    facts.extend(info.agent.as_deref().map(one_line));
    facts.extend(info.model.as_deref().map(one_line));
    writeln!(out, "{}", facts.join(" · ")).map_err(broken)?;
    let mut unreadable = 0;
    let mut records = reader.records()?;
    while let Some(record) = records.next()? {
        match record.kind() {
            RecordKind::Message => {
                let whole = record.message();
                unreadable += u64::from(whole.is_err());
                // Where only a part of it is lost, the rest is written.
                if let Ok(Some(message)) = whole.or_else(|_| record.stored_message()) {
                    write_message(out, &record, &message).map_err(broken)?;
                }
            }
            RecordKind::Compaction => write_compaction(out, &record).map_err(broken)?,
            _ => {}
        }
    }
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
            for line in clean(&block.thinking).lines() {
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

fn write_compaction(out: &mut dyn Write, record: &RecordRef<'_>) -> io::Result<()> {
    writeln!(out, "\n## {} · compaction\n", record.seq())?;
    match record.compaction() {
        Ok(Some(stored)) => writeln!(out, "{}", clean(stored.summary.trim_end())),
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
