//! `backtrail title`: shows or sets a title.

use backtrail::{Note, SessionId, Store};
use serde_json::json;

use super::{Answer, find_session, short};
use crate::error::{CommandError, Result};
use crate::shell::{argument, quote};
use crate::ui::Ui;

/// Show or set the title of a session
#[derive(Debug, clap::Args)]
pub(crate) struct TitleArgs {
    /// A session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// The new title; without it, show the current one
    #[arg(value_name = "TITLE")]
    title: Option<String>,

    /// Remove the title
    #[arg(long, conflicts_with = "title")]
    clear: bool,
}

pub(crate) fn run(args: &TitleArgs, ui: &Ui) -> Result<Answer> {
    if args
        .title
        .as_ref()
        .is_some_and(|title| title.trim().is_empty())
    {
        return Err(CommandError::invalid("a title cannot be blank").hint("to remove it: --clear"));
    }
    let (store, id) = find_session(&args.reference, ui)?;
    let reader = store.read_session(&id)?;
    let before = reader.info()?.title;
    let new = if args.clear {
        Some("")
    } else {
        args.title.as_deref()
    };
    let Some(new) = new else {
        let title = reader.title()?;
        if ui.json() {
            ui.print_json(&json!({"session": id, "title": title}))?;
        } else {
            match &title {
                Some(title) => ui.print_line(title)?,
                None => ui.status(&format!("{} has no title", short(&id))),
            }
        }
        return Ok(Answer::Done);
    };
    let done = set(&store, &id, new)?;
    let title = Some(new).filter(|title| !title.is_empty());
    if ui.json() {
        return ui.answer_json(&json!({"session": id, "title": title, "before": before}));
    }
    ui.print_line(&done)?;
    let id = short(&id);
    ui.to_reverse(&match before {
        Some(before) => format!("title {id} {}", argument(&before)),
        None => format!("title {id} --clear"),
    });
    Ok(Answer::Done)
}

/// Sets the title of a session, or removes it if it is empty; returns what to report.
pub(super) fn set(store: &Store, id: &SessionId, title: &str) -> Result<String> {
    store.note(id, &Note::new().title(title))?;
    let id = short(id);
    Ok(match title {
        "" => format!("title of {id} removed"),
        title => format!("title of {id} set: {}", quote(title)),
    })
}
