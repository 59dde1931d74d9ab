//! `backtrail tag`: shows, adds or removes tags.

use backtrail::{Note, SessionId, Store};
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
    let reader = store.read_session(&id)?;
    let before = reader.info()?.tags;
    let asked = args.tags.iter().map(|tag| (tag.clone(), !args.remove));
    let changed = change(&store, &id, asked.collect())?;
    let changed: Vec<String> = changed.into_iter().map(|(tag, _)| tag).collect();
    let tags = reader.info()?.tags;
    if ui.json() {
        return ui.answer_json(&json!({"session": id, "tags": tags, "before": before}));
    }
    if args.tags.is_empty() {
        for tag in &tags {
            ui.print_line(tag)?;
        }
    }
    if tags.is_empty() {
        ui.status(&described(&id, &tags));
    } else if !args.tags.is_empty() {
        ui.print_line(&described(&id, &tags))?;
    }
    let id = short(&id);
    if !changed.is_empty() {
        let flag = if args.remove { "" } else { " --remove" };
        ui.to_reverse(&format!("tag {id}{flag} {}", arguments(&changed)));
    }
    Ok(Answer::Done)
}

/// Says which tags a session has.
pub(super) fn described(id: &SessionId, tags: &[String]) -> String {
    let id = short(id);
    let all: Vec<String> = tags.iter().map(|tag| quote(tag)).collect();
    match all.is_empty() {
        true => format!("{id} has no tags"),
        false => format!("tags of {id}: {}", all.join(", ")),
    }
}

/// Adds tags (`true`) and removes others (`false`). Returns those that made a difference.
pub(super) fn change(
    store: &Store,
    id: &SessionId,
    mut tags: Vec<(String, bool)>,
) -> Result<Vec<(String, bool)>> {
    if tags.iter().any(|(tag, _)| tag.trim().is_empty()) {
        return Err(CommandError::invalid("a tag cannot be blank"));
    }
    let before = store.read_session(id)?.info()?.tags;
    tags.retain(|(tag, is_added)| before.contains(tag) != *is_added);
    if !tags.is_empty() {
        let note = |note: Note, (tag, is_added): &(String, bool)| match is_added {
            true => note.add_tag(tag.as_str()),
            false => note.remove_tag(tag.as_str()),
        };
        store.note(id, &tags.iter().fold(Note::new(), note))?;
    }
    Ok(tags)
}
