//! What the terminal can show, by the environment; its background it tells when it is asked.

use std::env;

use crate::look::{Background, Look};

/// Asks the terminal for the colour of its background. One that does not know ignores it; the answer
/// is read like a key ([`Input::Background`](crate::event::Input)), whenever it comes.
const QUESTION: &str = "\x1b]11;?\x1b\\";

/// Returns what the terminal can show as far as the environment says, at once.
pub(crate) fn look() -> Look {
    let mut look = by_environment(variable);
    look.background = known_background().unwrap_or_default();
    look
}

/// Returns what to write to the terminal so that it tells its background; `None` if that is known or
/// changes nothing.
pub(crate) fn question(look: Look) -> Option<&'static str> {
    // GNU screen answers with what it cannot read itself.
    let is_needed = look.many_colors && variable("STY").is_none();
    (is_needed && known_background().is_none()).then_some(QUESTION)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn known_background() -> Option<Background> {
    variable("COLORFGBG").as_deref().and_then(background_of)
}

fn by_environment(variable: impl Fn(&str) -> Option<String>) -> Look {
    let term = variable("TERM").unwrap_or_default();
    let color = variable("NO_COLOR").is_none() && term != "dumb" && !term.is_empty();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(&variable);
    let locale = locale.unwrap_or_default().to_lowercase();
    Look {
        color,
        many_colors: color && (variable("COLORTERM").is_some() || has_many_colors(&term)),
        unicode: locale.is_empty() || locale.contains("utf-8") || locale.contains("utf8"),
        background: Background::default(),
    }
}

/// Terminals with names of their own have many colours; the old ones have 8 or 16.
fn has_many_colors(term: &str) -> bool {
    const FEW: [&str; 7] = ["ansi", "linux", "rxvt", "screen", "tmux", "vt100", "xterm"];
    let is_few = term.ends_with("-16color") || term.ends_with("-color") || term.starts_with("vt");
    !is_few && !FEW.contains(&term)
}

/// Reads `foreground;background`, numbers of the 16 colours.
fn background_of(colors: &str) -> Option<Background> {
    let number: u8 = colors.rsplit(';').next()?.parse().ok()?;
    Some(match number {
        7 | 9..=15 => Background::Light,
        _ => Background::Dark,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_of(variables: &[(&str, &str)]) -> Look {
        let find = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        by_environment(find)
    }

    #[test]
    fn colours_follow_the_environment() {
        let term = ("TERM", "xterm-256color");
        assert!(look_of(&[term]).many_colors);
        assert!(!look_of(&[term, ("NO_COLOR", "1")]).color);
        assert!(!look_of(&[term, ("NO_COLOR", "1")]).many_colors);
        assert!(!look_of(&[("TERM", "dumb")]).color);
        let few = look_of(&[("TERM", "xterm-16color")]);
        assert!(few.color && !few.many_colors);
        assert!(!look_of(&[("TERM", "linux")]).many_colors);
        assert!(look_of(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]).many_colors);
        assert!(look_of(&[("TERM", "alacritty")]).many_colors);
    }

    #[test]
    fn signs_follow_the_locale() {
        assert!(look_of(&[]).unicode);
        assert!(look_of(&[("LANG", "de_DE.UTF-8")]).unicode);
        assert!(!look_of(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]).unicode);
    }

    #[test]
    fn the_background_is_read_from_the_environment() {
        assert_eq!(background_of("15;0"), Some(Background::Dark));
        assert_eq!(background_of("0;default;15"), Some(Background::Light));
        assert_eq!(background_of("0;7"), Some(Background::Light));
        assert_eq!(background_of("15;default"), None);
    }
}
