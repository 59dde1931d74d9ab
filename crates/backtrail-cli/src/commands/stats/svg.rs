//! A plot as a picture: one SVG file, in light and dark.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

use unicode_width::UnicodeWidthStr;

use super::plot::{Plot, PlotRow};
use crate::error::{CommandError, Result};
use crate::files;
use crate::shell::quote_path;
use crate::text::one_line;
use crate::ui::Ui;

/// The height of a row, and where its text is.
const ROW: usize = 24;
const TEXT: usize = 16;
/// The width of a character of the font, at most.
const CHARACTER: usize = 8;
/// The width of the longest bar.
const BAR: usize = 420;
/// The widest name, in characters.
const NAME: usize = 40;
/// How many parts have a colour of their own.
const COLOURS: usize = 8;

/// Fails if the file exists and is not to be replaced.
pub(super) fn check(path: &Path, force: bool) -> Result<()> {
    match !force && path.symlink_metadata().is_ok() {
        true => Err(exists(path)),
        false => Ok(()),
    }
}

fn exists(path: &Path) -> CommandError {
    CommandError::invalid(format!("{} already exists", quote_path(path)))
        .hint("to replace it, add --force")
}

/// Draws a plot into a file.
pub(super) fn write(plot: &Plot, title: &str, path: &Path, force: bool, ui: &Ui) -> Result<()> {
    check(path, force)?;
    let picture = draw(plot, title, Styles::Own);
    let file = match force {
        true => files::replace_private(path),
        false => files::create_private(path),
    };
    let written = file.and_then(|mut file| file.write_all(picture.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => CommandError::io("cannot write the picture", Some(path), &error)
            .hint("name a file in a directory that exists and can be written"),
    })?;
    ui.status(&format!("wrote {}", quote_path(path)));
    Ok(())
}

/// A group with its parts.
struct Group<'a> {
    row: &'a PlotRow,
    parts: Vec<&'a PlotRow>,
}

/// Returns the groups of a plot.
fn groups(plot: &Plot) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &plot.rows {
        match groups.last_mut().filter(|_| row.is_part) {
            Some(group) => group.parts.push(row),
            None => groups.push(Group {
                row,
                parts: Vec::new(),
            }),
        }
    }
    groups
}

/// Returns the names of all parts, the heaviest first. Their places are their colours.
fn part_names<'a>(groups: &[Group<'a>]) -> Vec<&'a str> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for part in groups.iter().flat_map(|group| &group.parts) {
        let sum = sums.entry(&part.name).or_default();
        *sum = sum.saturating_add(part.weight);
    }
    let mut names: Vec<&str> = sums.keys().copied().collect();
    names.sort_by_key(|name| std::cmp::Reverse(sums[name]));
    names
}

/// Where the styles of the classes come from.
#[derive(Debug, Clone, Copy)]
enum Styles {
    /// The picture has them.
    Own,
    /// The page around it has them.
    OfPage,
}

/// Draws a plot for a page that has the styles: of texts `head`, `name`, `number` and `dim`, of
/// areas `page`, `bar` and `c0` to `c8`.
pub(super) fn inline(plot: &Plot, title: &str) -> String {
    draw(plot, title, Styles::OfPage)
}

/// Draws a plot: a bar for each group, which its parts divide.
fn draw(plot: &Plot, title: &str, styles: Styles) -> String {
    let groups = groups(plot);
    let names = part_names(&groups);
    let layout = Layout::of(plot, &groups, title);
    let (legend, rows) = draw_legend(&names, layout.width);
    let top = 2 * ROW + 20 + rows * ROW;
    let (width, height) = (layout.width, top + groups.len() * ROW + 20);
    let styles = match styles {
        Styles::Own => format!("<style>{STYLE}</style>\n"),
        Styles::OfPage => String::new(),
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{0}\">\n<title>{0}</title>\n\
         {styles}<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"head\" x=\"20\" y=\"34\">{0}</text>\n{legend}",
        escaped(title)
    );
    for (at, end) in &layout.ends {
        out += &text("number dim", *end, top - ROW + TEXT, plot.columns[*at]);
    }
    let most = groups.iter().map(|group| group.row.weight).max();
    let scale = BAR as f64 / most.unwrap_or(0).max(1) as f64;
    for (n, group) in groups.iter().enumerate() {
        let y = top + n * ROW;
        out += &text("name", 20, y + TEXT, &one_line(&group.row.name, NAME));
        out += &draw_bar(group, &names, (layout.left, y), scale);
        for (at, end) in &layout.ends {
            out += &text("number", *end, y + TEXT, &group.row.cells[*at]);
        }
    }
    out + "</svg>\n"
}

/// Where things are, from left to right.
struct Layout {
    /// Where bars begin.
    left: usize,
    /// The columns, and where each ends.
    ends: Vec<(usize, usize)>,
    width: usize,
}

impl Layout {
    fn of(plot: &Plot, groups: &[Group<'_>], title: &str) -> Self {
        let names = groups
            .iter()
            .map(|group| one_line(&group.row.name, NAME).width());
        let left = 20 + (names.max().unwrap_or(0) + 2) * CHARACTER;
        let mut end = left + BAR;
        let columns = plot.choices.first().into_iter().flatten();
        let ends = columns.map(|at| {
            let cells = groups.iter().map(|group| group.row.cells[*at].width());
            let widest = cells.max().unwrap_or(0).max(plot.columns[*at].width());
            end += (widest + 2) * CHARACTER;
            (*at, end)
        });
        let ends = ends.collect();
        // The head has a larger font.
        let head = title.width() * (CHARACTER + 2);
        Self {
            left,
            ends,
            width: end.max(20 + head) + 20,
        }
    }
}

/// Draws the colours of parts with their names. Returns how many rows they take.
fn draw_legend(names: &[&str], width: usize) -> (String, usize) {
    let mut out = String::new();
    let (mut x, mut row) = (20, 0);
    let other = names.len() > COLOURS;
    let shown = names.iter().take(COLOURS).copied();
    for (n, name) in shown.chain(other.then_some("other")).enumerate() {
        let name = one_line(name, NAME);
        let room = 20 + (name.width() + 2) * CHARACTER;
        if x > 20 && x + room > width - 20 {
            (x, row) = (20, row + 1);
        }
        let y = 48 + row * ROW;
        let (box_y, text_y) = (y + 4, y + TEXT);
        out += &format!(
            "<rect class=\"c{n}\" x=\"{x}\" y=\"{box_y}\" width=\"14\" height=\"14\" rx=\"2\"/>\n"
        );
        out += &text("dim", x + 20, text_y, &name);
        x += room;
    }
    (out, if names.is_empty() { 0 } else { row + 1 })
}

/// Draws the bar of a group, or those of its parts, one after the other.
fn draw_bar(group: &Group<'_>, names: &[&str], (left, y): (usize, usize), scale: f64) -> String {
    let (y, high) = (y + 4, ROW - 8);
    let rect = |class: &str, x: f64, width: f64, row: &PlotRow| {
        let cell = row.cells.first().map_or("", String::as_str);
        let words = escaped(&format!("{} {cell}", row.name));
        format!(
            "<rect class=\"bar{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{high}\"><title>{words}</title></rect>\n"
        )
    };
    let mut x = left as f64;
    if group.parts.is_empty() && group.row.weight > 0 {
        let width = (group.row.weight as f64 * scale).max(1.0);
        return rect("", x, width, group.row);
    }
    let colour = |part: &PlotRow| {
        let place = names.iter().position(|name| *name == part.name);
        place.unwrap_or(COLOURS).min(COLOURS)
    };
    let mut parts: Vec<&PlotRow> = group.parts.clone();
    parts.retain(|part| part.weight > 0);
    parts.sort_by_key(|part| colour(part));
    let bars = parts.iter().map(|part| {
        let width = part.weight as f64 * scale;
        let bar = rect(&format!(" c{}", colour(part)), x, width, part);
        x += width;
        bar
    });
    bars.collect()
}

/// Draws a text that is not blank.
fn text(class: &str, x: usize, y: usize, text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>\n",
            escaped(text)
        ),
    }
}

const STYLE: &str = "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
fill:#1f2328}.head{font-size:15px;font-weight:600}.number{text-anchor:end}\
.dim{fill:#59636e}.page{fill:#fff}.bar,.c0{fill:#0969da}.c1{fill:#d4a72c}.c2{fill:#1a7f37}.c3{fill:#cf222e}\
.c4{fill:#8250df}.c5{fill:#1b7c83}.c6{fill:#e16f24}.c7{fill:#bf3989}.c8{fill:#818b98}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.page{fill:#0d1117}\
.bar,.c0{fill:#4493f8}.c1{fill:#d29922}.c2{fill:#3fb950}.c3{fill:#f85149}.c4{fill:#ab7df8}.c5{fill:#39c5cf}\
.c6{fill:#f0883e}.c7{fill:#db61a2}.c8{fill:#656c76}}";

/// Returns text for SVG, without what must not be in it.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text, usize::MAX).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, is_part: bool, weight: u64) -> PlotRow {
        PlotRow {
            name: name.to_owned(),
            is_part,
            weight,
            cells: vec!["$1 <b>".to_owned()],
        }
    }

    fn drawn(rows: Vec<PlotRow>) -> String {
        let plot = Plot {
            columns: vec!["COST"],
            choices: vec![vec![0]],
            rows,
        };
        draw(&plot, "a & b", Styles::Own)
    }

    #[test]
    fn a_picture_is_sound_whatever_names_are() {
        let picture = drawn(vec![
            row("<script>&\"\u{1b}[31m", false, 100),
            row("half", false, 50),
            row("none", false, 0),
        ]);
        assert!(picture.contains("&lt;script&gt;&amp;&quot;") && !picture.contains("<script"));
        assert!(!picture.contains('\u{1b}') && picture.contains("<title>a &amp; b</title>"));
        assert!(picture.contains("width=\"420.0\"") && picture.contains("width=\"210.0\""));
        assert_eq!(picture.matches("class=\"bar\"").count(), 2);
    }

    /// Returns the classes, places and widths of the bars.
    fn bars(picture: &str) -> Vec<(String, f64, f64)> {
        let of = |line: &str, name: &str| -> String {
            let (_, value) = line.split_once(&format!("{name}=\"")).expect(line);
            value.split('"').next().expect(line).to_owned()
        };
        let number = |line: &str, name| of(line, name).parse().expect(line);
        let lines = picture.lines().filter(|line| line.contains("class=\"bar"));
        lines
            .map(|line| (of(line, "class"), number(line, " x"), number(line, "width")))
            .collect()
    }

    #[test]
    fn parts_divide_a_bar_and_have_one_colour_each() {
        let picture = drawn(vec![
            row("mon", false, 100),
            row("large", true, 75),
            row("small", true, 25),
            row("tue", false, 50),
            row("small", true, 50),
        ]);
        // Both models weigh 75; then names decide.
        let bars = bars(&picture);
        let seen: Vec<(&str, f64)> = bars
            .iter()
            .map(|(class, _, w)| (class.as_str(), *w))
            .collect();
        assert_eq!(
            seen,
            [("bar c0", 315.0), ("bar c1", 105.0), ("bar c1", 210.0)]
        );
        assert_eq!(bars[1].1, bars[0].1 + 315.0);
        assert_eq!(bars[2].1, bars[0].1);
        for name in ["large", "small"] {
            assert_eq!(picture.matches(&format!(">{name}</text>")).count(), 1);
        }
    }

    #[test]
    fn the_lightest_of_many_parts_share_a_colour() {
        let parts = (0..12).map(|n| row(&format!("m{n}"), true, 100 - n));
        let picture = drawn([row("mon", false, 1134)].into_iter().chain(parts).collect());
        let other = bars(&picture);
        let other = other.iter().filter(|(class, ..)| class == "bar c8");
        assert_eq!(other.count(), 4);
        assert!(picture.contains(">other</text>") && !picture.contains(">m8</text>"));
    }
}
