//! Hooks in a settings file: `{"hooks": {"EVENT": [{"hooks": [{"command": …}]}]}}`, as Claude Code,
//! Codex, Gemini CLI and Qwen Code have it. Adding and removing change only our own bytes.

use serde_json::{Value, json};

use super::hook_line::{Created, Level};
use crate::json_edit::{Document, Node, Step, SyntaxError};

/// A hook to install.
pub(super) struct WantedHook {
    pub(super) event: &'static str,
    /// The handler, except for its command.
    pub(super) handler: Value,
    /// The command line without its mark, by what is created for it.
    pub(super) command: CommandLine,
}

/// Returns a command line by what is created for it.
pub(super) type CommandLine = Box<dyn Fn(&Created) -> String>;

/// A hook of ours in a settings file.
#[derive(Debug)]
pub(super) struct InstalledHook {
    pub(super) event: String,
    /// The place of its group in the event, and its own in the group.
    pub(super) group: usize,
    pub(super) index: usize,
    pub(super) handler: Value,
    pub(super) created: Created,
}

/// The reason why hooks cannot be added to a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Syntax(SyntaxError),
    Shape(String),
}

impl From<SyntaxError> for Refused {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

/// Returns the text with all the wanted hooks and no others of ours. `None` is a file that is not
/// there; then so many directories have to be created.
pub(super) fn install(
    text: Option<&str>,
    wanted: &[WantedHook],
    directories: usize,
) -> Result<String, Refused> {
    if let Some(text) = text
        && is_installed(text, wanted)?
    {
        return Ok(text.to_owned());
    }
    // A text that had them before is updated as one that never had them.
    let before = installed_in(text.unwrap_or_default())?.pop();
    let (clean, directories) = match (text, before) {
        (Some(text), Some(hook)) => (remove(text)?, hook.created.directories),
        (text, _) => (text.map(str::to_owned), directories),
    };
    let document = Document::parse(clean.as_deref().unwrap_or_default())?;
    let created = |event: &str| -> Result<Created, Refused> {
        let mut created = created_for(&document, event)?;
        if clean.is_none() {
            created.new.insert(Level::File);
            created.directories = directories;
        }
        Ok(created)
    };
    let groups = wanted.iter().map(|hook| {
        let mut handler = hook.handler.clone();
        handler["command"] = (hook.command)(&created(hook.event)?).into();
        Ok((hook.event, json!({"hooks": [handler]})))
    });
    let groups = groups.collect::<Result<Vec<_>, Refused>>()?;
    add(&document, &groups)
}

/// Returns the text without our hooks; `None` if the file was created for them and has nothing else
/// in it.
pub(super) fn remove(text: &str) -> Result<Option<String>, Refused> {
    let mut text = text.to_owned();
    while let Some(hook) = installed_in(&text)?.pop() {
        text = remove_one(&Document::parse(&text)?, &hook);
        let is_blank = text.trim_start_matches('\u{feff}').trim().is_empty();
        if is_blank && hook.created.new.contains(&Level::File) {
            return Ok(None);
        }
    }
    Ok(Some(text))
}

/// Returns our hooks in a text.
pub(super) fn installed_in(text: &str) -> Result<Vec<InstalledHook>, SyntaxError> {
    let document = Document::parse(text)?;
    let hooks = document.get(&[Step::Key("hooks")]);
    let mut found = Vec::new();
    for event in hooks.into_iter().flat_map(Node::keys) {
        let groups = hooks.and_then(|hooks| hooks.member(event));
        for (group, node) in groups.map_or(&[][..], Node::elements).iter().enumerate() {
            let handlers = node.member("hooks").map_or(&[][..], Node::elements);
            for (index, handler) in handlers.iter().enumerate() {
                let handler = document.value(handler);
                if let Some(created) = handler["command"].as_str().and_then(Created::read) {
                    found.push(InstalledHook {
                        event: event.to_owned(),
                        group,
                        index,
                        handler,
                        created,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// Returns whether a text has exactly the wanted hooks.
pub(super) fn is_installed(text: &str, wanted: &[WantedHook]) -> Result<bool, SyntaxError> {
    let found = installed_in(text)?;
    let is_there = |hook: &WantedHook| {
        let mut of_event = found.iter().filter(|it| it.event == hook.event);
        let one = of_event.next();
        one.is_some_and(|it| is_same(it, hook)) && of_event.next().is_none()
    };
    Ok(found.len() == wanted.len() && wanted.iter().all(is_there))
}

fn is_same(installed: &InstalledHook, wanted: &WantedHook) -> bool {
    let mut handler = wanted.handler.clone();
    handler["command"] = (wanted.command)(&installed.created).into();
    installed.handler == handler
}

/// Finds out which containers of an event there are.
fn created_for(document: &Document<'_>, event: &str) -> Result<Created, Refused> {
    let mut created = Created::default();
    let path = [Step::Key("hooks"), Step::Key(event)];
    for (level, path) in [
        (Level::Root, &path[..0]),
        (Level::Hooks, &path[..1]),
        (Level::Event, &path[..]),
    ] {
        let Some(node) = document.get(path) else {
            created.new.insert(level);
            continue;
        };
        check_shape(node, level, event)?;
        if document.is_tight(node) {
            created.tight.insert(level);
        }
    }
    Ok(created)
}

fn check_shape(node: &Node, level: Level, event: &str) -> Result<(), Refused> {
    let is_right = match level {
        Level::Event => node.is_array(),
        _ => node.is_object(),
    };
    let twice = match level {
        Level::Root => node.count_of("hooks") > 1,
        Level::Hooks => node.count_of(event) > 1,
        _ => false,
    };
    let shape = match level {
        _ if twice && level == Level::Root => "it has \"hooks\" twice".to_owned(),
        _ if twice => format!("its hooks have \"{event}\" twice"),
        _ if is_right => return Ok(()),
        Level::Event => format!("\"{event}\" in its hooks is not a list"),
        Level::Hooks => "its \"hooks\" is not an object".to_owned(),
        _ => "it is not a JSON object".to_owned(),
    };
    Err(Refused::Shape(shape))
}

fn add(document: &Document<'_>, groups: &[(&str, Value)]) -> Result<String, Refused> {
    let all = groups.iter();
    let all = all.map(|(event, group)| ((*event).to_owned(), json!([group])));
    let all = Value::Object(all.collect());
    let Some(root) = document.root() else {
        return Ok(document.with_root(&json!({"hooks": all})));
    };
    if root.member("hooks").is_none() {
        return Ok(document.add(root, Some("hooks"), &all));
    }
    let mut text = None::<String>;
    for (event, group) in groups {
        let so_far = text.as_deref().map(Document::parse).transpose()?;
        let document = so_far.as_ref().unwrap_or(document);
        let place = |path: &[Step<'_>]| document.get(path);
        let added = match place(&[Step::Key("hooks"), Step::Key(event)]) {
            Some(groups) => document.add(groups, None, group),
            None => {
                let hooks = place(&[Step::Key("hooks")]).expect("hooks stay where they are");
                document.add(hooks, Some(event), &json!([group]))
            }
        };
        text = Some(added);
    }
    Ok(text.unwrap_or_default())
}

/// Removes a hook, with the containers that were created for it and have nothing else in them.
fn remove_one(document: &Document<'_>, hook: &InstalledHook) -> String {
    let event = hook.event.as_str();
    let path = [
        Step::Key("hooks"),
        Step::Key(event),
        Step::Index(hook.group),
        Step::Key("hooks"),
    ];
    let node = |length: usize| document.get(&path[..length]).expect("the hook is there");
    let (root, hooks, groups, handlers) = (node(0), node(1), node(2), node(4));
    if handlers.len() > 1 {
        return document.remove(handlers, hook.index);
    }
    let goes = |level: Level, container: &Node, child: &Node| {
        let alone = container.len() == 1 && !document.has_comments(container, child);
        alone && hook.created.new.contains(&level)
    };
    let (container, index, level) = if !goes(Level::Event, groups, node(3)) {
        (groups, Some(hook.group), Level::Event)
    } else if !goes(Level::Hooks, hooks, groups) {
        (hooks, hooks.index_of(event), Level::Hooks)
    } else if !goes(Level::Root, root, hooks) {
        (root, root.index_of("hooks"), Level::Root)
    } else {
        return document.without_root();
    };
    let is_last = container.len() == 1;
    let text = document.remove(container, index.expect("the hook is there"));
    match is_last && hook.created.tight.contains(&level) {
        true => squeezed(&text, &path[..level as usize - Level::Root as usize]),
        false => text,
    }
}

/// Returns the text without the blanks in an empty container.
pub(super) fn squeezed(text: &str, path: &[Step<'_>]) -> String {
    let document = Document::parse(text).expect("what is left is JSON");
    match document.get(path) {
        Some(container) => document.squeeze(container),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
