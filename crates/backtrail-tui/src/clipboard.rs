//! The clipboard: the desktop's where there is one, otherwise the terminal's own (OSC 52), which
//! also works over ssh.

use std::env;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Terminals refuse or cut what is longer.
const MOST_BYTES: usize = 1 << 20;

/// Puts texts on the clipboard.
#[derive(Debug)]
pub(crate) struct Clipboard {
    /// To the thread that has the desktop's clipboard. X11 asks its owner for the text
    /// whenever it is pasted, so the thread lives as long as we do.
    desktop: Option<Sender<String>>,
    in_tmux: bool,
}

impl Clipboard {
    /// Finds out which clipboard there is. `refused` gets texts that the desktop did not take.
    pub(crate) fn new(refused: impl Fn(String) + Send + 'static) -> Self {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let desktop = has_desktop(is_set).then(|| start(refused)).flatten();
        Self {
            desktop,
            in_tmux: is_set("TMUX"),
        }
    }

    /// Puts a text on the clipboard. Returns the sequence to write to the terminal, if that has
    /// to do it.
    pub(crate) fn copy(&self, text: String) -> Result<Option<String>, String> {
        let text = match &self.desktop {
            None => text,
            Some(desktop) => match desktop.send(text) {
                Ok(()) => return Ok(None),
                Err(unsent) => unsent.0,
            },
        };
        self.by_terminal(&text).map(Some)
    }

    /// Returns the sequence by which the terminal puts a text on its clipboard.
    pub(crate) fn by_terminal(&self, text: &str) -> Result<String, String> {
        if text.len() > MOST_BYTES {
            let size = text.len() >> 20;
            return Err(format!(
                "too large for the clipboard of a terminal: {size} MiB"
            ));
        }
        let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
        Ok(match self.in_tmux {
            // tmux takes the first itself, or passes the second on, by its settings.
            true => format!("{sequence}\x1bPtmux;\x1b{sequence}\x1b\\"),
            false => sequence,
        })
    }
}

/// Over ssh a display may be forwarded, but the user's terminal is nearer.
fn has_desktop(is_set: impl Fn(&str) -> bool) -> bool {
    let is_far = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    !is_far && (cfg!(not(target_os = "linux")) || is_set("DISPLAY"))
}

fn start(refused: impl Fn(String) + Send + 'static) -> Option<Sender<String>> {
    let (to, texts) = channel();
    let thread = thread::Builder::new().name("clipboard".to_owned());
    thread.spawn(move || serve(&texts, refused)).ok()?;
    Some(to)
}

fn serve(texts: &Receiver<String>, refused: impl Fn(String)) {
    let mut clipboard = None;
    for text in texts {
        if clipboard.is_none() {
            clipboard = arboard::Clipboard::new().ok();
        }
        let taken = clipboard.as_mut().map(|it| it.set_text(text.as_str()));
        if !matches!(taken, Some(Ok(()))) {
            refused(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_terminal(in_tmux: bool) -> Clipboard {
        Clipboard {
            desktop: None,
            in_tmux,
        }
    }

    #[test]
    fn without_a_desktop_the_terminal_copies() {
        let copied = of_terminal(false).copy("hello \x1b[31m".to_owned());
        assert_eq!(copied.unwrap().unwrap(), "\x1b]52;c;aGVsbG8gG1szMW0=\x07");
    }

    #[test]
    fn in_tmux_the_sequence_is_also_passed_on_to_the_terminal_around_it() {
        let copied = of_terminal(true).copy("a".to_owned()).unwrap().unwrap();
        assert!(copied.starts_with("\x1b]52;c;YQ==\x07"));
        assert!(
            copied.ends_with("\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\"),
            "{copied:?}"
        );
    }

    #[test]
    fn a_text_that_is_too_large_is_refused_and_not_cut() {
        let refused = of_terminal(false).copy("a".repeat(MOST_BYTES + 1));
        assert!(refused.unwrap_err().contains("too large"));
        assert!(of_terminal(false).copy("a".repeat(MOST_BYTES)).is_ok());
    }

    #[test]
    fn over_ssh_a_forwarded_display_is_not_used() {
        if cfg!(target_os = "linux") {
            assert!(has_desktop(|name| name == "DISPLAY"));
            assert!(!has_desktop(|_| false));
        }
        assert!(!has_desktop(|_| true));
    }
}
