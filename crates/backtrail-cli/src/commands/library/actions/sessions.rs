//! What changes sessions, and not files: delete, title, tags, pin and export.

use std::path::{Path, PathBuf};

use backtrail::SessionId;
use backtrail::trash::{DeletePlan, DeleteScope, TrashName};
use backtrail_view::library::{Action, Report};

use super::super::StoreLibrary;
use super::super::moments;
use super::{Draft, Planned};
use crate::commands::export::{format_named, to_new_file};
use crate::commands::{delete, describe as described, pin, short, tag, title, trash};
use crate::error::{CommandError, Result};
use crate::home::home_dir;
use crate::shell::quote;

/// A change of a session that is planned.
pub(super) enum SessionChange {
    Delete(SessionId, DeletePlan),
    Undelete(TrashName),
    Title(SessionId, String),
    /// Tags to add and others to remove.
    Tag(SessionId, Vec<(String, bool)>),
    Pin(SessionId, bool),
    /// The format, and the new file.
    Export(SessionId, String, PathBuf),
}

fn possible(title: String, lines: Vec<String>, change: SessionChange) -> Draft {
    Draft::possible(title, lines, Planned::Session(change))
}

/// Plans to move a session to the trash.
pub(super) fn delete(library: &StoreLibrary, session: &str) -> Result<Draft> {
    let id = moments::session(library, session)?;
    let plan = library
        .store
        .delete_plan(std::slice::from_ref(&id), DeleteScope::Named)?;
    let deletions = plan.deletions().iter();
    let mut lines: Vec<String> = deletions
        .map(|deletion| delete::describe(deletion, "would move"))
        .collect();
    lines.extend(plan.forks().iter().map(delete::still_reads));
    lines.push("its files stay as they are".to_owned());
    let title = format!("Delete {}", described(&library.store, &id));
    Ok(possible(title, lines, SessionChange::Delete(id, plan)))
}

/// Plans to restore a session from the trash.
pub(super) fn undelete(library: &StoreLibrary, session: &str) -> Result<Draft> {
    let name = trash::find(&library.store, session, &library.ui)?;
    let title = format!("Restore {}", trash::describe(&name));
    let lines = vec![format!("would restore {}", trash::describe(&name))];
    Ok(possible(title, lines, SessionChange::Undelete(name)))
}

/// Plans to set a title, or to remove it.
pub(super) fn title(library: &StoreLibrary, session: &str, title: &str) -> Result<Draft> {
    let id = moments::session(library, session)?;
    let title = title.trim().to_owned();
    let line = match title.as_str() {
        "" => "would remove the title".to_owned(),
        title => format!("would set the title: {}", quote(title)),
    };
    let heading = format!("Title of {}", short(&id));
    let planned = SessionChange::Title(id, title);
    Ok(possible(heading, vec![line], planned))
}

/// Plans to add and remove tags: `+a -b`.
pub(super) fn tag(library: &StoreLibrary, session: &str, tags: &str) -> Result<Draft> {
    let id = moments::session(library, session)?;
    let tags: Vec<(String, bool)> = tags.split_whitespace().map(signed).collect();
    if tags.is_empty() || tags.iter().any(|(tag, _)| tag.is_empty()) {
        return Err(CommandError::invalid("a tag cannot be blank").hint("write +tag or -tag"));
    }
    let line = |(tag, is_added): &(String, bool)| match is_added {
        true => format!("would add {}", quote(tag)),
        false => format!("would remove {}", quote(tag)),
    };
    let lines = tags.iter().map(line).collect();
    let heading = format!("Tags of {}", short(&id));
    Ok(possible(heading, lines, SessionChange::Tag(id, tags)))
}

/// Reads a tag with its sign; without one it is added.
fn signed(word: &str) -> (String, bool) {
    match (word.strip_prefix('-'), word.strip_prefix('+')) {
        (Some(tag), _) => (tag.to_owned(), false),
        (None, tag) => (tag.unwrap_or(word).to_owned(), true),
    }
}

/// Plans to pin or unpin a session.
pub(super) fn pin(library: &StoreLibrary, session: &str, pinned: bool) -> Result<Draft> {
    let id = moments::session(library, session)?;
    let verb = if pinned { "pin" } else { "unpin" };
    let line = format!("would {verb} {}", short(&id));
    let heading = format!("Pin {}", short(&id));
    Ok(possible(
        heading,
        vec![line],
        SessionChange::Pin(id, pinned),
    ))
}

/// Plans to export a session to a new file.
pub(super) fn export(
    library: &StoreLibrary,
    session: &str,
    format: &str,
    file: &str,
) -> Result<Draft> {
    let id = moments::session(library, session)?;
    format_named(format)?;
    let path = path_of(file)?;
    if path.exists() {
        return Err(CommandError::invalid("the file already exists")
            .at_path(&path)
            .hint("choose another name"));
    }
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    if let Some(dir) = parent.filter(|dir| !dir.is_dir()) {
        let what = format!("there is no directory {}", dir.display());
        return Err(CommandError::not_found(what));
    }
    let line = format!("would write {} as {format}", path.display());
    let heading = format!("Export {}", short(&id));
    let planned = SessionChange::Export(id, format.to_owned(), path);
    Ok(possible(heading, vec![line], planned))
}

/// Reads a path that was typed: `~/` is the home directory.
pub(super) fn path_of(text: &str) -> Result<PathBuf> {
    let text = text.trim();
    match (text, text.strip_prefix("~/"), home_dir()) {
        ("", ..) => Err(CommandError::invalid("give it a name")),
        (_, Some(rest), Some(home)) => Ok(home.join(rest)),
        _ => Ok(Path::new(text).to_owned()),
    }
}

/// Does what was planned.
pub(super) fn apply(library: &StoreLibrary, change: SessionChange) -> Result<Report> {
    match change {
        SessionChange::Delete(id, plan) => apply_delete(id, plan),
        SessionChange::Undelete(name) => apply_undelete(library, &name),
        SessionChange::Title(id, new) => apply_title(library, &id, &new),
        SessionChange::Tag(id, tags) => apply_tag(library, &id, tags),
        SessionChange::Pin(id, pinned) => apply_pin(library, &id, pinned),
        SessionChange::Export(id, format, path) => {
            let (message, losses) = to_new_file(&library.store, &id, &format, &path, &library.ui)?;
            let losses = losses.iter().map(|loss| format!("; {loss}"));
            Ok(Report {
                message: losses.fold(message, |message, loss| message + &loss),
                reverse: None,
            })
        }
    }
}

fn apply_delete(id: SessionId, plan: DeletePlan) -> Result<Report> {
    let deletions = plan.deletions().to_vec();
    plan.apply()
        .map_err(|error| delete::locked(error, &deletions))?;
    let lines = deletions.iter().map(|it| delete::describe(it, "moved"));
    Ok(Report {
        message: lines.collect::<Vec<_>>().join("; "),
        reverse: Some(Action::Undelete(id.to_string())),
    })
}

fn apply_undelete(library: &StoreLibrary, name: &TrashName) -> Result<Report> {
    library.store.restore_deleted(name)?;
    Ok(Report {
        message: format!("restored {}", trash::describe(name)),
        reverse: Some(Action::Delete(name.id.to_string())),
    })
}

fn apply_title(library: &StoreLibrary, id: &SessionId, new: &str) -> Result<Report> {
    let before = library.store.read_session(id)?.info()?.title;
    Ok(Report {
        message: title::set(&library.store, id, new)?,
        reverse: Some(Action::Title(id.to_string(), before.unwrap_or_default())),
    })
}

fn apply_tag(library: &StoreLibrary, id: &SessionId, tags: Vec<(String, bool)>) -> Result<Report> {
    let changed = tag::change(&library.store, id, tags)?;
    let tags = library.store.read_session(id)?.info()?.tags;
    let back = changed.iter().map(|(tag, is_added)| match is_added {
        true => format!("-{tag}"),
        false => format!("+{tag}"),
    });
    let back = back.collect::<Vec<_>>().join(" ");
    Ok(Report {
        message: tag::described(id, &tags),
        reverse: (!back.is_empty()).then(|| Action::Tag(id.to_string(), back)),
    })
}

fn apply_pin(library: &StoreLibrary, id: &SessionId, pinned: bool) -> Result<Report> {
    let (before, message) = pin::set(&library.store, id, pinned)?;
    let is_changed = before != pinned;
    Ok(Report {
        message,
        reverse: is_changed.then(|| Action::Pin(id.to_string(), before)),
    })
}
