//! Errors of commands keep what they say.

use super::*;

#[test]
fn a_failure_has_the_message_the_cause_the_path_and_the_hints() {
    let error = std::io::Error::other("disk on fire");
    let error = CommandError::io("cannot read", Some(Path::new("/store/x")), &error);
    let shown = failure(error.hint("put it out \u{1b}[31m"));
    assert_eq!(shown.message, "cannot read: disk on fire (in /store/x)");
    assert_eq!(shown.hints, ["put it out "]);
}
