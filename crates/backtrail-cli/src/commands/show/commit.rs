//! `show COMMIT`: the turn that made a git commit.

use backtrail::workspace::{CommitAuthor, LineAuthor};
use backtrail::{ErrorKind, SessionId, Store};
use backtrail_formats::agent_title;

use crate::commands::{Answer, short};
use crate::error::{CommandError, Result};
use crate::home::current_dir;
use crate::text::one_line;
use crate::ui::Ui;
use crate::when;

/// What a commit's id led to.
pub(super) enum CommitAnswer {
    /// A turn, by its session and the record of its prompt.
    Turn(SessionId, u64),
    /// It was reported that no turn of a session made it.
    Told(Answer),
}

/// Finds the turn that made the commit that a reference names; `None` if there is no such
/// commit.
pub(super) fn find(store: &Store, reference: &str, ui: &Ui) -> Result<Option<CommitAnswer>> {
    let found = store.find_commit(&current_dir()?, reference);
    let Some(found) = found.map_err(ambiguous)? else {
        return Ok(None);
    };
    let turn = found.by.iter().find_map(|by| match by {
        LineAuthor::Turn {
            session: Some(id),
            seq: Some(seq),
            ..
        } => Some((id.clone(), *seq)),
        _ => None,
    });
    if let Some((id, seq)) = turn {
        ui.status(&format!("{} was made by {}", named(&found), makers(&found)));
        return Ok(Some(CommitAnswer::Turn(id, seq)));
    }
    if ui.json() {
        ui.print_json(&found)?;
    } else {
        for line in told(&found, ui) {
            ui.print_line(&line)?;
        }
    }
    let is_no_one = found.by.iter().all(|by| *by == LineAuthor::You);
    Ok(Some(CommitAnswer::Told(Answer::no_if(is_no_one))))
}

fn ambiguous(error: backtrail::Error) -> CommandError {
    let is_ambiguous = error.kind() == ErrorKind::Ambiguous;
    let ids = error.points().to_vec();
    let command = CommandError::from(error);
    let ids = ids.into_iter().take(5).filter(|_| is_ambiguous);
    ids.fold(command, CommandError::hint)
}

/// Returns the commit with its subject: `abc1234 (fix the cart)`.
fn named(found: &CommitAuthor) -> String {
    let id = &found.commit[..found.commit.len().min(7)];
    match found.subject.as_deref().filter(|it| !it.is_empty()) {
        Some(subject) => format!("{id} ({})", one_line(subject, 50)),
        None => id.to_owned(),
    }
}

/// Says who made a commit that no turn of a session made.
fn told(found: &CommitAuthor, ui: &Ui) -> Vec<String> {
    let at = found
        .at
        .map_or_else(String::new, |at| format!(" at {}", when::full(at)));
    let name = named(found);
    let mut lines = vec![match found.by.as_slice() {
        [] => format!("{name} was made{at}, before Backtrail"),
        [LineAuthor::You] => format!("you made {name}{at}"),
        _ => format!("{name} was made by {}{at}", makers(found)),
    }];
    if let Some(last) = &found.last_turn {
        lines.push(format!("the last turn before was {}", maker(last)));
        if let LineAuthor::Turn {
            session: Some(id),
            seq: Some(seq),
            ..
        } = last
        {
            lines.push(format!(
                "open it: {} show {}:{seq}",
                ui.program(),
                short(id)
            ));
        }
    }
    lines
}

fn makers(found: &CommitAuthor) -> String {
    let makers: Vec<String> = found.by.iter().map(maker).collect();
    makers.join(" or ")
}

fn maker(by: &LineAuthor) -> String {
    let quoted = |text: Option<&String>| {
        let line = text.and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
        line.map_or_else(String::new, |line| format!(" \"{}\"", one_line(line, 50)))
    };
    match by {
        LineAuthor::You => "you".to_owned(),
        LineAuthor::Turn {
            session,
            agent,
            seq,
            prompt,
            ..
        } => {
            let id = session.as_ref().map(short);
            let agent = agent
                .as_deref()
                .map(|agent| one_line(agent_title(agent), 20));
            let place = match (id, seq) {
                (Some(id), Some(seq)) => format!(" {id}:{seq}"),
                (Some(id), None) => format!(" {id}"),
                (None, _) => String::new(),
            };
            let agent = agent.map_or_else(String::new, |agent| format!(" of {agent}"));
            format!("turn{place}{agent}{}", quoted(prompt.as_ref()))
        }
        LineAuthor::Run { command, .. } => match command {
            Some(command) => format!("the run `{}`", one_line(command, 50)),
            None => "a run".to_owned(),
        },
        LineAuthor::Session { session, .. } => format!("session {}", short(session)),
        _ => "an unknown program".to_owned(),
    }
}
