//! `show`: the conversation as one would like to read it.

use crate::kit::{Cli, snapshot};

#[test]
fn a_session_that_is_not_there_brings_up_the_nearest() {
    let cli = Cli::new();
    let id = cli.talk();
    let wrong = format!("{}-zz", &id[..8]);
    snapshot("show-unknown", &cli, &["show", &wrong], &[&id]);
}
