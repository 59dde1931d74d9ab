//! Writes a session as one page of HTML that needs nothing else: to be read, searched and
//! shared.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use backtrail::conversation::{
    Answer, CompactionItem, InjectedKind, InjectedMessage, Item, RelativePaths, Reply, RunItem,
    SpawnedItem, ToolCall, ToolResultItem, TurnEnd, format_duration,
};
use backtrail::{Block, Run, SessionId, SessionInfo, Timestamp};

use super::frame::{self, Prompt};
use super::markup::{Html, cut};
use super::prose;
use super::tool_call::{self, Call, MOST, Outcome};
use super::{Export, ExportLoss};
use crate::commands::conversation::call::CallView;
use crate::commands::conversation::changes::Changes;
use crate::commands::conversation::prose::{answer_text, block_words, thought_text};
use crate::commands::conversation::sub_agents::SubAgents;
use crate::commands::conversation::{
    self, HIDDEN_THINKING, LOST_SUMMARY, TurnSpending, compaction_words, injected_words, run_words,
    session_prices, started_words,
};
use crate::commands::short;
use crate::error::Result;
use crate::shell::command_line;
use crate::text::one_line;

/// No more prompts are listed beside the page.
pub(in crate::commands) const MOST_PROMPTS: usize = 5000;

/// Writes a session; returns what could not be written.
pub(super) fn write(export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<ExportLoss>> {
    let info = export.info()?;
    let mut survey = export.survey()?;
    for model in &mut survey.stats.models {
        *model = export.text(model);
    }
    let title = export.title()?;
    frame::write_head(out, &title, &info, &survey)?;
    let changes = Arc::new(Changes::find(export.store, export.reader, &info));
    let paths = export.relative_paths(&info)?;
    let sub_agents = Arc::new(export.sub_agents());
    let mut page = Page::new(export, &info, changes, sub_agents, paths)?;
    let mut prompts = Prompts::default();
    let mut conversation = page.export.reader.conversation()?;
    while let Some(item) = conversation.next().transpose()? {
        let item = page.export.redacted(item);
        prompts.add(&item);
        out.write_all(page.item(&item).as_bytes())?;
    }
    out.write_all(page.rest().as_bytes())?;
    frame::write_foot(out, &prompts.listed, prompts.left)?;
    Ok(ExportLoss::unreadable(conversation.damaged()))
}

/// The prompts that are listed beside the page.
#[derive(Default)]
struct Prompts {
    listed: Vec<Prompt>,
    left: u64,
}

impl Prompts {
    fn add(&mut self, item: &Item) {
        let Item::Prompt(prompt) = item else {
            return;
        };
        match self.listed.len() < MOST_PROMPTS {
            true => self.listed.push(Prompt {
                seq: prompt.seq,
                words: prompt_words(&prompt.text),
            }),
            false => self.left += 1,
        }
    }
}

/// Returns a prompt in a line.
pub(in crate::commands) fn prompt_words(text: &str) -> String {
    one_line(cut(text, 4000).0, 120)
}

/// Writes the items of a conversation as HTML, all of them or a range.
pub(in crate::commands) struct Page<'a, 'e> {
    pub(in crate::commands) export: &'a mut Export<'e>,
    changes: Arc<Changes>,
    sub_agents: Arc<SubAgents>,
    spending: TurnSpending,
    paths: RelativePaths,
    /// The session, as commands name it.
    name: String,
    /// The records of this turn that have a place to link to.
    anchored: HashSet<u64>,
    /// When the turn began, and its last record so far.
    times: Option<(Timestamp, Timestamp)>,
    /// Whether the beginning of this turn was not read.
    is_amid: bool,
}

impl<'a, 'e> Page<'a, 'e> {
    pub(in crate::commands) fn new(
        export: &'a mut Export<'e>,
        info: &SessionInfo,
        changes: Arc<Changes>,
        sub_agents: Arc<SubAgents>,
        paths: RelativePaths,
    ) -> Result<Self> {
        Ok(Self {
            changes,
            sub_agents,
            spending: TurnSpending::new(session_prices(export.store, info)?),
            paths,
            name: short(&info.id),
            anchored: HashSet::new(),
            times: None,
            is_amid: false,
            export,
        })
    }

    /// Begins within a turn, whose beginning is not read.
    pub(in crate::commands) fn begin_amid(&mut self) {
        self.is_amid = true;
    }

    /// Returns whether the beginning of this turn was not read.
    pub(in crate::commands) fn is_amid(&self) -> bool {
        self.is_amid
    }

    /// Takes what a turn spent, and when it was, from those of its items that were not read.
    pub(in crate::commands) fn read_again<'i>(&mut self, items: impl Iterator<Item = &'i Item>) {
        for item in items {
            self.note(item);
        }
    }

    /// Forgets what is known of the turn.
    pub(in crate::commands) fn forget_turn(&mut self) {
        self.spending.take();
        self.times = None;
    }

    /// Takes note of an item before the first one that is written.
    pub(in crate::commands) fn pass(&mut self, item: &Item) {
        self.note(item);
        match item {
            Item::TurnEnd(_) => self.end_pass(),
            Item::Injected(message) if message.kind == InjectedKind::Filler => {}
            Item::ToolCall(call) => {
                self.anchored.insert(call.seq);
                let result = call.result.as_ref();
                result.map(|result| self.anchor(result.seq, result.is_alone));
            }
            Item::ToolResult(result) => {
                self.anchor(result.result.seq, result.result.is_alone);
            }
            Item::Run(RunItem { run: None, .. }) => {}
            Item::Prompt(_)
            | Item::Injected(_)
            | Item::Answer(_)
            | Item::Thinking(_)
            | Item::Attachment(_)
            | Item::Compaction(_)
            | Item::Spawned(_)
            | Item::Run(_) => {
                self.anchored.insert(item.seq());
            }
            _ => {}
        }
    }

    fn end_pass(&mut self) {
        self.forget_turn();
        self.is_amid = false;
    }

    /// Takes note of what an item says of its turn: what was spent, and when.
    fn note(&mut self, item: &Item) {
        match item {
            Item::Prompt(_) => {
                self.anchored.clear();
                self.times = None;
                self.is_amid = false;
            }
            Item::Spending(spending) => self.spending.add(spending),
            _ => {}
        }
        if let Some(at) = time_of(item) {
            let (first, last) = self.times.unwrap_or((at, at));
            self.times = Some((first, last.max(at)));
        }
    }

    /// Returns an item as HTML; empty if nothing of it is shown.
    pub(in crate::commands) fn item(&mut self, item: &Item) -> String {
        self.note(item);
        let mut html = Html::new();
        let out = &mut html;
        match item {
            Item::Prompt(prompt) => self.prompt(out, prompt),
            Item::Injected(message) => self.injected(out, message),
            Item::Reply(_) if self.is_amid => {}
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
            Item::Spending(_) => {}
            Item::TurnEnd(turn) => self.end_turn(out, turn),
            Item::Compaction(compaction) => self.compaction(out, compaction),
            Item::Spawned(spawned) => self.spawned(out, item, spawned),
            Item::Run(RunItem { run: Some(run), .. }) => self.run(out, item.seq(), run),
            item => {
                if let Some(remark) = conversation::remark(item) {
                    write_note(out, &remark);
                }
            }
        }
        html.into_string()
    }

    /// Returns what was spent outside of turns, at the end of the session.
    pub(in crate::commands) fn rest(&mut self) -> String {
        let mut html = Html::new();
        let spent = self.spending.take();
        if !spent.is_empty() {
            html.raw("<p class=\"used\"><span></span>");
            html.wrap("<span>", &spent.join(" · "), "</span></p>\n");
        }
        html.into_string()
    }

    /// Returns the command that shows a record in full.
    fn more(&self, seq: u64) -> String {
        format!("backtrail show {}:{seq} --full", self.name)
    }

    /// Writes a prompt: it begins a turn.
    fn prompt(&mut self, html: &mut Html, prompt: &backtrail::conversation::Prompt) {
        let seq = prompt.seq;
        self.anchored.insert(seq);
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
        let sub_agents = Arc::clone(&self.sub_agents);
        for session in sub_agents.of_call(&call.id) {
            self.sub_agent(html, session);
        }
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

    /// Writes what a turn changed, what it spent and how long it took.
    fn end_turn(&mut self, html: &mut Html, turn: &TurnEnd) {
        let changed = self.changes.of_turn(turn.first, turn.last);
        let changed = self.export.text(&changed);
        let mut used = self.spending.take();
        used.extend(self.times.take().and_then(took));
        self.is_amid = false;
        if changed.is_empty() && used.is_empty() {
            return;
        }
        html.raw("<p class=\"used turn-end\" data-first=\"")
            .number(turn.first)
            .raw("\" data-last=\"")
            .number(turn.last)
            .raw("\">");
        html.wrap("<span>", &changed, "</span>");
        html.wrap("<span>", &used.join(" · "), "</span></p>\n");
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

    fn run(&mut self, html: &mut Html, seq: u64, run: &Run) {
        let mut body = Html::new();
        let directory = self.export.text(&run.directory.to_string_lossy());
        body.wrap(
            "<dl><div><dt>in</dt><dd><code>",
            &directory,
            "</code></dd></div></dl>",
        );
        let changed = self.changes.of_run(run.after);
        if !changed.is_empty() {
            body.wrap("<p>", &self.export.text(&changed), "</p>");
        }
        let outcome = Outcome {
            failed: run.exit_code != Some(0),
            words: run_words(run),
            body: Html::new(),
        };
        self.write_anchor(html, seq);
        let command = self.export.text(&command_line(&run.argv));
        Call::named("run", &command, body).write(html, Some(&outcome));
    }

    fn spawned(&mut self, html: &mut Html, item: &Item, spawned: &SpawnedItem) {
        self.write_anchor(html, item.seq());
        match &spawned.spawned {
            Some(spawned) => self.sub_agent(html, &spawned.session_id),
            None => write_note(html, &conversation::remark(item).unwrap_or_default()),
        }
    }

    /// Writes which sub-agent a call started. Pages unfold its conversation there.
    fn sub_agent(&mut self, html: &mut Html, session: &SessionId) {
        let mut words = started_words(session);
        let reader = self.export.store.read_session(session);
        let title = reader.and_then(|reader| reader.title());
        if let Ok(Some(title)) = title {
            words += &format!(": {}", one_line(&self.export.text(&title), 120));
        }
        html.raw("<p class=\"note\"")
            .attr("data-session", session.as_ref());
        html.wrap(">", &words, "</p>\n");
    }
}

/// Returns when an item was made, or its result.
fn time_of(item: &Item) -> Option<Timestamp> {
    match item {
        Item::Prompt(item) => item.at,
        Item::Reply(item) => item.at,
        Item::Answer(item) => item.at,
        Item::Thinking(item) => item.at,
        Item::ToolCall(item) => item.result.as_ref().map_or(item.at, |result| result.at),
        Item::ToolResult(item) => item.result.at,
        Item::Attachment(item) => item.at,
        _ => None,
    }
}

/// Says how long a turn took, if that is a second or more.
fn took((first, last): (Timestamp, Timestamp)) -> Option<String> {
    let ms = last.as_millis().saturating_sub(first.as_millis());
    let took = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    (took >= Duration::from_secs(1)).then(|| format_duration(took))
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
