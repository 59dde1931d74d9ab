//! `backtrail fork`: a session that begins where another is.

use backtrail::ForkOptions;
use serde_json::json;

use super::{Answer, Point, require_store, short};
use crate::args::Global;
use crate::error::Result;
use crate::text::one_line;
use crate::ui::Ui;

/// Begin a new session where another one is, or was
///
/// Nothing is copied, and the other one stays as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A session, and the last record that both shall have in common; without
    /// it, that is its last one
    #[arg(value_name = "REF[:SEQ]")]
    point: Point,

    /// Call the fork by a name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global, ui: &Ui) -> Result<Answer> {
    let store = require_store(global)?;
    let parent = args.point.resolve(&store)?;
    let mut options = ForkOptions::new();
    if let Some(seq) = args.point.seq {
        options = options.at(seq);
    }
    if let Some(name) = &args.name {
        options = options.branch_name(name.as_str());
    }
    let fork = store.fork_session(&parent, &options)?;
    let id = fork.id().clone();
    let origin = fork.reader().info()?.forked_from;
    fork.close()?;
    let seq = origin.as_ref().and_then(|origin| origin.seq).unwrap_or(0);
    let name = origin.and_then(|origin| origin.branch_name);
    if ui.json() {
        ui.print_json(&json!({
            "session": id,
            "parent": parent,
            "seq": seq,
            "branch_name": name,
        }))?;
        return Ok(Answer::Done);
    }
    let called = name.map_or_else(String::new, |name| format!(" \"{}\"", one_line(&name, 60)));
    ui.print_line(&format!(
        "session {}{called} goes on from record {seq} of {}",
        short(&id),
        short(&parent)
    ))?;
    ui.status(&format!(
        "go on there: backtrail record --session {}; {} is as it was, so there is nothing to take back",
        short(&id),
        short(&parent)
    ));
    Ok(Answer::Done)
}
