//! A move that was interrupted, and what became of it.

use std::path::Path;

use backtrail::{Recovered, SessionId, Store, Verb, Workspace};

use super::moves::{verb_name, workspace_of};
use crate::error::{CommandError, Result, full_text};
use crate::text::{grouped, one_line, visible_path};
use crate::ui::Ui;
use crate::when;

/// What it means to a command that a move cannot be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It only reads, and can go on.
    ToRead,
    /// It changes something, and must not go on.
    ToWrite,
}

impl Finish {
    /// Finishes a move that a crash interrupted, and says so.
    pub(crate) fn finish(self, workspace: &Workspace, ui: &Ui) -> Result<()> {
        let what = "a rewind was interrupted and cannot be finished";
        match (workspace.recover(), self) {
            (Ok(None), Self::ToRead) => {
                if workspace.is_moving().unwrap_or(false) {
                    ui.warning("files are being moved here by another process", None);
                }
            }
            (Ok(None), Self::ToWrite) => {}
            (Ok(Some(recovered)), _) => {
                let text = words(&Told::from(&recovered));
                match ui.json() {
                    true => ui.warning(&text, None),
                    false => ui.status(&text),
                }
            }
            (Err(error), Self::ToWrite) => return Err(CommandError::from(error).context(what)),
            (Err(error), Self::ToRead) => {
                ui.warning(&format!("{what}: {}", full_text(&error)), None);
            }
        }
        Ok(())
    }
}

/// Finishes a move that was interrupted where a session works, before anybody speaks in
/// it. Whoever opens the session does so as well, and fails where that cannot be done.
pub(crate) fn before_speaking(store: &Store, session: &SessionId, ui: &Ui) {
    if let Ok(Some(workspace)) = workspace_of(store, session) {
        Finish::ToRead.finish(&workspace, ui).ok();
    }
}

/// What there is to tell of a move that was interrupted.
struct Told<'a> {
    verb: Verb,
    at: String,
    given_up: bool,
    abandoned: Option<&'a str>,
    left: Vec<(&'a Path, &'a str)>,
    chat_went_on: bool,
}

impl<'a> From<&'a Recovered> for Told<'a> {
    fn from(recovered: &'a Recovered) -> Self {
        let left = recovered.left.iter();
        Self {
            verb: recovered.verb,
            at: when::brief(recovered.begun_at),
            given_up: recovered.now.is_none(),
            abandoned: recovered.abandoned.as_deref(),
            left: left.map(|left| (&*left.path, &*left.why)).collect(),
            chat_went_on: recovered.chat_went_on,
        }
    }
}

/// Says what became of it: in one line, and one more where the conversation stayed.
fn words(told: &Told<'_>) -> String {
    let verb = verb_name(told.verb);
    let Told { at, left, .. } = told;
    let mut text = match (told.abandoned, told.given_up) {
        (Some(why), _) => format!(
            "the {verb} of {at} was interrupted and cannot be finished: {why}; the files stay as \
             they were left"
        ),
        (None, false) => format!("finished the {verb} of {at} that was interrupted"),
        (None, true) => format!("the {verb} of {at} was interrupted; everything was put back"),
    };
    if let (Some(_), [(path, why), ..]) = (told.abandoned, &left[..]) {
        text += &format!("; {} {}", visible_path(path), one_line(why, 60));
    } else if !left.is_empty() {
        text += &format!("; {}", left_words(left));
    }
    if told.chat_went_on {
        text += "; the conversation had gone on and stays where it is";
    }
    text
}

fn left_words(left: &[(&Path, &str)]) -> String {
    const NAMED: usize = 5;
    let named = left.iter().take(NAMED);
    let mut names: Vec<String> = named
        .map(|(path, why)| format!("{} ({})", visible_path(path), one_line(why, 60)))
        .collect();
    if left.len() > NAMED {
        names.push(format!("and {} more", grouped((left.len() - NAMED) as u64)));
    }
    let files = match left.len() {
        1 => "1 file was left alone".to_owned(),
        n => format!("{} files were left alone", grouped(n as u64)),
    };
    format!("{files}: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<'a>() -> Told<'a> {
        Told {
            verb: Verb::Rewind,
            at: "14:11".to_owned(),
            given_up: false,
            abandoned: None,
            left: Vec::new(),
            chat_went_on: false,
        }
    }

    #[test]
    fn what_was_finished_is_said_with_what_was_left_alone() {
        assert_eq!(
            words(&told()),
            "finished the rewind of 14:11 that was interrupted"
        );
        let left = vec![
            (Path::new("a\u{1b}[1m"), "changed since"),
            (Path::new("b"), "changed since"),
        ];
        assert_eq!(
            words(&Told { left, ..told() }),
            "finished the rewind of 14:11 that was interrupted; 2 files were left alone: \
             a^[[1m (changed since), b (changed since)"
        );
        let went_on = words(&Told {
            chat_went_on: true,
            verb: Verb::Undo,
            ..told()
        });
        assert!(went_on.starts_with("finished the undo"), "{went_on}");
        assert!(
            went_on.ends_with("gone on and stays where it is"),
            "{went_on}"
        );
    }

    #[test]
    fn what_was_given_up_is_not_said_to_be_done() {
        let text = words(&Told {
            given_up: true,
            ..told()
        });
        assert_eq!(
            text,
            "the rewind of 14:11 was interrupted; everything was put back"
        );
        let text = words(&Told {
            given_up: true,
            abandoned: Some("object c81f is damaged"),
            left: vec![(Path::new("backtrail-saved-77ab"), "holds what was moved")],
            ..told()
        });
        assert_eq!(
            text,
            "the rewind of 14:11 was interrupted and cannot be finished: object c81f is damaged; \
             the files stay as they were left; backtrail-saved-77ab holds what was moved"
        );
        let many = vec![(Path::new("x"), "why"); 7];
        let text = words(&Told {
            left: many,
            ..told()
        });
        assert!(text.ends_with("x (why), and 2 more"), "{text}");
    }
}
