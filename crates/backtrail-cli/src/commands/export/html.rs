//! Writes a session as one page of HTML that needs nothing else: to be read, searched and
//! shared.

use std::collections::HashSet;
use std::io::{self, Write};

use backtrail::conversation::{
    Answer, CompactionItem, InjectedKind, InjectedMessage, Item, RelativePaths, Reply, RunItem,
    SpawnedItem, ToolCall, ToolResultItem, TurnEnd,
};
use backtrail::{Block, Run, Store, Timestamp};

use super::frame::{self, Prompt};
use super::markup::{Html, cut};
use super::prose;
use super::tool_call::{self, Call, MOST, Outcome};
use super::{Export, ExportLoss};
use crate::commands::conversation::call::CallView;
use crate::commands::conversation::changes::Changes;
use crate::commands::conversation::prose::{answer_text, block_words, thought_text};
use crate::commands::conversation::{
    self, HIDDEN_THINKING, LOST_SUMMARY, TurnSpending, compaction_words, injected_words, run_words,
    session_prices,
};
use crate::commands::short;
use crate::error::Result;
use crate::shell::command_line;
use crate::text::one_line;

/// No more prompts are listed beside the page.
const MOST_PROMPTS: usize = 5000;

/// Writes a session; returns what could not be written.
pub(super) fn write(export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<ExportLoss>> {
    let info = export.info()?;
    let mut survey = export.survey()?;
    for model in &mut survey.stats.models {
        *model = export.text(model);
    }
    let title = export.title()?;
    frame::write_head(out, &title, &info, &survey)?;
    let changes = Changes::find(export.store, export.reader, &info);
    let mut page = Page {
        out,
        store: export.store,
        changes,
        spending: TurnSpending::new(session_prices(export.store, &info)?),
        paths: export.relative_paths(&info)?,
        name: short(&info.id).to_owned(),
        anchored: HashSet::new(),
        prompts: Vec::new(),
        prompts_left: 0,
    };
    let mut conversation = export.reader.conversation()?;
    while let Some(item) = conversation.next().transpose()? {
        let item = export.redacted(item);
        page.item(&item, export)?;
    }
    page.end_turn("")?;
    let (prompts, left) = (page.prompts, page.prompts_left);
    frame::write_foot(out, &prompts, left)?;
    Ok(ExportLoss::unreadable(conversation.damaged()))
}

struct Page<'a> {
    out: &'a mut dyn Write,
    store: &'a Store,
    changes: Changes,
    spending: TurnSpending,
    paths: RelativePaths,
    /// The session, as commands name it.
    name: String,
    /// The records of this turn that have a place to link to.
    anchored: HashSet<u64>,
    prompts: Vec<Prompt>,
    prompts_left: u64,
}

impl Page<'_> {
    /// Writes an item.
    fn item(&mut self, item: &Item, export: &mut Export<'_>) -> io::Result<()> {
        let mut html = Html::new();
        let out = &mut html;
        match item {
            Item::Prompt(prompt) => self.prompt(out, prompt),
            Item::Injected(message) => self.injected(out, message),
            Item::Reply(reply) => write_reply(out, reply),
            Item::Answer(answer) => self.answer(out, answer),
            Item::Thinking(thinking) => {
                self.write_anchor(out, thinking.seq);
                self.write_thinking(out, &thinking.text, thinking.seq);
            }
            Item::ToolCall(call) => self.call(out, call),
            Item::ToolResult(result) => self.result(out, result),
            Item::Attachment(attachment) => {
                self.write_anchor(out, attachment.seq);
                self.write_block(out, &attachment.block, attachment.seq);
            }
            Item::Spending(spending) => self.spending.add(spending),
            Item::TurnEnd(TurnEnd { first, last, .. }) => {
                let changed = self.changes.of_turn(*first, *last);
                return self.end_turn(&export.text(&changed));
            }
            Item::Compaction(compaction) => self.compaction(out, compaction),
            Item::Spawned(spawned) => self.spawned(out, item, spawned, export),
            Item::Run(RunItem { run: Some(run), .. }) => self.run(out, item.seq(), run, export),
            item => {
                if let Some(remark) = conversation::remark(item) {
                    write_note(out, &remark);
                }
            }
        }
        self.out.write_all(html.as_str().as_bytes())
    }

    /// Returns the command that shows a record in full.
    fn more(&self, seq: u64) -> String {
        format!("backtrail show {}:{seq} --full", self.name)
    }

    /// Writes a prompt: it begins a turn.
    fn prompt(&mut self, html: &mut Html, prompt: &backtrail::conversation::Prompt) {
        let seq = prompt.seq;
        self.anchored.clear();
        self.anchored.insert(seq);
        match self.prompts.len() < MOST_PROMPTS {
            true => self.prompts.push(Prompt {
                seq,
                words: one_line(cut(&prompt.text, 4000).0, 120),
            }),
            false => self.prompts_left += 1,
        }
        html.raw("<article class=\"prompt\"")
            .id(seq)
            .raw("><header><b>User</b>");
        write_when(html, prompt.at);
        write_link(html, seq);
        html.raw("</header>");
        self.write_typed(html, &prompt.text, seq);
        for block in &prompt.attachments {
            self.write_block(html, block, seq);
        }
        html.raw("</article>\n");
    }

    fn answer(&mut self, html: &mut Html, answer: &Answer) {
        let seq = answer.seq;
        html.raw("<article class=\"answer\"");
        match self.anchored.insert(seq) {
            true => {
                html.id(seq).raw(">");
                write_link(html, seq);
            }
            false => drop(html.raw(">")),
        }
        self.write_prose(html, &answer.text, seq);
        html.raw("</article>\n");
    }

    fn call(&mut self, html: &mut Html, call: &ToolCall) {
        self.write_anchor(html, call.seq);
        let result = call.result.as_ref();
        let anchor = result.and_then(|result| self.anchor(result.seq, result.is_alone));
        let view = CallView::new(call, &self.paths);
        let more = self.more(call.seq);
        let outcome = Outcome::of_call(call, &view, &self.paths, anchor, &more);
        Call::new(&view, &more).write(html, outcome.as_ref());
    }

    fn result(&mut self, html: &mut Html, item: &ToolResultItem) {
        let result = &item.result;
        let anchor = self.anchor(result.seq, result.is_alone);
        let more = self.more(result.seq);
        let outcome = Outcome::alone(result, item.success, &self.paths, anchor, &more);
        outcome.write_alone(html, item.name.as_deref().unwrap_or("tool"));
    }

    /// Returns the record that a link to a result leads to, if it needs one.
    fn anchor(&mut self, seq: u64, is_alone: bool) -> Option<u64> {
        (is_alone && self.anchored.insert(seq)).then_some(seq)
    }

    /// Writes the place that a link to a record leads to, unless there is one.
    fn write_anchor(&mut self, html: &mut Html, seq: u64) {
        if self.anchored.insert(seq) {
            html.raw("<div class=\"anchor\"").id(seq).raw("></div>\n");
        }
    }

    /// Writes what a turn changed and what it spent.
    fn end_turn(&mut self, changed: &str) -> io::Result<()> {
        let spent = self.spending.take();
        if changed.is_empty() && spent.is_empty() {
            return Ok(());
        }
        let mut html = Html::new();
        html.raw("<p class=\"used\">");
        html.wrap("<span>", changed, "</span>");
        html.wrap("<span>", &spent.join(" · "), "</span></p>\n");
        self.out.write_all(html.as_str().as_bytes())
    }

    /// Writes what an agent added, folded.
    fn injected(&mut self, html: &mut Html, message: &InjectedMessage) {
        let seq = message.seq;
        if message.kind == InjectedKind::Filler {
            return;
        }
        let name = conversation::injected_name(message);
        html.raw("<details class=\"aside\"");
        if self.anchored.insert(seq) {
            html.id(seq);
        }
        html.raw("><summary><b>");
        html.text(&injected_words(&name, message.kind, &message.text))
            .raw("</b>");
        html.raw("</summary><div class=\"body\">");
        self.write_typed(html, &message.text, seq);
        for block in &message.attachments {
            self.write_block(html, block, seq);
        }
        html.raw("</div></details>\n");
    }

    /// Writes a text as it was typed.
    fn write_typed(&self, html: &mut Html, text: &str, seq: u64) {
        let text = text.trim();
        if !text.is_empty() {
            let (shown, left) = cut(text, MOST);
            html.wrap("<div class=\"typed\">", shown, "</div>");
            tool_call::write_left(html, left, &self.more(seq));
        }
    }

    fn write_thinking(&self, html: &mut Html, text: &str, seq: u64) {
        let text = text.trim();
        if text.is_empty() {
            html.wrap("<p class=\"note\">", HIDDEN_THINKING, "</p>\n");
            return;
        }
        html.raw("<details class=\"thinking\"><summary><b>thinking</b> <span>");
        html.text(&one_line(
            &thought_text(cut(text, 4000).0, &self.paths),
            100,
        ))
        .raw("</span></summary><div class=\"body\">");
        self.write_prose(html, text, seq);
        html.raw("</div></details>\n");
    }

    /// Writes Markdown, as far as there is room for it.
    fn write_prose(&self, html: &mut Html, text: &str, seq: u64) {
        let text = &answer_text(text, &self.paths);
        let (shown, left) = cut(text, MOST);
        prose::write(html, shown);
        tool_call::write_left(html, left, &self.more(seq));
    }

    fn write_block(&self, html: &mut Html, block: &Block, seq: u64) {
        match block {
            Block::Text(block) => self.write_typed(html, &block.text, seq),
            Block::Thinking(block) => self.write_thinking(html, &block.thinking, seq),
            Block::Media(media) => tool_call::write_media(html, media),
            Block::Other(json) => match tool_call::media_of(json) {
                Some(media) => tool_call::write_media(html, &media),
                None => write_note(html, &block_words(json, &self.paths)),
            },
            _ => {}
        }
    }

    fn compaction(&mut self, html: &mut Html, item: &CompactionItem) {
        let seq = item.seq;
        self.anchored.insert(seq);
        html.raw("<section class=\"compaction\"")
            .id(seq)
            .raw("><p class=\"rule\"><span>compaction");
        match &item.stored {
            Some(stored) => {
                html.wrap(
                    "</span></p><details class=\"aside\"><summary><b>summary</b> <span>",
                    &compaction_words(stored),
                    "</span></summary><div class=\"body\">",
                );
                self.write_prose(html, &stored.summary, seq);
                html.raw("</div></details>");
            }
            None => drop(html.wrap(": ", LOST_SUMMARY, "</span></p>")),
        }
        html.raw("</section>\n");
    }

    fn run(&mut self, html: &mut Html, seq: u64, run: &Run, export: &mut Export<'_>) {
        let mut body = Html::new();
        let directory = export.text(&run.directory.to_string_lossy());
        body.wrap(
            "<dl><div><dt>in</dt><dd><code>",
            &directory,
            "</code></dd></div></dl>",
        );
        let changed = self.changes.of_run(run.after);
        if !changed.is_empty() {
            body.wrap("<p>", &export.text(&changed), "</p>");
        }
        let outcome = Outcome {
            failed: run.exit_code != Some(0),
            words: run_words(run),
            body: Html::new(),
        };
        self.write_anchor(html, seq);
        let command = export.text(&command_line(&run.argv));
        Call::named("run", &command, body).write(html, Some(&outcome));
    }

    fn spawned(
        &mut self,
        html: &mut Html,
        item: &Item,
        spawned: &SpawnedItem,
        export: &mut Export<'_>,
    ) {
        let mut words = conversation::remark(item).unwrap_or_default();
        if let Some(spawned) = &spawned.spawned {
            let reader = self.store.read_session(&spawned.session_id);
            let title = reader.and_then(|reader| reader.title());
            if let Ok(Some(title)) = title {
                words += &format!(": {}", one_line(&export.text(&title), 120));
            }
        }
        self.write_anchor(html, item.seq());
        write_note(html, &words);
    }
}

fn write_reply(html: &mut Html, reply: &Reply) {
    html.raw("<header class=\"voice\"><b>Assistant</b>");
    if let Some(model) = &reply.model {
        html.wrap("<span>", &one_line(model, 60), "</span>");
    }
    write_when(html, reply.at);
    html.raw("</header>\n");
}

/// Writes a line that is not of the conversation.
fn write_note(html: &mut Html, words: &str) {
    html.wrap("<p class=\"note\">", words, "</p>\n");
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
    html.wrap(">", &words, " UTC</time>");
}

/// Writes a link to a record.
fn write_link(html: &mut Html, seq: u64) {
    html.raw("<a class=\"link\" href=\"#r")
        .number(seq)
        .raw("\" title=\"Copy a link to here\">#");
    html.number(seq).raw("</a>");
}
