//! Blame as it is printed: who, the line's number, and its text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use backtrail::workspace::{Blame, BlamedLine, LineAuthor, LineOrigin, OriginKind};
use backtrail_formats::agent_title;

use crate::commands::diff::styled as styled_stream;
use crate::commands::short;
use crate::error::Result;
use crate::layout::{self, BOLD, DIM, Line, Span, cut, pad_start, width_of, wrap};
use crate::pager::Paged;
use crate::text::{one_line, visible, visible_path};
use crate::ui::Ui;
use crate::when;

const SESSION: Style = AnsiColor::Yellow.on_default();
const YOU: Style = AnsiColor::Green.on_default();
/// The narrowest and the widest column for who wrote lines.
const WHO: (usize, usize) = (20, 64);
/// From this width on, the prompt is beside its session; else it is below, if there is room.
const BESIDE: usize = 44;

/// Prints all lines. Lines in a row of one author have it once.
pub(super) fn print(blame: &Blame, ui: &Ui) -> Result<()> {
    let columns = Columns::of(blame, ui.width());
    let mut paged = Paged::new();
    let mut out = io::BufWriter::new(styled_stream(ui, &mut paged));
    for group in groups(blame) {
        let mut who = columns
            .who(blame.origin_of(&group[0]), group.len())
            .into_iter();
        for line in group {
            let who = who.next().unwrap_or_default();
            writeln!(out, "{}", layout::styled(&columns.line(who, line)))?;
        }
    }
    out.flush()?;
    drop(out);
    Ok(paged.finish()?)
}

/// Returns the lines that are shown as those of one author.
fn groups(blame: &Blame) -> impl Iterator<Item = &[BlamedLine]> {
    let is_same =
        |a: &BlamedLine, b: &BlamedLine| is_one_author(blame.origin_of(a), blame.origin_of(b));
    blame.lines.chunk_by(is_same)
}

/// Returns whether lines of both are shown as those of one author.
fn is_one_author(a: &LineOrigin, b: &LineOrigin) -> bool {
    let without_tool = |by: &LineAuthor| match by.clone() {
        LineAuthor::Turn {
            session,
            seq,
            agent_session,
            ..
        } => (session, seq, agent_session, 0),
        LineAuthor::Run { session, command } => (session, None, command, 1),
        LineAuthor::Session { session, .. } => (Some(session), None, None, 2),
        _ => (None, None, None, 3),
    };
    let by = |origin: &LineOrigin| origin.by.iter().map(without_tool).collect::<Vec<_>>();
    let is_yours = a.by == [LineAuthor::You];
    let same_time = a.checkpoint == b.checkpoint || (!is_yours && !a.by.is_empty());
    (a.kind, &a.since, &a.path) == (b.kind, &b.since, &b.path) && by(a) == by(b) && same_time
}

/// How wide the columns are.
struct Columns {
    who: usize,
    number: usize,
    width: Option<usize>,
}

impl Columns {
    fn of(blame: &Blame, width: Option<usize>) -> Self {
        let number = blame
            .lines
            .last()
            .map_or(1, |line| line.number.to_string().len());
        // Short lines leave room for prompts.
        let text = |line: &BlamedLine| width_of(&[Span::plain(&shown(line))]);
        let longest = blame.lines.iter().map(text).max().unwrap_or(0);
        let left = |width: usize| width.saturating_sub(longest + number + 4);
        let most = |width: usize| left(width).max(width * 2 / 5).clamp(WHO.0, WHO.1);
        let most = width.map_or(WHO.1, most);
        let mut columns = Self {
            who: most,
            number,
            width,
        };
        let groups = groups(blame);
        let lines = groups.flat_map(|group| columns.who(blame.origin_of(&group[0]), group.len()));
        let widest = lines.map(|line| width_of(&line)).max().unwrap_or(0);
        columns.who = widest.min(most);
        columns
    }

    /// Returns who wrote lines, on as many rows as there are lines.
    fn who(&self, origin: &LineOrigin, rows: usize) -> Vec<Line> {
        let head = head_of(origin);
        let Some(about) = about(origin) else {
            return vec![cut(&head, self.who)];
        };
        let beside = self.who.saturating_sub(width_of(&head) + 1);
        if self.who < BESIDE && rows > 1 {
            let below = vec![Span::blank(2), Span::new(DIM, &one_line(&about, WHO.1))];
            return vec![cut(&head, self.who), cut(&below, self.who)];
        }
        let mut line = head;
        if beside > 3 {
            let about = one_line(&about, beside);
            line.extend([Span::blank(1), Span::new(DIM, &about)]);
        }
        vec![cut(&line, self.who)]
    }

    fn line(&self, who: Line, line: &BlamedLine) -> Line {
        let room = self.who.saturating_sub(width_of(&who));
        let number = pad_start(&line.number.to_string(), self.number);
        let mut all = who;
        all.push(Span::blank(room + 2));
        all.push(Span::new(DIM, &number));
        all.push(Span::blank(2));
        all.push(Span::plain(&shown(line)));
        match self.width {
            Some(width) => cut(&all, width),
            None => all,
        }
    }
}

/// Returns the text of a line, for a terminal.
pub(in crate::commands) fn shown(line: &BlamedLine) -> String {
    let text = String::from_utf8_lossy(&line.text);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    visible(text).into_owned()
}

/// Returns who wrote lines and when: `c81f2a3b:12 claude-code 14:32`.
fn head_of(origin: &LineOrigin) -> Line {
    let mut head = who_of(origin);
    if let Some(at) = when_of(origin) {
        let comma = if origin.checkpoint.is_none() { "," } else { "" };
        head.push(Span::new(DIM, &format!("{comma} {at}")));
    }
    head
}

/// Returns when lines were written; `None` if that is not known.
pub(in crate::commands) fn when_of(origin: &LineOrigin) -> Option<String> {
    match (origin.kind, origin.checkpoint) {
        (OriginKind::Before | OriginKind::Restored, _) => None,
        (_, Some(_)) => Some(when::brief(origin.at)),
        (_, None) => Some("now".to_owned()),
    }
}

/// Returns who wrote lines: `c81f2a3b:12 claude-code`.
pub(in crate::commands) fn who_of(origin: &LineOrigin) -> Line {
    let mut head = Line::new();
    match origin.kind {
        OriginKind::Before => return vec![Span::new(DIM, "before Backtrail")],
        OriginKind::Restored => return vec![Span::new(DIM, "? restored")],
        OriginKind::Imported => head.push(Span::new(SESSION, "~")),
        _ if origin.since.is_some() => head.push(Span::new(SESSION, "? ")),
        _ => {}
    }
    for (n, by) in origin.by.iter().enumerate() {
        if n > 0 {
            head.push(Span::new(DIM, " or "));
        }
        head.extend(name_of(by));
    }
    if origin.more > 0 {
        head.push(Span::new(DIM, &format!(" or {} more", origin.more)));
    }
    head
}

/// Returns the name of an author: its session and its agent.
fn name_of(by: &LineAuthor) -> Line {
    let agent = |agent: Option<&String>| {
        let agent = agent.map(|agent| format!(" {}", one_line(agent_title(agent), 20)));
        Span::new(Style::new(), &agent.unwrap_or_default())
    };
    let session = |text: &str| Span::new(SESSION, text);
    match by {
        LineAuthor::You => vec![Span::new(YOU, "you")],
        LineAuthor::Turn {
            session: Some(id),
            agent: name,
            seq,
            ..
        } => {
            let seq = seq.map_or_else(String::new, |seq| format!(":{seq}"));
            let id = format!("{}{seq}", short(id));
            vec![session(&id), agent(name.as_ref())]
        }
        LineAuthor::Turn { agent: name, .. } => {
            let name = name.as_deref().map_or("a turn", agent_title);
            vec![session(&one_line(name, 20))]
        }
        LineAuthor::Run {
            session: Some(id), ..
        } => vec![session(&short(id)), Span::plain(" run")],
        LineAuthor::Run { .. } => vec![Span::plain("run")],
        LineAuthor::Session {
            session: id,
            agent: name,
        } => vec![session(&short(id)), agent(name.as_ref())],
        _ => vec![Span::plain("unknown")],
    }
}

/// Returns the first line of the prompt or the command of the first author that has one, and
/// the name that the file had, if it was another one.
pub(in crate::commands) fn about(origin: &LineOrigin) -> Option<String> {
    let text = origin.by.iter().find_map(text_of).unwrap_or_default();
    let text = text.lines().find(|line| !line.trim().is_empty());
    let text = text.map(|text| visible(text.trim()).into_owned());
    let path = origin.path.as_deref().filter(|_| !origin.by.is_empty());
    let old = path.map(|path| format!("(as {})", visible_path(path)));
    let parts: Vec<String> = text.into_iter().chain(old).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn text_of(by: &LineAuthor) -> Option<&str> {
    match by {
        LineAuthor::Turn { prompt, .. } => prompt.as_deref(),
        LineAuthor::Run { command, .. } => command.as_deref(),
        _ => None,
    }
}

/// Prints one line, who wrote it, and the whole prompt.
pub(super) fn print_one(blame: &Blame, ui: &Ui) -> Result<()> {
    let mut paged = Paged::new();
    let mut out = io::BufWriter::new(styled_stream(ui, &mut paged));
    let width = ui.width().unwrap_or(usize::MAX);
    for line in &blame.lines {
        let origin = blame.origin_of(line);
        let text = String::from_utf8_lossy(&line.text);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        let place = format!("{}:{}", visible_path(&blame.path), line.number);
        let first = vec![
            Span::new(BOLD, &place),
            Span::blank(2),
            Span::plain(&visible(text)),
        ];
        let mut rows = vec![first];
        let mut head = head_of(origin);
        if let Some(path) = &origin.path {
            head.push(Span::new(DIM, &format!(" (as {})", visible_path(path))));
        }
        rows.extend(wrap(&head, width));
        for by in &origin.by {
            rows.extend(details(by, width, ui));
        }
        for row in rows {
            writeln!(out, "{}", layout::styled(&row))?;
        }
    }
    out.flush()?;
    drop(out);
    Ok(paged.finish()?)
}

/// Returns the whole prompt or command of an author, and how to open it.
fn details(by: &LineAuthor, width: usize, ui: &Ui) -> Vec<Line> {
    let mut rows = Vec::new();
    if let Some(text) = text_of(by) {
        rows.push(Line::new());
        for line in visible(text.trim_end()).lines() {
            let room = width.saturating_sub(2).max(1);
            for mut row in wrap(&[Span::plain(line)], room) {
                row.insert(0, Span::blank(2));
                rows.push(row);
            }
        }
    }
    if let LineAuthor::Turn {
        session: Some(id),
        seq: Some(seq),
        ..
    } = by
    {
        let open = format!("open it: {} show {}:{seq}", ui.program(), short(id));
        rows.extend([Line::new(), vec![Span::new(DIM, &open)]]);
    }
    rows
}
