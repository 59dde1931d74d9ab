//! `backtrail watch`: protects the files of agents that were started without Backtrail.

use std::io::{self, Write};
use std::path::Path;

use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, Store};
use backtrail_formats::{Followed, FollowedKind, agent_title, formats};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::following::{FollowTarget, Following, Reporter};
use super::workspace::WorkspaceArgs;
use super::{Answer, open_or_create_store, short};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::text::{count, one_line, path_json, visible};
use crate::ui::Ui;
use crate::when;

/// Protect the files of agents that were started elsewhere, until you stop it
///
/// Follows the sessions that agents write in this workspace, imports what they say, and makes a
/// checkpoint as each prompt appears and at the end of each turn. Hooks are more exact: see
/// setup.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Watch the agents in all directories
    #[arg(long, conflicts_with = "workspace")]
    all: bool,

    /// Allow a first snapshot of any size, and of / or the home directory
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &WatchArgs, ui: &Ui) -> Result<Answer> {
    let failed = |error| CommandError::io("cannot wait for Ctrl-C", None, &error);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let (store, workspace) = match args.all {
        true => (open_or_create_store(ui)?, None),
        false => {
            let workspace = args.here.open_or_create(args.yes, ui)?;
            if workspace.last_checkpoint()?.is_none() {
                let mut first = CheckpointOptions::new().reason(CheckpointReason::First);
                if args.yes {
                    first = first.unlimited();
                }
                crate::progress::checkpoint(ui, first, |first| workspace.checkpoint(first))?;
            }
            let directory = workspace.root().to_owned();
            (workspace.store().clone(), Some((workspace, directory)))
        }
    };
    let place = workspace.as_ref().map(|(_, directory)| tilde(directory));
    let following = Following::start(FollowTarget {
        report: Some(reporter(&store, ui.json())),
        store,
        formats: formats().collect(),
        workspace,
        run: None,
    })?;
    let stop = following.stop_handle();
    std::thread::spawn(move || {
        signals.forever().next();
        stop.stop();
    });
    ui.status(&match place {
        Some(place) => format!("watching the agents in {place}; stop with Ctrl-C"),
        None => "watching the agents in all directories; stop with Ctrl-C".to_owned(),
    });
    let work = following.wait();
    for problem in &work.problems {
        ui.warning(&problem.with_causes(), None);
    }
    ui.status(&format!(
        "watched {}",
        count(work.sessions.len(), "session")
    ));
    Ok(Answer::no_if(!work.problems.is_empty()))
}

/// Returns what prints each prompt as it appears.
fn reporter(store: &Store, is_json: bool) -> Reporter {
    let store = store.clone();
    Box::new(move |followed| {
        let is_prompt = |kind: &FollowedKind| *kind == FollowedKind::Prompt;
        for record in followed.records.iter().filter(|it| is_prompt(&it.kind)) {
            let line = match is_json {
                true => json!({
                    "agent": followed.agent,
                    "session": followed.session,
                    "prompt": record.seq,
                    "at": record.at,
                    "directory": followed.directory.as_deref().map(path_json),
                })
                .to_string(),
                false => prompt_line(&store, followed, record.seq),
            };
            // Nothing is lost if nobody reads it.
            writeln!(io::stdout(), "{line}").ok();
        }
    })
}

fn prompt_line(store: &Store, followed: &Followed, seq: u64) -> String {
    let record = store
        .read_session(&followed.session)
        .and_then(|reader| reader.record(seq));
    let message = record.ok().flatten();
    let message = message.and_then(|record| record.as_ref().message().ok().flatten());
    let text = message.map_or_else(String::new, |message| message.text().into_owned());
    let time = when::brief(std::time::SystemTime::now().into());
    let directory = followed
        .directory
        .as_deref()
        .map_or_else(String::new, |directory: &Path| {
            format!(" in {}", tilde(directory))
        });
    format!(
        "{time}  {} {}{directory}  \"{}\"",
        agent_title(followed.agent),
        short(&followed.session),
        one_line(&visible(&text), 60)
    )
}
