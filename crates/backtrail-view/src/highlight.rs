//! Code in the colours of its language.
//!
//! Loading the languages takes a moment, so it is done on first use, on the thread of a lane.
//! Files that would take long stay plain.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anstyle::{Ansi256Color, AnsiColor, Color, Effects, Style};
use syntect::easy::HighlightLines;
use syntect::highlighting::{self, FontStyle, Theme};
use syntect::parsing::{SyntaxReference, SyntaxSet};
use two_face::theme::{EmbeddedLazyThemeSet, EmbeddedThemeName};

use crate::clean::shown;
use crate::library::{Line, Palette, Span};

/// Beyond any of these, text stays plain.
const MOST_BYTES: usize = 512 << 10;
const MOST_LINES: usize = 10_000;
const LONGEST_LINE: usize = 4 << 10;
/// What is not highlighted by then stays plain.
const MOST_TIME: Duration = Duration::from_millis(500);

struct Languages {
    syntaxes: SyntaxSet,
    themes: EmbeddedLazyThemeSet,
}

fn languages() -> &'static Languages {
    static LOADED: OnceLock<Languages> = OnceLock::new();
    LOADED.get_or_init(|| Languages {
        syntaxes: two_face::syntax::extra_newlines(),
        themes: two_face::theme::extra(),
    })
}

/// Highlights a file, whose language is found by its name or its first line.
pub fn file(path: &str, text: &str, palette: Palette) -> Vec<Line> {
    let lines: Vec<String> = text.lines().map(shown).collect();
    let language = Language::of(path, lines.iter().map(String::as_str), palette);
    let mut highlighter = language.as_ref().map(Language::start);
    let highlighted = lines.into_iter().map(|line| match &mut highlighter {
        Some(highlighter) => highlighter.line(&line),
        None => vec![Span::plain(line)],
    });
    highlighted.collect()
}

/// The language of a file, and the theme that it is shown in.
#[derive(Debug)]
pub struct Language {
    syntax: &'static SyntaxReference,
    theme: &'static Theme,
    until: Instant,
}

impl Language {
    /// Finds the language of a file; `None` if it stays plain.
    pub fn of<'l>(
        path: &str,
        lines: impl Iterator<Item = &'l str> + Clone,
        palette: Palette,
    ) -> Option<Self> {
        if palette == Palette::None || is_too_much(lines.clone()) {
            return None;
        }
        let first = lines.clone().next().unwrap_or_default();
        syntax_of(&languages().syntaxes, path, first).map(|syntax| Self::new(syntax, palette))
    }

    /// Finds the language of a block of code by what is written after its fence: `rust`, `c++`,
    /// `{.python}`, `src/a.rs`. `None` if it stays plain.
    pub fn named<'l>(
        words: &str,
        lines: impl Iterator<Item = &'l str>,
        palette: Palette,
    ) -> Option<Self> {
        let name = fence_name(words);
        let is_plain = PLAIN.contains(&name.to_ascii_lowercase().as_str());
        if palette == Palette::None || is_plain || is_too_much(lines) {
            return None;
        }
        syntax_named(&languages().syntaxes, name).map(|syntax| Self::new(syntax, palette))
    }

    fn new(syntax: &'static SyntaxReference, palette: Palette) -> Self {
        let theme = match palette {
            Palette::None | Palette::Sixteen => EmbeddedThemeName::Ansi,
            Palette::Dark => EmbeddedThemeName::OneHalfDark,
            Palette::Light => EmbeddedThemeName::OneHalfLight,
        };
        Self {
            syntax,
            theme: languages().themes.get(theme),
            until: Instant::now() + MOST_TIME,
        }
    }

    /// Begins at a line that follows nothing.
    pub fn start(&self) -> Highlighter {
        Highlighter {
            lines: HighlightLines::new(self.syntax, self.theme),
            plain: self.theme.settings.foreground,
            until: self.until,
        }
    }
}

fn is_too_much<'l>(lines: impl Iterator<Item = &'l str>) -> bool {
    let (mut bytes, mut count) = (0, 0);
    for line in lines {
        bytes += line.len() + 1;
        count += 1;
        if line.len() > LONGEST_LINE || bytes > MOST_BYTES || count > MOST_LINES {
            return true;
        }
    }
    false
}

fn syntax_of<'s>(syntaxes: &'s SyntaxSet, path: &str, first: &str) -> Option<&'s SyntaxReference> {
    let path = Path::new(path);
    let name = path.file_name().and_then(|name| name.to_str());
    let extension = path.extension().and_then(|extension| extension.to_str());
    let names = name.into_iter().chain(extension);
    let found = names
        .into_iter()
        .find_map(|name| syntaxes.find_syntax_by_extension(name));
    let found = found.or_else(|| syntaxes.find_syntax_by_first_line(first));
    found.filter(|syntax| syntax.name != "Plain Text")
}

/// What people write after the fence of text that is no code.
const PLAIN: [&str; 8] = [
    "",
    "text",
    "txt",
    "plain",
    "plaintext",
    "output",
    "log",
    "none",
];

/// What languages are called that are known by another name.
const ALIASES: [(&str, &str); 14] = [
    ("bash session", "sh"),
    ("c#", "cs"),
    ("csharp", "cs"),
    ("f#", "fs"),
    ("fsharp", "fs"),
    ("golang", "go"),
    ("json5", "json"),
    ("jsonc", "json"),
    ("node", "js"),
    ("objc", "m"),
    ("python3", "py"),
    ("shell", "sh"),
    ("vb", "vbs"),
    ("yml", "yaml"),
];

/// Returns the name of the language in what is written after a fence.
fn fence_name(words: &str) -> &str {
    let words = words.trim().trim_start_matches(['{', '.']);
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | ';');
    let name = words.split(is_end).next().unwrap_or_default();
    // Some write the lines and the path: `12:40:src/a.rs`.
    name.rsplit(':').next().unwrap_or_default()
}

fn syntax_named<'s>(syntaxes: &'s SyntaxSet, name: &str) -> Option<&'s SyntaxReference> {
    let lower = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower);
    let name = alias.map_or(name, |(_, name)| name);
    let by_path = || syntax_of(syntaxes, name, "");
    let found = syntaxes.find_syntax_by_token(name).or_else(by_path);
    found.filter(|syntax| syntax.name != "Plain Text")
}

/// Highlights lines that follow each other.
pub struct Highlighter {
    lines: HighlightLines<'static>,
    /// The colour of text that is nothing special.
    plain: Option<highlighting::Color>,
    until: Instant,
}

impl Highlighter {
    /// Highlights a line, which has no newline.
    pub fn line(&mut self, line: &str) -> Line {
        if Instant::now() > self.until {
            return vec![Span::plain(line)];
        }
        let ended = format!("{line}\n");
        let Ok(regions) = self.lines.highlight_line(&ended, &languages().syntaxes) else {
            return vec![Span::plain(line)];
        };
        let mut spans = Line::new();
        for (style, text) in regions {
            let text = text.trim_end_matches('\n');
            if !text.is_empty() {
                spans.push(Span::new(self.style_of(style), text));
            }
        }
        spans
    }

    fn style_of(&self, style: highlighting::Style) -> Style {
        let is_plain = Some(style.foreground) == self.plain;
        let color = (!is_plain).then(|| color_of(style.foreground)).flatten();
        let mut effects = Effects::new();
        for (font, effect) in [
            (FontStyle::BOLD, Effects::BOLD),
            (FontStyle::ITALIC, Effects::ITALIC),
            (FontStyle::UNDERLINE, Effects::UNDERLINE),
        ] {
            if style.font_style.contains(font) {
                effects |= effect;
            }
        }
        Style::new().fg_color(color).effects(effects)
    }
}

/// Converts a colour to one of 256, which more terminals have than all. Themes for 16 colours
/// name them in place of an amount of red, by a transparency that means nothing else.
fn color_of(color: highlighting::Color) -> Option<Color> {
    match color.a {
        0 => ansi(color.r).map(Color::Ansi),
        1 => None,
        _ => Some(Color::Ansi256(Ansi256Color(nearest(color)))),
    }
}

fn ansi(number: u8) -> Option<AnsiColor> {
    (number < 16)
        .then(|| Ansi256Color(number).into_ansi())
        .flatten()
}

/// Returns the nearest colour of the cube, or of the greys.
fn nearest(color: highlighting::Color) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let parts = [color.r, color.g, color.b];
    let step = |part: u8| {
        let steps = STEPS.iter().enumerate();
        let nearest = steps.min_by_key(|(_, step)| step.abs_diff(part));
        nearest.map_or(0, |(n, _)| n)
    };
    let cube = parts.map(step);
    let off = |chosen: [u8; 3]| -> u32 {
        let pairs = parts.iter().zip(chosen);
        pairs
            .map(|(part, chosen)| u32::from(part.abs_diff(chosen)).pow(2))
            .sum()
    };
    let mean = parts.iter().map(|part| u32::from(*part)).sum::<u32>() / 3;
    let grey = (mean.saturating_sub(3) / 10).min(23);
    let grey_level = (8 + 10 * grey).min(255);
    let grey_level = u8::try_from(grey_level).unwrap_or(u8::MAX);
    let number = match off([grey_level; 3]) < off(cube.map(|n| STEPS[n])) {
        true => 232 + grey as usize,
        false => 16 + 36 * cube[0] + 6 * cube[1] + cube[2],
    };
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn main() {\n\tprintln!(\"hello\");\n}\n";

    fn text_of(lines: &[Line]) -> String {
        let line = |line: &Line| {
            line.iter()
                .map(|span| span.text.as_str())
                .collect::<String>()
        };
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn colors(lines: &[Line]) -> Vec<Color> {
        let spans = lines.iter().flatten();
        spans.filter_map(|span| span.style.get_fg_color()).collect()
    }

    #[test]
    fn highlighting_changes_no_letter() {
        let lines = file("src/main.rs", CODE, Palette::Dark);
        assert_eq!(text_of(&lines), "fn main() {\n    println!(\"hello\");\n}");
        assert!(colors(&lines).len() > 2, "{lines:?}");
    }

    #[test]
    fn a_language_is_found_by_its_first_line() {
        let script = "#!/usr/bin/env python3\nimport os\n";
        assert!(!colors(&file("tool", script, Palette::Dark)).is_empty());
        assert!(colors(&file("tool", "import os\n", Palette::Dark)).is_empty());
    }

    #[test]
    fn a_language_is_found_by_what_follows_a_fence() {
        let code = "fn f() { return 1; } // def x = \"y\"";
        let is_found = |words: &str| Language::named(words, code.lines(), Palette::Dark).is_some();
        for words in [
            "rust",
            "Rust",
            "rs",
            "rust,no_run",
            "{.python}",
            "python3",
            "js title=\"a\"",
            "c++",
            "C#",
            "jsonc",
            "yml",
            "sh",
            "bash",
            "zsh",
            "shell",
            "ts",
            "tsx",
            "typescript",
            "toml",
            "dockerfile",
            "Makefile",
            "src/main.rs",
            "12:40:src/main.rs",
            "golang",
            "sql",
            "html",
        ] {
            assert!(is_found(words), "{words}");
        }
        for words in ["", "text", "nosuchlanguage", "12", "output", "console"] {
            assert!(!is_found(words), "{words}");
        }
        assert!(Language::named("rust", code.lines(), Palette::None).is_none());
        let long = "x".repeat(LONGEST_LINE + 1);
        assert!(Language::named("rust", long.lines(), Palette::Dark).is_none());
    }

    #[test]
    fn light_and_dark_and_few_colours_differ() {
        let of = |palette| colors(&file("a.rs", CODE, palette));
        assert_ne!(of(Palette::Dark), of(Palette::Light));
        let few = of(Palette::Sixteen);
        assert!(!few.is_empty());
        assert!(few.iter().all(|color| matches!(color, Color::Ansi(_))));
        assert_eq!(of(Palette::None), []);
    }

    #[test]
    fn what_would_take_long_stays_plain() {
        let plain = |text: &str| colors(&file("a.rs", text, Palette::Dark)).is_empty();
        let line = "let a = 1; // a line of code\n";
        assert!(!plain(line));
        assert!(plain(&"let a = 1;\n".repeat(MOST_LINES + 1)));
        assert!(plain(&format!(
            "let a = 1; // {}\n",
            "x".repeat(LONGEST_LINE)
        )));
        let long = format!("let a = 1; // {}\n", "x".repeat(4000));
        assert!(plain(&long.repeat(MOST_BYTES / long.len() + 1)));
    }

    #[test]
    fn colours_become_the_nearest_of_256() {
        let color = |r, g, b| highlighting::Color { r, g, b, a: 255 };
        assert_eq!(nearest(color(0, 0, 0)), 16);
        assert_eq!(nearest(color(255, 255, 255)), 231);
        assert_eq!(nearest(color(255, 0, 0)), 196);
        assert_eq!(nearest(color(128, 128, 128)), 244);
    }
}
