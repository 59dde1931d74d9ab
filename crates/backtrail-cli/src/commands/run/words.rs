//! What is said when we fail before a command or after it.

use super::child::{Ended, FAILED, NotRun};
use crate::error::CommandError;

/// How a command that we name is typed, to mean the same store and workspace.
#[derive(Debug)]
pub(super) struct Named<'a> {
    pub(super) program: &'a str,
    /// The option that names the workspace, or nothing.
    pub(super) workspace: String,
}

impl Named<'_> {
    pub(super) fn verb(&self, verb: &str) -> String {
        format!("{} {verb}{}", self.program, self.workspace)
    }
}

/// Says that nothing was started, and the way out. `line` is how the command is
/// typed.
pub(super) fn not_protected(error: CommandError, named: &Named<'_>, line: &str) -> NotRun {
    let error = error
        .so("nothing was started: the checkpoint before the command cannot be made")
        .hint(format!(
            "run it all the same, with no way back: {} -- {line}",
            named.verb("run --unprotected")
        ));
    NotRun::new(FAILED, error)
}

/// Says that a command goes on without a checkpoint before it, as was asked for.
pub(super) fn goes_unprotected(error: &CommandError) -> String {
    let causes = error.causes().iter();
    let why = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    format!("no checkpoint before the command, what it does cannot be taken back: {why}")
}

/// Says that nothing was started, for what the person can say better.
pub(super) fn refused(error: CommandError) -> NotRun {
    let message = format!("nothing was started: {error}");
    NotRun::new(FAILED, error.message(message))
}

/// What failed once the command had ended.
#[derive(Debug)]
pub(super) enum NotClosed {
    NoCheckpoint(CommandError),
    /// The state after the command is kept, but not what it was.
    NotRecorded(CommandError),
    /// All is kept, but what changed cannot be told.
    NotCompared(CommandError),
    /// All is kept and told, but for the report.
    NotReported(CommandError),
}

impl NotClosed {
    /// Says that a command ran, and how it ended, since our exit code cannot; and
    /// what was kept of it all the same.
    pub(super) fn words(self, ended: Ended, named: &Named<'_>) -> NotRun {
        let ended = format!("the command ended {}", ended.words());
        let look = format!("see what it changed: {}", named.verb("diff"));
        let error = match self {
            Self::NoCheckpoint(error) => error
                .so(format!(
                    "{ended}, but the checkpoint after it cannot be made"
                ))
                .hint(format!("nothing is lost; {look}"))
                .hint(format!(
                    "once the cause is gone, make the checkpoint: {}",
                    named.verb("checkpoint")
                )),
            Self::NotRecorded(error) => error
                .so(format!(
                    "{ended}, and the checkpoint after it was made, but its session cannot say so"
                ))
                .hint(look),
            Self::NotCompared(error) => error
                .so(format!(
                    "{ended}, and everything was kept, but what it changed cannot be told"
                ))
                .hint(format!("see what is damaged: {} verify", named.program)),
            Self::NotReported(error) => error
                .so(format!(
                    "{ended}, and everything was kept, but its report is missing"
                ))
                .hint(look),
        };
        NotRun::new(FAILED, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMED: Named<'_> = Named {
        program: "backtrail",
        workspace: String::new(),
    };

    fn full_disk() -> CommandError {
        CommandError::invalid("cannot write to /store").cause("no space left".to_owned())
    }

    #[test]
    fn nothing_is_started_unprotected_without_naming_the_way_out() {
        let not_run = not_protected(full_disk(), &NAMED, "make -j2");
        assert_eq!(not_run.code, 125);
        assert!(not_run.error.to_string().starts_with("nothing was started"));
        assert_eq!(
            not_run.error.causes(),
            ["cannot write to /store", "no space left"]
        );
        let hint = not_run.error.hints().last().unwrap();
        assert!(hint.ends_with("backtrail run --unprotected -- make -j2"));
    }

    #[test]
    fn a_failed_closing_tells_how_the_command_ended() {
        let message = |ended| {
            let failed = NotClosed::NoCheckpoint(full_disk());
            failed.words(ended, &NAMED).error.to_string()
        };
        assert!(message(Ended::Code(3)).contains("ended with code 3,"));
        assert!(message(Ended::Signal(9)).contains("ended by signal 9,"));
        let failed = NotClosed::NoCheckpoint(full_disk());
        assert_eq!(failed.words(Ended::Code(0), &NAMED).code, 125);
    }

    #[test]
    fn only_a_missing_checkpoint_is_said_to_be_missing() {
        type Stage = fn(CommandError) -> NotClosed;
        let kept: [Stage; 3] = [
            NotClosed::NotRecorded,
            NotClosed::NotCompared,
            NotClosed::NotReported,
        ];
        for stage in kept {
            let not_run = stage(full_disk()).words(Ended::Code(3), &NAMED);
            let text = not_run.error.to_string();
            assert!(text.starts_with("the command ended with code 3, and"));
            assert!(!text.contains("checkpoint after it cannot"), "{text}");
            assert_eq!(not_run.code, 125);
        }
    }

    #[test]
    fn a_run_without_a_checkpoint_says_why() {
        let text = goes_unprotected(&full_disk());
        assert!(
            text.ends_with("cannot write to /store: no space left"),
            "{text}"
        );
    }
}
