//! Markdown, lightly rendered for a terminal.

use anstyle::{Effects, Style};
use backtrail_view::library::Palette;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::code::CodeBlock;
use super::glyphs::Glyphs;
use super::table::Table;
use crate::layout::{DIM, Line, Span, wrap, wrap_plain};

/// A longer text is shown as it is.
const LONGEST: usize = 1 << 20;

/// What is deeper within quotations and lists is drawn no deeper.
const DEEPEST: usize = 10;

/// Renders Markdown in lines of at most `width` columns; code is highlighted and not wrapped.
pub(super) fn render(text: &str, width: usize, glyphs: &Glyphs, palette: Palette) -> Vec<Line> {
    if text.len() > LONGEST {
        return wrap_plain(text, Style::new(), width);
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = Renderer::new(width, glyphs, palette);
    for event in Parser::new_ext(text, options) {
        renderer.take(event);
    }
    renderer.flush();
    renderer.lines
}

struct Renderer<'a> {
    glyphs: &'a Glyphs,
    palette: Palette,
    width: usize,
    lines: Vec<Line>,
    /// The text of the block that is being read.
    spans: Line,
    styles: Vec<Style>,
    /// What surrounds the block, the outermost first.
    around: Vec<Around>,
    /// How many more there are than are drawn.
    undrawn: usize,
    /// The next number of each list that is open; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The addresses of the links that are open, and where their texts begin.
    links: Vec<(String, usize)>,
    code: Option<CodeBlock>,
    table: Option<Table>,
}

/// A quotation or an item of a list.
struct Around {
    /// What its first line begins with, until that is written.
    first: Option<Span>,
    /// What its other lines begin with.
    rest: Span,
}

impl<'a> Renderer<'a> {
    fn new(width: usize, glyphs: &'a Glyphs, palette: Palette) -> Self {
        Self {
            glyphs,
            palette,
            width,
            lines: Vec::new(),
            spans: Line::new(),
            styles: vec![Style::new()],
            around: Vec::new(),
            undrawn: 0,
            lists: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => {
                self.push(Span::new(DIM, "`"));
                self.text(&text);
                self.push(Span::new(DIM, "`"));
            }
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.begin_block();
                let rule = self.glyphs.rule.repeat(self.width.min(20));
                self.write(vec![Span::new(DIM, &rule)]);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { .. } => {
                self.begin_block();
                self.enter(Effects::BOLD);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = Span::new(DIM, &format!("{} ", self.glyphs.bar));
                self.go_into(Around {
                    first: None,
                    rest: bar,
                });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.code = Some(match kind {
                    CodeBlockKind::Fenced(words) => CodeBlock::fenced(&words),
                    CodeBlockKind::Indented => CodeBlock::default(),
                });
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::Emphasis => self.enter(Effects::ITALIC),
            Tag::Strong => self.enter(Effects::BOLD),
            Tag::Strikethrough => self.enter(Effects::STRIKETHROUGH),
            Tag::Link { dest_url, .. } => self.links.push((dest_url.to_string(), self.length())),
            Tag::Image { dest_url, .. } => {
                self.text("[image: ");
                self.links.push((dest_url.to_string(), self.length()));
            }
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.flush();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => format!("{} ", self.glyphs.bullet),
        };
        let rest = " ".repeat(marker.chars().count());
        self.go_into(Around {
            first: Some(Span::new(DIM, &marker)),
            rest: Span::plain(&rest),
        });
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.leave();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.go_out();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Item => {
                self.flush();
                if self.around.last().is_some_and(|item| item.first.is_some()) {
                    self.write(Line::new());
                }
                self.go_out();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.push_cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.render(self.room(), self.glyphs);
                    lines.into_iter().for_each(|line| self.write(line));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.leave(),
            TagEnd::Link => self.end_link(),
            TagEnd::Image => {
                self.text("]");
                self.end_link();
            }
            _ => {}
        }
    }

    fn go_into(&mut self, around: Around) {
        match self.around.len() < DEEPEST {
            true => self.around.push(around),
            false => self.undrawn += 1,
        }
    }

    fn go_out(&mut self) {
        match self.undrawn.checked_sub(1) {
            Some(less) => self.undrawn = less,
            None => drop(self.around.pop()),
        }
    }

    /// Writes the address of a link behind its text, unless that is the text.
    fn end_link(&mut self) {
        let Some((address, from)) = self.links.pop() else {
            return;
        };
        let mut text: String = self.spans.iter().map(|span| span.text.as_str()).collect();
        let text = text.split_off(from.min(text.len()));
        if !address.is_empty() && text != address && format!("mailto:{text}") != address {
            self.push(Span::new(DIM, &format!(" ({address})")));
        }
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        for line in code.lines(self.palette) {
            self.write([Span::blank(4)].into_iter().chain(line).collect());
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push(text);
            return;
        }
        let style = self.styles.last().copied().unwrap_or_default();
        self.push(Span::new(style, text));
    }

    fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Returns how many bytes of text the block has so far.
    fn length(&self) -> usize {
        self.spans.iter().map(|span| span.text.len()).sum()
    }

    fn enter(&mut self, effect: Effects) {
        let style = self.styles.last().copied().unwrap_or_default();
        self.styles.push(style | effect);
    }

    fn leave(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    /// Ends the block before, with an empty line between.
    fn begin_block(&mut self) {
        self.flush();
        let waits = self.around.last().is_some_and(|item| item.first.is_some());
        let is_blank = |line: &Line| line.iter().all(|span| span.text.trim().is_empty());
        let in_tight_item = waits && !self.lists.is_empty();
        if self.lines.last().is_some_and(|line| !is_blank(line)) && !in_tight_item {
            let rest = self.around.iter().map(|around| around.rest.clone());
            let blank: Line = rest.collect();
            self.lines.push(blank);
        }
    }

    /// Writes the text of the block.
    fn flush(&mut self) {
        if self.table.is_some() || self.spans.is_empty() {
            return;
        }
        let mut spans = std::mem::take(&mut self.spans);
        if let Some(last) = spans.last_mut() {
            last.text.truncate(last.text.trim_end().len());
        }
        for line in wrap(&spans, self.room()) {
            self.write(line);
        }
    }

    /// Returns how wide the text of a block may be.
    fn room(&self) -> usize {
        let around = self
            .around
            .iter()
            .map(|around| around.rest.text.chars().count());
        self.width.saturating_sub(around.sum())
    }

    fn write(&mut self, line: Line) {
        let around = self.around.iter_mut();
        let before = around.map(|it| it.first.take().unwrap_or_else(|| it.rest.clone()));
        let mut whole: Line = before.collect();
        whole.extend(line);
        self.lines.push(whole);
    }
}
