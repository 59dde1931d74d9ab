//! Writes a session as Markdown: a document with a heading for each turn.

mod neutral;

use std::io::{self, Write};

use backtrail::conversation::{
    CompactionItem, InjectedKind, InjectedMessage, Item, Prompt, Question, RelativePaths, RunItem,
    Todo, TodoState, ToolCall, ToolResultItem,
};
use backtrail::{Block, Run, SessionInfo, Timestamp};
use backtrail_formats::agent_title;

use super::conversation::call::{CallView, FileDiff, OutcomeView, Part};
use super::conversation::changes::Changes;
use super::conversation::compare::sign;
use super::conversation::prose::{answer_text, block_words};
use super::conversation::{
    self, HIDDEN_THINKING, LOST_SUMMARY, Survey, TurnSpending, compaction_words, injected_words,
    run_words, session_prices,
};
use super::export::{Export, ExportLoss, escaped};
use crate::error::Result;
use crate::shell::command_line;
use crate::text::{self, clean, medium, plus_note};
use crate::when;

/// How long the heading of a turn is, at most.
const HEADING: usize = 80;

/// Writes a session; returns what could not be written.
pub(super) fn write(export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<ExportLoss>> {
    let info = export.info()?;
    let survey = export.survey()?;
    write_head(out, &export.title()?, &info, &survey)?;
    let mut writer = MarkdownWriter {
        out,
        changes: Changes::find(export.store, export.reader, &info),
        spending: TurnSpending::new(session_prices(export.store, &info)?),
        paths: export.relative_paths(&info)?,
        turn: 0,
    };
    let mut conversation = export.reader.conversation()?;
    while let Some(item) = conversation.next().transpose()? {
        let item = export.redacted(item);
        writer.item(&item, export)?;
    }
    writer.end_turn("")?;
    Ok(ExportLoss::unreadable(conversation.damaged()))
}

/// Writes what the session is: its title, where and when it was, and its numbers.
fn write_head(
    out: &mut dyn Write,
    title: &str,
    info: &SessionInfo,
    survey: &Survey,
) -> io::Result<()> {
    writeln!(out, "# {}\n", one_line(title))?;
    let mut facts = vec![format!("`{}`", info.id)];
    facts.extend(info.created_at.map(when::full));
    facts.extend(info.agent.as_deref().map(|it| one_line(agent_title(it))));
    facts.extend(info.model.as_deref().map(one_line));
    let root = info.workspace_root.as_ref();
    let root = root.map(|root| plain_line(&root.to_string_lossy()));
    facts.extend(root.map(|root| neutral::code_span(&root)));
    writeln!(out, "{}\n", facts.join(" · "))?;
    let mut facts = survey.words();
    facts.extend(info.tags.iter().map(|tag| format!("#{}", one_line(tag))));
    writeln!(out, "{}", facts.join(" · "))?;
    let notes = [plus_note(&survey.spending), survey.elsewhere_note()];
    let mut notes = notes.iter().flatten();
    notes.try_for_each(|note| writeln!(out, "\n{note}"))
}

struct MarkdownWriter<'a> {
    out: &'a mut dyn Write,
    changes: Changes,
    spending: TurnSpending,
    paths: RelativePaths,
    turn: u64,
}

impl MarkdownWriter<'_> {
    fn item(&mut self, item: &Item, export: &mut Export<'_>) -> io::Result<()> {
        match item {
            Item::Prompt(prompt) => self.prompt(prompt),
            Item::Injected(message) => self.injected(message),
            Item::Answer(answer) => {
                let text = answer_text(&answer.text, &self.paths);
                self.text(&text)
            }
            Item::Thinking(thinking) => self.thinking(&thinking.text),
            Item::ToolCall(call) => self.call(call),
            Item::ToolResult(result) => self.result(result),
            Item::Attachment(attachment) => self.block(&attachment.block),
            Item::Spending(spending) => {
                self.spending.add(spending);
                Ok(())
            }
            Item::TurnEnd(turn) => {
                let changed = self.changes.of_turn(turn.first, turn.last);
                self.end_turn(&export.text(&changed))
            }
            Item::Compaction(compaction) => self.compaction(compaction),
            Item::Run(RunItem { run: Some(run), .. }) => self.run(run, export),
            item => match conversation::remark(item) {
                Some(remark) => self.remark(&remark),
                None => Ok(()),
            },
        }
    }

    /// Begins a turn: its heading is the prompt, or how that begins.
    fn prompt(&mut self, prompt: &Prompt) -> io::Result<()> {
        self.turn += 1;
        let line = plain_line(&prompt.text);
        let heading = match line.as_str() {
            "" => "(no text)".to_owned(),
            line => text::one_line(line, HEADING),
        };
        let heading = neutral::line(&heading);
        writeln!(self.out, "\n## {}. {heading}", self.turn)?;
        self.place(prompt.seq, prompt.at)?;
        if line.len() > heading.len() || prompt.text.trim().contains('\n') {
            self.quote(&prompt.text)?;
        }
        self.blocks(&prompt.attachments)
    }

    /// Says when something was, and in which record.
    fn place(&mut self, seq: u64, at: Option<Timestamp>) -> io::Result<()> {
        let at = at.map_or_else(String::new, |at| format!("{} · ", when::full(at)));
        self.remark(&format!("{at}record {seq}"))
    }

    /// Writes a line that is not of the conversation.
    fn remark(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "\n*{}*", one_line(text))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        match text.trim_end() {
            "" => Ok(()),
            text => writeln!(self.out, "\n{}", neutral::text(&clean(text))),
        }
    }

    fn quote(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out)?;
        for line in neutral::text(clean(text.trim()).trim_end()).lines() {
            writeln!(self.out, "{}", format!("> {line}").trim_end())?;
        }
        Ok(())
    }

    /// Begins something folded.
    fn fold(&mut self, summary: &str) -> io::Result<()> {
        writeln!(self.out, "\n<details><summary>{summary}</summary>\n")
    }

    fn end_fold(&mut self) -> io::Result<()> {
        writeln!(self.out, "\n</details>")
    }

    /// Writes what an agent added, folded.
    fn injected(&mut self, message: &InjectedMessage) -> io::Result<()> {
        if message.kind == InjectedKind::Filler {
            return Ok(());
        }
        let name = conversation::injected_name(message);
        let words = injected_words(&name, message.kind, &message.text);
        if message.kind == InjectedKind::Interruption {
            return self.remark(&words);
        }
        self.fold(&summary(&words))?;
        fence(self.out, "text", &message.text)?;
        self.blocks(&message.attachments)?;
        self.end_fold()
    }

    fn thinking(&mut self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return self.remark(HIDDEN_THINKING);
        }
        self.fold("thinking")?;
        let text = self.paths.prose(text).into_owned();
        writeln!(self.out, "{}", neutral::text(clean(&text).trim()))?;
        self.end_fold()
    }

    fn call(&mut self, call: &ToolCall) -> io::Result<()> {
        let view = CallView::new(call, &self.paths);
        let outcome = view.outcome(call, &self.paths);
        self.view(&view, outcome.as_ref(), "")
    }

    fn view(
        &mut self,
        view: &CallView,
        outcome: Option<&OutcomeView>,
        note: &str,
    ) -> io::Result<()> {
        self.fold(&call_summary(view, outcome))?;
        for part in &view.parts {
            self.part(part)?;
        }
        if !note.is_empty() {
            self.remark(note)?;
        }
        if let Some(outcome) = outcome.filter(|outcome| !view.hides_output(outcome)) {
            self.output(outcome)?;
        }
        self.end_fold()
    }

    fn result(&mut self, item: &ToolResultItem) -> io::Result<()> {
        let outcome = OutcomeView::new(&item.result, item.success, &self.paths);
        let name = item.name.as_deref().unwrap_or("tool");
        let line = format!("{}: {}", summary(name), summary(&outcome.words));
        self.fold(&line)?;
        self.output(&outcome)?;
        self.end_fold()
    }

    fn output(&mut self, outcome: &OutcomeView) -> io::Result<()> {
        match outcome.output.as_str() {
            "" => Ok(()),
            output => {
                writeln!(self.out)?;
                fence(self.out, "text", output)
            }
        }
    }

    fn part(&mut self, part: &Part) -> io::Result<()> {
        match part {
            Part::Command(command) => fence(self.out, "sh", command),
            Part::Diff(diff) => self.diff(diff),
            Part::Todos(todos) => todos.iter().try_for_each(|todo| self.todo(todo)),
            Part::Plan(text) | Part::Prompt(text) => {
                writeln!(self.out, "{}", neutral::text(clean(text).trim()))
            }
            Part::Question(question, answer) => self.question(question, answer.as_deref()),
            Part::Fields(fields) => {
                let line = |(name, value): &(String, String)| match name.as_str() {
                    "" => value.clone(),
                    name => format!("{name}: {value}"),
                };
                let lines: Vec<String> = fields.iter().map(line).collect();
                fence(self.out, "text", &lines.join("\n"))
            }
        }
    }

    fn diff(&mut self, diff: &FileDiff) -> io::Result<()> {
        let note = match diff.note.as_str() {
            "" => String::new(),
            note => format!(" ({})", one_line(note)),
        };
        let path = neutral::code_span(&plain_line(&diff.path));
        writeln!(self.out, "{path}{note}\n")?;
        let line = |(change, line): &(_, String)| format!("{}{line}", sign(*change));
        let lines: Vec<String> = diff.lines.iter().map(line).collect();
        match lines.is_empty() {
            true => Ok(()),
            false => fence(self.out, "diff", &lines.join("\n")),
        }
    }

    fn todo(&mut self, todo: &Todo) -> io::Result<()> {
        let (mark, state) = match todo.state {
            TodoState::Open => (" ", ""),
            TodoState::Active => (" ", " *(in progress)*"),
            TodoState::Done => ("x", ""),
            TodoState::Cancelled => (" ", " *(given up)*"),
        };
        writeln!(self.out, "- [{mark}] {}{state}", one_line(&todo.text))
    }

    fn question(&mut self, question: &Question, answer: Option<&str>) -> io::Result<()> {
        writeln!(self.out, "**{}**\n", one_line(&question.text))?;
        for (label, meaning) in &question.options {
            let meaning = match meaning.as_str() {
                "" => String::new(),
                meaning => format!(": {}", one_line(meaning)),
            };
            writeln!(self.out, "- {}{meaning}", one_line(label))?;
        }
        match answer {
            Some(answer) => writeln!(self.out, "\n→ {}\n", one_line(answer)),
            None => Ok(()),
        }
    }

    fn blocks(&mut self, blocks: &[Block]) -> io::Result<()> {
        blocks.iter().try_for_each(|block| self.block(block))
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        match block {
            Block::Text(block) => self.text(&block.text),
            Block::Thinking(block) => self.thinking(&block.thinking),
            Block::Media(media) => self.remark(&medium(media)),
            Block::Other(json) => self.remark(&block_words(json, &self.paths)),
            _ => Ok(()),
        }
    }

    fn run(&mut self, run: &Run, export: &mut Export<'_>) -> io::Result<()> {
        let view = CallView::command("run", &export.text(&command_line(&run.argv)));
        let outcome = OutcomeView::ended(run.exit_code != Some(0), run_words(run));
        let changed = export.text(&self.changes.of_run(run.after));
        self.view(&view, Some(&outcome), &changed)
    }

    fn compaction(&mut self, item: &CompactionItem) -> io::Result<()> {
        self.end_turn("")?;
        writeln!(self.out, "\n---")?;
        self.place(item.seq, item.at)?;
        let Some(stored) = &item.stored else {
            return self.remark(LOST_SUMMARY);
        };
        self.fold(&summary(&compaction_words(stored)))?;
        writeln!(self.out, "{}", neutral::text(clean(&stored.summary).trim()))?;
        self.end_fold()
    }

    /// Writes what a turn changed and what it spent.
    fn end_turn(&mut self, changed: &str) -> io::Result<()> {
        let mut words = Vec::new();
        words.extend((!changed.is_empty()).then(|| changed.to_owned()));
        words.extend(self.spending.take());
        match words.is_empty() {
            true => Ok(()),
            false => self.remark(&words.join(" · ")),
        }
    }
}

/// Returns the line that stands for a folded call.
fn call_summary(view: &CallView, outcome: Option<&OutcomeView>) -> String {
    let mut line = format!("<b>{}</b>", summary(&view.name));
    if !view.with.is_empty() {
        line += &format!(
            " <code>{}</code>",
            summary(&text::one_line(&view.with, 120))
        );
    }
    let end = match (outcome, view.changes) {
        (None, _) => "no result".to_owned(),
        (Some(outcome), _) if outcome.failed => format!("failed: {}", outcome.words),
        (_, Some((added, removed))) => format!("+{added} −{removed}"),
        (Some(outcome), None) => outcome.words.clone(),
    };
    match end.as_str() {
        "" => line,
        end => format!("{line} · {}", summary(&text::one_line(end, 120))),
    }
}

/// Returns a text for the summary of something folded, in which nothing is markup.
fn summary(text: &str) -> String {
    escaped(&plain_line(text))
}

/// Writes text as code, in a fence that is longer than any inside it.
fn fence(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let text = clean(text.strip_suffix('\n').unwrap_or(text));
    let ticks = neutral::fence_of(&text);
    writeln!(out, "{ticks}{language}\n{text}\n{ticks}")
}

/// Returns a text as one line, in which nothing is markup.
fn one_line(text: &str) -> String {
    neutral::line(&plain_line(text))
}

fn plain_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
