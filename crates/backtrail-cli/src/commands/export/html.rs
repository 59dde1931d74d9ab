//! A session as one page of HTML that needs nothing else: to be read, searched and handed
//! on. It is written as the records come; what is held back waits for the result of a
//! tool call, within bounds.

use std::io::{self, Write};
use std::time::Duration;

use backtrail::{
    Block, Message, RecordKind, RecordRef, Role, Run, SessionInfo, Spawned, Store, Timestamp,
    format_duration,
};

use super::frame::{self, Prompt};
use super::markup::{Html, cut};
use super::prose;
use super::queue::Queue;
use super::tool::{self, Call, MOST, Outcome};
use super::{Export, title_of};
use crate::commands::short;
use crate::commands::show::changes::Changes;
use crate::error::Result;
use crate::shell::command_line;
use crate::text::{count, grouped, one_line, short_number};
use crate::ui::unwritable;

/// No more prompts are listed beside the page.
const MOST_PROMPTS: usize = 5000;

/// Writes a session; returns what could not be written.
pub(super) fn write(export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<String>> {
    let broken = |error: io::Error| unwritable(&error);
    let info = export.info()?;
    let mut stats = export.reader.stats()?;
    for model in &mut stats.models {
        *model = export.text(model);
    }
    frame::write_head(out, &info, &stats).map_err(broken)?;
    let changes = Changes::find(export.store, export.reader, &info);
    let mut page = Page::new(out, export.store, changes, &info);
    for gap in export.reader.gaps()? {
        page.note(&gap.to_string()).map_err(broken)?;
    }
    let mut unreadable = 0;
    let mut damaged = 0;
    let mut records = export.reader.records()?;
    while let Some(record) = records.next()? {
        let (message, whole) = export.message(&record);
        unreadable += u64::from(!whole);
        page.record(&record, message, export).map_err(broken)?;
        let so_far = records.damage().count();
        if so_far > damaged {
            let words = count(so_far - damaged, "damaged place");
            page.note(&format!("{words} passed over")).map_err(broken)?;
            damaged = so_far;
        }
    }
    page.end_turn(export).map_err(broken)?;
    let (prompts, left_out) = (page.prompts, page.prompts_left);
    frame::write_foot(out, &prompts, left_out).map_err(broken)?;
    let places = unreadable + records.damage().count();
    let told = || format!("{} could not be read, or not whole", count(places, "place"));
    Ok((places > 0).then(told).into_iter().collect())
}

/// Who spoke last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Nobody,
    User,
    Assistant,
}

struct Page<'a> {
    queue: Queue<'a>,
    store: &'a Store,
    changes: Changes,
    /// The session, as commands name it.
    name: String,
    voice: Voice,
    /// The first record of the turn, and the last so far.
    begun: Option<u64>,
    last: u64,
    turn: u64,
    /// The response that was last seen: what it used is told once.
    response: Option<String>,
    prompts: Vec<Prompt>,
    prompts_left: u64,
}

impl<'a> Page<'a> {
    fn new(out: &'a mut dyn Write, store: &'a Store, changes: Changes, info: &SessionInfo) -> Self {
        Self {
            queue: Queue::new(out),
            store,
            changes,
            name: short(&info.id).to_owned(),
            voice: Voice::Nobody,
            begun: None,
            last: 0,
            turn: 0,
            response: None,
            prompts: Vec::new(),
            prompts_left: 0,
        }
    }

    /// Returns the command that shows a record whole.
    fn more(&self, seq: u64) -> String {
        format!("backtrail show {}:{seq} --full", self.name)
    }

    fn record(
        &mut self,
        record: &RecordRef<'_>,
        message: Option<Message>,
        export: &mut Export<'_>,
    ) -> io::Result<()> {
        let seq = record.seq();
        match (record.kind(), message) {
            (RecordKind::Message, Some(message)) => self.message(record, &message, export)?,
            (RecordKind::Message, None) => self.note(&format!("record {seq} cannot be read"))?,
            (RecordKind::Compaction, _) => self.compaction(record, export)?,
            (RecordKind::Run, _) => match record.run() {
                Ok(Some(run)) => self.run(&run, seq, export)?,
                _ => self.note(&format!("run {seq} cannot be read"))?,
            },
            (RecordKind::Spawned, _) => self.spawned(record, export)?,
            // The head tells what a session is called in the end.
            (RecordKind::Note, _) => {}
            (kind, _) => {
                let kind = one_line(kind.as_str(), 40);
                self.note(&format!("record {seq} is of another kind: {kind}"))?;
            }
        }
        self.last = seq;
        Ok(())
    }

    fn message(
        &mut self,
        record: &RecordRef<'_>,
        message: &Message,
        export: &mut Export<'_>,
    ) -> io::Result<()> {
        let is_prompt = message.is_prompt();
        let mut anchored = false;
        if is_prompt {
            self.results(record, message, &mut anchored)?;
            self.end_turn(export)?;
            return self.prompt(record, message);
        }
        match &message.role {
            Role::User if message.is_meta() => self.aside(record, message, "added by the agent")?,
            Role::User => {}
            Role::System => self.aside(record, message, "instructions")?,
            Role::Tool => {}
            Role::Assistant => self.speak(record, export)?,
            Role::Other(role) => self.aside(record, message, &one_line(role, 40))?,
            _ => {}
        }
        if message.role == Role::Assistant {
            return self.answer(record, message, &mut anchored);
        }
        self.results(record, message, &mut anchored)
    }

    /// Writes a prompt: it begins a turn.
    fn prompt(&mut self, record: &RecordRef<'_>, message: &Message) -> io::Result<()> {
        let seq = record.seq();
        self.turn += 1;
        self.begun = Some(seq);
        self.voice = Voice::User;
        let text = message.text();
        match self.prompts.len() < MOST_PROMPTS {
            true => self.prompts.push(Prompt {
                seq,
                words: one_line(cut(&text, 4000).0, 120),
            }),
            false => self.prompts_left += 1,
        }
        let mut html = Html::new();
        html.raw("<article class=\"prompt\" id=\"r")
            .number(seq)
            .raw("\"><header><b>User</b>");
        write_when(&mut html, record.at());
        write_link(&mut html, seq);
        html.raw("</header>");
        for block in &message.blocks {
            match block {
                Block::ToolResult(_) => {}
                Block::Text(block) => {
                    let (shown, left) = cut(block.text.trim(), MOST);
                    html.raw("<div class=\"typed\">").text(shown).raw("</div>");
                    tool::write_left(&mut html, left, &self.more(seq));
                }
                block => self.write_block(&mut html, block, seq),
            }
        }
        html.raw("</article>\n");
        self.put(html)
    }

    /// Says who answers, once for each time that somebody else spoke before.
    fn speak(&mut self, record: &RecordRef<'_>, export: &mut Export<'_>) -> io::Result<()> {
        if self.voice == Voice::Assistant {
            return Ok(());
        }
        self.voice = Voice::Assistant;
        let mut html = Html::new();
        html.raw("<header class=\"voice\"><b>Assistant</b>");
        if let Some(model) = record.details().model {
            html.raw("<span>")
                .text(&one_line(&export.text(&model), 60))
                .raw("</span>");
        }
        write_when(&mut html, record.at());
        html.raw("</header>\n");
        self.put(html)
    }

    fn answer(
        &mut self,
        record: &RecordRef<'_>,
        message: &Message,
        anchored: &mut bool,
    ) -> io::Result<()> {
        let seq = record.seq();
        let more = self.more(seq);
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => {
                    let call = Call::new(call, &more);
                    self.anchor(seq, anchored)?;
                    self.queue.wait(call)?;
                }
                Block::ToolResult(result) => {
                    let anchor = (!std::mem::replace(anchored, true)).then_some(seq);
                    self.result(result, anchor, &more)?;
                }
                Block::Text(block) if block.text.trim().is_empty() => {}
                Block::Text(block) => {
                    let mut html = Html::new();
                    html.raw("<article class=\"answer\"");
                    self.begin(&mut html, seq, anchored);
                    let (shown, left) = cut(&block.text, MOST);
                    prose::write(&mut html, shown);
                    tool::write_left(&mut html, left, &more);
                    html.raw("</article>\n");
                    self.put(html)?;
                }
                block => {
                    let mut html = Html::new();
                    self.write_block(&mut html, block, seq);
                    if !html.is_empty() {
                        self.anchor(seq, anchored)?;
                        self.put(html)?;
                    }
                }
            }
        }
        self.anchor(seq, anchored)?;
        self.used(record, message)
    }

    /// Ends the opening tag of an article, with its anchor if it is the first of its record.
    fn begin(&self, html: &mut Html, seq: u64, anchored: &mut bool) {
        match std::mem::replace(anchored, true) {
            true => drop(html.raw(">")),
            false => {
                html.raw(" id=\"r").number(seq).raw("\">");
                write_link(html, seq);
            }
        }
    }

    /// Writes the place that a link to a record leads to, unless there is one.
    fn anchor(&mut self, seq: u64, anchored: &mut bool) -> io::Result<()> {
        if std::mem::replace(anchored, true) {
            return Ok(());
        }
        let mut html = Html::new();
        html.raw("<div class=\"anchor\" id=\"r")
            .number(seq)
            .raw("\"></div>\n");
        self.put(html)
    }

    /// Says what a response used, once.
    fn used(&mut self, record: &RecordRef<'_>, message: &Message) -> io::Result<()> {
        let Some(usage) = &message.usage else {
            return Ok(());
        };
        let details = record.details();
        if details.response_id.is_some() && details.response_id == self.response {
            return Ok(());
        }
        self.response = details.response_id;
        let all = format!(
            "{} read anew, {} from the cache, {} written to it, {} written",
            grouped(usage.input_tokens),
            grouped(usage.cache_read_input_tokens),
            grouped(usage.cache_creation_input_tokens),
            grouped(usage.output_tokens),
        );
        let mut html = Html::new();
        html.raw("<p class=\"used\"").attr("title", &all).raw(">");
        html.text(&short_number(usage.total())).raw(" tokens");
        if let Some(cost) = details.cost_usd.filter(|cost| *cost > 0.0) {
            html.text(&format!(" · ${cost:.4}"));
        }
        html.raw("</p>\n");
        self.put(html)
    }

    /// Writes what is not of the conversation as one reads it, folded: instructions,
    /// reminders.
    fn aside(&mut self, record: &RecordRef<'_>, message: &Message, name: &str) -> io::Result<()> {
        let text = message.text();
        let seq = record.seq();
        let mut html = Html::new();
        html.raw("<details class=\"aside\" id=\"r")
            .number(seq)
            .raw("\"><summary><b>");
        html.text(name)
            .raw("</b> <span>")
            .text(&one_line(cut(&text, 4000).0, 100));
        html.raw("</span></summary><div class=\"body\">");
        let (shown, left) = cut(&text, MOST);
        html.raw("<div class=\"typed\">").text(shown).raw("</div>");
        tool::write_left(&mut html, left, &self.more(seq));
        for block in &message.blocks {
            if !matches!(block, Block::Text(_) | Block::ToolResult(_)) {
                self.write_block(&mut html, block, seq);
            }
        }
        html.raw("</div></details>\n");
        self.put(html)
    }

    /// Takes in the results that a message has.
    fn results(
        &mut self,
        record: &RecordRef<'_>,
        message: &Message,
        anchored: &mut bool,
    ) -> io::Result<()> {
        let seq = record.seq();
        // A prompt and what stands aside have places of their own.
        *anchored |= message.is_prompt() || message.is_meta();
        let more = self.more(seq);
        for block in &message.blocks {
            match block {
                Block::ToolResult(result) => {
                    let anchor = (!std::mem::replace(anchored, true)).then_some(seq);
                    self.result(result, anchor, &more)?;
                }
                Block::Text(_) if message.role != Role::Tool => {}
                block if message.role == Role::Tool => {
                    let mut html = Html::new();
                    self.write_block(&mut html, block, seq);
                    self.put(html)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn result(
        &mut self,
        result: &backtrail::ToolResult,
        anchor: Option<u64>,
        more: &str,
    ) -> io::Result<()> {
        let outcome = Outcome::new(result, anchor, more);
        let Some(outcome) = self.queue.answer(&result.tool_use_id, outcome)? else {
            return Ok(());
        };
        let mut html = Html::new();
        let name = result.tool_name.as_deref().unwrap_or("tool");
        outcome.write_alone(&mut html, name);
        self.put(html)
    }

    /// Writes a block of any kind.
    fn write_block(&self, html: &mut Html, block: &Block, seq: u64) {
        match block {
            Block::Text(block) => drop(
                html.raw("<div class=\"typed\">")
                    .text(&block.text)
                    .raw("</div>"),
            ),
            Block::Thinking(block) => match block.thinking.trim() {
                "" => drop(html.raw("<p class=\"note\">thinking, not shown by its provider</p>\n")),
                text => {
                    html.raw("<details class=\"thinking\"><summary><b>thinking</b> <span>");
                    html.text(&one_line(cut(text, 4000).0, 100))
                        .raw("</span></summary><div class=\"body\">");
                    let (shown, left) = cut(text, MOST);
                    prose::write(html, shown);
                    tool::write_left(html, left, &self.more(seq));
                    html.raw("</div></details>\n");
                }
            },
            Block::Media(media) => tool::write_media(html, media),
            Block::ToolUse(call) => Call::new(call, &self.more(seq)).write(html, None),
            Block::Other(json) => match tool::media_of(json) {
                Some(media) => tool::write_media(html, &media),
                None => {
                    html.raw("<details class=\"aside\"><summary><b>a block of another kind</b></summary><div class=\"body\">");
                    tool::write_text(html, json.as_str(), &self.more(seq));
                    html.raw("</div></details>\n");
                }
            },
            _ => {}
        }
    }

    fn compaction(&mut self, record: &RecordRef<'_>, export: &mut Export<'_>) -> io::Result<()> {
        self.end_turn(export)?;
        let seq = record.seq();
        let mut html = Html::new();
        html.raw("<section class=\"compaction\" id=\"r")
            .number(seq)
            .raw("\"><p class=\"rule\"><span>");
        match record.compaction() {
            Ok(Some(stored)) => {
                let covered = count(stored.removed_message_count, "message");
                html.text(&format!("compacted: a summary in place of {covered}"));
                html.raw("</span></p><details class=\"aside\"><summary><b>the summary</b></summary><div class=\"body\">");
                let summary = export.text(&stored.summary);
                let (shown, left) = cut(&summary, MOST);
                prose::write(&mut html, shown);
                tool::write_left(&mut html, left, &self.more(seq));
                html.raw("</div></details>");
            }
            _ => drop(html.raw("compacted: a summary that cannot be read</span></p>")),
        }
        html.raw("</section>\n");
        self.put(html)
    }

    fn run(&mut self, run: &Run, seq: u64, export: &mut Export<'_>) -> io::Result<()> {
        let words = match (run.exit_code, run.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "how it ended is not known".to_owned(),
        };
        let took = format_duration(Duration::from_millis(run.duration_ms));
        let mut body = Html::new();
        let directory = export.text(&run.directory.to_string_lossy());
        body.raw("<dl><div><dt>in</dt><dd><code>")
            .text(&directory)
            .raw("</code></dd></div></dl>");
        let changed = self.changes.of_run(run.after);
        if !changed.is_empty() {
            body.raw("<p>").text(&export.text(&changed)).raw("</p>");
        }
        let outcome = Outcome {
            failed: run.exit_code != Some(0),
            words: format!("{words}, {took}"),
            body: Html::new(),
        };
        let mut html = Html::new();
        html.raw("<div class=\"anchor\" id=\"r")
            .number(seq)
            .raw("\"></div>");
        let command = export.text(&command_line(&run.argv));
        Call::run(&command, body).write(&mut html, Some(&outcome));
        self.put(html)
    }

    fn spawned(&mut self, record: &RecordRef<'_>, export: &mut Export<'_>) -> io::Result<()> {
        let Ok(spawned) = serde_json::from_slice::<Spawned>(record.bytes()) else {
            return self.note("a sub-agent began a session");
        };
        let id = short(&spawned.session_id);
        let info = self
            .store
            .read_session(&spawned.session_id)
            .and_then(|reader| reader.info());
        let title = info
            .ok()
            .and_then(|info| title_of(&info).map(|title| export.text(&title)));
        let mut html = Html::new();
        html.raw("<p class=\"note\" id=\"r")
            .number(record.seq())
            .raw("\">a sub-agent began session <code>");
        html.text(id).raw("</code>");
        if let Some(title) = title {
            html.raw(": ").text(&one_line(&title, 120));
        }
        html.raw("</p>\n");
        self.put(html)
    }

    /// Says something that is not of the conversation.
    fn note(&mut self, words: &str) -> io::Result<()> {
        let mut html = Html::new();
        html.raw("<p class=\"note\">").text(words).raw("</p>\n");
        self.put(html)
    }

    fn end_turn(&mut self, export: &mut Export<'_>) -> io::Result<()> {
        self.queue.release_all()?;
        self.voice = Voice::Nobody;
        let Some(from) = self.begun.take() else {
            return Ok(());
        };
        match self.changes.of_turn(from, self.last).as_str() {
            "" => Ok(()),
            changed => self.note(&export.text(changed)),
        }
    }

    fn put(&mut self, html: Html) -> io::Result<()> {
        self.queue.put(html)
    }
}

/// Writes a time; the page shows it in the reader's zone.
pub(super) fn write_when(html: &mut Html, at: Option<Timestamp>) {
    let Some(at) = at else {
        return;
    };
    let utc = at.to_string();
    let words: String = utc.chars().take(16).collect::<String>().replace('T', " ");
    html.raw("<time")
        .attr("datetime", &utc)
        .attr("title", &format!("{utc} (UTC)"));
    html.raw(">").text(&words).raw(" UTC</time>");
}

/// Writes a link to a record.
fn write_link(html: &mut Html, seq: u64) {
    html.raw("<a class=\"link\" href=\"#r")
        .number(seq)
        .raw("\" title=\"Copy a link to here\">#");
    html.number(seq).raw("</a>");
}
