//! Styles as classes, whose colours are in the style of a conversation.

use anstyle::{Color, Effects, Style};

/// Returns the classes of text in a style: `a1`…`a15` for a colour of the terminal, `bold`, `dim`,
/// `italic`, `underline`. There is no inline style, which the policy of the
/// pages forbids.
pub fn style_classes(style: Style) -> String {
    const EFFECTS: [(Effects, &str); 4] = [
        (Effects::BOLD, "bold"),
        (Effects::DIMMED, "dim"),
        (Effects::ITALIC, "italic"),
        (Effects::UNDERLINE, "underline"),
    ];
    let color = match style.get_fg_color() {
        Some(Color::Ansi(color)) => Some(format!("a{}", color as u8)),
        Some(Color::Ansi256(color)) if color.0 < 16 => Some(format!("a{}", color.0)),
        _ => None,
    };
    let effects = style.get_effects();
    let names = EFFECTS
        .into_iter()
        .filter(|(effect, _)| effects.contains(*effect));
    let names = names.map(|(_, name)| name.to_owned());
    color.into_iter().chain(names).collect::<Vec<_>>().join(" ")
}
