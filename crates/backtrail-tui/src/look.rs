//! How the screens look: signs, colours, and the styles of things.

use backtrail_view::library::Palette;
use ratatui::style::{Color, Modifier, Style};

/// The background of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Background {
    /// Light text on a dark background.
    #[default]
    Dark,
    /// Dark text on a light background.
    Light,
}

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether colours are used.
    pub color: bool,
    /// Whether more than 16 colours are there.
    pub many_colors: bool,
    /// Whether signs outside of ASCII can be shown.
    pub unicode: bool,
    /// The background.
    pub background: Background,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            color: true,
            many_colors: true,
            unicode: true,
            background: Background::Dark,
        }
    }
}

/// The signs of the screens.
#[derive(Debug)]
pub(crate) struct Signs {
    pub(crate) selected: &'static str,
    pub(crate) unread: &'static str,
    pub(crate) pinned: &'static str,
    pub(crate) branch: &'static str,
    pub(crate) sub_agent: &'static str,
    pub(crate) ellipsis: &'static str,
    pub(crate) bar: &'static str,
    pub(crate) bar_parts: &'static [&'static str],
    pub(crate) next_undo: &'static str,
    pub(crate) undone: &'static str,
    pub(crate) marked: &'static str,
    pub(crate) dot: &'static str,
}

const UNICODE: Signs = Signs {
    selected: "▌",
    unread: "●",
    pinned: "★",
    branch: "└ ",
    sub_agent: "◇ ",
    ellipsis: "…",
    bar: "█",
    bar_parts: &["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"],
    next_undo: "→",
    undone: "↶",
    marked: "✓",
    dot: "·",
};

const ASCII: Signs = Signs {
    selected: ">",
    unread: "*",
    pinned: "^",
    branch: "` ",
    sub_agent: "& ",
    ellipsis: "~",
    bar: "#",
    bar_parts: &[""],
    next_undo: ">",
    undone: "<",
    marked: "x",
    dot: "-",
};

impl Look {
    /// The colours of code.
    pub(crate) fn palette(self) -> Palette {
        match (self.color, self.many_colors, self.background) {
            (false, ..) => Palette::None,
            (true, false, _) => Palette::Sixteen,
            (true, true, Background::Dark) => Palette::Dark,
            (true, true, Background::Light) => Palette::Light,
        }
    }

    pub(crate) fn signs(self) -> &'static Signs {
        match self.unicode {
            true => &UNICODE,
            false => &ASCII,
        }
    }

    /// The border of a panel, by whether it has the focus.
    pub(crate) fn border(self, has_focus: bool) -> Style {
        match (has_focus, self.color) {
            (true, true) => Style::new().fg(Color::Cyan),
            (true, false) => Style::new().add_modifier(Modifier::BOLD),
            (false, _) => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// The row that is selected.
    pub(crate) fn selected(self, has_focus: bool) -> Style {
        match (has_focus, self.many_colors && self.color, self.background) {
            (true, true, Background::Dark) => Style::new().bg(Color::Indexed(237)),
            (true, true, Background::Light) => Style::new().bg(Color::Indexed(253)),
            (true, ..) => Style::new().add_modifier(Modifier::REVERSED),
            (false, ..) => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// Less important text.
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A heading.
    pub(crate) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// A colour of the terminal's own 16, if colours are used.
    pub(crate) fn fg(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// Converts a style of the library.
    pub(crate) fn style(self, style: anstyle::Style) -> Style {
        let mut converted = Style::new();
        if self.color {
            converted.fg = style.get_fg_color().map(color_of);
            converted.bg = style.get_bg_color().map(color_of);
        }
        let effects = style.get_effects();
        let pairs = [
            (anstyle::Effects::BOLD, Modifier::BOLD),
            (anstyle::Effects::DIMMED, Modifier::DIM),
            (anstyle::Effects::ITALIC, Modifier::ITALIC),
            (anstyle::Effects::UNDERLINE, Modifier::UNDERLINED),
            (anstyle::Effects::INVERT, Modifier::REVERSED),
            (anstyle::Effects::STRIKETHROUGH, Modifier::CROSSED_OUT),
        ];
        for (effect, modifier) in pairs {
            if effects.contains(effect) {
                converted = converted.add_modifier(modifier);
            }
        }
        converted
    }
}

fn color_of(color: anstyle::Color) -> Color {
    use anstyle::AnsiColor as Ansi;
    match color {
        anstyle::Color::Ansi(ansi) => match ansi {
            Ansi::Black => Color::Black,
            Ansi::Red => Color::Red,
            Ansi::Green => Color::Green,
            Ansi::Yellow => Color::Yellow,
            Ansi::Blue => Color::Blue,
            Ansi::Magenta => Color::Magenta,
            Ansi::Cyan => Color::Cyan,
            Ansi::White => Color::Gray,
            Ansi::BrightBlack => Color::DarkGray,
            Ansi::BrightRed => Color::LightRed,
            Ansi::BrightGreen => Color::LightGreen,
            Ansi::BrightYellow => Color::LightYellow,
            Ansi::BrightBlue => Color::LightBlue,
            Ansi::BrightMagenta => Color::LightMagenta,
            Ansi::BrightCyan => Color::LightCyan,
            Ansi::BrightWhite => Color::White,
        },
        anstyle::Color::Ansi256(index) => Color::Indexed(index.0),
        anstyle::Color::Rgb(rgb) => Color::Rgb(rgb.0, rgb.1, rgb.2),
    }
}
