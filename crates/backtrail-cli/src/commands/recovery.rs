//! Finishing a rewind that was interrupted.

use backtrail::rewind::{NotRestored, Recovered, Unfinished};
use backtrail::{SessionId, Store, Workspace};

use super::Answer;
use super::moves::workspace_of;
use crate::error::{CommandError, Result, full_text};
use crate::text::{count, one_line, some_of, visible_path};
use crate::ui::Ui;
use crate::when;

/// What a command does if an interrupted rewind cannot be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It only reads, and continues.
    ToRead,
    /// It writes, and must stop.
    ToWrite,
    /// It closes the rewind as it is.
    Never,
}

impl Finish {
    /// Finishes a rewind that a crash interrupted, and reports it.
    pub(crate) fn finish(self, workspace: &Workspace, ui: &Ui) -> Result<()> {
        if self == Self::Never {
            return Ok(());
        }
        let what = "a rewind was interrupted and cannot be finished";
        match (workspace.recover(), self) {
            (Ok(None), Self::ToRead) => {
                if workspace.is_moving().unwrap_or(false) {
                    ui.warning("another process is rewinding here", None);
                }
            }
            (Ok(None), _) => {}
            (Ok(Some(recovered)), _) => {
                let text = recovered_text(&recovered);
                match ui.json() {
                    true => ui.warning(&text, None),
                    false => ui.status(&text),
                }
            }
            (Err(error), Self::ToRead) => {
                ui.warning(&format!("{what}: {}", full_text(&error)), None);
            }
            (Err(error), _) => {
                return Err(with_ways_out(CommandError::from(error).context(what), ui));
            }
        }
        Ok(())
    }
}

/// Adds what can be done about a rewind that is half done.
pub(crate) fn with_ways_out(error: CommandError, ui: &Ui) -> CommandError {
    let program = ui.program();
    error
        .hint(format!("see which files are where: {program} status"))
        .hint(format!("leave them as they are: {program} undo --abandon"))
}

/// Reports which paths of an unfinished rewind are where.
pub(crate) fn report_unfinished(unfinished: &Unfinished, ui: &Ui) {
    let (verb, at) = (unfinished.verb, when::brief(unfinished.begun_at));
    let Unfinished {
        moved,
        waiting,
        other,
        ..
    } = unfinished;
    let all = moved.len() + waiting.len() + other.len();
    ui.status(&format!(
        "the {verb} from {at} is unfinished: {} of {all} paths restored",
        moved.len()
    ));
    let lines = moved
        .iter()
        .map(|path| (path, "restored"))
        .chain(waiting.iter().map(|path| (path, "not yet")))
        .chain(other.iter().map(|one| (&one.path, one.reason.as_str())));
    for (path, state) in lines {
        ui.status(&format!(
            "  {}  {}",
            visible_path(path),
            one_line(state, 60)
        ));
    }
}

/// Closes an unfinished rewind and reports what is where.
pub(crate) fn abandon(workspace: &Workspace, ui: &Ui) -> Result<Answer> {
    let Some(recovered) = workspace.abandon_unfinished()? else {
        ui.status("no unfinished rewind here");
        return Ok(Answer::No);
    };
    if ui.json() {
        ui.print_json(&recovered)?;
        return Ok(Answer::Done);
    }
    let (verb, at) = (recovered.verb, when::brief(recovered.begun_at));
    ui.status(&format!(
        "abandoned the {verb} from {at}; the files stay as they are"
    ));
    for left in &recovered.not_restored {
        let (path, reason) = (visible_path(&left.path), one_line(&left.reason, 60));
        ui.status(&format!("  {path}  {reason}"));
    }
    Ok(Answer::Done)
}

/// Finishes an interrupted rewind where a session works, before something is written to it.
/// Opening the session does so as well, and fails if that is not possible.
pub(crate) fn before_writing(store: &Store, session: &SessionId, ui: &Ui) {
    if let Ok(Some(workspace)) = workspace_of(store, session) {
        Finish::ToRead.finish(&workspace, ui).ok();
    }
}

/// Describes how an interrupted rewind ended, in one line.
fn recovered_text(recovered: &Recovered) -> String {
    let (verb, at) = (recovered.verb, when::brief(recovered.begun_at));
    let left = &recovered.not_restored;
    let mut text = match (&recovered.abandoned, recovered.now) {
        (Some(reason), _) => format!(
            "the {verb} from {at} was interrupted and cannot be finished: {reason}; the files stay \
             as they are"
        ),
        (None, Some(_)) => format!("finished the interrupted {verb} ({at})"),
        (None, None) => format!("the {verb} from {at} was interrupted; everything was put back"),
    };
    if let (Some(_), [one, ..]) = (&recovered.abandoned, &left[..]) {
        let reason = one_line(&one.reason, 60);
        text += &format!("; {} {reason}", visible_path(&one.path));
    } else if !left.is_empty() {
        text += &format!("; {}", left_text(left));
    }
    if recovered.chat_continued {
        text += "; the conversation has continued since and stays as it is";
    }
    text
}

fn left_text(left: &[NotRestored]) -> String {
    let name = |one: &NotRestored| {
        let reason = one_line(&one.reason, 60);
        format!("{} ({reason})", visible_path(&one.path))
    };
    let files = count(left.len(), "file");
    let names = some_of(left.iter().map(name), 5, left.len());
    format!("skipped {files}: {names}")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use backtrail::Timestamp;
    use backtrail::rewind::Verb;

    use super::*;

    fn left(paths: &[&str], reason: &str) -> Vec<NotRestored> {
        let left = paths.iter().map(PathBuf::from);
        left.map(|path| NotRestored::new(path, reason)).collect()
    }

    fn recovered(verb: Verb) -> Recovered {
        Recovered::new(verb, Timestamp::from_millis(1_000_000_000_000).unwrap())
    }

    fn finished(verb: Verb) -> Recovered {
        let mut recovered = recovered(verb);
        recovered.now = Some("77ab0000-0000-4000-8000-000000000000".parse().unwrap());
        recovered
    }

    #[test]
    fn a_finished_rewind_is_reported_with_the_files_that_it_skipped() {
        let mut rewind = finished(Verb::Rewind);
        assert_eq!(
            recovered_text(&rewind),
            "finished the interrupted rewind (2001-09-09)"
        );
        rewind.not_restored = left(&["a\u{1b}[1m", "b"], "changed since");
        assert_eq!(
            recovered_text(&rewind),
            "finished the interrupted rewind (2001-09-09); skipped 2 files: \
             a^[[1m (changed since), b (changed since)"
        );
        let mut undo = finished(Verb::Undo);
        undo.chat_continued = true;
        let text = recovered_text(&undo);
        assert!(text.starts_with("finished the interrupted undo"), "{text}");
        assert!(
            text.ends_with("continued since and stays as it is"),
            "{text}"
        );
    }

    #[test]
    fn a_rewind_that_was_given_up_is_not_reported_as_done() {
        let mut rewind = recovered(Verb::Rewind);
        assert_eq!(
            recovered_text(&rewind),
            "the rewind from 2001-09-09 was interrupted; everything was put back"
        );
        rewind.abandoned = Some("object c81f is damaged".to_owned());
        rewind.not_restored = left(&["backtrail-saved-77ab"], "has the old files");
        assert_eq!(
            recovered_text(&rewind),
            "the rewind from 2001-09-09 was interrupted and cannot be finished: object c81f is \
             damaged; the files stay as they are; backtrail-saved-77ab has the old files"
        );
        rewind.abandoned = None;
        rewind.not_restored = left(&["x"; 7], "why");
        let text = recovered_text(&rewind);
        assert!(text.ends_with("x (why) and 2 more"), "{text}");
    }
}
