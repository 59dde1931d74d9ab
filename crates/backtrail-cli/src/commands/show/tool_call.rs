//! Calls of tools on a page: a line with the result, and what belongs below it.

use anstyle::{AnsiColor, Style};
use backtrail::conversation::{LineChange, Question, Todo, TodoState};
use backtrail_view::library::Palette;
use unicode_width::UnicodeWidthStr;

use super::glyphs::Glyphs;
use super::markdown;
use crate::commands::conversation::call::{CallView, FileDiff, OutcomeView, Part};
use crate::commands::conversation::compare::{shortened, sign};
use crate::layout::{BOLD, DIM, Line, Span, cut, width_of, wrap, wrap_plain};
use crate::text::{clean, count, one_line};

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();
/// How far the parts of a call are indented below its line.
const INDENT: usize = 4;
/// How many lines of a change or a plan are shown, unless all are wanted.
const SHORT: usize = 12;

/// How calls are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallPage {
    pub(super) width: usize,
    pub(super) glyphs: &'static Glyphs,
    /// Everything is shown, and nothing is cut.
    pub(super) full: bool,
    /// An output has at most this many lines.
    pub(super) most_lines: usize,
    /// The colours of code.
    pub(super) palette: Palette,
}

impl CallPage {
    /// Writes a call: its line, and its parts below it. `None` as the outcome is a call
    /// without a result, `live` one whose result may come.
    pub(super) fn call(
        self,
        view: &CallView,
        outcome: Option<&OutcomeView>,
        live: bool,
    ) -> Vec<Line> {
        let ending = |beside: usize| match outcome {
            Some(outcome) => self.ending(view, outcome, beside),
            None if live => Line::new(),
            None => vec![Span::new(DIM, "no result")],
        };
        let beside = ending(view.with.width().min(self.width / 2));
        let with = self.with_of(view, &beside);
        let ending = if with.is_empty() { ending(0) } else { beside };
        let mut lines = vec![self.line(&view.name, with, ending)];
        for part in &view.parts {
            let is_in_line = matches!(part, Part::Command(_)) && !with.is_empty();
            if !is_in_line {
                lines.extend(self.part(view, part));
            }
        }
        if let Some(outcome) = outcome.filter(|_| self.full) {
            lines.extend(self.output(&outcome.output));
        }
        lines
    }

    /// Returns whether something of a call is not shown.
    pub(super) fn folds(self, view: &CallView, outcome: Option<&OutcomeView>) -> bool {
        let is_folded = |part: &Part| match part {
            Part::Diff(diff) => shortened(&diff.lines, SHORT).1 > 0,
            Part::Plan(plan) => plan.lines().count() > SHORT,
            Part::Prompt(_) | Part::Fields(_) => true,
            Part::Command(_) | Part::Todos(_) | Part::Question(..) => false,
        };
        let has_output = outcome.is_some_and(|outcome| !outcome.output.is_empty());
        !self.full && (has_output || view.parts.iter().any(is_folded))
    }

    /// Returns what the line says that a call was called with. A command that has no room
    /// there is whole below it.
    fn with_of<'v>(self, view: &'v CallView, ending: &[Span]) -> &'v str {
        let Some(Part::Command(command)) = view.parts.first() else {
            return &view.with;
        };
        let used = view.name.width() + width_of(ending) + 8;
        let fits = !command.contains('\n') && used + view.with.width() <= self.width;
        if fits { &view.with } else { "" }
    }

    fn line(self, name: &str, with: &str, ending: Line) -> Line {
        let mut line = vec![
            Span::new(DIM, &format!("{} ", self.glyphs.tool)),
            Span::new(BOLD, name),
        ];
        let room = self.width.saturating_sub(width_of(&line));
        let room = room.saturating_sub(width_of(&ending) + 5);
        let with = one_line(with, room.max(8));
        if !with.is_empty() {
            line.push(Span::plain("  "));
            line.push(Span::new(Style::new(), &with));
        }
        if !ending.is_empty() {
            line.push(Span::plain("   "));
            line.extend(ending);
        }
        line
    }

    /// Writes how a call ended: what it changed, or its result in a few words, beside a text of
    /// some columns.
    fn ending(self, view: &CallView, outcome: &OutcomeView, beside: usize) -> Line {
        let mut line = Line::new();
        if let Some((added, removed)) = view.changes.filter(|_| !outcome.failed) {
            line.push(Span::new(ADDED, &format!("+{added}")));
            line.push(Span::new(REMOVED, &format!(" −{removed}")));
        }
        if outcome.words.is_empty() {
            return line;
        }
        let room = self.width.saturating_sub(view.name.width() + beside + 10);
        line.extend(self.words(outcome, room));
        line
    }

    /// Writes the sign and the words of a result in at most `width` columns.
    fn words(self, outcome: &OutcomeView, width: usize) -> Line {
        let (sign, style) = match outcome.failed {
            true => (self.glyphs.failed, BOLD),
            false => (self.glyphs.done, DIM),
        };
        let words = one_line(&outcome.words, width.saturating_sub(2).max(10));
        vec![Span::new(style, sign), Span::new(DIM, &format!(" {words}"))]
    }

    /// Writes a result apart from its call.
    pub(super) fn result(self, tool: &str, outcome: &OutcomeView) -> Vec<Line> {
        let mut line = vec![Span::new(DIM, &format!("{} {tool}  ", self.glyphs.tool))];
        let room = self.width.saturating_sub(width_of(&line));
        line.extend(self.words(outcome, room));
        let mut lines = vec![line];
        if self.full {
            lines.extend(self.output(&outcome.output));
        }
        lines
    }

    fn part(self, view: &CallView, part: &Part) -> Vec<Line> {
        let room = self.width.saturating_sub(INDENT);
        let lines = match part {
            Part::Command(command) => wrap_plain(command, Style::new(), room),
            Part::Diff(diff) => self.diff(diff, view.parts.len() > 1),
            Part::Todos(todos) => todos.iter().flat_map(|todo| self.todo(todo)).collect(),
            Part::Plan(plan) => self.some(markdown::render(plan, room, self.glyphs, self.palette)),
            Part::Question(question, answer) => self.question(question, answer.as_deref()),
            Part::Prompt(prompt) if self.full => wrap_plain(prompt, DIM, room),
            Part::Fields(fields) if self.full => {
                let line = |(name, value): &(String, String)| format!("{name}: {value}");
                let lines: Vec<String> = fields.iter().map(line).collect();
                wrap_plain(&lines.join("\n"), DIM, room)
            }
            Part::Prompt(_) | Part::Fields(_) => Vec::new(),
        };
        lines.into_iter().map(indented).collect()
    }

    /// Writes the change of a file, with its name if there are several.
    fn diff(self, diff: &FileDiff, is_named: bool) -> Vec<Line> {
        let mut lines = Vec::new();
        if is_named {
            let note = match diff.note.as_str() {
                "" => String::new(),
                note => format!("  {note}"),
            };
            lines.push(vec![Span::new(BOLD, &diff.path), Span::new(DIM, &note)]);
        }
        let (shown, left) = match self.full {
            true => (diff.lines.iter().collect(), 0),
            false => shortened(&diff.lines, SHORT),
        };
        lines.extend(shown.into_iter().map(|(change, text)| {
            let style = match change {
                LineChange::Added => ADDED,
                LineChange::Removed => REMOVED,
                LineChange::Hunk => PLACE,
                LineChange::Kept => DIM,
            };
            self.fitted(Span::new(style, &format!("{}{text}", sign(*change))))
        }));
        lines.extend(self.more(left));
        lines
    }

    /// Cuts a line to the width, unless all is wanted.
    fn fitted(self, span: Span) -> Line {
        match self.full {
            true => vec![span],
            false => cut(&[span], self.width.saturating_sub(INDENT)),
        }
    }

    fn todo(self, todo: &Todo) -> Vec<Line> {
        let (sign, style) = match todo.state {
            TodoState::Done => (self.glyphs.todo_done, DIM),
            TodoState::Active => (self.glyphs.todo_active, BOLD),
            TodoState::Open => (self.glyphs.todo_open, Style::new()),
            TodoState::Cancelled => (self.glyphs.todo_dropped, DIM),
        };
        let room = self.width.saturating_sub(INDENT + sign.width() + 1);
        let text = wrap(&[Span::new(style, &todo.text)], room);
        let lines = text.into_iter().enumerate().map(|(n, line)| {
            let sign = match n {
                0 => Span::new(style, &format!("{sign} ")),
                _ => Span::blank(sign.width() + 1),
            };
            std::iter::once(sign).chain(line).collect()
        });
        lines.collect()
    }

    fn question(self, question: &Question, answer: Option<&str>) -> Vec<Line> {
        let room = self.width.saturating_sub(INDENT);
        let mut lines = wrap(&[Span::new(BOLD, &question.text)], room);
        for (label, meaning) in &question.options {
            let mut option = vec![Span::plain(&format!("  {} {label}", self.glyphs.bullet))];
            if !meaning.is_empty() {
                option.push(Span::new(DIM, &format!(": {meaning}")));
            }
            lines.extend(match self.full {
                true => wrap(&option, room),
                false => vec![cut(&option, room)],
            });
        }
        if let Some(answer) = answer {
            let answer = format!("{} {answer}", self.glyphs.here);
            lines.extend(wrap(&[Span::plain(&answer)], room));
        }
        lines
    }

    /// Returns the beginning of some lines, unless all are wanted.
    fn some(self, mut lines: Vec<Line>) -> Vec<Line> {
        if self.full || lines.len() <= SHORT + 2 {
            return lines;
        }
        let left = lines.len() - SHORT;
        lines.truncate(SHORT);
        lines.extend(self.more(left));
        lines
    }

    fn more(self, left: usize) -> Option<Line> {
        let hint = if self.most_lines == usize::MAX {
            " (--full)"
        } else {
            ""
        };
        let words = format!("… {}{hint}", count(left, "more line"));
        (left > 0).then(|| vec![Span::new(DIM, &words)])
    }

    /// Writes an output, whole.
    fn output(self, output: &str) -> impl Iterator<Item = Line> {
        let lines: Vec<Line> = output
            .lines()
            .take(self.most_lines)
            .map(|line| indented(vec![Span::new(DIM, &clean(line))]))
            .collect();
        lines.into_iter()
    }
}

fn indented(line: Line) -> Line {
    match line.is_empty() {
        true => line,
        false => std::iter::once(Span::blank(INDENT)).chain(line).collect(),
    }
}
