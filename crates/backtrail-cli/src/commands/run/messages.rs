//! The errors before a command starts and after it has ended.

use super::child::{Ended, FAILED, NotRun};
use crate::error::CommandError;

/// Writes suggested commands so that they use the same store and workspace.
#[derive(Debug)]
pub(super) struct Suggestions<'a> {
    pub(super) program: &'a str,
    /// The option that names the workspace, or an empty string.
    pub(super) workspace: String,
}

impl Suggestions<'_> {
    pub(super) fn verb(&self, verb: &str) -> String {
        format!("{} {verb}{}", self.program, self.workspace)
    }
}

/// Returns the error for a command that was not started, whatever was asked for.
pub(super) fn not_started(error: CommandError) -> NotRun {
    let what = "the command was not started: cannot make a checkpoint first";
    NotRun::new(FAILED, error.context(what))
}

/// Returns the error for a command that was not started; `line` is the command as typed.
pub(super) fn not_protected(error: CommandError, suggest: &Suggestions<'_>, line: &str) -> NotRun {
    not_started(error.hint(format!(
        "run without protection: {} -- {line}",
        suggest.verb("run --unprotected")
    )))
}

/// Returns the warning for a command that runs without a checkpoint.
pub(super) fn runs_unprotected(error: &CommandError) -> String {
    let reason = error.with_causes();
    format!("running without a checkpoint, so this run cannot be undone: {reason}")
}

/// Returns the error for wrong arguments.
pub(super) fn refused(error: CommandError) -> NotRun {
    let message = format!("the command was not started: {error}");
    NotRun::new(FAILED, error.message(message))
}

/// What failed after the command had ended.
#[derive(Debug)]
pub(super) enum NotClosed {
    NoCheckpoint(CommandError),
    /// The checkpoint was made, but the session has no record of the run.
    NotRecorded(CommandError),
    /// Everything was saved, but the changes cannot be computed.
    NotCompared(CommandError),
    /// Everything was saved but the report.
    NotReported(CommandError),
}

impl NotClosed {
    /// Returns the error, with how the command ended, since our exit code cannot show it.
    pub(super) fn report(self, ended: Ended, suggest: &Suggestions<'_>) -> NotRun {
        let ended = format!("the command {}", ended.describe());
        let look = format!("see what changed: {}", suggest.verb("diff"));
        let error = match self {
            Self::NoCheckpoint(error) => error
                .context(format!(
                    "{ended}, but no checkpoint could be made afterwards"
                ))
                .hint(format!("the files are as the command left them; {look}"))
                .hint(format!(
                    "once that is fixed, make a checkpoint: {}",
                    suggest.verb("checkpoint")
                )),
            Self::NotRecorded(error) => error
                .context(format!(
                    "{ended} and the checkpoint was made, but the run could not be recorded"
                ))
                .hint(look),
            Self::NotCompared(error) => error
                .context(format!(
                    "{ended} and everything was saved, but the changes cannot be computed"
                ))
                .hint(format!("see what is damaged: {} verify", suggest.program)),
            Self::NotReported(error) => error
                .context(format!(
                    "{ended} and everything was saved, but the report could not be written"
                ))
                .hint(look),
        };
        NotRun::new(FAILED, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUGGEST: Suggestions<'_> = Suggestions {
        program: "backtrail",
        workspace: String::new(),
    };

    fn full_disk() -> CommandError {
        CommandError::invalid("cannot write to /store").cause("no space left".to_owned())
    }

    #[test]
    fn a_refusal_names_the_way_out() {
        let not_run = not_protected(full_disk(), &SUGGEST, "make -j2");
        assert_eq!(not_run.code, 125);
        assert!(
            not_run
                .error
                .to_string()
                .starts_with("the command was not started")
        );
        assert_eq!(
            not_run.error.causes,
            ["cannot write to /store", "no space left"]
        );
        let hint = not_run.error.hints.last().unwrap();
        assert!(hint.ends_with("backtrail run --unprotected -- make -j2"));
    }

    #[test]
    fn a_failure_after_the_command_shows_how_it_ended() {
        let message = |ended| {
            let failed = NotClosed::NoCheckpoint(full_disk());
            failed.report(ended, &SUGGEST).error.to_string()
        };
        assert!(message(Ended::Code(3)).contains("exited with code 3,"));
        assert!(message(Ended::Signal(9)).contains("was killed by signal 9,"));
        let failed = NotClosed::NoCheckpoint(full_disk());
        assert_eq!(failed.report(Ended::Code(0), &SUGGEST).code, 125);
    }

    #[test]
    fn only_a_missing_checkpoint_is_reported_missing() {
        type Stage = fn(CommandError) -> NotClosed;
        let kept: [Stage; 3] = [
            NotClosed::NotRecorded,
            NotClosed::NotCompared,
            NotClosed::NotReported,
        ];
        for stage in kept {
            let not_run = stage(full_disk()).report(Ended::Code(3), &SUGGEST);
            let text = not_run.error.to_string();
            assert!(text.starts_with("the command exited with code 3 and"));
            assert!(!text.contains("no checkpoint"), "{text}");
            assert_eq!(not_run.code, 125);
        }
    }

    #[test]
    fn a_run_without_a_checkpoint_shows_the_reason() {
        let text = runs_unprotected(&full_disk());
        assert!(
            text.ends_with("cannot write to /store: no space left"),
            "{text}"
        );
    }
}
