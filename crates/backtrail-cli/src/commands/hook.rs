//! `backtrail hook`: what agents call while they work.
//!
//! It never disturbs the agent: it waits for a snapshot for a moment only, prints nothing but
//! what the agent expects, and exits with 0 whatever happens. What went wrong is written to a
//! file beside the mark of the last call, and `setup --status` shows it.

mod agent_process;
mod background;
mod moment;

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use backtrail_formats::{HookEvent, HookKind, MAX_HOOK_PAYLOAD, hook_answer, hook_event};

pub(crate) use self::agent_process::{ancestors, parent_of};
use self::background::Background;
use self::moment::{Lines, Moment};
use super::setup::fired_file;
use super::{Answer, setup};
use crate::error::{CommandError, Result};
use crate::files;
use crate::ui::Ui;

/// Report what an agent does (agents call this; see setup)
///
/// Reads the agent's JSON on stdin, makes a checkpoint where one is due, and prints only what
/// the agent expects. It always exits with 0, so that the agent is never refused anything.
#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// The agent, such as claude-code
    #[arg(value_name = "AGENT")]
    agent: String,

    /// The event, if the agent does not write it into its JSON
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// Finish in the background what an earlier call began
    #[arg(long, value_name = "WHAT", hide = true)]
    background: Option<Background>,

    /// The agent's process, for what is finished in the background
    #[arg(long, value_name = "PID", hide = true)]
    agent_process: Option<u32>,

    /// The JSON, from agents that pass it as an argument
    #[arg(value_name = "JSON")]
    payload: Option<String>,
}

pub(crate) fn run(args: &HookArgs, ui: &Ui) -> Result<Answer> {
    if args.payload.is_none() && io::stdin().is_terminal() {
        let what = "hook is called by agents and reads their JSON on stdin";
        let way = format!("to install it: {} setup", ui.program());
        return Err(CommandError::invalid(what).hint(way));
    }
    // Whatever is wrong here must not show up in the agent.
    std::panic::set_hook(Box::new(|_| {}));
    let done = std::panic::catch_unwind(|| act(args, ui));
    let failed = match done {
        // It may have had nothing to store, which says nothing about the next one.
        Ok(Ok(Done::Looked)) => return Ok(Answer::Done),
        Ok(Ok(Done::Stored)) => None,
        Ok(Err(error)) => Some(error.with_causes()),
        Err(_) => Some("the program crashed".to_owned()),
    };
    if let Ok((store, _)) = ui.store_dir() {
        note_failure(&store, &args.agent, failed.as_deref());
    }
    Ok(Answer::Done)
}

/// What a call did.
enum Done {
    Looked,
    Stored,
}

fn act(args: &HookArgs, ui: &Ui) -> Result<Done> {
    let payload = read_payload(args)?;
    let event = hook_event(&args.agent, args.event.as_deref(), &payload)
        .map_err(|error| CommandError::invalid(error.to_string()))?;
    let moment = Moment::new(args, &payload, &event, ui);
    if let Some(background) = args.background {
        return moment.in_background(background).map(|()| Done::Looked);
    }
    let (store, _) = ui.store_dir()?;
    // Only `setup --status` needs it.
    files::touch(&fired_file(&store, event.agent)).ok();
    let mut lines = Lines::default();
    let acted = moment.act(&mut lines);
    answer(&event, &lines);
    acted?;
    Ok(match event.kind {
        HookKind::Prompt { .. } | HookKind::TurnEnd => Done::Stored,
        _ => Done::Looked,
    })
}

/// Prints what the agent expects.
fn answer(event: &HookEvent, lines: &Lines) {
    let (shown, context) = (lines.shown.as_deref(), lines.context.as_deref());
    if let Some(text) = hook_answer(event.agent, &event.kind, shown, context) {
        let mut out = io::stdout().lock();
        // An agent that does not listen misses nothing.
        writeln!(out, "{text}").and_then(|()| out.flush()).ok();
    }
}

fn read_payload(args: &HookArgs) -> Result<Vec<u8>> {
    if let Some(payload) = &args.payload {
        return Ok(payload.clone().into_bytes());
    }
    let mut payload = Vec::new();
    let most = MAX_HOOK_PAYLOAD as u64 + 1;
    let mut stdin = io::stdin().lock();
    let read = stdin.by_ref().take(most).read_to_end(&mut payload);
    read.map_err(|error| CommandError::io("cannot read the agent's JSON", None, &error))?;
    // The agent must be able to write all of it. What it cannot write is no error of ours.
    io::copy(&mut stdin, &mut io::sink()).ok();
    Ok(payload)
}

/// Keeps the reason of the last failure for `setup --status`; removes it after a success.
fn note_failure(store: &Path, agent: &str, reason: Option<&str>) {
    let is_name = agent.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name || !store.is_dir() {
        return;
    }
    let path = setup::failure_file(store, agent);
    match reason {
        // A failure to note it must not disturb the agent either.
        Some(reason) => drop(files::write_own(&path, reason.as_bytes())),
        None => drop(files::remove(&path)),
    }
}
