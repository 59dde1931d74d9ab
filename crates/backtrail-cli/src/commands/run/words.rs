//! What is said when a checkpoint around a command cannot be made.

use super::child::{Ended, FAILED, NotRun};
use crate::error::CommandError;

/// Says that nothing was started, and the way out. `program` and `line` are how
/// we and the command are typed.
pub(super) fn not_protected(error: CommandError, program: &str, line: &str) -> NotRun {
    let error = error
        .so("nothing was started: the checkpoint before the command cannot be made")
        .hint(format!(
            "run it all the same, with no way back: {program} run --unprotected -- {line}"
        ));
    NotRun::new(FAILED, error)
}

/// Says that a command goes on without a checkpoint before it, as was asked for.
pub(super) fn goes_unprotected(error: &CommandError) -> String {
    let causes = error.causes().iter();
    let why = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    format!("no checkpoint before the command, what it does cannot be taken back: {why}")
}

/// Says that a command ran, and how it ended, since our exit code cannot.
pub(super) fn not_closed(error: CommandError, ended: Ended, program: &str) -> NotRun {
    let ended = ended.words();
    let error = error
        .so(format!(
            "the command ended {ended}, but the checkpoint after it cannot be made"
        ))
        .hint(format!(
            "nothing is lost; see what it changed: {program} diff"
        ))
        .hint(format!(
            "once the cause is gone, make the checkpoint: {program} checkpoint"
        ));
    NotRun::new(FAILED, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_disk() -> CommandError {
        CommandError::invalid("cannot write to /store").cause("no space left".to_owned())
    }

    #[test]
    fn nothing_is_started_unprotected_without_naming_the_way_out() {
        let not_run = not_protected(full_disk(), "backtrail", "make -j2");
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
            not_closed(full_disk(), ended, "backtrail")
                .error
                .to_string()
        };
        assert!(message(Ended::Code(3)).contains("ended with code 3,"));
        assert!(message(Ended::Signal(9)).contains("ended by signal 9,"));
        assert_eq!(
            not_closed(full_disk(), Ended::Code(0), "backtrail").code,
            125
        );
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
