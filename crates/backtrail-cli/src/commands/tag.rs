//! `backtrail tag`: shows, adds or removes tags.

use backtrail::Note;
use serde_json::json;

use super::{Answer, find_session, short};
use crate::error::{CommandError, Result};
use crate::shell::{arguments, quote};
use crate::ui::Ui;

/// Show, add or remove the tags of a session
#[derive(Debug, clap::Args)]
pub(crate) struct TagArgs {
    /// A session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// Tags to add; without any, show the current ones
    #[arg(value_name = "TAG")]
    tags: Vec<String>,

    /// Remove these tags instead of adding them
    #[arg(long, requires = "tags")]
    remove: bool,
}

pub(crate) fn run(args: &TagArgs, ui: &Ui) -> Result<Answer> {
    let (store, id) = find_session(&args.reference, ui)?;
    if args.tags.iter().any(|tag| tag.trim().is_empty()) {
        return Err(CommandError::invalid("a tag cannot be blank"));
    }
    let reader = store.read_session(&id)?;
    let before = reader.info()?.tags;
    let is_changed = |tag: &&String| before.contains(tag) == args.remove;
    let changed: Vec<String> = args.tags.iter().filter(is_changed).cloned().collect();
    if !changed.is_empty() {
        let note = |note: Note, tag: &String| match args.remove {
            true => note.remove_tag(tag.as_str()),
            false => note.add_tag(tag.as_str()),
        };
        store.note(&id, &changed.iter().fold(Note::new(), note))?;
    }
    let tags = reader.info()?.tags;
    if ui.json() {
        return ui.answer_json(&json!({"session": id, "tags": tags, "before": before}));
    }
    if args.tags.is_empty() {
        for tag in &tags {
            ui.print_line(tag)?;
        }
    }
    let id = short(&id);
    if tags.is_empty() {
        ui.status(&format!("{id} has no tags"));
    } else if !args.tags.is_empty() {
        let all: Vec<String> = tags.iter().map(|tag| quote(tag)).collect();
        ui.print_line(&format!("tags of {id}: {}", all.join(", ")))?;
    }
    if !changed.is_empty() {
        let flag = if args.remove { "" } else { " --remove" };
        ui.to_reverse(&format!("tag {id}{flag} {}", arguments(&changed)));
    }
    Ok(Answer::Done)
}
